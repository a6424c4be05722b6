"""The harvest of a job: what is collected, cut, and reported; and a disk that is full in the middle."""

import errno
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from client.bundler import Harvest
from client.recent import RecentlySent
from client.results import MinedPage
from client.room import Room
from client.spool import Parcel, Spool
from common.bundle import BundleWriter, parse_bundle_name, read_pages
from common.clock import ManualClock
from common.wire import FoundUrl, HostFact, Kind, ListedUrl, Outcome, UrlTask
from tests.bundles import page_meta
from tests.tickets import job_settings

FACT = HostFact("a.test")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path / "spool")


@pytest.fixture
def room() -> Room:
    return Room(10**9)


@pytest.fixture
def recent() -> RecentlySent:
    return RecentlySent()


@pytest.fixture
def harvest_of(spool: Spool, clock: ManualClock, room: Room, recent: RecentlySent) -> Callable[[int], Harvest]:
    return lambda urls: Harvest("7", urls, job_settings(report_seconds=30.0), spool, clock, room, recent)


def _page(url: str, *links: str, depth: int = 0, body: bytes = b"<p>text") -> MinedPage:
    meta = page_meta(url, body, 1_700_000_000.0)
    return MinedPage(UrlTask(url, depth), Outcome.STORED, "", 200, meta, "data.html", body, b"<page/>", links)


def _failed(url: str) -> MinedPage:
    return MinedPage(UrlTask(url), Outcome.NOT_FOUND, "status 404", 404)


def _cut(harvest: Harvest) -> Parcel:
    parcel = harvest.cut()
    assert parcel is not None
    return parcel


def _stored(parcel: Parcel) -> list[str]:
    return sorted(entry.meta.url for bundle in parcel.bundles for entry, _, _ in read_pages(bundle))


def test_counts_from_the_first_url_to_the_last_parcel(harvest_of: Callable[[int], Harvest]) -> None:
    harvest = harvest_of(2)
    assert not harvest.is_complete
    assert not harvest.is_due(10**9)
    harvest.add(_page("http://a.test/1"), FACT)
    assert (harvest.is_complete, harvest.is_settled, harvest.is_due(10**9)) == (False, False, False)
    harvest.add(_failed("http://a.test/2"), FACT)
    assert (harvest.is_complete, harvest.is_settled, harvest.is_due(10**9)) == (True, False, True)
    report = _cut(harvest).read().report
    assert [(each.url, each.outcome, each.status) for each in report.results] == [
        ("http://a.test/1", Outcome.STORED, 200),
        ("http://a.test/2", Outcome.NOT_FOUND, 404),
    ]
    assert (harvest.is_settled, harvest.is_due(10**9)) == (True, False)
    assert harvest.cut() is None


@pytest.mark.parametrize("recrawl", [False, True])
def test_what_the_next_visit_needs_is_told_if_there_will_be_one(
    spool: Spool, clock: ManualClock, room: Room, recent: RecentlySent, recrawl: bool
) -> None:
    harvest = Harvest("7", 2, job_settings(recrawl=recrawl), spool, clock, room, recent)
    page = replace(_page("http://a.test/1"), etag='"1"', last_modified="then")
    harvest.add(page, FACT)
    harvest.add(MinedPage(UrlTask("http://a.test/2"), Outcome.UNCHANGED, "", 304, etag='"2"'), FACT)
    assert page.meta is not None
    told = [(result.etag, result.last_modified, result.sha1) for result in _cut(harvest).read().report.results]
    sha1 = page.meta.sha1  # of what is stored always: nothing else that is uploaded counts
    assert told == ([('"1"', "then", sha1), ('"2"', "", "")] if recrawl else [("", "", sha1), ("", "", "")])


def test_given_back_urls_are_not_waited_for(harvest_of: Callable[[int], Harvest]) -> None:
    harvest = harvest_of(3)
    harvest.add(_failed("http://a.test/1"), FACT)
    harvest.give_back(2)
    assert harvest.is_complete


def test_what_others_are_to_do_is_reported_soon(harvest_of: Callable[[int], Harvest], clock: ManualClock) -> None:
    harvest = harvest_of(3)
    harvest.skip([UrlTask("http://a/1"), UrlTask("http://a/2")])
    harvest.hurry()
    clock.advance(0.5)
    assert not harvest.is_due(10**9), "what is under way may end meanwhile"
    clock.advance(0.6)
    assert harvest.is_due(10**9), "it does not wait for report_seconds"
    parcel = harvest.cut()
    assert parcel is not None
    report = parcel.read().report
    assert [(result.url, result.outcome) for result in report.results] == [
        ("http://a/1", Outcome.SKIPPED), ("http://a/2", Outcome.SKIPPED)
    ]  # fmt: skip
    assert not report.hosts, "nothing was learnt about the host"
    assert not harvest.is_complete


def test_due_by_time_and_by_size(harvest_of: Callable[[int], Harvest], clock: ManualClock) -> None:
    harvest = harvest_of(9)
    clock.advance(100.0)
    assert not harvest.is_due(10**9), "nothing is there"
    harvest.add(_page("http://a.test/1", body=b"x" * 1000), FACT)
    assert harvest.is_due(10**9), "the last cut is long ago"
    _cut(harvest)
    harvest.add(_page("http://a.test/2", body=b"x" * 1000), FACT)
    assert not harvest.is_due(20_000)
    assert harvest.is_due(1000)
    clock.advance(30.0)
    assert harvest.is_due(20_000)


def test_one_bundle_for_each_domain(harvest_of: Callable[[int], Harvest]) -> None:
    harvest = harvest_of(3)
    for url in ("http://a.test/1", "http://www.a.test/", "http://a.test/2"):
        harvest.add(_page(url), FACT)
    parcel = _cut(harvest)
    names = [parse_bundle_name(path.name) for path in parcel.bundles]
    assert [(name[0], name[2]) for name in names if name] == [("a.test", "7"), ("www.a.test", "7")]
    assert _stored(parcel) == ["http://a.test/1", "http://a.test/2", "http://www.a.test/"]
    assert parcel.read().report.size == sum(path.stat().st_size for path in parcel.bundles)


def test_cuts_within_a_second_never_have_the_same_name(harvest_of: Callable[[int], Harvest]) -> None:
    harvest = harvest_of(20)
    names = []
    for number in range(20):
        harvest.add(_page(f"http://a.test/{number}"), FACT)
        names += [path.name for path in _cut(harvest).bundles]
    assert len(set(names)) == 20


def test_found_urls_are_there_once_with_the_least_depth(harvest_of: Callable[[int], Harvest]) -> None:
    harvest = harvest_of(3)
    harvest.add(_page("http://a.test/1", "http://a.test/x", "http://a.test/y", depth=5), FACT)
    harvest.add(_page("http://a.test/2", "http://a.test/x", depth=1), FACT)
    harvest.add(_page("http://a.test/3", "http://a.test/x", depth=3), FACT)
    found = _cut(harvest).read().report.found
    assert list(found) == [FoundUrl("http://a.test/x", 2), FoundUrl("http://a.test/y", 6)]


def test_redirect_is_a_hop_and_no_link(harvest_of: Callable[[int], Harvest]) -> None:
    harvest = harvest_of(1)
    task = UrlTask("http://a.test/old", depth=4, hops=2)
    harvest.add(MinedPage(task, Outcome.REDIRECTED, status=301, links=["http://a.test/new"]), FACT)
    parcel = _cut(harvest)
    assert list(parcel.read().report.found) == [FoundUrl("http://a.test/new", 4, 3)]
    assert parcel.bundles == []


def test_facts_about_a_host_are_merged(harvest_of: Callable[[int], Harvest]) -> None:
    harvest = harvest_of(4)
    facts = [
        HostFact("a.test", "192.0.2.1", 3.0),
        HostFact("a.test", "", -1.0, 20.0),
        HostFact("a.test", "192.0.2.9", 1.0, 5.0),
        HostFact("b.test"),
    ]
    for number, fact in enumerate(facts):
        harvest.add(_failed(f"http://{fact.host}/{number}"), fact)
    assert list(_cut(harvest).read().report.hosts) == [HostFact("a.test", "192.0.2.9", 3.0, 20.0), HostFact("b.test")]


def test_full_disk_while_packing_loses_nothing(
    harvest_of: Callable[[int], Harvest], spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    harvest = harvest_of(3)
    harvest.add(_page("http://a.test/1"), FACT)
    harvest.add(_page("http://b.test/1"), HostFact("b.test"))
    with monkeypatch.context() as patch:
        _fail_at(patch, BundleWriter, "write", call=2)
        with pytest.raises(OSError, match="No space"):
            harvest.cut()
    assert list(spool.parcels("7")) == []
    harvest.add(_page("http://a.test/2"), FACT)  # meanwhile the work goes on
    with monkeypatch.context() as patch:
        _fail_at(patch, Spool, "seal", call=1)
        with pytest.raises(OSError, match="No space"):
            harvest.cut()
    first, second = _cut(harvest), _cut(harvest)
    assert _stored(first) == ["http://a.test/1", "http://b.test/1"]
    assert _stored(second) == ["http://a.test/2"]
    assert harvest.is_settled
    assert len(list(spool.parcels("7"))) == 2


def _fail_at(patch: pytest.MonkeyPatch, owner: type, name: str, call: int) -> None:
    """The disk is full at the n-th call."""
    calls: list[int] = []
    real = getattr(owner, name)

    def failing(*arguments: Any, **named: Any) -> Any:
        calls.append(1)
        if len(calls) == call:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(*arguments, **named)

    patch.setattr(owner, name, failing)


def test_what_the_server_knows_is_not_sent_again(
    harvest_of: Callable[[int], Harvest], recent: RecentlySent
) -> None:
    recent.add([FoundUrl("http://a.test/x", 3), FoundUrl("http://a.test/new", 1)])
    harvest = harvest_of(3)
    harvest.add(_page("http://a.test/1", "http://a.test/x", "http://a.test/y", depth=2), FACT)
    harvest.add(_page("http://a.test/2", "http://a.test/x", depth=1), FACT)
    task = UrlTask("http://a.test/old", depth=4, hops=2)
    harvest.add(MinedPage(task, Outcome.REDIRECTED, status=301, links=["http://a.test/new"]), FACT)
    assert list(_cut(harvest).read().report.found) == [
        FoundUrl("http://a.test/y", 3),
        FoundUrl("http://a.test/x", 2),  # nearer than the server was told
        FoundUrl("http://a.test/new", 4, 3),  # of a redirect the server counts the hops
    ]


def test_all_links_are_sent_when_the_server_wants_them_again(
    spool: Spool, clock: ManualClock, room: Room, recent: RecentlySent
) -> None:
    recent.add([FoundUrl("http://a.test/x", 3)])
    settings = job_settings(report_seconds=30.0, repeat_links=True)
    harvest = Harvest("7", 1, settings, spool, clock, room, recent)
    harvest.add(_page("http://a.test/1", "http://a.test/y", "http://a.test/x", depth=5), FACT)
    assert [each.url for each in _cut(harvest).read().report.found] == ["http://a.test/y", "http://a.test/x"]


def test_recently_sent_is_bounded() -> None:
    recent = RecentlySent(100)
    for number in range(50):
        recent.add([FoundUrl(f"http://a.test/{number}/{each}", 1) for each in range(10)])
    known = [number for number in range(50) if recent.knows(f"http://a.test/{number}/0", 1)]
    assert known == list(range(40, 50))


def test_pieces_are_compressed_while_pages_arrive(
    harvest_of: Callable[[int], Harvest], room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("common.bundle.writer._PIECE_BYTES", 25_000)
    harvest = harvest_of(7)
    bodies = [bytes([65 + number]) * 10_000 for number in range(7)]
    signs = [harvest.add(_page(f"http://a.test/{n}", body=body), FACT) for n, body in enumerate(bodies[:3])]
    assert signs == [False, False, True]
    before = room.used
    harvest.squeeze()
    assert before > 30_000 > 5_000 > room.used == harvest.held > 0
    for number, body in enumerate(bodies[3:], 3):
        if harvest.add(_page(f"http://a.test/{number}", body=body), FACT):
            harvest.squeeze()
    parcel = _cut(harvest)
    assert [body for bundle in parcel.bundles for _, body, _ in read_pages(bundle)] == bodies
    assert room.used == 0


def test_links_take_room_until_they_are_packed(harvest_of: Callable[[int], Harvest], room: Room) -> None:
    harvest = harvest_of(1)
    harvest.add(_page("http://a.test/", *(f"http://a.test/{number}" for number in range(10_000))), FACT)
    assert room.used > 1_000_000
    assert harvest.is_due(1_000_000)
    _cut(harvest)
    assert room.used == 0


def test_long_links_take_more_room(harvest_of: Callable[[int], Harvest], room: Room) -> None:
    harvest = harvest_of(1)
    harvest.add(_page("http://a.test/", *(f"http://a.test/{'x' * 1_900}{number}" for number in range(1_000))), FACT)
    assert room.used > 1_900_000
    _cut(harvest)
    assert room.used == 0


def test_what_sitemaps_say_is_reported_apart_from_links(
    spool: Spool, clock: ManualClock, room: Room, recent: RecentlySent
) -> None:
    harvest = Harvest("7", 2, job_settings(recrawl=True), spool, clock, room, recent)
    named = ListedUrl("http://a.test/sitemap.xml", 0, kind=Kind.GUESSED)
    rows = [ListedUrl(f"http://a.test/{number}", 1, 1_700_000_000 + number) for number in range(3)]
    recent.add([FoundUrl("http://a.test/1", 0)])
    harvest.add(_failed("http://a.test/2"), FACT, [named])
    task = UrlTask("http://a.test/sitemap.xml", kind=Kind.GUESSED)
    harvest.add(MinedPage(task, Outcome.LISTED, status=200, etag='"1"', sha1="a" * 40, listed=rows), FACT)
    assert room.used > 0
    parcel = _cut(harvest)
    report = parcel.read().report
    assert (report.listed, report.found, parcel.bundles) == ([named, *rows], [], [])
    assert report.results[1]._replace(size=0) == (task.url, "listed", 200, 0, "", '"1"', "", "a" * 40)
    assert room.used == 0

"""The audit on a small crawl that is in order, and on the same crawl after one thing was broken; then the repair."""

import os
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from common.bundle import BundleWriter, manifest_path
from common.clock import SystemClock
from common.errors import PavoukError
from common.page import PageMeta, PageText, links_in, page_xml
from common.settings import Settings
from common.urls import digest
from common.wire import FoundUrl, Outcome, Report, UrlResult
from server.admin import findings as kinds
from server.admin import main
from server.admin.audit import Examination, examine
from server.admin.findings import SHOWN, Listing
from server.admin.repair import repair
from server.catalogue import FILE_NAME, Catalogue
from server.frontier.change import TOTALS_KEY, pack_totals, unpack_totals
from server.frontier.claims import GIVEN_BACK, SINCE_KEY, entry, row
from server.frontier.frontier import Frontier
from server.frontier.hosts import Host
from server.frontier.jobnames import JobNames
from server.frontier.records import KEY_LENGTH, State
from server.frontier.rocks import RocksStore
from server.frontier.store import StoreError, Table
from server.opening import open_frontier, open_store, reopened
from tests.bundles import make_bundle, page_meta, page_url

DOMAINS = ("a.example", "b.example")
PAGES = 3  # of each


@dataclass
class Crawl:
    """A work folder after a crawl. The store is open; a frontier on it only within a method."""

    folder: Path

    def __post_init__(self) -> None:
        self.settings = Settings(self.folder)
        self.pages = self.settings.pages
        self._crawl()
        self.store: RocksStore = open_store(self.settings)
        self.bundles = [make_bundle(self.pages / domain, domain, self.job(1), pages=PAGES) for domain in DOMAINS]
        self.catalogue(lambda catalogue: catalogue.reconcile())

    def job(self, number: int) -> str:
        """What this job is called."""
        return JobNames.of(self.store).name(number)

    def _crawl(self) -> None:
        frontier = open_frontier(self.settings, SystemClock())
        frontier.add([FoundUrl(page_url(domain, number), 0) for domain in DOMAINS for number in range(PAGES)])
        self.store_leased(frontier)
        frontier.add([FoundUrl("http://c.example/queued", 0)])
        frontier.close()

    @staticmethod
    def store_leased(frontier: Frontier) -> None:
        leased = frontier.lease("w", "", 100)
        results = [UrlResult(task.url, Outcome.STORED) for task in leased.tasks]
        frontier.report("w", leased.job, Report(str(leased.job), results, []))

    def catalogue(self, call: Callable[[Catalogue], Any]) -> None:
        with Catalogue.open(self.pages) as catalogue:
            call(catalogue)

    def store_bundle(self, domain: str, meta: PageMeta, text: PageText) -> Path:
        """A bundle with one page, catalogued."""
        folder = self.pages / domain
        folder.mkdir()
        writer = BundleWriter(domain, self.job(4), "tar.bz2")
        writer.add(meta, "data.html", b"body", page_xml(meta, text))
        path = writer.write(folder, 1_700_000_000)
        self.catalogue(lambda catalogue: catalogue.reconcile())
        return path

    def gave_back(self, job: int, *urls: str) -> None:
        """As if this job had had them, and its lease had ended before it reported them."""
        self.store.write([row(job, GIVEN_BACK, [entry(digest(url)[:KEY_LENGTH]) for url in urls])])

    def frontier(self) -> Frontier:
        """For some calls. Closed with the store."""
        return reopened(self.store, self.settings, SystemClock())

    def state(self, url: str) -> State | None:
        return self.frontier().state_of(url)

    def examine(self, quick: bool = False, since: float | None = None) -> Examination:
        return examine(self.store, self.pages, quick=quick, since=since)

    def kinds(self, quick: bool = False) -> set[str]:
        return set(self.examine(quick).found.differences.kinds)

    def repair(self) -> Listing:
        return repair(self.store, self.settings, self.examine(), quick=False)

    def sql(self, statement: str) -> None:
        with sqlite3.connect(self.pages / FILE_NAME) as database:
            database.execute("PRAGMA foreign_keys = ON")
            database.execute(statement)
        database.close()


@pytest.fixture
def crawl(tmp_path: Path) -> Any:
    crawl = Crawl(tmp_path)
    yield crawl
    crawl.store.close()


def assert_mended(crawl: Crawl) -> Listing:
    done = crawl.repair()
    assert crawl.examine().found.differences.first == []
    assert not crawl.repair().first, "a second repair finds nothing to do"
    return done


def test_a_crawl_in_order(crawl: Crawl) -> None:
    found = crawl.examine().found
    assert found.differences.first == []
    assert found.notes.first == []
    assert dict(found.counts) == {
        "known": 7, "queued": 1, "leased": 0, "done": 6, "failed": 0, "excluded": 0, "stored": 6,
        "URLs with a page": 6, "pages": 6, "bundles": 2, "bytes": sum(path.stat().st_size for path in crawl.bundles),
    }  # fmt: skip
    assert assert_mended(crawl).number == 0


def test_a_crawl_that_has_stored_nothing_yet(tmp_path: Path) -> None:
    frontier = open_frontier(Settings(tmp_path), SystemClock())
    frontier.add([FoundUrl("http://a/", 0)])
    frontier.close()
    store = open_store(Settings(tmp_path))
    assert examine(store, tmp_path / "Pages", quick=False).found.differences.first == []
    store.close()


def test_a_deleted_bundle(crawl: Crawl) -> None:
    crawl.bundles[0].unlink()
    assert crawl.kinds() == {kinds.BUNDLE_GONE}
    assert "queued again" in assert_mended(crawl).kinds
    assert crawl.state(page_url(DOMAINS[0], 0)) is State.QUEUED
    assert crawl.state(page_url(DOMAINS[1], 0)) is State.DONE


@pytest.mark.parametrize("container", ["bundle", "manifest"])
def test_a_flipped_byte(crawl: Crawl, container: str) -> None:
    path = crawl.bundles[0] if container == "bundle" else manifest_path(crawl.bundles[0])
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
    if container == "bundle":
        assert crawl.kinds() == {kinds.BUNDLE_BROKEN}
        assert crawl.kinds(quick=True) == set(), "quick does not read the bundles"
        assert "quarantined" in assert_mended(crawl).kinds
        assert len(list((crawl.pages / ".quarantine").iterdir())) == 2
        assert crawl.state(page_url(DOMAINS[0], 0)) is State.QUEUED
    else:
        assert crawl.kinds(quick=True) == {kinds.MANIFEST_GONE}
        assert "manifest written" in assert_mended(crawl).kinds


def test_a_lost_page_is_asked_for_at_the_address_that_was_found(crawl: Crawl) -> None:
    url = "http://i.example/index.html"
    meta = replace(page_meta("http://i.example/", b"body", 1_700_000_000.0), original_url=url)
    path = crawl.store_bundle("i.example", meta, PageText())
    frontier = crawl.frontier()
    frontier.add([FoundUrl(url, 0)])
    crawl.repair()
    path.unlink()
    assert_mended(crawl)
    known = crawl.frontier().explain("http://i.example/")
    assert (known.state, known.requested) == ("queued", url)


def test_a_page_that_is_in_another_bundle_too_is_not_lost(crawl: Crawl) -> None:
    crawl.gave_back(2, page_url(DOMAINS[0], 0))
    make_bundle(crawl.pages / DOMAINS[0], DOMAINS[0], crawl.job(2), pages=1)
    crawl.catalogue(lambda catalogue: catalogue.reconcile())
    crawl.bundles[0].unlink()
    assert assert_mended(crawl).kinds["confirmed"] == 1
    states = [crawl.state(page_url(DOMAINS[0], number)) for number in range(PAGES)]
    assert states == [State.DONE, State.QUEUED, State.QUEUED]


def test_a_cut_bundle_is_seen_without_reading_it(crawl: Crawl) -> None:
    data = crawl.bundles[0].read_bytes()
    crawl.bundles[0].write_bytes(data[:-1])
    assert crawl.kinds(quick=True) == {kinds.BUNDLE_BROKEN}
    assert_mended(crawl)


def test_a_deleted_row_of_the_catalogue(crawl: Crawl) -> None:
    crawl.sql("DELETE FROM page WHERE position = 1 AND bundle = 1")
    assert crawl.kinds(quick=True) == {kinds.CATALOGUE_WRONG, kinds.PAGE_MISSING}
    assert "catalogued anew" in assert_mended(crawl).kinds
    assert crawl.state(page_url(DOMAINS[0], 1)) is State.DONE, "the page was there all the time"


def test_a_bundle_that_is_not_catalogued(crawl: Crawl) -> None:
    crawl.sql("DELETE FROM bundle WHERE id = 1")
    assert crawl.kinds(quick=True) == {kinds.NOT_CATALOGUED}
    assert "catalogued" in assert_mended(crawl).kinds


@pytest.mark.parametrize("damage", ["gone", "broken"])
def test_a_catalogue_that_is_no_good(crawl: Crawl, damage: str) -> None:
    file = crawl.pages / FILE_NAME
    if damage == "gone":
        file.unlink()
    else:
        file.write_bytes(b"no database at all" * 100)
    assert crawl.kinds(quick=True) == {kinds.CATALOGUE_WRONG}
    assert_mended(crawl)


def test_a_broken_bundle_and_no_catalogue_at_once(crawl: Crawl) -> None:
    crawl.bundles[0].write_bytes(b"rubbish")
    (crawl.pages / FILE_NAME).unlink()
    done = assert_mended(crawl)
    assert done.kinds["forgotten"] == 1, "nothing says which pages it had"
    assert crawl.state(page_url(DOMAINS[0], 0)) is None


def test_wrong_counters_of_the_frontier(crawl: Crawl) -> None:
    key, value = next(crawl.store.scan(Table.HOSTS))
    host = Host.unpacked(key, value)
    host.done += 1
    totals = unpack_totals(crawl.store.get(Table.META, TOTALS_KEY) or b"")
    crawl.store.write([(Table.HOSTS, key, host.packed())])
    found = crawl.examine(quick=True).found
    assert set(found.differences.kinds) == {kinds.FRONTIER}
    assert any(host.name in what for _, what in found.differences.first)
    assert assert_mended(crawl).kinds["counted again"] == 1
    assert unpack_totals(crawl.store.get(Table.META, TOTALS_KEY) or b"") == totals
    crawl.store.write([(Table.META, TOTALS_KEY, pack_totals(type(totals)()))])
    assert crawl.kinds(quick=True) == {kinds.FRONTIER}
    assert_mended(crawl)


def test_an_upload_that_was_not_reported(crawl: Crawl) -> None:
    url = page_url("new.example", 0)
    crawl.frontier().add([FoundUrl(url, 2)])
    crawl.gave_back(9, url)
    path = make_bundle(crawl.pages / "new.example", "new.example", crawl.job(9), pages=1)
    crawl.catalogue(lambda catalogue: catalogue.reconcile())
    found = crawl.examine().found
    assert found.differences.first == [(kinds.NOT_REPORTED, f"{url} is queued, and stored in new.example/{path.name}")]
    running = crawl.examine(since=0.0).found
    assert running.differences.number == 0
    assert running.notes.kinds == {kinds.IN_FLIGHT: 1}
    assert assert_mended(crawl).kinds["settled"] == 1
    assert crawl.state(url) is State.DONE


@pytest.mark.parametrize("is_known", [True, False], ids=["queued", "unknown"])
def test_a_quick_repair_settles_nothing_that_cannot_be_read(crawl: Crawl, is_known: bool) -> None:
    url = page_url("new.example", 0)
    if is_known:
        crawl.frontier().add([FoundUrl(url, 2)])
    crawl.gave_back(9, url)
    path = make_bundle(crawl.pages / "new.example", "new.example", crawl.job(9), pages=1)
    crawl.catalogue(lambda catalogue: catalogue.reconcile())
    flip_middle(path)
    before = crawl.examine(quick=True)
    done = repair(crawl.store, crawl.settings, before, quick=True)
    assert done.kinds == {"not mended": 1}
    assert crawl.state(url) is (State.QUEUED if is_known else None)
    assert crawl.examine(quick=True).found.differences.first == before.found.differences.first != []
    assert "quarantined" in assert_mended(crawl).kinds


def test_a_quick_repair_confirms_nothing_that_cannot_be_read(crawl: Crawl) -> None:
    """The URL is done, and its page is in no other bundle that counts."""
    crawl.gave_back(9, *(page_url(DOMAINS[0], number) for number in range(PAGES)))
    flip_middle(make_bundle(crawl.pages / DOMAINS[0], DOMAINS[0], crawl.job(9)))
    crawl.bundles[0].unlink()
    crawl.catalogue(lambda catalogue: catalogue.reconcile())
    done = repair(crawl.store, crawl.settings, crawl.examine(quick=True), quick=True)
    assert "confirmed" not in done.kinds
    assert crawl.state(page_url(DOMAINS[0], 0)) is not State.DONE


def flip_middle(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(bytes(data))


@pytest.mark.parametrize("target", ["nowhere", "itself"])
def test_a_bundle_that_cannot_be_looked_at(crawl: Crawl, target: str) -> None:
    path = crawl.bundles[0]
    path.unlink()
    path.symlink_to("/nowhere" if target == "nowhere" else path.name)
    assert crawl.kinds() == {kinds.BUNDLE_GONE}
    assert "quarantined" in assert_mended(crawl).kinds
    assert crawl.state(page_url(DOMAINS[0], 0)) is State.QUEUED


@pytest.mark.parametrize("quick", [True, False])
def test_what_breaks_between_audit_and_repair_holds_up_nothing_else(crawl: Crawl, quick: bool) -> None:
    first, second = crawl.bundles
    manifest_path(first).unlink()
    manifest_path(second).unlink()
    seen = crawl.examine(quick)
    assert set(seen.found.differences.kinds) == {kinds.MANIFEST_GONE}
    first.write_bytes(b"rubbish")
    done = repair(crawl.store, crawl.settings, seen, quick)
    assert done.kinds == {"not mended": 1, "manifest written": 1}
    assert first.name in done.first[0][1]
    assert_mended(crawl)


def test_a_bundle_that_cannot_be_moved_is_not_settled(crawl: Crawl, monkeypatch: pytest.MonkeyPatch) -> None:
    crawl.bundles[0].write_bytes(b"rubbish")
    manifest_path(crawl.bundles[1]).unlink()
    rename = Path.rename

    def fails(self: Path, target: Any) -> Path:
        if self == crawl.bundles[0]:
            raise PermissionError(1, "Operation not permitted")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fails)
    done = crawl.repair()
    assert main.is_different({"repaired": done.as_json(), "left": Listing().as_json()})
    assert done.kinds == {"queued again": 1, "not mended": 1, "manifest written": 1}
    assert crawl.state(page_url(DOMAINS[0], 0)) is State.QUEUED
    assert kinds.BUNDLE_BROKEN in crawl.kinds()
    monkeypatch.undo()
    assert_mended(crawl)


def test_links_of_an_unreported_page_are_taken_in(crawl: Crawl) -> None:
    meta = page_meta("http://l.example/", b"body", 1_700_000_000.0)
    crawl.store_bundle("l.example", meta, PageText([("http://l.example/one", "One"), ("http://l.example/two", "")]))
    crawl.frontier().add([FoundUrl("http://l.example/", 3)])
    crawl.gave_back(4, "http://l.example/")
    assert_mended(crawl)
    assert crawl.state("http://l.example/one") is State.QUEUED
    assert crawl.frontier().explain("http://l.example/two").depth == 4


def test_a_stored_page_that_nobody_knows(crawl: Crawl) -> None:
    crawl.gave_back(9, page_url("new.example", 0), page_url("new.example", 1))
    make_bundle(crawl.pages / "new.example", "new.example", crawl.job(9), pages=2)
    crawl.catalogue(lambda catalogue: catalogue.reconcile())
    assert crawl.kinds(quick=True) == {kinds.PAGE_UNKNOWN}
    assert crawl.examine(since=0.0).found.differences.number == 0, "stored since the frontier was copied"
    assert crawl.examine(since=2e10).found.differences.number == 2
    assert_mended(crawl)
    assert crawl.state(page_url("new.example", 1)) is State.DONE


def test_a_page_that_is_stored_again(crawl: Crawl) -> None:
    crawl.gave_back(2, page_url(DOMAINS[0], 0))
    path = make_bundle(crawl.pages / DOMAINS[0], DOMAINS[0], crawl.job(2), pages=1)
    crawl.catalogue(lambda catalogue: catalogue.reconcile())
    found = crawl.examine().found
    assert found.differences.number == 0
    what = f"{page_url(DOMAINS[0], 0)} in {DOMAINS[0]}/{path.name}: job {crawl.job(2)} has not reported it"
    assert found.notes.first == [(kinds.STORED_AGAIN, what)]
    assert (found.counts["pages"], found.counts["pages not confirmed"]) == (6, 1)
    assert assert_mended(crawl).number == 0, "it is not needed"


def test_pages_of_an_older_crawl_that_are_stored_again(crawl: Crawl) -> None:
    older(crawl, 3)
    make_bundle(crawl.pages / DOMAINS[0], DOMAINS[0], crawl.job(2), pages=1)
    crawl.catalogue(lambda catalogue: catalogue.reconcile())
    found = crawl.examine().found
    assert found.differences.number == 0
    assert found.notes.first == [(kinds.STORED_AGAIN, f"{page_url(DOMAINS[0], 0)}: in 2 jobs")]


def older(crawl: Crawl, since: int) -> None:
    """As if all that has happened so far had been by a version that noted nothing."""
    rows = [(Table.CLAIMS, key, None) for key, _ in crawl.store.scan(Table.CLAIMS)]
    crawl.store.write([*rows, (Table.META, SINCE_KEY, str(since).encode())])


def test_an_older_crawl_has_no_differences(crawl: Crawl) -> None:
    older(crawl, 2)
    found = crawl.examine().found
    assert (found.differences.first, found.notes.first) == ([], [])


@pytest.mark.parametrize("state", ["unknown", "queued", "done"])
def test_a_page_that_its_job_never_had_is_named_and_never_settled(crawl: Crawl, state: str) -> None:
    domain, url = ("a.example" if state == "done" else "new.example"), ""
    url = page_url(domain, 0)
    if state == "queued":
        crawl.frontier().add([FoundUrl(url, 2)])
    path = make_bundle(crawl.pages / domain, domain, crawl.job(9), pages=1, created=1_700_009_999)
    crawl.catalogue(lambda catalogue: catalogue.reconcile())
    told = f"{url} in {domain}/{path.name}: job {crawl.job(9)} never had this URL, or has reported something else of it"
    for since in (None, 2e10):
        assert crawl.examine(since=since).found.differences.first == [(kinds.NOT_CONFIRMED, told)]
    assert crawl.examine(since=0.0).found.notes.kinds == {kinds.IN_FLIGHT: 1}, "stored since the frontier was copied"
    before = crawl.state(url)
    assert crawl.repair().number == 0
    assert crawl.state(url) is before
    assert crawl.kinds() == {kinds.NOT_CONFIRMED}
    done = repair(crawl.store, crawl.settings, crawl.examine(), quick=False, believe=True)
    assert done.kinds == {"confirmed": 1} | ({} if state == "done" else {"settled": 1})
    assert crawl.state(url) is State.DONE
    assert crawl.examine().found.differences.first == []


def test_a_page_that_nobody_reported_hides_no_missing_one(crawl: Crawl) -> None:
    make_bundle(crawl.pages / DOMAINS[0], DOMAINS[0], crawl.job(9))
    crawl.catalogue(lambda catalogue: catalogue.reconcile())
    crawl.bundles[0].unlink()
    crawl.catalogue(lambda catalogue: catalogue.reconcile())
    assert crawl.examine().found.differences.kinds == {kinds.PAGE_MISSING: PAGES, kinds.NOT_CONFIRMED: PAGES}
    crawl.repair()
    assert crawl.examine().found.differences.kinds == {kinds.NOT_CONFIRMED: PAGES}
    assert crawl.state(page_url(DOMAINS[0], 0)) is None


def test_nor_does_one_in_a_bundle_that_is_not_catalogued_yet(crawl: Crawl) -> None:
    crawl.bundles[0].unlink()
    crawl.catalogue(lambda catalogue: catalogue.reconcile())
    make_bundle(crawl.pages / DOMAINS[0], DOMAINS[0], crawl.job(9))
    assert crawl.examine(since=0.0).found.differences.kinds == {kinds.PAGE_MISSING: PAGES}


def test_all_pages_of_another_crawl_can_be_believed(crawl: Crawl) -> None:
    (crawl.folder / ".mem" / "frontier").rename(crawl.folder / "elsewhere")
    crawl.store.close()
    open_frontier(crawl.settings, SystemClock()).close()
    crawl.store = open_store(crawl.settings)
    assert crawl.examine().found.differences.kinds == {kinds.NOT_CONFIRMED: 6}
    assert crawl.repair().number == 0
    done = repair(crawl.store, crawl.settings, crawl.examine(), quick=False, believe=True)
    assert done.kinds == {"settled": 2, "confirmed": 2}
    assert crawl.examine().found.differences.first == []
    assert crawl.state(page_url(DOMAINS[1], 2)) is State.DONE
    assert assert_mended(crawl).number == 0


def test_a_page_that_is_stored_twice_under_one_job(crawl: Crawl) -> None:
    path = make_bundle(crawl.pages / DOMAINS[0], DOMAINS[0], crawl.job(1), pages=1, created=1_700_009_999)
    crawl.catalogue(lambda catalogue: catalogue.reconcile())
    found = crawl.examine().found
    where = f"{page_url(DOMAINS[0], 0)} in {DOMAINS[0]}/{path.name}"
    what = f"{where}: job {crawl.job(1)} has stored another page of this URL before"
    assert found.differences.first == [(kinds.STORED_TWICE, what)]
    crawl.repair()
    assert crawl.kinds() == {kinds.STORED_TWICE}, "that cannot be mended"


def test_a_page_in_many_bundles_is_looked_for_once(crawl: Crawl, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever can upload can name the page in each of a thousand bundles that are broken."""
    for job in range(2, 12):
        make_bundle(crawl.pages / DOMAINS[0], DOMAINS[0], str(job))
    crawl.catalogue(lambda catalogue: catalogue.reconcile())
    for bundle in (crawl.pages / DOMAINS[0]).glob("*.tar.bz2"):
        bundle.unlink()
    looked, judged = list[bytes](), Catalogue.judged
    monkeypatch.setattr(
        Catalogue, "judged", lambda self, digest, judge: looked.append(digest) or judged(self, digest, judge)
    )
    crawl.repair()
    assert len(looked) == PAGES
    assert crawl.state(page_url(DOMAINS[0], 0)) is State.QUEUED


def test_a_bundle_that_may_not_be_looked_at_is_not_fetched_again(
    crawl: Crawl, monkeypatch: pytest.MonkeyPatch
) -> None:
    stat = Path.stat

    def refuses(self: Path, **options: Any) -> os.stat_result:
        if self == crawl.bundles[0]:
            raise PermissionError(13, "Permission denied")
        return stat(self, **options)

    monkeypatch.setattr(Path, "stat", refuses)
    assert crawl.kinds() == {kinds.UNREADABLE}
    assert crawl.repair().kinds == {"not mended": 1}
    monkeypatch.undo()
    assert crawl.kinds() == set()


def test_an_interrupted_audit_ends_quietly(
    crawl: Crawl, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(main, "opened_store", interrupted)
    assert main.main(["audit", "--dir", str(crawl.folder)]) == 130
    assert capsys.readouterr().err == "urlServer is not running: read from disk\n"


def test_repair_does_not_forget_everything_when_it_looks_in_the_wrong_place(crawl: Crawl) -> None:
    crawl.pages.rename(crawl.folder / "elsewhere")
    assert crawl.kinds() == {kinds.CATALOGUE_WRONG}
    with pytest.raises(PavoukError, match="set directory"):
        crawl.repair()
    assert crawl.state(page_url(DOMAINS[0], 0)) is State.DONE


class Failing:
    """A store whose n-th write fails; the rest is that of the other store."""

    def __init__(self, store: RocksStore, number: int) -> None:
        self._store = store
        self.left = number

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def write(self, writes: Any) -> None:
        self.left -= 1
        if self.left == 0:
            raise StoreError("the disk is full")
        self._store.write(writes)


@pytest.mark.faults
def test_a_repair_that_breaks_off_can_be_repeated(tmp_path: Path) -> None:
    number = 0
    while True:
        number += 1
        crawl = Crawl(tmp_path / str(number))
        harm_all(crawl)
        failing = Failing(crawl.store, number)
        try:
            repair(failing, crawl.settings, crawl.examine(), quick=False)
        except StoreError:
            assert_mended(crawl)
        states = [crawl.state(page_url(DOMAINS[0], page)) for page in range(PAGES)]
        assert states == [State.QUEUED] * PAGES, f"lost when write {number} failed"
        assert crawl.state("http://l.example/") is State.DONE
        assert crawl.state("http://l.example/one") is State.QUEUED
        crawl.store.close()
        if failing.left > 0:
            break
    assert number > 4, "there were writes to fail"


def harm_all(crawl: Crawl) -> None:
    """A bundle is gone, a page is not reported, a counter is wrong."""
    meta = page_meta("http://l.example/", b"body", 1_700_000_000.0)
    crawl.store_bundle("l.example", meta, PageText([("http://l.example/one", "One")]))
    crawl.frontier().add([FoundUrl("http://l.example/", 3)])
    crawl.gave_back(4, "http://l.example/")
    crawl.bundles[0].unlink()
    totals = unpack_totals(crawl.store.get(Table.META, TOTALS_KEY) or b"")
    crawl.store.write([(Table.META, TOTALS_KEY, pack_totals(replace(totals, known=1000)))])


def test_lists_are_bounded() -> None:
    listing = Listing()
    for number in range(SHOWN + 50):
        listing.add("kind", str(number))
    assert (listing.number, len(listing.first)) == (SHOWN + 50, SHOWN)


def test_links_in_what_is_no_xml() -> None:
    assert links_in(b"<page>") == []

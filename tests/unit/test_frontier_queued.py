"""What is queued, as an operator reads it: in the order in which it is taken, in pieces, without the lock."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from common.wire import ListedUrl, Outcome
from server.frontier.frontier import FrontierError
from server.frontier.queued import QueuedUrl
from server.frontier.visits import Period
from tests.frontier import Case, Make, pages, urls_of

pytestmark = pytest.mark.contract


def listed(case: Case, host: str | None = "a", piece: int = 1000) -> list[QueuedUrl]:
    """All that is told, piece by piece."""
    rows, after = [], ""
    for _ in range(1000):
        got = case.frontier.queued(host, after, piece)
        assert len(got.urls) <= piece
        rows += got.urls
        if not (after := got.rest):
            return rows
    raise AssertionError("there is no end")


def urls(rows: list[QueuedUrl]) -> list[str]:
    return [row.url for row in rows]


@pytest.mark.parametrize("traversal", ["bfs", "dfs", "random", "priority"])
@pytest.mark.parametrize("piece", [1, 3, 1000])
def test_the_order_is_that_in_which_they_are_taken(frontiers: Make, traversal: str, piece: int) -> None:
    case = frontiers(delay_seconds=0, traversal=traversal)
    case.add(*pages("a", 7), *pages("b", 3))
    case.report("x", case.lease("x", wanted=1).job, {}, found=[f"http://a/found/{n}" for n in range(5)])
    case.clock.advance(1000)
    case.frontier.expire()
    told, of_b = urls(listed(case, "a", piece)), urls(listed(case, "b", piece))
    assert (len(told), len(of_b)) == (12, 3)
    taken = case.drain()
    assert [url for url in taken if url.startswith("http://a/")] == told
    assert [url for url in taken if url.startswith("http://b/")] == of_b
    assert listed(case) == []


def test_what_is_leased_is_not_queued(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0)
    case.add(*pages("a", 5))
    taken = urls_of(case.lease(wanted=2))
    assert taken + urls(listed(case)) == pages("a", 5)
    assert case.frontier.queued("a", "", 2).number == 3


@pytest.mark.parametrize("piece", [1, 2, 1000])
def test_what_waits_for_another_try_comes_last(frontiers: Make, piece: int) -> None:
    case = frontiers(delay_seconds=0, retry_wait_seconds=60)
    case.add(*pages("a", 4), *pages("b", 4))
    leased = case.lease(wanted=4)
    failing = urls_of(leased)
    case.finish("a", leased, Outcome.SERVER_ERROR)
    rows = listed(case, None, piece)
    assert sorted(urls(rows)) == sorted(pages("a", 4) + pages("b", 4))
    assert sorted(urls(rows[-4:])) == sorted(failing)
    assert {row.due for row in rows[-4:]} == {case.clock.now() + 60}
    assert {(row.tries, row.due) for row in rows[:-4]} == {(0, 0.0)}
    assert {row.tries for row in rows[-4:]} == {1}
    for host in ("a", "b"):
        assert sorted(urls(listed(case, host, piece))) == sorted(pages(host, 4))


def test_pages_to_be_visited_again_and_sitemaps_are_told_as_such(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0, period=Period(3600), sitemaps=True)
    case.add("http://a/0")
    leased = case.lease()
    case.report("a", leased.job, {"http://a/0": Outcome.STORED}, listed=[ListedUrl("http://a/map.xml", 1)])
    case.clock.advance(3601)
    case.frontier.tick()
    case.add("http://a/1")
    assert {row.url: row.kind for row in listed(case)}["http://a/0"] == "again"
    assert {row.url: row.kind for row in listed(case)}["http://a/1"] == "page"


def test_a_host_that_nobody_knows_has_nothing_queued(frontiers: Make) -> None:
    case = frontiers()
    case.add("http://a/")
    got = case.frontier.queued("unknown.example", "", 10)
    assert (got.number, got.urls, got.rest) == (0, [], "")


@pytest.mark.parametrize("after", ["x", "0", "9:0:", "0:0:zz", "0:-1:00", "0:0:0", "1:1:00:", "0:0:" + "00" * 200])
def test_a_place_to_go_on_that_was_never_told(frontiers: Make, after: str) -> None:
    with pytest.raises(FrontierError, match="no place"):
        frontiers().frontier.queued("a", after, 10)


def test_nobody_waits_for_it(frontiers: Make) -> None:
    """It is read while another thread holds the frontier's lock."""
    case = frontiers()
    case.add(*pages("a", 3))
    told: list[Any] = []
    with case.frontier._decide():
        thread = threading.Thread(target=lambda: told.append(case.frontier.queued("a", "", 10)), daemon=True)
        thread.start()
        thread.join(20)
    assert [urls(piece.urls) for piece in told] == [pages("a", 3)]


def test_a_piece_looks_at_a_bounded_part_of_what_waits(frontiers: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.frontier.queued._MAX_LOOKED_AT", 10)
    case = frontiers(delay_seconds=0, retry_wait_seconds=60, connections_per_host=50)
    case.add(*pages("a", 1), *pages("b", 40))
    while not (leased := case.lease()).finished and leased.tasks:
        case.finish("a", leased, Outcome.SERVER_ERROR)
    looked: list[int] = []
    scan = case.store.scan

    def counted(*arguments: Any) -> Iterator[tuple[bytes, bytes]]:
        for row in scan(*arguments):
            looked[-1] += 1
            yield row

    monkeypatch.setattr(case.store, "scan", counted)
    after, found = "", []
    for _ in range(100):
        looked.append(0)
        piece = case.frontier.queued("a", after, 10)
        found += urls(piece.urls)
        if not (after := piece.rest):
            break
    assert found == pages("a", 1)
    assert max(looked) <= 11

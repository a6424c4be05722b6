"""Limits: in pages, pages of a host, bytes and time. What ends the crawl, and what goes on with a higher limit."""

from dataclasses import replace
from typing import Any

import pytest

from common.settings import TRAVERSALS
from common.wire import Outcome
from tests.frontier import Case, Make, pages, urls_of

pytestmark = pytest.mark.contract


def with_limits(case: Case, **limits: Any) -> Case:
    """The same crawl, started again with other limits."""
    case.rules = replace(case.rules, **limits)
    case.reopen()
    return case


# --- pages


def test_max_pages_is_exact_whatever_fails(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0, max_pages=10, connections_per_host=4)
    case.add(*pages("a", 30), *pages("b", 30))
    outcomes = [Outcome.NOT_FOUND, Outcome.STORED, Outcome.REDIRECTED, Outcome.SERVER_ERROR, Outcome.DISALLOWED]
    for number in range(1000):
        client = "xyz"[number % 3]
        leased = case.lease(client, str(number), 4)
        totals = case.frontier.totals()
        assert totals.stored + totals.leased <= 10
        if leased.finished:
            break
        case.report(client, leased.job, {url: outcomes[int(url[9:]) % 5] for url in urls_of(leased)})
        case.clock.advance(leased.wait_seconds)
    assert case.frontier.totals().stored == 10
    assert case.frontier.ended_by() == "max_pages"
    assert not case.lease().tasks
    left = with_limits(case, max_pages=12).drain()
    assert case.frontier.totals().stored == 12
    assert len(left) >= 2
    assert with_limits(case, max_pages=0).frontier.ended_by() == ""
    case.drain()
    assert case.frontier.totals().queued == 0


@pytest.mark.parametrize("limit", ["max_pages", "max_pages_per_host"])
def test_a_late_report_does_not_exceed_the_limit(frontiers: Make, limit: str) -> None:
    case = frontiers(delay_seconds=0, lease_seconds=60, **{limit: 4})
    case.add(*pages("a", 10))
    first = case.lease("slow", wanted=4)
    case.clock.advance(100)
    second = case.lease("quick", wanted=3)  # the same URLs, but one
    assert urls_of(second) == urls_of(first)[:3]
    assert case.finish("slow", first).accepted == 1, "one page is left, and nobody has this one"
    case.finish("quick", second)
    assert case.frontier.totals().stored == 4
    case.clock.advance(1)
    assert case.lease("quick").finished


@pytest.mark.parametrize("limit", ["max_pages", "max_pages_per_host"])
def test_a_late_page_that_is_one_too_many_is_refused(frontiers: Make, limit: str) -> None:
    case = frontiers(delay_seconds=0, lease_seconds=60, connections_per_host=2, traversal="dfs", **{limit: 1})
    case.add("http://a/old")
    first = case.lease("slow")
    case.clock.advance(100)
    case.add("http://a/new")  # is taken before the other comes back to the front
    second = case.lease("quick")
    assert urls_of(second) == ["http://a/new"]
    settled = case.finish("slow", first)
    assert (settled.accepted, settled.refused) == (0, 1)
    case.finish("quick", second)
    assert case.frontier.totals().stored == 1
    case.clock.advance(1)
    assert case.lease("slow").finished


def test_what_did_not_become_a_page_is_taken_from_a_late_report(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0, lease_seconds=60, connections_per_host=2, traversal="dfs", max_pages=1)
    case.add("http://a/old")
    first = case.lease("slow")
    case.clock.advance(100)
    case.add("http://a/new")
    case.lease("quick")
    assert case.finish("slow", first, Outcome.NOT_FOUND).accepted == 1


# --- pages of a host


@pytest.mark.parametrize("traversal", TRAVERSALS)
def test_a_trap_does_not_keep_the_crawl_from_ending(frontiers: Make, traversal: str) -> None:
    """Each page of the trap leads to three new ones; the other hosts have ten pages each."""
    case = frontiers(delay_seconds=0, max_pages_per_host=20, traversal=traversal)
    case.add("http://trap/", *(f"http://h{number}/0" for number in range(5)))
    made = 0
    for number in range(1000):
        leased = case.lease("x", str(number), 30)
        if leased.finished:
            break
        found = []
        for url in urls_of(leased):
            if "trap" in url:
                found += [f"http://trap/{made + i}" for i in range(3)]
                made += 3
            else:
                host, _, page = url.rpartition("/")
                found += [f"{host}/{min(9, int(page) + step)}" for step in (1, 2)]
        case.report("x", leased.job, dict.fromkeys(urls_of(leased), Outcome.STORED), found)
        case.clock.advance(leased.wait_seconds)
    else:
        raise AssertionError("never finished")
    totals = case.frontier.totals()
    assert totals.stored == 20 + 5 * 10
    assert totals.queued > 20
    assert case.frontier.ended_by() == "max_pages_per_host"
    told = case.frontier.explain(f"http://trap/{made - 1}")
    assert (told.state, told.host.is_full, told.host.stored) == ("queued", True, 20)
    assert [host.name for host in case.frontier.overview().full] == ["trap"]
    with_limits(case, max_pages_per_host=25).drain()
    assert case.frontier.totals().stored == 25 + 5 * 10


def test_a_full_host_takes_in_what_others_link_to(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0, max_pages_per_host=2)
    case.add(*pages("a", 2))
    case.finish("x", case.lease("x"))
    assert case.frontier.is_finished()
    assert case.frontier.ended_by() == "", "nothing is held back"
    case.add("http://a/more")
    assert case.frontier.is_finished()
    assert case.frontier.ended_by() == "max_pages_per_host"
    assert case.lease("x").finished


def test_failures_are_no_pages(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0, max_pages_per_host=3)
    case.add(*pages("a", 12))
    outcomes = iter([Outcome.NOT_FOUND, Outcome.STORED, Outcome.REDIRECTED] * 10)
    for _ in range(12):
        leased = case.lease("x", wanted=1)
        if leased.finished:
            break
        case.finish("x", leased, next(outcomes))
    assert case.frontier.explain("http://a/").host.stored == 3
    assert case.frontier.totals().queued > 0


# --- bytes


def test_max_bytes(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0, max_bytes=1000)
    case.add(*pages("a", 10))
    leased = case.lease("x", wanted=2)
    under_way = case.lease("x", wanted=2)
    case.report("x", leased.job, dict.fromkeys(urls_of(leased), Outcome.STORED), size=1000)
    assert case.frontier.ended_by() == "max_bytes"
    assert not case.frontier.is_finished(), "something is under way"
    assert not case.lease("x").tasks
    case.report("x", under_way.job, dict.fromkeys(urls_of(under_way), Outcome.STORED), size=1000)
    assert case.frontier.is_finished()
    assert case.frontier.totals().size == 2000
    assert len(with_limits(case, max_bytes=2001).lease("x").tasks) == 6


# --- time


def tick(case: Case, seconds: float) -> None:
    """As the server does it: a tick every second."""
    case.frontier.tick()
    for _ in range(int(seconds)):
        case.clock.advance(1)
        case.frontier.tick()


def test_max_time_counts_over_restarts(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0, max_time_seconds=100)
    case.add(*pages("a", 50))
    tick(case, 60)
    case.finish("x", case.lease("x", wanted=1))
    case.clock.advance(0.5)
    case.reopen()  # the half second is lost
    case.clock.advance(1000)
    case.reopen()  # and the time in which it did not run counts for nothing
    tick(case, 39)
    assert case.frontier.ended_by() == ""
    assert case.lease("x", wanted=1).tasks
    tick(case, 1)
    assert case.frontier.ended_by() == "max_time"
    assert not case.frontier.is_finished()
    case.clock.advance(1000)
    case.frontier.expire()
    assert case.lease("x").finished
    assert case.frontier.totals().queued == 49
    tick(case, 1000)  # it is finished: no time of the crawl
    with_limits(case, max_time_seconds=1200)
    assert case.lease("x").tasks


def test_the_end_by_time_stays_the_end(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0, max_time_seconds=10)
    case.add(*pages("a", 5))
    case.frontier.tick()
    case.clock.advance(10)
    for _ in range(3):
        assert case.frontier.is_finished()
        assert case.lease("x").finished
        case.frontier.tick()
        case.clock.advance(1)
    case.frontier.close()
    case._open()
    assert case.frontier.ended_by() == "max_time"


def test_looking_at_a_crawl_is_no_time_of_it(frontiers: Make) -> None:
    case = frontiers(max_time_seconds=10)
    case.add("http://a/")
    case.clock.advance(100)
    case.frontier.close()
    case._open()
    assert case.frontier.ended_by() == ""


def test_no_time_passes_while_it_is_paused(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0, max_time_seconds=10)
    case.add(*pages("a", 5))
    tick(case, 5)
    case.frontier.pause(True)
    tick(case, 100)
    case.frontier.pause(False)
    tick(case, 2)
    assert case.frontier.ended_by() == ""
    tick(case, 10)
    assert case.frontier.ended_by() == "max_time"


def test_jobs_are_no_longer_than_the_time_that_is_left(frontiers: Make) -> None:
    case = frontiers(delay_seconds=2, lease_seconds=1000, max_time_seconds=100)
    case.add(*pages("a", 500))
    tick(case, 40)
    assert len(case.lease("x", wanted=500).tasks) == 30


# --- several limits


def test_the_first_limit_counts(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0, max_pages=5, max_pages_per_host=3, max_bytes=100, max_time_seconds=50)
    case.add(*pages("a", 9), *pages("b", 9))
    leased = case.lease("x")
    assert len(leased.tasks) == 5
    assert max(sum(url.startswith(f"http://{host}/") for url in urls_of(leased)) for host in "ab") <= 3
    case.report("x", leased.job, dict.fromkeys(urls_of(leased), Outcome.STORED), size=100)
    assert case.frontier.ended_by() == "max_pages"
    with_limits(case, max_pages=6)
    assert case.frontier.ended_by() == "max_bytes"
    with_limits(case, max_bytes=0, max_pages=0)
    case.drain()
    assert case.frontier.ended_by() == "max_pages_per_host"
    assert case.frontier.totals().stored == 6

"""Sitemaps when any write fails, or the process is killed within it: all are read, and all that they list is stored."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from common.wire import Kind, ListedUrl, Outcome, UrlTask
from server.frontier.frontier import Rules
from server.frontier.visits import Period
from tests.frontier import Case, pages
from tests.frontier_faults import run_failing, run_killed, run_killed_outside

pytestmark = pytest.mark.faults

PERIOD = 1000.0
RULES = Rules(delay_seconds=0, lease_seconds=100, retry_wait_seconds=1, period=Period(PERIOD), sitemaps=True)
NAMES = ("", "index.xml", "map.xml", "sitemap.xml", "none.xml")
HOME, INDEX, MAP, GUESSED, NONE = (f"http://a/{name}" for name in NAMES)  # the last one is a page
PAGES = pages("a", 4)
ENDS = {Kind.PAGE: Outcome.STORED, Kind.SITEMAP: Outcome.LISTED, Kind.GUESSED: Outcome.NOT_FOUND}


def says(case: Case, url: str) -> list[ListedUrl]:
    now = int(case.clock.now())
    rows = {
        HOME: [ListedUrl(INDEX, 0, kind=Kind.SITEMAP), ListedUrl(GUESSED, 0, kind=Kind.GUESSED)],
        INDEX: [ListedUrl(name, 0, now, Kind.SITEMAP, 1) for name in (MAP, NONE)],
        MAP: [ListedUrl(page, 1, now) for page in (*PAGES, HOME)],
    }
    return rows.get(url, [])


def end_of(task: UrlTask) -> Outcome:
    return Outcome.UNWANTED if task.url == NONE and task.kind is not Kind.PAGE else ENDS[task.kind]


def visit(case: Case, request: str) -> None:
    """Lease a job, read all its sitemaps, and store its pages. The same request again gives the same job."""
    leased = case.lease("x", request)
    if leased.tasks:
        outcomes = {task.url: end_of(task) for task in leased.tasks}
        case.report("x", leased.job, outcomes, listed=[row for task in leased.tasks for row in says(case, task.url)])


def steps(case: Case) -> list[Callable[[], object]]:
    """Each can be repeated, as a client repeats a call that got a fault."""
    return [
        lambda: case.add(HOME, MAP, start=True),  # a page that turns out to be a sitemap
        lambda: visit(case, "1"),
        lambda: visit(case, "2"),
        lambda: case.lease("x", "3", 1),
        lambda: case.frontier.release("x", 3),
        lambda: visit(case, "4"),
        lambda: visit(case, "5"),
        lambda: case.clock.advance(PERIOD - 10),
        lambda: case.lease("x", "6"),
        lambda: case.clock.advance(101),
        lambda: case.frontier.expire(),
        lambda: case.frontier.tick(),
        lambda: visit(case, "7"),
        lambda: visit(case, "8"),
    ]


def finish(case: Case) -> None:
    """Go on until nothing is left, as a client does after a crash."""
    case.clock.advance(200)
    case.frontier.expire()
    for number in range(20):
        visit(case, f"end {number}")
        case.audit()


def check(case: Case, what: object) -> None:
    totals = case.audit()
    assert (totals.queued, totals.leased, totals.failed) == (0, 0, 0), what
    assert totals.known == 9, what
    states = {url: case.frontier.explain(url) for url in (INDEX, MAP, GUESSED, NONE, HOME, *PAGES)}
    told = {url for url, known in states.items() if known.is_sitemap}
    assert told | {MAP} == {INDEX, MAP, GUESSED}, what  # it stays a page if it was leased whenever it was named
    assert {known.state for known in states.values()} == {"done"}, what


def test_every_write_can_fail(tmp_path: Path) -> None:
    case, store = run_failing(tmp_path / "sound", RULES, steps, 0)
    expected = case.frontier.totals()
    writes = store.writes
    finish(case)
    check(case, "sound")
    case.close()
    for failing in range(3, writes + 1):  # the first two mark a new store
        case, _ = run_failing(tmp_path / str(failing), RULES, steps, failing)
        assert case.frontier.totals() == expected, failing
        finish(case)
        check(case, failing)
        case.close()


# --- kill -9 within a write: this file is also the program that is killed


def test_a_kill_within_any_write_loses_no_sitemap(tmp_path: Path) -> None:
    number = run_killed_outside("tests.unit.test_frontier_sitemaps_faults", tmp_path)
    assert number > 40
    for each in range(number):
        case = Case(tmp_path / str(each), RULES)
        case.audit()
        case.add(HOME, MAP, start=True)  # as the server does at its start
        case.clock.advance(10 * PERIOD)  # it begins anew, and hosts were asked later than that
        finish(case)
        check(case, each)
        case.close()


if __name__ == "__main__":
    print(run_killed(Path(sys.argv[1]), RULES, steps))

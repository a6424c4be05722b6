"""Sitemaps when any write fails, or the process is killed within it: all are read, and all that they list is stored."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from common.wire import Kind, ListedUrl, Outcome, UrlTask
from server.frontier.frontier import Rules
from server.frontier.rocks import RocksStore
from server.frontier.store import Store, StoreError
from server.frontier.visits import Period
from tests.frontier import Case, pages
from tests.processes import ROOT
from tests.unit.test_frontier_crashes import KillingStore
from tests.unit.test_frontier_faults import FailingStore

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


def run(folder: Path, failing: int) -> tuple[Case, FailingStore]:
    stores: list[FailingStore] = []

    def make(folder: Path) -> Store:
        stores.append(FailingStore(RocksStore(folder), failing))
        return stores[-1]

    case = Case(folder, RULES, make=make)
    for step in steps(case):
        try:
            step()
        except StoreError:
            case.audit()
            step()
        case.audit()
    return case, stores[0]


def test_every_write_can_fail(tmp_path: Path) -> None:
    case, store = run(tmp_path / "sound", 0)
    expected = case.frontier.totals()
    writes = store.writes
    finish(case)
    check(case, "sound")
    case.close()
    for failing in range(3, writes + 1):  # the first two mark a new store
        case, _ = run(tmp_path / str(failing), failing)
        assert case.frontier.totals() == expected, failing
        finish(case)
        check(case, failing)
        case.close()


# --- kill -9 within a write: this file is also the program that is killed


def killed_run(folder: Path, number: int) -> None:
    case = Case(folder, RULES, make=KillingStore)
    assert isinstance(case.store, KillingStore)
    case.store.left, case.store.too_late = number // 2 + 1, number % 2 == 1
    for step in steps(case):
        step()


def fork_and_run(folder: Path) -> int:
    """Until a run comes to its end; returns how many were killed."""
    for number in range(1000):
        child = os.fork()
        if child == 0:
            killed_run(folder / str(number), number)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status) or os.WTERMSIG(status) != signal.SIGKILL:
            return number
    raise AssertionError("never ended")


def test_a_kill_within_any_write_loses_no_sitemap(tmp_path: Path) -> None:
    program = [sys.executable, "-m", "tests.unit.test_frontier_sitemaps_faults", str(tmp_path)]
    ended = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stderr
    number = int(ended.stdout)
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
    print(fork_and_run(Path(sys.argv[1])))

"""Rounds of visits when any write fails, or the process is killed within it: no page is lost, none counts twice."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from common.wire import Outcome
from server.frontier.frontier import Rules
from server.frontier.visits import Period
from tests.frontier import Case, pages, urls_of
from tests.frontier_faults import run_failing, run_killed, run_killed_outside

pytestmark = pytest.mark.faults

PERIOD = 1000.0
RULES = Rules(delay_seconds=0, lease_seconds=100, retry_wait_seconds=1, period=Period(PERIOD))
URLS = pages("a", 6)
OUTCOMES = (Outcome.STORED, Outcome.UNCHANGED, Outcome.NOT_FOUND, Outcome.REDIRECTED, Outcome.TIMEOUT, Outcome.SKIPPED)


def rounds(case: Case) -> list[Callable[[], object]]:
    """Each step can be repeated, as a client repeats a call that got a fault."""
    return [
        lambda: case.add(*URLS, start=True),
        lambda: case.lease("x", "1"),
        lambda: case.report("x", 1, dict.fromkeys(URLS, Outcome.STORED)),
        lambda: case.clock.advance(PERIOD),
        lambda: case.frontier.tick(),
        lambda: case.lease("x", "2", 3),
        lambda: case.frontier.release("x", 2),
        lambda: case.lease("x", "3"),
        lambda: case.report("x", 3, dict(zip(URLS, OUTCOMES, strict=True)), ["http://a/new"]),
        lambda: case.clock.advance(2),
        lambda: case.lease("x", "4"),
        lambda: case.report("x", 4, dict.fromkeys([*URLS[-2:], "http://a/new"], Outcome.STORED)),
        lambda: case.clock.advance(PERIOD - 1),
        lambda: case.lease("x", "5"),
        lambda: case.clock.advance(101),
        lambda: case.frontier.expire(),
    ]


def test_every_write_can_fail(tmp_path: Path) -> None:
    case, store = run_failing(tmp_path / "sound", RULES, rounds, 0)
    expected = case.frontier.totals()
    case.close()
    assert (expected.known, expected.stored, expected.revisits, expected.revisions) == (7, 7, 6, 3)
    assert expected.again == 4, "released; the three others of the second round are not due yet"
    for failing in range(3, store.writes + 1):  # the first two mark a new store
        case, _ = run_failing(tmp_path / str(failing), RULES, rounds, failing)
        assert case.frontier.totals() == expected, failing
        case.clock.advance(2 * PERIOD)
        assert sorted(case.drain()) == sorted([*URLS, "http://a/new"]), failing
        case.close()


# --- kill -9 within a write: this file is also the program that is killed


def test_a_kill_within_any_write_loses_no_page(tmp_path: Path) -> None:
    number = run_killed_outside("tests.unit.test_frontier_visits_faults", tmp_path)
    assert number > 40
    for each in range(number):
        case = Case(tmp_path / str(each), RULES)
        totals = case.audit()
        case.clock.advance(10 * PERIOD)  # every lease is over, and every page is due
        case.frontier.expire()
        leased = case.lease("z")
        assert sorted(urls_of(leased)) == sorted(URLS[: totals.known] + ["http://a/new"] * (totals.known - 6)), each
        if leased.tasks:
            case.finish("z", leased)
        assert case.audit().stored == totals.known, each
        case.close()


if __name__ == "__main__":
    print(run_killed(Path(sys.argv[1]), RULES, rounds))

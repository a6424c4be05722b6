"""What fails: the table of consequences, dead hosts, and the way back from the blacklist."""

import pytest

from common.wire import HostFact, Outcome
from server.frontier.records import FailedRecord, State
from server.frontier.retries import CONSEQUENCES, PARK_WAITS, Sign
from tests.frontier import Case, Make, pages, urls_of
from tests.frontier_model import ENDS

pytestmark = pytest.mark.contract

SIGNS = {"": Sign.NOTHING, "well": Sign.WELL, "busy": Sign.BUSY, "dead": Sign.DEAD}


@pytest.mark.parametrize("outcome", list(Outcome))
def test_the_table_of_consequences(outcome: Outcome) -> None:
    state, waits, sign = ENDS[outcome]
    consequence = CONSEQUENCES[outcome]
    assert (consequence.state.name.lower(), consequence.waits) == (state, waits)
    assert consequence.sign is SIGNS[sign]
    assert list(waits) == sorted(waits), "waits grow"


@pytest.mark.parametrize("outcome", [each for each in Outcome if ENDS[each][0] == "failed"])
def test_what_is_given_up_is_told_listed_and_can_be_retried(frontiers: Make, outcome: Outcome) -> None:
    case = frontiers(delay_seconds=0, retry_wait_seconds=1)
    case.add("http://a/", depth=3)
    told: list[FailedRecord] = []
    tries = 1 + len(ENDS[outcome][1])
    for _ in range(tries):
        leased = case.lease()
        told += case.finish("a", leased, outcome).failed
        case.clock.advance(1000)
    assert [(each.url, each.outcome, each.tries) for each in told] == [("http://a/", outcome, tries)]
    case.reopen()
    assert list(case.frontier.failed()) == told
    assert case.frontier.retry(["http://a/index.html", "http://a/", "http://b/", "nonsense"]) == 1
    assert list(case.frontier.failed()) == []
    case.clock.advance(1000)
    (task,) = case.lease().tasks
    assert (task.url, task.depth) == ("http://a/", 3)


def fail(case: Case, outcome: Outcome = Outcome.TIMEOUT) -> list[str]:
    """One job of what is due, with this outcome for all of it."""
    leased = case.lease()
    if leased.tasks:
        case.finish("a", leased, outcome)
    return urls_of(leased)


def wait_for_turn(case: Case) -> float:
    """Seconds until the host may be asked again."""
    began = case.clock.now()
    while not (leased := case.lease("a")).tasks:
        case.clock.advance(leased.wait_seconds)
    case.frontier.release("a", leased.job)
    waited = case.clock.now() - began
    case.clock.advance(1)
    return waited


def dead_case(frontiers: Make) -> Case:
    case = frontiers(delay_seconds=1, retry_wait_seconds=10, lease_seconds=1e9)
    case.add(*pages("dead", 100))
    assert len(fail(case)) == 100, "nothing is known against it yet"
    return case


def test_a_dead_host_is_parked_and_probed_after_growing_waits(frontiers: Make) -> None:
    case = dead_case(frontiers)
    waits = []
    for _ in PARK_WAITS[1:]:
        waits.append(wait_for_turn(case))
        case.reopen()  # survives a restart
        case.clock.advance(1)
        probes = fail(case)
        assert len(probes) == 3, "a few will show"
    assert waits == pytest.approx([10 * wait for wait in PARK_WAITS[:-1]], abs=5.1)


def test_a_host_that_stays_dead_is_given_up(frontiers: Make) -> None:
    case = dead_case(frontiers)
    buried: list[FailedRecord] = []
    for _ in range(60):
        case.clock.advance(10_000)
        fail(case)
        buried += case.frontier.tick()
    assert case.frontier.is_finished()
    assert len(list(case.frontier.failed())) == 100
    assert len(buried) > 50, "most of them were never tried"
    assert {each.outcome for each in buried} == {Outcome.REFUSED}
    assert min(each.tries for each in buried) == 1, "being given up is no try"
    assert all("not answered" in each.detail for each in buried)
    assert case.frontier.retry([each.url for each in buried]) == len(buried)
    assert fail(case, Outcome.STORED), "an operator's retry gives it a new chance"


def test_what_is_blocked_is_not_given_up(frontiers: Make) -> None:
    case = dead_case(frontiers)
    for _ in PARK_WAITS:
        case.clock.advance(10_000)
        fail(case)
    case.frontier.block("dead", True)
    queued = case.frontier.totals().queued
    case.clock.advance(10_000)
    case.lease("b")
    assert case.frontier.tick() == []
    assert case.frontier.totals().queued == queued > 0


@pytest.mark.parametrize("sign_of_life", [Outcome.STORED, Outcome.NOT_FOUND, Outcome.BUSY])
def test_a_host_that_answers_again_goes_on_as_before(frontiers: Make, sign_of_life: Outcome) -> None:
    case = dead_case(frontiers)
    case.clock.advance(10_000)
    assert len(fail(case, sign_of_life)) == 3
    case.clock.advance(10_000)
    assert len(fail(case)) > 50


def test_skipping_is_no_try_and_says_nothing_about_the_host(frontiers: Make) -> None:
    case = frontiers(delay_seconds=1)
    case.add(*pages("a", 10))
    for _ in range(10):
        assert fail(case, Outcome.SKIPPED) == pages("a", 10), "back where they stood"
        assert case.state("http://a/0") is State.QUEUED
        case.clock.advance(1)
    case.finish("a", case.lease(), Outcome.NOT_FOUND)
    assert {each.tries for each in case.frontier.failed()} == {1}


def test_failures_of_a_host_are_counted_in_a_row(frontiers: Make) -> None:
    case = frontiers(delay_seconds=1)
    case.add(*pages("a", 50))
    for _ in range(4):  # two that fail, then one that answers: never dead
        leased = case.lease(wanted=3)
        assert len(leased.tasks) == 3
        first, second, third = urls_of(leased)
        case.report("a", leased.job, {first: Outcome.TIMEOUT, second: Outcome.TIMEOUT})
        case.report("a", leased.job, {third: Outcome.STORED}, hosts=[HostFact("a")])
        case.clock.advance(1)
    assert len(case.lease(wanted=20).tasks) == 20

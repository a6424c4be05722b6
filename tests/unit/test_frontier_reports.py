"""What the frontier promises when URLs come back: reported, too late, given back, or not at all."""


import pytest

from common.wire import FoundUrl, HostFact, Outcome, Report, UrlResult
from server.frontier.frontier import FrontierError
from server.frontier.records import State
from server.frontier.retries import CONSEQUENCES
from server.frontier.starts import known_starts
from server.policy.policy import Policy
from tests.frontier import Case, Make, pages, urls_of

pytestmark = pytest.mark.contract

STORED = {"http://a/0": Outcome.STORED}


def leased_page(case: Case, client: str = "a") -> int:
    """A job with one page, http://a/0."""
    case.add("http://a/0")
    leased = case.lease(client)
    assert urls_of(leased) == ["http://a/0"]
    return leased.job


# --- reports


def test_a_report_settles_and_takes_in_what_was_found(frontiers: Make) -> None:
    case = frontiers()
    job = leased_page(case)
    settled = case.report("a", job, STORED, found=["http://a/0", "http://a/1", "http://b/"], size=1000)
    assert (settled.accepted, settled.refused, settled.new_urls, settled.failed) == (1, 0, 2, [])
    totals = case.frontier.totals()
    assert (totals.done, totals.stored, totals.queued, totals.sent, totals.size) == (1, 1, 2, 1, 1000)


def test_processed_is_what_went_well_of_all_that_was_sent(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0, connections_per_host=8, lease_seconds=100)
    case.add(*(f"http://a/{number}" for number in range(8)))
    first = case.lease()
    urls, ends = urls_of(first), (Outcome.STORED, Outcome.REDIRECTED, Outcome.NOT_FOUND, Outcome.DISALLOWED,
                                  Outcome.SERVER_ERROR, Outcome.SKIPPED)  # fmt: skip
    assert len(urls) == 8
    case.report("a", first.job, dict(zip(urls, ends, strict=False)))  # two are not reported at all
    assert (case.audit().sent, case.audit().processed) == (8, 2)
    case.clock.advance(101)
    case.frontier.expire()
    case.report("a", first.job, {urls[6]: Outcome.STORED})  # late, and still welcome
    assert (case.audit().sent, case.audit().processed) == (8, 3)
    case.reopen()
    case.drain()
    totals = case.audit()
    assert (totals.done, totals.failed, totals.excluded) == (6, 1, 1)
    assert (totals.sent, totals.processed) == (8 + 3, 6)


@pytest.mark.parametrize("outcome", [outcome for outcome in Outcome if outcome is not Outcome.SKIPPED])
def test_a_repeated_report_changes_nothing(frontiers: Make, outcome: Outcome) -> None:
    case = frontiers()
    job = leased_page(case)
    case.report("a", job, {"http://a/0": outcome}, found=["http://a/1"], size=1000)
    before, state = case.audit(), case.frontier.state_of("http://a/0")
    settled = case.report("a", job, {"http://a/0": outcome}, found=["http://a/1"], size=1000)
    assert (settled.accepted, settled.refused, settled.new_urls, settled.failed) == (0, 0, 0, [])
    assert case.audit() == before
    assert case.frontier.state_of("http://a/0") == state


@pytest.mark.parametrize("outcome", [outcome for outcome in Outcome if outcome is not Outcome.SKIPPED])
def test_every_outcome_ends_somewhere(frontiers: Make, outcome: Outcome) -> None:
    case = frontiers(delay_seconds=0, retry_wait_seconds=1)
    case.add("http://a/")
    tries = 0
    while not (leased := case.lease()).finished:
        if leased.tasks:
            tries += 1
            case.finish("a", leased, outcome)
        case.clock.advance(leased.wait_seconds)
    assert tries == 1 + len(CONSEQUENCES[outcome].waits)
    assert case.state("http://a/") is CONSEQUENCES[outcome].state


def test_a_part_of_a_job_can_be_reported(frontiers: Make) -> None:
    case = frontiers(lease_seconds=100)
    case.add(*pages("a", 3))
    job = case.lease().job
    case.clock.advance(99)
    case.report("a", job, STORED)
    case.clock.advance(99)  # a report is a sign of life
    assert case.frontier.expire() == 0
    case.report("a", job, {"http://a/1": Outcome.STORED, "http://a/2": Outcome.NOT_FOUND})
    assert case.frontier.is_finished()
    with pytest.raises(FrontierError, match="not leased"):
        case.frontier.renew("a", job)


def test_a_result_for_a_url_that_is_not_in_the_job_is_refused(frontiers: Make) -> None:
    case = frontiers()
    job = leased_page(case)
    case.add("http://b/")
    settled = case.report("a", job, {"http://b/": Outcome.STORED, "http://unknown/": Outcome.STORED})
    assert (settled.accepted, settled.refused) == (0, 2)
    assert case.state("http://b/") is State.QUEUED


def test_a_result_may_name_another_address_of_the_page(frontiers: Make) -> None:
    case = frontiers()
    case.add("http://a/index.html")
    settled = case.report("a", case.lease().job, {"http://a/": Outcome.STORED})
    assert settled.accepted == 1


@pytest.mark.parametrize("job", [0, 2, 10**17])
def test_a_report_for_a_job_that_never_was(frontiers: Make, job: int) -> None:
    case = frontiers()
    leased_page(case)
    case.add("http://b/")
    with pytest.raises(FrontierError, match=f"never been a job {job}"):
        case.report("a", job, {"http://b/": Outcome.STORED})
    assert case.state("http://b/") is State.QUEUED


@pytest.mark.parametrize("verb", ["report", "renew", "release"])
def test_a_job_belongs_to_its_client(frontiers: Make, verb: str) -> None:
    case = frontiers()
    job = leased_page(case)
    arguments = ("b", job, Report(str(job), [UrlResult("http://a/0", Outcome.STORED)], []))
    with pytest.raises(FrontierError, match="belongs to another client"):
        getattr(case.frontier, verb)(*arguments[: 3 if verb == "report" else 2])
    assert case.state("http://a/0") is State.LEASED


def test_failures_are_told_and_kept(frontiers: Make) -> None:
    case = frontiers()
    job = leased_page(case)
    result = UrlResult("http://a/0", Outcome.NOT_FOUND, 404, 0, "gone " * 1000)
    (failed,) = case.frontier.report("a", job, Report(str(job), [result], [])).failed
    assert (failed.url, failed.outcome, failed.tries) == ("http://a/0", Outcome.NOT_FOUND, 1)
    assert len(failed.detail) == 500
    case.reopen()
    assert list(case.frontier.failed()) == [failed]


def test_depth_goes_down_the_links(frontiers: Make) -> None:
    case = frontiers()
    job = leased_page(case)
    case.frontier.report("a", job, Report(str(job), [], [FoundUrl("http://b/", 7, 2)]))
    (task,) = case.lease("b").tasks
    assert (task.depth, task.hops) == (7, 2)


# --- late


def test_a_late_report_is_accepted_while_nobody_has_taken_the_url(frontiers: Make) -> None:
    case = frontiers(lease_seconds=100)
    job = leased_page(case)
    case.clock.advance(100)
    assert case.frontier.expire() == 1
    case.reopen()  # also over a restart
    settled = case.report("a", job, STORED, size=5)
    assert (settled.accepted, settled.refused) == (1, 0)
    assert case.frontier.is_finished()
    assert case.frontier.totals().size == 5


@pytest.mark.parametrize("then", ["has it", "gave it back", "must try again"])
def test_a_late_report_is_refused_when_somebody_has_taken_the_url(frontiers: Make, then: str) -> None:
    case = frontiers(lease_seconds=100, delay_seconds=0)
    job = leased_page(case)
    case.clock.advance(100)
    second = case.lease("b")
    assert urls_of(second) == ["http://a/0"]
    if then == "gave it back":
        case.frontier.release("b", second.job)
    elif then == "must try again":
        case.finish("b", second, Outcome.TIMEOUT)
        case.clock.advance(30)
        case.lease("c", wanted=0)  # wakes it up
    assert case.report("a", job, STORED).accepted == 0
    assert case.state("http://a/0") is (State.LEASED if then == "has it" else State.QUEUED)


def test_a_late_report_can_ask_for_another_try(frontiers: Make) -> None:
    case = frontiers(lease_seconds=100)
    job = leased_page(case)
    case.frontier.release("a", job)
    assert case.report("a", job, {"http://a/0": Outcome.TIMEOUT}).accepted == 1
    assert case.state("http://a/0") is State.WAITING
    assert case.report("a", job, {"http://a/0": Outcome.TIMEOUT}).accepted == 0


# --- the ends of a lease


def test_renewing_keeps_a_job(frontiers: Make) -> None:
    case = frontiers(lease_seconds=100)
    job = leased_page(case)
    case.clock.advance(99)
    assert case.frontier.renew("a", job) == 100
    case.reopen()
    case.clock.advance(99)
    assert case.frontier.expire() == 0
    case.clock.advance(1)
    assert case.frontier.expire() == 1
    assert case.state("http://a/0") is State.QUEUED


def test_released_urls_stand_where_they_stood(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0)
    case.add(*pages("a", 10))
    job = case.lease("a", wanted=8).job
    case.report("a", job, STORED)
    assert case.frontier.release("a", job) == 7
    assert case.frontier.release("a", job) == 0
    assert urls_of(case.lease("b")) == pages("a", 10)[1:]


def test_an_expired_job_goes_to_the_next_who_asks(frontiers: Make) -> None:
    case = frontiers(lease_seconds=100, delay_seconds=0)
    leased_page(case)
    assert not case.lease("b").tasks
    case.clock.advance(100)
    assert urls_of(case.lease("b")) == ["http://a/0"]


def test_a_lease_survives_a_restart(frontiers: Make) -> None:
    case = frontiers()
    case.add(*pages("a", 3))
    first = case.lease("a", "r1", wanted=2)
    case.reopen()
    assert not case.lease("b").tasks
    assert set(urls_of(case.lease("a", "r1"))) == set(urls_of(first))
    assert case.finish("a", first).accepted == 2


# --- another try


def test_waits_grow_with_each_try(frontiers: Make) -> None:
    case = frontiers(retry_wait_seconds=30)
    case.add("http://a/")
    waits = []
    for _ in range(3):
        case.finish("a", case.lease(), Outcome.TIMEOUT)
        began = case.clock.now()
        while case.state("http://a/") is State.WAITING:
            case.reopen()  # the wait goes on over a restart
            case.clock.advance(5)
            case.lease("b", wanted=0)
        waits.append(case.clock.now() - began)
    assert waits == [30, 300, 0]
    assert case.state("http://a/") is State.FAILED


def test_who_asks_meanwhile_is_told_when_to_come_back(frontiers: Make) -> None:
    case = frontiers(retry_wait_seconds=2)
    case.add("http://a/")
    case.finish("a", case.lease(), Outcome.TIMEOUT)
    answer = case.lease()
    assert not answer.finished
    assert answer.wait_seconds == pytest.approx(2, abs=0.01)
    case.clock.advance(answer.wait_seconds)
    assert case.lease().tasks


def test_retry_after_holds_for_the_whole_host(frontiers: Make) -> None:
    case = frontiers()
    case.add(*pages("a", 3))
    job = case.lease("a", wanted=2).job
    case.report("a", job, {"http://a/0": Outcome.BUSY}, hosts=[HostFact("a", retry_after_seconds=3600)])
    assert not case.lease("a").tasks  # also for the client that has the host
    case.reopen()
    case.clock.advance(3599)
    assert not case.lease("a").tasks
    case.clock.advance(2)  # the lease has expired meanwhile, and a busy host gets twice the delay
    assert case.lease("a").tasks


def test_retry_after_outlives_a_restart_when_nothing_else_is_known(frontiers: Make) -> None:
    case = frontiers(retry_wait_seconds=1)
    job = leased_page(case)
    case.report("a", job, {"http://a/0": Outcome.BUSY}, hosts=[HostFact("a", retry_after_seconds=1e300)])
    case.reopen()
    case.clock.advance(3600)
    assert not case.lease("a").tasks
    case.clock.advance(86_400)  # nobody can put a host off for longer than a day
    assert case.lease("a").tasks


# --- what a client may say of hosts


def test_a_host_that_the_job_does_not_have_is_none_of_its_clients_business(frontiers: Make) -> None:
    case = frontiers()
    case.add("http://a/0")
    job = case.lease("a").job
    case.add("http://b/0")
    fact = HostFact("b", "192.0.2.1", 60, retry_after_seconds=3600)
    case.report("a", job, {}, hosts=[fact])
    case.report("a", job, STORED, found=["http://b/1"], hosts=[fact])
    case.report("a", job, STORED, hosts=[fact])
    host = case.frontier.explain("http://b/0").host
    assert (host.address, host.not_before) == ("", 0)
    assert case.lease("b").hosts[0].delay_seconds == case.rules.delay_seconds


def test_a_report_that_comes_late_tells_of_its_hosts_too(frontiers: Make) -> None:
    case = frontiers(lease_seconds=100)
    job = leased_page(case)
    case.clock.advance(101)
    assert case.frontier.expire() == 1
    case.report("a", job, STORED, hosts=[HostFact("a", "192.0.2.1")])
    assert case.frontier.explain("http://a/0").host.address == "192.0.2.1"


@pytest.mark.parametrize(("told", "kept"), [
    ("192.0.2.1", "192.0.2.1"), ("2001:DB8:0::1", "2001:db8::1"), ("::ffff:192.0.2.1", "192.0.2.1"),
    ("", "10.0.0.1"), ("x" * 1_000_000, "10.0.0.1"), ("a.example", "10.0.0.1"), ("192.0.2.1 192.0.2.2", "10.0.0.1"),
    ("fe80::1%" + "x" * 1_000_000, "10.0.0.1"),
], ids=range(8))  # fmt: skip
def test_an_address_is_one(frontiers: Make, told: str, kept: str) -> None:
    case = frontiers()
    job = leased_page(case)
    case.report("a", job, {}, hosts=[HostFact("a", "10.0.0.1")])
    case.report("a", job, {}, hosts=[HostFact("a", told)])
    assert case.frontier.explain("http://a/0").host.address == kept
    case.reopen()
    assert case.frontier.explain("http://a/0").host.address == kept


# --- start URLs that lead elsewhere


@pytest.mark.parametrize(("depth", "target", "inside"), [
    (0, "https://www.a.org/", True),
    (0, "http://b.org/", False),
    (1, "https://www.a.org/", False),
])  # fmt: skip
def test_a_start_url_may_lead_to_the_same_host_with_www(
    frontiers: Make, depth: int, target: str, inside: bool
) -> None:
    case = frontiers(Policy("host", ("http://a.org/",)), delay_seconds=0)
    case.add("http://a.org/", start=True)
    case.add(target, depth=3)  # somebody else links to it before
    found = [FoundUrl(target, depth, 1), FoundUrl(f"{target}page", 1)]
    results = [UrlResult("http://a.org/", Outcome.REDIRECTED)]
    case.frontier.report("a", case.lease().job, Report("1", results, found))
    expected = State.QUEUED if inside else State.EXCLUDED
    assert (case.state(target), case.state(f"{target}page")) == (expected, expected)
    case.audit()
    assert list(known_starts(case.store)) == ([target] if inside else []), "also after a restart"


def test_what_is_unwanted_is_remembered_with_the_reason(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0)
    urls = pages("a", 3)
    case.add(*urls)
    leased = case.lease()
    details = ["filter language", "x\ty" + "z" * 1_000, ""]
    results = [UrlResult(url, Outcome.UNWANTED, detail=detail) for url, detail in zip(urls, details, strict=True)]
    case.frontier.report("a", leased.job, Report(str(leased.job), results, ()))
    reasons = [case.frontier.explain(url).reason for url in urls]
    assert reasons == ["unwanted: filter language", "unwanted: x y" + "z" * 97, "unwanted"]
    assert case.audit().excluded == 3
    assert case.add(*urls) == 0
    assert case.audit().excluded == 3, "found again, it is not asked for again"

"""Pages that are visited again: rounds, outcomes, intervals, limits. Each case is audited at its end."""

import math
from dataclasses import replace

import pytest

from common.urls import digest
from common.wire import FoundUrl, Outcome, Report, UrlResult, UrlTask
from server.frontier.audit import audit
from server.frontier.frontier import Leased
from server.frontier.records import KEY_LENGTH, State, Visit, due_key
from server.frontier.recount import recount
from server.frontier.store import Table
from server.frontier.visits import Period
from server.policy.policy import Policy
from tests.frontier import Case, Make, pages, urls_of

HOUR = 3600.0
DAILY = Period(24 * HOUR)
ADAPTIVE = Period(is_adaptive=True, shortest=1 * HOUR, longest=100 * HOUR)
SHA1, OTHER_SHA1 = "a" * 40, "b" * 40


def visit(case: Case, *results: UrlResult, found: tuple[str, ...] = ()) -> Leased:
    """Lease all that there is, and report these results for it."""
    leased = case.lease("x")
    assert sorted(urls_of(leased)) == sorted(result.url for result in results)
    report = Report(str(leased.job), results, [FoundUrl(url, 1) for url in found])
    case.frontier.report("x", leased.job, report)
    return leased


def stored(case: Case, *urls: str) -> None:
    """A first round."""
    case.add(*urls)
    visit(case, *(UrlResult(url, Outcome.STORED, 200, sha1=SHA1) for url in urls))


def visit_of(case: Case, url: str) -> Visit:
    packed = case.store.get(Table.VISITS, digest(url)[:KEY_LENGTH])
    assert packed is not None
    return Visit.unpacked(packed)


def next_round(case: Case, hours: float = 24.0) -> None:
    case.clock.advance(hours * HOUR)
    case.frontier.tick()


# --- rounds


def test_without_a_period_nothing_is_kept(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0)
    stored(case, "http://a/1")
    assert not list(case.store.scan(Table.VISITS))
    assert not list(case.store.scan(Table.DUE))
    assert case.frontier.next_due() == 0
    next_round(case, 10_000)
    assert case.lease("x").finished


def test_a_page_is_visited_again_when_its_period_is_over(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0, period=DAILY)
    stored(case, "http://a/1", "http://a/2")
    assert case.frontier.next_due() == pytest.approx(case.clock.now() + 24 * HOUR, abs=0.002)
    assert case.lease("x").finished
    case.clock.advance(24 * HOUR - 1)
    case.frontier.tick()
    assert case.lease("x").finished
    case.clock.advance(1)
    assert not case.frontier.is_finished(), "also before anybody has called"
    assert len(case.lease("x").tasks) == 2
    totals = case.frontier.totals()
    assert (totals.leased, totals.again_leased, totals.done, totals.stored, totals.known) == (2, 2, 0, 2, 2)


def test_the_task_has_what_a_conditional_request_needs(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0, period=DAILY)
    case.add("http://a/1", depth=3)
    visit(case, UrlResult("http://a/1", Outcome.STORED, 200, 5, "", '"tag"', "Mon, 02 Nov 2026 10:00:00 GMT", SHA1))
    next_round(case)
    case.reopen()
    expected = UrlTask("http://a/1", 3, 0, '"tag"', "Mon, 02 Nov 2026 10:00:00 GMT", SHA1)
    case.clock.advance(1)
    assert list(case.lease("x", "r").tasks) == [expected]
    assert list(case.lease("x", "r").tasks) == [expected], "the same request again"
    case.reopen()
    assert list(case.lease("x", "r").tasks) == [expected]


def test_what_is_not_told_is_not_asked_for(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0, period=DAILY)
    case.add("http://a/1")
    visit(case, UrlResult("http://a/1", Outcome.STORED, 200, 5, "", "x" * 501, "y" * 61, "no digest"))
    next_round(case)
    assert list(case.lease("x").tasks) == [UrlTask("http://a/1")]


def test_304_need_not_repeat_validators_but_another_answer_must(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0, period=DAILY)
    case.add("http://a/1")
    visit(case, UrlResult("http://a/1", Outcome.STORED, 200, 5, "", '"1"', "date", SHA1))
    next_round(case)
    visit(case, UrlResult("http://a/1", Outcome.UNCHANGED, 304))
    seen = visit_of(case, "http://a/1")
    assert (seen.etag, seen.last_modified, seen.sha1.hex()) == ('"1"', "date", SHA1)
    next_round(case)
    visit(case, UrlResult("http://a/1", Outcome.UNCHANGED, 200, etag='"2"'))
    seen = visit_of(case, "http://a/1")
    assert (seen.etag, seen.last_modified, seen.sha1.hex()) == ('"2"', "", SHA1)


def test_a_round_with_all_that_can_happen(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0, period=DAILY)
    stored(case, *pages("a", 5))
    next_round(case)
    changed, same, gone, moved, closed = pages("a", 5)
    visit(
        case,
        UrlResult(changed, Outcome.STORED, 200, sha1=OTHER_SHA1),
        UrlResult(same, Outcome.UNCHANGED, 304),
        UrlResult(gone, Outcome.NOT_FOUND, 404),
        UrlResult(moved, Outcome.REDIRECTED, 301),
        UrlResult(closed, Outcome.DISALLOWED),
        found=("http://a/new",),
    )
    totals = case.audit()
    assert (totals.known, totals.done, totals.queued, totals.failed, totals.excluded) == (6, 5, 1, 0, 0)
    assert (totals.stored, totals.revisits, totals.revisions, totals.unchanged) == (5, 5, 1, 1)
    assert not list(case.frontier.failed())
    assert visit_of(case, changed).sha1.hex() == OTHER_SHA1
    assert case.frontier.explain(gone).absent_since == int(case.clock.now())
    assert case.frontier.explain(gone).reason == "not_found"
    assert case.frontier.explain(moved).absent_since == int(case.clock.now())
    assert case.frontier.explain(same).absent_since == 0
    since = case.frontier.explain(gone).absent_since
    case.drain()
    next_round(case)
    again = {changed, same, gone, moved, closed, "http://a/new"}
    visit(case, *(UrlResult(url, Outcome.UNCHANGED if url == moved else Outcome.NOT_FOUND) for url in again))
    assert case.frontier.explain(gone).absent_since == since, "it has been gone all the time"
    assert case.frontier.explain(moved).absent_since == 0, "it is back"


def test_a_redirected_or_failed_url_that_was_never_stored_is_not_visited_again(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0, period=DAILY)
    case.add(*pages("a", 3))
    outcomes = (Outcome.REDIRECTED, Outcome.NOT_FOUND, Outcome.UNCHANGED)
    visit(case, *map(UrlResult, pages("a", 3), outcomes))
    next_round(case, 1000)
    assert case.lease("x").finished


def test_a_failing_visit_is_tried_again_and_the_page_is_never_lost(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0, retry_wait_seconds=10, period=DAILY)
    stored(case, "http://a/1")
    next_round(case)
    for wait in (10, 100):
        case.finish("x", case.lease("x"), Outcome.SERVER_ERROR)
        assert case.state("http://a/1") is State.WAITING
        assert not case.frontier.is_finished()
        case.reopen()
        case.clock.advance(wait)
    case.finish("x", case.lease("x"), Outcome.SERVER_ERROR)
    assert case.state("http://a/1") is State.DONE
    assert case.frontier.explain("http://a/1").reason == "server_error"
    totals = case.audit()
    assert (totals.stored, totals.failed, totals.revisits) == (1, 0, 1)
    next_round(case)
    assert case.lease("x").tasks[0].sha1 == SHA1


def test_pages_of_a_host_that_is_given_up_stay_and_get_a_chance_in_the_next_round(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0, retry_wait_seconds=1, period=Period(10_000 * HOUR))
    stored(case, *pages("a", 20))
    next_round(case, 10_000)
    for _ in range(200):
        if case.frontier.is_finished():
            break
        leased = case.lease("x")
        if leased.tasks:
            case.finish("x", leased, Outcome.REFUSED)
        case.clock.advance(max(leased.wait_seconds, 1.0))
        case.frontier.tick()
    assert case.audit().done == 20
    assert not list(case.frontier.failed())
    next_round(case, 10_000)
    assert 0 < len(case.lease("x").tasks) <= 3, "a few show whether it is back"


def test_one_round_leaves_what_becomes_due_meanwhile(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0, period=DAILY, one_round=True)
    stored(case, "http://a/1")
    next_round(case)
    assert case.frontier.is_finished()
    assert case.lease("x").finished
    case.reopen()
    assert not case.frontier.is_finished()
    case.clock.advance(1)
    visit(case, UrlResult("http://a/1", Outcome.UNCHANGED, 304))
    next_round(case)
    assert case.frontier.is_finished()


def test_a_round_with_more_pages_than_one_change_takes(frontiers: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.frontier.rounds._LIMIT", 7)
    case = frontiers(delay_seconds=0, period=DAILY)
    stored(case, *pages("a", 20))
    next_round(case)
    assert case.frontier.totals().again == 7
    assert sorted(case.drain()) == sorted(pages("a", 20))


def test_the_clients_come_back_in_time(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0, period=Period(10.0))
    stored(case, "http://a/1")
    case.clock.advance(6)
    assert case.lease("x").wait_seconds == pytest.approx(4, abs=0.01)


# --- together with other things


def test_new_pages_and_old_ones_share_a_job(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0, period=DAILY)
    stored(case, *pages("a", 20))
    next_round(case)
    new = [f"http://a/new/{number}" for number in range(20)]
    case.add(*new)
    leased = case.lease("x", wanted=10)
    assert sorted(task.url in new for task in leased.tasks) == [False] * 5 + [True] * 5
    case.finish("x", leased)
    assert sorted([*urls_of(leased), *case.drain()]) == sorted([*new, *pages("a", 20)])


def test_a_lost_lease_puts_it_back(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0, period=DAILY)
    stored(case, *pages("a", 3))
    next_round(case)
    lost = case.lease("x")
    assert case.frontier.release("x", lost.job) == 3
    assert case.frontier.totals().again == 3
    late = case.report("x", lost.job, {"http://a/0": Outcome.UNCHANGED, "http://a/1": Outcome.STORED})
    assert (late.accepted, late.refused) == (2, 0)
    assert urls_of(case.lease("y")) == ["http://a/2"]


def test_a_repeated_report_of_the_last_round_changes_nothing(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0, period=DAILY)
    case.add("http://a/1")
    first = case.lease("x")
    case.finish("x", first)
    next_round(case)
    again = case.finish("x", first)
    assert (again.accepted, again.refused) == (0, 1)
    second = case.lease("x")
    assert case.finish("x", first).accepted == 0
    assert case.finish("x", second, Outcome.UNCHANGED).accepted == 1
    assert case.audit().revisits == 1


def test_a_link_to_a_page_that_is_to_be_visited_again_changes_nothing(frontiers: Make) -> None:
    for traversal in ("bfs", "dfs", "priority"):
        case = frontiers(delay_seconds=0, period=DAILY, traversal=traversal)
        case.add("http://a/1", depth=5)
        case.finish("x", case.lease("x"))
        next_round(case)
        assert case.add("http://a/1", depth=1) == 0
        assert case.lease("x").tasks[0].depth == 5


def test_skipped_visits_are_no_visits(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0, period=DAILY)
    stored(case, "http://a/1")
    next_round(case)
    case.finish("x", case.lease("x"), Outcome.SKIPPED)
    assert urls_of(case.lease("x")) == ["http://a/1"]


def test_pages_that_do_not_belong_to_the_crawl_any_more_are_left_alone(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0, period=DAILY)
    case.add("http://b/1", "http://a/1", depth=1)
    case.finish("x", case.lease("x"))
    case.policy = Policy("host", ("http://a/",))
    case.reopen()
    next_round(case)
    case.clock.advance(1)
    assert urls_of(case.lease("x")) == ["http://a/1"]
    assert visit_of(case, "http://b/1").due > case.clock.now() * 1000
    case.policy = Policy()
    case.reopen()
    next_round(case)
    assert "http://b/1" in case.drain()


# --- limits


def test_limits_in_pages_keep_no_page_from_another_visit(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0, period=DAILY, max_pages=4, max_pages_per_host=3)
    case.add(*pages("a", 9), *pages("b", 9))
    case.drain()
    assert case.frontier.totals().stored == 4
    assert case.frontier.ended_by() == "max_pages"
    next_round(case)
    assert not case.frontier.is_finished()
    assert len(case.drain()) == 4
    totals = case.audit()
    assert (totals.stored, totals.revisions, totals.queued) == (4, 4, 14)
    assert case.frontier.ended_by() == "max_pages"


def test_visits_do_not_use_up_a_limit(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0, period=DAILY, max_pages=10)
    stored(case, *pages("a", 6))
    next_round(case)
    case.add(*pages("b", 20))
    out = [case.lease("x"), case.lease("x")]
    urls = [url for leased in out for url in urls_of(leased)]
    assert set(pages("a", 6)) < set(urls)
    assert sum(url.startswith("http://b/") for url in urls) == 4
    for leased in out:
        if leased.tasks:
            case.finish("x", leased)
    assert case.frontier.totals().stored == 10


def test_a_full_host_is_visited_again(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0, period=DAILY, max_pages_per_host=2)
    case.add(*pages("a", 9))
    case.drain()
    assert case.frontier.ended_by() == "max_pages_per_host"
    next_round(case)
    assert case.frontier.ended_by() == ""
    assert sorted(case.drain()) == pages("a", 2)
    assert case.frontier.totals().stored == 2


def test_the_end_of_the_whole_crawl_is_also_that_of_visits(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0, period=DAILY, max_bytes=100)
    case.add("http://a/1")
    leased = case.lease("x")
    case.report("x", leased.job, {"http://a/1": Outcome.STORED}, size=100)
    next_round(case)
    assert case.frontier.is_finished()
    assert case.lease("x").finished


# --- intervals


@pytest.mark.parametrize(
    ("outcomes", "hours"),
    [
        ("", 10),
        ("unchanged", 20), ("unchanged unchanged", 40), ("unchanged " * 9, 100),
        ("stored", 5), ("stored stored", 2.5), ("stored " * 9, 1),
        ("unchanged stored", 10), ("client_error", 10), ("disallowed", 10),
        ("not_found", 100), ("redirected", 100), ("not_found stored", 50),
    ],
)  # fmt: skip
def test_adaptive_intervals(frontiers: Make, outcomes: str, hours: float) -> None:
    case = frontiers(delay_seconds=0, period=ADAPTIVE)
    stored(case, "http://a/1")
    for outcome in outcomes.split():
        next_round(case, 100)
        visit(case, UrlResult("http://a/1", Outcome(outcome)))
    seen = visit_of(case, "http://a/1")
    assert seen.interval == pytest.approx(hours * HOUR)
    assert case.frontier.next_due() == pytest.approx(case.clock.now() + hours * HOUR, abs=0.002)


def test_a_fixed_period_stays(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0, period=DAILY)
    stored(case, "http://a/1")
    for outcome in (Outcome.STORED, Outcome.UNCHANGED, Outcome.NOT_FOUND, Outcome.REDIRECTED):
        next_round(case)
        visit(case, UrlResult("http://a/1", outcome))
        assert visit_of(case, "http://a/1").interval == 24 * HOUR


def test_an_adaptive_interval_finds_out_how_often_a_page_changes(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0, period=replace(ADAPTIVE, longest=10_000 * HOUR))
    stored(case, "http://a/1")
    changes_every, number, intervals = 40 * HOUR, 0, []
    for _ in range(60):
        case.clock.advance(max(0.0, case.frontier.next_due() - case.clock.now()))
        before, number = number, int(case.clock.now() // changes_every)
        outcome = Outcome.STORED if number > before else Outcome.UNCHANGED
        visit(case, UrlResult("http://a/1", outcome))
        intervals.append(visit_of(case, "http://a/1").interval)
    assert changes_every / 4 <= math.exp(sum(map(math.log, intervals[20:])) / 40) <= changes_every * 2


@pytest.mark.parametrize(
    ("period", "hours"), [(Period(6 * HOUR), 6), (Period(100 * HOUR), 100), (ADAPTIVE, 24), (Period(), 24)]
)
def test_another_period_counts_for_what_is_known(frontiers: Make, period: Period, hours: float) -> None:
    case = frontiers(delay_seconds=0, period=DAILY)
    stored(case, *pages("a", 5))
    began = case.clock.now()
    case.rules = replace(case.rules, period=period)
    case.reopen()
    assert {visit_of(case, url).interval for url in pages("a", 5)} == {hours * HOUR}
    case.rules = replace(case.rules, period=period if period.is_set else DAILY)
    case.reopen()
    assert case.frontier.next_due() == pytest.approx(began + hours * HOUR, abs=1)
    case.clock.advance(hours * HOUR)
    assert len(case.drain()) == 5


def test_a_period_that_is_taken_away_ends_the_rounds_but_not_the_one_that_runs(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0, period=DAILY)
    stored(case, *pages("a", 2))
    next_round(case)
    case.rules = replace(case.rules, period=Period())
    case.reopen()
    case.clock.advance(1)
    assert sorted(case.drain()) == pages("a", 2)
    case.clock.advance(1000 * HOUR)
    assert case.lease("x").finished
    assert case.audit().revisions == 2


# --- mending


def test_a_page_that_is_gone_from_the_disk_is_crawled_as_if_for_the_first_time(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0, period=DAILY)
    stored(case, *pages("a", 4))
    done, queued, waiting, forgotten = pages("a", 4)
    next_round(case)
    leased = case.lease("x")
    outcomes = {done: Outcome.UNCHANGED, queued: Outcome.SKIPPED, waiting: Outcome.TIMEOUT, forgotten: Outcome.STORED}
    case.report("x", leased.job, outcomes)
    lost = [(digest(url)[:KEY_LENGTH], url) for url in (done, queued, waiting)]
    assert case.frontier.crawl_again(lost) == 3
    assert case.frontier.forget([digest(forgotten)[:KEY_LENGTH]]) == 1
    totals = case.audit()
    assert (totals.known, totals.queued, totals.stored, totals.again) == (3, 3, 0, 0)
    assert not list(case.store.scan(Table.DUE))
    assert all(not task.sha1 for task in case.lease("x").tasks)


def test_marked_pages_are_visited_again(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0, period=DAILY)
    stored(case, "http://a/1")
    next_round(case)
    marked = [(digest(url)[:KEY_LENGTH], url) for url in ("http://a/1", "http://a/new")]
    assert case.frontier.mark_stored(marked) == 1, "the other one is stored already"
    next_round(case)
    assert sorted(urls_of(case.lease("x"))) == ["http://a/1", "http://a/new"]


def test_wrong_due_times_do_not_keep_the_crawl_from_ending(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0, period=DAILY)
    stored(case, "http://a/1", "http://a/2")
    key = digest("http://a/1")[:KEY_LENGTH]
    case.store.write([(Table.DUE, due_key(1, b"k" * KEY_LENGTH), b"")])
    case.reopen()
    assert not case.frontier.is_finished()
    case.frontier.tick()
    assert case.frontier.is_finished()
    next_round(case)
    leased = case.lease("x")
    case.store.write([(Table.DUE, due_key(1, key), b"")])
    case.reopen()
    case.frontier.tick()
    case.finish("x", leased, Outcome.UNCHANGED)
    assert case.frontier.is_finished()


def test_an_audit_finds_wrong_visits_and_counting_again_mends_them(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0, period=DAILY)
    stored(case, *pages("a", 6))
    keys = [digest(url)[:KEY_LENGTH] for url in pages("a", 6)]
    dates = [visit_of(case, url).due for url in pages("a", 6)]
    case.store.write(
        [
            (Table.DUE, due_key(dates[0], keys[0]), None),
            (Table.DUE, due_key(dates[1] + 5, keys[1]), b""),
            (Table.DUE, due_key(1, b"k" * KEY_LENGTH), b""),
            (Table.VISITS, b"u" * KEY_LENGTH, visit_of(case, "http://a/2").packed()),
        ]
    )
    assert audit(case.store).number == 3
    assert recount(case.store) == ["4 pages: when they are visited again"]
    assert audit(case.store).differences == []
    assert recount(case.store) == []

"""What an audit makes good in the frontier: settling, forgetting, counting again. Each case is audited at its end."""

from pathlib import Path

import pytest

from common.urls import digest
from common.wire import Outcome, Totals
from server.frontier.audit import audit
from server.frontier.change import TOTALS_KEY, pack_totals
from server.frontier.hosts import Host
from server.frontier.records import KEY_LENGTH, State
from server.frontier.recount import recount
from server.frontier.rocks import RocksStore
from server.frontier.store import Table
from server.policy.policy import Policy
from tests.frontier import Case, Make, urls_of


def key_of(url: str) -> bytes:
    return digest(url)[:KEY_LENGTH]


def mark(case: Case, *urls: str) -> int:
    return case.frontier.mark_stored((key_of(url), url) for url in urls)


def test_queued_waiting_leased_and_unknown_urls_are_settled(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0.0)
    case.add("http://a/waiting")
    case.finish("w", case.lease("w"), Outcome.SERVER_ERROR)
    case.add("http://a/leased", "http://b/leased")
    leased = case.lease("w")
    case.add("http://a/queued")
    urls = ["http://a/waiting", "http://a/leased", "http://a/queued", "http://new/unknown"]
    assert mark(case, *urls) == 4
    assert mark(case, *urls) == 0
    assert {case.state(url) for url in urls} == {State.DONE}
    totals = case.audit()
    assert (totals.known, totals.done, totals.stored, totals.leased) == (5, 4, 4, 1)
    assert case.finish("w", leased).accepted == 1, "the rest of the job can be reported"


def test_the_whole_job_is_settled(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0.0)
    case.add("http://a/1", "http://a/2")
    leased = case.lease("w")
    assert mark(case, *urls_of(leased)) == 2
    assert case.frontier.is_finished()
    assert case.frontier.overview().jobs == []
    case.add("http://a/3")
    assert urls_of(case.lease("other")) == ["http://a/3"], "the host is free"


@pytest.mark.parametrize("outcome", [Outcome.NOT_FOUND, Outcome.DISALLOWED, Outcome.REDIRECTED])
def test_what_has_ended_stays(frontiers: Make, outcome: Outcome) -> None:
    case = frontiers()
    case.add("http://a/1")
    case.finish("w", case.lease("w"), outcome)
    assert mark(case, "http://a/1") == 0
    assert case.frontier.totals().stored == 0


def test_what_was_outside_is_settled(frontiers: Make) -> None:
    case = frontiers(Policy("host", ("http://a/",)))
    case.add("http://b/1", "http://b/2")
    assert mark(case, "http://b/1") == 1
    totals = case.audit()
    assert (totals.known, totals.done, totals.excluded) == (2, 1, 1)


def test_forgotten_urls_can_be_found_again(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0.0)
    case.add("http://a/1", "http://a/2")
    case.finish("w", case.lease("w"))
    case.add("http://a/queued")
    assert case.frontier.forget([key_of("http://a/1"), key_of("http://a/queued"), key_of("http://a/never")]) == 1
    assert case.state("http://a/1") is None
    assert case.state("http://a/queued") is State.QUEUED
    totals = case.audit()
    assert (totals.known, totals.done, totals.stored) == (2, 1, 1)
    assert case.add("http://a/1") == 1


def test_done_urls_are_crawled_again(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0.0)
    case.add("http://a/index.html", "http://a/2")
    case.finish("w", case.lease("w"))
    again = [(key_of("http://a/"), "http://a/index.html"), (key_of("http://never/"), "http://never/")]
    assert case.frontier.crawl_again(again) == 1
    assert case.frontier.crawl_again(again) == 0
    assert case.audit().stored == 1
    leased = case.lease("w")
    assert urls_of(leased) == ["http://a/index.html"]
    assert case.finish("w", leased).accepted == 1


@pytest.mark.parametrize("counter", ["known", "queued", "waiting", "leased", "done", "failed", "excluded"])
def test_counters_are_counted_again(frontiers: Make, counter: str) -> None:
    case = frontiers(delay_seconds=0.0)
    case.add("http://a/1", "http://a/2", "http://a/3")
    case.finish("w", case.lease("w", wanted=1))
    case.finish("w", case.lease("w", wanted=1), Outcome.SERVER_ERROR)
    case.lease("w", wanted=1)
    before = case.audit()
    [(key, value)] = case.store.scan(Table.HOSTS)
    host = Host.unpacked(key, value)
    setattr(host, counter, getattr(host, counter) + 3)
    wrong = Totals(**{name: getattr(before, name) + 1 for name in ("known", "done", "stored")})
    case.store.write([(Table.HOSTS, key, host.packed()), (Table.META, TOTALS_KEY, pack_totals(wrong))])
    assert audit(case.store).differences
    mended = recount(case.store)
    assert len(mended) == 2
    assert "totals" in mended
    assert recount(case.store) == []
    case.reopen()
    after = case.audit()
    assert [after.known, after.queued, after.done] == [before.known, before.queued, before.done]


def test_a_host_that_fell_out_of_the_lists_is_found_again(tmp_path: Path) -> None:
    case = Case(tmp_path, make=RocksStore)
    case.add("http://a/1")
    [(key, _)] = case.store.scan(Table.HOSTS)
    case.store.write([(Table.ACTIVE, key, None), (Table.NAMES, b"a", None)])
    recount(case.store)
    case.reopen()
    case.audit()
    assert urls_of(case.lease()) == ["http://a/1"]
    case.close()

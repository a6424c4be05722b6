"""Whose turn it is: loyalty, slots, fairness, delays that grow and shrink, and what all that costs."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from common.wire import HostFact, Outcome
from server.frontier import hosts as hosts_module
from server.frontier.frontier import Leased, Rules
from server.frontier.rocks import RocksStore
from server.frontier.store import Table
from server.frontier.turns import Turns
from tests.frontier import Case, Make, pages, urls_of

pytestmark = pytest.mark.contract


def hosts_of(leased: Leased) -> set[str]:
    return {share.host for share in leased.hosts}


def finish_with(case: Case, client: str, leased: Leased, *facts: HostFact, outcome: Outcome = Outcome.STORED) -> None:
    case.report(client, leased.job, dict.fromkeys(urls_of(leased), outcome), hosts=facts)


# --- loyalty


def test_a_host_waits_a_moment_for_the_client_that_had_it(frontiers: Make) -> None:
    case = frontiers(delay_seconds=1, lease_seconds=2)
    case.add(*pages("old", 3))
    case.finish("a", case.lease("a"))
    case.clock.advance(1)
    case.add("http://new/")
    assert hosts_of(case.lease("b")) == {"new"}
    assert hosts_of(case.lease("a")) == {"old"}


def test_a_client_with_nothing_else_gets_a_host_that_waits_for_another(frontiers: Make) -> None:
    case = frontiers(delay_seconds=1, lease_seconds=2)
    case.add(*pages("old", 3))
    case.finish("a", case.lease("a"))
    case.clock.advance(0.9)
    assert not case.lease("b").tasks, "loyalty is no reason to come too early"
    case.clock.advance(0.1)
    assert hosts_of(case.lease("b")) == {"old"}


def test_loyalty_ends(frontiers: Make) -> None:
    case = frontiers(delay_seconds=1, lease_seconds=2)
    case.add(*pages("old", 3))
    case.finish("a", case.lease("a"))
    case.clock.advance(4)
    case.add("http://new/")
    assert hosts_of(case.lease("b", wanted=1)) == {"old"}, "it has waited longer"


# --- slots


def with_one_address(case: Case, number: int = 20) -> None:
    """Hosts x and y with pages, known to be at one address; nobody has them."""
    case.add("http://x/", "http://y/")
    finish_with(case, "a", case.lease("a"), HostFact("x", "10.0.0.1"), HostFact("y", "10.0.0.1"))
    case.add(*pages("x", number), *pages("y", number))
    case.clock.advance(10)


def test_hosts_at_one_address_go_to_one_client(frontiers: Make) -> None:
    case = frontiers()
    with_one_address(case)
    first = case.lease("a", wanted=4)
    assert {share.slot for share in first.hosts} == {"10.0.0.1"}
    assert not case.lease("b").tasks
    assert case.lease("a").tasks
    case.reopen()
    assert not case.lease("b").tasks


def test_the_delay_of_an_address_holds_for_all_its_hosts(frontiers: Make) -> None:
    case = frontiers(delay_seconds=5)
    with_one_address(case, 1)
    first = case.lease("a", wanted=1)
    case.finish("a", first)
    assert not case.lease("b").tasks, "the other host was never asked, but its address was"
    case.clock.advance(4.9)
    assert not case.lease("b").tasks
    case.clock.advance(0.1)
    assert case.lease("b").tasks


def test_when_two_clients_turn_out_to_be_at_one_address_only_one_goes_on(frontiers: Make) -> None:
    case = frontiers()
    case.add(*pages("x", 50))
    first = case.lease("a", wanted=10)
    case.add(*pages("y", 50))
    second = case.lease("b", wanted=10)
    case.report("b", second.job, {}, hosts=[HostFact("y", "10.0.0.1")])
    case.report("a", first.job, {"http://x/0": Outcome.STORED}, hosts=[HostFact("x", "10.0.0.1")])
    assert not case.lease("a").tasks
    assert not case.lease("b").tasks
    case.finish("a", first)
    assert hosts_of(case.lease("b", wanted=5)) <= {"x", "y"}
    case.clock.advance(10)
    assert not case.lease("a").tasks
    case.finish("b", second)


def test_a_pause_of_one_host_is_none_of_its_neighbours_business(frontiers: Make) -> None:
    case = frontiers(delay_seconds=1)
    with_one_address(case)
    first = case.lease("a", wanted=4)
    finish_with(case, "a", first, HostFact("x", "10.0.0.1", retry_after_seconds=3600))
    case.clock.advance(3)
    assert hosts_of(case.lease("b")) == {"y"}


def test_a_host_that_moves_leaves_its_slot(frontiers: Make) -> None:
    case = frontiers(delay_seconds=1)
    with_one_address(case)
    first = case.lease("a", wanted=10)
    assert hosts_of(first) == {"x", "y"}
    outcomes = {url: Outcome.STORED for url in urls_of(first) if "//y/" in url}
    case.report("a", first.job, outcomes, hosts=[HostFact("y", "10.0.0.2")])
    case.clock.advance(10)
    assert hosts_of(case.lease("b")) == {"y"}


def test_connections_that_may_be_in_use_are_not_given_away(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0, connections_per_host=4)
    case.add(*pages("x", 200))
    first = case.lease("a", wanted=10)
    assert first.hosts[0].connections == 4
    assert not case.lease("b", wanted=10).tasks
    second = case.lease("a", wanted=10)
    assert second.hosts[0].connections == 2
    assert not case.lease("b", wanted=10).tasks, "requests of the first job may be under way on all four"
    case.finish("a", first)
    assert case.lease("b", wanted=10).hosts[0].connections == 2


def test_who_can_share_a_host_leaves_some_of_it_to_the_hungry(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0, connections_per_host=2)
    case.add(*pages("x", 200))
    case.lease("a", wanted=60)
    assert not case.lease("b").tasks
    assert not case.lease("a").tasks, "it has enough"


def test_what_somebody_has_enough_of_stays_there_for_the_hungry(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0, connections_per_host=2)
    case.add(*pages("x", 200))
    first = case.lease("a", wanted=10)
    assert not case.lease("b").tasks
    assert case.lease("a", wanted=60).hosts[0].connections == 1
    case.finish("a", first)
    assert not case.lease("a").tasks, "it has enough"
    assert case.lease("b").hosts[0].connections == 1


# --- fairness


def test_a_giant_does_not_starve_the_small(frontiers: Make) -> None:
    case = frontiers(delay_seconds=1)
    case.add(*pages("giant", 100_000))
    for start in range(0, 1000, 100):
        case.add(*(url for host in range(start, start + 100) for url in pages(f"s{host}", 10)))
    served: Counter[str] = Counter()
    jobs = 0
    while len(served) < 1001 or sum(served.values()) - served["giant"] < 10_000:
        leased = case.lease("a", wanted=100)
        assert leased.tasks, "there is always something to do"
        served.update(url.split("/")[2] for url in urls_of(leased))
        case.finish("a", leased)
        case.clock.advance(1)
        jobs += 1
    assert jobs < 1.5 * 10_000 / 100
    assert 0 < served["giant"] < 2000


def test_jobs_are_not_padded_with_urls_that_only_wait(frontiers: Make) -> None:
    case = frontiers(delay_seconds=2, lease_seconds=40)
    case.add(*pages("a", 500), *pages("b", 500))
    assert Counter(url.split("/")[2] for url in urls_of(case.lease(wanted=1000))) == {"a": 10, "b": 10}
    assert not case.lease(wanted=1000).tasks


def test_a_job_holds_many_hosts(frontiers: Make) -> None:
    case = frontiers()
    for host in range(50):
        case.add(*pages(f"h{host}", 100))
    leased = case.lease(wanted=100)
    assert len(leased.tasks) == 100
    assert len(leased.hosts) >= 10


def test_what_is_left_is_shared_out_so_that_all_end_together(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0, connections_per_host=8)
    case.add(*pages("big", 1_000))
    first = case.lease("a", "1", wanted=900)
    assert len(first.tasks) == 900, "nobody else has asked"
    case.frontier.release("a", first.job)
    assert len(case.lease("b", "1", wanted=900).tasks) == 500
    assert len(case.lease("a", "2", wanted=900).tasks) == 250
    for number in range(2, 20):
        case.lease("b", str(number), wanted=900)
    assert case.frontier.totals().queued == 0


def test_the_smallest_jobs_are_not_tiny(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0, connections_per_host=8)
    case.add("http://other/")
    case.lease("b", "1")
    case.add(*pages("big", 70))
    assert [len(case.lease("a", str(number)).tasks) for number in range(3)] == [50, 20, 0]


# --- delays


def delay_of(case: Case, name: str) -> float:
    return case.frontier.explain(f"http://{name}/").host.delay_seconds



@pytest.mark.parametrize(("latency", "delay"), [(0.5, 1.0), (4.0, 4.0), (1e9, 60.0)])
def test_a_slow_host_is_asked_less_often(frontiers: Make, latency: float, delay: float) -> None:
    case = frontiers(delay_seconds=1, max_crawl_delay_seconds=60)
    case.add(*pages("a", 3))
    finish_with(case, "a", case.lease("a", wanted=1), HostFact("a", latency_seconds=latency))
    assert delay_of(case, "a") == delay


def test_latency_says_nothing_about_a_host_without_delay(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0)
    case.add("http://a/")
    finish_with(case, "a", case.lease("a"), HostFact("a", latency_seconds=9))
    assert delay_of(case, "a") == 0


def test_a_busy_host_gets_a_longer_delay_that_shrinks_again(frontiers: Make) -> None:
    case = frontiers(delay_seconds=1, retry_wait_seconds=0.1)
    case.add(*pages("a", 200))
    delays = []
    for outcome in [Outcome.BUSY] * 12 + [Outcome.STORED] * 60:
        case.clock.advance(400)
        finish_with(case, "a", case.lease("a", wanted=1), outcome=outcome)
        delays.append(delay_of(case, "a"))
    assert delays[:4] == [2, 3, 5, 9]
    assert max(delays) == 301
    assert delays[12:] == sorted(delays[12:], reverse=True)
    assert delays[-1] == 1


# --- what it costs


def test_hosts_without_work_leave_memory_and_come_back_from_disk(
    frontiers: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosts_module, "_MAX_IDLE", 5)
    case = frontiers(delay_seconds=3)
    for number in range(60):
        case.add(f"http://h{number}/")
        finish_with(case, "a", case.lease("a"), HostFact(f"h{number}", f"10.0.0.{number}", 50.0))
        case.clock.advance(1)
    with case.frontier._decide() as memory:
        assert len(list(memory.core.hosts)) < 20
    case.add("http://h0/again", "http://h59/again")
    leased = case.lease("a")
    assert hosts_of(leased) == {"h0"}, "the other was asked just now"
    assert leased.hosts[0].delay_seconds == 50
    assert leased.hosts[0].slot == "10.0.0.0"
    case.clock.advance(50)
    assert hosts_of(case.lease("a")) == {"h59"}


class CountingStore(RocksStore):
    """Counts the rows that scans give."""

    rows = 0

    def scan(self, table: Table, start: bytes = b"", end: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        for row in super().scan(table, start, end):
            self.rows += 1
            yield row


def test_the_length_of_a_queue_costs_nothing(tmp_path: Path) -> None:
    rows = []
    for number in (1_000, 200_000):
        case = Case(tmp_path / str(number), Rules(delay_seconds=0), make=CountingStore)
        for start in range(0, number, 10_000):
            case.add(*(f"http://a/{page}" for page in range(start, min(start + 10_000, number))))
        assert isinstance(case.store, CountingStore)
        case.store.rows = 0
        for _ in range(5):
            leased = case.lease("a", wanted=100)
            assert len(leased.tasks) == 100
            case.finish("a", leased)
        rows.append(case.store.rows)
        case.close()
    assert rows[0] == rows[1]
    assert 500 <= rows[0] < 600


def test_hosts_that_are_always_with_the_same_clients_leave_no_trail(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each turn of a host used to leave an entry behind in the common line, for ever: about 110 bytes."""
    monkeypatch.setattr("server.frontier.turns._SWEEP_AFTER", 100)
    turns, now, most = Turns(1), 0.0, 0
    for host in range(40):
        turns.offer(host, f"slot {host}", 0.0, now, False, "")
    for job in range(2_000):
        client = f"client {job % 2}"
        now += 1.0
        picked = turns.pick(client, now, 5, set())
        assert len(picked) == 5
        for host in picked:
            turns.hold(host, f"slot {host}", client, job, 1, False)
            turns.settle(host, client, job, 1, now + 1.0)
            turns.offer(host, f"slot {host}", now + 1.0, now, False, client)
        most = max(most, turns.entries)
    assert most < 2 * 40 + 2 * 120

"""What the frontier has in memory is bounded by what is active now, not by what has been."""

import pytest

from common.wire import HostFact, Outcome
from server.frontier import hosts as hosts_module
from server.policy.policy import Policy
from tests.frontier import Case, Make, urls_of

pytestmark = pytest.mark.contract

ADDRESSES = {f"h{number}": f"10.0.0.{number % 10}" for number in range(30)}


def in_memory(case: Case) -> set[str]:
    with case.frontier._decide() as memory:
        return {host.name for host in memory.core.hosts}


def crawl(case: Case, client: str = "a") -> None:
    while (leased := case.lease(client)).tasks:
        case.finish(client, leased)
        case.clock.advance(2.0)


def test_hosts_that_were_active_once_leave_memory(frontiers: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many were active at a time: that so many may come again is no reason to keep them."""
    monkeypatch.setattr(hosts_module, "_MAX_IDLE", 10)
    case = frontiers()
    case.add(*(f"http://h{number}/" for number in range(300)))
    assert len(in_memory(case)) == 300
    crawl(case)
    case.add("http://h0/again", "http://h299/again")
    assert len(in_memory(case)) == 12
    crawl(case)
    assert len(in_memory(case)) == 10
    assert {"h0", "h299"} < in_memory(case)  # what changed last stays longest
    assert case.audit().done == 302


def test_hosts_outside_do_not_stay_in_memory(frontiers: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosts_module, "_MAX_IDLE", 10)
    case = frontiers(Policy("host", ("http://a/",)))
    case.add("http://a/", start=True)
    for number in range(100):
        case.add(f"http://h{number}/", f"http://a/{number}")
        assert len(in_memory(case)) <= 11
    assert case.audit().excluded == 100


def test_clients_that_got_nothing_and_are_gone_are_forgotten(frontiers: Make) -> None:
    case = frontiers()
    for number in range(100):
        assert not case.lease(f"guest {number}").tasks
        case.clock.advance(10.0)
    with case.frontier._decide() as memory:
        leasing, turns = memory.leasing, memory.core.turns
        assert len(leasing._callers) <= 4
        assert len(leasing._misses) <= 4
        assert len(turns._hungry) <= 4


def test_nothing_is_left_of_a_crawl_that_is_done(frontiers: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every client is another one, and half of the hosts share addresses, so that they wait for one another."""
    monkeypatch.setattr("server.frontier.turns._SWEEP_AFTER", 100)
    case, turn = frontiers(), 0
    case.add(*(f"http://h{number}/{page}" for number in range(60) for page in range(12)))
    while case.frontier.totals().queued:
        turn += 1
        jobs = [(client, case.lease(client, wanted=30)) for client in (f"{turn} a", f"{turn} b", f"{turn} c")]
        for client, leased in (each for each in jobs if each[1].tasks):
            facts = [HostFact(share.host, ADDRESSES.get(share.host, "")) for share in leased.hosts]
            case.report(client, leased.job, dict.fromkeys(urls_of(leased), Outcome.STORED), hosts=facts)
        case.clock.advance(1.0)
    case.clock.advance(60.0)
    case.frontier.tick()
    assert not case.lease("last").tasks
    with case.frontier._decide() as memory:
        turns, leases = memory.core.turns, memory.core.leases
        left = turns._offers, turns._grants, turns._held, turns._slots, turns._slot_ready, turns._parked
        assert [len(each) for each in (*left, leases)] == [0] * 7
        assert turns.entries <= 2 * 100
    case.audit()

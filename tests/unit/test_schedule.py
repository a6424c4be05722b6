"""The schedule: order, delays, connections, and what it forgets. Time stands still unless a test moves it."""

import random
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

import pytest

from client.schedule import PENDING_SECONDS, Schedule, Ticket
from common.clock import ManualClock, SystemClock
from common.urls import host_of
from common.wire import HostShare
from tests.tickets import tickets

A, B = "http://a.test/", "http://b.test/"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def schedule(clock: ManualClock) -> Schedule:
    return Schedule(clock)


def _share(url: str, delay: float = 1.0, connections: int = 1) -> HostShare:
    return HostShare(host_of(url), delay, connections)


def _add(schedule: Schedule, urls: Sequence[str], *shares: HostShare, job: str = "1") -> None:
    schedule.add(tickets(urls, job), shares)


def _take_now(schedule: Schedule) -> Ticket | None:
    """What may be asked for at this moment. Closing makes `take` answer at once, so this looks under the lock."""
    with schedule._changed:
        lane = schedule._due_lane()
        return schedule._begin(lane) if lane else None


def _took(schedule: Schedule) -> Ticket:
    taken = _take_now(schedule)
    assert taken is not None
    return taken


def _url(taken: Ticket | None) -> str | None:
    return taken.visit.task.url if taken else None


def test_urls_of_a_host_come_in_their_order(schedule: Schedule) -> None:
    urls = [A + str(number) for number in range(5)]
    _add(schedule, urls, _share(A, 0))
    asked = []
    for _ in urls:
        taken = schedule.take()
        assert taken is not None
        asked.append(_url(taken))
        schedule.done(taken, requested=True)
    assert asked == urls


def test_one_connection_has_one_request_under_way(schedule: Schedule) -> None:
    _add(schedule, [A + "1", A + "2"], _share(A, 0))
    first = _took(schedule)
    assert _take_now(schedule) is None
    schedule.done(first, requested=True)
    assert _url(_take_now(schedule)) == A + "2"


def test_with_one_connection_the_delay_runs_from_the_end(schedule: Schedule, clock: ManualClock) -> None:
    _add(schedule, [A + "1", A + "2"], _share(A, 1.0))
    first = _took(schedule)
    clock.advance(5.0)
    schedule.done(first, requested=True)
    clock.advance(0.99)
    assert _take_now(schedule) is None
    clock.advance(0.02)
    assert _url(_take_now(schedule)) == A + "2"


def test_with_several_connections_the_delay_runs_from_start_to_start(schedule: Schedule, clock: ManualClock) -> None:
    _add(schedule, [A + str(number) for number in range(4)], _share(A, 1.0, connections=2))
    first = _took(schedule)
    assert _take_now(schedule) is None, "the delay holds between connections, too"
    clock.advance(1.0)
    second = _took(schedule)
    clock.advance(9.0)
    assert _take_now(schedule) is None, "both are busy"
    schedule.done(first, requested=True)
    assert _url(_take_now(schedule)) == A + "2"
    schedule.done(second, requested=True)
    assert _take_now(schedule) is None


def test_hosts_do_not_wait_for_each_other(schedule: Schedule) -> None:
    _add(schedule, [A + "1", A + "2", B + "1"], _share(A), _share(B))
    assert [_url(_take_now(schedule)) for _ in range(3)] == [A + "1", B + "1", None]


def test_again_comes_before_the_others_of_its_host_and_after_the_delay(schedule: Schedule, clock: ManualClock) -> None:
    _add(schedule, [A + "1", A + "2"], _share(A, 1.0))
    schedule.again(_took(schedule), requested=True)
    assert _take_now(schedule) is None
    clock.advance(1.0)
    assert _url(_take_now(schedule)) == A + "1"


def test_pending_costs_no_delay_but_a_moment(schedule: Schedule, clock: ManualClock) -> None:
    _add(schedule, [A + "1"], _share(A, 100.0))
    schedule.again(_took(schedule), requested=False)
    assert _take_now(schedule) is None
    clock.advance(PENDING_SECONDS + 0.001)
    assert _url(_take_now(schedule)) == A + "1"


def test_visit_without_a_request_costs_no_delay(schedule: Schedule) -> None:
    _add(schedule, [A + "1", A + "2"], _share(A, 100.0))
    schedule.done(_took(schedule), requested=False)
    assert _url(_take_now(schedule)) == A + "2"


def test_hold_postpones_and_lengthens_the_delay(schedule: Schedule, clock: ManualClock) -> None:
    _add(schedule, [A + "1", A + "2", A + "3"], _share(A, 1.0))
    first = _took(schedule)
    schedule.hold(host_of(A), 30.0, delay_seconds=3.0)
    schedule.done(first, requested=True)
    clock.advance(29.9)
    assert _take_now(schedule) is None
    clock.advance(0.2)
    schedule.done(_took(schedule), requested=True)
    clock.advance(2.9)
    assert _take_now(schedule) is None
    clock.advance(0.2)
    assert _url(_take_now(schedule)) == A + "3"


def test_hold_never_shortens_and_unknown_hosts_are_no_mistake(schedule: Schedule, clock: ManualClock) -> None:
    _add(schedule, [A + "1", A + "2"], _share(A, 5.0))
    schedule.done(_took(schedule), requested=True)
    schedule.hold(host_of(A), 0.0, delay_seconds=1.0)
    schedule.hold("nobody.test", 1.0)
    clock.advance(4.9)
    assert _take_now(schedule) is None


def test_a_new_job_changes_the_share_of_a_host(schedule: Schedule) -> None:
    _add(schedule, [A + "1", A + "2"], _share(A, 0.0, connections=1))
    _took(schedule)
    assert _take_now(schedule) is None
    _add(schedule, [A + "3"], _share(A, 0.0, connections=3), job="2")
    assert [_url(_take_now(schedule)) for _ in range(3)] == [A + "2", A + "3", None]


def test_withdraw_by_host_by_job_and_all(schedule: Schedule) -> None:
    _add(schedule, [A + "1", B + "1"], _share(A), _share(B), job="1")
    _add(schedule, [A + "2", B + "2"], job="2")
    under_way = _took(schedule)
    assert _url(under_way) == A + "1"
    assert [_url(each) for each in schedule.withdraw(job="2")] == [A + "2", B + "2"]
    assert schedule.withdraw(host=host_of(A)) == [], "what is under way stays with its thread"
    assert [_url(each) for each in schedule.withdraw(host=host_of(B))] == [B + "1"]
    _add(schedule, [A + "3"])
    assert [_url(each) for each in schedule.withdraw()] == [A + "3"]
    assert schedule.waiting() == 0
    schedule.done(under_way, requested=True)


def test_failures_in_a_row_are_counted_for_the_host(schedule: Schedule, clock: ManualClock) -> None:
    _add(schedule, [A + str(number) for number in range(6)], _share(A, 0.0))
    results = []
    for requested, failed in ((True, True), (True, True), (False, False), (True, True), (True, False), (True, True)):
        results.append(schedule.done(_took(schedule), requested, host_failed=failed))
    assert results == [1, 2, 2, 3, 0, 1], "what was not asked says nothing about the host"


def test_capacity_and_waiting(schedule: Schedule) -> None:
    assert (schedule.capacity(), schedule.waiting()) == (0, 0)
    _add(schedule, [A + "1", A + "2", A + "3", B + "1"], _share(A, 0.0, connections=2), _share(B, connections=5))
    assert (schedule.capacity(), schedule.waiting()) == (3, 4)
    _took(schedule)
    assert (schedule.capacity(), schedule.waiting()) == (3, 3)


def test_close_wakes_everybody_who_waits() -> None:
    schedule = Schedule(SystemClock())
    _add(schedule, [A + "1", A + "2"], _share(A, 3600.0))
    assert schedule.take() is not None
    got: list[Ticket | None] = []
    threads = [threading.Thread(target=lambda: got.append(schedule.take())) for _ in range(4)]
    for thread in threads:
        thread.start()
    schedule.close()
    for thread in threads:
        thread.join(20)
    assert got == [None] * 4
    assert schedule.take() is None
    assert len(schedule.withdraw()) == 1, "what waited can still be given back"


def test_a_waiting_thread_is_woken_by_a_new_url() -> None:
    schedule = Schedule(SystemClock())
    got: list[Ticket | None] = []
    thread = threading.Thread(target=lambda: got.append(schedule.take()))
    thread.start()
    _add(schedule, [A], _share(A))
    thread.join(20)
    assert [_url(each) for each in got] == [A]
    schedule.close()


def test_hosts_are_forgotten_when_nothing_is_left_of_them(schedule: Schedule, clock: ManualClock) -> None:
    for number in range(1000):
        url = f"http://host-{number}.test/"
        _add(schedule, [url], _share(url, 5.0), HostShare(f"empty-{number}.test", 1.0))
        schedule.done(_took(schedule), requested=True)
        clock.advance(1.0)
    assert len(schedule._lanes) < 20
    assert len(schedule._heap) < 20


def test_delay_holds_over_two_jobs(schedule: Schedule, clock: ManualClock) -> None:
    _add(schedule, [A + "1"], _share(A, 5.0))
    schedule.done(_took(schedule), requested=True)
    clock.advance(4.0)
    _add(schedule, [A + "2"], _share(A, 5.0), job="2")
    assert _take_now(schedule) is None, "the host was asked a moment ago, for another job"
    clock.advance(1.1)
    assert _url(_take_now(schedule)) == A + "2"


# --- hosts at one address


def _at(url: str, slot: str, delay: float = 1.0) -> HostShare:
    return HostShare(host_of(url), delay, slot=slot)


def test_hosts_of_one_slot_share_the_longest_delay(schedule: Schedule, clock: ManualClock) -> None:
    _add(schedule, [A + "1", B + "1"], _at(A, "10.0.0.1", 1.0), _at(B, "10.0.0.1", 3.0))
    first = _took(schedule)
    assert _take_now(schedule) is None
    schedule.done(first, requested=True)
    clock.advance(2.9)
    assert _take_now(schedule) is None
    clock.advance(0.2)
    assert _url(_take_now(schedule)) == B + "1"


@pytest.mark.parametrize("told_by", ["the server", "their answers"])
def test_hosts_that_turn_out_to_share_an_address_share_the_delay(
    schedule: Schedule, clock: ManualClock, told_by: str
) -> None:
    _add(schedule, [A + "1", A + "2", B + "1", B + "2"], _share(A), _share(B))
    first, second = _took(schedule), _took(schedule)
    if told_by == "the server":
        _add(schedule, [], _at(A, "10.0.0.1"), _at(B, "10.0.0.1"), job="2")
    else:
        schedule.locate(host_of(A), "10.0.0.1")
        schedule.locate(host_of(B), "10.0.0.1")
    schedule.done(first, requested=True)
    clock.advance(1.1)
    assert _take_now(schedule) is None, "the request to the other host is still under way"
    schedule.done(second, requested=True)
    clock.advance(1.1)
    third = _took(schedule)
    clock.advance(9.0)
    assert _take_now(schedule) is None
    schedule.done(third, requested=True)
    clock.advance(1.1)
    assert {_url(third), _url(_take_now(schedule))} == {A + "2", B + "2"}


def test_a_server_that_does_not_know_the_address_yet_does_not_part_hosts(schedule: Schedule) -> None:
    _add(schedule, [A + "1", B + "1"], _share(A), _share(B))
    schedule.locate(host_of(A), "10.0.0.1")
    schedule.locate(host_of(B), "10.0.0.1")
    schedule.locate("nobody.test", "10.0.0.1")
    _add(schedule, [A + "2", B + "2"], _at(A, host_of(A)), _at(B, host_of(B)), job="2")
    _took(schedule)
    assert _take_now(schedule) is None


def test_a_host_that_moves_takes_its_own_delay_along_and_nothing_of_others(
    schedule: Schedule, clock: ManualClock
) -> None:
    _add(schedule, [A + "1", A + "2", B + "1"], _at(A, "10.0.0.1"), _at(B, "10.0.0.1"))
    first = _took(schedule)
    schedule.hold(host_of(A), 0.0, delay_seconds=30.0)
    schedule.locate(host_of(A), "10.0.0.2")
    assert _url(_take_now(schedule)) == B + "1", "it is alone there now"
    schedule.done(first, requested=True)
    clock.advance(29.0)
    assert _take_now(schedule) is None
    clock.advance(1.1)
    assert _url(_take_now(schedule)) == A + "2"


def test_what_a_host_asked_for_outlives_a_new_job(schedule: Schedule, clock: ManualClock) -> None:
    _add(schedule, [A + "1", A + "2"], _share(A, 1.0))
    first = _took(schedule)
    schedule.hold(host_of(A), 0.0, delay_seconds=30.0)
    _add(schedule, [A + "3"], _share(A, 1.0), job="2")
    schedule.done(first, requested=True)
    clock.advance(29.0)
    assert _take_now(schedule) is None


@pytest.mark.parametrize("connections", [1, 3])
def test_many_threads_never_ask_a_host_too_often(connections: int) -> None:
    delay, hosts, each = 0.01, 5, 12
    schedule = Schedule(SystemClock())
    urls = [f"http://host-{number % hosts}.test/{number}" for number in range(hosts * each)]
    lock = threading.Lock()
    under_way: defaultdict[str, int] = defaultdict(int)
    marks: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    asked: list[str] = []
    wrong: list[str] = []

    def work(chance: random.Random) -> None:
        while (taken := schedule.take()) is not None:
            url = taken.visit.task.url
            host = host_of(url)
            with lock:
                start = time.monotonic()
                under_way[host] += 1
                if under_way[host] > connections:
                    wrong.append(f"{under_way[host]} at once on {host}")
            threading.Event().wait(chance.uniform(0, 0.004))
            again = chance.random() < 0.2
            with lock:
                under_way[host] -= 1
                marks[host].append((start, time.monotonic()))
                if not again:
                    asked.append(url)
            if again:
                schedule.again(taken, requested=True)
            else:
                schedule.done(taken, requested=True)
            if len(asked) == len(urls):
                schedule.close()

    threads = [threading.Thread(target=work, args=(random.Random(seed),)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for start in range(0, len(urls), 20):
        part = urls[start : start + 20]
        schedule.add(tickets(part), [_share(url, delay, connections) for url in part])
    for thread in threads:
        thread.join(60)
    assert sorted(asked) == sorted(urls)
    assert not wrong
    if connections == 1:
        for times in marks.values():
            times.sort()
            assert all(later[0] - earlier[1] >= delay for earlier, later in pairwise(times))

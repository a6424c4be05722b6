"""Sharing hosts out: who has nothing to do gets as many as the others, soon, and nothing goes to and fro."""

from collections.abc import Collection

import pytest

from common.urls import host_of
from common.wire import Outcome
from server.frontier.frontier import Leased
from tests.frontier import Case, Make, pages, urls_of

pytestmark = pytest.mark.contract


class Worker:
    """A client: what it has, by job."""

    def __init__(self, case: Case, name: str) -> None:
        self.case, self.name = case, name
        self.jobs: dict[int, list[str]] = {}

    def ask(self) -> Leased:
        leased = self.case.lease(self.name)
        if leased.tasks:
            self.jobs[leased.job] = urls_of(leased)
        return leased

    def take_all(self) -> None:
        while self.ask().tasks:
            pass

    def hosts(self) -> set[str]:
        return {host_of(url) for urls in self.jobs.values() for url in urls}

    def give_back(self, hosts: Collection[str]) -> None:
        self._report({url for urls in self.jobs.values() for url in urls if host_of(url) in hosts}, Outcome.SKIPPED)

    def fetch_one_of_each(self) -> None:
        self._report({host_of(url): url for urls in self.jobs.values() for url in urls}.values(), Outcome.STORED)

    def _report(self, ended: Collection[str], outcome: Outcome) -> None:
        for job, urls in list(self.jobs.items()):
            self.case.report(self.name, job, {url: outcome for url in urls if url in ended})
            self.jobs[job] = [url for url in urls if url not in ended]
            if not self.jobs[job]:
                del self.jobs[job]


def add_hosts(case: Case, hosts: int, urls: int) -> None:
    case.add(*(url for number in range(hosts) for url in pages(f"h{number}", urls)))


@pytest.mark.parametrize(
    ("hosts", "clients", "expected"), [(6, 2, [3, 3]), (6, 4, [1, 1, 2, 2]), (3, 2, [1, 2]), (7, 3, [2, 2, 3])]
)
def test_who_comes_late_gets_a_share(frontiers: Make, hosts: int, clients: int, expected: list[int]) -> None:
    case = frontiers(delay_seconds=0.5)
    add_hosts(case, hosts, 60)
    workers = [Worker(case, f"worker-{number}") for number in range(clients)]
    for worker in workers:
        worker.take_all()
    assert [len(worker.hosts()) for worker in workers] == [hosts] + [0] * (clients - 1)
    for _ in range(clients):
        for worker in workers:
            worker.give_back(worker.ask().give_back)
            case.clock.advance(3)
            for other in workers:
                other.take_all()
    assert sorted(len(worker.hosts()) for worker in workers) == expected
    assert not any(worker.ask().give_back for worker in workers), "nothing goes to and fro"
    assert len(set().union(*(worker.hosts() for worker in workers))) == hosts, "and nothing is left lying"


def test_the_hosts_left_over_go_to_different_workers(frontiers: Make) -> None:
    """Of two processes each: two more hosts than processes are one for each worker."""
    case = frontiers(delay_seconds=0.5)
    add_hosts(case, 6, 60)
    workers = [Worker(case, name) for name in ("one-1", "one-2", "two-1", "two-2")]
    for _ in range(6):
        for worker in workers:
            worker.take_all()
            worker.give_back(worker.ask().give_back)
            case.clock.advance(3)
    has = {worker.name: len(worker.hosts()) for worker in workers}
    assert has["one-1"] + has["one-2"] == has["two-1"] + has["two-2"] == 3


def test_the_only_host_stays_where_it_is(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0.5)
    case.add(*pages("a", 50))
    one, two = Worker(case, "one"), Worker(case, "two")
    one.take_all()
    two.take_all()
    assert not one.ask().give_back


def test_a_host_whose_connections_can_be_shared_is_not_asked_back(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0.0, connections_per_host=4)
    add_hosts(case, 2, 400)
    one, two = Worker(case, "one"), Worker(case, "two")
    one.take_all()
    two.take_all()
    assert not one.ask().give_back


def test_what_is_beyond_the_share_is_not_refilled(frontiers: Make) -> None:
    """By a client that gives nothing back: then it runs dry, and nobody starves."""
    case = frontiers(delay_seconds=1.0, lease_seconds=40.0)
    add_hosts(case, 4, 400)
    one, two = Worker(case, "one"), Worker(case, "two")
    one.take_all()
    for _ in range(120):
        one.fetch_one_of_each()
        case.clock.advance(1)
        one.take_all()
        two.take_all()
    assert len(two.hosts()) == 2

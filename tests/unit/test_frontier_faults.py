"""The frontier when things go wrong: any order of calls, many threads, writes that fail, kill -9."""

import random
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from common.wire import HostFact, Outcome
from server.frontier.frontier import FrontierError, Rules
from server.frontier.records import State
from server.frontier.rocks import RocksStore
from server.frontier.store import StoreError, Table
from tests.frontier import Case, Make, pages, urls_of
from tests.frontier_faults import FailingStore, run_failing
from tests.processes import running

# --- any order of calls


class Clients:
    """Calls the frontier at random, and remembers which job each URL is out with."""

    def __init__(self, case: Case, seed: int) -> None:
        self.case = case
        self.random = random.Random(seed)
        self.jobs: dict[int, tuple[str, list[str]]] = {}

    def step(self) -> None:
        steps = [self.add, self.lease, self.lease, self.report, self.report, self.renew, self.release, self.wait]
        self.random.choice([*steps, self.case.reopen])()
        self.case.audit()

    def urls(self, most: int) -> list[str]:
        hosts = [f"http://h{self.random.randrange(8)}/" for _ in range(self.random.randint(1, most))]
        return [f"{host}{self.random.randrange(40)}" for host in hosts]

    def add(self) -> None:
        self.case.add(*self.urls(10), depth=self.random.randrange(4))

    def lease(self) -> None:
        client = self.random.choice("abc")
        leased = self.case.lease(client, str(self.random.randrange(3)), self.random.randint(1, 12))
        if not leased.tasks:
            return
        self.jobs[leased.job] = (client, urls_of(leased))
        for url in urls_of(leased):
            found = self.case.frontier.explain(url)
            assert (found.state, found.job) == ("leased", leased.job)

    def any_job(self) -> tuple[int, str, list[str]]:
        if not self.jobs:
            return 1, "a", ["http://h1/1"]
        job = self.random.choice(list(self.jobs))
        return job, *self.jobs[job]

    def report(self) -> None:
        job, client, urls = self.any_job()
        some = self.random.sample(urls, self.random.randint(0, len(urls)))
        outcomes = {url: self.random.choice(list(Outcome)) for url in some}
        facts = [HostFact("h1", "", self.random.choice([-1.0, 0.0, 7.0]), self.random.choice([0.0, 0.0, 20.0]))]
        try:
            self.case.report(client, job, outcomes, self.urls(5), facts, size=1)
        except FrontierError:
            assert not self.jobs

    def renew(self) -> None:
        job, client, _ = self.any_job()
        with suppress(FrontierError):  # it may have ended
            self.case.frontier.renew(client, job)

    def release(self) -> None:
        job, client, _ = self.any_job()
        self.case.frontier.release(client, job)

    def wait(self) -> None:
        self.case.clock.advance(self.random.choice([0.5, 5, 50, 500]))


@pytest.mark.parametrize("seed", range(8))
def test_any_order_of_calls(frontiers: Make, seed: int) -> None:
    case = frontiers(retry_wait_seconds=3, lease_seconds=100, connections_per_host=1 + seed % 3, delay_seconds=seed % 2)
    clients = Clients(case, seed)
    for _ in range(120):
        clients.step()
    case.clock.advance(1000)  # what is still out comes back
    case.drain()
    totals = case.audit()
    assert totals.queued == totals.leased == 0
    assert totals.known > 50


# --- threads


def crawl(case: Case, name: str, taken: list[str], all_added: threading.Event) -> None:
    for number in range(25):
        case.add(*(f"http://h{host}/{name}/{number}" for host in range(6)))
        leased = case.lease(name, f"{number}", 20)
        taken += urls_of(leased)
        if leased.tasks:
            case.finish(name, leased)
    all_added.set()


def test_many_threads_never_get_the_same_url(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0, connections_per_host=8)
    taken: list[list[str]] = [[] for _ in range(8)]
    ended = [threading.Event() for _ in range(8)]
    threads = [threading.Thread(target=crawl, args=(case, f"w{i}", taken[i], ended[i])) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(event.is_set() for event in ended)
    handed_out = Counter(url for urls in (*taken, case.drain()) for url in urls)
    assert len(handed_out) == 8 * 25 * 6
    assert set(handed_out.values()) == {1}
    assert case.audit().stored == 8 * 25 * 6


# --- writes that fail


def short_run(case: Case) -> list[Callable[[], object]]:
    """A crawl with every verb. Each step can be repeated, as a client repeats a call that got a fault."""
    return [
        lambda: case.add("http://a/0", "http://b/0", start=True),
        lambda: case.lease("x", "1"),
        lambda: case.report("x", 1, {"http://a/0": Outcome.STORED}, [*pages("a", 4), *pages("c", 3)], size=10),
        lambda: case.lease("y", "1"),
        lambda: case.frontier.renew("y", 2),
        lambda: case.report("x", 1, {"http://b/0": Outcome.TIMEOUT}, ["http://d/0"]),
        lambda: case.frontier.release("y", 2),
        lambda: case.clock.advance(40),
        lambda: case.lease("x", "2"),  # wakes b up
        lambda: case.report("x", 3, {"http://c/0": Outcome.NOT_FOUND}),
        lambda: case.clock.advance(400),
        lambda: case.frontier.expire(),
        lambda: case.drain(),
    ]


def run(folder: Path, failing: int, failing_sync: int = 0) -> tuple[Case, FailingStore]:
    return run_failing(folder, Rules(), short_run, failing, failing_sync)


@pytest.mark.faults
def test_every_write_can_fail(tmp_path: Path) -> None:
    case, store = run(tmp_path / "sound", 0)
    expected = case.frontier.totals()
    urls = [*pages("a", 4), *pages("b", 1), *pages("c", 3), *pages("d", 1)]
    states = [case.state(url) for url in urls]
    case.close()
    assert expected.done == 8
    assert expected.failed == 1
    assert store.writes > 12
    for failing in range(2, store.writes + 1):  # the first one marks a new store: there is nothing to lose yet
        case, _ = run(tmp_path / str(failing), failing)
        assert case.frontier.totals() == expected, failing
        assert [case.state(url) for url in urls] == states, failing
        case.reopen()
        assert case.audit().known == len(urls)
        case.close()


@pytest.mark.faults
def test_every_sync_can_fail(tmp_path: Path) -> None:
    """The call was carried out, and its caller does not know: it repeats the call."""
    case, store = run(tmp_path / "sound", 0)
    expected = case.frontier.totals()
    case.close()
    assert store.syncs > 10
    for failing in range(1, store.syncs + 1):
        case, _ = run(tmp_path / str(failing), 0, failing)
        totals = case.frontier.totals()
        ended = (totals.known, totals.done + totals.failed, totals.queued, totals.leased, totals.size)
        assert ended == (expected.known, expected.done + expected.failed, 0, 0, expected.size), failing
        case.reopen()
        assert case.audit() == totals
        case.close()


def test_a_host_whose_first_write_failed_gets_no_other_hosts_number(tmp_path: Path) -> None:
    failing = iter([3, 0])
    case = Case(tmp_path, make=lambda folder: FailingStore(RocksStore(folder), next(failing)))
    case.add("http://a/")
    with pytest.raises(StoreError):
        case.add("http://lost/")
    case.add("http://b/")
    case.reopen()
    case.add("http://c/")
    case.audit()
    assert sorted(case.drain()) == ["http://a/", "http://b/", "http://c/"]
    case.close()


def test_a_frontier_that_cannot_be_written_is_closed_all_the_same(tmp_path: Path) -> None:
    store = FailingStore(RocksStore(tmp_path), 0)
    case = Case(tmp_path, make=lambda _: store)
    case.add("http://a/")
    store.fail_at_sync(store.syncs + 1)
    with pytest.raises(StoreError, match="input/output error"):
        case.frontier.close()
    RocksStore(tmp_path).close()  # nobody has it any more


def test_a_frontier_of_another_version_is_left_alone(tmp_path: Path) -> None:
    store = RocksStore(tmp_path)
    store.write([(Table.META, b"format", b"1")])
    store.close()
    with pytest.raises(FrontierError, match="written by another version"):
        Case(tmp_path)


# --- kill -9

CRAWL = """
import sys
from pathlib import Path
from tests.frontier import Case, Rules, pages, urls_of

case = Case(Path(sys.argv[1]), Rules(delay_seconds=0, durability=sys.argv[2]))
for number in range(10_000):
    print("added", *[url for url in pages(f"h{number % 7}-{number}", 5) if case.add(url)])
    leased = case.lease("a", str(number), 8)
    print("leased", leased.job, *urls_of(leased))
    if number % 3:
        case.finish("a", leased)
        print("done", *urls_of(leased))
    print("round", number)
"""


@pytest.mark.parametrize(("rounds", "durability"), [(1, "full"), (7, "full"), (30, "full"), (30, "normal")])
def test_kill_9_loses_nothing_that_was_answered(tmp_path: Path, rounds: int, durability: str) -> None:
    with running(["-c", CRAWL, tmp_path, durability], ready=rf"^round {rounds}$") as program:
        program.kill()
    expected: dict[str, State] = {}
    for line in program.output().rpartition("\n")[0].splitlines():
        word, *urls = line.split()
        state = {"added": State.QUEUED, "leased": State.LEASED, "done": State.DONE}.get(word)
        if state is not None:
            expected |= dict.fromkeys((url for url in urls if url.startswith("http")), state)
    case = Case(tmp_path)
    case.audit()
    order = [State.QUEUED, State.LEASED, State.DONE]  # the call that the kill cut off may have gone on
    for url, state in expected.items():
        found = case.state(url)
        assert found is not None
        assert order.index(found) >= order.index(state)
    case.close()


def test_normal_durability_leaves_syncing_to_the_tick(tmp_path: Path) -> None:
    store = FailingStore(RocksStore(tmp_path), 0)
    case = Case(tmp_path, Rules(durability="normal"), make=lambda folder: store)
    case.add("http://a/0", "http://b/0")
    case.finish("a", case.lease("a"))
    case.frontier.pause(True)
    assert store.syncs == 0
    case.frontier.tick()
    assert store.syncs == 1
    case.close()

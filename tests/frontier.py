"""A frontier under test: opens it, opens it again as after a crash, and audits every record of its store."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from common.clock import ManualClock
from common.urls import host_of
from common.wire import FoundUrl, HostFact, Outcome, Report, Totals, UrlResult
from server.frontier.change import TOTALS_KEY
from server.frontier.frontier import Frontier, Leased, Rules, Settled
from server.frontier.records import Entry, HostRecord, Place, State, UrlState, unpack_placed, unpack_totals
from server.frontier.rocks import RocksStore
from server.frontier.store import Store, Table
from server.policy.scope import Policy

STATES = ("queued", "leased", "done", "failed", "excluded")


@dataclass
class Case:
    """One work folder, with the frontier that is open on it now. A second store only needs another `make`."""

    folder: Path
    rules: Rules = field(default_factory=Rules)
    policy: Policy = field(default_factory=Policy)
    make: Callable[[Path], Store] = RocksStore
    clock: ManualClock = field(default_factory=ManualClock)

    def __post_init__(self) -> None:
        self._drained = 0  # so that `drain` can go on after a failure
        self._open()

    def _open(self) -> None:
        self.store = self.make(self.folder)
        self.frontier = Frontier(self.store, self.policy, self.rules, self.clock)

    def reopen(self) -> None:
        """As after a crash: nothing is said to the frontier, its memory is gone."""
        self.store.close()
        self._open()

    def close(self) -> None:
        self.store.close()

    # --- shorthands: what tests do all the time

    def add(self, *urls: str, depth: int = 0, hops: int = 0, start: bool = False) -> int:
        return self.frontier.add([FoundUrl(url, depth, hops) for url in urls], start)

    def lease(self, client: str = "a", request: str = "", wanted: int = 100) -> Leased:
        return self.frontier.lease(client, request, wanted)

    def report(
        self, client: str, job: int, outcomes: dict[str, Outcome], found: Iterable[str] = (),
        hosts: Iterable[HostFact] = (), size: int = 0,
    ) -> Settled:  # fmt: skip
        results = [UrlResult(url, outcome) for url, outcome in outcomes.items()]
        links = [FoundUrl(url, 1) for url in found]
        return self.frontier.report(client, job, Report(str(job), results, links, list(hosts), size))

    def finish(self, client: str, leased: Leased, outcome: Outcome = Outcome.STORED) -> Settled:
        """Report the whole job with one outcome."""
        return self.report(client, leased.job, dict.fromkeys(urls_of(leased), outcome))

    def state(self, url: str) -> State | None:
        found = self.frontier.state_of(url)
        return found.state if found else None

    def audit(self) -> Totals:
        """The audited totals, which must also be those in memory."""
        totals = audit(self.store)
        seen = self.frontier.totals()
        assert [getattr(seen, name) for name in STATES] == [getattr(totals, name) for name in STATES]
        assert (seen.stored, seen.sent, seen.size) == (totals.stored, totals.sent, totals.size)
        return totals

    def drain(self, client: str = "drain", limit: int = 1000) -> list[str]:
        """Crawl all that is left, moving the clock; returns the URLs in the order in which they were handed out."""
        order: list[str] = []
        for _ in range(limit):
            leased = self.lease(client, f"drain {self._drained}")
            if leased.finished:
                return order
            order += urls_of(leased)
            if leased.tasks:
                self.finish(client, leased)
                self._drained += 1
            else:
                self.clock.advance(leased.wait_seconds)
        raise AssertionError(f"never finished: {self.frontier.totals()}")


Make = Callable[..., Case]  # of the fixture `frontiers`: a policy, and rules by name


def pages(host: str, number: int) -> list[str]:
    return [f"http://{host}/{i}" for i in range(number)]


def urls_of(leased: Leased) -> list[str]:
    return [task.url for task in leased.tasks]


def audit(store: Store) -> Totals:
    """Check that every URL has exactly the record of its state, that nothing else is there, and all counters."""
    urls = {key: UrlState.unpacked(value) for key, value in store.scan(Table.URLS)}
    hosts = {int.from_bytes(k, "big"): HostRecord.unpacked(k, v) for k, v in store.scan(Table.HOSTS)}
    placed = [*_queued(store, urls), *_elsewhere(store, urls, Table.WAITING), *_elsewhere(store, urls, Table.LEASED)]
    failed = {key for key, _ in store.scan(Table.FAILED)}
    assert failed == {key for key, state in urls.items() if state.state is State.FAILED}
    jobs = {int.from_bytes(key, "big") for key, _ in store.scan(Table.JOBS)}
    assert jobs == {state.number for state in urls.values() if state.state is State.LEASED}
    states = Counter(state.state for state in urls.values())
    assert len(placed) == states[State.QUEUED] + states[State.WAITING] + states[State.LEASED]
    _check_hosts(hosts, placed)
    return _checked_totals(store, states, hosts, len(urls))


_Placed = tuple[State, Place, Entry]


def _queued(store: Store, urls: dict[bytes, UrlState]) -> Iterable[_Placed]:
    for where, packed in store.scan(Table.QUEUE):
        entry, place = Entry.unpacked(packed), Place.unpacked(where)
        assert urls[entry.key].state is State.QUEUED
        assert urls[entry.key].place == place
        yield State.QUEUED, place, entry


def _elsewhere(store: Store, urls: dict[bytes, UrlState], table: Table) -> Iterable[_Placed]:
    expected = State.WAITING if table is Table.WAITING else State.LEASED
    for where, packed in store.scan(table):
        place, rest = unpack_placed(packed)
        entry = Entry.unpacked(rest)
        assert where[8:] == entry.key
        assert urls[entry.key] == UrlState(expected, int.from_bytes(where[:8], "big"))
        yield expected, place, entry


def _check_hosts(hosts: dict[int, HostRecord], placed: Iterable[_Placed]) -> None:
    counts: Counter[tuple[State, int]] = Counter()
    for state, place, entry in placed:
        record = hosts[place.host]
        assert record.name == host_of(entry.url)
        assert place.number < record.tail
        assert state is not State.QUEUED or place.number >= record.head, "would never be found again"
        counts[state, place.host] += 1
    assert len({record.name for record in hosts.values()}) == len(hosts)
    for host, record in hosts.items():
        assert record.waiting == counts[State.WAITING, host]
        assert record.queued == counts[State.QUEUED, host] + record.waiting
        assert record.leased == counts[State.LEASED, host]


def _checked_totals(
    store: Store, states: Counter[State], hosts: dict[int, HostRecord], known: int
) -> Totals:
    packed = store.get(Table.META, TOTALS_KEY)
    totals = unpack_totals(packed) if packed else Totals()
    assert totals.known == known
    assert totals.queued == states[State.QUEUED] + states[State.WAITING]
    for state in (State.LEASED, State.DONE, State.FAILED, State.EXCLUDED):
        assert getattr(totals, state.name.lower()) == states[state]
    for name in STATES:
        assert getattr(totals, name) == sum(getattr(record, name) for record in hosts.values()), name
    assert totals.stored <= totals.done
    return totals

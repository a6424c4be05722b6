"""One atomic move of many URLs: collects the writes and the new counters, touches memory only when all is written."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from common.wire import Totals
from server.frontier.records import (
    Entry,
    HostRecord,
    Place,
    State,
    UrlState,
    host_key,
    job_key,
    pack_placed,
    pack_totals,
    waiting_key,
)
from server.frontier.store import Table, Write

TOTALS_KEY = b"totals"

_COUNTED_AS = {
    State.QUEUED: "queued",
    State.WAITING: "queued",
    State.LEASED: "leased",
    State.DONE: "done",
    State.FAILED: "failed",
    State.EXCLUDED: "excluded",
}


class Change:
    """Used by one thread, within one verb of the frontier. `hosts` and `totals` are read by it, never altered."""

    def __init__(self, hosts: Mapping[int, HostRecord], totals: Totals) -> None:
        self.writes: list[Write] = []
        self.hosts: dict[int, HostRecord] = {}
        self._old_hosts = hosts
        self._totals = totals
        self._deltas: Counter[str] = Counter()

    def host(self, host: int) -> HostRecord:
        """The host as it will be after this change."""
        return self.hosts[host] if host in self.hosts else self._old_hosts[host]

    def put_host(self, record: HostRecord) -> None:
        self.hosts[record.id] = record

    def count(self, name: str, number: int = 1) -> None:
        """Add to one of the totals that are not states."""
        self._deltas[name] += number

    def move(self, host: int, before: State | None, after: State) -> None:
        """Count a URL of `host` in its new state."""
        record = self.host(host)
        counts = {_COUNTED_AS[after]: getattr(record, _COUNTED_AS[after]) + 1}
        self._deltas[_COUNTED_AS[after]] += 1
        if before is not None:
            name = _COUNTED_AS[before]
            counts[name] = counts.get(name, getattr(record, name)) - 1
            self._deltas[name] -= 1
        self.hosts[host] = replace(record, **counts)

    def count_waiting(self, host: int, number: int) -> None:
        record = self.host(host)
        self.hosts[host] = replace(record, waiting=record.waiting + number)

    def set_state(self, key: bytes, state: UrlState) -> None:
        self.writes.append((Table.URLS, key, state.packed()))

    def append(self, host: int, entry: Entry) -> None:
        """Queue an entry behind all others of its host. The caller counts it."""
        record = self.host(host)
        self.enqueue(Place(host, record.tail), entry.key, entry.packed())
        self.hosts[host] = replace(record, tail=record.tail + 1)

    def put_back(self, place: Place, key: bytes, entry: bytes, job: int) -> None:
        """Queue an entry where it stood before `job` took it; a late report of that job is recognised by it."""
        record = self.host(place.host)
        self.enqueue(place, key, entry, job)
        self.hosts[place.host] = replace(record, head=min(record.head, place.number))

    def enqueue(self, place: Place, key: bytes, entry: bytes, job: int = 0) -> None:
        self.writes.append((Table.QUEUE, place.packed(), entry))
        self.set_state(key, UrlState.queued(place, job))

    def wait(self, due: float, place: Place, entry: Entry) -> None:
        """Set an entry aside until `due`. The caller counts it."""
        self.count_waiting(place.host, 1)
        self.writes.append((Table.WAITING, waiting_key(due, entry.key), pack_placed(place, entry.packed())))
        self.set_state(entry.key, UrlState(State.WAITING, int(due * 1000)))

    def lease(self, job: int, place: Place, entry: bytes, key: bytes) -> None:
        self.writes.append((Table.QUEUE, place.packed(), None))
        self.writes.append((Table.LEASED, job_key(job) + key, pack_placed(place, entry)))
        self.set_state(key, UrlState(State.LEASED, job))

    def delete(self, table: Table, key: bytes) -> None:
        self.writes.append((table, key, None))

    def put(self, table: Table, key: bytes, value: bytes) -> None:
        self.writes.append((table, key, value))

    @property
    def totals(self) -> Totals:
        """The totals as they will be after this change."""
        new = {name: getattr(self._totals, name) + delta for name, delta in self._deltas.items()}
        return replace(self._totals, **new)

    def finished(self) -> list[Write]:
        """All writes, with hosts and totals."""
        hosts: list[Write] = [(Table.HOSTS, host_key(host), record.packed()) for host, record in self.hosts.items()]
        return [*self.writes, *hosts, (Table.META, TOTALS_KEY, pack_totals(self.totals))]

"""Makes counters right again from the records they count. For a store that no frontier has open."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from common.wire import Totals
from server.frontier import redating
from server.frontier.change import TOTALS_KEY, pack_totals, unpack_totals
from server.frontier.hosts import Host
from server.frontier.records import Place, State, UrlState, unpack_entry, unpack_place, unpack_tasks
from server.frontier.store import Store, Table, Write

_BATCH = 5_000  # writes
_COUNTERS = (
    "known", "queued", "waiting", "leased", "done", "stored", "failed", "excluded", "again", "again_waiting",
    "again_leased", "sitemaps",
)  # fmt: skip
_OF_HOSTS = ("waiting", "again_waiting", "sitemaps")  # no totals of these
_NAMES = {
    State.QUEUED: ("queued",), State.WAITING: ("queued", "waiting"), State.LEASED: ("leased",), State.DONE: ("done",),
    State.FAILED: ("failed",), State.EXCLUDED: ("excluded",),
}  # fmt: skip
_AGAIN_NAMES = {State.QUEUED: ("again",), State.WAITING: ("again", "again_waiting"), State.LEASED: ("again_leased",)}

_Counts = Counter[tuple[str, int]]  # counter, host


def recount(store: Store) -> list[str]:
    """Correct the counters of hosts and the totals, and when pages are due again; says what was wrong. If it is
    interrupted, run it again."""
    counts = _counted(store)
    mended = []
    if redated := redating.mend(store):
        mended.append(f"{redated} pages: when they are visited again")
    writes: list[Write] = []
    for key, value in store.scan(Table.HOSTS):
        host = Host.unpacked(key, value)
        told = {name: getattr(host, name) for name in _COUNTERS}
        real = {name: counts[name, host.id] for name in _COUNTERS}
        if told != real:
            wrong = ", ".join(f"{name} {told[name]} -> {real[name]}" for name in real if told[name] != real[name])
            mended.append(f"{host.name}: {wrong}")
        writes += _mended(store, key, value, host, real)
        if len(writes) > _BATCH:
            store.write(writes)
            writes.clear()
    packed = store.get(Table.META, TOTALS_KEY)
    told_totals = unpack_totals(packed) if packed else Totals()
    totals = _totals(store, counts, told_totals)
    if totals != told_totals:
        mended.append("totals")
    store.write([*writes, (Table.META, TOTALS_KEY, pack_totals(totals))])
    store.sync()
    return mended


def _counted(store: Store) -> _Counts:
    leased = {
        unpack_entry(task.entry).key
        for key, _ in store.scan(Table.JOBS)
        for task in unpack_tasks(store.get(Table.TASKS, key) or b"")
    }
    counts: _Counts = Counter()
    for key, value in store.scan(Table.URLS):
        state = UrlState.unpacked(value)
        kind = State.LEASED if state.state is State.QUEUED and key in leased else state.state
        for name in ("known", *_NAMES[kind]):
            counts[name, state.place.host] += 1
        for name in _AGAIN_NAMES.get(kind, ()) if state.is_apart else ():
            counts[name, state.place.host] += 1
        counts["stored", state.place.host] += state.has_page
        counts["sitemaps", state.place.host] += state.is_sitemap
    return counts


def _mended(store: Store, key: bytes, value: bytes, host: Host, real: dict[str, int]) -> Iterator[Write]:
    for name, number in real.items():
        setattr(host, name, number)
    start, end = Place(host.id, 0).packed(), Place(host.id + 1, 0).packed()
    for where, _ in islice(store.scan(Table.QUEUE, start, end), 1):
        host.head = min(host.head, unpack_place(where).number)
    if host.packed() != value:
        yield Table.HOSTS, key, host.packed()
    if (store.get(Table.ACTIVE, key) is not None) != host.is_active:
        yield Table.ACTIVE, key, b"" if host.is_active else None
    if store.get(Table.NAMES, host.name.encode()) != key:
        yield Table.NAMES, host.name.encode(), key


def _totals(store: Store, counts: _Counts, told: Totals) -> Totals:
    sums: Counter[str] = Counter()
    for (name, _), number in counts.items():
        sums[name] += number
    fields = {name: sums[name] for name in _COUNTERS if name not in _OF_HOSTS}
    return replace(told, **fields, hosts=sum(1 for _ in store.scan(Table.HOSTS)))

"""Puts all that is queued into the order of another traversal. For a store that no frontier has open yet.

Each batch is one atomic write, and the traversal is noted at the end: if it is interrupted, the next start does the
rest. What is leased or waits for another try gets its new place when it comes back.
"""

import logging
from collections.abc import Iterator
from itertools import islice

from server.frontier.hosts import Host
from server.frontier.order import Order
from server.frontier.records import Place, State, UrlState, host_key, unpack_entry, unpack_place
from server.frontier.store import Store, Table, Write

TRAVERSAL_KEY = b"traversal"  # in the table META: what the queues are ordered by
_BATCH = 5_000  # entries

_log = logging.getLogger(__name__)


def reorder(store: Store, order: Order) -> None:
    """Does nothing if the queues have that order already."""
    if store.get(Table.META, TRAVERSAL_KEY) == order.traversal.encode():
        return
    moved, start = 0, b""
    while rows := list(islice(store.scan(Table.QUEUE, start), _BATCH)):
        start = rows[-1][0] + b"\0"  # entries that were put behind this come by again, and stay where they are
        writes = list(_moves(store, order, rows))
        store.write(writes)
        moved += len(writes)
    store.write([(Table.META, TRAVERSAL_KEY, order.traversal.encode())])
    store.sync()
    if moved:
        _log.info("what was queued is ordered anew: traversal = %s", order.traversal)


def _moves(store: Store, order: Order, rows: list[tuple[bytes, bytes]]) -> Iterator[Write]:
    entries = [(unpack_place(key), unpack_entry(value)) for key, value in rows]
    states = store.get_many(Table.URLS, [entry.key for _, entry in entries])
    hosts: set[int] = set()
    for (place, entry), packed in zip(entries, states, strict=True):
        number = order.kept(place.number, entry.depth)
        if number == place.number or packed is None:
            continue
        moved = Place(place.host, number)
        hosts.add(place.host)
        yield Table.QUEUE, place.packed(), None
        yield Table.QUEUE, moved.packed(), entry.packed()
        yield Table.URLS, entry.key, UrlState(State.QUEUED, moved, UrlState.unpacked(packed).lost_by).packed()
    for number in hosts:
        key = host_key(number)
        host = Host.unpacked(key, store.get(Table.HOSTS, key) or b"")
        host.head = 0
        yield Table.HOSTS, key, host.packed()

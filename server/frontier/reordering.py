"""Puts all that is queued into the order of another traversal. For a store that no frontier has open yet.

Each batch is one atomic write, and the traversal is noted at the end: if it is interrupted, the next start does the
rest. What is leased or waits for another try gets its new place when it comes back.
"""

import logging
from collections.abc import Iterator
from itertools import islice

from server.frontier.hosts import Host
from server.frontier.order import Order
from server.frontier.records import (
    depth_and_hops,
    host_key,
    key_of_entry,
    pack_place,
    unpack_place,
    url_of_entry,
    with_number,
)
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
    keys = [key_of_entry(entry, url_of_entry(entry)) for _, entry in rows]
    hosts: set[int] = set()
    for (where, entry), key, state in zip(rows, keys, store.get_many(Table.URLS, keys), strict=True):
        host, old = unpack_place(where)
        number = order.kept(old, depth_and_hops(entry)[0])
        if number == old or state is None:
            continue
        hosts.add(host)
        yield Table.QUEUE, where, None
        yield Table.QUEUE, pack_place(host, number), entry
        yield Table.URLS, key, with_number(state, number)
    for host in hosts:
        yield _without_head(store, host_key(host))


def _without_head(store: Store, key: bytes) -> Write:
    """The queue of the host is to be looked through from its beginning."""
    host = Host.unpacked(key, store.get(Table.HOSTS, key) or b"")
    host.head = 0
    return Table.HOSTS, key, host.packed()

"""What is queued, piece by piece, for an operator to read. Asks the store alone, so nobody waits for it.

Within a host the order is that in which URLs are taken: those of new pages, then what brings none (a job takes some of
each), then what waits for another try. What moves meanwhile may be missed, or be told twice.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from server.frontier.change import TOTALS_KEY, unpack_totals
from server.frontier.core import FrontierError
from server.frontier.hosts import Host
from server.frontier.records import Entry, Place, host_key, unpack_entry, unpack_place
from server.frontier.store import Store, Table

_TABLES = (Table.QUEUE, Table.AGAIN, Table.WAITING)
_MAX_LOOKED_AT = 5_000  # rows for one piece: what waits is not in order of hosts
_TIME_LENGTH = 8  # bytes in front of a place in the table WAITING
_CURSOR = re.compile(r"([0-2]):(\d{1,12}):((?:[0-9a-f]{2}){0,24})")


@dataclass(frozen=True, slots=True)
class QueuedUrl:
    """A URL that waits for its turn."""

    url: str
    depth: int
    tries: int
    kind: str  # page; again: a stored page; sitemap
    due: float = 0.0  # UTC; of one that waits for another try


@dataclass(frozen=True, slots=True)
class Piece:
    """Some of what is queued."""

    number: int  # in all
    urls: Sequence[QueuedUrl]
    rest: str  # where to go on; empty: that was all


class _Cursor(NamedTuple):
    """Where to go on."""

    table: int = 0  # position in _TABLES
    seen: int = 0  # of that table
    key: bytes = b""

    def written(self) -> str:
        return f"{self.table}:{self.seen}:{self.key.hex()}" if self.table < len(_TABLES) else ""


def queued(store: Store, name: str | None, after: str, limit: int) -> Piece:
    """The next URLs of a host, or of all hosts (None), at most `limit`. `after`: the `rest` of the piece before, or
    nothing. A piece may be empty and not the last."""
    cursor = _parsed(after)
    host = _host(store, name) if name is not None else None
    if name is not None and host is None:
        return Piece(0, [], "")
    found: list[QueuedUrl] = []
    room = _MAX_LOOKED_AT
    while cursor.table < len(_TABLES) and len(found) < limit and room:
        cursor, looked_at = _read(store, host, cursor, limit, room, found)
        room -= looked_at
    return Piece(_queued_in_all(store) if host is None else host.queued, found, cursor.written())


def _read(
    store: Store, host: Host | None, cursor: _Cursor, limit: int, room: int, found: list[QueuedUrl]
) -> tuple[_Cursor, int]:
    """Go on in one table; returns where to go on after that, and how many rows were looked at."""
    table = _TABLES[cursor.table]
    enough = min(limit, len(found) + _left(host, cursor))
    seen, looked_at = cursor.seen, 0
    for key, packed in _rows(store, table, host, cursor.key, enough - len(found)):
        looked_at += 1
        place, due = _place_and_due(table, key)
        if host is None or place.host == host.id:
            found.append(_told(unpack_entry(packed), due))
            seen += 1
        if len(found) >= enough or looked_at == room:
            return _Cursor(cursor.table, seen, key + b"\0"), looked_at
    return _Cursor(cursor.table + 1), looked_at


def _queued_in_all(store: Store) -> int:
    packed = store.get(Table.META, TOTALS_KEY)
    return unpack_totals(packed).queued if packed else 0


def _rows(store: Store, table: Table, host: Host | None, start: bytes, left: float) -> Iterator[tuple[bytes, bytes]]:
    """Never looking for more than there are: a scan that does passes all that was ever taken of other hosts."""
    if left <= 0:
        return iter(())
    if host is None or table is Table.WAITING:
        return store.scan(table, start)
    head = Place(host.id, host.head if table is Table.QUEUE else 0).packed()
    return store.scan(table, max(start, head), host_key(host.id + 1))


def _left(host: Host | None, cursor: _Cursor) -> float:
    """How many the table should still have."""
    if host is None:
        return inf
    counts: Mapping[Table, int] = {
        Table.QUEUE: host.ready - host.ready_again, Table.AGAIN: host.ready_again, Table.WAITING: host.waiting,
    }  # fmt: skip
    return counts[_TABLES[cursor.table]] - cursor.seen


def _place_and_due(table: Table, key: bytes) -> tuple[Place, float]:
    if table is not Table.WAITING:
        return unpack_place(key), 0.0
    return unpack_place(key[_TIME_LENGTH:]), int.from_bytes(key[:_TIME_LENGTH], "big") / 1000


def _told(entry: Entry, due: float) -> QueuedUrl:
    kind = "sitemap" if entry.is_sitemap else "again" if entry.is_again else "page"
    return QueuedUrl(entry.url, entry.depth, entry.tries, kind, due)


def _host(store: Store, name: str) -> Host | None:
    key = store.get(Table.NAMES, name.encode())
    packed = store.get(Table.HOSTS, key) if key else None
    return Host.unpacked(key, packed) if key and packed else None


def _parsed(after: str) -> _Cursor:
    if not after:
        return _Cursor()
    match = _CURSOR.fullmatch(after)
    if match is None:
        raise FrontierError(f"{after[:60]!r} is no place in the queue to go on from")
    return _Cursor(int(match[1]), int(match[2]), bytes.fromhex(match[3]))

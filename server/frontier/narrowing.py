"""Excludes what is queued and does not belong to the crawl any more, after its rules have changed.

Some of it at a time, each time in one atomic write. What is leased is left to its client.
"""

from itertools import islice

from common.urls import host_of
from server.frontier.change import Change
from server.frontier.core import Core
from server.frontier.records import unpack_entry, unpack_place
from server.frontier.store import Table

_BATCH = 5_000  # entries
_TIME_LENGTH = 8  # bytes in front of a place in the table WAITING


def narrow(core: Core) -> int:
    """Judges all that is queued or waits for another try; returns how many were excluded."""
    return sum(_narrow_table(core, table) for table in (Table.QUEUE, Table.WAITING))


def _narrow_table(core: Core, table: Table) -> int:
    excluded, start = 0, b""
    while rows := list(islice(core.store.scan(table, start), _BATCH)):
        start = rows[-1][0] + b"\0"
        change = Change()
        for key, packed in rows:
            excluded += _narrow_entry(core, change, table, key, packed)
        if change.writes:
            core.commit(change)
    return excluded


def _narrow_entry(core: Core, change: Change, table: Table, key: bytes, packed: bytes) -> bool:
    entry = unpack_entry(packed)
    # Stored already, or a sitemap; a start URL is always inside.
    if entry.is_apart or (entry.depth == 0 and entry.hops == 0):
        return False
    rule = core.policy.excluded_by(entry.url, host_of(entry.url), entry.depth, entry.hops)
    if not rule:
        return False
    waits = table is Table.WAITING
    host = change.touch(core.hosts.by_id(unpack_place(key[_TIME_LENGTH:] if waits else key).host))
    host.queued -= 1
    host.waiting -= waits
    change.counts["queued"] -= 1
    change.delete(table, key)
    change.exclude(host, entry.key, rule)
    return True

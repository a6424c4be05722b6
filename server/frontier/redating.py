"""Makes the due times of visits anew from the records of the pages: by another period, or because some are wrong.

For a store that no frontier has open. Each batch is one atomic write, and doing it again changes nothing.
"""

import json
import logging
from collections.abc import Iterator
from dataclasses import astuple, replace
from itertools import islice

from server.frontier.records import State, UrlState, Visit, due_key
from server.frontier.store import Store, Table, Write
from server.frontier.visits import Period

_PERIOD_KEY = b"period"  # in the table META: by what the due times were made, as JSON
_BATCH = 5_000  # pages

_log = logging.getLogger(__name__)


def redate(store: Store, period: Period) -> None:
    """Does nothing if the due times follow this period already. Without one they stay as they are."""
    noted = json.dumps(astuple(period)).encode()
    if not period.is_set or store.get(Table.META, _PERIOD_KEY) == noted:
        return
    if changed := mend(store, period):
        _log.info("the next visits of %d pages are due by the period that is set now", changed)
    store.write([(Table.META, _PERIOD_KEY, noted)])
    store.sync()


def mend(store: Store, period: Period | None = None) -> int:
    """Make due times agree with the records, and with the period if one is given; returns how many pages had others."""
    changed, start = 0, b""
    while rows := list(islice(store.scan(Table.VISITS, start), _BATCH)):
        start = rows[-1][0] + b"\0"
        states = store.get_many(Table.URLS, [key for key, _ in rows])
        writes: list[Write] = []
        for (key, value), packed in zip(rows, states, strict=True):
            more = list(_mended(store, key, Visit.unpacked(value), packed, period))
            changed += bool(more)
            writes += more
        store.write(writes)
    return changed + _drop_strays(store)


def _mended(store: Store, key: bytes, visit: Visit, packed: bytes | None, period: Period | None) -> Iterator[Write]:
    state = UrlState.unpacked(packed) if packed is not None else None
    has_date = visit.due > 0 and store.get(Table.DUE, due_key(visit.due, key)) is not None
    if state is None or not (state.has_page or state.is_sitemap):
        yield Table.VISITS, key, None
        if has_date:
            yield Table.DUE, due_key(visit.due, key), None
        return
    right = _dated(visit, state.state is State.DONE, period)
    if right != visit:
        yield Table.VISITS, key, right.packed()
    if has_date and right.due != visit.due:
        yield Table.DUE, due_key(visit.due, key), None
    if right.due and (not has_date or right.due != visit.due):
        yield Table.DUE, due_key(right.due, key), b""


def _dated(visit: Visit, is_done: bool, period: Period | None) -> Visit:
    interval = visit.interval if period is None else period.kept(visit.interval)
    if not is_done:
        return replace(visit, interval=interval, due=0)
    if interval == visit.interval and visit.due:
        return visit
    return replace(visit, interval=interval, due=int((visit.visited + interval) * 1000))


def _drop_strays(store: Store) -> int:
    """Due times that no record tells of."""
    dropped, start = 0, b""
    while rows := list(islice(store.scan(Table.DUE, start), _BATCH)):
        start = rows[-1][0] + b"\0"
        visits = store.get_many(Table.VISITS, [key[8:] for key, _ in rows])
        strays = [
            key
            for (key, _), value in zip(rows, visits, strict=True)
            if value is None or due_key(Visit.unpacked(value).due, key[8:]) != key
        ]
        store.write([(Table.DUE, key, None) for key in strays])
        dropped += len(strays)
    return dropped

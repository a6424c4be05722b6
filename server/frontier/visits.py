"""Pages that are visited again: what is known of each since its last visit, and when the next one is due.

Only what was stored once is visited again, and only with a period; without one nothing is written here.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

from common.wire import Outcome, UrlResult
from server.frontier.change import Change
from server.frontier.records import Entry, Visit, due_key
from server.frontier.store import Store, Table

_SHA1 = re.compile(r"[0-9a-f]{40}")
_MAX_ETAG, _MAX_DATE = 500, 60  # characters; half of a value would be another value, so longer ones are not kept
_ABSENT = (Outcome.NOT_FOUND, Outcome.REDIRECTED)
_CHANGED = (Outcome.STORED, Outcome.LISTED)
_CHANGED_FACTOR, _UNCHANGED_FACTOR = 0.5, 2.0
_NEVER = (1 << 63) - 1  # milliseconds
_NOWHERE = Visit("", 0, 0, 0.0, 0)


@dataclass(frozen=True, slots=True)
class Period:
    """How long after a visit the next one is due, in seconds."""

    fixed: float = 0.0  # 0: pages are not visited again, unless it is adaptive
    is_adaptive: bool = False
    shortest: float = 3_600.0  # the limits of an adaptive one
    longest: float = 2_592_000.0

    @property
    def is_set(self) -> bool:
        return self.is_adaptive or self.fixed > 0

    def first(self) -> float:
        """For a page that was stored for the first time."""
        return math.sqrt(self.shortest * self.longest) if self.is_adaptive else self.fixed

    def first_of_sitemap(self) -> float:
        """A sitemap is the cheapest way to learn what has changed, so it is read again soon, until it proves stale."""
        return self.shortest if self.is_adaptive else self.fixed

    def next(self, interval: float, outcome: Outcome) -> float:
        """After a visit, `interval` seconds after the one before.

        Halved by a change and doubled without one, it settles where every second visit finds a change. What is gone
        or moved is looked for as rarely as possible. A visit that failed says nothing about the page.
        """
        if self.is_adaptive and outcome in _ABSENT:
            return self.longest
        if outcome in _CHANGED:
            interval *= _CHANGED_FACTOR
        elif outcome is Outcome.UNCHANGED:
            interval *= _UNCHANGED_FACTOR
        return self.kept(interval)

    def kept(self, interval: float) -> float:
        """An interval that may come from another period, as this one allows it."""
        return min(max(interval, self.shortest), self.longest) if self.is_adaptive else self.fixed or interval


class Visits:
    """The frontier calls it under its lock."""

    def __init__(self, store: Store, period: Period) -> None:
        self.period = period
        self._store = store
        self._next_due = 0  # milliseconds; nothing is due before

    # --- when

    def next_due(self) -> float:
        """When the next visit is due, UTC; infinite if none is."""
        if not self.period.is_set:
            return math.inf
        for key in self._due(1):
            self._next_due = int.from_bytes(key[:8], "big")
            return self._next_due / 1000
        self._next_due = _NEVER
        return math.inf

    def due(self, until: float, limit: int) -> list[tuple[bytes, Visit]]:
        """Keys and records of the pages that are due, the first of them first."""
        if not self.period.is_set or self._next_due > until * 1000:
            return []
        rows = self._due(limit, int(until * 1000) + 1)
        if not rows:
            self.next_due()
        visits = self.of([row[8:] for row in rows])
        # The time of the row counts: where the record has another one, or is missing, an audit tells.
        return [
            (row[8:], replace(visits.get(row[8:], _NOWHERE), due=int.from_bytes(row[:8], "big"))) for row in rows
        ]

    def passed(self, until: int) -> None:
        """What was due before that time (in milliseconds) has been taken out."""
        self._next_due = max(self._next_due, until)

    def _due(self, limit: int, end: int | None = None) -> list[bytes]:
        # Not from the beginning: a scan passes all that was ever taken out, one by one.
        start = due_key(self._next_due, b"")
        rows = self._store.scan(Table.DUE, start, due_key(end, b"") if end is not None else None)
        return [key for key, _ in islice(rows, limit)]

    # --- what

    def of(self, keys: Sequence[bytes]) -> dict[bytes, Visit]:
        """Those of the pages that have a record."""
        found = zip(keys, self._store.get_many(Table.VISITS, keys), strict=True)
        return {key: Visit.unpacked(data) for key, data in found if data is not None}

    def begin(self, change: Change, key: bytes, entry: Entry, result: UrlResult, now: float) -> None:
        """A page was stored for the first time."""
        if self.period.is_set:
            visit = Visit(entry.url, entry.depth, entry.hops, self.period.first(), int(now))
            self._put(change, key, _learned(visit, result), now)

    def go_on(self, change: Change, key: bytes, entry: Entry, result: UrlResult, now: float) -> None:
        """Another visit has ended, or one of a sitemap."""
        visit = self.of([key]).get(key)
        if visit is None:
            if not self.period.is_set:
                return
            first = self.period.first_of_sitemap() if entry.is_sitemap else self.period.first()
            visit = Visit(entry.url, entry.depth, entry.hops, first, 0)
        elif entry.is_sitemap:  # it may have been a page
            visit = replace(visit, url=entry.url, depth=entry.depth, hops=entry.hops)
        interval, absent = self.period.next(visit.interval, result.outcome), visit.absent_since
        if result.outcome in _ABSENT:
            absent = absent or int(now)
        elif result.outcome in (*_CHANGED, Outcome.UNCHANGED):
            absent = 0
            visit = _learned(visit, result)
        self._put(change, key, replace(visit, interval=interval, absent_since=absent, visited=int(now)), now)

    def resume(self, change: Change, key: bytes) -> None:
        """It was queued, but not visited: it is due when it was before."""
        for visit in self.of([key]).values():
            self._put_due(change, key, visit, int((visit.visited + visit.interval) * 1000))

    def postpone(self, change: Change, key: bytes, visit: Visit, now: float) -> None:
        """It is due, but must not be visited now."""
        change.delete(Table.DUE, due_key(visit.due, key))
        self._put(change, key, visit, now)

    def hurry(self, change: Change, key: bytes, visit: Visit, due: float) -> None:
        """It has changed, so it is due at that time, UTC, or as soon after its last visit as an adaptive period allows;
        unless that is later than its own time."""
        soonest = visit.visited + self.period.shortest if self.period.is_adaptive else 0.0
        milliseconds = int(max(due, soonest) * 1000)
        if milliseconds < visit.due:
            change.delete(Table.DUE, due_key(visit.due, key))
            self._put_due(change, key, visit, milliseconds)

    def take(self, change: Change, key: bytes, visit: Visit) -> None:
        """It is queued now, so it is not due any more."""
        if visit.due:
            change.delete(Table.DUE, due_key(visit.due, key))
        change.put(Table.VISITS, key, replace(visit, due=0).packed())

    def end(self, change: Change, key: bytes) -> None:
        """It is not visited again: its page is gone from Pages/."""
        for visit in self.of([key]).values():
            change.delete(Table.VISITS, key)
            if visit.due:
                change.delete(Table.DUE, due_key(visit.due, key))

    def _put(self, change: Change, key: bytes, visit: Visit, now: float) -> None:
        self._put_due(change, key, visit, int((now + visit.interval) * 1000))

    def _put_due(self, change: Change, key: bytes, visit: Visit, due: int) -> None:
        self._next_due = min(self._next_due, due)
        change.put(Table.DUE, due_key(due, key), b"")
        change.put(Table.VISITS, key, replace(visit, due=due).packed())


def _learned(visit: Visit, result: UrlResult) -> Visit:
    """What the next request needs. 304 need not repeat what has not changed (RFC 9110 §15.4.5)."""
    is_silent = result.status == 304
    etag = result.etag if len(result.etag) <= _MAX_ETAG else ""
    modified = result.last_modified if len(result.last_modified) <= _MAX_DATE else ""
    sha1 = bytes.fromhex(result.sha1) if _SHA1.fullmatch(result.sha1) else b""
    if result.outcome is Outcome.UNCHANGED:
        sha1 = visit.sha1
    return replace(
        visit,
        etag=etag or (visit.etag if is_silent else ""),
        last_modified=modified or (visit.last_modified if is_silent else ""),
        sha1=sha1,
    )

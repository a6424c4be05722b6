"""Proves that the frontier's tables agree: every URL has exactly the record of its state, and all counters add up.

Reads a store and nothing else, in one pass over each table, with memory for the hosts and the leased URLs only.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice

from common.wire import Totals
from server.frontier import claims
from server.frontier.change import TOTALS_KEY, unpack_totals
from server.frontier.hosts import Host
from server.frontier.records import (
    Entry,
    Place,
    State,
    UrlState,
    Visit,
    due_key,
    unpack_entry,
    unpack_place,
    unpack_tasks,
    waiting_key,
)
from server.frontier.store import Store, Table

_BATCH = 5_000
_MAX_DIFFERENCES = 1_000  # that are told; a store that is beyond help must not fill the memory
_ENDED = (State.DONE, State.FAILED, State.EXCLUDED)

OnState = Callable[[bytes, UrlState], None]


@dataclass(slots=True)
class Findings:
    """The result of an audit. Without differences the frontier is in order."""

    totals: Totals = field(default_factory=Totals)
    states: Counter[State] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)  # the first ones
    number: int = 0  # of differences in all

    def expect(self, right: bool, difference: str) -> None:
        if not right:
            self.number += 1
            if self.number <= _MAX_DIFFERENCES:
                self.differences.append(difference)


def audit(store: Store, on_state: OnState = lambda key, state: None) -> Findings:
    """Check everything; `on_state` is told of each URL on the way."""
    return _Audit(store, on_state).run()


class _Audit:
    def __init__(self, store: Store, on_state: OnState) -> None:
        self._store = store
        self._on_state = on_state
        self._found = Findings()
        self._leased: dict[bytes, Place] = {}
        self._open: Counter[tuple[State, int]] = Counter()  # state, host; as the entries say
        self._ended: Counter[tuple[State, int]] = Counter()  # state, host; as the URLs say
        self._stored: Counter[int] = Counter()  # by host
        self._again: Counter[tuple[State, int]] = Counter()  # state, host; URLs that bring no new page, as they say
        self._revisited = 0  # pages that are visited again, as they say
        self._sitemaps: Counter[int] = Counter()  # by host

    def run(self) -> Findings:
        self._check_jobs()
        for rows in _batches(self._store.scan(Table.URLS)):
            self._check_urls([(key, UrlState.unpacked(value)) for key, value in rows])
        again = self._number_again(State.QUEUED)
        self._check_open(Table.QUEUE, State.QUEUED, self._found.states[State.QUEUED] - again)
        self._check_open(Table.AGAIN, State.QUEUED, again)
        self._check_open(Table.WAITING, State.WAITING, self._found.states[State.WAITING])
        self._check_visits()
        failed = sum(1 for _ in self._store.scan(Table.FAILED))
        self._found.expect(failed == self._found.states[State.FAILED], f"{failed} records of failed URLs")
        self._check_claims()
        self._check_hosts()
        self._check_totals()
        return self._found

    def _check_jobs(self) -> None:
        for key, _ in self._store.scan(Table.JOBS):
            for task in unpack_tasks(self._store.get(Table.TASKS, key) or b""):
                entry_key = unpack_entry(task.entry).key
                self._found.expect(entry_key not in self._leased, f"{entry_key.hex()} is in two jobs")
                self._leased[entry_key] = Place(task.host, task.number)
                self._open[State.LEASED, task.host] += 1
        for key, _ in self._store.scan(Table.TASKS):
            known = self._store.get(Table.JOBS, key) is not None
            self._found.expect(known, f"tasks without job {int.from_bytes(key, 'big')}")

    def _check_urls(self, rows: list[tuple[bytes, UrlState]]) -> None:
        """Count, and look for the one record that belongs to the state."""
        for key, state in rows:
            if state.state is State.QUEUED and key in self._leased:
                self._found.expect(self._leased.pop(key) == state.place, f"{key.hex()} is leased from another place")
                state = replace(state, state=State.LEASED)
            self._found.states[state.state] += 1
            self._on_state(key, state)
            self._stored[state.place.host] += state.has_page
            self._revisited += state.was_stored and not state.is_sitemap
            self._sitemaps[state.place.host] += state.is_sitemap
            if state.is_apart:
                self._again[state.state, state.place.host] += 1
            if state.state in _ENDED:
                self._ended[state.state, state.place.host] += 1
        failed = [key for key, state in rows if state.state is State.FAILED]
        for key, value in zip(failed, self._store.get_many(Table.FAILED, failed), strict=True):
            self._found.expect(value is not None, f"{key.hex()} failed for no reason")

    def _check_open(self, table: Table, state: State, expected: int) -> None:
        """Each entry must be the one that its URL points to; so the numbers of both tell whether one is missing."""
        number = 0
        for rows in _batches(self._store.scan(table)):
            entries = [(where, unpack_entry(value)) for where, value in rows]
            known = self._store.get_many(Table.URLS, [entry.key for _, entry in entries])
            for (where, entry), value in zip(entries, known, strict=True):
                number += 1
                place = unpack_place(where[-12:])
                self._open[state, place.host] += 1
                points = value is not None and _points(UrlState.unpacked(value), table, where, entry)
                self._found.expect(points, f"{entry.url} stands in {table.name.lower()} and should not")
        name = table.name.lower()
        self._found.expect(number == expected, f"{expected} URLs should stand in {name}, {number} do")

    def _check_visits(self) -> None:
        """A page that is visited again has a record, a sitemap can have one, and both have a due time while they are
        done; so the numbers tell what is missing."""
        again = due = 0
        for rows in _batches(self._store.scan(Table.VISITS)):
            known = self._store.get_many(Table.URLS, [key for key, _ in rows])
            visits = [(key, Visit.unpacked(value)) for key, value in rows]
            dates = self._store.get_many(Table.DUE, [due_key(visit.due, key) for key, visit in visits])
            for (_, visit), value, date in zip(visits, known, dates, strict=True):
                state = UrlState.unpacked(value) if value is not None else None
                is_right = state is not None and (state.has_page or state.is_sitemap)
                self._found.expect(is_right, f"{visit.url} is visited again and not stored")
                is_done = state is not None and state.state is State.DONE
                self._found.expect(is_done == (date is not None), f"{visit.url} is due and should not, or the reverse")
                again += state is not None and state.was_stored and not state.is_sitemap
                due += date is not None
        expected = self._revisited
        self._found.expect(again == expected, f"{expected} URLs are visited again, {again} have a record")
        rows_due = sum(1 for _ in self._store.scan(Table.DUE))
        self._found.expect(rows_due == due, f"{rows_due} visits are due, {due} of them have a record")

    def _check_claims(self) -> None:
        """What they say of a page stays when its URL is forgotten, so there is nothing to compare them with."""
        for key, value in self._store.scan(Table.CLAIMS):
            self._found.expect(claims.is_row(key, value), f"a row of claims is none: {key[:8].hex()}")

    def _check_hosts(self) -> None:
        self._found.expect(not self._leased, f"{len(self._leased)} URLs are leased and not known")
        sums: Counter[str] = Counter()
        active = {key for key, _ in self._store.scan(Table.ACTIVE)}
        names = {value: key for key, value in self._store.scan(Table.NAMES)}
        for key, value in self._store.scan(Table.HOSTS):
            host = Host.unpacked(key, value)
            for name in ("known", "queued", "leased", "done", "failed", "excluded", "again", "again_leased"):
                sums[name] += getattr(host, name)
            sums["hosts"] += 1
            self._found.expect(names.pop(key, b"").decode() == host.name, f"{host.name} cannot be found by its name")
            self._check_host(host, key in active)
            active.discard(key)
        self._found.expect(not active, f"{len(active)} hosts are active and not known")
        self._found.expect(not names, f"{len(names)} names of hosts that are not known")
        self._totals_of_hosts = sums

    def _check_host(self, host: Host, is_listed: bool) -> None:
        waiting, leased = self._open[State.WAITING, host.id], self._open[State.LEASED, host.id]
        queued = self._open[State.QUEUED, host.id] + waiting
        expect = self._found.expect
        expect(host.is_sound(), f"{host.name}: its counters do not add up to {host.known}")
        expect(host.queued == queued, f"{host.name}: {host.queued} queued, {queued} found")
        expect(host.waiting == waiting, f"{host.name}: {host.waiting} waiting, {waiting} found")
        expect(host.leased == leased, f"{host.name}: {host.leased} leased, {leased} found")
        for state in _ENDED:
            name = state.name.lower()
            told, real = getattr(host, name), self._ended[state, host.id]
            expect(told == real, f"{host.name}: {told} {name}, {real} found")
        stored = self._stored[host.id]
        expect(host.stored == stored, f"{host.name}: {host.stored} stored, {stored} found")
        sitemaps = self._sitemaps[host.id]
        expect(host.sitemaps == sitemaps, f"{host.name}: {host.sitemaps} sitemaps, {sitemaps} found")
        told_again = (host.again - host.again_waiting, host.again_waiting, host.again_leased)
        real_again = tuple(self._again[state, host.id] for state in (State.QUEUED, State.WAITING, State.LEASED))
        expect(told_again == real_again, f"{host.name}: to be visited again {told_again}, {real_again} found")
        expect(is_listed == host.is_active, f"{host.name}: wrongly listed as active or not")
        start = Place(host.id, 0).packed()
        for where, _ in islice(self._store.scan(Table.QUEUE, start, Place(host.id, host.head).packed()), 1):
            expect(False, f"{host.name}: an entry at {unpack_place(where).number} would never be found again")

    def _check_totals(self) -> None:
        packed = self._store.get(Table.META, TOTALS_KEY)
        totals = self._found.totals = unpack_totals(packed) if packed else Totals()
        states = self._found.states
        real = {
            "known": sum(states.values()),
            "queued": states[State.QUEUED] + states[State.WAITING],
            "leased": states[State.LEASED],
            "done": states[State.DONE],
            "failed": states[State.FAILED],
            "excluded": states[State.EXCLUDED],
            "again": self._number_again(State.QUEUED) + self._number_again(State.WAITING),
            "again_leased": self._number_again(State.LEASED),
        }
        for name, number in real.items():
            told, of_hosts = getattr(totals, name), self._totals_of_hosts[name]
            self._found.expect(told == number, f"totals say {told} {name}, there are {number}")
            self._found.expect(of_hosts == number, f"hosts say {of_hosts} {name}, there are {number}")
        hosts = self._totals_of_hosts["hosts"]
        self._found.expect(totals.hosts == hosts, f"totals say {totals.hosts} hosts, there are {hosts}")
        stored = self._stored.total()
        self._found.expect(totals.stored == stored, f"totals say {totals.stored} stored, there are {stored}")

    def _number_again(self, state: State) -> int:
        return sum(number for (kind, _), number in self._again.items() if kind is state)


def _points(state: UrlState, table: Table, where: bytes, entry: Entry) -> bool:
    """Whether a URL points to the entry that stands there."""
    if table is not Table.WAITING and state.is_apart != (table is Table.AGAIN):
        return False
    same = state.was_stored == entry.is_again and state.is_sitemap == entry.is_sitemap
    return _where(state) == where and same


def _where(state: UrlState) -> bytes:
    """The key of the entry that belongs to an open URL."""
    return waiting_key(state.due, state.place) if state.state is State.WAITING else state.place.packed()


def _batches(rows: Iterator[tuple[bytes, bytes]]) -> Iterator[list[tuple[bytes, bytes]]]:
    while batch := list(islice(rows, _BATCH)):
        yield batch

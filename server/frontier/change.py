"""One atomic move of many URLs: collects the writes, the hosts it touches and the new totals.

Memory is changed on the way; if the write fails, what was touched is read from the store again, which is right.
"""

import json
from collections import Counter
from dataclasses import fields, replace

from common.wire import Outcome, Totals
from server.frontier.hosts import Host, Hosts
from server.frontier.records import (
    Entry,
    FailedRecord,
    Place,
    State,
    UrlState,
    pack_ended,
    pack_place,
    pack_queued,
    waiting_key,
)
from server.frontier.store import Store, StoreError, Table, Write

TOTALS_KEY = b"totals"


class Change:
    """Used by one thread, within one verb of the frontier."""

    def __init__(self) -> None:
        self.writes: list[Write] = []
        self.hosts: dict[int, Host] = {}
        self.counts: Counter[str] = Counter()
        self.turns: set[int] = set()  # hosts that may come into the line or leave it

    def touch(self, host: Host) -> Host:
        """Must be called before a host is changed."""
        self.hosts[host.id] = host
        self.turns.add(host.id)
        return host

    def touch_queue(self, host: Host) -> Host:
        """The same, when something is only queued behind what is there: whose turn it is does not change by that."""
        self.hosts[host.id] = host
        if host.ready == 0:
            self.turns.add(host.id)
        return host

    def put(self, table: Table, key: bytes, value: bytes) -> None:
        self.writes.append((table, key, value))

    def delete(self, table: Table, key: bytes) -> None:
        self.writes.append((table, key, None))

    def enqueue(self, host: Host, number: int, key: bytes, entry: bytes) -> None:
        """Queue an entry. The caller counts it."""
        if number < host.head or host.queued == host.waiting:  # or else nothing stands there
            host.head = number
        self.writes.append((Table.QUEUE, pack_place(host.id, number), entry))
        self.writes.append((Table.URLS, key, pack_queued(host.id, number)))

    def move(self, host: Host, state: UrlState, number: int, entry: Entry) -> None:
        """Put a queued entry to another place in the queue of its host, or change what it says."""
        place = Place(host.id, number)
        host.head = min(host.head, number)
        self.writes.append((Table.QUEUE, state.place.packed(), None))
        self.writes.append((Table.QUEUE, place.packed(), entry.packed()))
        self.writes.append((Table.URLS, entry.key, UrlState(State.QUEUED, place, state.lost_by).packed()))

    def enqueue_again(self, host: Host, number: int, entry: Entry, lost_by: int = 0) -> None:
        """Queue an entry that brings no new page, apart from the others. The caller counts it."""
        place = Place(host.id, number)
        host.again_head = min(host.again_head, number)
        self.writes.append((Table.AGAIN, place.packed(), entry.packed()))
        state = UrlState(State.QUEUED, place, lost_by, was_stored=entry.is_again, is_sitemap=entry.is_sitemap)
        self.writes.append((Table.URLS, entry.key, state.packed()))

    def put_back(self, host: Host, number: int, entry: Entry, lost_by: int) -> None:
        """Queue an entry where it stood before it was leased."""
        if entry.is_apart:
            self.enqueue_again(host, number, entry, lost_by)
            self.count_again(host, queued=1, leased=-1)
        else:
            place = Place(host.id, number)
            self.writes.append((Table.QUEUE, place.packed(), entry.packed()))
            self.writes.append((Table.URLS, entry.key, UrlState(State.QUEUED, place, lost_by).packed()))
            host.head = min(host.head, number)
        host.leased -= 1
        host.queued += 1
        self.counts["leased"] -= 1
        self.counts["queued"] += 1

    def count_again(self, host: Host, queued: int = 0, leased: int = 0) -> None:
        """So many more of those that are queued or leased bring no new page. The caller counts them among all."""
        host.again += queued
        host.again_leased += leased
        self.counts["again"] += queued
        self.counts["again_leased"] += leased

    def wait(self, host: Host, number: int, entry: Entry, due: float) -> None:
        """Set an entry aside until `due`. The caller counts it as queued."""
        host.waiting += 1
        if entry.is_apart:
            self.count_again(host, queued=1)
            host.again_waiting += 1
        place, milliseconds = Place(host.id, number), int(due * 1000)
        self.writes.append((Table.WAITING, waiting_key(milliseconds, place), entry.packed()))
        state = UrlState(
            State.WAITING, place, due=milliseconds, was_stored=entry.is_again, is_sitemap=entry.is_sitemap
        )
        self.writes.append((Table.URLS, entry.key, state.packed()))

    def exclude(self, host: Host, key: bytes, rule: str) -> None:
        """The caller takes it out of the state that it had."""
        host.excluded += 1
        self.counts["excluded"] += 1
        state = UrlState(State.EXCLUDED, Place(host.id, 0), rule=rule)
        self.writes.append((Table.URLS, key, state.packed()))

    def finish(self, host: Host, key: bytes, outcome: Outcome, time: float) -> None:
        """The caller takes it out of the state that it had."""
        host.done += 1
        self.counts["done"] += 1
        if outcome is Outcome.STORED:
            host.stored += 1
            self.counts["stored"] += 1
        self.writes.append((Table.URLS, key, pack_ended(State.DONE, outcome, int(time), host.id)))

    def finish_again(self, host: Host, key: bytes, outcome: Outcome, time: float) -> None:
        """Another visit of a page has ended, whatever it has brought: the page stays. The caller takes it out of the
        state that it had."""
        host.done += 1
        self.counts.update(
            done=1, revisits=1, revisions=outcome is Outcome.STORED, unchanged=outcome is Outcome.UNCHANGED
        )
        state = UrlState(State.DONE, Place(host.id, 0), outcome=outcome, time=int(time), was_stored=True)
        self.writes.append((Table.URLS, key, state.packed()))

    def finish_sitemap(self, host: Host, key: bytes, outcome: Outcome, time: float, was_stored: bool) -> None:
        """A sitemap was read, or is not there. A page that it was before stays. The caller takes it out of the state
        that it had."""
        host.done += 1
        is_stored = outcome is Outcome.STORED and not was_stored  # by a client that knows no sitemaps
        host.stored += is_stored
        self.counts.update(done=1, stored=is_stored)
        state = UrlState(
            State.DONE, Place(host.id, 0), outcome=outcome, time=int(time), was_stored=was_stored, is_sitemap=True
        )
        self.writes.append((Table.URLS, key, state.packed()))

    def finish_as_page(self, host: Host, key: bytes, time: float, is_no_sitemap: bool) -> None:
        """A stored page that was asked for as a sitemap is done as before. The caller takes it out of the state that it
        had."""
        host.done += 1
        self.counts["done"] += 1
        state = UrlState(State.DONE, Place(host.id, 0), time=int(time), is_no_sitemap=is_no_sitemap)
        self.writes.append((Table.URLS, key, state.packed()))

    def fail(self, host: Host, key: bytes, record: FailedRecord) -> None:
        """The caller takes it out of the state that it had."""
        host.failed += 1
        self.counts["failed"] += 1
        state = UrlState(
            State.FAILED, Place(host.id, 0), outcome=record.outcome, time=int(record.time), is_sitemap=record.is_sitemap
        )
        self.writes.append((Table.URLS, key, state.packed()))
        self.writes.append((Table.FAILED, key, record.packed()))


class Books:
    """The totals and the way to write a change: first the store, then memory counts as right."""

    def __init__(self, store: Store, hosts: Hosts) -> None:
        self._store = store
        self._hosts = hosts
        stored = store.get(Table.META, TOTALS_KEY)
        self.totals = unpack_totals(stored) if stored else Totals()

    def commit(self, change: Change) -> None:
        """Write it all, or nothing; then memory is as before. A host that does not add up is a mistake of ours."""
        change.counts["hosts"] += sum(host.is_new for host in change.hosts.values())
        totals = replace(
            self.totals, **{name: getattr(self.totals, name) + delta for name, delta in change.counts.items()}
        )
        hosts = change.hosts.values()
        try:
            for host in hosts:
                if not host.is_sound():
                    raise AssertionError(f"the counters of {host.name} do not add up")
            writes = [*change.writes, *self._hosts.writes(hosts), (Table.META, TOTALS_KEY, pack_totals(totals))]
            self._store.write(writes)
        except (StoreError, AssertionError):
            self._hosts.restore(hosts)
            raise
        self.totals = totals
        self._hosts.written(hosts)


def pack_totals(totals: Totals) -> bytes:
    return json.dumps([getattr(totals, field.name) for field in fields(Totals)]).encode()


def unpack_totals(data: bytes) -> Totals:
    numbers = json.loads(data)
    totals = Totals(*numbers)
    if len(numbers) == len(fields(Totals)):
        return totals
    # A frontier in which what went well was not counted: nearly that.
    return replace(totals, processed=totals.done + totals.revisions + totals.unchanged)

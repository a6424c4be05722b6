"""The frontier's façade. Thread-safe: decides under one lock, makes it durable outside the lock, then returns.

RocksDB is not known here: any Store will do.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from common.clock import Clock
from common.urls import resolve
from common.wire import FoundUrl, Report, Totals
from server.frontier import claims, intake, jobnames, mending, narrowing, scores, sitemaps
from server.frontier.change import Change
from server.frontier.claims import Claims
from server.frontier.core import Core, FrontierError
from server.frontier.explaining import Explanation, Overview, explained, overview
from server.frontier.hosts import Host
from server.frontier.jobnames import JobNames
from server.frontier.leasing import Leased
from server.frontier.locked import Locked
from server.frontier.memory import Memory
from server.frontier.order import Order
from server.frontier.queued import Piece, queued
from server.frontier.records import FailedRecord, State, UrlState
from server.frontier.redating import redate
from server.frontier.reordering import TRAVERSAL_KEY, reorder
from server.frontier.starts import separate
from server.frontier.store import Store, Table, Write
from server.frontier.view import Rules, View
from server.policy.policy import Policy

__all__ = ["Explanation", "Frontier", "FrontierError", "Leased", "Overview", "Rules", "Settled"]

_FORMAT_KEY, _FORMAT = b"format", b"6"
_SINCE = ((claims.SINCE_KEY, claims.beginning), (jobnames.NAMES_KEY, jobnames.beginning))
_NOTHING: Mapping[str, Sequence[str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Settled:
    """What a report changed."""

    accepted: int
    refused: int
    new_urls: int
    failed: Sequence[FailedRecord]  # given up now


class Frontier:
    """All known URLs, each in exactly one state. Owns the store. Called by many threads.

    A verb has the store and a frozen view; everything else only from `with self._decide() as memory`.
    """

    def __init__(self, store: Store, policy: Policy, rules: Rules, clock: Clock) -> None:
        form = store.get(Table.META, _FORMAT_KEY)
        if form not in (None, _FORMAT):
            raise FrontierError("the frontier on disk was written by another version; use that version or start afresh")
        begun: list[Write] = []
        if form is None:
            begun += [(Table.META, _FORMAT_KEY, _FORMAT), (Table.META, TRAVERSAL_KEY, rules.traversal.encode())]
        for key, beginning in _SINCE:  # also what a version has written that did not know it
            if store.get(Table.META, key) is None:
                begun.append(beginning(store))
        if begun:
            store.write(begun)
        separate(store)
        order = Order(rules.traversal)
        reorder(store, order)
        redate(store, rules.period)
        self._store = store
        self._names = JobNames.of(store)
        self._view = View(store, policy, rules, order.moves)
        self._decide = Locked(Memory(store, self._view, clock))  # it also keeps writes in order

    @property
    def rules(self) -> Rules:
        """What it follows: not all settings can change while a crawl goes on."""
        return self._view.rules

    def job_name(self, number: int) -> str:
        """What a job is called outside."""
        return self._names.name(number)

    def job_number(self, name: str) -> int:
        """The job that is called so; FrontierError if it is none of this crawl."""
        number = self._names.number(name)
        if number is None:
            raise FrontierError(f"{name[:40]!r} is no job of this crawl")
        return number

    # --- the verbs of the crawl --------------------------------------------------------------------------------

    def add(self, found: Iterable[FoundUrl]) -> int:
        """Take in URLs; returns how many were not known."""
        keyed = intake.keyed(self._view.rules, found)
        news = intake.news(self._view, keyed)  # most are known: found out without holding the lock
        if not news:
            return 0
        with self._decide() as memory:
            new = memory.admit(news)
        self._make_durable()
        return new

    def begin_with(self, addresses: Iterable[str], private: Mapping[str, Sequence[str]] = _NOTHING) -> int:
        """Take in start URLs, which are always inside; returns how many were not known. `private`: of their hosts, the
        private addresses that they have, which are allowed from now on."""
        starts = intake.keyed(self._view.rules, (FoundUrl(address, 0) for address in addresses))
        with self._decide() as memory:
            new = memory.begin_with(starts, private)
        self._make_durable()
        return new

    def widen(self, addresses: Sequence[str]) -> None:
        """Further start URLs while the crawl runs: their hosts belong to it from now on, also after a restart."""
        with self._decide() as memory:
            memory.widen(addresses)

    def unnamed(self, hosts: Iterable[str]) -> list[str]:
        """Those that no operator has named in a start URL so far."""
        with self._decide() as memory:
            found = ((name, memory.core.hosts.find(name)) for name in hosts)
            return [name for name, host in found if host is None or not host.is_start]

    def lease(self, client: str, request: str, wanted: int) -> Leased:
        """A job for `client`. The same `request` again gives the same job, so that a lost answer costs nothing."""
        with self._decide() as memory:
            leased = memory.lease(client, request, wanted)
        self._make_durable()
        return leased

    def renew(self, client: str, job: int) -> float:
        """Extend a lease; returns for how many seconds."""
        with self._decide() as memory:
            memory.renew(client, job)
        self._make_durable()
        return self._view.rules.lease_seconds

    def report(self, client: str, job: int, report: Report) -> Settled:
        """Settle URLs of a job and take in what was found, in one move. Repeating it changes nothing."""
        view = self._view
        listed = sitemaps.sorted_out(view.rules, report.listed) if report.listed else None
        candidates = intake.keyed(view.rules, [*report.found, *listed.pages] if listed else report.found)
        if moved := intake.moved_starts(view.policy, candidates):
            self.widen(moved)
        news = intake.news(self._view, candidates)
        with self._decide() as memory:
            done, new = memory.report(client, job, report, listed, news)
        self._make_durable()
        return Settled(done.accepted, done.refused, new, done.failed)

    def release(self, client: str, job: int) -> int:
        """Give the unfinished URLs of a job back; returns how many there were."""
        with self._decide() as memory:
            returned = memory.release(client, job)
        self._make_durable()
        return returned

    def expire(self) -> int:
        """Take back the jobs of silent clients; returns the number of URLs that are queued again."""
        with self._decide() as memory:
            returned = memory.expire()
        if returned:
            self._make_durable()
        return returned

    def tick(self) -> Sequence[FailedRecord]:
        """What time brings, to be called every second or so: expired leases, pages to be visited again, dead hosts.
        Returns what was given up."""
        with self._decide() as memory:
            failed = memory.tick()
        self._store.sync()
        return failed

    # --- the verbs of an operator ------------------------------------------------------------------------------

    def totals(self) -> Totals:
        """The counters. Cheap."""
        with self._decide() as memory:
            return memory.core.books.totals

    def is_finished(self) -> bool:
        """Nothing is leased, and nothing may be."""
        with self._decide() as memory:
            return memory.core.is_finished()

    def next_due(self) -> float:
        """When the next page is to be visited again, UTC; 0 if none is."""
        with self._decide() as memory:
            due = memory.core.visits.next_due()
            return 0.0 if due == math.inf else due

    def ended_by(self) -> str:
        """The limit that has ended the crawl, or is about to end it with the jobs that are out; empty if none."""
        with self._decide() as memory:
            return memory.core.ended_by()

    def unsound(self) -> list[str]:
        """What breaks the invariant: hosts whose counters do not add up, and the totals. Empty if all is well."""
        with self._decide() as memory:
            return memory.unsound()

    def explain(self, url: str) -> Explanation:
        """All that is known of one URL."""
        address = resolve(url)
        if address is None:
            raise FrontierError(f"{url!r} is no http or https URL")
        with self._decide() as memory:
            return explained(memory.core, address)

    def overview(self) -> Overview:
        """How everything stands: totals, jobs that are out, what an operator has set, hosts that do not answer."""
        with self._decide() as memory:
            return overview(memory.core)

    def queued(self, name: str | None, after: str = "", limit: int = 100) -> Piece:
        """A piece of what is queued, of one host or of all; nobody waits for it."""
        return queued(self._store, name, after, limit)

    def state_of(self, url: str) -> State | None:
        """The state of one URL; None if it is not known."""
        state = self.explain(url).state
        return None if state == "unknown" else State[state.upper()]

    def pause(self, paused: bool) -> None:
        """Hand out nothing, or go on. Survives a restart."""
        with self._decide() as memory:
            memory.pause(paused)
        self._make_durable()

    @property
    def is_paused(self) -> bool:
        with self._decide() as memory:
            return memory.core.is_paused

    def block(self, name: str, blocked: bool) -> None:
        """Ask a host nothing any more, or again. What it has queued stays queued."""
        with self._changing(name) as (core, host):
            host.is_blocked = blocked
            core.has_blocked = True

    def set_delay(self, name: str, seconds: float | None) -> None:
        """The delay of one host, whatever the settings and robots.txt say; None: as they say."""
        with self._changing(name) as (_, host):
            host.own_delay = -1.0 if seconds is None else seconds

    def set_priority(self, name: str, priority: int) -> None:
        """Let the turn of a host come before that of hosts with a lower priority. Without one it is 0."""
        with self._changing(name) as (core, host):
            host.priority = priority
            core.has_priorities = True

    def set_score(self, url: str, score: int) -> int:
        """Let a queued URL be taken before those of its host with a lower score; returns the score that it had."""
        return self._mended(lambda core, change: scores.set_score(core, change, url, score))

    def retry(self, urls: Iterable[str]) -> int:
        """Queue failed URLs again, as if they had never been tried; returns how many."""
        return self._mended(lambda core, change: mending.retry(core, change, urls))

    def narrow(self) -> int:
        """Exclude what is queued and, by rules that have changed, no part of the crawl; returns how many."""
        with self._decide() as memory:
            excluded = narrowing.narrow(memory.core)
        self._make_durable()
        return excluded

    def failed(self) -> Iterator[FailedRecord]:
        """All URLs that were given up."""
        return (FailedRecord.unpacked(value) for _, value in self._store.scan(Table.FAILED))

    def states(self, keys: Sequence[bytes]) -> list[UrlState | None]:
        """What the store knows of URLs, by their keys; None: unknown. A leased one looks queued here."""
        found = self._store.get_many(Table.URLS, keys)
        return [None if packed is None else UrlState.unpacked(packed) for packed in found]

    def claims(self) -> Claims:
        """Tells which pages count, of those that were found before; nobody waits for it."""
        return Claims(self._store)

    def mark_stored(self, pages: Iterable[tuple[bytes, str]], notes: Iterable[Write] = ()) -> int:
        """URLs (key, address) whose page is in Pages/ are done, though nobody reported it; returns how many changed.
        `notes`: that these pages count from now on (claims.py)."""
        with self._decide() as memory:
            number = memory.mark_stored(pages, notes)
        self._make_durable()
        return number

    def crawl_again(self, pages: Iterable[tuple[bytes, str]]) -> int:
        """Done URLs (key, address) whose page is gone are queued again; returns how many there were."""
        return self._mended(lambda core, change: mending.crawl_again(core, change, pages))

    def forget(self, keys: Iterable[bytes]) -> int:
        """Done URLs whose page is gone are unknown again; returns how many there were."""
        return self._mended(lambda core, change: mending.forget(core, change, keys))

    def copy_to(self, folder: Path) -> None:
        """A copy of the whole frontier as it is now, for an audit."""
        with self._decide():  # between two writes
            self._store.copy_to(folder)

    def close(self) -> None:
        """After this no verb may be called, also if it raises: what cannot be written now was not acknowledged."""
        with self._decide() as memory, closing(self._store):
            memory.note_time()
            self._store.sync()

    # --- inside ------------------------------------------------------------------------------------------------

    def _make_durable(self) -> None:
        if self._view.rules.durability == "full":
            self._store.sync()

    @contextmanager
    def _changing(self, name: str) -> Iterator[tuple[Core, Host]]:
        """A change of one host by an operator."""
        with self._decide() as memory:
            core, change = memory.core, Change()
            host = change.touch(core.hosts.get_or_make([name])[name])
            yield core, host
            change.writes.append(core.hosts.note_setting(host))
            core.commit(change)
        self._make_durable()

    def _mended(self, mend: Callable[[Core, Change], int]) -> int:
        """One atomic change; returns what it says of itself, such as how many URLs it is about."""
        with self._decide() as memory:
            change = Change()
            number = mend(memory.core, change)
            memory.core.commit(change)
        self._make_durable()
        return number


def is_begun(store: Store) -> bool:
    """Whether it holds a frontier that this version can go on with."""
    return store.get(Table.META, _FORMAT_KEY) == _FORMAT

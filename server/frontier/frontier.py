"""The frontier's façade. Thread-safe: decides under one lock, makes it durable outside the lock, then returns.

RocksDB is not known here: any Store will do.
"""

import json
import logging
import math
import threading
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from common.clock import Clock
from common.urls import resolve
from common.wire import FoundUrl, Outcome, Report, Totals, UrlResult
from server.frontier import intake, mending, narrowing, rounds, scores, sitemaps
from server.frontier.change import Change
from server.frontier.core import Core, FrontierError, Rules
from server.frontier.explaining import Explanation, Overview, explained, overview
from server.frontier.hosts import Host
from server.frontier.leases import Lease
from server.frontier.leasing import Leased, Leasing
from server.frontier.order import Order
from server.frontier.records import FailedRecord, State, UrlState, key_of_entry
from server.frontier.redating import redate
from server.frontier.reordering import TRAVERSAL_KEY, reorder
from server.frontier.settling import Settlement, Settling
from server.frontier.store import Store, Table
from server.policy.policy import Policy

__all__ = ["Explanation", "Frontier", "FrontierError", "Leased", "Overview", "Rules", "Settled"]

_log = logging.getLogger(__name__)
_FORMAT_KEY, _FORMAT = b"format", b"6"
_PAUSED_KEY = b"paused"
START_URLS_KEY = b"start urls"  # in the table META: all that the crawl ever had, as JSON


@dataclass(frozen=True, slots=True)
class Settled:
    """What a report changed."""

    accepted: int
    refused: int
    new_urls: int
    failed: Sequence[FailedRecord]  # given up now


class Frontier:
    """All known URLs, each in exactly one state. Owns the store. Called by many threads."""

    def __init__(self, store: Store, policy: Policy, rules: Rules, clock: Clock) -> None:
        form = store.get(Table.META, _FORMAT_KEY)
        if form not in (None, _FORMAT):
            raise FrontierError("the frontier on disk was written by another version; use that version or start afresh")
        if form is None:
            store.write([(Table.META, _FORMAT_KEY, _FORMAT), (Table.META, TRAVERSAL_KEY, rules.traversal.encode())])
        reorder(store, Order(rules.traversal))
        redate(store, rules.period)
        self._store = store
        self._lock = threading.Lock()  # guards everything below and the order of writes
        self._core = Core(store, policy, rules, clock)
        self._core.is_paused = store.get(Table.META, _PAUSED_KEY) is not None
        self._leasing = Leasing(self._core)
        self._settling = Settling(self._core)
        self._line_up()

    # --- the verbs of the crawl --------------------------------------------------------------------------------

    def add(self, found: Iterable[FoundUrl], start: bool = False) -> int:
        """Take in URLs; returns how many were not known. Start URLs are always inside, and may be private hosts."""
        keyed = intake.keyed(self._core, found)
        news = intake.news(self._core, keyed, start)  # most are known: found out without holding the lock
        if news or start:
            with self._lock:
                change = Change()
                if start:
                    intake.open_private(self._core, change, keyed)
                new = intake.admit(self._core, change, news, start)
                self._core.commit(change)
            self._make_durable()
            return new
        return 0

    def begin_with(self, addresses: Sequence[str]) -> int:
        """Take in start URLs while the crawl runs: their hosts belong to it from now on, also after a restart."""
        self._widen(addresses)
        return self.add([FoundUrl(address, 0) for address in addresses], start=True)

    def lease(self, client: str, request: str, wanted: int) -> Leased:
        """A job for `client`. The same `request` again gives the same job, so that a lost answer costs nothing."""
        with self._lock:
            self._expire()
            self._settling.wake()
            rounds.bring_back(self._core)
            leased = self._leasing.lease(client, request, wanted)
        self._make_durable()
        return leased

    def renew(self, client: str, job: int) -> float:
        """Extend a lease; returns for how many seconds."""
        with self._lock:
            change = Change()
            self._leasing.extend(change, self._core.lease_of(client, job))
            self._core.commit(change)
        self._make_durable()
        return self._core.rules.lease_seconds

    def report(self, client: str, job: int, report: Report) -> Settled:
        """Settle URLs of a job and take in what was found, in one move. Repeating it changes nothing."""
        listed = sitemaps.sorted_out(self._core, report.listed) if report.listed else None
        candidates = intake.keyed(self._core, [*report.found, *listed.pages] if listed else report.found)
        if moved := intake.moved_starts(self._core, candidates):
            self._widen(moved)
        news = intake.news(self._core, candidates)
        with self._lock:
            lease = self._lease_to_report_on(client, job)
            if lease is not None and self._core.rules.sitemaps:
                sitemaps.link_held(lease, [(item.url, item.depth) for item in news.values()])
            done = self._settling.settle(job, lease, report.results)
            self._settling.learn(done, report.hosts)
            for key in done.late:  # settled just now, which the store does not know yet
                news.pop(key, None)
            new = self._take_in(done, listed, news) if listed else 0
            is_repeated = bool(report.results) and not done.accepted
            new += intake.admit(self._core, done.change, news, is_repeated=is_repeated)
            if done.accepted:  # a repeated report was counted the first time
                done.change.counts["size"] += report.size
            if lease is not None and not self._settling.finish(done, lease):
                self._leasing.extend(done.change, lease)
            self._settling.write(done, lease)
        self._make_durable()
        return Settled(done.accepted, done.refused, new, done.failed)

    def release(self, client: str, job: int) -> int:
        """Give the unfinished URLs of a job back; returns how many there were."""
        with self._lock:
            if self._core.leases.get(job) is None:
                return 0  # ended already: nothing to give back
            returned = self._settling.release(self._core.lease_of(client, job))
        self._make_durable()
        return returned

    def expire(self) -> int:
        """Take back the jobs of silent clients; returns the number of URLs that are queued again."""
        with self._lock:
            returned = self._expire()
        if returned:
            self._make_durable()
        return returned

    def tick(self) -> Sequence[FailedRecord]:
        """What time brings, to be called every second or so: expired leases, pages to be visited again, dead hosts.
        Returns what was given up."""
        with self._lock:
            if returned := self._expire():
                _log.warning("a client fell silent: %d URLs are queued again", returned)
            rounds.bring_back(self._core)
            failed = self._settling.bury()
            self._core.turns.forget_slots(self._core.clock.now())
            self._note_time()
        self._store.sync()
        return failed

    # --- the verbs of an operator ------------------------------------------------------------------------------

    def totals(self) -> Totals:
        """The counters. Cheap."""
        with self._lock:
            return self._core.books.totals

    def is_finished(self) -> bool:
        """Nothing is leased, and nothing may be."""
        with self._lock:
            return self._core.is_finished()

    def next_due(self) -> float:
        """When the next page is to be visited again, UTC; 0 if none is."""
        with self._lock:
            due = self._core.visits.next_due()
            return 0.0 if due == math.inf else due

    def ended_by(self) -> str:
        """The limit that has ended the crawl, or is about to end it with the jobs that are out; empty if none."""
        with self._lock:
            return self._core.ended_by()

    def unsound(self) -> list[str]:
        """What breaks the invariant: hosts whose counters do not add up, and the totals. Empty if all is well."""
        with self._lock:
            hosts = [host.name for host in self._core.hosts if not host.is_sound()]
            return hosts + (["totals"] if not self._core.books.totals.is_sound else [])

    def explain(self, url: str) -> Explanation:
        """All that is known of one URL."""
        address = resolve(url)
        if address is None:
            raise FrontierError(f"{url!r} is no http or https URL")
        with self._lock:
            return explained(self._core, address)

    def overview(self) -> Overview:
        """How everything stands: totals, jobs that are out, what an operator has set, hosts that do not answer."""
        with self._lock:
            return overview(self._core)

    def state_of(self, url: str) -> State | None:
        """The state of one URL; None if it is not known."""
        state = self.explain(url).state
        return None if state == "unknown" else State[state.upper()]

    def pause(self, paused: bool) -> None:
        """Hand out nothing, or go on. Survives a restart."""
        with self._lock:
            self._store.write([(Table.META, _PAUSED_KEY, b"1" if paused else None)])
            self._core.is_paused = paused
        self._make_durable()

    @property
    def is_paused(self) -> bool:
        return self._core.is_paused

    def block(self, name: str, blocked: bool) -> None:
        """Ask a host nothing any more, or again. What it has queued stays queued."""
        with self._changing(name) as host:
            host.is_blocked = blocked
            self._core.has_blocked = True

    def set_delay(self, name: str, seconds: float | None) -> None:
        """The delay of one host, whatever the settings and robots.txt say; None: as they say."""
        with self._changing(name) as host:
            host.own_delay = -1.0 if seconds is None else seconds

    def set_priority(self, name: str, priority: int) -> None:
        """Let the turn of a host come before that of hosts with a lower priority. Without one it is 0."""
        with self._changing(name) as host:
            host.priority = priority
            self._core.has_priorities = True

    def set_score(self, url: str, score: int) -> int:
        """Let a queued URL be taken before those of its host with a lower score; returns the score that it had."""
        return self._mended(lambda change: scores.set_score(self._core, change, url, score))

    def retry(self, urls: Iterable[str]) -> int:
        """Queue failed URLs again, as if they had never been tried; returns how many."""
        return self._mended(lambda change: mending.retry(self._core, change, urls))

    def narrow(self) -> int:
        """Exclude what is queued and, by rules that have changed, no part of the crawl; returns how many."""
        with self._lock:
            excluded = narrowing.narrow(self._core)
        self._make_durable()
        return excluded

    def failed(self) -> Iterator[FailedRecord]:
        """All URLs that were given up."""
        return (FailedRecord.unpacked(value) for _, value in self._store.scan(Table.FAILED))

    def states(self, keys: Sequence[bytes]) -> list[UrlState | None]:
        """What the store knows of URLs, by their keys; None: unknown. A leased one looks queued here."""
        found = self._store.get_many(Table.URLS, keys)
        return [None if packed is None else UrlState.unpacked(packed) for packed in found]

    def mark_stored(self, pages: Iterable[tuple[bytes, str]]) -> int:
        """URLs (key, address) whose page is in Pages/ are done, though nobody reported it; returns how many changed."""
        wanted = dict(pages)
        with self._lock:
            number = sum(self._settle_held(lease, wanted) for lease in self._core.leases)
            change = Change()
            number += mending.mark_stored(self._core, change, wanted.items())
            self._core.commit(change)
        self._make_durable()
        return number

    def crawl_again(self, pages: Iterable[tuple[bytes, str]]) -> int:
        """Done URLs (key, address) whose page is gone are queued again; returns how many there were."""
        return self._mended(lambda change: mending.crawl_again(self._core, change, pages))

    def forget(self, keys: Iterable[bytes]) -> int:
        """Done URLs whose page is gone are unknown again; returns how many there were."""
        return self._mended(lambda change: mending.forget(self._core, change, keys))

    def copy_to(self, folder: Path) -> None:
        """A copy of the whole frontier as it is now, for an audit."""
        with self._lock:
            self._store.copy_to(folder)

    def close(self) -> None:
        """After this no verb may be called."""
        with self._lock:
            self._note_time()
            self._store.sync()
            self._store.close()

    # --- inside ------------------------------------------------------------------------------------------------

    def _line_up(self) -> None:
        now = self._core.clock.now()
        for host in self._core.hosts:
            if host.not_before:  # it was asked before the restart, nobody knows when: assume just now
                host.not_before = max(host.not_before, now + self._core.delay(host))
        self._core.line_up(host.id for host in self._core.hosts)

    def _note_time(self) -> None:
        is_running = not self._core.is_paused and not self._core.is_finished()
        if writes := self._core.running.note(is_running):
            self._store.write(writes)

    def _widen(self, addresses: Sequence[str]) -> None:
        with self._lock:
            known = json.loads(self._store.get(Table.META, START_URLS_KEY) or b"[]")
            starts = list(dict.fromkeys([*known, *addresses]))
            self._store.write([(Table.META, START_URLS_KEY, json.dumps(starts).encode())])
            self._core.policy = self._core.policy.widened(addresses)

    def _make_durable(self) -> None:
        if self._core.rules.durability == "full":
            self._store.sync()

    def _expire(self) -> int:
        return sum(self._settling.release(lease) for lease in self._core.leases.overdue(self._core.clock.now()))

    def _lease_to_report_on(self, client: str, job: int) -> Lease | None:
        lease = self._core.leases.get(job)
        if lease is None and not self._leasing.has_been(job):
            raise FrontierError(f"there has never been a job {job}")
        if lease is not None and lease.client != client:
            raise FrontierError(f"job {job} belongs to another client")
        return lease

    @contextmanager
    def _changing(self, name: str) -> Iterator[Host]:
        """A change of one host by an operator."""
        with self._lock:
            change = Change()
            host = change.touch(self._core.hosts.get_or_make([name])[name])
            yield host
            change.writes.append(self._core.hosts.note_setting(host))
            self._core.commit(change)
        self._make_durable()

    def _mended(self, mend: Callable[[Change], int]) -> int:
        """One atomic change; returns what it says of itself, such as how many URLs it is about."""
        with self._lock:
            change = Change()
            number = mend(change)
            self._core.commit(change)
        self._make_durable()
        return number

    def _take_in(self, done: Settlement, listed: sitemaps.Listed, news: intake.Candidates) -> int:
        """What sitemaps say, before links are taken in; returns how many sitemaps were not known."""
        core = self._core
        linked = {key: item for key in listed.sitemaps if (item := news.get(key))}
        links = {key: item.depth for key, item in linked.items() if intake.is_inside(core, item)}
        new, touched = sitemaps.take_in(core, done.change, listed, done.late, links)
        for key in touched:  # a link to a sitemap does not make it a page
            news.pop(key, None)
        return new

    def _settle_held(self, lease: Lease, wanted: Container[bytes]) -> int:
        """Settle those URLs of a job as stored that are wanted, as if it had been reported."""
        held = [url for url, task in lease.tasks.items() if key_of_entry(task.entry, url) in wanted]
        if held:
            done = self._settling.settle(lease.job, lease, [UrlResult(url, Outcome.STORED) for url in held])
            self._settling.finish(done, lease)
            self._settling.write(done, lease)
        return len(held)

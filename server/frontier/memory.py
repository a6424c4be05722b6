"""What the verbs of the frontier decide with. The façade lets one thread at a time have it (locked.py)."""

import logging
from collections.abc import Container, Iterable, Mapping, Sequence

from common.clock import Clock
from common.wire import Outcome, Report, UrlResult
from server.frontier import intake, mending, rounds, sitemaps
from server.frontier.change import Change
from server.frontier.core import Core, FrontierError
from server.frontier.leases import Lease
from server.frontier.leasing import Leased, Leasing
from server.frontier.records import FailedRecord, key_of_entry
from server.frontier.settling import Settlement, Settling
from server.frontier.starts import noted
from server.frontier.store import Store, Table, Write
from server.frontier.view import View

PAUSED_KEY = b"paused"
_log = logging.getLogger(__name__)


class Memory:
    """Hosts, leases, counters and turns, and the steps that several verbs share."""

    def __init__(self, store: Store, view: View, clock: Clock) -> None:
        self._store = store
        self.core = Core(store, view, clock)
        self.core.is_paused = store.get(Table.META, PAUSED_KEY) is not None
        self.leasing = Leasing(self.core)
        self.settling = Settling(self.core)
        self._line_up()

    def _line_up(self) -> None:
        now = self.core.clock.now()
        for host in self.core.hosts:
            if host.not_before:  # it was asked before the restart, nobody knows when: assume just now
                host.not_before = max(host.not_before, now + self.core.delay(host))
        self.core.line_up(host.id for host in self.core.hosts)

    def admit(self, news: intake.Candidates) -> int:
        """Take in URLs that may be new; returns how many were not known."""
        change = Change()
        new = intake.admit(self.core, change, news)
        self.core.commit(change)
        return new

    def begin_with(self, starts: intake.Candidates, private: Mapping[str, Sequence[str]]) -> int:
        """Take in start URLs, whose hosts have these private addresses; returns how many were not known."""
        change = Change()
        intake.name_hosts(self.core, change, starts, private)
        new = intake.admit(self.core, change, starts, start=True)
        self.core.commit(change)
        return new

    def lease(self, client: str, request: str, wanted: int) -> Leased:
        self.expire()
        self.settling.wake()
        rounds.bring_back(self.core)
        return self.leasing.lease(client, request, wanted)

    def renew(self, client: str, job: int) -> None:
        change = Change()
        self.leasing.extend(change, self.core.lease_of(client, job))
        self.core.commit(change)

    def report(
        self, client: str, job: int, report: Report, listed: sitemaps.Listed | None, news: intake.Candidates
    ) -> tuple[Settlement, int]:
        """Settle URLs of a job and take in what was found, in one write; returns how many of these were not known."""
        lease = self._lease_to_report_on(client, job)
        if lease is not None and self.core.rules.sitemaps:
            sitemaps.link_held(lease, [(item.url, item.depth) for item in news.values()])
        done = self.settling.settle(job, lease, report.results)
        self.settling.learn(done, lease, report.hosts)
        for key in done.late:  # settled just now, which the store does not know yet
            news.pop(key, None)
        new = self._take_in(done, listed, news) if listed else 0
        is_repeated = bool(report.results) and not done.accepted
        new += intake.admit(self.core, done.change, news, is_repeated=is_repeated)
        if done.accepted:  # a repeated report was counted the first time
            done.change.counts["size"] += report.size
        if lease is not None and not self.settling.finish(done, lease):
            self.leasing.extend(done.change, lease)
        self.settling.write(done, job, lease)
        return done, new

    def release(self, client: str, job: int) -> int:
        if self.core.leases.get(job) is None:
            return 0  # ended already: nothing to give back
        return self.settling.release(self.core.lease_of(client, job))

    def expire(self) -> int:
        return sum(self.settling.release(lease) for lease in self.core.leases.overdue(self.core.clock.now()))

    def tick(self) -> Sequence[FailedRecord]:
        if returned := self.expire():
            _log.warning("a client fell silent: %d URLs are queued again", returned)
        rounds.bring_back(self.core)
        failed = self.settling.bury()
        self.core.turns.forget_slots(self.core.clock.now())
        self.note_time()
        return failed

    def note_time(self) -> None:
        """How long the crawl has been running."""
        is_running = not self.core.is_paused and not self.core.is_finished()
        if writes := self.core.running.note(is_running):
            self._store.write(writes)

    def widen(self, addresses: Sequence[str]) -> None:
        """Further start URLs belong to the crawl, also after a restart."""
        self._store.write(noted(addresses))
        self.core.policy.widen(addresses)

    def pause(self, paused: bool) -> None:
        self._store.write([(Table.META, PAUSED_KEY, b"1" if paused else None)])
        self.core.is_paused = paused

    def unsound(self) -> list[str]:
        """What breaks the invariant."""
        hosts = [host.name for host in self.core.hosts if not host.is_sound()]
        return hosts + (["totals"] if not self.core.books.totals.is_sound else [])

    def mark_stored(self, pages: Iterable[tuple[bytes, str]], notes: Iterable[Write]) -> int:
        """Settle URLs (key, address) as stored, whoever has them; returns how many changed."""
        wanted = dict(pages)
        number = sum(self._settle_held(lease, wanted) for lease in self.core.leases)
        change = Change()
        number += mending.mark_stored(self.core, change, wanted.items())
        change.writes += notes
        self.core.commit(change)
        return number

    def _settle_held(self, lease: Lease, wanted: Container[bytes]) -> int:
        """Settle those URLs of a job as stored that are wanted, as if it had been reported."""
        held = [url for url, task in lease.tasks.items() if key_of_entry(task.entry, url) in wanted]
        if held:
            done = self.settling.settle(lease.job, lease, [UrlResult(url, Outcome.STORED) for url in held])
            done.given_back, done.stored = done.stored, []  # another job did it: this one may have a page, too
            self.settling.finish(done, lease)
            self.settling.write(done, lease.job, lease)
        return len(held)

    def _lease_to_report_on(self, client: str, job: int) -> Lease | None:
        lease = self.core.leases.get(job)
        if lease is None and not self.leasing.has_been(job):
            raise FrontierError(f"there has never been a job {job}")
        if lease is not None and lease.client != client:
            raise FrontierError(f"job {job} belongs to another client")
        return lease

    def _take_in(self, done: Settlement, listed: sitemaps.Listed, news: intake.Candidates) -> int:
        """What sitemaps say, before links are taken in; returns how many sitemaps were not known."""
        core = self.core
        linked = {key: item for key in listed.sitemaps if (item := news.get(key))}
        links = {key: item.depth for key, item in linked.items() if intake.is_inside(core.view, item)}
        new, touched = sitemaps.take_in(core, done.change, listed, done.late, links)
        for key in touched:  # a link to a sitemap does not make it a page
            news.pop(key, None)
        return new

"""What clients report: the end of URLs and leases, and what it says about their hosts."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from common.addresses import is_address, plain
from common.urls import resolve
from common.wire import HostFact, Outcome, UrlResult, clean_text
from server.frontier import claims
from server.frontier.change import Change
from server.frontier.core import Core
from server.frontier.hosts import Host
from server.frontier.leases import Lease
from server.frontier.records import (
    Entry,
    FailedRecord,
    Place,
    State,
    Task,
    UrlState,
    is_apart,
    job_key,
    key_of_entry,
    pack_ended,
    pack_tasks,
    unpack_entry,
    unpack_place,
    url_of_entry,
    waiting_key,
)
from server.frontier.retries import CONSEQUENCES, DEAD_AFTER, PARK_WAITS, Sign, wait_factor
from server.frontier.store import Table

_LONGEST_PAUSE_SECONDS = 86_400.0  # that a Retry-After can bring about
_MAX_DETAIL_LENGTH = 500
_LONGEST_ADDRESS = 64  # IPv6 with the name of an interface
_MAX_RULE_LENGTH = 100  # it is stored with each URL that it excludes
_WAKE_LIMIT = 10_000  # waiting URLs brought back, or URLs of dead hosts given up, in one change
_CALM = 0.8  # the backoff of a host shrinks to this with each report in which it answered


@dataclass(slots=True)
class Signs:
    """What the outcomes of one report say about a host."""

    well: int = 0
    busy: int = 0
    dead: int = 0


@dataclass(slots=True)
class Settlement:
    """What one report brings about, as far as it has been worked through."""

    change: Change = field(default_factory=Change)
    settled: dict[str, Task] = field(default_factory=dict)  # what leaves the lease, by address
    late: set[bytes] = field(default_factory=set)  # keys of what the job had lost before
    accepted: int = 0
    refused: int = 0
    failed: list[FailedRecord] = field(default_factory=list)  # given up now
    signs: dict[int, Signs] = field(default_factory=dict)  # by host
    # What is noted of the job, as entries of claims.py:
    stored: list[bytes] = field(default_factory=list)
    given_back: list[bytes] = field(default_factory=list)
    unsure: list[bytes] = field(default_factory=list)

    def note(self, job: int) -> None:
        """Which of the job's pages count, in the same write."""
        kinds = (
            (claims.STORED, self.stored), (claims.GIVEN_BACK, self.given_back), (claims.UNSURE, self.unsure),
        )  # fmt: skip
        self.change.writes += [claims.row(job, kind, entries) for kind, entries in kinds if entries]


class Settling:
    """Called under the frontier's lock."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def settle(self, job: int, lease: Lease | None, results: Iterable[UrlResult]) -> Settlement:
        """Work through the results of a report. Nothing is written yet, and the lease is not changed."""
        done = Settlement()
        tasks = lease.tasks if lease else {}
        by_key: dict[bytes, str] | None = None
        for result in self._finish_done(done, tasks, results):
            url = result.url
            if url not in tasks:  # another spelling, a late or a repeated report: rare, so the slow way
                if by_key is None:
                    by_key = {key_of_entry(task.entry, known): known for known, task in tasks.items()}
                address = resolve(url)
                key = self._core.view.key(address) if address else b""
                if key not in by_key:
                    self._settle_late(done, job, key, result)
                    continue
                url = by_key[key]
            if url not in done.settled:
                task = done.settled[url] = tasks[url]
                self._settle_task(done, url, task, result, job)
        self._read_signs(done)
        return done

    def _finish_done(
        self, done: Settlement, tasks: dict[str, Task], results: Iterable[UrlResult]
    ) -> Iterable[UrlResult]:
        """Nearly all results: URLs of the job that are done. In one loop without calls; returns the others."""
        change, signs, settled = done.change, done.signs, done.settled
        others: dict[str, list[UrlResult]] = {}  # by address: the first result of a URL counts
        touched, writes, by_id = change.hosts, change.writes, self._core.hosts.by_id
        now, number, stored = int(self._core.clock.now()), 0, 0
        visits = self._core.visits if self._core.visits.period.is_set else None
        note, entry = done.stored.append, claims.entry
        for result in results:
            url, outcome = result.url, result.outcome
            task = tasks.get(url)
            if task is None or url in others or CONSEQUENCES[outcome].state is not State.DONE or url in settled:
                others.setdefault(url, []).append(result)
                continue
            if is_apart(task.entry):
                others[url] = [result]
                continue
            settled[url] = task
            host = touched.get(task.host)
            if host is None:
                host = change.touch(by_id(task.host))
                signs[host.id] = Signs(well=1)  # all that are done are a sign of life
            host.leased -= 1
            host.done += 1
            number += 1
            key = key_of_entry(task.entry, url)
            if outcome is Outcome.STORED:
                host.stored += 1
                stored += 1
                note(entry(key, result.sha1))
            writes.append((Table.URLS, key, pack_ended(State.DONE, outcome, now, host.id)))
            if visits is not None and outcome is Outcome.STORED:
                visits.begin(change, key, unpack_entry(task.entry), result, self._core.clock.now())
        done.accepted += number
        change.counts.update(leased=-number, done=number, stored=stored, processed=number)
        return [result for results in others.values() for result in results]

    def _settle_task(self, done: Settlement, url: str, task: Task, result: UrlResult, job: int) -> None:
        core, change = self._core, done.change
        host = change.touch(core.hosts.by_id(task.host))
        consequence = CONSEQUENCES[result.outcome]
        done.accepted += 1
        if result.outcome is Outcome.STORED:
            done.stored.append(claims.entry(key_of_entry(task.entry, url), result.sha1))
        elif result.outcome is Outcome.INTERNAL:
            done.unsure.append(claims.entry(key_of_entry(task.entry, url)))
        signs = done.signs.get(host.id)
        if signs is None:
            signs = done.signs[host.id] = Signs()
        if consequence.sign is Sign.WELL:
            signs.well += 1
        elif consequence.sign is Sign.DEAD:
            signs.dead += 1
        elif consequence.sign is Sign.BUSY:
            signs.busy += 1
        if consequence.state is State.QUEUED:
            self._put_back(change, host, task, job)
            return
        host.leased -= 1
        change.counts["leased"] -= 1
        if is_apart(task.entry):
            change.count_again(host, leased=-1)
        if consequence.state is State.DONE:
            change.counts["processed"] += 1
            self._finish(done, host, unpack_entry(task.entry), result)
        else:
            self._settle_other(done, host, task, result)

    def _finish(self, done: Settlement, host: Host, entry: Entry, result: UrlResult) -> None:
        """The URL is done. A page that was stored before is done again, whatever has become of it."""
        core, change, now = self._core, done.change, self._core.clock.now()
        if entry.is_sitemap:
            if entry.is_again and _is_page(entry, result.outcome):
                self._finish_as_page(done, host, entry, result.outcome)
                return
            core.visits.go_on(change, entry.key, entry, result, now)
            change.finish_sitemap(host, entry.key, result.outcome, now, entry.is_again)
            return
        if entry.is_again:
            core.visits.go_on(change, entry.key, entry, result, now)
            change.finish_again(host, entry.key, result.outcome, now)
            return
        if result.outcome is Outcome.STORED:
            core.visits.begin(change, entry.key, entry, result, now)
        change.finish(host, entry.key, result.outcome, now)

    def _finish_as_page(self, done: Settlement, host: Host, entry: Entry, outcome: Outcome) -> None:
        """A stored page was no sitemap, or it could not be read as one: then it is visited as before."""
        host.sitemaps -= 1
        self._core.visits.resume(done.change, entry.key)
        done.change.finish_as_page(host, entry.key, self._core.clock.now(), outcome is Outcome.UNWANTED)

    def _settle_other(self, done: Settlement, host: Host, task: Task, result: UrlResult) -> None:
        """Excluded, failed, or to be tried again."""
        core, entry = self._core, unpack_entry(task.entry)
        factor = wait_factor(result.outcome, entry.tries + 1)
        if factor is not None:
            host.queued += 1
            done.change.counts["queued"] += 1
            due = core.clock.now() + factor * core.rules.retry_wait_seconds
            done.change.wait(host, task.number, entry._replace(tries=entry.tries + 1), due)
        elif entry.is_again:
            self._finish(done, host, entry, result)
        elif entry.is_sitemap and result.outcome is Outcome.UNWANTED and (entry.is_linked or not entry.is_guessed):
            self._take_for_page(done, host, entry)
        elif entry.is_guessed:
            self._finish(done, host, entry, result)
        elif CONSEQUENCES[result.outcome].state is State.EXCLUDED:
            host.sitemaps -= entry.is_sitemap
            done.change.exclude(host, entry.key, _rule(result))
        else:
            self._fail(done, host, entry._replace(tries=entry.tries + 1), result.outcome, result.detail)

    def _take_for_page(self, done: Settlement, host: Host, entry: Entry) -> None:
        """What was named as a sitemap is none, so it is a page like any other: nobody shall keep one from being crawled
        by calling it a sitemap."""
        core, change = self._core, done.change
        host.sitemaps -= 1
        core.visits.end(change, entry.key)  # it may have been done before, and visited as a sitemap
        page = Entry(entry.url, entry.depth + 1, 0, 0, entry.own_key)
        if rule := core.policy.excluded_by(page.url, host.name, page.depth, page.hops):
            change.exclude(host, page.key, rule)
        else:
            host.queued += 1
            change.counts["queued"] += 1
            change.enqueue(host, core.order.next(host, page.depth), page.key, page.packed())

    def _fail(self, done: Settlement, host: Host, entry: Entry, outcome: Outcome, detail: str) -> None:
        now = self._core.clock.now()
        record = FailedRecord(
            entry.url, outcome, detail[:_MAX_DETAIL_LENGTH], entry.tries, now, host.id, entry.depth, entry.hops,
            entry.is_sitemap,
        )  # fmt: skip
        done.change.fail(host, entry.key, record)
        done.failed.append(record)

    def _settle_late(self, done: Settlement, job: int, key: bytes, result: UrlResult) -> None:
        """Accepted if the job lost the URL and nobody has taken it since; nothing happens if it was settled before."""
        core = self._core
        value = core.store.get(Table.URLS, key)
        state = UrlState.unpacked(value) if value else None
        if key in done.late:
            return
        if state is None:
            done.refused += 1
        elif state.state is State.QUEUED:
            packed = core.store.get(Table.AGAIN if state.is_apart else Table.QUEUE, state.place.packed())
            if packed is None or state.lost_by != job or not self._is_within_limits(done, state, result):
                done.refused += 1  # leased to another, queued for another reason, or too much
            elif CONSEQUENCES[result.outcome].state is not State.QUEUED:
                done.late.add(key)
                self._take_back(done, state)
                task = Task(state.place.host, state.place.number, packed)
                self._settle_task(done, url_of_entry(packed), task, result, job)

    def _is_within_limits(self, done: Settlement, state: UrlState, result: UrlResult) -> bool:
        """What may still be stored may be with others by now."""
        if result.outcome is not Outcome.STORED or state.is_apart:
            return True
        return self._core.limits.allow_one_more(self._core.hosts.by_id(state.place.host), done.change)

    def _take_back(self, done: Settlement, state: UrlState) -> None:
        """Count a queued URL as leased again, because its job has done it after all."""
        change, place = done.change, state.place
        host = change.touch(self._core.hosts.by_id(place.host))
        change.delete(Table.AGAIN if state.is_apart else Table.QUEUE, place.packed())
        host.queued -= 1
        host.leased += 1
        change.counts["queued"] -= 1
        change.counts["leased"] += 1
        if state.is_apart:
            change.count_again(host, queued=-1, leased=1)

    def finish(self, done: Settlement, lease: Lease) -> bool:
        """Complete the change with what is left of the lease; says whether that is nothing."""
        left = [task for url, task in lease.tasks.items() if url not in done.settled]
        key = job_key(lease.job)
        if left:
            done.change.put(Table.TASKS, key, pack_tasks(left))
        else:
            done.change.delete(Table.TASKS, key)
            done.change.delete(Table.JOBS, key)
        return not left

    def write(self, done: Settlement, job: int, lease: Lease | None) -> None:
        """Put the change on disk; then the lease shrinks, and hosts are freed."""
        core = self._core
        done.note(job)
        freed = Counter([task.host for task in done.settled.values()])
        if lease is not None:
            self._note_delays(lease.client, freed)
        try:
            core.books.commit(done.change)
            if lease is not None:
                for url in done.settled:
                    del lease.tasks[url]
                if not lease.tasks:
                    core.leases.remove(lease.job)
                for number, urls in freed.items():
                    core.free(core.hosts.by_id(number), lease.client, lease.job, urls)
        finally:
            core.line_up(done.change.turns)

    def _note_delays(self, client: str, freed: Counter[int]) -> None:
        """A host that its client is done with may be asked after its delay; on disk, because it may leave memory."""
        core = self._core
        for number, urls in freed.items():
            host = core.hosts.by_id(number)
            if not core.turns.has_more(number, client, urls):
                host.not_before = max(host.not_before, core.clock.now() + core.delay(host))

    def release(self, lease: Lease) -> int:
        """Put the unfinished URLs of a lease back where they stood; returns how many there were."""
        core, change = self._core, Change()
        for task in lease.tasks.values():
            host = change.touch(core.hosts.by_id(task.host))
            self._put_back(change, host, task, lease.job)
        done = Settlement(change, dict(lease.tasks))
        done.given_back = [claims.entry(key_of_entry(task.entry, url)) for url, task in lease.tasks.items()]
        self.finish(done, lease)
        self.write(done, lease.job, lease)
        return len(done.settled)

    def _put_back(self, change: Change, host: Host, task: Task, job: int) -> None:
        entry = unpack_entry(task.entry)
        number = task.number if entry.is_apart else self._core.order.kept(task.number, entry.depth)
        change.put_back(host, number, entry, lost_by=job)

    # --- hosts -------------------------------------------------------------------------------------------------

    def learn(self, done: Settlement, lease: Lease | None, facts: Sequence[HostFact]) -> None:
        """What the client says about hosts that it has, or had with what it has just reported."""
        core, now = self._core, self._core.clock.now()
        held = {task.host for task in lease.tasks.values()} if lease and facts else set()
        for fact in facts:
            host = core.hosts.find(fact.host)
            if host is None or not (host.id in held or host.id in done.signs):
                continue
            done.change.touch(host)
            host.crawl_delay = fact.crawl_delay_seconds
            host.address = _address(fact.address) or host.address
            if fact.latency_seconds > 0:
                host.latency = (host.latency + fact.latency_seconds) / 2 if host.latency else fact.latency_seconds
            if fact.retry_after_seconds > 0:
                host.retry_at = now + min(fact.retry_after_seconds, _LONGEST_PAUSE_SECONDS)
                host.not_before = max(host.not_before, host.retry_at)

    def _read_signs(self, done: Settlement) -> None:
        """What the outcomes of a report say about hosts: alive, busy, or dead."""
        for number, signs in done.signs.items():
            host = self._core.hosts.by_id(number)
            if signs.busy:
                self._core.slow_down(host)
            elif signs.well and host.backoff:
                host.backoff = host.backoff * _CALM if host.backoff > 0.1 else 0.0
            if signs.well or signs.busy:
                host.failures = host.parks = 0
            elif signs.dead:
                host.failures += signs.dead
                if host.failures >= DEAD_AFTER:
                    self._park(host)

    def _park(self, host: Host) -> None:
        """Set a host aside that does not answer; each time for longer."""
        host.failures = 0
        host.parks += 1
        if host.parks <= len(PARK_WAITS):
            wait = PARK_WAITS[host.parks - 1] * self._core.rules.retry_wait_seconds
            host.not_before = max(host.not_before, self._core.clock.now() + wait)

    # --- what time brings --------------------------------------------------------------------------------------

    def wake(self) -> None:
        """Queue the URLs whose time to be tried again has come."""
        core = self._core
        end = waiting_key(int(core.clock.now() * 1000) + 1, Place(0, 0))
        due = list(islice(core.store.scan(Table.WAITING, b"", end), _WAKE_LIMIT))
        if not due:
            return
        change = Change()
        for key, packed in due:
            place, entry = unpack_place(key[8:]), unpack_entry(packed)
            host = change.touch(core.hosts.by_id(place.host))
            host.waiting -= 1
            change.delete(Table.WAITING, key)
            if entry.is_apart:
                host.again_waiting -= 1
                change.enqueue_again(host, host.tail, entry)
                host.tail += 1
                continue
            change.enqueue(host, core.order.again(host, place.number, entry.depth), entry.key, packed)
        core.commit(change)

    def bury(self) -> Sequence[FailedRecord]:
        """Give up what is queued for hosts that stayed dead, some of it at a time; returns what was given up."""
        core, done = self._core, Settlement()
        dead = [host for host in core.hosts if host.is_given_up and host.ready > 0 and not host.leased]
        dead = [host for host in dead if not host.is_blocked]  # what those have queued stays queued
        for host in dead[:10]:
            done.change.touch(host)
            host.head = self._bury_queue(done, host, Table.QUEUE, host.head)
            if host.ready_again:
                host.again_head = self._bury_queue(done, host, Table.AGAIN, host.again_head)
        if dead:
            core.commit(done.change)
        return done.failed

    def _bury_queue(self, done: Settlement, host: Host, table: Table, head: int) -> int:
        """Returns where the first entry of the queue is now, at the earliest."""
        start, end = Place(host.id, head).packed(), Place(host.id + 1, 0).packed()
        for key, packed in islice(self._core.store.scan(table, start, end), _WAKE_LIMIT):
            entry, detail = unpack_entry(packed), "the host has not answered for long"
            done.change.delete(table, key)
            host.queued -= 1
            done.change.counts["queued"] -= 1
            if entry.is_apart:
                done.change.count_again(host, queued=-1)
            if entry.is_again or entry.is_guessed:
                self._finish(done, host, entry, UrlResult(entry.url, Outcome.REFUSED, detail=detail))
            else:
                self._fail(done, host, entry, Outcome.REFUSED, detail)
            head = unpack_place(key).number + 1
        return head


def _is_page(entry: Entry, outcome: Outcome) -> bool:
    """Whether a stored page that was asked for as a sitemap is none, or none as far as is known."""
    is_read = CONSEQUENCES[outcome].state is State.DONE
    return outcome is Outcome.UNWANTED or not (is_read or entry.is_guessed)


def _address(text: str) -> str:
    """In one spelling, as hosts at one address share their turns; empty if it is none."""
    return plain(text) if len(text) <= _LONGEST_ADDRESS and is_address(text) else ""


def _rule(result: UrlResult) -> str:
    """By which rule a client has excluded a URL; of what is unwanted also by whom or for what."""
    if result.outcome is not Outcome.UNWANTED or not result.detail:
        return result.outcome.value
    return f"{result.outcome.value}: {clean_text(result.detail)[:_MAX_RULE_LENGTH]}"

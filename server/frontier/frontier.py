"""The frontier's façade. Thread-safe: decides under one lock, makes it durable outside the lock, then returns."""

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from common.clock import Clock
from common.urls import digest, host_of, identity, resolve
from common.wire import FoundUrl, HostFact, HostShare, Outcome, Report, Totals, UrlResult, UrlTask
from server.frontier.change import TOTALS_KEY, Change
from server.frontier.leases import Lease, Leases
from server.frontier.records import (
    KEY_LENGTH,
    Entry,
    FailedRecord,
    HostRecord,
    JobRecord,
    Place,
    State,
    UrlState,
    job_key,
    unpack_placed,
    unpack_totals,
    waiting_key,
)
from server.frontier.retries import CONSEQUENCES, wait_factor
from server.frontier.store import Store, Table
from server.frontier.turns import Turns
from server.policy.scope import Policy

_FORMAT_KEY, _FORMAT = b"format", b"1"
_NEXT_JOB_KEY = b"next job"
_FEW_URLS = 8  # a job takes at least so many URLs of a host if it has them: one robots.txt and one connection serve all
_WAKE_LIMIT = 10_000  # waiting URLs brought back in one call
_SHORTEST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS = 0.05, 5.0
_LONGEST_PAUSE_SECONDS = 86_400.0  # that a Retry-After can bring about
_MAX_DETAIL_LENGTH = 500
_OUTCOME_RULES = frozenset(outcome.value for outcome in Outcome)  # exclusions that a page or robots.txt decided


class FrontierError(Exception):
    """A call that does not fit the state of the frontier; the message is for the caller."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings that the frontier follows."""

    delay_seconds: float = 1.0
    max_crawl_delay_seconds: float = 60.0
    connections_per_host: int = 1
    lease_seconds: float = 300.0
    retry_wait_seconds: float = 30.0
    max_pages: int = 0
    drop_index_names: bool = True
    allow_private: bool = False


@dataclass(frozen=True, slots=True)
class Leased:
    """What `lease` hands out. Without tasks there is no job, and `wait_seconds` says when to ask again."""

    job: int
    tasks: Sequence[UrlTask]
    hosts: Sequence[HostShare]
    lease_seconds: float
    wait_seconds: float = 0.0
    finished: bool = False


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
        self._store = store
        self._policy = policy
        self._rules = rules
        self._clock = clock
        self._lock = threading.Lock()  # guards everything below and the order of writes
        self._hosts: dict[int, HostRecord] = {}
        self._host_ids: dict[str, int] = {}
        self._callers: dict[str, float] = {}  # client -> when it last asked for a job
        self._totals = Totals()
        self._next_host = self._next_job = 1
        self._leases = Leases()
        self._turns = Turns(rules.connections_per_host)
        self._load()

    # --- verbs -------------------------------------------------------------------------------------------------

    def add(self, found: Iterable[FoundUrl], start: bool = False) -> int:
        """Take in URLs; returns how many were not known. Start URLs are always inside, and may be private hosts."""
        keyed = self._keyed(found)
        unknown = self._unknown(keyed, start)  # most are known: found out without holding the lock
        with self._lock:
            change = self._change()
            if start:
                self._allow_private(change, keyed.values())
            new = self._admit(change, unknown, start)
            self._commit(change)
        self._store.sync()
        return new

    def lease(self, client: str, request: str, wanted: int) -> Leased:
        """A job for `client`. The same `request` again gives the same job, so that a lost answer costs nothing."""
        now = self._clock.now()
        self.expire()
        with self._lock:
            self._wake(now)
            self._note_caller(client, now)
            known = self._leases.of_request(client, request)
            leased = self._leased_again(known) if known else self._lease(client, request, wanted, now)
        self._store.sync()
        return leased

    def renew(self, client: str, job: int) -> float:
        """Extend a lease; returns for how many seconds."""
        with self._lock:
            lease = self._lease_of(client, job)
            self._extend(self._change(), lease)
        self._store.sync()
        return self._rules.lease_seconds

    def report(self, client: str, job: int, report: Report) -> Settled:
        """Settle URLs of a job and take in what was found, in one move. Repeating it changes nothing."""
        keyed = self._keyed(report.found)
        unknown = self._unknown(keyed)
        results = self._keyed_results(report.results)
        with self._lock:
            lease = self._leases.get(job)
            if lease is None and not 1 <= job < self._next_job:
                raise FrontierError(f"there has never been a job {job}")
            if lease is not None and lease.client != client:
                raise FrontierError(f"job {job} belongs to another client")
            change = self._change()
            freed, accepted, refused = self._settle_all(change, job, results)
            given_up = (value for table, _, value in change.writes if table is Table.FAILED)
            failed = [FailedRecord.unpacked(value) for value in given_up if value]
            self._learn(change, report.hosts)
            new = self._admit(change, unknown)
            if accepted:  # a repeated report was counted the first time
                change.count("size", report.size)
            self._finish(change, lease, freed)
        self._store.sync()
        return Settled(accepted, refused, new, failed)

    def release(self, client: str, job: int) -> int:
        """Give the unfinished URLs of a job back; returns how many there were."""
        with self._lock:
            lease = self._leases.get(job)
            if lease is None:
                return 0  # ended already: nothing to give back
            returned = self._release(self._lease_of(client, job))
        self._store.sync()
        return returned

    def expire(self) -> int:
        """Take back the jobs of silent clients; returns the number of URLs that are queued again."""
        with self._lock:
            overdue = self._leases.overdue(self._clock.now())
            returned = sum(self._release(lease) for lease in overdue)
        if overdue:
            self._store.sync()
        return returned

    def totals(self) -> Totals:
        """The counters. Cheap."""
        with self._lock:
            return replace(self._totals, hosts=len(self._hosts))

    def is_finished(self) -> bool:
        """Nothing queued or leased any more, or the page limit reached and nothing under way."""
        totals = self.totals()
        full = 0 < self._rules.max_pages <= totals.stored
        return totals.leased == 0 and (totals.queued == 0 or full)

    def state_of(self, url: str) -> UrlState | None:
        """The state of one URL; None if it is not known."""
        address = resolve(url)
        found = self._store.get(Table.URLS, self._key(address)) if address else None
        return UrlState.unpacked(found) if found else None

    def failed(self) -> Iterator[FailedRecord]:
        """All URLs that were given up."""
        return (FailedRecord.unpacked(value) for _, value in self._store.scan(Table.FAILED))

    def close(self) -> None:
        """After this no verb may be called."""
        with self._lock:
            self._store.sync()
            self._store.close()

    # --- start -------------------------------------------------------------------------------------------------

    def _load(self) -> None:
        form = self._store.get(Table.META, _FORMAT_KEY)
        if form not in (None, _FORMAT):
            raise FrontierError("the frontier on disk was written by another version; use that version or start afresh")
        if form is None:
            self._store.write([(Table.META, _FORMAT_KEY, _FORMAT)])
        if totals := self._store.get(Table.META, TOTALS_KEY):
            self._totals = unpack_totals(totals)
        self._next_job = int(self._store.get(Table.META, _NEXT_JOB_KEY) or b"1")
        for key, value in self._store.scan(Table.HOSTS):
            record = HostRecord.unpacked(key, value)
            self._hosts[record.id] = record
            self._host_ids[record.name] = record.id
            self._next_host = record.id + 1  # the table is in order
        # Clients could not renew while we were away: every lease begins anew.
        deadline = self._clock.now() + self._rules.lease_seconds
        for key, value in self._store.scan(Table.JOBS):
            self._leases.add(Lease(replace(JobRecord.unpacked(key, value), deadline=deadline)))
        for key, value in self._store.scan(Table.LEASED):
            lease = self._leases.get(int.from_bytes(key[:8], "big"))
            assert lease is not None, "leased URLs are written together with their job"
            place, _ = unpack_placed(value)
            lease.remaining[place.host] += 1
            self._turns.hold(place.host, lease.client, 1)
        now = self._clock.now()
        for record in self._hosts.values():
            # Nobody knows when the last request before the restart was, if there was one: assume just now.
            ready = max(record.not_before, now + self._delay(record)) if record.not_before else 0.0
            self._hosts[record.id] = replace(record, not_before=ready)
            self._offer(self._hosts[record.id])

    # --- adding ------------------------------------------------------------------------------------------------

    def _key(self, address: str) -> bytes:
        return digest(identity(address, self._rules.drop_index_names))[:KEY_LENGTH]

    def _keyed(self, found: Iterable[FoundUrl]) -> dict[bytes, FoundUrl]:
        """By key, each once: the address found first, with the least depth. Drops what is no crawlable URL."""
        keyed: dict[bytes, FoundUrl] = {}
        for item in found:
            address = resolve(item.url)
            if address is not None:
                key = self._key(address)
                first = keyed.get(key, FoundUrl(address, item.depth, item.hops))
                depth, hops = min(first.depth, item.depth), min(first.hops, item.hops)
                keyed[key] = FoundUrl(first.url, max(0, depth), max(0, hops))
        return keyed

    def _unknown(self, keyed: dict[bytes, FoundUrl], start: bool = False) -> dict[bytes, FoundUrl]:
        """Those that are not known, or only as excluded by a rule that does not hold for them now."""
        states = self._store.get_many(Table.URLS, list(keyed))
        return {
            key: item
            for (key, item), state in zip(keyed.items(), states, strict=True)
            if state is None or self._is_reprieved(UrlState.unpacked(state), item, start)
        }

    def _is_reprieved(self, state: UrlState, item: FoundUrl, start: bool) -> bool:
        """A shorter way to a URL beyond max_depth, say. What robots.txt or the type of a page excluded stays so."""
        if state.state is not State.EXCLUDED or state.rule in _OUTCOME_RULES:
            return False
        if state.number != self._host_ids.get(host_of(item.url)):  # counted there, so it stays there
            return False
        return not self._rule_against(item, start)

    def _rule_against(self, item: FoundUrl, start: bool) -> str:
        return "" if start else self._policy.excluded_by(host_of(item.url), item.depth, item.hops)

    def _admit(self, change: Change, unknown: dict[bytes, FoundUrl], start: bool = False) -> int:
        """Returns how many were not known at all."""
        states = self._store.get_many(Table.URLS, list(unknown))  # again, now that nobody else can add
        for (key, item), state in zip(unknown.items(), states, strict=True):
            if state is not None and not self._is_reprieved(UrlState.unpacked(state), item, start):
                continue
            before = State.EXCLUDED if state else None
            host = self._host_record(change, host_of(item.url)).id
            if rule := self._rule_against(item, start):
                change.set_state(key, UrlState(State.EXCLUDED, host, rule.encode()))
                change.move(host, before, State.EXCLUDED)
            else:
                change.append(host, Entry(key, item.url, item.depth, item.hops, 0))
                change.move(host, before, State.QUEUED)
        return list(states).count(None)

    def _allow_private(self, change: Change, starts: Iterable[FoundUrl]) -> None:
        """An operator may crawl the hosts that he names, wherever they are."""
        for item in starts:
            record = self._host_record(change, host_of(item.url))
            change.put_host(replace(record, allow_private=True))

    def _host_record(self, change: Change, name: str) -> HostRecord:
        host = self._host_ids.get(name)
        if host is None:
            # Kept when the change that brings it fails: the next one that names the host writes it.
            host = self._host_ids[name] = self._next_host
            self._next_host += 1
        if host not in self._hosts and host not in change.hosts:
            change.put_host(HostRecord(host, name))
        return change.host(host)

    # --- leasing -----------------------------------------------------------------------------------------------

    def _lease(self, client: str, request: str, wanted: int, now: float) -> Leased:
        budget = self._budget(wanted)
        share = self._turns.fair_share(client, now)
        picked: list[int] = []
        rows: list[tuple[Place, Entry]] = []
        try:
            change = self._change()
            while (left := budget - len(rows)) > 0:  # hosts with few URLs do not fill a job at once
                hosts = self._turns.pick(client, now, min(-(-left // _FEW_URLS), share - len(picked)))
                if not hosts:
                    break
                picked += hosts
                rows += self._take(change, self._next_job, hosts, left)
            self._turns.served(client, now, bool(rows))
            if not rows:
                return self._nothing(now)
            record = JobRecord(self._next_job, client, request, now + self._rules.lease_seconds)
            lease = self._begin(change, record, [place for place, _ in rows])
            return self._handed_out(lease, [entry for _, entry in rows])
        finally:
            for host in picked:  # also those of which nothing was taken, and when the write failed
                self._offer(self._hosts[host])

    def _begin(self, change: Change, record: JobRecord, places: Sequence[Place]) -> Lease:
        change.put(Table.JOBS, job_key(record.job), record.packed())
        change.put(Table.META, _NEXT_JOB_KEY, str(record.job + 1).encode())
        change.count("sent", len(places))
        self._commit(change)
        lease = Lease(record)
        lease.remaining.update(place.host for place in places)
        self._next_job = record.job + 1
        self._leases.add(lease)
        return lease

    def _budget(self, wanted: int) -> int:
        if not self._rules.max_pages:
            return wanted
        return min(wanted, self._rules.max_pages - self._totals.stored - self._totals.leased)

    def _take(self, change: Change, job: int, picked: Sequence[int], budget: int) -> list[tuple[Place, Entry]]:
        rows: list[tuple[Place, Entry]] = []
        for number, host in enumerate(picked):
            left = budget - len(rows)
            share = max(_FEW_URLS, -(-left // (len(picked) - number)))
            record = self._hosts[host]
            places = list(islice(self._queue(record), min(left, share, self._room(record))))
            for place, packed in places:
                entry = Entry.unpacked(packed)
                change.lease(job, place, packed, entry.key)
                change.move(host, State.QUEUED, State.LEASED)
                rows.append((place, entry))
            if places:
                head, asked = places[-1][0].number + 1, max(record.not_before, self._clock.now())
                change.put_host(replace(change.host(host), head=head, not_before=asked))
        return rows

    def _room(self, record: HostRecord) -> int:
        """How many more URLs of a host fit into a lease at its delay, beside those that are out."""
        delay = self._delay(record)
        if delay == 0:
            return 1_000_000
        # Below zero: the host has asked for a longer delay than it had when its URLs were leased.
        return max(0, max(1, int(self._rules.lease_seconds / 2 / delay)) - record.leased)

    def _queue(self, record: HostRecord) -> Iterator[tuple[Place, bytes]]:
        start, end = Place(record.id, record.head).packed(), Place(record.id + 1, 0).packed()
        return ((Place.unpacked(key), value) for key, value in self._store.scan(Table.QUEUE, start, end))

    def _leased_again(self, lease: Lease) -> Leased:
        self._extend(self._change(), lease)  # the answer promises the whole time again
        rows = self._store.scan(Table.LEASED, job_key(lease.job), job_key(lease.job + 1))
        in_order = sorted(value for _, value in rows)  # a value begins with host and place
        return self._handed_out(lease, [Entry.unpacked(unpack_placed(value)[1]) for value in in_order])

    def _handed_out(self, lease: Lease, entries: Sequence[Entry]) -> Leased:
        clients = len(self._leases.clients() | self._callers.keys())
        shares = [self._share(self._hosts[host], lease.client, clients) for host in lease.remaining]
        tasks = [UrlTask(entry.url, entry.depth, entry.hops) for entry in entries]
        return Leased(lease.job, tasks, shares, self._rules.lease_seconds)

    def _note_caller(self, client: str, now: float) -> None:
        """Who wants work counts when connections are shared out, also when there was nothing left for it."""
        since = now - 2 * _LONGEST_WAIT_SECONDS
        self._callers = {name: asked for name, asked in self._callers.items() if asked > since}
        self._callers[client] = now

    def _share(self, record: HostRecord, client: str, clients: int) -> HostShare:
        connections = self._turns.hold(record.id, client, clients)
        private = record.allow_private or self._rules.allow_private
        return HostShare(record.name, self._delay(record), connections, private)

    def _nothing(self, now: float) -> Leased:
        """Why there is nothing, in the form of: come back then."""
        next_ready = self._turns.next_ready()
        wait = _LONGEST_WAIT_SECONDS if next_ready is None else next_ready - now
        for key, _ in islice(self._store.scan(Table.WAITING), 1):
            wait = min(wait, int.from_bytes(key[:8], "big") / 1000 - now)
        if self._totals.leased:  # what others find may be for this client
            wait = min(wait, 1.0)
        wait = min(max(wait, _SHORTEST_WAIT_SECONDS), _LONGEST_WAIT_SECONDS)
        full = 0 < self._rules.max_pages <= self._totals.stored
        finished = self._totals.leased == 0 and (self._totals.queued == 0 or full)
        return Leased(0, (), (), self._rules.lease_seconds, wait, finished)

    def _wake(self, now: float) -> None:
        """Queue the URLs whose time to be tried again has come."""
        end = waiting_key(now, b"\xff" * KEY_LENGTH)
        due = list(islice(self._store.scan(Table.WAITING, b"", end), _WAKE_LIMIT))
        if not due:
            return
        change = self._change()
        for key, value in due:
            place, packed = unpack_placed(value)
            change.delete(Table.WAITING, key)
            change.count_waiting(place.host, -1)
            change.append(place.host, Entry.unpacked(packed))
        self._commit(change)

    # --- settling ----------------------------------------------------------------------------------------------

    def _keyed_results(self, results: Iterable[UrlResult]) -> dict[bytes, UrlResult]:
        addresses = ((resolve(result.url), result) for result in results)
        return {self._key(address): result for address, result in addresses if address is not None}

    def _settle_all(
        self, change: Change, job: int, results: dict[bytes, UrlResult]
    ) -> tuple[list[int], int, int]:
        """Returns the hosts of the URLs that left the lease, and how many URLs were accepted and refused."""
        freed: list[int] = []
        accepted = refused = 0
        leased = self._store.get_many(Table.LEASED, [job_key(job) + key for key in results])
        for (key, result), value in zip(results.items(), leased, strict=True):
            if value is not None:
                place, packed = unpack_placed(value)
                change.delete(Table.LEASED, job_key(job) + key)
                self._settle(change, place, Entry.unpacked(packed), result, State.LEASED)
                freed.append(place.host)
                accepted += 1
            elif (late := self._take_late(change, key, job)) is not None:
                self._settle(change, *late, result, State.QUEUED)
                accepted += 1
            elif not self._is_settled(key):
                refused += 1
        return freed, accepted, refused

    def _take_late(self, change: Change, key: bytes, job: int) -> tuple[Place, Entry] | None:
        """A URL that `job` lost and that nobody has taken since: out of the queue again."""
        value = self._store.get(Table.URLS, key)
        state = UrlState.unpacked(value) if value else None
        if state is None or state.state is not State.QUEUED or state.number != job:
            return None
        stored = self._store.get(Table.QUEUE, state.place.packed())
        assert stored is not None, "state and queue are written together"
        change.delete(Table.QUEUE, state.place.packed())
        return state.place, Entry.unpacked(stored)

    def _is_settled(self, key: bytes) -> bool:
        """Also when it is to be tried again: a repeated report is not refused, it just changes nothing."""
        value = self._store.get(Table.URLS, key)
        return value is not None and UrlState.unpacked(value).state not in (State.QUEUED, State.LEASED)

    def _settle(self, change: Change, place: Place, entry: Entry, result: UrlResult, before: State) -> None:
        outcome, now = result.outcome, self._clock.now()
        tried = replace(entry, tries=entry.tries + 1)
        factor = wait_factor(outcome, tried.tries)
        if factor is not None:
            change.wait(now + factor * self._rules.retry_wait_seconds, place, tried)
            change.move(place.host, before, State.WAITING)
            return
        state = CONSEQUENCES[outcome].state
        change.set_state(entry.key, UrlState.ended(state, outcome) if state is not State.EXCLUDED
                         else UrlState(state, 0, outcome.value.encode()))  # fmt: skip
        change.move(place.host, before, state)
        if state is State.FAILED:
            failed = FailedRecord(entry.url, outcome, result.detail[:_MAX_DETAIL_LENGTH], tried.tries, now)
            change.put(Table.FAILED, entry.key, failed.packed())
        if outcome is Outcome.STORED:
            change.count("stored")

    def _learn(self, change: Change, facts: Iterable[HostFact]) -> None:
        for fact in facts:
            host = self._host_ids.get(fact.host)
            if host is not None and host in self._hosts:
                record = change.host(host)
                until = record.not_before
                if fact.retry_after_seconds > 0:
                    pause = min(fact.retry_after_seconds, _LONGEST_PAUSE_SECONDS)
                    until = max(until, self._clock.now() + pause)
                change.put_host(replace(record, crawl_delay=fact.crawl_delay_seconds, not_before=until))

    def _finish(self, change: Change, lease: Lease | None, settled: Sequence[int]) -> None:
        """Write a report; the lease ends with its last URL, and is extended otherwise."""
        if lease is None:
            self._commit(change)
            return
        left = sum(lease.remaining.values()) - len(settled)
        if left == 0:
            change.delete(Table.JOBS, job_key(lease.job))
            self._commit(change)
            self._leases.remove(lease.job)
        else:
            self._extend(change, lease)
        lease.remaining.subtract(settled)
        for host in set(settled):
            self._free_if_done(lease.client, host)

    def _release(self, lease: Lease) -> int:
        prefix = job_key(lease.job)
        change = self._change()
        rows = list(self._store.scan(Table.LEASED, prefix, job_key(lease.job + 1)))
        for key, value in rows:
            place, packed = unpack_placed(value)
            change.delete(Table.LEASED, key)
            change.put_back(place, key[len(prefix) :], packed, lease.job)
            change.move(place.host, State.LEASED, State.QUEUED)
        change.delete(Table.JOBS, prefix)
        self._commit(change)
        self._leases.remove(lease.job)
        for host in lease.remaining:
            self._free_if_done(lease.client, host)
        return len(rows)

    def _free_if_done(self, client: str, host: int) -> None:
        """When a client has nothing of a host any more, others may have it, after the delay."""
        if not self._leases.holds(client, host):
            self._turns.free(host, client)
            record = self._hosts[host]
            ready = max(record.not_before, self._clock.now() + self._delay(record))
            # In memory only until the host's next change: a restart lets the delay begin anew.
            self._hosts[host] = replace(record, not_before=ready)
            self._offer(self._hosts[host])

    # --- small things ------------------------------------------------------------------------------------------

    def _change(self) -> Change:
        return Change(self._hosts, self._totals)

    def _commit(self, change: Change) -> None:
        """Write first, then believe it."""
        self._store.write(change.finished())
        self._hosts.update(change.hosts)
        self._totals = change.totals
        for host in change.hosts:
            self._offer(self._hosts[host])

    def _offer(self, record: HostRecord) -> None:
        if record.queued > record.waiting and self._room(record):
            self._turns.offer(record.id, record.not_before, self._clock.now(), self._delay(record) == 0)
        else:
            self._turns.withdraw(record.id)

    def _extend(self, change: Change, lease: Lease) -> None:
        record = replace(lease.record, deadline=self._clock.now() + self._rules.lease_seconds)
        change.put(Table.JOBS, job_key(lease.job), record.packed())
        self._commit(change)
        lease.record = record

    def _lease_of(self, client: str, job: int) -> Lease:
        lease = self._leases.get(job)
        if lease is None:
            raise FrontierError(f"job {job} is not leased (any more)")
        if lease.client != client:
            raise FrontierError(f"job {job} belongs to another client")
        return lease

    def _delay(self, record: HostRecord) -> float:
        wanted = min(record.crawl_delay, self._rules.max_crawl_delay_seconds)
        return max(self._rules.delay_seconds, wanted)

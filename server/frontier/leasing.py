"""Handing out work: which hosts, how many URLs of each, under which job, and when to come back if there is nothing."""

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

from common.wire import HostShare, UrlTask
from server.frontier import claims, jobnames
from server.frontier.change import Change
from server.frontier.core import Core
from server.frontier.hosts import Host
from server.frontier.jobnames import NEXT_JOB_KEY
from server.frontier.leases import Lease
from server.frontier.records import (
    JobRecord,
    Place,
    Task,
    depth_and_hops,
    is_apart,
    is_taken_over,
    job_key,
    key_of_entry,
    kind_of_entry,
    pack_tasks,
    unpack_entry,
    unpack_tasks,
    url_of_entry,
)
from server.frontier.store import Store, Table

_LOST_JOBS = 1_000_000  # more than can have been given out since the last moment that is known
_FEW_URLS = 8  # a job takes at least so many URLs of a host if it has them: one robots.txt and one connection serve all
_SMALL_JOB = 50  # URLs; smaller ones cost more calls and bundles than they gain
_SHORTEST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS = 0.05, 15.0


@dataclass(frozen=True, slots=True)
class Leased:
    """What `lease` hands out. Without tasks there is no job, and `wait_seconds` says when to ask again."""

    job: int
    tasks: Sequence[UrlTask]
    hosts: Sequence[HostShare]
    lease_seconds: float
    wait_seconds: float = 0.0
    finished: bool = False
    give_back: Sequence[str] = ()  # hosts: what the client has not begun with of these, others could work on


class Leasing:
    """Called under the frontier's lock."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._callers: dict[str, float] = {}  # client -> when it last asked for a job
        self._misses: Counter[str] = Counter()  # client -> how often in a row it got nothing
        self._next_job = jobnames.next_job(core.store)
        self._load()

    def _load(self) -> None:
        """The leases that were out. Clients could not renew while we were away, so each begins anew."""
        core = self._core
        deadline = core.clock.now() + core.rules.lease_seconds
        for key, value in core.store.scan(Table.JOBS):
            packed = core.store.get(Table.TASKS, key) or b""
            tasks = {unpack_entry(task.entry).url: task for task in unpack_tasks(packed)}
            lease = Lease(replace(JobRecord.unpacked(key, value), deadline=deadline), tasks)
            core.leases.add(lease)
            for task in tasks.values():
                host = core.hosts.by_id(task.host)
                core.turns.hold(host.id, core.slot(host), lease.client, lease.job, 1, core.delay(host) == 0)

    def has_been(self, job: int) -> bool:
        """Whether there has ever been a job of this number."""
        return 1 <= job < self._next_job

    def lease(self, client: str, request: str, wanted: int) -> Leased:
        """A job, or when to ask again."""
        core, now = self._core, self._core.clock.now()
        client = sys.intern(client)  # each host remembers it
        self._note_caller(client, now)
        known = core.leases.of_request(client, request)
        if known is not None:
            change = Change()
            self.extend(change, known)  # the answer promises the whole time again
            core.commit(change)
            return self._handed_out(known, is_new=False)
        lease = None if core.is_paused or core.limits.over() else self._new(client, request, wanted, now)
        core.turns.served(client, now, lease is not None)
        if lease is not None:
            self._misses.pop(client, None)
            leased = self._handed_out(lease, is_new=True)
        else:
            self._misses[client] += 1
            leased = self._nothing(client, now)
        return replace(leased, give_back=self._surplus(client, now))

    def _surplus(self, client: str, now: float) -> list[str]:
        """Not of hosts whose connections can be shared: who wants some gets them."""
        core = self._core
        hosts = map(core.hosts.by_id, core.turns.surplus(client, now))
        shares_out = core.rules.connections_per_host > 1
        return [host.name for host in hosts if not (shares_out and core.delay(host) == 0)]

    def extend(self, change: Change, lease: Lease) -> None:
        """Begin the time of a lease anew. If the change is not written, that does no harm: it is longer in memory."""
        core = self._core
        lease.record = replace(lease.record, deadline=core.clock.now() + core.rules.lease_seconds)
        change.put(Table.JOBS, job_key(lease.job), lease.record.packed())

    def _new(self, client: str, request: str, wanted: int, now: float) -> Lease | None:
        core = self._core
        new_budget = max(0, core.limits.urls_left(wanted))
        budget = min(wanted, new_budget + core.books.totals.again, self._fair_part())
        change, picked, slots, tasks, served = Change(), list[int](), set[str](), dict[str, Task](), 0
        try:
            while (left := budget - len(tasks)) > 0:  # hosts with few URLs do not fill a job at once
                numbers = core.turns.pick(client, now, -(-left // _FEW_URLS), slots, served > 0)
                if not numbers:
                    break
                picked += numbers
                hosts = [core.hosts.by_id(number) for number in numbers]
                served += self._take(change, hosts, left, new_budget, tasks, client)
            if not tasks:
                return None
            record = JobRecord(self._next_job, client, request, now + core.rules.lease_seconds)
            change.put(Table.JOBS, job_key(record.job), record.packed())
            change.put(Table.TASKS, job_key(record.job), pack_tasks(tasks.values()))
            change.put(Table.META, NEXT_JOB_KEY, str(record.job + 1).encode())
            change.counts.update(sent=len(tasks), leased=len(tasks), queued=-len(tasks))
            core.books.commit(change)
        finally:
            core.line_up(picked)  # also those of which nothing was taken, and when the write failed
        self._next_job += 1
        lease = Lease(record, tasks)
        core.leases.add(lease)
        return lease

    def _fair_part(self) -> int:
        """How many URLs one client may take of what is left, so that all end together and none has the last job."""
        return max(_SMALL_JOB, -(-self._core.books.totals.queued // self._clients()))

    def _clients(self) -> int:
        return len(self._core.leases.clients() | self._callers.keys())

    def _take(
        self, change: Change, hosts: Sequence[Host], budget: int, new_budget: int, tasks: dict[str, Task], client: str
    ) -> int:
        """Returns how many of the hosts had something. `new_budget`: so many of all tasks of the job may be pages that
        are not stored yet."""
        core, now, served = self._core, self._core.clock.now(), 0
        wanted = len(tasks) + budget
        for number, host in enumerate(hosts):
            left = wanted - len(tasks)
            share = left if host.priority > 0 else max(_FEW_URLS, -(-left // (len(hosts) - number)))
            limit = max(0, min(left, share, core.room(host)))
            new_left = new_budget - len(tasks) + change.counts["again_leased"]
            # Never more than there are: a scan that looks for more passes all that was ever taken of other hosts.
            again = self._rows(Table.AGAIN, host, host.again_head, min(limit, host.ready_again))
            new_limit = limit - min(len(again), -(-limit // 2))  # half of each, if there are so many
            new_limit = max(0, min(core.limits.urls_left_of(host, new_limit), new_left, host.ready - host.ready_again))
            new = self._rows(Table.QUEUE, host, host.head, new_limit)
            del again[limit - len(new) :]
            if again or new:
                served += 1
                change.touch(host)
                host.queued -= len(new) + len(again)
                host.leased += len(new) + len(again)
                host.not_before = max(host.not_before, now)
                host.client = client
                host.is_fresh = True
            if new:
                host.head = self._hand_out(change, Table.QUEUE, host, new, tasks)
            if again:
                host.again_head = self._hand_out(change, Table.AGAIN, host, again, tasks)
                change.count_again(host, queued=-len(again), leased=len(again))
        return served

    def _rows(self, table: Table, host: Host, head: int, limit: int) -> list[tuple[bytes, bytes]]:
        start, end = Place(host.id, head).packed(), Place(host.id + 1, 0).packed()
        return list(islice(self._core.store.scan(table, start, end), limit)) if limit else []

    def _hand_out(
        self, change: Change, table: Table, host: Host, rows: list[tuple[bytes, bytes]], tasks: dict[str, Task]
    ) -> int:
        """Returns where the next one of the host stands, at the earliest."""
        writes = change.writes
        for key, packed in rows:
            tasks[url_of_entry(packed)] = Task(host.id, int.from_bytes(key[4:], "big"), packed)
            writes.append((table, key, None))
        return int.from_bytes(rows[-1][0][4:], "big") + 1

    def _handed_out(self, lease: Lease, is_new: bool) -> Leased:
        core = self._core
        clients = self._clients()
        urls = Counter([task.host for task in lease.tasks.values()])
        shares = [
            self._share(core.hosts.by_id(host), lease, number if is_new else 0, clients)
            for host, number in urls.items()
        ]
        tasks = [UrlTask(url, *depth_and_hops(task.entry)) for url, task in lease.tasks.items()]
        if core.books.totals.again_leased:
            tasks = self._with_conditions(lease, tasks)
        return Leased(lease.job, tasks, shares, core.rules.lease_seconds)

    def _with_conditions(self, lease: Lease, tasks: list[UrlTask]) -> list[UrlTask]:
        """What was visited before is asked for only if it has changed, but a page that may be a sitemap in any case:
        what it lists was not looked at. And what is a sitemap is said."""
        apart = {url: task.entry for url, task in lease.tasks.items() if is_apart(task.entry)}
        keys = {url: key_of_entry(entry, url) for url, entry in apart.items()}
        visits = self._core.visits.of([key for url, key in keys.items() if not is_taken_over(apart[url])])
        known = {url: visits[key] for url, key in keys.items() if key in visits}
        tasks = [
            task._replace(etag=visit.etag, last_modified=visit.last_modified, sha1=visit.sha1.hex())
            if (visit := known.get(task.url))
            else task
            for task in tasks
        ]
        return [task._replace(kind=kind_of_entry(apart[task.url])) if task.url in apart else task for task in tasks]

    def _share(self, host: Host, lease: Lease, urls: int, clients: int) -> HostShare:
        core = self._core
        delay, slot = core.delay(host), core.slot(host)
        connections = core.turns.hold(host.id, slot, lease.client, lease.job, urls, delay == 0, clients)
        private = "" if core.rules.allow_private else " ".join(host.private)
        return HostShare(host.name, delay, connections, core.rules.allow_private, slot, private)

    def _note_caller(self, client: str, now: float) -> None:
        """Who wants work counts when connections are shared out, also when there was nothing left for it."""
        since = now - 2 * _LONGEST_WAIT_SECONDS
        self._callers = {name: asked for name, asked in self._callers.items() if asked > since}
        self._callers[client] = now
        for gone in self._misses.keys() - self._callers.keys():
            del self._misses[gone]

    def _nothing(self, client: str, now: float) -> Leased:
        """When to come back: when something is due, or, if that cannot be known, after growing waits."""
        core = self._core
        next_ready = core.turns.next_ready()
        until = _LONGEST_WAIT_SECONDS if next_ready is None or core.is_paused else next_ready - now
        for key, _ in islice(core.store.scan(Table.WAITING), 1):
            until = min(until, int.from_bytes(key[:8], "big") / 1000 - now)
        if not core.rules.one_round:
            until = min(until, core.visits.next_due() - now)
        growing = _SHORTEST_WAIT_SECONDS * 2 ** min(self._misses[client], 20)
        # What is ready now is another's; and what others find at any time may be for this client.
        wait = growing if until <= 0 else min(until, growing) if core.books.totals.leased else until
        wait = min(max(wait, _SHORTEST_WAIT_SECONDS), _LONGEST_WAIT_SECONDS)
        return Leased(0, (), (), core.rules.lease_seconds, wait, core.is_finished())


def skip_jobs(store: Store) -> None:
    """After changes were lost: no number is given out again that a client may still have, or a bundle."""
    next_job = jobnames.next_job(store) + _LOST_JOBS
    begun = str(next_job).encode()  # notes may be lost, too
    numbers = (Table.META, NEXT_JOB_KEY, begun), (Table.META, claims.SINCE_KEY, begun)
    store.write([*numbers, *jobnames.after_loss(store, next_job)])

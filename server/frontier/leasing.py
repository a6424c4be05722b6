"""Handing out work: which hosts, how many URLs of each, under which job, and when to come back if there is nothing."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

from common.wire import HostShare, UrlTask
from server.frontier.change import Change
from server.frontier.core import Core
from server.frontier.hosts import Host
from server.frontier.leases import Lease
from server.frontier.records import (
    JobRecord,
    Place,
    Task,
    depth_and_hops,
    job_key,
    pack_tasks,
    unpack_entry,
    unpack_tasks,
    url_of_entry,
)
from server.frontier.store import Table

_NEXT_JOB_KEY = b"next job"
_FEW_URLS = 8  # a job takes at least so many URLs of a host if it has them: one robots.txt and one connection serve all
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


class Leasing:
    """Called under the frontier's lock."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._callers: dict[str, float] = {}  # client -> when it last asked for a job
        self._misses: Counter[str] = Counter()  # client -> how often in a row it got nothing
        self._next_job = int(core.store.get(Table.META, _NEXT_JOB_KEY) or b"1")
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
        self._note_caller(client, now)
        known = core.leases.of_request(client, request)
        if known is not None:
            change = Change()
            self.extend(change, known)  # the answer promises the whole time again
            core.commit(change)
            return self._handed_out(known, is_new=False)
        lease = None if core.is_paused else self._new(client, request, core.limits.urls_left(wanted), now)
        core.turns.served(client, now, lease is not None)
        if lease is not None:
            self._misses.pop(client, None)
            return self._handed_out(lease, is_new=True)
        self._misses[client] += 1
        return self._nothing(client, now)

    def extend(self, change: Change, lease: Lease) -> None:
        """Begin the time of a lease anew. If the change is not written, that does no harm: it is longer in memory."""
        core = self._core
        lease.record = replace(lease.record, deadline=core.clock.now() + core.rules.lease_seconds)
        change.put(Table.JOBS, job_key(lease.job), lease.record.packed())

    def _new(self, client: str, request: str, budget: int, now: float) -> Lease | None:
        core = self._core
        share = core.turns.fair_share(client, now)
        change, picked, tasks = Change(), list[int](), dict[str, Task]()
        try:
            while (left := budget - len(tasks)) > 0:  # hosts with few URLs do not fill a job at once
                numbers = core.turns.pick(client, now, min(-(-left // _FEW_URLS), share - len(picked)), bool(picked))
                if not numbers:
                    break
                picked += numbers
                hosts = [core.hosts.by_id(number) for number in numbers]
                self._take(change, hosts, left, tasks, client)
            if not tasks:
                return None
            record = JobRecord(self._next_job, client, request, now + core.rules.lease_seconds)
            change.put(Table.JOBS, job_key(record.job), record.packed())
            change.put(Table.TASKS, job_key(record.job), pack_tasks(tasks.values()))
            change.put(Table.META, _NEXT_JOB_KEY, str(record.job + 1).encode())
            change.counts.update(sent=len(tasks), leased=len(tasks), queued=-len(tasks))
            core.books.commit(change)
        finally:
            core.line_up(picked)  # also those of which nothing was taken, and when the write failed
        self._next_job += 1
        lease = Lease(record, tasks)
        core.leases.add(lease)
        return lease

    def _take(self, change: Change, hosts: Sequence[Host], budget: int, tasks: dict[str, Task], client: str) -> None:
        core, writes, now = self._core, change.writes, self._core.clock.now()
        wanted = len(tasks) + budget
        for number, host in enumerate(hosts):
            left = wanted - len(tasks)
            share = left if host.priority > 0 else max(_FEW_URLS, -(-left // (len(hosts) - number)))
            limit = min(left, share, core.room(host))
            start, end = Place(host.id, host.head).packed(), Place(host.id + 1, 0).packed()
            rows = list(islice(core.store.scan(Table.QUEUE, start, end), max(0, limit)))
            for key, packed in rows:
                tasks[url_of_entry(packed)] = Task(host.id, int.from_bytes(key[4:], "big"), packed)
                writes.append((Table.QUEUE, key, None))
            if rows:
                change.touch(host)
                host.head = int.from_bytes(rows[-1][0][4:], "big") + 1
                host.queued -= len(rows)
                host.leased += len(rows)
                host.not_before = max(host.not_before, now)
                host.client = client
                host.is_fresh = True

    def _handed_out(self, lease: Lease, is_new: bool) -> Leased:
        core = self._core
        clients = len(core.leases.clients() | self._callers.keys())
        urls = Counter([task.host for task in lease.tasks.values()])
        shares = [
            self._share(core.hosts.by_id(host), lease, number if is_new else 0, clients)
            for host, number in urls.items()
        ]
        tasks = [UrlTask(url, *depth_and_hops(task.entry)) for url, task in lease.tasks.items()]
        return Leased(lease.job, tasks, shares, core.rules.lease_seconds)

    def _share(self, host: Host, lease: Lease, urls: int, clients: int) -> HostShare:
        core = self._core
        delay, slot = core.delay(host), core.slot(host)
        connections = core.turns.hold(host.id, slot, lease.client, lease.job, urls, delay == 0, clients)
        return HostShare(host.name, delay, connections, host.allow_private or core.rules.allow_private, slot)

    def _note_caller(self, client: str, now: float) -> None:
        """Who wants work counts when connections are shared out, also when there was nothing left for it."""
        since = now - 2 * _LONGEST_WAIT_SECONDS
        self._callers = {name: asked for name, asked in self._callers.items() if asked > since}
        self._callers[client] = now

    def _nothing(self, client: str, now: float) -> Leased:
        """When to come back: when something is due, or, if that cannot be known, after growing waits."""
        core = self._core
        next_ready = core.turns.next_ready()
        until = _LONGEST_WAIT_SECONDS if next_ready is None or core.is_paused else next_ready - now
        for key, _ in islice(core.store.scan(Table.WAITING), 1):
            until = min(until, int.from_bytes(key[:8], "big") / 1000 - now)
        growing = _SHORTEST_WAIT_SECONDS * 2 ** min(self._misses[client], 20)
        # What is ready now is another's; and what others find at any time may be for this client.
        wait = growing if until <= 0 else min(until, growing) if core.books.totals.leased else until
        wait = min(max(wait, _SHORTEST_WAIT_SECONDS), _LONGEST_WAIT_SECONDS)
        return Leased(0, (), (), core.rules.lease_seconds, wait, core.is_finished())

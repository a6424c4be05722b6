"""What the frontier says about itself to a person: everything about one URL, and how all of it stands. Reads only."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from common.urls import digest, host_of
from common.wire import Totals
from server.frontier.core import Core
from server.frontier.hosts import Host
from server.frontier.order import score_of
from server.frontier.records import KEY_LENGTH, FailedRecord, State, UrlState, unpack_entry, waiting_key
from server.frontier.retries import PARK_WAITS
from server.frontier.store import Table


@dataclass(frozen=True, slots=True)
class HostState:
    """How one host stands. For a host that is not known: what would hold for it."""

    name: str
    delay_seconds: float  # between two requests, everything considered
    own_delay_seconds: float | None = None  # set by an operator
    is_blocked: bool = False
    is_parked: bool = False  # it did not answer; asked again at `not_before`
    not_before: float = 0.0  # UTC
    address: str = ""
    priority: int = 0  # set by an operator
    is_full: bool = False  # it has max_pages_per_host pages
    known: int = 0
    queued: int = 0
    leased: int = 0
    done: int = 0
    stored: int = 0
    failed: int = 0
    excluded: int = 0


@dataclass(frozen=True, slots=True)
class Explanation:
    """All that the frontier knows of one URL."""

    url: str  # the address that was asked about
    identity: str
    digest: str
    state: str  # of State in lower case, or "unknown"
    host: HostState
    reason: str = ""  # outcome and detail, or the rule that excluded it
    requested: str = ""  # the address found first, which is the one that is asked for; known until it is done
    depth: int = 0
    score: int | None = None  # with traversal = priority, while it is queued
    tries: int = 0
    due: float = 0.0  # UTC; when it can be asked for, as far as that is known
    ended: float = 0.0  # UTC; when it was done or given up
    is_sitemap: bool = False
    absent_since: float = 0.0  # UTC; its page is stored, but was gone or moved at the last visits
    interval_seconds: float = 0.0  # between two visits of the page
    client: str = ""  # who has it
    job: int = 0
    deadline: float = 0.0  # UTC; of the job


@dataclass(frozen=True, slots=True)
class JobState:
    """A job that is out."""

    job: int
    client: str
    urls: int  # not reported yet
    deadline: float  # UTC


@dataclass(frozen=True, slots=True)
class Overview:
    """How the whole frontier stands."""

    totals: Totals
    is_paused: bool
    is_finished: bool
    ended_by: str  # the limit that has ended the crawl, or is about to
    running_seconds: float  # in all runs together
    next_due: float  # UTC; when the next page is to be visited again; 0 if none is
    jobs: Sequence[JobState]
    blocked: Sequence[HostState]
    delayed: Sequence[HostState]  # with a delay that an operator has set
    prioritised: Sequence[HostState]  # by an operator
    parked: Sequence[HostState]
    full: Sequence[HostState]  # with something queued that max_pages_per_host holds back


def explained(core: Core, address: str) -> Explanation:
    """All that is known of one URL."""
    name = core.rules.identity(address)
    host = core.hosts.find(host_of(address))
    known = Explanation(address, name, digest(name).hex(), "unknown", _host_state(core, host, host_of(address)))
    key = digest(name)[:KEY_LENGTH]
    packed = core.store.get(Table.URLS, key)
    if packed is None:
        return known
    state = UrlState.unpacked(packed)
    known = replace(known, state=state.state.name.lower(), is_sitemap=state.is_sitemap)
    if state.state is State.EXCLUDED:
        return replace(known, reason=state.rule)
    if state.state is State.FAILED:
        return _explained_failed(known, FailedRecord.unpacked(core.store.get(Table.FAILED, key) or b""))
    for visit in core.visits.of([key]).values():
        known = replace(
            known, due=visit.due / 1000, absent_since=float(visit.absent_since), interval_seconds=visit.interval,
            requested=visit.url, depth=visit.depth,
        )  # fmt: skip
    if state.state is State.DONE:
        return replace(known, reason=state.outcome.value, ended=float(state.time))
    return _explained_open(core, known, state)


def _explained_failed(known: Explanation, failed: FailedRecord) -> Explanation:
    return replace(
        known, reason=f"{failed.outcome}: {failed.detail}", tries=failed.tries, ended=failed.time,
        requested=failed.url, depth=failed.depth,
    )  # fmt: skip


def _explained_open(core: Core, known: Explanation, state: UrlState) -> Explanation:
    if core.order.is_by_score and not state.is_apart:
        known = replace(known, score=score_of(state.place.number, 0))
    if state.state is State.WAITING:
        packed = core.store.get(Table.WAITING, waiting_key(state.due, state.place))
        return _with_entry(replace(known, due=state.due / 1000), packed)
    packed = core.store.get(Table.AGAIN if state.is_apart else Table.QUEUE, state.place.packed())
    if packed is not None:
        return _with_entry(replace(known, due=known.host.not_before), packed)
    for lease in core.leases:
        for task in lease.tasks.values():
            if (task.host, task.number) == state.place:
                leased = replace(known, state="leased", client=lease.client, job=lease.job)
                return _with_entry(replace(leased, deadline=lease.record.deadline), task.entry)
    return known


def _with_entry(known: Explanation, packed: bytes | None) -> Explanation:
    if packed is None:
        return known
    entry = unpack_entry(packed)
    return replace(known, requested=entry.url, depth=entry.depth, tries=entry.tries)


def overview(core: Core) -> Overview:
    """Cheap enough for a running server: looks at the jobs that are out and at the hosts in memory."""
    now = core.clock.now()
    set_hosts = [_host_state(core, host) for host in core.hosts.set_by_operator()]
    parked = [host for host in core.hosts if _is_parked(host, now)]
    return Overview(
        totals=core.books.totals,
        is_paused=core.is_paused,
        is_finished=core.is_finished(),
        ended_by=core.ended_by(),
        running_seconds=core.running.seconds(),
        next_due=due if (due := core.visits.next_due()) < math.inf else 0.0,
        jobs=[JobState(lease.job, lease.client, len(lease.tasks), lease.record.deadline) for lease in core.leases],
        blocked=[host for host in set_hosts if host.is_blocked],
        delayed=[host for host in set_hosts if host.own_delay_seconds is not None],
        prioritised=[host for host in set_hosts if host.priority],
        full=[_host_state(core, host) for host in core.hosts if host.queued and core.limits.is_full(host)],
        parked=[_host_state(core, host) for host in parked],
    )


def _is_parked(host: Host, now: float) -> bool:
    return host.is_active and host.parks > 0 and (host.not_before > now or host.parks > len(PARK_WAITS))


def _host_state(core: Core, host: Host | None, name: str = "") -> HostState:
    if host is None:
        return HostState(name, core.rules.delay_seconds)
    return HostState(
        host.name, core.delay(host), host.own_delay if host.own_delay >= 0 else None, host.is_blocked,
        _is_parked(host, core.clock.now()), host.not_before, host.address, host.priority, core.limits.is_full(host),
        host.known, host.queued, host.leased, host.done, host.stored, host.failed, host.excluded,
    )  # fmt: skip

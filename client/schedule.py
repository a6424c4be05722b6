"""Which URL may be asked for next: a lane for each slot, ordered by when its hosts may be asked again.

A slot is what politeness is about: an IP address with all its hosts as far as the server knows them, or one host.
Thread-safe, no threads of its own, no I/O. A lane never has more requests under way than the host's share allows,
and never two of them closer than its delay. With one connection the delay runs from the end of a request, so that
it also holds where the host stands, whatever the network does to the moments in between.
"""

import heapq
import threading
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count

from client.fetcher import Visit
from common.clock import Clock
from common.urls import host_of
from common.wire import HostShare

PENDING_SECONDS = 0.05  # how soon to look again when another thread is fetching robots.txt


@dataclass(slots=True, eq=False)
class Ticket:
    """A visit on its way through the client, and the job it belongs to."""

    job: str
    visit: Visit
    is_under_way: bool = False  # taken, and neither back nor done; guarded by the schedule's lock


@dataclass(slots=True, eq=False)
class _Lane:
    """The URLs of one slot. Guarded by the schedule's lock."""

    slot: str
    shares: dict[str, HostShare] = field(default_factory=dict)  # by host
    waiting: deque[Ticket] = field(default_factory=deque)
    under_way: Counter[str] = field(default_factory=Counter)  # requests by host
    due: float = 0.0  # ticks
    failures: dict[str, int] = field(default_factory=dict)  # by host: in a row, of the host rather than of a page
    asked: dict[str, float] = field(default_factory=dict)  # by host: the delay that it asked for itself
    order: int = 0  # the valid entry in the heap
    delay_seconds: float = 0.0
    connections: int = 1

    def set_share(self, share: HostShare) -> None:
        """What holds for one host holds for all that share its slot: the longest delay, the fewest connections."""
        self.shares[share.host] = share
        self._agree()

    def set_asked(self, host: str, delay_seconds: float) -> None:
        self.asked[host] = max(self.asked.get(host, 0.0), delay_seconds)
        self._agree()

    def _agree(self) -> None:
        delays = [share.delay_seconds for share in self.shares.values()]
        self.delay_seconds = max([*delays, *self.asked.values()], default=0.0)
        self.connections = min([share.connections for share in self.shares.values()], default=1)

    def give(self, host: str, other: "_Lane") -> None:
        """All that concerns one host goes to another lane."""
        other.waiting += [ticket for ticket in self.waiting if _concerns(ticket, host, None)]
        self.waiting = deque(ticket for ticket in self.waiting if not _concerns(ticket, host, None))
        other.under_way[host] = self.under_way.pop(host, 0)
        other.due = max(other.due, self.due)
        if host in self.failures:
            other.failures[host] = self.failures.pop(host)
        if host in self.asked:
            other.asked[host] = self.asked.pop(host)
        if host in self.shares:
            other.shares[host] = self.shares.pop(host)
        self._agree()
        other._agree()

    @property
    def is_open(self) -> bool:
        return bool(self.waiting) and self.under_way.total() < self.connections


class Schedule:
    """All URLs that this client has to ask for."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._changed = threading.Condition()  # guards everything below
        self._lanes: dict[str, _Lane] = {}  # by slot
        self._by_host: dict[str, _Lane] = {}  # until its lane has nothing to do any more
        self._heap: list[tuple[float, int, _Lane]] = []
        self._order = count(1)
        self._closed = False

    def add(self, tickets: Iterable[Ticket], shares: Iterable[HostShare]) -> None:
        """Take in a job. What the server says about a host now replaces what it said before."""
        with self._changed:
            for lane in list(self._lanes.values()):
                self._forget_if_empty(lane)  # those that were kept for their delay
            for share in shares:
                self._lane_for(share).set_share(share)
            for ticket in tickets:
                lane = self._lane_of(ticket)
                lane.waiting.append(ticket)
                self._push(lane)
            self._changed.notify_all()

    def take(self) -> Ticket | None:
        """Wait for a URL that may be asked for now; None when the schedule is closed."""
        with self._changed:
            while not self._closed:
                lane = self._due_lane()
                if lane is not None:
                    return self._begin(lane)
                self._changed.wait(self._wait_seconds())
            return None

    def again(self, ticket: Ticket, requested: bool) -> None:
        """The visit needs another turn, before the others of its host."""
        with self._changed:
            lane = self._lane_of(ticket)
            lane.waiting.appendleft(ticket)
            self._end(lane, ticket, requested)
            if not requested:
                lane.due = max(lane.due, self._clock.ticks() + PENDING_SECONDS)
                self._push(lane)

    def done(self, ticket: Ticket, requested: bool, host_failed: bool = False) -> int:
        """The visit is over; returns how many times in a row the host has failed."""
        with self._changed:
            lane, host = self._lane_of(ticket), host_of(ticket.visit.task.url)
            if requested:
                lane.failures[host] = lane.failures.get(host, 0) + 1 if host_failed else 0
            self._end(lane, ticket, requested)
            return lane.failures.get(host, 0)

    def drop(self, ticket: Ticket) -> None:
        """Nobody knows how far `again` or `done` have come with it: now it is neither waiting nor under way, and its
        lane goes on."""
        with self._changed:
            lane = self._lane_of(ticket)
            lane.waiting = deque(each for each in lane.waiting if each is not ticket)
            self._end(lane, ticket, requested=True)

    def hold(self, host: str, seconds: float, delay_seconds: float = 0.0) -> None:
        """Ask the host nothing for so many seconds, and keep at least this delay from now on."""
        with self._changed:
            if lane := self._by_host.get(host):
                lane.set_asked(host, delay_seconds)
                lane.due = max(lane.due, self._clock.ticks() + seconds)
                self._push(lane)

    def locate(self, host: str, address: str) -> None:
        """The host has answered at this IP address: from now on it shares the delay with all others there."""
        with self._changed:
            if host in self._by_host:
                self._move(host, address)

    def withdraw(self, host: str | None = None, job: str | None = None) -> list[Ticket]:
        """Take out what waits: of a host, of a job, or all."""
        with self._changed:
            taken: list[Ticket] = []
            for lane in list(self._lanes.values()):
                if host is None or self._by_host.get(host) is lane:
                    out = [ticket for ticket in lane.waiting if _concerns(ticket, host, job)]
                    lane.waiting = deque(ticket for ticket in lane.waiting if not _concerns(ticket, host, job))
                    taken += out
                    self._forget_if_empty(lane)
            return taken

    def waiting(self) -> int:
        """URLs that nobody has begun with."""
        with self._changed:
            return sum(len(lane.waiting) for lane in self._lanes.values())

    def capacity(self) -> int:
        """How many threads the lanes could keep busy."""
        with self._changed:
            lanes = self._lanes.values()
            return sum(min(lane.connections, len(lane.waiting) + lane.under_way.total()) for lane in lanes)

    def close(self) -> None:
        """Wake everybody who waits; nothing is handed out any more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _lane_of(self, ticket: Ticket) -> _Lane:
        lane = self._by_host.get(host_of(ticket.visit.task.url))
        if lane is None:
            lane = self._lane_for(ticket.visit.share)
            lane.set_share(ticket.visit.share)
        return lane

    def _lane_for(self, share: HostShare) -> _Lane:
        slot = share.slot or share.host
        if share.host not in self._by_host:
            self._by_host[share.host] = self._lanes.setdefault(slot, _Lane(slot))
        elif slot != share.host:  # else the server does not know yet what we may know
            self._move(share.host, slot)
        return self._by_host[share.host]

    def _move(self, host: str, slot: str) -> None:
        old = self._by_host[host]
        if old.slot == slot:
            return
        new = self._by_host[host] = self._lanes.setdefault(slot, _Lane(slot))
        old.give(host, new)
        self._push(old)
        self._push(new)
        self._forget_if_empty(old)

    def _push(self, lane: _Lane) -> None:
        if lane.is_open:
            lane.order = next(self._order)
            heapq.heappush(self._heap, (lane.due, lane.order, lane))
            self._changed.notify()

    def _due_lane(self) -> _Lane | None:
        now = self._clock.ticks()
        while self._heap and self._heap[0][0] <= now:
            _, order, lane = heapq.heappop(self._heap)
            if lane.order == order and lane.is_open:  # else outdated
                return lane
        return None

    def _wait_seconds(self) -> float | None:
        return max(0.0, self._heap[0][0] - self._clock.ticks()) if self._heap else None

    def _begin(self, lane: _Lane) -> Ticket:
        ticket = lane.waiting.popleft()
        lane.under_way[host_of(ticket.visit.task.url)] += 1
        ticket.is_under_way = True
        if lane.connections > 1:
            lane.due = self._clock.ticks() + lane.delay_seconds
        self._push(lane)
        return ticket

    def _end(self, lane: _Lane, ticket: Ticket, requested: bool) -> None:
        host = host_of(ticket.visit.task.url)
        if ticket.is_under_way:  # else it was ended before
            ticket.is_under_way = False
            lane.under_way[host] -= 1
            if not lane.under_way[host]:
                del lane.under_way[host]
        if requested and lane.connections == 1:
            lane.due = max(lane.due, self._clock.ticks() + lane.delay_seconds)
        self._push(lane)
        self._forget_if_empty(lane)

    def _forget_if_empty(self, lane: _Lane) -> None:
        # Kept until its delay is over: the host may come back with the next job.
        if not lane.waiting and not lane.under_way.total() and lane.due <= self._clock.ticks():
            self._lanes.pop(lane.slot, None)
            for host in lane.shares:
                self._by_host.pop(host, None)


def _concerns(ticket: Ticket, host: str | None, job: str | None) -> bool:
    return job in (None, ticket.job) and host in (None, host_of(ticket.visit.task.url))

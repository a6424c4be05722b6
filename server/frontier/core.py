"""What the verbs of the frontier share: the store, what is in memory, and the rules. Everything under one lock."""

from collections.abc import Iterable

from common.clock import Clock
from server.frontier.change import Books, Change
from server.frontier.hosts import Host, Hosts
from server.frontier.leases import Lease, Leases
from server.frontier.limits import Limits, RunningTime
from server.frontier.order import Order
from server.frontier.retries import PROBE_URLS
from server.frontier.store import Store
from server.frontier.turns import Turns
from server.frontier.view import View
from server.frontier.visits import Visits
from server.policy.policy import Policy

_MANY = 1_000_000
_LONGEST_BACKOFF_SECONDS = 300.0


class FrontierError(Exception):
    """A call that does not fit the state of the frontier; the message is for the caller."""


class Core:
    """What the verbs share. Only `Memory` leads to it, and only the frontier's lock leads to that."""

    def __init__(self, store: Store, view: View, clock: Clock) -> None:
        rules = view.rules
        self.store = store
        self.view = view
        self.rules = rules
        self.clock = clock
        self.opened_at = clock.now()
        self.hosts = Hosts(store)
        self.books = Books(store, self.hosts)
        self.order = Order(rules.traversal)
        self.running = RunningTime(store, clock)
        self.limits = Limits(
            self.books, self.running, rules.max_pages, rules.max_pages_per_host, rules.max_bytes, rules.max_time_seconds
        )
        self.visits = Visits(store, rules.period)
        self.leases = Leases()
        self.turns = Turns(rules.connections_per_host)
        self.is_paused = False
        set_hosts = self.hosts.set_by_operator()
        self.has_blocked = any(host.is_blocked for host in set_hosts)
        self.has_priorities = any(host.priority for host in set_hosts)

    @property
    def policy(self) -> Policy:
        return self.view.policy

    def commit(self, change: Change) -> None:
        """Write a change, and put its hosts in line (or take them out) as they are now, also when that failed."""
        try:
            self.books.commit(change)
        finally:
            self.line_up(change.turns)

    def line_up(self, numbers: Iterable[int]) -> None:
        """Put hosts in line that have something to hand out, and take out the others."""
        now = self.clock.now()
        for number in numbers:
            host = self.hosts.in_memory(number)
            if host is None:
                self.turns.withdraw(number)
                continue
            delay, slot = self.delay(host), self.slot(host)
            if self.has_priorities:
                self.turns.rank(number, host.priority)
            self.turns.move(number, slot, now + delay)  # its address may have become known
            not_before = host.not_before
            if not_before and not host.is_fresh:  # it or its address was asked before the restart: perhaps just then
                not_before = max(not_before, self.opened_at + delay)
            if host.ready == 0 or host.is_blocked or host.is_given_up or self.room(host) <= 0:
                self.turns.withdraw(number)
            else:
                self.turns.offer(number, slot, not_before, now, delay == 0, host.client)

    def slot(self, host: Host) -> str:
        """What the host shares its turns with: all hosts at its IP address, as far as that is known."""
        return host.address or host.name

    def delay(self, host: Host) -> float:
        """Seconds between two requests: as configured, or as robots.txt or an operator says; more if slow or busy."""
        if host.own_delay >= 0:
            return host.own_delay
        rules = self.rules
        asked = min(host.crawl_delay, rules.max_crawl_delay_seconds)
        delay = max(rules.delay_seconds, asked)
        if delay > 0:  # 0 says that the host is ours, and that speed is wanted
            delay = max(delay, min(host.latency, rules.max_crawl_delay_seconds))
        return delay + host.backoff

    def slow_down(self, host: Host) -> None:
        """The host asked for it: twice as long as before."""
        step = max(self.rules.delay_seconds, 1.0)
        host.backoff = min(max(2 * host.backoff, step), _LONGEST_BACKOFF_SECONDS)

    def room(self, host: Host) -> int:
        """How many more URLs of a host can be leased, beside those that are out."""
        delay, limit = self.delay(host), _MANY
        if host.failures or host.parks:  # perhaps dead: a few will show
            limit = PROBE_URLS
        elif delay > 0:  # what fits into half a lease, and can be asked for before max_time is over
            seconds = min(self.rules.lease_seconds / 2, self.limits.seconds_left())
            limit = max(1, int(seconds / delay))
        if self.order.is_newest_first:  # what a URL leads to comes before all others, so these wait for it
            limit = min(limit, self.rules.connections_per_host)
        # Can be below zero: the host has asked for a longer delay than it had when its URLs were leased.
        room = limit - host.leased
        if not self.limits.is_per_host:
            return room
        return min(room, max(0, self.limits.urls_left_of(host, room)) + host.ready_again)

    def free(self, host: Host, client: str, job: int, urls: int) -> None:
        """A client has finished with so many URLs of a host; after the last one others may have it, after the delay."""
        self.turns.settle(host.id, client, job, urls, self.clock.now() + self.delay(host))

    def is_finished(self) -> bool:
        """Nothing is leased, and nothing may be: a limit is reached, or all that is queued must not be asked for."""
        totals = self.books.totals
        if totals.leased:
            return False
        if self.limits.over():
            return True
        return totals.queued <= self._kept_back() and self.visits.next_due() > self.due_until()

    def due_until(self) -> float:
        """Pages that are due then can be visited again."""
        return self.opened_at if self.rules.one_round else self.clock.now()

    def ended_by(self) -> str:
        """The limit that has ended the crawl or is about to; empty if there is none, or if nothing is left anyway."""
        totals = self.books.totals
        if not totals.queued and not totals.leased:
            return ""
        has_new = totals.queued > totals.again
        if has_new and self.limits.has_all_pages():
            return "max_pages"
        if over := self.limits.over():
            return over
        if not has_new or not self.limits.is_per_host or not self.is_finished():
            return ""
        is_holding = any(host.queued > host.again and self.limits.is_full(host) for host in self.hosts)
        return "max_pages_per_host" if is_holding else ""

    def _kept_back(self) -> int:
        """How many queued URLs belong to hosts that are blocked, or would be one page too many."""
        has_all = self.limits.has_all_pages()
        if not self.has_blocked and not self.limits.is_per_host and not has_all:
            return 0
        blocked = sum(host.queued for host in self.hosts if host.is_blocked)
        full = (host for host in self.hosts if not host.is_blocked and (has_all or self.limits.is_full(host)))
        return blocked + sum(host.queued - host.again for host in full)

    def lease_of(self, client: str, job: int) -> Lease:
        lease = self.leases.get(job)
        if lease is None:
            raise FrontierError(f"job {job} is not leased (any more)")
        if lease.client != client:
            raise FrontierError(f"job {job} belongs to another client")
        return lease

"""Whose turn it is: hosts with something queued, ordered by when they may be asked next. In memory, no I/O, no lock.

A host that a client holds is offered to that client only: it paces its own requests, knows the robots rules and has
a connection open. With a delay of 0 and several connections per host, the rest of them is offered to others.
"""

import heapq
from collections import defaultdict
from itertools import count, islice
from math import inf

_HUNGRY_SECONDS = 30.0  # a client that has not asked for so long is not waiting any more


class Turns:
    """Round-robin over ready hosts. The frontier calls it under its lock."""

    def __init__(self, connections_per_host: int) -> None:
        self._limit = connections_per_host
        self._heap: list[tuple[float, int, int]] = []  # ready at, order of arrival, host; may hold outdated ones
        self._offers: dict[int, tuple[float, int, bool]] = {}  # host -> the heap's valid ready time, order, shareable
        self._order = count()
        self._holders: dict[int, dict[str, int]] = {}  # host -> client -> connections
        self._held: defaultdict[str, dict[int, None]] = defaultdict(dict)  # client -> hosts, oldest first
        self._hungry: dict[str, float] = {}  # client that got nothing -> when

    def offer(self, host: int, not_before: float, now: float, shareable: bool = False) -> None:
        """The host has something queued and may be asked from `not_before` on.

        It keeps its place in the line, or goes to the back of it: neither a busy host nor a new one pushes in.
        """
        ready_at, order, _ = self._offers.get(host, (-inf, 0, False))
        if ready_at < not_before:
            ready_at, order = max(not_before, now), next(self._order)
            heapq.heappush(self._heap, (ready_at, order, host))
        self._offers[host] = (ready_at, order, shareable)

    def withdraw(self, host: int) -> None:
        """The host has nothing to hand out now."""
        self._offers.pop(host, None)

    def hold(self, host: int, client: str, clients: int) -> int:
        """Give the host to a client; returns how many connections it may use."""
        others = sum(used for holder, used in self._holders.get(host, {}).items() if holder != client)
        shareable = host in self._offers and self._offers[host][2]
        share = -(-self._limit // max(1, clients)) if shareable else self._limit
        granted = max(1, min(share, self._limit - others))
        self._holders.setdefault(host, {})[client] = granted
        self._held[client][host] = None
        return granted

    def free(self, host: int, client: str) -> None:
        """The client has nothing of this host any more."""
        holders = self._holders.get(host, {})
        holders.pop(client, None)
        if not holders:
            self._holders.pop(host, None)
        self._held[client].pop(host, None)
        if not self._held[client]:
            del self._held[client]

    def pick(self, client: str, now: float, limit: int) -> list[int]:
        """Hosts for this client, its own first. They leave the line; the caller offers them again if need be."""
        own = self._held.get(client, {})
        picked = list(islice((host for host in own if self._is_ready(host, now)), limit))
        limit = min(limit, len(picked) + max(0, self.fair_share(client, now) - len(own)))
        for host in picked:
            self.withdraw(host)
        blocked = []
        while self._heap and len(picked) < limit and self._heap[0][0] <= now:
            ready_at, order, host = heapq.heappop(self._heap)
            if self._offers.get(host, (0, -1))[1] != order:
                continue  # outdated: offered anew or withdrawn since
            if self._is_free(host):
                picked.append(host)
                self.withdraw(host)
            else:
                blocked.append((ready_at, order, host))
        for item in blocked:
            heapq.heappush(self._heap, item)
        return picked

    def served(self, client: str, now: float, got_something: bool) -> None:
        """Remember who went away with nothing."""
        self._hungry.pop(client, None)
        if not got_something:
            self._hungry[client] = now

    def fair_share(self, client: str, now: float) -> int:
        """How many hosts a client may have: all, unless others go hungry; then those beyond its share run dry."""
        self._hungry = {name: since for name, since in self._hungry.items() if now - since < _HUNGRY_SECONDS}
        if not self._hungry.keys() - {client}:
            return len(self._offers) + len(self._holders)
        clients = self._held.keys() | self._hungry.keys() | {client}
        hosts = self._offers.keys() | self._holders.keys()
        return max(1, len(hosts) // len(clients))

    def next_ready(self) -> float | None:
        """When the next host that nobody holds is ready; None if there is none."""
        times = [ready_at for host, (ready_at, _, _) in self._offers.items() if self._is_free(host)]
        return min(times, default=None)

    def _is_ready(self, host: int, now: float) -> bool:
        return host in self._offers and self._offers[host][0] <= now

    def _is_free(self, host: int) -> bool:
        holders = self._holders.get(host)
        if not holders:
            return True
        return self._offers[host][2] and sum(holders.values()) < self._limit

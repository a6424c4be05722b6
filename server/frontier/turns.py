"""Whose turn it is: hosts with something queued, ordered by when they may be asked next. In memory, no I/O, no lock.

A host that a client holds is offered to that client only: it paces its own requests, knows the robots rules and has
a connection open. With a delay of 0 and several connections per host, the rest of them is offered to others.
"""

import heapq
from collections import defaultdict
from itertools import count, islice


class Turns:
    """Round-robin over ready hosts. The frontier calls it under its lock."""

    def __init__(self, connections_per_host: int) -> None:
        self._limit = connections_per_host
        self._heap: list[tuple[float, int, int]] = []  # ready at, order of arrival, host; may hold outdated ones
        self._offers: dict[int, tuple[float, int, bool]] = {}  # host -> the heap's valid ready time, order, shareable
        self._order = count()
        self._holders: dict[int, dict[str, int]] = {}  # host -> client -> connections
        self._held: defaultdict[str, dict[int, None]] = defaultdict(dict)  # client -> hosts, oldest first

    def offer(self, host: int, ready_at: float, shareable: bool = False) -> None:
        """The host has something queued and may be asked from `ready_at` on. Goes to the back of the line."""
        order = next(self._order)
        self._offers[host] = (ready_at, order, shareable)
        heapq.heappush(self._heap, (ready_at, order, host))

    def withdraw(self, host: int) -> None:
        """The host has nothing queued."""
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
        """Hosts for this client, its own first. The caller offers or withdraws each of them afterwards."""
        own = islice((host for host in self._held.get(client, ()) if host in self._offers), limit)
        picked = list(own)
        taken = set(picked)
        blocked = []
        while self._heap and len(picked) < limit and self._heap[0][0] <= now:
            ready_at, order, host = heapq.heappop(self._heap)
            if host in taken or self._offers.get(host, (0, -1))[1] != order:
                continue  # outdated: offered anew or withdrawn since
            if self._is_free(host):
                picked.append(host)
                taken.add(host)
            else:
                blocked.append((ready_at, order, host))
        for item in blocked:
            heapq.heappush(self._heap, item)
        return picked

    def next_ready(self) -> float | None:
        """When the next host that nobody holds is ready; None if there is none."""
        times = [ready_at for host, (ready_at, _, _) in self._offers.items() if self._is_free(host)]
        return min(times, default=None)

    def _is_free(self, host: int) -> bool:
        holders = self._holders.get(host)
        if not holders:
            return True
        return self._offers[host][2] and sum(holders.values()) < self._limit

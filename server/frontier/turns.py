"""Whose turn it is: hosts with something queued, ordered by when they may be asked next. In memory, no I/O, no lock.

- A *slot* is what politeness is about: an IP address, or a host whose address is not known yet. Hosts that share an
  address share its slot. A slot is with one client at a time; that client paces its requests to all its hosts.
- A host goes back to the client that had it last, if that asks in time: it knows the robots rules and has a connection.
- With a delay of 0 and several connections per host, the connections of a slot are shared out to those who ask.
- When a client goes away empty-handed, the others keep only their fair share of hosts; the rest run dry and are freed.
"""

import heapq
from collections import Counter, defaultdict
from itertools import count
from typing import NamedTuple

_LOYAL_SECONDS = 2.0  # so long a host waits for its last client before it goes to another one
_HUNGRY_SECONDS = 30.0  # a client that has not asked for so long is not waiting any more


class Offer(NamedTuple):
    """A host that has something to hand out."""

    ready_at: float
    order: int  # of arrival: who has waited longer comes first
    slot: str
    is_shareable: bool
    client: str  # who had it last


class Turns:
    """Round-robin over ready hosts. The frontier calls it under its lock."""

    def __init__(self, connections_per_host: int) -> None:
        self._limit = connections_per_host
        self._order = count(1)
        self._offers: dict[int, Offer] = {}
        # Heaps of (time, order, host); an entry whose order is not that of the offer any more is outdated.
        self._line: list[tuple[float, int, int]] = []
        self._lines: defaultdict[str, list[tuple[float, int, int]]] = defaultdict(list)  # of each last client
        self._parked: defaultdict[str, list[int]] = defaultdict(list)  # slot in use -> hosts that wait for it
        self._slot_ready: dict[str, float] = {}  # slot -> no request before; until that is over
        self._holders: defaultdict[str, dict[str, int]] = defaultdict(dict)  # slot -> client -> connections
        self._held: defaultdict[str, Counter[int]] = defaultdict(Counter)  # client -> host -> unfinished URLs
        self._slots: dict[int, str] = {}  # of held hosts: the slot under which they are held
        self._in_slot: Counter[tuple[str, str]] = Counter()  # client, slot -> its hosts there
        self._hungry: dict[str, float] = {}  # client that got nothing -> when

    # --- what there is to hand out -----------------------------------------------------------------------------

    def offer(self, host: int, slot: str, not_before: float, now: float, is_shareable: bool, client: str) -> None:
        """The host has something queued. It keeps its place in the line, unless it must wait for longer now."""
        known = self._offers.get(host)
        if known is not None and known.ready_at >= not_before and known.slot == slot:
            if known.is_shareable != is_shareable:
                self._offers[host] = known._replace(is_shareable=is_shareable)
            return
        ready_at = max(not_before, now, self._slot_ready.get(slot, 0.0))
        order = next(self._order)
        self._offers[host] = Offer(ready_at, order, slot, is_shareable, client)
        self._stand_in_line(host)

    def withdraw(self, host: int) -> None:
        """The host has nothing to hand out now."""
        self._offers.pop(host, None)

    def _stand_in_line(self, host: int) -> None:
        ready_at, order, _, _, client = self._offers[host]
        heapq.heappush(self._line, (ready_at + (_LOYAL_SECONDS if client else 0.0), order, host))
        if client:
            heapq.heappush(self._lines[client], (ready_at, order, host))

    def next_ready(self) -> float | None:
        """When the next host that nobody holds is ready; None if there is none."""
        while self._line and not self._is_valid(self._line[0]):
            heapq.heappop(self._line)
        return self._offers[self._line[0][2]].ready_at if self._line else None

    def _is_valid(self, item: tuple[float, int, int]) -> bool:
        offer = self._offers.get(item[2])
        return offer is not None and offer.order == item[1]

    # --- picking -----------------------------------------------------------------------------------------------

    def pick(self, client: str, now: float, limit: int) -> list[int]:
        """Hosts for this client, its own first. They leave the line; the caller offers them again if need be."""
        picked = [host for host in self._held.get(client, ()) if self._is_ready(host, now)][:limit]
        for host in picked:
            self.withdraw(host)
        limit = min(limit, len(picked) + max(0, self.fair_share(client, now) - len(self._held.get(client, ()))))
        if client in self._lines:
            self._pick_from(self._lines[client], client, now, limit, picked)
            if not self._lines[client]:
                del self._lines[client]
        self._pick_from(self._line, client, now, limit, picked)
        if not picked:  # better than nothing: a host that waits for its last client
            self._pick_from(self._line, client, now + _LOYAL_SECONDS, limit, picked)
        return picked

    def _pick_from(
        self, line: list[tuple[float, int, int]], client: str, now: float, limit: int, picked: list[int]
    ) -> None:
        while line and len(picked) < limit and line[0][0] <= now:
            item = heapq.heappop(line)
            if not self._is_valid(item):
                continue
            host = item[2]
            offer = self._offers[host]
            if self._is_free(offer, client):
                picked.append(host)
                self.withdraw(host)
            else:  # back in line when the slot is free
                self._parked[offer.slot].append(host)

    def _is_ready(self, host: int, now: float) -> bool:
        offer = self._offers.get(host)
        return offer is not None and offer.ready_at <= now

    def _is_free(self, offer: Offer, client: str) -> bool:
        holders = self._holders.get(offer.slot)
        if not holders or client in holders:
            return True
        return offer.is_shareable and sum(holders.values()) < self._limit

    # --- who has what ------------------------------------------------------------------------------------------

    def hold(self, host: int, slot: str, client: str, urls: int, is_shareable: bool, clients: int = 1) -> int:
        """The client has so many more URLs of the host; returns how many connections it may use."""
        slot = self._slots.setdefault(host, slot)
        held = self._held[client]
        if host not in held:
            self._in_slot[client, slot] += 1
        held[host] += urls
        holders = self._holders[slot]
        others = sum(used for holder, used in holders.items() if holder != client)
        share = -(-self._limit // max(1, clients)) if is_shareable else self._limit
        holders[client] = max(1, min(share, self._limit - others))
        return holders[client]

    def settle(self, host: int, client: str, urls: int) -> bool:
        """The client has so many fewer URLs of the host; says whether it has none any more."""
        held = self._held[client]
        held[host] -= urls
        if held[host] > 0:
            return False
        del held[host]
        if not held:
            del self._held[client]
        return True

    def free(self, host: int, client: str, ready_at: float) -> None:
        """After the last URL of a host: its slot goes to others, unless the client has another host there."""
        slot = self._slots[host]
        self._in_slot[client, slot] -= 1
        if self._in_slot[client, slot]:
            return
        del self._in_slot[client, slot]
        holders = self._holders[slot]
        del holders[client]
        if not holders:
            del self._holders[slot], self._slots[host]
        self._slot_ready[slot] = ready_at
        for other in self._parked.pop(slot, ()):
            if other in self._offers:
                offer = self._offers[other]
                self._offers[other] = offer._replace(ready_at=max(offer.ready_at, ready_at), order=next(self._order))
                self._stand_in_line(other)

    def forget_slots(self, now: float) -> None:
        """Slots whose delay is over need not be remembered."""
        self._slot_ready = {slot: ready for slot, ready in self._slot_ready.items() if ready > now}

    # --- fairness among clients --------------------------------------------------------------------------------

    def served(self, client: str, now: float, got_something: bool) -> None:
        """Remember who went away with nothing."""
        self._hungry.pop(client, None)
        if not got_something:
            self._hungry[client] = now

    def fair_share(self, client: str, now: float) -> int:
        """How many hosts a client may have: all, unless others go hungry."""
        if self._hungry:
            self._hungry = {name: since for name, since in self._hungry.items() if now - since < _HUNGRY_SECONDS}
        if not self._hungry.keys() - {client}:
            return len(self._offers) + len(self._slots)
        clients = self._held.keys() | self._hungry.keys() | {client}
        return max(1, len(self._offers.keys() | self._slots.keys()) // len(clients))

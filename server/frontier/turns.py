"""Whose turn it is: hosts with something queued, ordered by when they may be asked next. In memory, no I/O, no lock.

- A *slot* is what politeness is about: an IP address, or a host whose address is not known yet. Hosts that share an
  address share its slot. A slot is with one client at a time; that client paces its requests to all its hosts.
- When it turns out that hosts of several clients share an address, what is out stays out, and nothing more of that
  slot is handed out until only one of them has any of it.
- A host goes back to the client that had it last, if that asks in time: it knows the robots rules and has a connection.
- With a delay of 0 and several connections per host, the connections of a slot are shared out to those who ask. What a
  client was once granted counts as used until the URLs that came with it are settled: they may be under way.
- A host that an operator has given a priority waits for nobody in line: above 0 it comes before all others, below 0
  only when a client would go away with nothing.
- When a client goes away empty-handed that has less than its share of slots, the others keep only theirs, and are asked
  to give the rest back.
"""

import heapq
import sys
from collections import Counter, defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from itertools import count, islice
from typing import NamedTuple

_LOYAL_SECONDS = 2.0  # so long a host waits for its last client before it goes to another one
_ENOUGH_URLS = 50  # of a host without a delay, while others have nothing to do
_HUNGRY_SECONDS = 30.0  # a client that has not asked for so long is not waiting any more
_SWEEP_AFTER = 10_000  # new entries of the lines, at the least
_ALL = sys.maxsize  # slots


class Offer(NamedTuple):
    """A host that has something to hand out."""

    ready_at: float
    order: int  # of arrival: who has waited longer comes first
    slot: str
    is_shareable: bool
    client: str  # who had it last


Line = list[tuple[float, int, int]]  # a heap of (time, order, host)


@dataclass(slots=True)
class Grant:
    """What came with one job for one slot."""

    connections: int
    urls: int  # not settled yet


@dataclass(frozen=True, slots=True)
class _Picking:
    """Who is picking, and what it may have."""

    client: str
    now: float
    limit: int  # hosts
    share: int  # slots
    slots: set[str]  # that it has, with what it picks
    picked: list[int]

    def is_beyond_share(self, slot: str) -> bool:
        return len(self.slots) >= self.share and slot not in self.slots


class Turns:
    """Round-robin over ready hosts. The frontier calls it under its lock."""

    def __init__(self, connections_per_host: int) -> None:
        self._limit = connections_per_host
        self._order = count(1)
        self._offers: dict[int, Offer] = {}
        # An entry in a line whose order is not that of the offer any more is outdated.
        self._line: Line = []
        self._lines: defaultdict[str, Line] = defaultdict(list)  # of each last client
        self._stood = 0  # entries since the lines were swept
        self._parked: defaultdict[str, list[int]] = defaultdict(list)  # slot in use -> hosts that wait for it
        self._slot_ready: dict[str, float] = {}  # slot -> no request before; until that is over
        self._grants: defaultdict[str, dict[str, dict[int, Grant]]] = defaultdict(dict)  # slot -> client -> job
        self._held: defaultdict[str, dict[int, Counter[int]]] = defaultdict(dict)  # client -> host -> job -> its URLs
        self._slots: dict[int, str] = {}  # of held hosts: the slot under which they are held
        self._hungry: dict[str, float] = {}  # client that got nothing -> when
        self._ranks: dict[int, int] = {}  # host -> priority, of the few that have one; these do not stand in line

    # --- what there is to hand out -----------------------------------------------------------------------------

    def offer(self, host: int, slot: str, not_before: float, now: float, is_shareable: bool, client: str) -> None:
        """The host has something queued. It keeps its place in the line, unless it must wait for longer now."""
        known = self._offers.get(host)
        if known is not None and known.ready_at >= not_before and known.slot == slot:
            if known.is_shareable != is_shareable:
                self._offers[host] = known._replace(is_shareable=is_shareable)
            return
        free_at = max(not_before, self._slot_ready.get(slot, 0.0))
        self._offers[host] = Offer(max(free_at, now), next(self._order), slot, is_shareable, client)
        self._stand_in_line(host, free_at)

    def withdraw(self, host: int) -> None:
        """The host has nothing to hand out now."""
        self._offers.pop(host, None)

    def rank(self, host: int, priority: int) -> None:
        """What an operator wants of a host; 0 is as for all others."""
        if priority:
            self._ranks[host] = priority
        elif self._ranks.pop(host, 0) and host in self._offers:
            self._stand_again(host, 0.0)

    def _stand_in_line(self, host: int, free_at: float) -> None:
        """`free_at`: since when its last client can have it again."""
        ready_at, order, _, _, client = self._offers[host]
        heapq.heappush(self._line, (max(ready_at, free_at + _LOYAL_SECONDS if client else 0.0), order, host))
        if client:
            heapq.heappush(self._lines[client], (ready_at, order, host))
        self._stood += 1

    def _sweep(self) -> None:
        """An outdated entry leaves a line only at its head, which it may never reach: who gets all that it wants from
        its own line takes nothing from the common one. Looking through all is paid for by the many that came since."""
        if self._stood <= max(_SWEEP_AFTER, 2 * len(self._offers)):
            return
        self._stood = 0
        offers, ranks = self._offers, self._ranks
        for line in (self._line, *self._lines.values()):
            line[:] = [
                item for item in line
                if (offer := offers.get(item[2])) is not None and offer.order == item[1] and item[2] not in ranks
            ]  # fmt: skip
            heapq.heapify(line)
        for client in [client for client, line in self._lines.items() if not line]:
            del self._lines[client]

    @property
    def entries(self) -> int:
        """How many entries the lines have, also those that are outdated."""
        return len(self._line) + sum(map(len, self._lines.values()))

    def next_ready(self) -> float | None:
        """When the next host that nobody holds is ready; None if there is none."""
        while self._line and not self._is_valid(self._line[0]):
            heapq.heappop(self._line)
        times = [self._offers[host].ready_at for host in self._ranks if host in self._offers]
        if self._line:
            times.append(self._offers[self._line[0][2]].ready_at)
        return min(times, default=None)

    def _is_valid(self, item: tuple[float, int, int]) -> bool:
        offer = self._offers.get(item[2])
        return offer is not None and offer.order == item[1] and item[2] not in self._ranks

    # --- picking -----------------------------------------------------------------------------------------------

    def pick(self, client: str, now: float, limit: int, slots: set[str], has_some: bool = False) -> list[int]:
        """Hosts for this client, its own first. They leave the line; the caller offers them again if need be.

        `slots`: those of what was picked for the same job before; what is picked now comes to it. `has_some`: it has
        got some already, so hosts that wait for their last client are left to that one."""
        self._sweep()
        share = self.fair_share(client, now, slots)
        picked = self._ranked(client, now) if self._ranks else []
        kept = self._kept(client, share)
        picked += [host for host in kept if host not in self._ranks and self._is_ready(host, client, now)]
        del picked[limit:]
        for host in picked:
            self.withdraw(host)
        slots |= {self._slots[host] for host in kept}
        picking = _Picking(client, now, limit, share, slots, picked)
        if client in self._lines:
            self._pick_from(self._lines[client], now, picking)
            if not self._lines[client]:
                del self._lines[client]
        self._pick_from(self._line, now, picking)
        if not picked and not has_some:  # better than nothing: a host that waits for its last client
            self._pick_from(self._line, now + _LOYAL_SECONDS, picking)
        if not picked and not has_some and self._ranks:
            picked = self._ranked(client, now, below=True)[:limit]
            for host in picked:
                self.withdraw(host)
        return picked

    def _ranked(self, client: str, now: float, below: bool = False) -> list[int]:
        """Ready hosts with a priority above 0 (or below it), the highest first."""
        chosen = [host for host, rank in self._ranks.items() if (rank < 0) == below]
        chosen.sort(key=lambda host: -self._ranks[host])
        return [host for host in chosen if self._is_ready(host, client, now)]

    def _pick_from(self, line: Line, until: float, picking: "_Picking") -> None:
        client, now, picked = picking.client, picking.now, picking.picked
        early: Line = []
        while line and len(picked) < picking.limit and line[0][0] <= until:
            item = heapq.heappop(line)
            if not self._is_valid(item):
                continue
            host = item[2]
            offer = self._offers[host]
            if offer.ready_at > now or picking.is_beyond_share(offer.slot) or self._is_left_to_others(host, client):
                early.append(item)
            elif not self._is_free(host, client):  # back in line when the slot is free
                self._parked[offer.slot].append(host)
            elif self._is_due(offer, client, now):
                picked.append(host)
                picking.slots.add(offer.slot)
                self.withdraw(host)
            else:  # another host of the slot was asked while this one stood in line
                self._stand_again(host, self._slot_ready[offer.slot])
        for item in early:
            heapq.heappush(line, item)

    def _is_ready(self, host: int, client: str, now: float) -> bool:
        offer = self._offers.get(host)
        if offer is None or offer.ready_at > now or not self._is_free(host, client):
            return False
        if self._is_left_to_others(host, client):
            return False
        return self._is_due(offer, client, now)

    def _is_free(self, host: int, client: str) -> bool:
        offer = self._offers[host]
        others = self._used_by_others(offer.slot, client)
        if not others:
            return True
        return offer.is_shareable and (others < self._limit or client in self._grants[offer.slot])

    def _is_left_to_others(self, host: int, client: str) -> bool:
        """Of a host that can be shared the client has enough: what it gets beyond that, others could be working on. It
        stays in line for them."""
        if not self._offers[host].is_shareable or self._limit == 1 or not self._hungry.keys() - {client}:
            return False
        held = self._held.get(client, {}).get(host)
        return held is not None and held.total() >= _ENOUGH_URLS

    def _is_due(self, offer: Offer, client: str, now: float) -> bool:
        """Who has the slot keeps its delay himself."""
        return client in self._grants.get(offer.slot, ()) or self._slot_ready.get(offer.slot, 0.0) <= now

    def _used_by_others(self, slot: str, client: str) -> int:
        """The connections to a slot that other clients may be using."""
        return sum(_connections(grants) for holder, grants in self._grants.get(slot, {}).items() if holder != client)

    # --- who has what ------------------------------------------------------------------------------------------

    def hold(self, host: int, slot: str, client: str, job: int, urls: int, is_shareable: bool, clients: int = 1) -> int:
        """The client has so many more URLs of the host, with this job; returns how many connections it may use."""
        slot = self._slots.setdefault(host, slot)
        share = -(-self._limit // max(1, clients)) if is_shareable else self._limit
        connections = max(1, min(share, self._limit - self._used_by_others(slot, client)))
        if urls:
            self._held[client].setdefault(host, Counter())[job] += urls
            self._grant(slot, client, job, connections, urls)
        return connections

    def settle(self, host: int, client: str, job: int, urls: int, ready_at: float) -> bool:
        """So many URLs of a host are no longer with the client; says whether it has none any more.

        Its slot goes to others at `ready_at`, unless the client has another host there."""
        held = self._held[client][host]
        held[job] -= urls
        if not held[job]:
            del held[job]
        self._ungrant(self._slots[host], client, job, urls, ready_at)
        if held:
            return False
        del self._held[client][host]
        if not self._held[client]:
            del self._held[client]
        if not any(host in hosts for hosts in self._held.values()):
            del self._slots[host]
        return True

    def has_more(self, host: int, client: str, urls: int) -> bool:
        """Whether the client has more than so many URLs of the host."""
        return self._held[client][host].total() > urls

    def move(self, host: int, slot: str, ready_at: float) -> None:
        """The host is in another slot than we thought; who has URLs of it is in that one now."""
        old = self._slots.get(host)
        if old is None or old == slot:
            return
        self._slots[host] = slot
        for client, hosts in self._held.items():
            for job, urls in hosts.get(host, {}).items():
                self._grant(slot, client, job, self._grants[old][client][job].connections, urls)
                self._ungrant(old, client, job, urls, ready_at)

    def _grant(self, slot: str, client: str, job: int, connections: int, urls: int) -> None:
        grant = self._grants[slot].setdefault(client, {}).setdefault(job, Grant(connections, 0))
        grant.connections = max(grant.connections, connections)
        grant.urls += urls

    def _ungrant(self, slot: str, client: str, job: int, urls: int, ready_at: float) -> None:
        clients = self._grants[slot]
        grants = clients[client]
        grants[job].urls -= urls
        if grants[job].urls:
            return
        del grants[job]
        if not grants:
            del clients[client]
            self._slot_ready[slot] = ready_at
        if not clients:
            del self._grants[slot]
        for host in self._parked.pop(slot, ()):
            if host in self._offers:
                self._stand_again(host, 0.0 if grants else ready_at)

    def _stand_again(self, host: int, ready_at: float) -> None:
        offer = self._offers[host]
        self._offers[host] = offer._replace(ready_at=max(offer.ready_at, ready_at), order=next(self._order))
        self._stand_in_line(host, ready_at)

    def forget_slots(self, now: float) -> None:
        """Slots whose delay is over need not be remembered."""
        self._slot_ready = {slot: ready for slot, ready in self._slot_ready.items() if ready > now}

    # --- fairness among clients --------------------------------------------------------------------------------

    def served(self, client: str, now: float, got_something: bool) -> None:
        """Remember who went away with nothing."""
        self._hungry.pop(client, None)
        if not got_something:
            self._hungry[client] = now

    def fair_share(self, client: str, now: float, picked: Collection[str] = ()) -> int:
        """How many slots a client may have: all, unless another one goes hungry that has less than is due to it.
        `picked`: what it is about to get; these are neither offered any more nor held yet."""
        if self._hungry:
            self._hungry = {name: since for name, since in self._hungry.items() if now - since < _HUNGRY_SECONDS}
        hungry = self._hungry.keys() - {client}
        if not hungry:
            return _ALL
        due = self._due(client, picked)
        has = [number for name in hungry if (number := len(self._held_slots(name))) < due[name]]
        # One more than it has is nothing that would help it: it would only go to and fro.
        return max(due[client], min(has) + 1) if has else _ALL

    def _due(self, client: str, picked: Collection[str]) -> dict[str, int]:
        """The slots, shared out evenly to this client and the others who are there."""
        # By the ends of their names, where the number of a process stands: so that what is left over does not all go to
        # the processes of one worker.
        clients = sorted(self._held.keys() | self._hungry.keys() | {client}, key=lambda name: name[::-1])
        slots = len({offer.slot for offer in self._offers.values()}.union(self._grants, picked))
        share, left_over = divmod(slots, len(clients))
        return {name: share + (rank < left_over) for rank, name in enumerate(clients)}

    def surplus(self, client: str, now: float) -> list[int]:
        """Hosts beyond its share, which a client is to give back."""
        kept = self._kept(client, self.fair_share(client, now))
        return [host for host in self._held.get(client, {}) if host not in kept and host not in self._ranks]

    def _kept(self, client: str, share: int) -> dict[int, None]:
        """Those of its hosts that belong to its share: always the same, the longest held. With other ones each time
        none would ever run dry. A slot counts as one, for only a whole one can go to another client."""
        slots = set(islice(self._held_slots(client), share))
        return dict.fromkeys(host for host in self._held.get(client, {}) if self._slots[host] in slots)

    def _held_slots(self, client: str) -> dict[str, None]:
        """Those of a client, the longest held first."""
        return dict.fromkeys(self._slots[host] for host in self._held.get(client, {}))


def _connections(grants: dict[int, Grant]) -> int:
    return max(grant.connections for grant in grants.values())

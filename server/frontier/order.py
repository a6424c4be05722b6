"""The order of a host's queue: the entry with the smallest number is taken first. Pure arithmetic on numbers.

A number has 64 bits: 16 for the class, 2 for the traversal it was made for, 46 for when the URL came to the host.

    bfs       class: the depth         then: who came first
    dfs       class: always the same   then: who came last
    random    class: 0 or 1, by a coin then: who came last in 0, who came first in 1; so at either end of the queue
    priority  class: the score, turned then: who came first

No two URLs of a host ever get the same number: each has a place in the order of arrival of its own.
"""

import random
from typing import NamedTuple

from common.settings import TRAVERSALS
from server.frontier.hosts import Host

BEST_SCORE, WORST_SCORE = 32_767, -32_768
_BFS, _DFS, _RANDOM, _PRIORITY = map(TRAVERSALS.index, ("bfs", "dfs", "random", "priority"))
_KIND_BITS, _CLASS_BITS = 46, 48
_LAST = (1 << _KIND_BITS) - 1


class Parts(NamedTuple):
    """What a number is made of."""

    kind: int  # the traversal, as its position in TRAVERSALS
    rank: int  # the class
    arrival: int


def parts_of(number: int) -> Parts:
    kind, rank, low = number >> _KIND_BITS & 3, number >> _CLASS_BITS, number & _LAST
    is_turned = kind == _DFS or (kind == _RANDOM and rank == 0)
    return Parts(kind, rank, _LAST - low if is_turned else low)


def score_of(number: int, depth: int) -> int:
    """The score that a number stands for. Under another traversal than priority: that of a URL found once."""
    kind, rank, _ = parts_of(number)
    return BEST_SCORE - rank if kind == _PRIORITY else 1 - depth


class Order:
    """Gives numbers for one traversal. Called under the frontier's lock, for it counts arrivals."""

    def __init__(self, traversal: str) -> None:
        self.traversal = traversal
        self._kind = TRAVERSALS.index(traversal)
        self._mark = self._kind << _KIND_BITS
        self.is_by_depth = self._kind == _BFS
        self.is_by_score = self._kind == _PRIORITY
        self.is_newest_first = self._kind == _DFS
        self._moves_always = self.is_by_score or self.is_newest_first

    def next(self, host: Host, depth: int) -> int:
        """For a URL that comes now."""
        arrival = host.tail
        host.tail = arrival + 1
        if self.is_by_depth:
            return (depth if depth < 65_535 else 65_535) << _CLASS_BITS | arrival
        return self._made(arrival, depth, 1 - depth)

    def again(self, host: Host, number: int, depth: int) -> int:
        """For a URL that comes back for another try: as if it came now, with the score that it had."""
        arrival = host.tail
        host.tail = arrival + 1
        return self._made(arrival, depth, score_of(number, depth))

    def kept(self, number: int, depth: int) -> int:
        """For a URL that comes back untried: where it stood, also if the traversal has changed meanwhile."""
        kind, _, arrival = parts_of(number)
        return number if kind == self._kind else self._made(arrival, depth, score_of(number, depth))

    def with_score(self, number: int, score: int) -> int:
        """Where the URL stands with another score."""
        return self._made(parts_of(number).arrival, 0, score)

    def moves(self, state: bytes, depth: int) -> bool:
        """Whether a queued URL, its packed state as on disk, gets another place when it is found at this depth."""
        # Looks at the bytes of the class itself: this is asked for every known link of every report.
        return (state[5] << 8 | state[6]) > depth if self.is_by_depth else self._moves_always

    def refound(self, host: Host, number: int, depth: int) -> int:
        """Where a queued URL stands after it was found again; `depth` is the least that is known."""
        if self.is_by_score:
            return self.with_score(number, score_of(number, depth) + 1)
        return self.next(host, depth) if self.is_newest_first else self._made(parts_of(number).arrival, depth, 0)

    def _made(self, arrival: int, depth: int, score: int) -> int:
        low = arrival
        if self.is_by_depth:
            rank = min(depth, 65_535)
        elif self.is_by_score:
            rank = BEST_SCORE - max(WORST_SCORE, min(score, BEST_SCORE))
        elif self.is_newest_first:
            rank, low = 0, _LAST - arrival
        else:
            rank = random.getrandbits(1)
            low = arrival if rank else _LAST - arrival
        return rank << _CLASS_BITS | self._mark | low

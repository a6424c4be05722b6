"""The sessions that have logged in: how many there may be, and which one goes when another needs its place."""

import logging
import threading
from collections.abc import Collection
from typing import Protocol

IDLE_SECONDS = 5.0  # a session that has not worked for so long loses its place to one that has just logged in

log = logging.getLogger(__name__)


class Sitter(Protocol):
    """A session that has logged in."""

    remote_ip: str

    def idle_seconds(self) -> float:
        """Since when it has done nothing; 0 while it works. Any thread may ask."""

    def hang_up(self) -> None:
        """End it soon. Any thread may call it."""


class Places:
    """At most `in_all` sessions, and `per_address` of one address. Any thread may call it."""

    def __init__(self, in_all: int, per_address: int) -> None:
        self._in_all = in_all
        self._per_address = per_address
        self._sitters: set[Sitter] = set()
        self._lock = threading.Lock()  # guards the set only

    def take(self, sitter: Sitter) -> str:
        """Give it a place; returns why that cannot be, or nothing."""
        with self._lock:
            crowd, reason = self._in_the_way_of(sitter)
            idlest = max(crowd, key=lambda other: other.idle_seconds(), default=None)
            if idlest is not None and idlest.idle_seconds() < IDLE_SECONDS:
                return reason
            self._sitters.discard(idlest or sitter)
            self._sitters.add(sitter)
        if idlest is not None:
            log.info("%s: a session that does nothing makes room", idlest.remote_ip)
            idlest.hang_up()
        return ""

    def _in_the_way_of(self, sitter: Sitter) -> tuple[Collection[Sitter], str]:
        """Those of which one must go; none if there is a place."""
        neighbours = [other for other in self._sitters if other.remote_ip == sitter.remote_ip]
        if len(neighbours) >= self._per_address:
            return neighbours, "Too many connections from your address"
        if len(self._sitters) >= self._in_all:
            return self._sitters, "Too many connections"
        return (), ""

    def leave(self, sitter: Sitter) -> None:
        """Can be repeated."""
        with self._lock:
            self._sitters.discard(sitter)

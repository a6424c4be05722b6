"""Who reads next, and for how long: a page that takes more than a moment is laid aside, and read anew in another lane.

Nearly all honest pages are read within the moment of the first lane; so they wait for moments only, however many pages
are there that take seconds, and from however many hosts. Those wait for each other in the lanes behind.
"""

import threading
import time
from collections.abc import Callable

from client.reading.process import Limits, OutOfTime, ReadingProcess

_MAX_AVOIDED = 1_000
_ALARM_SECONDS = 600.0


class Lane:
    """One reading process, and who has its turn. `limits` is what a page may cost here at most."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.turn = threading.Lock()  # guards _process, and is held while it reads
        self._process: ReadingProcess | None = None

    def running(self, make: Callable[[], ReadingProcess]) -> ReadingProcess:
        """Its process, a new one if the last one has ended. With the turn."""
        if self._process is not None and not self._process.is_alive:
            self.drop()
        if self._process is None:
            self._process = make()
        return self._process

    def is_last(self, trouble: Exception, most: Limits) -> bool:
        """Whether a page that was in trouble here has had the most that it may have of what it lacked."""
        if isinstance(trouble, OutOfTime):
            return self.limits.seconds >= most.seconds
        return self.limits.memory_bytes >= most.memory_bytes

    def drop(self) -> None:
        """End its process. With the turn."""
        if self._process is not None:
            self._process.kill()
            self._process = None


class Avoided:
    """Hosts with a page that could not be read, the oldest first. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._hosts: dict[str, None] = {}

    def has(self, host: str) -> bool:
        """Whether it gets no time again."""
        with self._lock:
            return host in self._hosts

    def add(self, host: str) -> None:
        """From now on."""
        with self._lock:
            self._hosts[host] = None
            if len(self._hosts) > _MAX_AVOIDED:
                del self._hosts[next(iter(self._hosts))]


class Places:
    """For what is laid aside. Each place holds a thread, so their number is bounded; thread-safe."""

    def __init__(self, number: int) -> None:
        self._free = number
        self._alarm_until = 0.0
        self._changed = threading.Condition()  # guards both

    def take(self) -> bool:
        """Wait for a place; False at once if there is none while pages are about that end nowhere."""
        with self._changed:
            self._changed.wait_for(lambda: self._free or self._is_alarmed())
            if not self._free:
                return False
            self._free -= 1
            return True

    def leave(self) -> None:
        """The place is free again."""
        with self._changed:
            self._free += 1
            self._changed.notify()

    def alarm(self) -> None:
        """There was a page that could not be read."""
        with self._changed:
            self._alarm_until = time.monotonic() + _ALARM_SECONDS
            self._changed.notify_all()

    def _is_alarmed(self) -> bool:
        return time.monotonic() < self._alarm_until

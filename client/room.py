"""How much memory the pages of one process may take, from the moment they arrive until they are packed.

Who brings a page takes room for it and waits while there is none; who packs it gives the room back. So memory stays
bounded, whatever the pages are and however slow the rest is.
"""

import threading


class Room:
    """Bytes that may be held at once. Thread-safe."""

    def __init__(self, capacity_bytes: int) -> None:
        self._capacity = capacity_bytes
        self._used = 0
        self._changed = threading.Condition()  # guards _used

    def take(self, size: int, timeout_seconds: float | None = None) -> bool:
        """Wait for room; False if there is none in time. What alone exceeds the capacity gets all of it."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._fits(size), timeout_seconds):
                return False
            self._used += size
            return True

    def grow(self, size: int) -> None:
        """What was taken has become so much larger, or smaller with a negative number."""
        with self._changed:
            self._used += size
            if size < 0:
                self._changed.notify_all()

    @property
    def is_crowded(self) -> bool:
        """Whether it is time to make room."""
        return self._used > self._capacity * 3 // 4

    @property
    def used(self) -> int:
        return self._used

    def _fits(self, size: int) -> bool:
        return self._used <= 0 or self._used + size <= self._capacity

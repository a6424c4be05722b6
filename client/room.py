"""How much memory the pages of one process may take, from the moment they arrive until they are packed.

Who brings a page takes room for it and waits while there is none; who packs it gives the room back. So memory stays
bounded, whatever the pages are and however slow the rest is.
"""

import threading

LARGE_BYTES = 1 << 20  # what is larger leaves a quarter of the room to what is not


class Room:
    """Bytes that may be held at once. Thread-safe.

    Large pages take seconds to be packed, and while they fill the room nothing else comes in. So they never fill it.
    """

    def __init__(self, capacity_bytes: int) -> None:
        self._capacity = capacity_bytes
        self._used = 0
        self._changed = threading.Condition()  # guards _used

    def take(self, size: int, timeout_seconds: float | None = None) -> bool:
        """Wait for room; False if there is none in time. What is too large for it has to be alone."""
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
        capacity = self._capacity if size <= LARGE_BYTES else self._capacity * 3 // 4
        return self._used <= 0 or self._used + size <= capacity

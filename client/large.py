"""How much memory all bodies on their way may take together. No I/O; who has too much waits.

Without it, as many endless bodies as there are threads would each grow to the limit at once.
"""

import threading

FREE_BYTES = 1 << 20  # that each body may have without asking


class LargeBodies:
    """The bodies of one process beyond their first megabyte, oldest first. Thread-safe.

    The oldest never waits: so somebody always comes to an end, and slow ones hold no more than they have received.
    """

    def __init__(self, capacity_bytes: int) -> None:
        self._capacity = capacity_bytes
        self._held: dict[object, int] = {}  # in the order of arrival
        self._changed = threading.Condition()  # guards _held

    def hold(self, body: object, size: int, timeout_seconds: float) -> bool:
        """`body` has come to this size, or will at once. Waits for room; False if there is none in time."""
        with self._changed:
            self._held.setdefault(body, 0)
            if not self._changed.wait_for(lambda: self._fits(body, size), max(0.0, timeout_seconds)):
                return False
            self._held[body] = size
            return True

    def let_go(self, body: object) -> None:
        """`body` is not on its way any more; also for one that was never large."""
        with self._changed:
            if self._held.pop(body, None) is not None:
                self._changed.notify_all()

    def _fits(self, body: object, size: int) -> bool:
        others = sum(self._held.values()) - self._held[body]
        return next(iter(self._held)) is body or others + size <= self._capacity

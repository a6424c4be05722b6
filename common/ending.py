"""The wish to end a program, as signals tell it.

threading.Event is not made for signal handlers: one that comes while its thread is within `wait` or `set` of the same
event waits for itself, for ever.
"""

import signal
from contextlib import suppress
from queue import Empty, SimpleQueue

INTERRUPTED = 130  # the exit code of what is stopped before its end, as shells count a program that SIGINT ended


def raise_when_told(*signals: int) -> None:
    """KeyboardInterrupt in the main thread, for a program that does one thing and cleans up behind it."""
    for number in signals or (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)


class Ending:
    """Listens to `signals`. Made in the main thread; any thread may ask or wait, one at a time."""

    def __init__(self, *signals: int) -> None:
        self._wishes: SimpleQueue[None] = SimpleQueue()  # may be put into at any moment, also within itself
        self.is_told = False
        for number in signals or (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self.tell())

    def tell(self) -> None:
        """It is time to end."""
        self.is_told = True
        self._wishes.put(None)

    def wait(self, seconds: float | None = None) -> bool:
        """Until it is time to end, or for so many seconds; says whether it is."""
        if not self.is_told:
            with suppress(Empty):
                self._wishes.get(timeout=seconds)
        return self.is_told

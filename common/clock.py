"""The time, as a value that tests can replace. `now` is UTC wall time for records, `ticks` never goes back."""

import time
from typing import Protocol


class Clock(Protocol):
    """Where a part gets the time from."""

    def now(self) -> float:
        """Seconds since 1970, UTC."""

    def ticks(self) -> float:
        """Seconds of a clock that never jumps; only differences mean something."""


class SystemClock:
    """The machine's clocks."""

    def now(self) -> float:
        return time.time()

    def ticks(self) -> float:
        return time.monotonic()


class ManualClock:
    """A clock that moves only when told to, for tests and simulations."""

    def __init__(self, start: float = 1_700_000_000.0) -> None:
        self._now = start

    def now(self) -> float:
        return self._now

    def ticks(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        self._now += seconds

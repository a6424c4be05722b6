"""Answers that their clients have not taken yet: how much of them there may be, and who goes when it is too much."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Sender(Protocol):
    """A connection with an answer."""

    def send_away(self) -> None:
        """Break off, now. Can be repeated."""


class Unsent:
    """So many bytes at the same time: with more, who has had the longest time to take his is cut off. An answer that
    is on its own may have any size. For one event loop."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._sizes: dict[Sender, int] = {}  # the oldest first

    @contextmanager
    def sending(self, sender: Sender, size: int) -> Iterator[None]:
        """While its answer is in memory."""
        self._sizes[sender] = size
        while len(self._sizes) > 1 and sum(self._sizes.values()) > self._total:
            oldest = next(iter(self._sizes))
            del self._sizes[oldest]
            oldest.send_away()
        try:
            yield
        finally:
            self._sizes.pop(sender, None)

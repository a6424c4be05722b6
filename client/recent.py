"""Addresses that were reported as found a short while ago: pages of a site repeat most of their links."""

from collections.abc import Iterable

from common.wire import FoundUrl


class RecentlySent:
    """The last addresses that the server has confirmed, each with the depth it was told. Two generations bound it.

    The delivering thread adds, datamine threads ask, without a lock: a miss only sends an address once more.
    """

    def __init__(self, generation_size: int = 10_000) -> None:
        self._size = generation_size
        self._young: dict[str, int] = {}
        self._old: dict[str, int] = {}

    def add(self, found: Iterable[FoundUrl]) -> None:
        """The server knows these now."""
        for each in found:
            self._young[each.url] = each.depth
        if len(self._young) >= self._size:
            self._old, self._young = self._young, {}

    def knows(self, url: str, depth: int) -> bool:
        """Whether the server was told of `url` at this depth or a smaller one."""
        told = self._young.get(url)
        if told is None:
            told = self._old.get(url)
        return told is not None and told <= depth

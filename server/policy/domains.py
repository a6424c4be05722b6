"""Domains that somebody can own, by the public suffix list. The only module that knows publicsuffixlist.

The list comes with the library; nothing is fetched.
"""

from functools import cache
from itertools import takewhile

from publicsuffixlist import PublicSuffixList


class Domains:
    """The smallest common domain of the names in each registrable domain; and the names that are in none.

    A leading www. says nothing about what belongs together: www.example.org stands for example.org."""

    def __init__(self) -> None:
        self._shared: dict[str, list[str]] = {}  # by registrable domain: the last labels, which its names share
        self._domains: set[str] = set()  # what that makes
        self._alone: set[str] = set()

    def add(self, name: str) -> None:
        """A further name."""
        owner = registrable(name)
        if owner is None:
            self._alone.add(name)
            return
        labels, before = name.split(".")[::-1], self._shared.get(owner)
        if before is None:
            self._domains.add(_common(owner, labels))
        elif labels[: len(before)] != before:
            pairs = takewhile(lambda pair: pair[0] == pair[1], zip(before, labels, strict=False))
            labels = [label for label, _ in pairs]
            self._domains.add(_common(owner, labels))
            self._domains -= {_common(owner, before)} - {_common(owner, labels)}
        else:
            return
        self._shared[owner] = labels

    def has(self, name: str) -> bool:
        """Whether a name is one of those that were added, or in a common domain of them."""
        if name in self._alone:
            return True
        while name:
            if name in self._domains:
                return True
            name = name.partition(".")[2]
        return False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Domains) and (self._domains, self._alone) == (other._domains, other._alone)


def _common(owner: str, shared: list[str]) -> str:
    domain = ".".join(reversed(shared))
    return domain if domain == owner else domain.removeprefix("www.")


def registrable(name: str) -> str | None:
    """The part of a host name that somebody has registered; None for IP addresses, single labels, public suffixes."""
    if name.startswith("[") or name.rpartition(".")[2].isdigit():
        return None
    return _suffixes().privatesuffix(name)


@cache
def _suffixes() -> PublicSuffixList:
    return PublicSuffixList()  # 25 ms, so only when it is needed

"""Domains that somebody can own, by the public suffix list. The only module that knows publicsuffixlist.

The list comes with the library; nothing is fetched.
"""

from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from itertools import takewhile

from publicsuffixlist import PublicSuffixList


def common_domains(names: Iterable[str]) -> tuple[frozenset[str], frozenset[str]]:
    """The smallest common domain of the names in each registrable domain; and the names that are in none.

    A leading www. says nothing about what belongs together: www.example.org stands for example.org."""
    groups: dict[str, list[list[str]]] = defaultdict(list)
    alone = set()
    for name in set(names):
        owner = registrable(name)
        if owner is None:
            alone.add(name)
        else:
            groups[owner].append(name.split(".")[::-1])
    return frozenset(_common(owner, members) for owner, members in groups.items()), frozenset(alone)


def _common(owner: str, members: list[list[str]]) -> str:
    ends = zip(min(members), max(members), strict=False)  # what these two share, all between them share
    shared = [label for label, _ in takewhile(lambda pair: pair[0] == pair[1], ends)]
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

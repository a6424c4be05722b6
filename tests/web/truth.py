"""What a right crawl of a web comes to: computed by walking the graph itself, not its HTML."""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from tests.web.graph import Web
from tests.web.identity import authority, identity
from tests.web.resources import Document, Link, Missing, Page, Redirect


@dataclass(frozen=True, slots=True)
class Truth:
    """Identities of addresses. `never` are those that the web has (or links to) and that must not be asked:
    disallowed, outside the scope, or out of reach."""

    pages: frozenset[str]
    documents: frozenset[str]
    redirects: dict[str, str]
    missing: frozenset[str]
    disallowed: frozenset[str]
    outside: frozenset[str]
    never: frozenset[str]

    @property
    def stored(self) -> frozenset[str]:
        """What must be kept: pages and documents, each once."""
        return self.pages | self.documents

    @property
    def requested(self) -> frozenset[str]:
        """All that must be asked for, robots.txt aside."""
        return self.stored | self.missing | frozenset(self.redirects)

    @property
    def endless(self) -> frozenset[str]:
        """Redirects that lead in a circle."""
        return frozenset(url for url in self.redirects if self._circles(url))

    def _circles(self, url: str) -> bool:
        seen: set[str] = set()
        while url in self.redirects and url not in seen:
            seen.add(url)
            url = self.redirects[url]
        return url in seen


def truth(
    web: Web,
    start_urls: Iterable[str],
    *,
    same_hosts: bool = False,
    robots: bool = True,
    belongs: Callable[[str], bool] = lambda _: True,
    max_depth: int | None = None,
) -> Truth:
    """The truth about a crawl from `start_urls`. `same_hosts`: it stays on their hosts. `belongs` says of any other
    address whether it is a part of the crawl, and `max_depth` how many links lead there at most."""
    starts = [identity(url) for url in start_urls]
    hosts = frozenset(map(authority, starts if same_hosts else web.start_urls))

    def inside(url: str) -> bool:
        return url in starts or (authority(url) in hosts and belongs(url))

    walk = _Walk(web, inside, robots, max_depth)
    walk.run(starts)
    return walk.result()


@dataclass(slots=True)
class _Walk:
    web: Web
    inside: Callable[[str], bool]
    robots: bool
    max_depth: int | None
    seen: set[str] = field(default_factory=set)
    pages: set[str] = field(default_factory=set)
    documents: set[str] = field(default_factory=set)
    redirects: dict[str, str] = field(default_factory=dict)
    missing: set[str] = field(default_factory=set)
    closed: set[str] = field(default_factory=set)
    outside: set[str] = field(default_factory=set)

    def run(self, starts: list[str]) -> None:
        """In the order of depth, so that each address is met by its shortest way first."""
        waiting = deque((url, 0) for url in starts)
        while waiting:
            url, depth = waiting.popleft()
            if url in self.seen:
                continue
            if self.max_depth is not None and depth > self.max_depth:
                self.outside.add(url)
                continue
            self.seen.add(url)
            leads_to = self._visit(url)
            if url in self.redirects:  # which is no link
                waiting.extendleft((target, depth) for target in leads_to)
            else:
                waiting.extend((target, depth + 1) for target in leads_to)

    def _visit(self, url: str) -> list[str]:
        """Puts an address where it belongs and returns what it leads to."""
        if not self.inside(url):
            self.outside.add(url)
        elif self._is_closed(url):
            self.closed.add(url)
        else:
            return self._ask(url)
        return []

    def _ask(self, url: str) -> list[str]:
        match self.web.resource(url):
            case Page(links=links):
                self.pages.add(url)
                return _targets(links)
            case Redirect(target=target):
                self.redirects[url] = identity(target)
                return [self.redirects[url]]
            case Document():
                self.documents.add(url)
            case Missing():
                self.missing.add(url)
        return []

    def _is_closed(self, url: str) -> bool:
        return self.robots and not self.web.allows(url)

    def result(self) -> Truth:
        everything = frozenset(map(identity, self.web.urls())) | self.seen
        result = Truth(
            pages=frozenset(self.pages),
            documents=frozenset(self.documents),
            redirects=self.redirects,
            missing=frozenset(self.missing),
            disallowed=frozenset(filter(self._is_closed, everything)),
            outside=frozenset(self.outside),
            never=frozenset(),
        )
        return replace(result, never=everything - result.requested)


def _targets(links: tuple[Link, ...]) -> list[str]:
    return [identity(link.target) for link in links if link.target is not None]

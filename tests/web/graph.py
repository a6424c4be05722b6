"""A reproducible web: every page is computed from its URL and a seed, nothing is stored.

Each host has `pages` plain pages below a tree (page n links to 2n+1 and 2n+2), with random links across, and
the fixed set of odd resources. Pure: no sockets, no clock. The truth about it is in `truth`.
"""

import posixpath
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar
from urllib.parse import urlsplit

from tests.web.identity import authority, identity
from tests.web.oddities import NOISE, oddities
from tests.web.resources import Link, Missing, Page, Resource

SECTIONS = 5
PLAIN_PATH = re.compile(r"/s([0-9])/([0-9]+)\.html")
CROSS_HOST_SHARE = 0.2
NOISE_SHARE = 0.2
Choice = TypeVar("Choice")


@dataclass(frozen=True, slots=True)
class Robots:
    """A robots.txt (None: 404) and, written separately, the paths that it closes."""

    text: str | None
    closed: re.Pattern[str] | None


# Host n has robots.txt n, again from the start when they run out.
ROBOTS = (
    Robots("User-agent: *\nDisallow: /private/\n", re.compile(r"/private/")),
    Robots(
        "# the longest match wins\nUser-agent: *\nDisallow: /private/\nAllow: /private/open/\n",
        re.compile(r"/private/(?!open/)"),
    ),
    Robots(None, None),
    Robots(
        "User-agent: somebody-else\nDisallow: /\n\n"
        "User-agent: *\nDisallow: /private/\nDisallow: /*.secret$\n",
        re.compile(r"/private/|.*\.secret$"),
    ),
)


@dataclass(frozen=True)
class Web:
    """The same arguments give the same web, whatever the names of its hosts.

    `hosts` are authorities (`127.0.0.2:8000`), `pages` counts plain pages per host, `links` random links per
    plain page; `odd` adds the odd resources."""

    hosts: tuple[str, ...]
    pages: int = 30
    links: int = 5
    seed: int = 1
    odd: bool = True

    @property
    def start_urls(self) -> tuple[str, ...]:
        """The home page of every host."""
        return tuple(f"http://{host}/" for host in self.hosts)

    def resource(self, url: str) -> Resource:
        """What is behind an address; `Missing` for any that the web does not know."""
        host = self._numbers.get(authority(url))
        if host is None:
            return Missing()
        path = _path_and_query(identity(url))
        if found := self._fixed(host).get(path):
            return found
        match = PLAIN_PATH.fullmatch(path)
        if match and _plain_path(int(match[2])) == path and int(match[2]) < self.pages:
            return self._plain_page(host, int(match[2]))
        return Missing()

    def robots_text(self, host: str) -> str | None:
        """The robots.txt of a host, None when it has none."""
        return self._robots(host).text

    def allows(self, url: str) -> bool:
        """Whether the robots.txt of its host leaves an address open."""
        closed = self._robots(authority(url)).closed
        return closed is None or not closed.match(_path_and_query(url))

    def urls(self) -> Iterator[str]:
        """Every address there is, reachable or not."""
        for number, host in enumerate(self.hosts):
            paths = [*self._fixed(number), *map(_plain_path, range(self.pages))]
            yield from (f"http://{host}{path}" for path in paths)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {authority(url): number for number, url in enumerate(self.start_urls)}

    def _robots(self, host: str) -> Robots:
        number = self._numbers.get(host)
        if number is None or not self.odd:
            return Robots(None, None)
        return ROBOTS[number % len(ROBOTS)]

    @cached_property
    def _fixed_by_host(self) -> dict[int, dict[str, Resource]]:
        return {}

    def _fixed(self, host: int) -> dict[str, Resource]:
        # Kept once made: a table of 45 resources is too much work for every request.
        if host not in self._fixed_by_host:
            self._fixed_by_host[host] = _fixed_resources(self, host)
        return self._fixed_by_host[host]

    def _plain_page(self, host: int, number: int) -> Page:
        dice = random.Random(f"{self.seed} {host} {number}")
        targets = [(host, child) for child in (2 * number + 1, 2 * number + 2) if child < self.pages]
        targets += [self._any_target(dice, host) for _ in range(self.links)]
        base = self._plain_url(host, number)
        links = [_written(dice, self._plain_url(*target), base) for target in targets]
        if self.odd and dice.random() < NOISE_SHARE:
            links.append(_pick(dice, NOISE))
        return Page(f"Page {number} of host {host}", tuple(links))

    def _any_target(self, dice: random.Random, host: int) -> tuple[int, int]:
        if dice.random() < CROSS_HOST_SHARE:
            host = _pick(dice, range(len(self.hosts)))
        return host, _pick(dice, range(self.pages))

    def _plain_url(self, host: int, number: int) -> str:
        return f"http://{self.hosts[host]}{_plain_path(number)}"


def _fixed_resources(web: Web, host: int) -> dict[str, Resource]:
    home, next_home = (f"http://{web.hosts[number % len(web.hosts)]}" for number in (host, host + 1))
    onward = [Link(next_home, next_home + "/")]
    if web.pages:
        onward.append(Link(home + _plain_path(0), home + _plain_path(0)))
    if web.odd:
        return oddities(home, next_home, tuple(onward))
    return {"/": Page("Home", tuple(onward))}


def _plain_path(number: int) -> str:
    return f"/s{number % SECTIONS}/{number}.html"


def _path_and_query(url: str) -> str:
    parts = urlsplit(url)
    return parts.path + (f"?{parts.query}" if parts.query else "")


def _written(dice: random.Random, target: str, base: str) -> Link:
    """A link to `target`, written in one of the ways that authors write links."""
    host, path = authority(target), _path_and_query(target)
    ways = [target, f"//{host}{path}", f"HTTP://{host.upper()}{path}", f"{target}#part"]
    if host == authority(base):
        relative = posixpath.relpath(path, posixpath.dirname(urlsplit(base).path))
        ways += [path, f"{path}#part", relative, f"./{relative}"]
    return Link(_pick(dice, ways), target)


def _pick(dice: random.Random, choices: Sequence[Choice]) -> Choice:
    # Only random() is promised to give the same numbers in every Python version.
    return choices[int(dice.random() * len(choices))]

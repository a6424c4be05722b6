"""What was asked of a server: the records of its log, and assertions that say what is wrong with them."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

from tests.web.identity import identity
from tests.web.truth import Truth

SHOWN = 10


@dataclass(frozen=True, slots=True)
class Request:
    """One request. `unix` and `monotonic` were taken when its first line had arrived; `finished` is on the
    monotonic clock, None if the client went away before the end."""

    unix: float
    monotonic: float
    host: str
    target: str
    agent: str
    status: int
    client_port: int
    finished: float | None = None
    method: str = "GET"

    @property
    def url(self) -> str:
        """The address as asked for."""
        return f"http://{self.host}{self.target}"

    @property
    def is_robots(self) -> bool:
        """Whether this asked for a robots.txt."""
        return urlsplit(self.url).path == "/robots.txt"

    def as_line(self) -> str:
        """The form in a log file."""
        return json.dumps(asdict(self)) + "\n"


def read_log(path: Path) -> list[Request]:
    """The requests in a log file, in the order in which they came."""
    text = path.read_text(encoding="utf-8")
    requests = [Request(**json.loads(line)) for line in text.splitlines()]
    return sorted(requests, key=lambda request: request.monotonic)


def asked(log: Iterable[Request]) -> frozenset[str]:
    """The identities of all addresses asked for, robots.txt aside."""
    return frozenset(identity(request.url) for request in log if not request.is_robots)


def assert_no_url_twice(log: Iterable[Request], but: Collection[str] = (), *, robots: bool = False) -> None:
    """No page was asked for twice, under whatever address; `but` are identities that may be.

    robots.txt counts only if wanted: every client has to read it for itself."""
    wanted = (request for request in log if robots or not request.is_robots)
    counts = Counter(identity(request.url) for request in wanted)
    again = [f"{count} x {url}" for url, count in counts.items() if count > 1 and url not in but]
    assert not again, _listing("asked more than once", again)


def assert_nothing_disallowed(log: Iterable[Request], truth: Truth) -> None:
    """No address was asked for that a robots.txt closes."""
    wrong = asked(log) & truth.disallowed
    assert not wrong, _listing("disallowed by robots.txt, but asked for", wrong)


def assert_asked_exactly(log: Iterable[Request], truth: Truth) -> None:
    """Everything that had to be asked for was, and nothing else."""
    urls = asked(log)
    assert not urls - truth.requested, _listing("asked for, but should not be", urls - truth.requested)
    assert not truth.requested - urls, _listing("never asked for", truth.requested - urls)


def assert_delay_kept(log: Iterable[Request], seconds: float, tolerance: float = 0.05) -> None:
    """Between two requests to a host, start to start, robots.txt included, lie `seconds` or more."""
    by_host: defaultdict[str, list[Request]] = defaultdict(list)
    for request in sorted(log, key=lambda request: request.monotonic):
        by_host[request.host].append(request)
    hasty = [
        f"{later.monotonic - earlier.monotonic:.3f} s from {earlier.url} to {later.url}"
        for requests in by_host.values()
        for earlier, later in pairwise(requests)
        if later.monotonic - earlier.monotonic < seconds - tolerance
    ]
    assert not hasty, _listing(f"less than {seconds} s apart", hasty)


def assert_agent(log: Iterable[Request], pattern: str) -> None:
    """Every request named an agent that matches the whole pattern."""
    wrong = {request.agent for request in log if not re.fullmatch(pattern, request.agent)}
    assert not wrong, _listing(f"agents that do not match {pattern!r}", map(repr, wrong))


def _listing(what: str, items: Iterable[str]) -> str:
    lines = sorted(items)
    more = [f"... and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
    return "\n  ".join([f"{len(lines)} {what}:", *lines[:SHOWN], *more])

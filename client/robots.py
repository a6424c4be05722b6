"""What robots.txt allows, by RFC 9309. No I/O: callers claim a request, make it, and hand in what came back.

Thread-safe. Parsing is protego's; `rules` of one file, this cache of all hosts.
"""

from enum import Enum

from client.transport import Response, TransportError
from common.clock import Clock
from common.wire import Outcome


class Verdict(Enum):
    """May this URL be requested now?"""

    ALLOWED = "allowed"
    DISALLOWED = "disallowed"
    UNREACHABLE = "unreachable"  # no answer and no earlier copy: disallowed for now
    UNKNOWN = "unknown"  # somebody must ask for robots.txt: claim it
    PENDING = "pending"  # somebody is asking for it


class Robots:
    """robots.txt of many origins, shared by all download threads."""

    def __init__(
        self,
        agent_name: str,
        clock: Clock,
        max_hosts: int = 10_000,
        max_age_seconds: float = 86_400,
        max_crawl_delay_seconds: float = 60.0,
    ) -> None:
        raise NotImplementedError

    def verdict(self, url: str) -> Verdict:
        """Whether `url` may be requested."""
        raise NotImplementedError

    def claim(self, origin: str) -> str | None:
        """The URL to request for this origin's rules, to exactly one caller; None if there is nothing to do."""
        raise NotImplementedError

    def answer(self, origin: str, answer: Response | TransportError) -> None:
        """Hand in what came back for the claimed URL; this ends the claim."""
        raise NotImplementedError

    def trouble(self, origin: str) -> tuple[Outcome, str]:
        """Why the verdict is UNREACHABLE: outcome and a sentence."""
        raise NotImplementedError

    def crawl_delay(self, origin: str) -> float | None:
        """Crawl-delay for us in seconds, capped; None if not given or not known."""
        raise NotImplementedError

    def sitemaps(self, origin: str) -> tuple[str, ...]:
        """The sitemap URLs that the file names."""
        raise NotImplementedError

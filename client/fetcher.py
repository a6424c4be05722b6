"""One request of one URL per turn: robots.txt first, then the page, each redirect to the same page as a turn of its own.

So the schedule can put the host's delay between any two requests. Parses nothing and waits for nothing.
"""

from dataclasses import dataclass, field
from enum import Enum

from client.results import FetchResult
from client.robots import Robots
from client.transport import Transport
from common.clock import Clock
from common.wire import HostShare, JobSettings, UrlTask


class Turn(Enum):
    """The visit is not over."""

    AGAIN = "again"  # a request was made: another turn after the host's delay
    PENDING = "pending"  # another thread is asking for robots.txt: try a bit later, no delay is due


@dataclass(slots=True)
class Visit:
    """One URL on its way. Used by one thread at a time."""

    task: UrlTask
    share: HostShare
    settings: JobSettings
    url: str = ""  # the address to request next; the task's at first
    seen: list[str] = field(default_factory=list)  # addresses that redirected within the same identity

    def __post_init__(self) -> None:
        self.url = self.url or self.task.url


class Fetcher:
    """Takes visits a step further. One for each download thread; `robots` is shared."""

    def __init__(self, transport: Transport, robots: Robots, clock: Clock) -> None:
        self._transport = transport
        self._robots = robots
        self._clock = clock

    def turn(self, visit: Visit) -> FetchResult | Turn:
        """Make at most one request for `visit`; its result if that settles it. Trouble is a result too."""
        raise NotImplementedError


def user_agent(agent_name: str, version: str, contact: str) -> str:
    """The User-Agent: `pavouk/0.1.0 (+https://example.org/bot)`."""
    raise NotImplementedError


def sender(contact: str) -> str:
    """The From header: the contact if it is a mail address, else nothing."""
    raise NotImplementedError

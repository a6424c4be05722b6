"""What robots.txt of many hosts allows, by RFC 9309: who must ask for it, and what follows from the answer.

No I/O: callers claim a request, make it, and hand in what came back. `rules` reads one file, this keeps them all.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from client.rules import Rules, sitemap_addresses
from client.transport import Response, TransportError
from common.clock import Clock
from common.urls import origin_of, resolve
from common.wire import Outcome

_MAX_HOPS = 5  # redirects of one robots.txt, RFC 9309 §2.3.1.2
_FIRST_WAIT_SECONDS = 60.0  # until an unreachable robots.txt is asked for again; doubles each time
_LONGEST_WAIT_SECONDS = 3600.0
_CLAIM_SECONDS = 900.0  # a claim never answered (a thread that died) is void after this
_MAX_WEIGHT = 4_000_000  # bytes of rules in all; in memory they take 15 times as much (measured)

# What says as much of the whole host as of robots.txt, and is the better answer to "why was this not fetched?"
_HOST_TROUBLE = frozenset({Outcome.DNS, Outcome.REFUSED, Outcome.TLS, Outcome.FORBIDDEN_ADDRESS})


class Verdict(Enum):
    """May this URL be requested now?"""

    ALLOWED = "allowed"
    DISALLOWED = "disallowed"
    UNREACHABLE = "unreachable"  # no answer and no earlier copy: disallowed for now
    UNKNOWN = "unknown"  # somebody must ask for robots.txt: claim it
    PENDING = "pending"  # somebody is asking for it


@dataclass(slots=True)
class _Entry:
    """What is known of one origin. Changed under the lock only."""

    rules: Rules | None = None  # the last good copy, used also when a newer one cannot be had (§2.3.1.4)
    ask_at: float = float("-inf")  # when robots.txt is to be asked for (again)
    claimed_until: float = float("-inf")  # somebody is asking
    hop: str = ""  # where redirects have led so far
    hops: int = 0
    failures: int = 0  # in a row
    trouble: tuple[Outcome, str] = (Outcome.ROBOTS_UNREACHABLE, "")


class Robots:
    """robots.txt of many origins for one agent. Shared by all download threads.

    Bounded in hosts and in bytes; the origin that was not asked about for longest goes first. A robots.txt that
    stays unreachable is never taken for absent, as §2.3.1.4 would allow after 30 days: nothing here lives so long.
    """

    def __init__(
        self,
        agent_name: str,
        clock: Clock,
        max_hosts: int = 10_000,
        max_age_seconds: float = 86_400,
        max_crawl_delay_seconds: float = 60.0,
    ) -> None:
        self._agent_name = agent_name
        self._clock = clock
        self._max_hosts = max_hosts
        self._max_age_seconds = max_age_seconds
        self._max_crawl_delay_seconds = max_crawl_delay_seconds
        self._no_rules = Rules(b"", agent_name)
        self._lock = threading.Lock()  # guards the entries and their weight; parsing happens outside
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._weight = 0

    def verdict(self, url: str) -> Verdict:
        """Whether `url` may be requested."""
        origin = origin_of(url)
        with self._lock:
            entry = self._entries.get(origin)
            if entry is None:
                return Verdict.UNKNOWN
            self._entries.move_to_end(origin)
            now = self._clock.ticks()
            if entry.claimed_until > now:
                return Verdict.PENDING
            if entry.ask_at <= now:
                return Verdict.UNKNOWN
            rules = entry.rules
        if rules is None:
            return Verdict.UNREACHABLE
        return Verdict.ALLOWED if rules.allows(url) else Verdict.DISALLOWED

    def claim(self, origin: str) -> str | None:
        """The URL to request for this origin's rules, to exactly one caller; None if there is none to request."""
        with self._lock:
            now = self._clock.ticks()
            entry = self._entries.setdefault(origin, _Entry())
            if entry.claimed_until > now or entry.ask_at > now:
                return None
            entry.claimed_until = now + _CLAIM_SECONDS
            self._entries.move_to_end(origin)
            self._shrink()
            return entry.hop or f"{origin}/robots.txt"

    def answer(self, origin: str, answer: Response | TransportError) -> None:
        """Hand in what came back for the claimed URL; this ends the claim."""
        change = self._judge(answer)
        with self._lock:
            entry = self._entries.setdefault(origin, _Entry())
            self._weight -= _weight(entry)
            change(entry, f"{origin}/robots.txt")
            entry.claimed_until = float("-inf")
            self._weight += _weight(entry)
            self._shrink()

    def release(self, origin: str) -> None:
        """There will be no answer; somebody else may ask."""
        with self._lock:
            if origin in self._entries:
                self._entries[origin].claimed_until = float("-inf")

    def trouble(self, origin: str) -> tuple[Outcome, str]:
        """Why the verdict is UNREACHABLE: the outcome of the URLs that are not requested, and a sentence."""
        with self._lock:
            return self._entries.get(origin, _Entry()).trouble

    def crawl_delay(self, origin: str) -> float | None:
        """Crawl-delay for us in seconds, capped; None if not given or not known."""
        rules = self._rules(origin)
        if rules is None or rules.crawl_delay is None:
            return None
        return min(rules.crawl_delay, self._max_crawl_delay_seconds)

    def sitemaps(self, origin: str) -> tuple[str, ...] | None:
        """The addresses of sitemaps that the file names; None if it is not known."""
        rules = self._rules(origin)
        return sitemap_addresses(origin, rules.sitemaps) if rules else None

    def _rules(self, origin: str) -> Rules | None:
        with self._lock:
            entry = self._entries.get(origin)
            return entry.rules if entry else None

    def _judge(self, answer: Response | TransportError) -> Callable[[_Entry, str], None]:
        """What an answer does to its entry, RFC 9309 §2.3.1. Parses, so it runs outside the lock."""
        if isinstance(answer, TransportError):
            outcome, detail = answer.outcome, f"robots.txt: {answer.detail}"
            return lambda entry, url: self._fail(entry, outcome, detail)
        status = answer.status
        if 200 <= status < 300:
            rules = Rules(answer.body, self._agent_name)
            return lambda entry, url: self._settle(entry, rules)
        if 300 <= status < 400:
            location = answer.headers.location
            return lambda entry, url: self._redirect(entry, location, entry.hop or url)
        # 429 is a 4xx and would mean "no rules". It says that the host is overloaded, so it counts as a 5xx here,
        # as with Google's crawler.
        if 400 <= status < 500 and status != 429:
            return lambda entry, url: self._settle(entry, self._no_rules)
        return lambda entry, url: self._fail(entry, Outcome.ROBOTS_UNREACHABLE, f"robots.txt: status {status}")

    def _settle(self, entry: _Entry, rules: Rules) -> None:
        entry.rules = rules
        entry.ask_at = self._clock.ticks() + self._max_age_seconds
        entry.hop, entry.hops, entry.failures = "", 0, 0

    def _redirect(self, entry: _Entry, location: str, base: str) -> None:
        target = resolve(location, base) if location else None
        if target is None or entry.hops >= _MAX_HOPS:
            self._settle(entry, self._no_rules)  # "unavailable", §2.3.1.2
            return
        entry.hop = target
        entry.hops += 1

    def _fail(self, entry: _Entry, outcome: Outcome, detail: str) -> None:
        wait = min(_FIRST_WAIT_SECONDS * 2.0 ** min(entry.failures, 20), _LONGEST_WAIT_SECONDS)
        entry.ask_at = self._clock.ticks() + wait
        if entry.hop or outcome not in _HOST_TROUBLE:
            outcome = Outcome.ROBOTS_UNREACHABLE
        entry.trouble = (outcome, detail)
        entry.hop, entry.hops = "", 0
        entry.failures += 1

    def _shrink(self) -> None:
        while len(self._entries) > 1 and (len(self._entries) > self._max_hosts or self._weight > _MAX_WEIGHT):
            _, entry = self._entries.popitem(last=False)
            self._weight -= _weight(entry)


def _weight(entry: _Entry) -> int:
    return entry.rules.weight if entry.rules else 0

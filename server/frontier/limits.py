"""Limits of the whole crawl and of each host: what may still be leased, and which limit has ended the crawl.

What is stored and what is leased never come to more than a limit in pages allows; so it is met exactly, whoever works.
A page that is visited again is counted already: limits in pages neither keep it from that, nor does it count twice.
"""

from common.clock import Clock
from server.frontier.change import Books, Change
from server.frontier.hosts import Host
from server.frontier.store import Store, Table, Write

_RUNNING_KEY = b"running seconds"  # in the table META: how long the crawl has been running, in all


class RunningTime:
    """How long the crawl has been running, over all restarts. The frontier calls it under its lock.

    Time counts from one note to the next, if there was something to do at the first. So it is lost before the first
    note (who opens a frontier to look at it does not run the crawl) and after the last one before a crash.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._clock = clock
        self._seconds = float(store.get(Table.META, _RUNNING_KEY) or b"0")
        self._since = clock.ticks()
        self._counts = False

    def seconds(self) -> float:
        return self._seconds + (self._clock.ticks() - self._since if self._counts else 0.0)

    def note(self, counts: bool) -> list[Write]:
        """What has to be written now. `counts`: whether the time until the next note counts."""
        before = self._seconds
        self._seconds, self._since, self._counts = self.seconds(), self._clock.ticks(), counts
        return [(Table.META, _RUNNING_KEY, repr(self._seconds).encode())] if self._seconds != before else []


class Limits:
    """0 is no limit. The frontier calls it under its lock."""

    def __init__(
        self, books: Books, running: RunningTime, max_pages: int, max_pages_per_host: int, max_bytes: int,
        max_time_seconds: float,
    ) -> None:  # fmt: skip
        self._books = books
        self._running = running
        self._max_pages = max_pages
        self._max_pages_per_host = max_pages_per_host
        self.is_per_host = max_pages_per_host > 0
        self._max_bytes = max_bytes
        self._max_time_seconds = max_time_seconds

    def over(self) -> str:
        """The name of the limit that lets nothing at all be leased; empty if there is none."""
        if 0 < self._max_bytes <= self._books.totals.size:
            return "max_bytes"
        return "max_time" if self.seconds_left() <= 0 else ""

    def has_all_pages(self) -> bool:
        """Whether the crawl has as many pages as it may have."""
        return 0 < self._max_pages <= self._books.totals.stored

    def urls_left(self, wanted: int) -> int:
        """How many of the wanted URLs may be leased that have no page yet."""
        totals, limit = self._books.totals, self._max_pages
        return min(wanted, limit - totals.stored - totals.leased + totals.again_leased) if limit else wanted

    def urls_left_of(self, host: Host, wanted: int) -> int:
        """The same for those of one host."""
        limit = self._max_pages_per_host
        return min(wanted, limit - host.stored - host.leased + host.again_leased) if limit else wanted

    def seconds_left(self) -> float:
        """Until the crawl must end."""
        return self._max_time_seconds - self._running.seconds() if self._max_time_seconds else float("inf")

    def is_full(self, host: Host) -> bool:
        """Whether the host has as many pages as it may have: what it has queued is no work, but for other visits."""
        return 0 < self._max_pages_per_host <= host.stored

    def allow_one_more(self, host: Host, change: Change) -> bool:
        """Whether a new page can be counted that nobody has leased now."""
        totals, counts = self._books.totals, change.counts
        taken = totals.stored + counts["stored"] + totals.leased + counts["leased"]
        taken -= totals.again_leased + counts["again_leased"]
        return not 0 < self._max_pages <= taken and self.urls_left_of(host, 1) > 0

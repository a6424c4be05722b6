"""Collects the pages of one job by domain, and cuts off what is there as a parcel: bundles and their report."""

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from client.recent import RecentlySent
from client.results import MinedPage
from client.room import Room
from client.spool import Parcel, Spool
from common.bundle import BundleWriter
from common.clock import Clock
from common.names import domain_name
from common.urls import host_of
from common.wire import FoundUrl, HostFact, JobSettings, ListedUrl, Outcome, Report, UrlResult, UrlTask

_MAX_DETAIL = 300
_BYTES_PER_LINK = 400  # its row, the table it is in, and objects for both; the address comes on top
_SOON_SECONDS = 1.0  # a report that somebody waits for; what is under way then has mostly ended


@dataclass(slots=True)
class _Collected:
    """What has come together since the last cut."""

    results: list[UrlResult] = field(default_factory=list)
    found: dict[str, FoundUrl] = field(default_factory=dict)
    listed: list[ListedUrl] = field(default_factory=list)
    hosts: dict[str, HostFact] = field(default_factory=dict)
    writers: dict[str, BundleWriter] = field(default_factory=dict)
    size: int = 0  # of pages and links as they came
    held: int = 0  # how much memory they take now


class Harvest:
    """The results of one job. `add` is called by datamine threads, `squeeze` and `cut` by the packing thread."""

    def __init__(
        self,
        job: str,
        urls: int,
        settings: JobSettings,
        spool: Spool,
        clock: Clock,
        room: Room,
        recent: RecentlySent,
    ) -> None:
        self.job = job
        self._settings = settings
        self._spool = spool
        self._clock = clock
        self._room = room
        self._recent = recent
        self._lock = threading.Lock()  # guards everything below
        self._outstanding = urls
        self._collected = _Collected()
        self._since = clock.ticks()  # of the last cut
        self._number = 0
        self._last_created = 0
        # Of the packing thread: what is not written yet, and the domain whose bundle it is about.
        self._cut_off: tuple[_Collected, int, int] | None = None
        self._packing = ""
        spool.begin(job)

    def add(self, page: MinedPage, fact: HostFact, sitemaps: Sequence[ListedUrl] = ()) -> bool:
        """Take in the outcome of one URL, and the sitemaps of its host; True if there is something to squeeze now."""
        result = UrlResult(page.task.url, page.outcome, page.status, len(page.body), page.detail)
        if page.meta is not None:  # which page it is that counts
            result = result._replace(sha1=page.meta.sha1)
        if self._settings.recrawl:
            result = result._replace(etag=page.etag, last_modified=page.last_modified, sha1=result.sha1 or page.sha1)
        domain = domain_name(host_of(page.task.url))
        with self._lock:
            collected = self._collected
            writer = None
            size = self._add_links(page)
            for rows in (sitemaps, page.listed):
                size += sum([_BYTES_PER_LINK + len(row.url) for row in rows])  # there can be 50,000 long ones
                collected.listed += rows
            collected.hosts[fact.host] = _merged(collected.hosts.get(fact.host), fact)
            if page.meta is not None:  # last of what may go wrong: with a page in a bundle goes its result
                writer = self._writer(domain)
                size += writer.add(page.meta, page.data_name, page.body, page.xml)
            self._outstanding -= 1
            collected.results.append(result)
            collected.size += size
            collected.held += size
            has_piece = writer is not None and writer.has_piece
        self._room.grow(size)
        return has_piece

    def give_back(self, urls: int) -> None:
        """So many URLs will not be finished by us."""
        with self._lock:
            self._outstanding -= urls

    def skip(self, tasks: Iterable[UrlTask]) -> None:
        """These are not asked for: others are to do that."""
        results = [UrlResult(task.url, Outcome.SKIPPED) for task in tasks]
        with self._lock:
            self._outstanding -= len(results)
            self._collected.results += results

    def hurry(self) -> None:
        """Let the next cut come soon: somebody waits for what is reported then."""
        with self._lock:
            self._since = min(self._since, self._clock.ticks() + _SOON_SECONDS - self._settings.report_seconds)

    @property
    def is_complete(self) -> bool:
        """Every URL of the job is there."""
        with self._lock:
            return self._outstanding <= 0

    @property
    def is_settled(self) -> bool:
        """Every URL of the job is there, and cut."""
        with self._lock:
            return self._outstanding <= 0 and not self._collected.results

    def is_due(self, max_bytes: int) -> bool:
        """Whether it is time to cut: all URLs are there, or the last cut is long ago, or there is much."""
        with self._lock:
            if not self._collected.results:
                return False
            age = self._clock.ticks() - self._since
            return self._outstanding <= 0 or age >= self._settings.report_seconds or self._collected.size >= max_bytes

    @property
    def held(self) -> int:
        """How much memory it takes, about."""
        return self._collected.held

    def squeeze(self) -> None:
        """Compress what can be compressed before the cut."""
        with self._lock:
            collected = self._collected
            pieces = [(writer, writer.take_piece()) for writer in collected.writers.values() if writer.has_piece]
        for writer, piece in pieces:
            freed = writer.squeeze(piece)
            with self._lock:
                collected.held -= freed
            self._room.grow(-freed)

    def cut(self) -> Parcel | None:
        """Write what has been collected into the spool; None if there is nothing. Whatever is raised: call again."""
        if self._cut_off is None:
            self._cut_off = self._cut()
        collected, number, created = self._cut_off
        parcel = self._pack(collected, number, created) if collected.results else None
        self._cut_off = None
        self._room.grow(-collected.held)
        return parcel

    def spoil(self, reason: str) -> None:
        """What was cut off cannot be packed: its pages are reported as failed. That is those of one domain, if it is
        the one to blame."""
        if self._cut_off is None:
            return
        collected = self._cut_off[0]
        domains = [self._packing] if self._packing in collected.writers else list(collected.writers)
        collected.results = [
            not_stored(result, f"fetched, but not packed: {reason}") if _domain_of(result) in domains else result
            for result in collected.results
        ]
        for domain in domains:
            del collected.writers[domain]

    def drop(self) -> None:
        """What was cut off cannot even be reported: the server has these URLs back when the lease ends."""
        if self._cut_off is not None:
            (collected, _, _), self._cut_off = self._cut_off, None
            self._room.grow(-collected.held)

    def _cut(self) -> tuple[_Collected, int, int]:
        fresh = _Collected()
        with self._lock:
            self._since = self._clock.ticks()
            self._number += 1
            # Two bundles of a domain and job must not have the same second in their names.
            self._last_created = max(int(self._clock.now()), self._last_created + 1)
            collected, self._collected = self._collected, fresh
            return collected, self._number, self._last_created

    def _pack(self, collected: _Collected, number: int, created: int) -> Parcel:
        self._packing = ""
        folder = self._spool.new_folder(self.job, number)
        bundles = {}
        for domain, writer in collected.writers.items():
            self._packing = domain
            path = writer.write(folder, created)
            bundles[path.name] = path.stat().st_size
        self._packing = ""
        return self._spool.seal(folder, self._report(collected, sum(bundles.values())), bundles)

    def _report(self, collected: _Collected, size: int) -> Report:
        found: Sequence[FoundUrl] = tuple(collected.found.values())
        return Report(self.job, collected.results, found, tuple(collected.hosts.values()), size, collected.listed)

    def _add_links(self, page: MinedPage) -> int:
        """Returns about how much memory they take."""
        task, found = page.task, self._collected.found
        redirected = page.outcome is Outcome.REDIRECTED
        depth = task.depth if redirected else task.depth + 1
        hops = task.hops + 1 if redirected else 0
        is_wanted_again = hops or self._settings.repeat_links
        size = 0
        for link in page.links:
            known = found.get(link)
            is_news = known is None and (is_wanted_again or not self._recent.knows(link, depth))
            if is_news or (known and depth < known.depth):
                found[link] = FoundUrl(link, depth, hops)
                size += _BYTES_PER_LINK + len(link) if is_news else 0
        return size

    def _writer(self, domain: str) -> BundleWriter:
        writers = self._collected.writers
        if domain not in writers:
            writers[domain] = BundleWriter(domain, self.job, self._settings.bundle_format)
        return writers[domain]


def not_stored(result: UrlResult, reason: str) -> UrlResult:
    """Of a page that was to be stored, and will not be: failed, so that the server tries it again, but not for ever."""
    if result.outcome is not Outcome.STORED:
        return result
    return result._replace(outcome=Outcome.INTERNAL, detail=reason[:_MAX_DETAIL])


def _domain_of(result: UrlResult) -> str:
    return domain_name(host_of(result.url))


def _merged(old: HostFact | None, new: HostFact) -> HostFact:
    if old is None:
        return new
    return HostFact(
        new.host,
        new.address or old.address,
        max(old.crawl_delay_seconds, new.crawl_delay_seconds),
        max(old.retry_after_seconds, new.retry_after_seconds),
        (3 * old.latency_seconds + new.latency_seconds) / 4 if old.latency_seconds else new.latency_seconds,
    )

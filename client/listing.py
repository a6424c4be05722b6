"""What is said of sitemaps: which ones a host has, and what the ones that were fetched list. Makes rows for the report.

Reading the files themselves is sitemaps.py; whether a sitemap or a page that one lists belongs to the crawl is decided
by the server.
"""

import hashlib
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from client import sitemaps
from client.fields import HTML_TYPES
from client.results import FetchResult, MinedPage
from common.clock import Clock
from common.urls import host_of, origin_of, path_of
from common.wire import Kind, ListedUrl, Outcome, UrlTask

# How a sitemap that nobody names may be called where its usual place redirects to; anything else says "not found".
_SITEMAP_WORD, _SITEMAP_ENDS = "sitemap", (".xml", ".gz", ".txt")
_NO_SITEMAP = "no sitemap"  # what is said of XML with another root, such as <html>, and of other pages
_MAX_ORIGINS = 20_000  # that are remembered; one that is told again costs the server a few look-ups
_MAX_AGE_SECONDS = 86_400  # as long as a robots.txt is kept: another one may name others

_log = logging.getLogger(__name__)

SitemapsOf = Callable[[str], Sequence[str] | None]  # origin -> what its robots.txt names; None: that is not known
ReadFile = Callable[[bytes, str, str], sitemaps.Sitemap]  # body, URL, content type


class Origins:
    """The origins whose sitemaps were told to the server. One for each process; used by all download threads."""

    def __init__(self, clock: Clock, max_origins: int = _MAX_ORIGINS) -> None:
        self._clock = clock
        self._max_origins = max_origins
        self._lock = threading.Lock()  # guards _told
        self._told: OrderedDict[str, float] = OrderedDict()  # origin -> until when that is enough

    def has(self, origin: str) -> bool:
        """Whether there is nothing to tell of it now."""
        with self._lock:
            if self._told.get(origin, 0.0) <= self._clock.ticks():
                return False
            self._told.move_to_end(origin)
            return True

    def news(self, origin: str, depth: int, named: Iterable[str]) -> Sequence[ListedUrl]:
        """What there is to tell: the sitemaps that robots.txt names, and one that may be there; with the depth of the
        page that was visited. Nothing the second time within a day."""
        if self.has(origin):  # told by another thread, a moment ago; both at once do no harm
            return ()
        with self._lock:
            self._told[origin] = self._clock.ticks() + _MAX_AGE_SECONDS
            self._told.move_to_end(origin)
            if len(self._told) > self._max_origins:
                self._told.popitem(last=False)
        return list(_of_origin(origin, depth, named))


def _of_origin(origin: str, depth: int, named: Iterable[str]) -> Iterator[ListedUrl]:
    usual, addresses = f"{origin}/sitemap.xml", list(named)
    for url in addresses:
        yield ListedUrl(url, depth, kind=Kind.SITEMAP, host=_other(origin, url))
    if usual not in addresses:
        yield ListedUrl(usual, depth, kind=Kind.GUESSED)


def read(result: FetchResult, sitemaps_of: SitemapsOf, read_file: ReadFile = sitemaps.read) -> MinedPage:
    """What became of a sitemap. It is never stored; what a damaged one says before the damage counts."""
    task = result.task
    plain = MinedPage(
        task, result.outcome, result.detail, result.status, etag=result.etag, last_modified=result.last_modified
    )
    if result.outcome is Outcome.REDIRECTED:
        return _redirected(plain, result.redirect_url)
    if result.outcome is not Outcome.STORED:
        return plain
    sha1 = hashlib.sha1(result.body, usedforsecurity=False).hexdigest()
    if sha1 == task.sha1:
        return replace(plain, outcome=Outcome.UNCHANGED, sha1=sha1)
    url = result.final_url or task.url
    content = read_file(result.body, url, f"{result.content_type}; charset={result.charset}")
    number = len(content.entries) + len(content.sitemaps)
    detail = f"the file {content.problem}" if content.problem else ""
    if not number and (content.problem or result.content_type in HTML_TYPES):
        return _unread(plain, result, detail)
    if not number:
        detail = "the file lists nothing"
        _log.info("%s: %s", url, detail)
    elif detail:
        _log.warning("%s: %s; the %d addresses before that count", url, detail, number)
    listed = _Rows(task, url, sitemaps_of).of(content)
    return replace(plain, outcome=Outcome.LISTED, detail=detail, listed=listed, sha1=sha1)


def _redirected(plain: MinedPage, target: str) -> MinedPage:
    """Where it leads to is a sitemap, too. Many sites redirect what they do not have to a page that says so."""
    task = plain.task
    if task.kind is Kind.GUESSED and not _looks_like_sitemap(target):
        return replace(plain, outcome=Outcome.NOT_FOUND, detail=f"redirected to {target}")
    row = ListedUrl(target, task.depth, 0, task.kind, task.hops + 1, _other(task.url, target))
    return replace(plain, listed=[row])


def _looks_like_sitemap(url: str) -> bool:
    path = path_of(url).partition("?")[0].lower()
    return _SITEMAP_WORD in path or path.endswith(_SITEMAP_ENDS)


def _unread(plain: MinedPage, result: FetchResult, detail: str) -> MinedPage:
    is_page = result.content_type in HTML_TYPES
    outcome = Outcome.UNWANTED if is_page else Outcome.BAD_CONTENT
    level = logging.DEBUG if plain.task.kind is Kind.GUESSED else logging.WARNING
    if is_page and _NO_SITEMAP not in detail:
        detail = f"{_NO_SITEMAP}: {result.content_type}"
    _log.log(level, "%s: %s", plain.task.url, detail)
    return replace(plain, outcome=outcome, detail=detail)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Makes the rows of one sitemap."""

    task: UrlTask
    url: str
    sitemaps_of: SitemapsOf

    def of(self, content: sitemaps.Sitemap) -> list[ListedUrl]:
        task, here = self.task, host_of(self.url)
        rows = [
            ListedUrl(url, task.depth, modified, Kind.SITEMAP, task.hops + 1, _other(self.url, url))
            for url, modified in content.sitemaps
        ]
        says = {here: True}  # about pages of which host
        for url, modified in content.entries:
            host = host_of(url)
            if host not in says:
                says[host] = self._is_named_by(url)
            rows.append(ListedUrl(url, task.depth + 1, modified, host="" if says[host] else here))
        return rows

    def _is_named_by(self, url: str) -> bool:
        """Whether the host of `url` has said, by its robots.txt, that this sitemap speaks for it."""
        return self.task.url in (self.sitemaps_of(origin_of(url)) or ())


def _other(base: str, url: str) -> str:
    """The host of `base`, if it is another one than that of `url`."""
    host = host_of(base)
    return "" if host == host_of(url) else host

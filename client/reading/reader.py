"""Reads pages and sitemaps for the datamine threads: harmless ones here, others in a process that can be killed."""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from client import bounds, sitemaps
from client.children import ChildTrouble
from client.reading.process import ReadingProcess
from client.reading.seen import Seen, Wanted, see
from client.sitemaps import Sitemap
from common.urls import host_of

MAX_SECONDS = 5.0  # for a page; one at all limits takes one or two
MAX_SITEMAP_SECONDS = 20.0
_MAX_AVOIDED = 1_000
_T = TypeVar("_T")
_log = logging.getLogger(__name__)


class Reader:
    """Shared by all datamine threads of a process. The other process is started with the first page that needs it.

    A host with a page that could not be read does not get so much time again: of its next large pages the beginning is
    read.
    """

    def __init__(self, max_seconds: float = MAX_SECONDS) -> None:
        self._max_seconds = max_seconds
        self._turn = threading.Lock()  # more at once would only wait for the interpreter lock
        self._risky_turn = threading.Lock()  # guards everything below
        self._process: ReadingProcess | None = None
        self._starter: ThreadPoolExecutor | None = None  # a process ends with the thread that has made it
        self._avoided: dict[str, None] = {}  # hosts, the oldest first

    def read(self, html: bytes, wanted: Wanted, host: str) -> Seen:
        """What HTML in UTF-8 says; of a page that cannot be read in time and in little memory, its beginning."""
        if not bounds.is_harmless(html):
            seen = self._try_outside(lambda process: process.read(html, wanted, self._max_seconds), host, len(html))
            if seen is not None:
                return seen
            html = bounds.harmless_beginning(html)
        with self._turn:
            return see(html, wanted)

    def read_sitemap(self, body: bytes, url: str, content_type: str) -> Sitemap:
        """What a sitemap says; nothing, with a problem, if it cannot be read in time and in little memory."""
        if not sitemaps.may_be_large(body):
            return sitemaps.read(body, url, content_type)
        found = self._try_outside(
            lambda process: process.read_sitemap(body, url, content_type, MAX_SITEMAP_SECONDS), host_of(url), len(body)
        )
        return found or Sitemap(problem="takes too long to read, or too much memory")

    def close(self) -> None:
        """End the process."""
        with self._risky_turn:
            self._drop()
            if self._starter is not None:
                self._starter.shutdown()
                self._starter = None

    def _try_outside(self, ask: Callable[[ReadingProcess], _T], host: str, size: int) -> _T | None:
        """None if it does not work."""
        with self._risky_turn:
            if host in self._avoided:
                return None
            try:
                return ask(self._running())
            except (ChildTrouble, OSError, RuntimeError) as error:  # the last two: no more processes, no more threads
                _log.warning("%d bytes from %s are read in part, or not at all: the reader %s", size, host, error)
                if self._process is not None:
                    self._avoid(host)
                self._drop()
                return None
            except BaseException:  # an answer that is on its way must not become that for the next page
                self._drop()
                raise

    def _drop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process = None

    def _avoid(self, host: str) -> None:
        self._avoided[host] = None
        if len(self._avoided) > _MAX_AVOIDED:
            del self._avoided[next(iter(self._avoided))]

    def _running(self) -> ReadingProcess:
        if self._process is not None and not self._process.is_alive:
            self._drop()  # dead already; it still has our end of the connection
        if self._process is None:
            if self._starter is None:
                self._starter = ThreadPoolExecutor(1, "reader")
            self._process = self._starter.submit(ReadingProcess).result()
        return self._process

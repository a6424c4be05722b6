"""Reads pages for the datamine threads: harmless ones here, all others in a process that can be killed."""

import logging
import threading
from concurrent.futures import ThreadPoolExecutor

from client import bounds
from client.children import ChildTrouble
from client.reading.process import ReadingProcess
from client.reading.seen import Seen, Wanted, see

MAX_SECONDS = 5.0  # for a page; one at all limits takes one or two
_MAX_AVOIDED = 1_000
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
            with self._risky_turn:
                seen = self._try_outside(html, wanted, host)
            if seen is not None:
                return seen
            html = bounds.harmless_beginning(html)
        with self._turn:
            return see(html, wanted)

    def close(self) -> None:
        """End the process."""
        with self._risky_turn:
            if self._process is not None:
                self._process.kill()
                self._process = None
            if self._starter is not None:
                self._starter.shutdown()
                self._starter = None

    def _try_outside(self, html: bytes, wanted: Wanted, host: str) -> Seen | None:
        """None if it does not work."""
        if host in self._avoided:
            return None
        try:
            return self._running().read(html, wanted, self._max_seconds)
        except (ChildTrouble, OSError) as error:  # OSError: such as no more processes
            _log.warning("of a page of %s with %d bytes the beginning is read: its reader %s", host, len(html), error)
        if self._process is not None:
            self._process.kill()
            self._process = None
            self._avoided[host] = None
        if len(self._avoided) > _MAX_AVOIDED:
            del self._avoided[next(iter(self._avoided))]
        return None

    def _running(self) -> ReadingProcess:
        if self._process is not None and not self._process.is_alive:
            self._process.kill()  # dead already; it still has our end of the connection
            self._process = None
        if self._process is None:
            if self._starter is None:
                self._starter = ThreadPoolExecutor(1, "reader")
            self._process = self._starter.submit(ReadingProcess).result()
        return self._process

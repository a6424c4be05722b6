"""Reads pages and sitemaps for the datamine threads: harmless ones here, others in processes that can be ended."""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext

from client import bounds, sitemaps
from client.children import ChildTrouble
from client.reading.lanes import Avoided, Lane, Places
from client.reading.process import Limits, ProcessMaker, ReadingProcess
from client.reading.seen import Seen, Wanted, see
from client.sitemaps import Sitemap
from common.urls import host_of

MAX_SECONDS = 2.5  # of processor time, for a page at all limits; see bounds.seconds_for
MAX_SITEMAP_SECONDS = 20.0
MAX_PAGE_MEMORY = 140 << 20  # beyond what the process needs for itself; a page at all limits takes about 100 MB
MAX_SITEMAP_MEMORY = 240 << 20  # likewise; one of 50 MB that is full of long addresses takes 190 MB
MAX_LAID_ASIDE = 8  # threads that may be waiting for pages that take more than a moment, so that the others go on

# Of a hundred honest pages that are not certainly harmless 99 take less than 0.04 s, and the largest ones 0.3 s.
_MOMENT = Limits(0.05, 60 << 20)
_WHILE = Limits(0.5, MAX_PAGE_MEMORY)

Ask = Callable[[ReadingProcess, Limits], bytes]
_log = logging.getLogger(__name__)


class Reader:
    """Shared by all datamine threads of a process. Other processes are started with the first page that needs one.

    A host with a page that could not be read does not get so much time again: of its next large pages the beginning is
    read.
    """

    def __init__(
        self, max_seconds: float = MAX_SECONDS, aside: Callable[[], AbstractContextManager[None]] = nullcontext
    ) -> None:
        """`aside` is entered while a thread waits for a page that takes long."""
        self._max_seconds = max_seconds
        self._aside = aside
        self._turn = threading.Lock()  # more at once would only wait for the interpreter lock
        moment, for_a_while = Lane(_MOMENT), Lane(_WHILE)
        self._page_lanes = moment, for_a_while, Lane(Limits(max_seconds, MAX_PAGE_MEMORY))
        self._sitemap_lanes = moment, for_a_while, Lane(Limits(MAX_SITEMAP_SECONDS, MAX_SITEMAP_MEMORY))
        self._places = Places(MAX_LAID_ASIDE)
        self._avoided = Avoided()
        self._making = threading.Lock()  # guards the two below
        self._maker: ProcessMaker | None = None
        self._starter: ThreadPoolExecutor | None = None  # a process ends with the thread that has made it

    def read(self, html: bytes, wanted: Wanted, host: str, held: "threading.Lock | None" = None) -> Seen:
        """What HTML in UTF-8 says; of a page that cannot be read in time and in little memory, its beginning.

        `held` is a lock that the caller holds. It is let go while another process reads.
        """
        if not bounds.is_harmless(html):
            most = Limits(min(self._max_seconds, bounds.seconds_for(html)), MAX_PAGE_MEMORY)
            with self._released(held):
                packed = self._outside(
                    lambda process, limits: process.read(html, wanted, limits), self._page_lanes, most, host, len(html)
                )
            if packed is not None:
                return Seen.unpacked(packed)
            html = bounds.harmless_beginning(html)
        with self._turn:
            return see(html, wanted)

    def read_sitemap(self, body: bytes, url: str, content_type: str, held: "threading.Lock | None" = None) -> Sitemap:
        """What a sitemap says; nothing, with a problem, if it cannot be read in time and in little memory."""
        if not sitemaps.may_be_large(body):
            return sitemaps.read(body, url, content_type)
        with self._released(held):
            packed = self._outside(
                lambda process, limits: process.read_sitemap(body, url, content_type, limits),
                self._sitemap_lanes, self._sitemap_lanes[-1].limits, host_of(url), len(body),
            )  # fmt: skip
        if packed is None:
            return Sitemap(problem="takes too long to read, or too much memory")
        return Sitemap.unpacked(packed)

    def close(self) -> None:
        """End the processes."""
        for lane in {*self._page_lanes, *self._sitemap_lanes}:
            with lane.turn:
                lane.drop()
        with self._making:
            if self._maker is not None:
                self._maker.kill()
                self._maker = None
            if self._starter is not None:
                self._starter.shutdown()
                self._starter = None

    @contextmanager
    def _released(self, held: "threading.Lock | None") -> Iterator[None]:
        """Without the lock, if there is one."""
        if held is None:
            yield
            return
        held.release()
        try:
            yield
        finally:
            with self._aside():  # who has the lock may be waiting to work
                held.acquire()

    def _outside(self, ask: Ask, lanes: Sequence[Lane], most: Limits, host: str, size: int) -> bytes | None:
        """From lane to lane, until it is read or has had the most that it may have; None if it does not work."""
        trouble = ""  # in words: an error leads to this frame, so the page would stay until garbage is searched for
        with ExitStack() as place:
            for lane in lanes:
                if lane is lanes[1]:  # not read within the moment
                    place.enter_context(self._aside())  # before the place: who works must not wait for one
                    if not self._places.take():
                        trouble = "has no place for more pages that take long"
                        break
                    place.callback(self._places.leave)
                try:
                    return self._in_lane(lane, ask, most, host)
                except _NoProcess as error:
                    trouble = str(error)
                    break
                except ChildTrouble as error:
                    trouble = str(error)
                    if lane is not lanes[0]:
                        self._places.alarm()
                    if lane.is_last(error, most):
                        self._avoided.add(host)
                        break
        _log.warning("%d bytes from %s are read in part, or not at all: the reader %s", size, host, trouble)
        return None

    def _in_lane(self, lane: Lane, ask: Ask, most: Limits, host: str) -> bytes | None:
        """None if the host is one of those that get no time again."""
        if self._avoided.has(host):
            return None
        with lane.turn:
            if self._avoided.has(host):  # since we wait
                return None
            try:
                process = lane.running(self._made)
            except (ChildTrouble, OSError, RuntimeError) as error:  # no more processes, no more threads
                raise _NoProcess(str(error)) from error
            try:
                return ask(process, most.within(lane.limits))
            except BaseException:  # an answer that is on its way must not become that for the next page
                lane.drop()
                raise

    def _made(self) -> ReadingProcess:
        with self._making:
            if self._maker is not None and not self._maker.is_alive:
                self._maker.kill()  # dead already; it still has our end of the connection
                self._maker = None
            if self._maker is None:
                if self._starter is None:
                    self._starter = ThreadPoolExecutor(1, "reader")
                self._maker = self._starter.submit(ProcessMaker).result()
            return self._maker.make()


class _NoProcess(Exception):
    """It cannot be read outside now, which is not its own fault. Says why."""

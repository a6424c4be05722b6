"""One thread that catalogues what all FTP sessions receive, so that none of them waits for the database.

The bundles are safe on disk before they get here, and the catalogue follows from them. So a bundle that finds
the queue full, or a database that cannot be written, costs nothing but a reconcile later.
"""

import logging
import queue
import threading
import time
from contextlib import suppress
from pathlib import Path

from common.bundle import Manifest
from common.errors import PavoukError
from common.loop import Caught, Loop
from server.catalogue.catalogue import Catalogue
from server.catalogue.database import CorruptCatalogue

QUEUE_LENGTH = 200  # bundles
QUEUE_PAGES = 50_000  # of these together; about 80 MB of memory
BATCH = 50  # bundles in one transaction
_LOOK_SECONDS = 0.1
RETRY_SECONDS = 60.0  # until the next try when the database could not be written

log = logging.getLogger(__name__)

_Item = tuple[Path, Manifest]


class CatalogueWriter:
    """Owns the writing connection and its thread, which begins with a reconcile. Any thread may `put`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._queue: queue.Queue[_Item | None] = queue.Queue(QUEUE_LENGTH)
        self._pages = 0  # of what is in the queue
        self._pages_lock = threading.Lock()  # guards that number
        self._missed = threading.Event()  # some bundle is stored that never went through the queue
        self._missed.set()
        self._is_ending = threading.Event()
        self._goes_on, self._is_suspect = True, False  # of the thread only
        self._thread = threading.Thread(target=self._run, name="catalogue")

    def start(self) -> None:
        self._thread.start()

    def put(self, path: Path, manifest: Manifest) -> None:
        """Have a stored bundle catalogued soon. Never waits."""
        try:
            with self._pages_lock:
                if self._pages and self._pages + len(manifest.pages) > QUEUE_PAGES:
                    raise queue.Full
                self._queue.put_nowait((path, manifest))
                self._pages += len(manifest.pages)
        except queue.Full:
            self._missed.set()

    def close(self) -> None:
        """Catalogue what is waiting, then end."""
        self._is_ending.set()
        while self._thread.is_alive():  # nobody takes anything out of a full queue when it is gone
            with suppress(queue.Full):
                self._queue.put(None, timeout=_LOOK_SECONDS)
                break
        self._thread.join()

    def _run(self) -> None:
        loop: Loop[CatalogueWriter] = Loop("catalogue", Caught(), self._is_ending.wait)
        loop.run(lambda: self if self._goes_on else None, CatalogueWriter._turn, CatalogueWriter._give_up_turn)

    def _turn(self) -> None:
        try:
            with Catalogue.open(self._directory, thorough=self._is_suspect) as catalogue:
                self._is_suspect = False
                self._goes_on = self._serve(catalogue)
        except (PavoukError, OSError) as error:
            self._is_suspect = isinstance(error, CorruptCatalogue)  # then all of it is read, and it is made anew
            log.error("%s; trying again later, no bundle is lost", error)
            self._missed.set()
            self._goes_on = not self._is_ending.is_set() and self._wait()

    def _give_up_turn(self, error: BaseException, tries: int) -> bool:
        """After a mistake of ours. What it had taken out of the queue the next reconcile finds."""
        self._missed.set()
        self._goes_on = not self._is_ending.is_set()
        return True

    def _serve(self, catalogue: Catalogue) -> bool:
        """Write until `close` is called (False)."""
        while True:
            self._catch_up(catalogue)
            batch, goes_on = self._next_batch()
            if catalogue.is_replaced():  # a repair has made it anew; what it has not seen, the next reconcile does
                self._missed.set()
                return goes_on
            catalogue.add_all(batch)
            if not goes_on:
                self._catch_up(catalogue)
                return False

    def _catch_up(self, catalogue: Catalogue) -> None:
        if not self._missed.is_set():
            return
        self._missed.clear()
        changes = catalogue.reconcile()
        if changes.added or changes.dropped:
            log.info("catalogue: %d bundles added, %d dropped", changes.added, changes.dropped)
        for name, reason in changes.broken:
            log.warning("not catalogued: %s: %s", name, reason)

    def _next_batch(self) -> tuple[list[_Item], bool]:
        """Wait for one bundle, take what else is there; False when the end was among it."""
        item = self._take()
        batch: list[_Item] = []
        while item is not None:
            batch.append(item)
            if len(batch) == BATCH or self._queue.empty():
                return batch, True
            item = self._take()  # this thread alone takes things out, so one is there
        return batch, False

    def _take(self, timeout: float | None = None) -> _Item | None:
        item = self._queue.get(timeout=timeout)
        if item is not None:
            with self._pages_lock:
                self._pages -= len(item[1].pages)
        return item

    def _wait(self) -> bool:
        """Let some time pass, less if `close` is called (False). A reconcile finds what comes meanwhile."""
        deadline = time.monotonic() + RETRY_SECONDS
        while (seconds := deadline - time.monotonic()) > 0:
            try:
                if self._take(seconds) is None:
                    return False
            except queue.Empty:
                break
        return True

"""What a person follows the crawl by: two console lines per report, blacklist.txt and progress.csv.

All of it can be made again from the frontier or is history; nothing here is needed to go on after a crash.
"""

import logging
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from common.clock import Clock
from common.files import publish
from common.wire import Totals, clean_text
from server.frontier.records import FailedRecord

BLACKLIST_NAME = "blacklist.txt"
PROGRESS_NAME = "progress.csv"
_PROGRESS_HEAD = "time,sent,processed,found,queued,bytes\n"
_log = logging.getLogger(__name__)


class Journal:
    """Writes into one folder; thread-safe."""

    def __init__(self, folder: Path, clock: Clock, known_failures: Iterable[FailedRecord]) -> None:
        self._clock = clock
        self._started = clock.ticks()
        self._lock = threading.Lock()  # keeps lines whole and the two console lines together
        publish(folder / BLACKLIST_NAME, (_blacklist_line(item).encode() for item in known_failures))
        self._blacklist = (folder / BLACKLIST_NAME).open("a", encoding="utf-8")
        self._progress = (folder / PROGRESS_NAME).open("a", encoding="utf-8")
        if self._progress.tell() == 0:
            self._progress.write(_PROGRESS_HEAD)
            self._progress.flush()

    def report(self, line: str, failed: Iterable[FailedRecord], totals: Totals) -> None:
        """Record one report. It is settled already, so a full disk or a closed console only costs the record."""
        now = datetime.fromtimestamp(self._clock.now(), UTC)
        numbers = totals.sent, totals.processed, totals.known, totals.queued, totals.size
        with self._recording():
            self._note_failed(failed)
            self._progress.write(f"{now:%Y-%m-%dT%H:%M:%SZ},{','.join(map(str, numbers))}\n")
            self._progress.flush()
            print(f"{line}\n{self._totals_line(now, totals)}", flush=True)

    def given_up(self, failed: Sequence[FailedRecord]) -> None:
        """URLs that were given up without a report: their hosts stayed dead. Settled already, too."""
        if failed:
            with self._recording():
                self._note_failed(failed)

    @contextmanager
    def _recording(self) -> Iterator[None]:
        try:
            with self._lock:
                yield
        except OSError as error:
            _log.warning("something is missing in the journal: %s", error)

    def _note_failed(self, failed: Iterable[FailedRecord]) -> None:
        self._blacklist.writelines(map(_blacklist_line, failed))
        self._blacklist.flush()

    def _totals_line(self, now: datetime, totals: Totals) -> str:
        effectivity = 100 * totals.processed / totals.sent if totals.sent else 100.0
        return (
            f"{now:%Y-%m-%d %H:%M:%S}(send: {totals.sent};processed: {totals.processed}; found: {totals.known};"
            f"effectivity: {effectivity:.1f} %; Q: {totals.queued};data size: {totals.size}b)"
            f"/{self._clock.ticks() - self._started:.0f} s"
        )

    def close(self) -> None:
        for file in (self._blacklist, self._progress):
            with suppress(OSError):
                file.close()


def _blacklist_line(item: FailedRecord) -> str:
    time = datetime.fromtimestamp(item.time, UTC)
    return f"{item.url}\t{item.outcome}\t{clean_text(item.detail)}\t{item.tries}\t{time:%Y-%m-%dT%H:%M:%SZ}\n"

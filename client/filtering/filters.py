"""Asks the filters whether a page is kept. Whatever happens to a filter costs neither the page nor the crawl."""

import logging
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from client.children import ChildTrouble
from client.filtering.loading import FilterError, filter_files
from client.filtering.page import Page
from client.filtering.process import FilterProcess
from client.results import MinedPage
from common.errors import ConfigError
from common.names import page_folder
from common.wire import Outcome

_MAX_LOST = 3  # processes in a row
_log = logging.getLogger(__name__)


def check(folder: Path) -> None:
    """Load the filters of a folder once, so that mistakes are told at the start: ConfigError."""
    try:
        filter_files(folder)
        FilterProcess(folder, max_seconds=1.0).end()
    except (FilterError, ChildTrouble) as error:
        raise ConfigError(f"filters: {error}") from error


@dataclass(slots=True)
class _Filter:
    """What one filter did so far."""

    name: str
    kept: int = 0
    discarded: int = 0
    troubles: Counter[str] = field(default_factory=Counter)  # by kind
    lost: int = 0  # processes in a row
    is_off: bool = False

    def takes(self, answer: dict[str, Any]) -> bool:
        """Whether the answer is to discard the page."""
        self.lost = 0
        if "trouble" in answer:
            self.note(answer["trouble"], answer["text"])
        elif answer.get("keep") is False:
            self.discarded += 1
            return True
        else:
            self.kept += 1
        return False

    def note(self, kind: str, text: str = "") -> None:
        """Tell of trouble when it is the first of its kind, the tenth, the hundredth and so on."""
        self.troubles[kind] += 1
        times = self.troubles[kind]
        if str(times).rstrip("0") == "1":
            trace = text and f"\n{text}"
            _log.warning("filter %s %s; its page counts as kept (time %d)%s", self.name, kind, times, trace)

    def lose(self, error: ChildTrouble) -> None:
        """It has cost its process."""
        self.note(str(error))
        self.lost += 1
        if self.lost >= _MAX_LOST:
            self.is_off = True
            _log.error("filter %s is switched off: %d times in a row it %s", self.name, self.lost, error)


class Filters:
    """The filters of one client process. Without a folder there are none: every page is kept, and nothing is started.

    `judge` is called by datamine threads, `close` when they have ended.
    """

    def __init__(self, folder: Path | None = None, max_seconds: float = 5.0) -> None:
        self._folder = folder
        self._max_seconds = max_seconds
        self._turn = threading.Lock()  # the process judges one page at a time; guards everything below
        self._filters = [_Filter(file.stem) for file in filter_files(folder)] if folder else []
        self._process: FilterProcess | None = None
        self._failed_starts = 0  # in a row
        # Processes end with the thread that has made them, and datamine threads do not end together.
        self._starter = ThreadPoolExecutor(1, "filters") if folder else None

    def judge(self, page: MinedPage) -> MinedPage:
        """The page; or, if a filter discards it, only its outcome and its links."""
        if self._starter is None or page.meta is None:
            return page
        try:
            path = f"{page_folder(page.meta.original_url)}/{page.data_name}"
            with self._turn:
                name = self._discarding(Page(page.meta.original_url, path, page.meta, page.body, page.xml))
        except Exception:  # a mistake of ours must not cost the page
            _log.exception("filtering %s", page.task.url)
            name = ""
        if not name:
            return page
        _log.debug("filter %s discards %s", name, page.task.url)
        return MinedPage(page.task, Outcome.UNWANTED, f"filter {name}", page.status, links=page.links)

    def close(self) -> None:
        """End the process, and tell what the filters did."""
        with self._turn:
            if self._process is not None:
                self._process.end()
                self._process = None
            for each in self._filters:
                troubles = "".join(f", {times} times it {kind}" for kind, times in each.troubles.items())
                _log.info("filter %s: %d pages kept, %d discarded%s", each.name, each.kept, each.discarded, troubles)
        if self._starter is not None:
            self._starter.shutdown()

    def _discarding(self, page: Page) -> str:
        """The name of the filter that discards the page, or nothing. One in trouble has no say; the others have."""
        waiting = [each for each in self._filters if not each.is_off]
        while waiting and (process := self._running()) is not None:
            try:
                for answer in process.answers(page, [each.name for each in waiting]):
                    each = waiting.pop(0)
                    if each.takes(answer):
                        return each.name
            except ChildTrouble as error:
                process.kill()
                waiting.pop(0).lose(error)
        return ""

    def _running(self) -> FilterProcess | None:
        """The process, started if there is none; None if that does not work."""
        if self._process is not None and self._process.is_alive:
            return self._process
        if self._failed_starts >= _MAX_LOST:
            return None
        try:
            if self._process is not None:
                self._process.kill()  # dead already; it still has our end of the connection
            self._process = self._started()
            self._failed_starts = 0
        except (ChildTrouble, OSError) as error:  # OSError: such as no more processes
            self._process = None
            self._failed_starts += 1
            _log.error("the filters cannot be started: %s", error)
            if self._failed_starts >= _MAX_LOST:
                _log.error("from now on every page is kept")
        return self._process

    def _started(self) -> FilterProcess:
        assert self._folder is not None
        assert self._starter is not None
        return self._starter.submit(FilterProcess, self._folder, self._max_seconds).result()

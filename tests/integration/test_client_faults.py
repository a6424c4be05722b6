"""Every call in a loop of the client fails once: the loop goes on, the crawl ends with everything stored, and each
error is counted."""

import errno
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import client.pipeline
import common.loop
from client import downloads, listing
from client.bundler import Harvest
from client.coordinator import Coordinator
from client.fetcher import Fetcher
from client.filtering.filters import Filters
from client.jobs import Jobs
from client.outbox import Outbox
from client.pipeline import Pipeline
from client.recent import RecentlySent
from client.robots import Robots
from client.schedule import Schedule
from client.spool import Parcel, Spool
from client.uploader import Uploader
from common.bundle import BundleWriter
from common.loop import Caught
from tests.integration.cluster import run_cluster
from tests.integration.inside import working
from tests.web.running import RunningWeb, run_web

pytestmark = [pytest.mark.integration, pytest.mark.faults]

ERRORS: dict[str, Callable[[], BaseException]] = {
    "disk": lambda: OSError(errno.ENOSPC, "No space left on device"),
    "memory": MemoryError,
    "bug": lambda: KeyError("a mistake of ours"),
    "exit": lambda: SystemExit("a thread would end without a word"),
}

# What each loop calls, in the order of its steps: the owner, the name, and which of the calls fails.
CALLS: dict[str, list[tuple[Any, str, int]]] = {
    "coordinate": [
        (Coordinator, "get_job", 2),
        (Spool, "begin", 1),
        (Harvest, "__init__", 3),
        (Jobs, "add", 2),
        (Schedule, "add", 2),
        (Harvest, "is_due", 5),
        (Outbox, "order_cut", 1),
        (Pipeline, "_wants_work", 4),
    ],
    "download": [
        (Pipeline, "_robots_of_now", 2),
        (Fetcher, "turn", 5),
        (Robots, "answer", 1),
        (Robots, "crawl_delay", 8),
        (Schedule, "again", 2),
        (Schedule, "locate", 3),
        (Schedule, "done", 6),
        (Pipeline, "_take_room", 9),
        (Fetcher, "let_go", 12),
        (downloads.Download, "_sitemaps", 14),
        (downloads, "Fetched", 16),
        (Schedule, "take", 20),
    ],
    "datamine": [
        (Jobs, "of", 1),
        (client.pipeline, "mine", 3),
        (Filters, "judge", 5),
        (Harvest, "add", 7),
        (BundleWriter, "add", 6),
        (Outbox, "order_squeeze", 1),
        (listing, "read", 1),
    ],
    "pack": [
        (Harvest, "squeeze", 1),
        (BundleWriter, "squeeze", 2),
        (Harvest, "cut", 1),
        (Spool, "new_folder", 2),
        (BundleWriter, "write", 3),
        (Spool, "seal", 4),
        (Jobs, "cut", 2),
    ],
    "ship": [
        (client.outbox, "delivery_of", 1),
        (Parcel, "read", 1),
        (Uploader, "upload", 2),
        (Coordinator, "send", 3),
        (RecentlySent, "add", 3),
        (Spool, "remove", 4),
        (Jobs, "delivered", 5),
    ],
}


@dataclass
class Faults:
    """Lets the n-th call of something fail."""

    patch: pytest.MonkeyPatch
    raised: list[str] = field(default_factory=list)

    def at(self, owner: Any, name: str, numbers: range, error: Callable[[], BaseException]) -> None:
        real, count = getattr(owner, name), itertools.count(1)

        def failing(*arguments: Any, **named: Any) -> Any:
            if next(count) in numbers:
                self.raised.append(name)
                raise error()
            return real(*arguments, **named)

        self.patch.setattr(owner, name, failing)


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Faults:
    monkeypatch.setattr(common.loop, "_LONGEST_SECONDS", 0.05)
    monkeypatch.setattr("common.bundle.writer._PIECE_BYTES", 2_000)  # so that there is something to squeeze
    monkeypatch.setattr(client.outbox, "_STOP_SHIP_SECONDS", 5.0)
    return Faults(monkeypatch)


@pytest.fixture(scope="module")
def web() -> Iterator[RunningWeb]:
    with run_web(hosts=3, pages=12) as it:
        yield it


def _crawl(folder: Path, web: RunningWeb, caught: Caught, *options: str) -> dict[str, int]:
    """All of it, in spite of what fails; returns how often each page is stored."""
    quick = ("--delay", "0", "--report-seconds", "0.1", "--retry-wait", "0.05", "--sitemaps", "1", *options)
    with run_cluster(folder, web.start_urls, *quick) as cluster:
        with working(cluster, folder / "spool", caught=caught):
            totals = cluster.wait_until_finished(30)
        stored = cluster.stored_urls()
        assert totals.stored == len(set(stored))
        assert set(stored) == web.truth.stored
        assert not list((folder / "spool").glob("[0-9]*/")), "nothing is left"
        return stored


@pytest.mark.parametrize("kind", ERRORS)
@pytest.mark.parametrize("loop", CALLS)
def test_every_call_in_a_loop_fails_once(
    tmp_path: Path, web: RunningWeb, faults: Faults, loop: str, kind: str
) -> None:
    expected = []
    for owner, name, number in CALLS[loop]:
        expected.append(name)
        faults.at(owner, name, range(number, number + 1), ERRORS[kind])
    caught = Caught()
    _crawl(tmp_path, web, caught)
    assert sorted(faults.raised) == sorted(expected), "the table is still what the loop does"
    told = {name: trouble.times for name, trouble in caught.all().items()}
    assert sum(told.values()) == len(expected), told

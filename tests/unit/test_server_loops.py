"""Threads of the host: whatever is raised in one costs a turn, is counted or logged, and ends no thread."""

import logging
import os
import re
import time
from contextlib import closing
from io import BufferedReader, FileIO
from pathlib import Path
from typing import Any, cast

import pytest

from common.clock import ManualClock
from common.loop import Caught
from common.settings import Settings
from common.wire import Outcome
from onehost.parts import _Reader
from server.admin.operator import Operator
from server.admin.show import lines
from server.catalogue import Catalogue, CatalogueWriter
from server.catalogue import writer as writer_module
from server.catalogue.stored import stored_manifest
from server.frontier.frontier import Frontier
from server.frontier.records import FailedRecord
from server.frontier.store import StoreError
from server.urlserver import main as urlserver
from server.urlserver.journal import Journal
from tests.bundles import make_bundle
from tests.conftest import Make
from tests.waiting import wait_until

FAILED = FailedRecord("http://a.org/", Outcome.DNS, "no such host", 3, 0.0, 1, 0, 0)
FULL = Path("/dev/full")


class _Frontier:
    """Ticks, and raises these things first."""

    def __init__(self, *errors: BaseException) -> None:
        self._errors = list(errors)
        self.ticks = 0

    def tick(self) -> list[FailedRecord]:
        if self._errors:
            raise self._errors.pop(0)
        self.ticks += 1
        return [FAILED]


def test_the_ticker_goes_on_and_status_counts_what_it_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, frontiers: Make
) -> None:
    monkeypatch.setattr(urlserver, "_TICK_SECONDS", 0.001)
    fake, caught = _Frontier(KeyError("a bug"), MemoryError(), StoreError("full"), OSError(28, "full")), Caught()
    journal = Journal(tmp_path, ManualClock(), ())
    ticker = urlserver._Ticker(cast(Frontier, fake), journal, caught)
    ticker.start()
    wait_until(lambda: fake.ticks >= 2, 30)
    ticker.stop()
    journal.close()
    assert caught.all()["tick"].times == 3, "a store that cannot write is trouble that callers hear of"
    answer = Operator(frontiers().frontier, Settings(folder=tmp_path), caught).run("status", {})
    assert "3 errors in tick, the last: OSError" in "\n".join(lines("status", answer))


def test_a_journal_on_a_full_disk_costs_the_record_only(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    journal = Journal(tmp_path, ManualClock(), ())
    journal._blacklist.close()
    journal._blacklist = FULL.open("a", encoding="utf-8")
    journal.given_up([FAILED])
    journal.close()
    assert "No space left" in caplog.text


def test_the_catalogue_goes_on_after_a_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    errors: list[BaseException] = [KeyError("a bug"), SystemExit(1)]

    def add_all(catalogue: Catalogue, items: Any) -> int:
        if errors:
            raise errors.pop(0)
        return real(catalogue, items)

    real = Catalogue.add_all
    monkeypatch.setattr(Catalogue, "add_all", add_all)
    writer = CatalogueWriter(tmp_path)
    writer.start()
    with closing(writer):
        for number in range(1, 5):
            path = make_bundle(tmp_path / "a.org", "a.org", str(number))
            writer.put(path, stored_manifest(path))
            wait_until(lambda: writer._queue.empty(), 30)
        wait_until(lambda: not errors, 30)
    assert "catalogue: caught KeyError" in caplog.text
    with Catalogue.open(tmp_path, read_only=True) as catalogue:
        assert catalogue.counts().bundles == 4


def test_a_catalogue_that_never_works_lets_its_server_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def reconcile(_: Catalogue) -> None:
        raise KeyError("a bug")

    monkeypatch.setattr(Catalogue, "reconcile", reconcile)
    monkeypatch.setattr(writer_module, "QUEUE_LENGTH", 1)
    caplog.set_level(logging.CRITICAL, "common.loop")
    writer = CatalogueWriter(tmp_path)
    path = make_bundle(tmp_path / "a.org", "a.org")
    writer.put(path, stored_manifest(path))  # the queue is full
    writer.start()
    began = time.monotonic()
    writer.close()
    assert not writer._thread.is_alive()
    assert time.monotonic() - began < 30


def test_a_part_is_read_to_its_end_when_its_log_takes_nothing() -> None:
    output, into = os.pipe()
    reader = _Reader(BufferedReader(FileIO(output)), FULL.open("ab"), re.compile(b"is ready"))
    with os.fdopen(into, "wb") as part:
        part.write(b"hello\nis ready\n")
        part.write(b"a page\n" * 100_000)  # more than the pipe holds: somebody must read it
        part.flush()
    assert reader.is_decided(30)
    assert reader.is_ready

"""One client's pipeline inside the test, where its waits can be shortened and its disk filled."""

import errno
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import client.outbox
import client.pipeline
import common.loop
from client.bundler import Harvest
from client.pipeline import Pipeline
from client.results import MinedPage
from client.spool import Spool
from common.bundle import BundleWriter
from common.wire import JobSettings
from tests.integration.cluster import run_cluster
from tests.integration.inside import working
from tests.waiting import wait_until
from tests.web.requestlog import assert_no_url_twice
from tests.web.running import run_web

pytestmark = pytest.mark.integration


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client.outbox, "_STOP_SHIP_SECONDS", 0.5)
    monkeypatch.setattr(client.pipeline, "_STOP_FETCH_SECONDS", 2.0)
    monkeypatch.setattr(common.loop, "_LONGEST_SECONDS", 0.05)


def _full_disk(patch: pytest.MonkeyPatch, owner: type, name: str, calls: range) -> Callable[[], int]:
    """These calls fail; returns how many there have been."""
    real = getattr(owner, name)
    made: list[int] = []

    def failing(*arguments: Any, **named: Any) -> Any:
        made.append(1)
        if len(made) in calls:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(*arguments, **named)

    patch.setattr(owner, name, failing)
    return lambda: len(made)


def test_stopped_while_the_ftp_server_is_away(tmp_path: Path) -> None:
    with (
        run_web(hosts=2, pages=10) as web,
        run_cluster(tmp_path, web.start_urls, "--delay", "0.01", "--report-seconds", "0.2") as cluster,
    ):
        cluster.stop("ftp")
        with working(cluster, tmp_path / "spool"):
            wait_until(lambda: list((tmp_path / "spool").glob("*/*/report.json")), 30)
        assert list((tmp_path / "spool").glob("*/*/report.json")), "kept until the next start"
        assert cluster.coordinator.totals()[0].done == 0
        cluster.start("ftp")
        with working(cluster, tmp_path / "spool"):
            cluster.wait_until_finished()
        stored = cluster.stored_urls()
        assert set(stored) == web.truth.stored
        assert set(stored.values()) == {1}
        assert_no_url_twice(web.log())


@pytest.mark.faults
@pytest.mark.parametrize(("owner", "name"), [(Spool, "begin"), (BundleWriter, "write")])
def test_full_disk_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> None:
    with (
        run_web(hosts=2, pages=8) as web,
        run_cluster(tmp_path, web.start_urls, "--delay", "0", "--report-seconds", "0.2") as cluster,
    ):
        calls = _full_disk(monkeypatch, owner, name, range(2, 6))
        with working(cluster, tmp_path / "spool"):
            cluster.wait_until_finished()
        assert calls() > 5
        stored = cluster.stored_urls()
        assert set(stored) == web.truth.stored
        assert set(stored.values()) == {1}
        assert_no_url_twice(web.log())


@pytest.mark.faults
def test_stopped_with_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        run_web(hosts=2, pages=8) as web,
        run_cluster(tmp_path, web.start_urls, "--delay", "0", "--report-seconds", "0.2") as cluster,
    ):
        with monkeypatch.context() as patch:
            calls = _full_disk(patch, BundleWriter, "write", range(1, 10**9))
            with working(cluster, tmp_path / "spool"):
                wait_until(lambda: calls() > 3, 30)
        totals = cluster.coordinator.totals()[0]
        assert (totals.stored, totals.leased) == (0, 0), "everything was given back"
        with working(cluster, tmp_path / "spool"):
            cluster.wait_until_finished()
        stored = cluster.stored_urls()
        assert set(stored) == web.truth.stored
        assert set(stored.values()) == {1}


@pytest.mark.faults
def test_our_own_mistakes_cost_one_page_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = client.pipeline.mine

    def mine(result: Any, settings: JobSettings, *more: Any) -> MinedPage:
        if result.task.url.endswith("/s1/1.html"):
            raise RuntimeError("a mistake")
        return real(result, settings, *more)

    monkeypatch.setattr(client.pipeline, "mine", mine)
    with (
        run_web(hosts=1, pages=3, odd=False) as web,
        run_cluster(tmp_path, web.start_urls, "--delay", "0", "--retry-wait", "0.05") as cluster,
    ):
        with working(cluster, tmp_path / "spool"):
            totals = cluster.wait_until_finished()
        assert (totals.stored, totals.failed) == (len(web.truth.stored) - 1, 1)
        assert "internal" in (cluster.host / ".mem" / "blacklist.txt").read_text()


def test_pages_that_come_while_a_parcel_is_made_are_not_forgotten_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last cut is ordered while the one before is under way."""
    packing, go_on = threading.Event(), threading.Event()
    real = Harvest._pack

    def slow(self: Harvest, *arguments: Any) -> Any:
        if not self.is_complete:
            packing.set()
            go_on.wait(30)
        return real(self, *arguments)

    order_cuts = Pipeline._order_cuts

    def ordering(self: Pipeline, everything: bool = False) -> None:
        order_cuts(self, everything)
        if everything:
            go_on.set()

    monkeypatch.setattr(Harvest, "_pack", slow)
    monkeypatch.setattr(Pipeline, "_order_cuts", ordering)
    pages: list[MinedPage] = []
    with (
        run_web(hosts=1, pages=40, odd=False) as web,
        run_cluster(tmp_path, web.start_urls, "--delay", "0.05", "--report-seconds", "0.1") as cluster,
    ):
        with working(cluster, tmp_path / "spool", pages.append) as pipeline:
            assert packing.wait(30)
            packed = len(pages)
            wait_until(lambda: len(pages) > packed, 30)
            pipeline.stop()
        with working(cluster, tmp_path / "spool", pages.append):
            cluster.wait_until_finished()
        assert set(cluster.stored_urls()) == web.truth.stored
        assert_no_url_twice(web.log())

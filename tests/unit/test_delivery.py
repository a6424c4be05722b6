"""Parcels on their way to the real servers: upload, report, remove; and what becomes of them when a step fails."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from client.bundler import Harvest
from client.coordinator import Coordinator
from client.delivery import Delivery
from client.patience import Stopped
from client.recent import RecentlySent
from client.results import MinedPage
from client.room import Room
from client.spool import Parcel, Spool
from client.uploader import Uploader
from common.clock import SystemClock
from common.wire import HostFact, Job, JobSettings, Outcome
from tests.bundles import page_meta
from tests.ftp import TOKEN, run_ftp_server, stored_bundles
from tests.ports import free_port
from tests.urlserver import address_of, serving
from tests.waiting import wait_until

STARTS = ("http://a.test/", "http://b.test/")


class Host:
    """Both servers, and one client's end of the wire."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self._stack = stack
        self.ftp_port = free_port()
        self.ftp = ExitStack()
        stack.push(self.ftp)
        options = ("--token", TOKEN, "--ftp-port", str(self.ftp_port), "--delay", "0", "--retry-wait", "0.01")
        self.url = address_of(stack.enter_context(serving(folder / "host", *options, *STARTS)))
        self.stopped = threading.Event()
        self.coordinator = self._closing(Coordinator(self.url, "one", TOKEN))
        self.spool = Spool(folder / "spool")

    def _closing(self, it: Coordinator) -> Coordinator:
        self._stack.callback(it.close)
        return it

    @property
    def pages(self) -> Path:
        return self.folder / "host" / "Pages"

    def start_ftp(self, *options: str) -> None:
        self.ftp.enter_context(run_ftp_server(self.folder / "host", *options, port=self.ftp_port))

    def delivery(self, token: str = TOKEN) -> Delivery:
        def uploader(settings: JobSettings) -> Uploader:
            return Uploader("127.0.0.1", settings.ftp_port, settings.ftp_user, settings.ftp_password)

        coordinator = Coordinator(self.url, "one", token)
        it = Delivery(self.spool, coordinator, uploader, self.stopped, max_wait_seconds=0.1)
        self._stack.callback(it.close)
        return it

    def job(self) -> Job:
        job = self.coordinator.get_job("", 10)
        assert {task.url for task in job.tasks} == set(STARTS)
        return job

    def parcel(self, job: Job) -> Parcel:
        """Both URLs fetched and packed."""
        room, recent = Room(10**9), RecentlySent()
        harvest = Harvest(job.job, len(job.tasks), job.settings, self.spool, SystemClock(), room, recent)
        for task in job.tasks:
            meta = page_meta(task.url, b"<p>text", 1_700_000_000.0)
            page = MinedPage(task, Outcome.STORED, "", 200, meta, "data.html", b"<p>text", b"<page/>", [task.url + "x"])
            harvest.add(page, HostFact(task.url.split("/")[2]))
        parcel = harvest.cut()
        assert parcel is not None
        return parcel


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with ExitStack() as stack:
        yield Host(tmp_path, stack)


def _in_thread(call: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=call)
    thread.start()
    return thread


def test_uploaded_then_reported_then_removed(host: Host) -> None:
    host.start_ftp()
    job = host.job()
    parcel = host.parcel(job)
    receipt = host.delivery().deliver(parcel, lambda: job.settings)
    assert receipt is not None
    assert (receipt.accepted, receipt.refused, receipt.new_urls) == (2, 0, 2)
    assert len(stored_bundles(host.pages)) == 2
    assert host.coordinator.totals()[0].stored == 2
    assert not parcel.folder.exists()


def test_delivering_twice_changes_nothing(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a crash between reporting and removing."""
    host.start_ftp()
    job = host.job()
    parcel = host.parcel(job)
    with monkeypatch.context() as patch:
        patch.setattr(Spool, "remove", lambda *_: None)
        host.delivery().deliver(parcel, lambda: job.settings)
    before = host.coordinator.totals()
    host.delivery().deliver(parcel, lambda: job.settings)
    assert host.coordinator.totals() == before
    assert len(stored_bundles(host.pages)) == 2
    assert not parcel.folder.exists()


def test_waits_for_the_ftp_server_and_reports_nothing_before(host: Host, caplog: pytest.LogCaptureFixture) -> None:
    job = host.job()
    parcel = host.parcel(job)
    delivery = host.delivery()
    thread = _in_thread(lambda: delivery.deliver(parcel, lambda: job.settings))
    wait_until(lambda: "uploading" in caplog.text, 30)
    assert host.coordinator.totals()[0].done == 0
    host.start_ftp()
    thread.join(30)
    assert not thread.is_alive()
    assert host.coordinator.totals()[0].stored == len(stored_bundles(host.pages)) == 2


def test_stopped_while_waiting_keeps_the_parcel(host: Host) -> None:
    job = host.job()
    parcel = host.parcel(job)
    host.stopped.set()
    with pytest.raises(Stopped):
        host.delivery().deliver(parcel, lambda: job.settings)
    assert len(parcel.bundles) == 2
    assert host.coordinator.totals()[0].done == 0


def test_wrong_tokens_lose_nothing(host: Host, caplog: pytest.LogCaptureFixture) -> None:
    host.start_ftp()
    job = host.job()
    parcel = host.parcel(job)
    delivery = host.delivery(token="wrong")

    def deliver() -> None:
        with pytest.raises(Stopped):
            delivery.deliver(parcel, lambda: job.settings)

    thread = _in_thread(deliver)
    wait_until(lambda: "token is missing or wrong" in caplog.text, 30, lambda: caplog.text)
    host.stopped.set()
    thread.join(30)
    assert len(parcel.bundles) == 2
    host.stopped.clear()
    assert host.delivery().deliver(parcel, lambda: job.settings) is not None
    assert host.coordinator.totals()[0].stored == 2


def test_an_ftp_server_that_has_moved_is_found(host: Host) -> None:
    job = host.job()
    parcel = host.parcel(job)
    settings = [job.settings]
    delivery = host.delivery()
    thread = _in_thread(lambda: delivery.deliver(parcel, lambda: settings[-1]))
    with run_ftp_server(host.folder / "host") as moved:
        settings.append(replace(job.settings, ftp_port=moved.port))
        thread.join(30)
        assert not thread.is_alive()
    assert len(stored_bundles(host.pages)) == 2


def test_refused_bundle_is_kept_aside_and_its_pages_are_tried_again_but_not_for_ever(host: Host) -> None:
    host.start_ftp()
    delivery = host.delivery()
    parcels = 0

    def all_given_up() -> bool:
        nonlocal parcels
        job = host.coordinator.get_job(f"{parcels}", 10)
        starts = [task for task in job.tasks if task.url in STARTS]  # the others are links, found all the same
        if starts:
            parcels += 1
            parcel = host.parcel(replace(job, tasks=starts))
            for bundle in parcel.bundles:
                bundle.write_bytes(b"damaged on this machine")
            assert delivery.deliver(parcel, lambda: job.settings) is not None
        return host.coordinator.totals()[0].failed == len(STARTS)

    wait_until(all_given_up, 30, lambda: f"{parcels} parcels, {host.coordinator.totals()}")
    assert parcels >= 3, "each page was tried again twice"
    assert not stored_bundles(host.pages)
    assert host.coordinator.totals()[0].stored == 0
    assert len(list((host.folder / "spool").glob("*.refused.*"))) == parcels


def test_recovery_delivers_what_was_packed_and_gives_the_rest_back(host: Host) -> None:
    host.start_ftp()
    host.parcel(host.job())
    host.spool = Spool(host.folder / "spool")
    host.delivery().recover()
    totals = host.coordinator.totals()[0]
    assert (totals.stored, totals.leased) == (2, 0)
    assert host.spool.jobs() == []


def test_recovery_gives_back_a_job_that_was_only_begun(host: Host) -> None:
    host.spool.begin(host.job().job)
    host.delivery().recover()
    totals = host.coordinator.totals()[0]
    assert (totals.leased, totals.queued) == (0, 2)
    assert host.spool.jobs() == []


def test_recovery_with_a_damaged_report_and_an_unknown_job(host: Host) -> None:
    host.start_ftp()
    parcel = host.parcel(host.job())
    (parcel.folder / "report.json").write_text("{")
    host.spool.begin("999999")  # of a server that has begun anew since
    host.delivery().recover()
    totals = host.coordinator.totals()[0]
    assert (totals.stored, totals.leased, totals.queued) == (0, 0, 2), "the pages are fetched again"
    assert host.spool.jobs() == []
    assert len(list((host.folder / "spool").glob("*.refused.*"))) == 1

"""Parcels to the servers: upload, then report, then remove. Used by one thread; repeating any step does no harm."""

import logging
import threading
import uuid
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TypeVar

from client.coordinator import Coordinator
from client.patience import persist
from client.recent import RecentlySent
from client.spool import Parcel, Spool
from client.uploader import Uploader
from common.errors import BundleError, RemoteRefused
from common.wire import JobSettings, Outcome, Receipt, Report, UrlResult

_MAX_DETAIL = 300
_T = TypeVar("_T")
_log = logging.getLogger(__name__)


class Delivery:
    """Waits for servers that are away as long as `stopped` is not set; then it raises Stopped."""

    def __init__(
        self,
        spool: Spool,
        coordinator: Coordinator,
        new_uploader: Callable[[JobSettings], Uploader],
        stopped: threading.Event,
        max_wait_seconds: float,
    ) -> None:
        self._spool = spool
        self._coordinator = coordinator
        self._new_uploader = new_uploader
        self._stopped = stopped
        self._max_wait_seconds = max_wait_seconds
        self._uploader: Uploader | None = None
        self._uploads_to: tuple[object, ...] = ()

    def deliver(
        self, parcel: Parcel, settings: Callable[[], JobSettings], recent: RecentlySent | None = None
    ) -> Receipt | None:
        """Bring one parcel to its end; None if it can never be delivered. `recent` hears what the server knows then.

        `settings` are those of now: the FTP server may have moved since the job was handed out.
        """
        try:
            report = parcel.report()
            report = self._uploaded(parcel, report, settings)
            receipt = self._persist(lambda: self._coordinator.send(report), f"reporting on job {parcel.job}")
        except (RemoteRefused, BundleError) as error:
            self._set_aside(parcel, error)
            return None
        self._spool.remove(parcel)
        if recent is not None:
            recent.add(report.found)
        _log.info(
            "job %s: %d URLs reported, %d accepted, %d refused, %d new",
            parcel.job, len(report.results), receipt.accepted, receipt.refused, receipt.new_urls,
        )  # fmt: skip
        return receipt

    def _uploaded(self, parcel: Parcel, report: Report, settings: Callable[[], JobSettings]) -> Report:
        """The report that may be sent now: pages that will never be stored are reported as failed, not as stored.

        So the server tries them again, but not for ever.
        """

        def upload(bundle: Path) -> None:
            self._uploader_for(settings()).upload(bundle)

        try:
            for bundle in parcel.bundles:
                self._persist(partial(upload, bundle), f"uploading {bundle.name}")
        except (RemoteRefused, BundleError) as error:
            self._set_aside(parcel, error)
            results = [_not_stored(result, str(error)) for result in report.results]
            return replace(report, results=results, size=0)
        return report

    def _set_aside(self, parcel: Parcel, reason: Exception) -> None:
        if parcel.folder.exists():
            aside = self._spool.refuse(parcel)
            _log.error("a parcel of job %s was refused (%s); it is kept in %s", parcel.job, reason, aside)

    def recover(self) -> None:
        """Deliver what an earlier run left in the spool, and give back what it had begun."""
        settings = cache(self._current_settings)
        for job in self._spool.jobs():
            for parcel in self._spool.parcels(job):
                self.deliver(parcel, settings)
            self.give_back(job)

    def give_back(self, job: str) -> None:
        """Return the unfinished URLs of a job; it is not ours any more."""
        try:
            self._persist(lambda: self._coordinator.exit(job), f"giving job {job} back")
        except RemoteRefused as error:  # not ours, as far as the server knows
            _log.warning("job %s was not given back: %s", job, error)
        self._spool.end(job)

    def close(self) -> None:
        self._coordinator.close()
        if self._uploader is not None:
            self._uploader.close()

    def _current_settings(self) -> JobSettings:
        """Where to upload is said with a job. One that we get only for that is given back."""
        request = uuid.uuid4().hex
        job = self._persist(lambda: self._coordinator.get_job(request, 1), "asking for the settings")
        if job.job:
            self._persist(lambda: self._coordinator.exit(job.job), "giving a job back")
        return job.settings

    def _uploader_for(self, settings: JobSettings) -> Uploader:
        where = (settings.ftp_host, settings.ftp_port, settings.ftp_user, settings.ftp_password, settings.ftp_tls)
        if self._uploader is None or where != self._uploads_to:
            if self._uploader is not None:
                self._uploader.close()
            self._uploader, self._uploads_to = self._new_uploader(settings), where
        return self._uploader

    def _persist(self, call: Callable[[], _T], what: str) -> _T:
        return persist(call, what, self._stopped, self._max_wait_seconds)


def _not_stored(result: UrlResult, reason: str) -> UrlResult:
    if result.outcome is not Outcome.STORED:
        return result
    detail = f"fetched, but the bundle was refused: {reason}"[:_MAX_DETAIL]
    return result._replace(outcome=Outcome.INTERNAL, detail=detail)

"""Parcels to the servers: upload, then report, then remove. Used by one thread; repeating any step does no harm."""

import logging
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import TypeVar

from client.bundler import not_stored
from client.coordinator import Coordinator
from client.patience import Stopped, persist
from client.recent import RecentlySent
from client.spool import Parcel, Spool
from client.uploader import Uploader
from common.errors import BundleError, RemoteRefused
from common.loop import Caught, Loop
from common.wire import JobSettings, Receipt

_MAX_TRIES = 3  # with what an earlier run left of a job; then it stays until the next start
_T = TypeVar("_T")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Delivered:
    """A parcel of which the server knows, and what is to be done with it: removed, or set aside for a reason."""

    parcel: Parcel
    receipt: Receipt | None
    reason: Exception | str = ""


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
        self._delivered: _Delivered | None = None  # and not removed yet

    def deliver(
        self,
        parcel: Parcel,
        settings: Callable[[], JobSettings],
        recent: RecentlySent | None = None,
        spoilt: str = "",
    ) -> Receipt | None:
        """Bring one parcel to its end; None if it can never be delivered. `recent` hears what the server knows then.
        Whatever is raised: call again, and it goes on where it was. One that is `spoilt` is only reported as that.

        `settings` are those of now: the FTP server may have moved since the job was handed out.
        """
        if self._delivered is None or self._delivered.parcel != parcel:
            self._delivered = self._sent(parcel, settings, recent, spoilt)
        done = self._delivered
        if done.reason:
            self._set_aside(parcel, done.reason)
        else:
            self._spool.remove(parcel)
        self._delivered = None
        return done.receipt

    def has_told(self, parcel: Parcel) -> bool:
        """Whether the server knows of it, and only its folder is left to be removed."""
        return self._delivered is not None and self._delivered.parcel == parcel

    def _sent(
        self, parcel: Parcel, settings: Callable[[], JobSettings], recent: RecentlySent | None, spoilt: str
    ) -> _Delivered:
        reason: Exception | str = spoilt
        try:
            sealed = parcel.read()
            report = sealed.report
            if not reason:
                try:
                    parcel.check(sealed.bundles)
                    self._upload(parcel, settings)
                except (RemoteRefused, BundleError) as error:
                    reason = error
            if reason:  # so the server tries its pages again, but not for ever
                detail = f"fetched, but the bundle was refused: {reason}"
                report = replace(report, results=[not_stored(each, detail) for each in report.results], size=0)
            receipt = self._persist(lambda: self._coordinator.send(report), f"reporting on job {parcel.job}")
        except (RemoteRefused, BundleError) as error:
            return _Delivered(parcel, None, error)
        if recent is not None:
            recent.add(report.found)
        _log.info(
            "job %s: %d URLs reported, %d accepted, %d refused, %d new",
            parcel.job, len(report.results), receipt.accepted, receipt.refused, receipt.new_urls,
        )  # fmt: skip
        return _Delivered(parcel, receipt, reason)

    def _upload(self, parcel: Parcel, settings: Callable[[], JobSettings]) -> None:
        def upload(bundle: Path) -> None:
            self._uploader_for(settings()).upload(bundle)

        for bundle in parcel.bundles:
            self._persist(partial(upload, bundle), f"uploading {bundle.name}")

    def _set_aside(self, parcel: Parcel, reason: Exception | str) -> None:
        if parcel.folder.exists():
            aside = self._spool.refuse(parcel)
            _log.error("a parcel of job %s was refused (%s); it is kept in %s", parcel.job, reason, aside)

    def recover(self, caught: Caught | None = None) -> None:
        """Deliver what an earlier run left in the spool, and give back what it had begun. What is raised over one job
        leaves that one until the next start."""
        settings = cache(self._current_settings)
        jobs = iter(self._spool.jobs())
        loop: Loop[str] = Loop("recover", caught or Caught(), self._stopped.wait, passing=(Stopped,))
        loop.run(
            lambda: next(jobs, None),
            lambda job: self._recover(job, settings),
            lambda job, error, tries: tries >= _MAX_TRIES,
        )

    def _recover(self, job: str, settings: Callable[[], JobSettings]) -> None:
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


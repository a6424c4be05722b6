"""What waits on disk to be uploaded and reported, so that neither a crash nor an absent server loses it.

    spool/request                 the name of the request for the next job
    spool/<job>/                  this client has the job (or had it when it was killed)
    spool/<job>/<number>/         a parcel: bundles, their manifests, and last of all report.json
    spool/<job>.refused.<number>/ a parcel that the FTP server will never take; kept for a person to look at

A parcel without report.json was under way when the client died: its URLs were not reported, so it is dropped.
"""

import contextlib
import errno
import json
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from common.bundle import FORMATS, is_job_name
from common.errors import BundleError
from common.files import publish
from common.wire import FoundUrl, HostFact, ListedUrl, Report, UrlResult, from_table, to_table

REPORT_NAME = "report.json"
_LASTING = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EIO)


def unreadable(path: Path, error: OSError) -> BundleError | OSError:
    """What to raise of a file of a parcel: whether it is gone or damaged, or may well be read later."""
    damage = BundleError(f"{path.name} cannot be read: {error.strerror}")
    return damage if error.errno in _LASTING else error


def jobs_in(spool: Path) -> list[str]:
    """Jobs that were begun and not ended, oldest first: their names begin with numbers that grow."""
    names = [path.name for path in spool.iterdir() if is_job_name(path.name) and path.is_dir()]
    return sorted(names, key=lambda name: (len(name), name))


@dataclass(frozen=True, slots=True)
class Parcel:
    """Bundles with the report that may be sent once they are uploaded."""

    folder: Path

    @property
    def job(self) -> str:
        return self.folder.parent.name

    @property
    def bundles(self) -> list[Path]:
        return sorted(path for path in self.folder.iterdir() if path.name.endswith(FORMATS))

    def report(self) -> Report:
        """BundleError if it is damaged; OSError if it cannot be read now, though it is there."""
        try:
            content = (self.folder / REPORT_NAME).read_bytes()
        except OSError as error:
            raise unreadable(self.folder / REPORT_NAME, error) from error
        try:
            data = json.loads(content)
            return Report(
                job=self.job,
                results=from_table(UrlResult, data["results"]),
                found=from_table(FoundUrl, data["found"]),
                hosts=from_table(HostFact, data["hosts"]),
                size=data["size"],
                listed=from_table(ListedUrl, data.get("listed", "")),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BundleError(f"the report of a parcel cannot be read: {error}") from error


class Spool:
    """The folder of all parcels. Each parcel is handled by one thread at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._request = folder / "request"
        folder.mkdir(parents=True, exist_ok=True)

    def request(self) -> str:
        """The name of the request for a job that may not have been answered yet, also one of an earlier run.

        The server answers it again with the same job: one that was handed out while we were killed is not orphaned.
        """
        with contextlib.suppress(OSError, UnicodeError):
            if name := self._request.read_text(encoding="ascii"):
                return name
        return self.next_request()

    def next_request(self) -> str:
        """The request was answered; the name of the next one."""
        name = uuid.uuid4().hex
        with contextlib.suppress(OSError):  # then an old name stays there, and is answered with a new job
            self._request.write_text(name, encoding="ascii")
        return name

    def begin(self, job: str) -> None:
        """Remember that we have this job."""
        (self._folder / job).mkdir(exist_ok=True)

    def end(self, job: str) -> None:
        """The job is settled."""
        shutil.rmtree(self._folder / job, ignore_errors=True)

    def jobs(self) -> list[str]:
        """Jobs that were begun and not ended."""
        return jobs_in(self._folder)

    def parcels(self, job: str) -> Iterator[Parcel]:
        """Complete parcels of a job; incomplete ones are dropped."""
        for folder in sorted((self._folder / job).iterdir()):
            if (folder / REPORT_NAME).exists():
                yield Parcel(folder)
            else:
                shutil.rmtree(folder)

    def new_folder(self, job: str, number: int) -> Path:
        """An empty folder for a parcel."""
        folder = self._folder / job / f"{number:06}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    def seal(self, folder: Path, report: Report) -> Parcel:
        """Complete a parcel: from now on it will be uploaded and reported, whatever happens."""
        text = {
            "results": to_table(report.results),
            "found": to_table(report.found),
            "hosts": to_table(report.hosts),
            "size": report.size,
            "listed": to_table(report.listed),
        }
        publish(folder / REPORT_NAME, [json.dumps(text).encode()])
        return Parcel(folder)

    def remove(self, parcel: Parcel) -> None:
        """The parcel is uploaded and reported."""
        # First what makes it a parcel, so that a crash in between does not leave one without its bundles.
        (parcel.folder / REPORT_NAME).unlink(missing_ok=True)
        shutil.rmtree(parcel.folder, ignore_errors=True)

    def refuse(self, parcel: Parcel) -> Path:
        """Set a parcel aside that can never be delivered."""
        aside = self._folder / f"{parcel.job}.refused.{parcel.folder.name}"
        shutil.rmtree(aside, ignore_errors=True)
        parcel.folder.rename(aside)
        return aside

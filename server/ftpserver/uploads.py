"""Files while they are received. Each has a temporary file of its own, so that two sessions never share one."""

import hashlib
import itertools
import os
from dataclasses import dataclass
from pathlib import Path

from common.bundle import MANIFEST_SUFFIX, bundle_name, parse_bundle_name
from common.files import TEMPORARY_SUFFIX
from common.names import is_domain_name
from server.catalogue import FILE_NAME

MAX_PENDING = 16  # files that one session may have received and not yet renamed

_numbers = itertools.count()


class TooLong(Exception):
    """An upload is longer than is allowed."""


class NotNow(Exception):
    """No file can be received at the moment."""


@dataclass(frozen=True, slots=True)
class Place:
    """What a file that may be sent is: the bundle `name` of `domain`, or its manifest."""

    domain: str
    name: str
    is_manifest: bool = False

    @property
    def final_path(self) -> str:
        """The name that a client renames a bundle to."""
        return f"/{self.domain}/{self.name}"


def is_domain_folder(path: str) -> bool:
    """Whether a path of the FTP account is the folder of a domain."""
    domain = path.removeprefix("/")
    # The catalogue's files lie beside the folders, and their names could be those of domains.
    return is_domain_name(domain) and not domain.startswith(FILE_NAME)


def place_of(path: str) -> Place | None:
    """What may be sent to a path of the FTP account; None if nothing."""
    folder, _, file = path.rpartition("/")
    name = file.removesuffix(TEMPORARY_SUFFIX)
    bundle = name.removesuffix(MANIFEST_SUFFIX)
    parsed = parse_bundle_name(bundle)
    # A name that is written differently from ours would let the same bundle in twice.
    if name == file or not is_domain_folder(folder) or parsed is None or bundle_name(*parsed) != bundle:
        return None
    domain = folder.removeprefix("/")
    return Place(domain, bundle, is_manifest=name != bundle) if parsed[0] == domain else None


class Upload:
    """One file under way, in the shape of the file object that pyftpdlib writes to. Hashed as it comes."""

    def __init__(self, place: Place, path: Path, max_bytes: int) -> None:
        self.place = place
        self.path = path
        self.name = str(path)
        self.size = 0
        self._max_bytes = max_bytes
        self._hasher = hashlib.sha256()
        self._file = path.open("xb", buffering=0)  # unbuffered: a full disk shows in write, never in close

    def write(self, data: bytes) -> None:
        if self.size + len(data) > self._max_bytes:
            raise TooLong(f"longer than {self._max_bytes} bytes")
        rest = memoryview(data)
        while rest:
            rest = rest[self._file.write(rest) :]
        self._hasher.update(data)
        self.size += len(data)

    @property
    def sha256(self) -> str:
        return self._hasher.hexdigest()

    @property
    def closed(self) -> bool:
        return self._file.closed

    def close(self) -> None:
        self._file.close()

    def sync(self) -> None:
        """Have it on disk."""
        with self.path.open("rb") as file:
            os.fsync(file.fileno())

    def discard(self) -> None:
        """Drop it, unless it was moved away."""
        self.close()
        self.path.unlink(missing_ok=True)


class Uploads:
    """The files that one session has sent and not yet renamed. Used by the session's thread; owns the files."""

    def __init__(self, incoming: Path, max_bundle_bytes: int, max_manifest_bytes: int) -> None:
        self._incoming = incoming
        self._max_bundle_bytes = max_bundle_bytes
        self._max_manifest_bytes = max_manifest_bytes
        self._files: dict[Place, Upload] = {}

    def begin(self, place: Place) -> Upload:
        """A new file for `place`; what was sent there before is dropped."""
        self.drop(place)
        if len(self._files) >= MAX_PENDING:
            raise NotNow(f"{MAX_PENDING} files are waiting to be renamed")
        limit = self._max_manifest_bytes if place.is_manifest else self._max_bundle_bytes
        upload = Upload(place, self._incoming / f"{next(_numbers)}{TEMPORARY_SUFFIX}", limit)
        self._files[place] = upload
        return upload

    def complete(self, place: Place) -> Upload | None:
        """What was sent to `place`, if it has arrived to its end."""
        upload = self._files.get(place)
        return upload if upload is not None and upload.closed else None

    def drop(self, *places: Place) -> None:
        for place in places:
            if upload := self._files.pop(place, None):
                upload.discard()

    def drop_all(self) -> None:
        self.drop(*list(self._files))

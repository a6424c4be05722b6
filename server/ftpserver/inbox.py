"""Decides about a received bundle: stored, refused, or to be sent again. Knows files, not FTP.

It runs in the thread of the session, which may wait for the disk without holding up anybody else. The moment that
counts is the rename of the bundle: before it nothing is stored, after it everything is, also when the power goes.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Protocol

from common.bundle import Manifest, check_name, check_sizes, file_sha256, manifest_path, parse_head, parse_manifest
from common.bundle.checks import CLOCK_SECONDS
from common.errors import BundleError, PavoukError, UnsoundBundle
from common.files import sync_directory
from common.page import iso_time
from server.ftpserver.quarantine import Quarantine
from server.ftpserver.uploads import Place, Upload, Uploads
from server.ftpserver.waiting import WaitingManifests

MAX_MANIFEST_BYTES = 64_000_000  # compressed: more pages than one may list
LARGE_MANIFEST_BYTES = 32_000  # compressed; with its pages, a larger one can take more than 15 MB of memory

log = logging.getLogger(__name__)


class Refused(PavoukError):
    """The bundle is not wanted; sending it again changes nothing."""


class SendAgain(PavoukError):
    """The bundle did not arrive as it was sent, or cannot be stored right now."""


class ReceivedManifest(Protocol):
    """Of this session, or of an earlier one."""

    path: Path

    def sync(self) -> None:
        """Have it on disk."""


class Inbox:
    """Takes bundles into one directory. All sessions share it; the few things it keeps are guarded by a lock."""

    def __init__(
        self,
        directory: Path,
        incoming: Path,
        max_bundle_bytes: int,
        max_body_bytes: int,
        hand_over: Callable[[Path, Manifest], None],
    ) -> None:
        self._directory = directory
        self._incoming = incoming
        self._max_bundle_bytes = max_bundle_bytes
        self._max_body_bytes = max_body_bytes
        self._hand_over = hand_over
        self._large = threading.Lock()  # guards nothing: only one large manifest is in memory at a time
        self._quarantine = Quarantine(directory)
        self._waiting = WaitingManifests(directory)
        self._names: set[str] = set()  # of bundles that some session is storing at this moment
        self._names_lock = threading.Lock()  # guards the set only; no file is touched under it

    def uploads(self) -> Uploads:
        """For a new session: where it puts what it receives."""
        limit = min(MAX_MANIFEST_BYTES, self._max_bundle_bytes)
        return Uploads(self._incoming, self._max_bundle_bytes, limit)

    def keep(self, manifest: Upload) -> None:
        """A manifest has arrived. Its bundle may come in another session."""
        self._waiting.keep(manifest.place.name, manifest.path)

    def check_folder(self, domain: str) -> None:
        """Refused if something else is in the place of the folder of a domain."""
        folder = self._directory / domain
        if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
            raise Refused(f"{domain} is no folder here")

    def _make_folder(self, domain: str) -> None:
        self.check_folder(domain)
        folder = self._directory / domain
        if not folder.exists():
            folder.mkdir(exist_ok=True)
            sync_directory(self._directory)

    def accept(self, place: Place, bundle: Upload, sent: Upload | None) -> None:
        """Verify a bundle and store it, with the manifest that was `sent` in the same session or one that waits for it.

        Returns when it is safe on disk; raises Refused or SendAgain.
        """
        with self._alone(place.name):
            manifest = sent or self._waiting.find(place.name)
            with self._large if _is_large(manifest) else nullcontext():
                try:
                    proven = self._verify_and_store(place, bundle, manifest)
                except (Refused, SendAgain) as error:
                    log.warning("%s: %s", place.name, error)
                    self._set_aside(place, bundle, manifest)
                    raise
                self._waiting.drop(place.name)
                if proven is not None:
                    self._hand_over(self._path_of(place), proven)

    def _verify_and_store(self, place: Place, bundle: Upload, manifest: ReceivedManifest | None) -> Manifest | None:
        """None for one that came without a manifest, because it is stored already."""
        if manifest is None and self._has(place, bundle.sha256):
            return None
        if manifest is None:
            raise Refused(f"{place.name} came without its manifest, which must be sent first")
        proven = _verified(place, bundle, manifest, self._max_body_bytes)
        self._store(place, bundle, manifest, proven)
        return proven

    def _has(self, place: Place, sha256: str) -> bool:
        path = self._path_of(place)
        return path.is_file() and _stored_sha256(path) == sha256

    def _store(self, place: Place, bundle: Upload, manifest: ReceivedManifest, proven: Manifest) -> None:
        path = self._path_of(place)
        self._make_folder(place.domain)
        if path.is_symlink() or path.exists():
            if not self._has(place, proven.bundle_sha256):
                raise Refused("a different bundle of this name is stored already")
            log.info("%s is stored already", place.name)
            return
        manifest.sync()
        bundle.sync()
        manifest.path.rename(manifest_path(path))
        bundle.path.rename(path)
        sync_directory(path.parent)
        log.info("stored %s (%d pages, %d bytes)", place.name, len(proven.pages), bundle.size)

    def _path_of(self, place: Place) -> Path:
        return self._directory / place.domain / place.name

    @contextmanager
    def _alone(self, name: str) -> Iterator[None]:
        """Only one session at a time stores a bundle: one that hangs and the one that its client opened next."""
        with self._names_lock:
            if name in self._names:
                raise SendAgain("it is being stored by another session")
            self._names.add(name)
        try:
            yield
        finally:
            with self._names_lock:
                self._names.remove(name)

    def _set_aside(self, place: Place, bundle: Upload, manifest: ReceivedManifest | None) -> None:
        self._quarantine.take(place.name, bundle.path)
        if manifest is not None:
            self._quarantine.take(manifest_path(Path(place.name)).name, manifest.path)
        self._waiting.drop(place.name)


def _is_large(manifest: ReceivedManifest | None) -> bool:
    return manifest is not None and manifest.path.stat().st_size > LARGE_MANIFEST_BYTES


def _verified(place: Place, bundle: Upload, manifest: ReceivedManifest, max_body_bytes: int) -> Manifest:
    """What did not arrive whole may be whole the next time; what is whole and cannot be true is not wanted."""
    try:
        proven = parse_manifest(manifest.path.read_bytes())
        if (bundle.size, bundle.sha256) != (proven.bundle_size, proven.bundle_sha256):
            raise SendAgain(f"{bundle.size} bytes arrived that are not the {proven.bundle_size} bytes of the manifest")
        check_name(place.name, proven)
        check_sizes(proven, bundle.size, max_body_bytes)
    except UnsoundBundle as error:
        raise Refused(str(error)) from error
    except BundleError as error:
        raise SendAgain(str(error)) from error
    if proven.created > time.time() + CLOCK_SECONDS:  # it would be the newest for as long
        raise Refused(f"it is from the future ({iso_time(proven.created)}): the worker's clock is wrong, or ours")
    return proven


def _stored_sha256(path: Path) -> str:
    try:
        return parse_head(manifest_path(path).read_bytes()).bundle_sha256
    except (OSError, BundleError):
        return file_sha256(path)

"""Manifests whose bundle has not come yet: it may come in another session, also after a restart of ftpServer."""

import contextlib
import logging
import os
import threading
from pathlib import Path

from common.bundle import MANIFEST_SUFFIX

FOLDER = ".manifests"
MAX_FILES = 1000
MAX_BYTES = 256_000_000

log = logging.getLogger(__name__)


class WaitingManifest:
    """One of them, in the shape of an upload."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def sync(self) -> None:
        """Have it on disk."""
        with self.path.open("rb") as file:
            os.fsync(file.fileno())


class WaitingManifests:
    """A folder with one for each name of a bundle, the last that came; drops the oldest. Any thread may call it."""

    def __init__(self, directory: Path, max_files: int = MAX_FILES, max_bytes: int = MAX_BYTES) -> None:
        self._folder = directory / FOLDER
        self._max_files = max_files
        self._max_bytes = max_bytes
        self._folder.mkdir(mode=0o700, exist_ok=True)
        files = sorted(self._folder.iterdir(), key=lambda file: file.stat().st_mtime)
        self._sizes = {file.name: file.stat().st_size for file in files}  # the oldest first
        self._lock = threading.Lock()  # guards the dictionary and the names in the folder, which must agree

    def keep(self, bundle_name: str, path: Path) -> None:
        """Keep what was received under a second name, so that the session that sent it can end."""
        name = bundle_name + MANIFEST_SUFFIX
        with self._lock:
            self._forget(name)
            try:
                os.link(path, self._folder / name)
            except OSError as error:  # the session itself still has it
                log.warning("%s cannot be kept for other sessions: %s", name, error)
                return
            self._sizes[name] = path.stat().st_size
            while len(self._sizes) > self._max_files or sum(self._sizes.values()) > self._max_bytes:
                self._forget(next(iter(self._sizes)))

    def find(self, bundle_name: str) -> WaitingManifest | None:
        """The one of a bundle."""
        name = bundle_name + MANIFEST_SUFFIX
        with self._lock:
            return WaitingManifest(self._folder / name) if name in self._sizes else None

    def drop(self, bundle_name: str) -> None:
        """The bundle has come, for good or ill."""
        with self._lock:
            self._forget(bundle_name + MANIFEST_SUFFIX)

    def _forget(self, name: str) -> None:
        if self._sizes.pop(name, None) is not None:
            with contextlib.suppress(FileNotFoundError):  # it was moved away with its bundle
                (self._folder / name).unlink()

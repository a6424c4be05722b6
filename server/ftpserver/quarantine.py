"""Keeps the latest bundles that were not what their manifest says, for a person to look at. Nothing reads it."""

import threading
from datetime import UTC, datetime
from pathlib import Path

FOLDER = ".quarantine"
MAX_FILES = 100
MAX_BYTES = 1_000_000_000


class Quarantine:
    """A folder that drops its oldest files when it grows too large. Any thread may call it."""

    def __init__(self, directory: Path, max_files: int = MAX_FILES, max_bytes: int = MAX_BYTES) -> None:
        self._folder = directory / FOLDER
        self._max_files = max_files
        self._max_bytes = max_bytes
        self._trimming = threading.Lock()  # guards the deleting: two threads would count each other's files

    def take(self, name: str, path: Path) -> None:
        """Move a file here. The time in front of its name says when, and gives the order."""
        self._folder.mkdir(exist_ok=True)
        time = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
        path.rename(self._folder / f"{time[:-4]}-{path.stem}-{name}"[:255])
        self._trim()

    def _trim(self) -> None:
        with self._trimming:
            files = sorted(self._folder.iterdir())
            sizes = [file.stat().st_size for file in files]
            while len(files) > self._max_files or sum(sizes) > self._max_bytes:
                files.pop(0).unlink()
                sizes.pop(0)

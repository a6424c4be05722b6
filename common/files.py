"""Publish a file completely or not at all, also when the power goes."""

import os
from collections.abc import Iterable
from pathlib import Path

TEMPORARY_SUFFIX = ".part"


def sync_directory(folder: Path) -> None:
    """Make renames and new names in `folder` survive a power loss."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def publish(path: Path, chunks: Iterable[bytes]) -> None:
    """Write `chunks` to `path` by way of a temporary name; readers see the old file or the whole new one."""
    temporary = path.with_name(path.name + TEMPORARY_SUFFIX)
    with temporary.open("wb") as file:
        for chunk in chunks:
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    sync_directory(path.parent)

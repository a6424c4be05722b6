"""Publish a file completely or not at all, also when the power goes; keep to ourselves what others must not read."""

import logging
import os
import secrets
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO

from common.errors import ConfigError

TEMPORARY_SUFFIX = ".part"
PRIVATE_UMASK = 0o077
_OTHERS = 0o077  # all that group and others could be allowed
_log = logging.getLogger(__name__)


def sync_directory(folder: Path) -> None:
    """Make renames and new names in `folder` survive a power loss."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def publish(path: Path, chunks: Iterable[bytes], is_private: bool = False) -> None:
    """Write `chunks` to `path` by way of a temporary name; readers see the old file or the whole new one. `is_private`:
    only its owner can read it, whatever the umask."""
    temporary = path.with_name(path.name + TEMPORARY_SUFFIX)
    with open_private(temporary, "wb") if is_private else temporary.open("wb") as file:
        for chunk in chunks:
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    sync_directory(path.parent)


def keep_private() -> None:
    """What this process makes from now on is for its owner only; so is what the libraries make that it uses."""
    os.umask(PRIVATE_UMASK)


def refuse_strangers(path: Path) -> None:
    """ConfigError for what another user of the machine has put into a folder where everybody may write: it would decide
    what we run, and its links where we write. Root and the owner of the folder can do that anyway."""
    path = path.absolute()
    if not os.path.lexists(path):
        return
    folder, owner = path.parent.stat(), path.lstat().st_uid
    if folder.st_mode & stat.S_IWOTH and owner not in (os.geteuid(), 0, folder.st_uid):
        where = f"{path.parent} is a folder where everybody may write"
        raise ConfigError(f"{path} belongs to another user, and {where}: choose another folder")


def trusted(folder: Path, name: str) -> Path:
    """The file or folder that a setting names, relative to the work folder; ConfigError if a stranger has put it there,
    or a folder on the way to it."""
    path = (folder / name).absolute()
    for each in (*reversed(path.parents), path):
        refuse_strangers(each)
    return path


def private_folder(folder: Path) -> None:
    """A folder into which only its owner can look, whatever the umask; one of an earlier run is closed to others. It
    protects also those files in it that were made with other modes."""
    folder.mkdir(stat.S_IRWXU, parents=True, exist_ok=True)
    refuse_strangers(folder)
    mode = stat.S_IMODE(folder.stat().st_mode)
    wanted = stat.S_IRWXU | (mode & ~_OTHERS)
    if mode == wanted:
        return
    try:
        folder.chmod(wanted)
    except PermissionError:
        _log.warning("other users of this machine can look into %s, which is not yours: chmod 700 %s", folder, folder)


def open_private(path: Path, mode: str) -> IO[bytes]:
    """A file that only its owner can read, whatever the umask; one that is there already is closed to others."""
    file: IO[bytes] = open(path, mode, opener=lambda name, flags: os.open(name, flags, 0o600))  # noqa: SIM115
    with suppress(PermissionError):
        os.fchmod(file.fileno(), 0o600)
    return file


def publish_new(path: Path, content: bytes) -> bool:
    """Make a private file, whole from its first moment, unless it is there: of all who try, one has made it."""
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(8)}{TEMPORARY_SUFFIX}")
    try:
        with open_private(temporary, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.link(temporary, path)
    except FileExistsError:
        return False
    finally:
        temporary.unlink(missing_ok=True)
    sync_directory(path.parent)
    return True


def is_open_to_others(path: Path) -> bool:
    """Whether other users can read a file; what is no plain file (a pipe, say) nobody else reads."""
    try:
        known = path.stat()
    except OSError:
        return False
    return stat.S_ISREG(known.st_mode) and bool(known.st_mode & (stat.S_IRGRP | stat.S_IROTH))

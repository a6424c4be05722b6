"""What RocksDB cannot tell: how far its log must reach. The end of a log that was cut looks like one that was never
written, so what has been promised is noted beside it, in the file PROMISED of the same folder.

A note is one small write into the system's cache: it survives the end of this process at any moment and costs no wait
for the disk. After a power loss it may be older than the log, or (durability = normal) newer; so it also says which
run of the machine it is of.
"""

import logging
import os
import struct
import threading
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from common.files import publish, sync_directory

FILE_NAME = "PROMISED"
_RECOVERING_NAME = "RECOVERING"  # what was promised before a recovery, as long as that is not finished
_REACH = struct.Struct("<Q16sI")  # sequence number, run of the machine, checksum of both
_WRITTEN, _SYNCED, _LOGS = 0, 64, 512  # where the three notes stand
_SIZE = 4_096  # allocated at once, so that a note needs no room on a full disk
_LOG = struct.Struct("<QQ")  # number of a log file, size
_MAX_LOGS = (_SIZE - _LOGS - 16) // _LOG.size
_LOG_SUFFIX = ".log"
_BOOT_FILE = Path("/proc/sys/kernel/random/boot_id")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Promise:
    """In RocksDB's sequence numbers, which count changes of rows."""

    surely: int = 0  # what is on disk, or was written since this machine was started
    perhaps: int = 0  # what was written when the machine went down: its power may have failed
    first_log: int = 0  # number of the first log file that was needed: what is before that is in the tables
    logs: Mapping[int, int] = field(default_factory=dict)  # the log files, and the least size of each

    def lost_logs(self, folder: Path, first_log: int) -> str:
        """What has become of a log file that is needed, now that the database says which is the first; empty if all
        are as they should be."""
        sizes = _log_sizes(folder)
        for number, size in sorted(self.logs.items()):
            if number >= first_log and sizes.get(number, -1) < size:
                is_there = f"has {sizes[number]} of {size} bytes" if number in sizes else "is gone"
                return f"{number:06d}{_LOG_SUFFIX} {is_there}"
        return ""


def promise_in(folder: Path) -> Promise | None:
    """What was promised of the database in this folder; None if nothing tells, as in one of an older version."""
    name = _RECOVERING_NAME if is_recovering(folder) else FILE_NAME
    try:
        data = (folder / name).read_bytes()
    except FileNotFoundError:
        return None
    written, synced, logs = _reach(data, _WRITTEN), _reach(data, _SYNCED), _logs(data)
    if written is None or synced is None or logs is None:
        _log.warning("%s is damaged: nothing tells whether the frontier's log is complete", folder / FILE_NAME)
        return None
    if written[1] == _run() != b"":
        return Promise(max(written[0], synced[0]), 0, *logs)
    return Promise(synced[0], written[0], *logs)


def is_recovering(folder: Path) -> bool:
    """Whether a recovery was begun and not finished: then the frontier may look sound, and is not."""
    return (folder / _RECOVERING_NAME).exists()


def begin_recovery(folder: Path) -> None:
    """Keep what was promised; opening the frontier promises what is left."""
    if not is_recovering(folder):
        promised = folder / FILE_NAME
        publish(folder / _RECOVERING_NAME, [promised.read_bytes() if promised.exists() else b""])


def end_recovery(folder: Path) -> None:
    (folder / _RECOVERING_NAME).unlink(missing_ok=True)
    sync_directory(folder)


class Notes:
    """The file, open for what is promised from now on. One thread notes what is written, any what is synced, also late:
    what is noted after another has noted more, or has closed it, changes nothing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = os.open(folder / FILE_NAME, os.O_RDWR | os.O_CREAT, 0o600)
        self._run = _run()
        self._changed_at = -1
        self._synced = self._newest_log = 0
        self._lock = threading.Lock()  # guards the file: its number is another file's once it is closed
        if os.fstat(self._file).st_size != _SIZE:
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, bytes(_SIZE), 0)

    def begin(self, reach: int, first_log: int) -> None:
        """Everything up to `reach` is there, and nothing else was promised."""
        self.written(reach)
        self.synced(reach)
        self.logs(first_log, self.changed_logs() or {})

    def written(self, reach: int) -> None:
        with self._lock:
            self._note(_WRITTEN, reach)

    def synced(self, reach: int) -> None:
        with self._lock:
            self._synced = max(reach, self._synced)
            self._note(_SYNCED, self._synced)

    def logs(self, first_log: int, logs: Mapping[int, int]) -> None:
        """They are on disk as `changed_logs` has told, from `first_log` on they are needed."""
        newest_first = sorted(logs.items(), reverse=True)[:_MAX_LOGS]
        packed = struct.pack("<IQ", len(newest_first), first_log) + b"".join(_LOG.pack(*each) for each in newest_first)
        with self._lock:
            if max(logs, default=0) >= self._newest_log:
                self._newest_log = max(logs, default=0)
                self._put(_LOGS, zlib.crc32(packed).to_bytes(4, "little") + packed)

    def changed_logs(self) -> Mapping[int, int] | None:
        """The log files and their sizes; the size of the newest is not known before it is finished. None if there
        has been no other file in the folder since the last call."""
        try:
            changed_at = self._folder.stat().st_mtime_ns
            if changed_at == self._changed_at:
                return None
            self._changed_at, sizes = changed_at, _log_sizes(self._folder)
        except OSError:  # RocksDB will tell what is wrong with it
            return None
        return {**sizes, max(sizes): 0} if sizes else {}

    def close(self) -> None:
        with self._lock:
            os.close(self._file)
            self._file = -1

    def _note(self, where: int, reach: int) -> None:
        packed = _REACH.pack(reach, self._run, 0)[:-4]
        self._put(where, packed + zlib.crc32(packed).to_bytes(4, "little"))

    def _put(self, where: int, data: bytes) -> None:
        if self._file < 0:
            return
        try:
            os.pwrite(self._file, data, where)
        except OSError as error:  # an older note promises less: what it speaks of is done all the same
            _log.warning("%s cannot be written: %s", FILE_NAME, error.strerror)


def _reach(data: bytes, where: int) -> tuple[int, bytes] | None:
    packed = data[where : where + _REACH.size]
    if not any(packed):
        return (0, b"") if len(packed) == _REACH.size else None
    if len(packed) < _REACH.size or zlib.crc32(packed[:-4]) != int.from_bytes(packed[-4:], "little"):
        return None
    number, run, _ = _REACH.unpack(packed)
    return number, run


def _logs(data: bytes) -> tuple[int, dict[int, int]] | None:
    if len(data) != _SIZE:
        return None
    if not any(data[_LOGS:]):
        return 0, {}
    count, first_log = struct.unpack_from("<IQ", data, _LOGS + 4)
    end = _LOGS + 16 + count * _LOG.size
    if end > _SIZE or zlib.crc32(data[_LOGS + 4 : end]).to_bytes(4, "little") != data[_LOGS : _LOGS + 4]:
        return None
    return first_log, dict(_LOG.iter_unpack(data[_LOGS + 16 : end]))


def _log_sizes(folder: Path) -> dict[int, int]:
    sizes = {}
    with os.scandir(folder) as entries:
        for entry in entries:
            name = entry.name.removesuffix(_LOG_SUFFIX)
            if name != entry.name and name.isdecimal():
                try:
                    sizes[int(name)] = entry.stat().st_size
                except FileNotFoundError:  # RocksDB has just found that it is not needed any more
                    continue
    return sizes


def _run() -> bytes:
    """Which run of the machine this is; empty where the system does not tell."""
    try:
        return bytes.fromhex(_BOOT_FILE.read_text().strip().replace("-", ""))
    except (OSError, ValueError):
        return b""

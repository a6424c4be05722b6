"""One clientCrawler per work folder: a locked pid file, and becoming a daemon. The only importer of python-daemon."""

import contextlib
import fcntl
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

import daemon

from common.files import PRIVATE_UMASK

_POLL_SECONDS = 0.1
_GRACE_SECONDS = 0.5  # who only looks whether the lock is free holds it for a moment, too
_READY = b"ready"


class AlreadyRunning(Exception):
    """Another clientCrawler works in this folder."""


class PidFile:
    """A file with our process id, locked as long as we live: a kill -9 leaves no false trace."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle: int | None = None

    def acquire(self) -> None:
        """Take the lock. It stays with the daemon when this process forks."""
        handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        deadline = time.monotonic() + _GRACE_SECONDS
        while not _locked(handle):
            if time.monotonic() > deadline:
                os.close(handle)
                raise AlreadyRunning(f"clientCrawler is already running (pid {self._read() or 'not known yet'})")
            time.sleep(_POLL_SECONDS)
        os.ftruncate(handle, 0)  # of one that was killed: nobody may take that number for ours
        self._handle = handle

    @property
    def handle(self) -> int:
        assert self._handle is not None
        return self._handle

    def write_pid(self) -> None:
        os.ftruncate(self.handle, 0)
        os.pwrite(self.handle, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Say that we have ended properly."""
        os.ftruncate(self.handle, 0)
        self.leave()

    def leave(self) -> None:
        """Let go without a word; the lock is free when nobody else who inherited it has it."""
        os.close(self.handle)
        self._handle = None

    def running_pid(self) -> int | None:
        """The process that holds the lock, 0 if it has not written its number yet; None if nobody does."""
        try:
            handle = os.open(self._path, os.O_RDWR)
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            return None if _locked(handle) else self._read()
        finally:
            os.close(handle)

    def left_behind(self) -> bool:
        """Whether the last one ended without saying so."""
        return self.running_pid() is None and self._read() != 0

    def stop_running(self, timeout_seconds: float) -> bool:
        """Send SIGTERM and wait until the lock is free and the process is gone; False if it still is not."""
        deadline = time.monotonic() + timeout_seconds
        told: dict[int, _Process] = {}
        with contextlib.ExitStack() as held:
            while (pid := self.running_pid()) is not None:
                if time.monotonic() > deadline:
                    return False
                if pid not in (0, *told):  # 0 would be all processes of our group
                    with contextlib.suppress(ProcessLookupError):
                        told[pid] = held.enter_context(_Process(pid))
                        told[pid].terminate()
                time.sleep(_POLL_SECONDS)  # a lock of another process cannot be waited for with a limit
            # The lock goes first, Python's own end takes a moment more.
            return all(process.is_gone_by(deadline) for process in told.values())

    def _read(self) -> int:
        try:
            return max(0, int(self._path.read_text() or 0))
        except (OSError, ValueError):
            return 0


class _Process:
    """One process, by a handle that never means another one, even when its number is given out again."""

    def __init__(self, pid: int) -> None:
        self._handle = os.pidfd_open(pid)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._handle)

    def terminate(self) -> None:
        signal.pidfd_send_signal(self._handle, signal.SIGTERM)

    def is_gone_by(self, deadline: float) -> bool:
        seconds = max(0.0, deadline - time.monotonic())
        return bool(select.select([self._handle], [], [], seconds)[0])


def _locked(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def started(pid_file: PidFile, folder: Path, work: Callable[[Callable[[], None]], int]) -> bool:
    """Run `work` in a daemon. Returns as soon as `work` has called what it is given (True) or has ended (False)."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        sys.exit(_run_detached(pid_file, folder, writer, work))
    os.close(writer)
    pid_file.leave()
    os.waitpid(child, 0)  # it ends at once: the daemon is its grandchild
    with os.fdopen(reader, "rb") as pipe:
        return pipe.read() == _READY


def _run_detached(pid_file: PidFile, folder: Path, writer: int, work: Callable[[Callable[[], None]], int]) -> int:
    def ready() -> None:
        pid_file.write_pid()
        os.write(writer, _READY)
        os.close(writer)

    context = daemon.DaemonContext(
        working_directory=str(folder),
        files_preserve=[pid_file.handle, writer],
        umask=PRIVATE_UMASK,
        detach_process=True,  # left to itself, python-daemon stays when our parent is process 1, as in a container
        # Handled by the command itself, the same way as in the foreground.
        signal_map={signal.SIGTTIN: None, signal.SIGTTOU: None, signal.SIGTSTP: None},
    )
    with context:
        return work(ready)

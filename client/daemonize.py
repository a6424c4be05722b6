"""One clientCrawler per work folder: a locked pid file, and becoming a daemon. The only importer of python-daemon."""

import errno
import fcntl
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import daemon

_POLL_SECONDS = 0.1


class AlreadyRunning(Exception):
    """Another clientCrawler works in this folder."""


class PidFile:
    """A file with our process id, locked as long as we live: a kill -9 leaves no false trace."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle: int | None = None

    def acquire(self) -> None:
        """Take the lock. It stays with the daemon when this process forks."""
        handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(handle)
            if error.errno in (errno.EAGAIN, errno.EACCES):
                raise AlreadyRunning(f"clientCrawler is already running (pid {self._read()})") from error
            raise
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
        os.close(self.handle)
        self._handle = None

    def running_pid(self) -> int | None:
        """The process that holds the lock; None if nobody does."""
        try:
            handle = os.open(self._path, os.O_RDWR)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return self._read()
        finally:
            os.close(handle)
        return None

    def left_behind(self) -> bool:
        """Whether the last one ended without saying so."""
        return self.running_pid() is None and self._read() != 0

    def stop_running(self, pid: int, timeout_seconds: float) -> bool:
        """Send SIGTERM and wait until the lock is free; False if it still is not."""
        os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + timeout_seconds
        while self.running_pid() is not None:
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_SECONDS)  # a lock of another process cannot be waited for with a limit
        return True

    def _read(self) -> int:
        try:
            return int(self._path.read_text() or 0)
        except (OSError, ValueError):
            return 0


@contextmanager
def detached(pid_file: PidFile, folder: Path) -> Iterator[None]:
    """Go on as a daemon. The process that called ends with exit code 0; the block runs in the daemon."""
    context = daemon.DaemonContext(
        working_directory=str(folder),
        files_preserve=[pid_file.handle],
        umask=0o022,
        # Handled by the command itself, the same way as in the foreground.
        signal_map={signal.SIGTTIN: None, signal.SIGTTOU: None, signal.SIGTSTP: None},
    )
    with context:
        yield

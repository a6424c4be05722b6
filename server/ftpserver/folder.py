"""Pages/ belongs to one ftpServer at a time, and begins without the remains of the last one."""

import fcntl
import os
import shutil
from pathlib import Path

from common.errors import ConfigError
from common.files import refuse_strangers

INCOMING = ".incoming"  # uploads under way; within Pages/, so that a rename is all it takes to store them
LOCK = ".lock"


class PagesFolder:
    """The directory, locked until `close` or the end of the process, however that comes."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.incoming = directory / INCOMING
        try:
            directory.mkdir(parents=True, exist_ok=True)
            refuse_strangers(directory)
            self._lock = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise ConfigError(f"directory = {directory} cannot be used: {error.strerror}") from error
        self._take()

    def _take(self) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # No session can go on with what an earlier process received: its digest is lost.
            shutil.rmtree(self.incoming, ignore_errors=True)
            self.incoming.mkdir(exist_ok=True)
        except BlockingIOError as error:
            self.close()
            raise ConfigError(f"directory = {self.directory} is in use by another ftpServer; stop it first") from error
        except OSError as error:
            self.close()
            raise ConfigError(f"directory = {self.directory} cannot be used: {error.strerror}") from error

    def close(self) -> None:
        os.close(self._lock)

"""The body of a request while it arrives: in memory, and on the disk if it is large. The disk may be full."""

from contextlib import suppress
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import BinaryIO, cast


class Body:
    """Takes pieces, and is read when all are there. Used by one thread at a time; who makes it closes it."""

    def __init__(self, in_memory: int, folder: Path) -> None:
        self._file = SpooledTemporaryFile[bytes](in_memory, dir=str(folder))
        self.trouble: OSError | None = None  # why it cannot be kept; what comes then is dropped

    def take(self, data: bytes) -> None:
        if self.trouble is None:
            try:
                self._file.write(data)
            except OSError as error:
                self.trouble = error

    def complete(self) -> BinaryIO:
        """All is there: to be read from the start, if there was no trouble."""
        if self.trouble is None:
            try:
                self._file.seek(0)  # writes what is left
            except OSError as error:
                self.trouble = error
        return cast(BinaryIO, self._file)

    def close(self) -> None:
        with suppress(OSError):  # what could not be written before cannot be written now
            self._file.close()

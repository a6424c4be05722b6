"""What the frontier needs of a store: ordered tables of bytes, atomic batches, and a promise of durability."""

from collections.abc import Iterator, Sequence
from enum import IntEnum
from pathlib import Path
from typing import Protocol


class Table(IntEnum):
    """The tables. Keys are ordered as bytes, so numbers in keys are big-endian."""

    URLS = 0  # key of the URL -> UrlState
    QUEUE = 1  # place -> Entry
    WAITING = 2  # due time, place -> Entry; URLs to be tried again later
    JOBS = 3  # job -> JobRecord
    TASKS = 4  # job -> its unfinished tasks
    HOSTS = 5  # number of the host -> Host
    NAMES = 6  # name of the host -> number
    ACTIVE = 7  # number of a host that has something queued or leased -> nothing
    FAILED = 8  # key of the URL -> FailedRecord
    META = 9  # name -> totals, next numbers, what an operator has set, format version
    VISITS = 10  # key of the URL -> Visit; pages that are visited again
    DUE = 11  # due time, key of the URL -> nothing; when those that are done are visited again
    AGAIN = 12  # place -> Entry; pages whose time has come, apart from what was never visited
    CLAIMS = 13  # job, what it did, a page -> more pages; what each job has stored, or gave back without a word


Write = tuple[Table, bytes, bytes | None]  # None deletes


class Store(Protocol):
    """Used by several threads; the caller orders writes."""

    def get(self, table: Table, key: bytes) -> bytes | None:
        """The value, or None."""

    def get_many(self, table: Table, keys: Sequence[bytes]) -> Sequence[bytes | None]:
        """The values in the order of the keys."""

    def scan(self, table: Table, start: bytes = b"", end: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        """Keys from `start` up to but without `end`, in order."""

    def write(self, writes: Sequence[Write]) -> None:
        """All of it or nothing, in the order of the calls. Survives the end of this process."""

    def sync(self) -> None:
        """Everything written before this call survives a power loss."""

    def copy_to(self, folder: Path) -> None:
        """A copy of this moment, cheap, while others go on writing."""

    def close(self) -> None:
        """Give the files back."""


class StoreError(Exception):
    """The store cannot read or write: disk full, damaged, in use by another process."""


class DamagedStore(StoreError):
    """Something of it is gone or cannot be read, and will not be there at the next try."""


class LostChanges(DamagedStore):
    """All that is there can be read, and something that was promised is not there."""

"""What the frontier needs of a store: ordered tables of bytes, atomic batches, and a promise of durability."""

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Protocol


class Table(Enum):
    """The tables. Keys are ordered as bytes, so numbers in keys are big-endian."""

    URLS = "urls"  # digest -> UrlState
    QUEUE = "queue"  # host, place -> Entry
    WAITING = "waiting"  # due time, digest -> host, place, Entry; URLs to be tried again later
    LEASED = "leased"  # job, digest -> host, place, Entry
    JOBS = "jobs"  # job -> JobRecord
    HOSTS = "hosts"  # host -> HostRecord
    FAILED = "failed"  # digest -> FailedRecord
    META = "meta"  # name -> totals, next job number, format version


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

    def close(self) -> None:
        """Give the files back."""


class StoreError(Exception):
    """The store cannot read or write: disk full, damaged, in use by another process."""

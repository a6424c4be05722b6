"""A second store, in memory: shows that the frontier needs nothing of RocksDB, and makes long random runs quick.

Stores of one folder share their tables within this process, so that a frontier can be closed and opened again.
"""

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from pathlib import Path

from server.frontier.store import Table, Write


class _Rows:
    """One table: a dict, and its keys in order."""

    def __init__(self) -> None:
        self.values: dict[bytes, bytes] = {}
        self.keys: list[bytes] = []

    def change(self, key: bytes, value: bytes | None) -> None:
        if value is None:
            if self.values.pop(key, None) is not None:
                del self.keys[bisect_left(self.keys, key)]
        else:
            if key not in self.values:
                insort(self.keys, key)
            self.values[key] = value


_folders: dict[Path, dict[Table, _Rows]] = {}


class MemoryStore:
    """Survives `close`, not the process. One thread may write while others read."""

    def __init__(self, folder: Path) -> None:
        self._tables = _folders.setdefault(folder, {table: _Rows() for table in Table})

    def get(self, table: Table, key: bytes) -> bytes | None:
        return self._tables[table].values.get(key)

    def get_many(self, table: Table, keys: Sequence[bytes]) -> Sequence[bytes | None]:
        values = self._tables[table].values
        return [values.get(key) for key in keys]

    def scan(self, table: Table, start: bytes = b"", end: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        """Looks the next key up each time, so that writes on the way do no harm."""
        rows, key = self._tables[table], start
        while (position := bisect_left(rows.keys, key)) < len(rows.keys):
            key = rows.keys[position]
            if end is not None and key >= end:
                return
            yield key, rows.values[key]
            key += b"\0"  # the least key behind it

    def write(self, writes: Sequence[Write]) -> None:
        for table, key, value in writes:
            self._tables[table].change(key, value)

    def sync(self) -> None:
        pass

    def copy_to(self, folder: Path) -> None:
        self.__class__(folder).write(
            [(table, key, value) for table, rows in self._tables.items() for key, value in rows.values.items()]
        )

    def close(self) -> None:
        pass

    @staticmethod
    def forget(folder: Path) -> None:
        """Give the memory of a folder back."""
        _folders.pop(folder, None)

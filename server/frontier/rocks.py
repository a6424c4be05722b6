"""The store on RocksDB, the only module that knows it. A table is a column family; one log makes batches atomic."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rocksdict import (
    BlockBasedOptions,
    Cache,
    DBCompressionType,
    Options,
    Rdict,
    WriteBatch,
    WriteOptions,
)

from server.frontier.store import StoreError, Table, Write

_CACHE_BYTES = 64 << 20
_WRITE_BUFFER_BYTES = 16 << 20  # per table; small, because memory must not grow with the crawl
_MAX_LOG_BYTES = 128 << 20  # of the write-ahead log: bounds the time that a restart takes
_BLOOM_BITS = 10


class RocksStore:
    """A folder with a RocksDB database. Only one process can have it open."""

    def __init__(self, folder: Path) -> None:
        cache = Cache(_CACHE_BYTES)
        options = _options(cache)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            existing = set(Rdict.list_cf(str(folder), options)) if (folder / "CURRENT").exists() else set()
            self._db = Rdict(
                str(folder), options, {name: _options(cache) for name in existing - {"default"}} or None
            )
            for table in Table:
                if table.value not in existing:
                    self._db.create_column_family(table.value, _options(cache))
        except Exception as error:  # rocksdict raises plain Exception for everything
            raise StoreError(_explained(folder, error)) from error
        self._tables = {table: self._db.get_column_family(table.value) for table in Table}
        self._handles = {table: self._db.get_column_family_handle(table.value) for table in Table}
        self._write_options = WriteOptions()

    def get(self, table: Table, key: bytes) -> bytes | None:
        try:
            value: bytes | None = self._tables[table].get(key)
        except Exception as error:  # rocksdict raises plain Exception for everything
            raise StoreError(f"the frontier cannot be read: {error}") from error
        return value

    def get_many(self, table: Table, keys: Sequence[bytes]) -> Sequence[bytes | None]:
        try:
            values: Any = self._tables[table].get(list(keys)) if keys else []
        except Exception as error:  # rocksdict raises plain Exception for everything
            raise StoreError(f"the frontier cannot be read: {error}") from error
        return list(values)

    def scan(self, table: Table, start: bytes = b"", end: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        rows = self._tables[table].iter()
        rows.seek(start)
        while rows.valid():
            key = rows.key()
            if end is not None and key >= end:
                return
            yield key, rows.value()
            rows.next()

    def write(self, writes: Sequence[Write]) -> None:
        batch = WriteBatch(raw_mode=True)
        for table, key, value in writes:
            if value is None:
                batch.delete(key, self._handles[table])
            else:
                batch.put(key, value, self._handles[table])
        try:
            self._db.write(batch, self._write_options)
        except Exception as error:  # rocksdict raises plain Exception for everything
            raise StoreError(f"the frontier cannot be written: {error}") from error

    def sync(self) -> None:
        try:
            self._db.flush_wal(sync=True)
        except Exception as error:  # rocksdict raises plain Exception for everything
            raise StoreError(f"the frontier cannot be written: {error}") from error

    def close(self) -> None:
        self._handles.clear()
        for table in self._tables.values():
            table.close()
        self._db.close()


def _options(cache: Cache) -> Options:
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    options.set_write_buffer_size(_WRITE_BUFFER_BYTES)
    options.set_max_total_wal_size(_MAX_LOG_BYTES)
    options.set_max_background_jobs(2)
    options.set_keep_log_file_num(2)
    options.set_compression_type(DBCompressionType.lz4())
    options.set_bottommost_compression_type(DBCompressionType.zstd())
    options.set_level_compaction_dynamic_level_bytes(True)
    blocks = BlockBasedOptions()
    blocks.set_block_cache(cache)
    blocks.set_bloom_filter(_BLOOM_BITS, block_based=False)
    blocks.set_cache_index_and_filter_blocks(True)
    options.set_block_based_table_factory(blocks)
    return options


def _explained(folder: Path, error: Exception) -> str:
    if "while lock file" in str(error).lower():
        return f"{folder} is in use by another urlServer; stop that one first"
    return f"{folder} cannot be opened as a frontier: {error}"

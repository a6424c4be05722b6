"""The store on RocksDB, the only module that knows it. A table is a column family; one log makes batches atomic."""

import logging
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from rocksdict import (
    AccessType,
    BlockBasedOptions,
    Cache,
    Checkpoint,
    DBCompressionType,
    Options,
    Rdict,
    WriteBatch,
    WriteOptions,
)

from server.frontier.store import StoreError, Table, Write

_CACHE_BYTES = 8 << 20  # of blocks; look-ups are at random, so a larger one would not hit more, and the system has one
_WRITE_BUFFERS_BYTES = 16 << 20  # of all tables together: memory must not grow with the crawl
_WRITE_BUFFER_BYTES = 8 << 20
_MAX_LOG_BYTES = 128 << 20  # of the write-ahead log: bounds the time that a restart takes
_LEAST_ROOM_BYTES = 1 << 20  # with less on the disk there is no use in opening it again after a failed write
_BLOOM_BITS = 10  # per key, in memory: one look-up in a hundred for an unknown key goes to the disk

_log = logging.getLogger(__name__)


class RocksStore:
    """A folder with a RocksDB database. Only one process can have it open, unless it only reads."""

    def __init__(self, folder: Path, read_only: bool = False) -> None:
        self._folder = folder
        self._is_broken = False  # a write has failed
        self._write_options = WriteOptions()
        self._open(read_only)

    def _open(self, read_only: bool) -> None:
        cache = Cache(_CACHE_BYTES)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._db = self._opened(cache, read_only)
        except Exception as error:  # rocksdict raises plain Exception for everything
            raise StoreError(_explained(self._folder, error)) from error
        self._tables = [self._db.get_column_family(_name(table)) for table in Table]
        self._handles = [self._db.get_column_family_handle(_name(table)) for table in Table]

    def _opened(self, cache: Cache, read_only: bool) -> Rdict:
        folder, base = str(self._folder), _options(cache)
        existing = set(Rdict.list_cf(folder, base)) if (self._folder / "CURRENT").exists() else set()
        access = AccessType.read_only(False) if read_only else AccessType.read_write()
        known = {_name(table): _options(cache, table) for table in Table if _name(table) in existing}
        db = Rdict(folder, base, known or None, access)
        for table in Table:
            if _name(table) not in existing:
                db.create_column_family(_name(table), _options(cache, table))
        return db

    def get(self, table: Table, key: bytes) -> bytes | None:
        with _translated("read"):
            value: bytes | None = self._tables[table].get(key)
            return value

    def get_many(self, table: Table, keys: Sequence[bytes]) -> Sequence[bytes | None]:
        if not keys:
            return []
        with _translated("read"):
            values: Any = self._tables[table].get(keys if isinstance(keys, list) else list(keys))
            return list(values)

    def scan(self, table: Table, start: bytes = b"", end: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        with _translated("read"):
            rows: Iterator[Any] = iter(self._tables[table].items(from_key=start))
        last = start
        for key, value in rows:
            if end is not None and key >= end:
                return
            last = key
            yield key, value
        self._check_end(table, last)

    def _check_end(self, table: Table, last: bytes) -> None:
        """rocksdict's iterators end without a word where a block is damaged: look whether there is really no more."""
        with _translated("read"):
            rows = self._tables[table].iter()
            rows.seek(last)
            if rows.valid():
                rows.next()
            rows.status()

    def write(self, writes: Sequence[Write]) -> None:
        if self._is_broken:
            self._mend()
        batch = WriteBatch(raw_mode=True)
        handles, put, delete = self._handles, batch.put, batch.delete
        for table, key, value in writes:
            if value is None:
                delete(key, handles[table])
            else:
                put(key, value, handles[table])
        try:
            with _translated("written"):
                self._db.write(batch, self._write_options)
        except StoreError:
            self._is_broken = True
            raise

    def sync(self) -> None:
        try:
            with _translated("written"):
                self._db.flush_wal(sync=True)
        except StoreError:
            self._is_broken = True
            raise

    def copy_to(self, folder: Path) -> None:
        with _translated("copied"):
            Checkpoint(self._db).create_checkpoint(str(folder))

    def close(self) -> None:
        self._handles.clear()
        with ExitStack() as stack:  # all of them, also if one fails
            for each in (self._db, *self._tables):
                stack.callback(each.close)
            self._tables = []

    def _mend(self) -> None:
        """After a failed write RocksDB takes no more until it is opened anew; the disk may have room again."""
        if shutil.disk_usage(self._folder).free < _LEAST_ROOM_BYTES:
            raise StoreError("the frontier cannot be written: the disk is full")
        _log.warning("opening the frontier again after a failed write")
        with suppress(Exception):  # it tells of the failed write once more, and is closed all the same
            self.close()
        try:
            self._open(read_only=False)
        except StoreError:
            self._open(read_only=True)  # what is known can still be asked for
            raise
        self._is_broken = False


@contextmanager
def _translated(what: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # rocksdict raises plain Exception for everything
        raise StoreError(f"the frontier cannot be {what}: {error}") from error


def _name(table: Table) -> str:
    return table.name.lower()


def _options(cache: Cache, table: Table | None = None) -> Options:
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    options.set_write_buffer_size(_WRITE_BUFFER_BYTES)
    options.set_db_write_buffer_size(_WRITE_BUFFERS_BYTES)
    options.set_max_total_wal_size(_MAX_LOG_BYTES)
    options.set_max_background_jobs(2)
    options.set_keep_log_file_num(2)
    options.set_level_compaction_dynamic_level_bytes(True)
    # Digests hardly compress, and are looked up one by one; URL texts compress well, and are read in order.
    options.set_compression_type(DBCompressionType.lz4())
    if table not in (Table.URLS, Table.NAMES):
        options.set_bottommost_compression_type(DBCompressionType.zstd())
    blocks = BlockBasedOptions()
    blocks.set_block_cache(cache)
    blocks.set_bloom_filter(_BLOOM_BITS, block_based=False)
    blocks.set_cache_index_and_filter_blocks(False)  # they stay in memory: about 1.5 bytes for each known URL
    options.set_block_based_table_factory(blocks)
    return options


def _explained(folder: Path, error: Exception) -> str:
    if "while lock file" in str(error).lower():
        return f"{folder} is in use by another urlServer; stop that one first"
    return f"{folder} cannot be opened as a frontier: {error}"

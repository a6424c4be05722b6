"""The store on RocksDB, the only module that knows it. A table is a column family; one log makes batches atomic."""

import gc
import logging
import os
import re
import shutil
import tempfile
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

from common.files import publish
from server.frontier import promise
from server.frontier.logs import Gap, gap_in
from server.frontier.promise import Notes, Promise, promise_in
from server.frontier.store import DamagedStore, LostChanges, StoreError, Table, Write

_CACHE_BYTES = 8 << 20  # of blocks; look-ups are at random, so a larger one would not hit more, and the system has one
_WRITE_BUFFERS_BYTES = 16 << 20  # of all tables together: memory must not grow with the crawl
_WRITE_BUFFER_BYTES = 8 << 20
_MAX_LOG_BYTES = 128 << 20  # of the write-ahead log: bounds the time that a restart takes
_LEAST_ROOM_BYTES = 1 << 20  # with less on the disk there is no use in opening it again after a failed write
_BLOOM_BITS = 10  # per key, in memory: one look-up in a hundred for an unknown key goes to the disk
_READ_IN_ORDER = (Table.ACTIVE, Table.WAITING, Table.DUE)  # nobody who is in a hurry looks anything up in these

_HEAD_FILE = "CURRENT"  # names the file that names all others
_KEPT_LOGS = 4  # of what RocksDB tells of itself; each opening begins two
_WAY_ON = "crawlAdmin recover goes on with what is left of it"
# What the system says of a file that is gone, or that the disk cannot read any more. Whatever else it says (no room, no
# permission, a limit), the frontier is as it was; RocksDB may call that a Corruption all the same.
_GONE = ("No such file", "Input/output error", "Structure needs cleaning")

_ADDED = (Table.CLAIMS,)  # a crawl that began before may lack these, and only who opens it for writing can make them

_log = logging.getLogger(__name__)


class _Away:
    """In the place of a table while the store is closed, be it only to be opened again."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("it is already closed")

    def close(self) -> None:
        pass


class RocksStore:
    """A folder with a RocksDB database. Only one process can have it open, unless it only reads.

    What is missing of what was promised stops the opening, and so does a recovery that was not finished, unless this is
    one that `recovers`; a reader does not ask. `accept_loss`: go on with what is left, for who recovers and has seen to
    it that nothing more can be had.
    """

    def __init__(
        self, folder: Path, read_only: bool = False, recovers: bool = False, accept_loss: bool = False
    ) -> None:
        self._folder = folder
        self._is_broken = False  # a write has failed
        self._write_options = WriteOptions()
        self._notes: Notes | None = None
        self._handles: list[Any] = []
        self._tables: list[Any] = [_Away()] * len(Table)
        self._open(read_only, recovers, accept_loss)

    def _open(self, read_only: bool, recovers: bool = False, accept_loss: bool = False) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            if read_only:
                self._db = _opened(self._folder, read_only=True)
            else:
                if not recovers and promise.is_recovering(self._folder):
                    raise DamagedStore(_damaged(self._folder, "it was not recovered to the end, or could not be"))
                self._db = _complete(self._folder, None if accept_loss else promise_in(self._folder))
                self._notes = Notes(self._folder)
                self._notes.begin(self._db.latest_sequence_number(), _first_log(self._db))
            missing = [table for table in _ADDED if read_only and not _has(self._db, table)]
            there = [table for table in Table if table not in missing]
            self._handles = [self._db.get_column_family_handle(_name(table)) for table in there]
            tables: list[Any] = [self._db.get_column_family(_name(table)) for table in there]
            self._tables = tables + [None] * len(missing)  # they are the last ones
        except StoreError:
            raise
        except Exception as error:  # rocksdict raises plain Exception for everything
            raise _explained(self._folder, error) from error

    def get(self, table: Table, key: bytes) -> bytes | None:
        rows = self._tables[table]
        if rows is None:
            return None
        with _translated("read"):
            value: bytes | None = rows.get(key)
            return value

    def get_many(self, table: Table, keys: Sequence[bytes]) -> Sequence[bytes | None]:
        known = self._tables[table]
        if not keys or known is None:
            return [None] * len(keys)
        with _translated("read"):
            values: Any = known.get(keys if isinstance(keys, list) else list(keys))
            return list(values)

    def scan(self, table: Table, start: bytes = b"", end: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        known = self._tables[table]
        if known is None:
            return
        with _translated("read"):
            rows: Iterator[Any] = iter(known.items(from_key=start))
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
        if not self._handles:
            raise StoreError("the frontier cannot be written: it is already closed")
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
        if self._notes is not None:
            self._notes.written(self._db.latest_sequence_number())

    def sync(self) -> None:
        notes = self._notes
        try:
            with _translated("written"):
                reach = self._db.latest_sequence_number()
                logs = notes.changed_logs() if notes is not None else None
                self._db.flush_wal(sync=True)
        except StoreError:
            self._is_broken = True
            raise
        if notes is not None:
            notes.synced(reach)
            if logs is not None:
                with _translated("read"):
                    notes.logs(_first_log(self._db), logs)

    def reach(self) -> int:
        """How many changes there have been so far."""
        number: int = self._db.latest_sequence_number()
        return number

    def copy_to(self, folder: Path) -> None:
        with _translated("copied"):
            Checkpoint(self._db).create_checkpoint(str(folder))

    def close(self) -> None:
        """StoreError if what it did in the background has met damage, and for whoever still reads or writes."""
        self._handles.clear()  # not only forgotten: the trace of an error may hold the list, and with it the database
        notes, self._notes = self._notes, None
        tables, self._tables = self._tables, [_Away()] * len(Table)
        with _translated("closed"), ExitStack() as stack:  # all of them, also if one fails
            for each in (self._db, *tables, notes):
                if each is not None:
                    stack.callback(each.close)

    def _mend(self) -> None:
        """After a failed write RocksDB takes no more until it is opened anew; the disk may have room again."""
        if shutil.disk_usage(self._folder).free < _LEAST_ROOM_BYTES:
            raise StoreError("the frontier cannot be written: the disk is full")
        _log.warning("opening the frontier again after a failed write")
        with suppress(Exception):  # it tells of the failed write once more, and is closed all the same
            self.close()
        gc.collect()  # the traces of what failed hold tables in circles, and those the database
        self._is_broken = False  # first: a sync of another thread may fail as soon as it is open
        try:
            self._open(read_only=False)
        except StoreError:
            self._is_broken = True
            self._open(read_only=True)  # what is known can still be asked for
            raise


def _has(db: Rdict, table: Table) -> bool:
    try:
        db.get_column_family_handle(_name(table))
    except Exception as error:  # rocksdict raises plain Exception for everything
        if "does not exist" in str(error):
            return False
        raise
    return True


def is_store(folder: Path) -> bool:
    """Whether there is a database, in whatever state: opening would make an empty one elsewhere."""
    return any((folder / name).exists() for name in (_HEAD_FILE, promise.FILE_NAME))


def rename_head(folder: Path) -> None:
    """Let CURRENT name the newest MANIFEST, as it should."""
    manifests = [path.name for path in folder.glob("MANIFEST-*")]
    if manifests:
        publish(folder / _HEAD_FILE, [f"{max(manifests, key=_number)}\n".encode()])


def rebuild(folder: Path) -> None:
    """Make a database of all tables and logs that can be read. What belongs together a MANIFEST would tell."""
    try:
        _name_tables(folder)
        Rdict.repair(str(folder), _options(Cache(_CACHE_BYTES)))
    except Exception as error:
        raise _explained(folder, error) from error


def is_about_head(damage: StoreError) -> bool:
    """Whether only the files that name all others are damaged: then nothing is gone that is in those."""
    return any(name in str(damage) for name in (_HEAD_FILE, "MANIFEST")) and ".sst" not in str(damage)


def _name_tables(folder: Path) -> None:
    """Without a MANIFEST RocksDB knows a table by its files only, and drops what the log alone holds of one: so give it
    a file of each, from a new database, with nothing in it but the removal of a key that nobody has."""
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=folder.name) as name:
        db = _opened(Path(name))
        tables = [db.get_column_family(_name(table)) for table in Table]
        for table in tables:
            table.delete(b"")
            table.flush()
        for each in (db, *tables):
            each.close()
        number = max(map(_number, (path.name for path in folder.iterdir())), default=0)
        for path in Path(name).glob("*.sst"):
            path.rename(folder / f"{number + _number(path.name):06d}.sst")


def _number(name: str) -> int:
    """Of a file of RocksDB, such as 000012.sst or MANIFEST-000012."""
    found = re.fullmatch(r"(\d{1,18})\.\w+|MANIFEST-(\d{1,18})", name)
    return int(found[1] or found[2]) if found else 0


def _opened(folder: Path, read_only: bool = False) -> Rdict:
    """As far as the log can be read; RocksDB says nothing of the rest, and drops it unless it is opened `read_only`."""
    cache = Cache(_CACHE_BYTES)
    base = _options(cache)
    existing = set(Rdict.list_cf(str(folder), base)) if (folder / _HEAD_FILE).exists() else set()
    access = AccessType.read_only(False) if read_only else AccessType.read_write()
    known = {_name(table): _options(cache, table) for table in Table if _name(table) in existing}
    db = Rdict(str(folder), base, known or None, access)
    for table in Table:
        if _name(table) not in existing and not read_only:
            db.create_column_family(_name(table), _options(cache, table))
    return db


def _complete(folder: Path, promised: Promise | None) -> Rdict:
    """The database with all that was promised; StoreError if something is missing: then nothing has been changed."""
    if gap := _check(folder, promised) if promised is not None else None:
        _cut_off(gap)
    db = _opened(folder)
    if cut := _cut(folder):
        end = "that was never acknowledged" if promised else "(nothing tells whether that was acknowledged)"
        _log.warning("the log of %s ended in something %s: %d bytes are cut", folder, end, cut)
    return db


def _check(folder: Path, promised: Promise) -> Gap | None:
    """Raises what is wrong with it; returns a gap behind all that was promised, as a power loss leaves one."""
    if not (folder / _HEAD_FILE).exists():
        raise DamagedStore(_damaged(folder, f"its file {_HEAD_FILE} is gone"))
    _check_free(folder)
    db = _opened(folder, read_only=True)
    reach, first_log = db.latest_sequence_number(), _first_log(db)
    db.close()
    if first_log < promised.first_log:
        raise DamagedStore(_damaged(folder, "its MANIFEST is an older one"))
    if lost := promised.lost_logs(folder, first_log):
        raise LostChanges(_damaged(folder, f"changes that were acknowledged are gone, {lost}"))
    logs = sorted(folder.glob("*.log"), key=lambda path: _number(path.name))
    gap = gap_in(path for path in logs if _number(path.name) >= first_log)
    if gap is not None and gap.reach < promised.surely:
        raise LostChanges(_damaged(folder, f"changes that were acknowledged are gone, {gap.what}"))
    reach = reach if gap is None else gap.reach
    if reach < promised.surely:
        missing = f"{promised.surely - reach} of {promised.surely} changes that were acknowledged are gone"
        raise LostChanges(_damaged(folder, f"{missing}, its log ends before them"))
    if reach < promised.perhaps:
        _log.warning(
            "the last %d changes of %s are gone: the machine went down before they were on disk (with durability = "
            "full nobody was told of them)", promised.perhaps - reach, folder,
        )  # fmt: skip
    return gap


def _cut_off(gap: Gap) -> None:
    """RocksDB would take in what is behind it, without what is missing before that."""
    for log in gap.log.parent.glob("*.log"):
        if _number(log.name) > _number(gap.log.name):
            log.unlink()
    os.truncate(gap.log, gap.place)


def _check_free(folder: Path) -> None:
    """Somebody who writes meanwhile would look like damage. The lock is taken before this opening fails."""
    options = Options(raw_mode=True)
    options.create_if_missing(False)
    options.set_error_if_exists(True)
    options.set_keep_log_file_num(_KEPT_LOGS)
    try:
        Rdict(str(folder), options, None, AccessType.read_write()).close()
    except Exception as error:
        if _is_lock(error):
            raise


def _first_log(db: Rdict) -> int:
    """The number of the first log file that holds what is not in the tables yet."""
    return db.property_int_value("rocksdb.min-log-number-to-keep") or 0


def _cut(folder: Path) -> int:
    """How much of the log RocksDB has just dropped, as it tells in its own log; that is for people only."""
    told = (folder / "LOG").read_text(errors="replace")
    return sum(int(number) for number in re.findall(r"\.log: dropping (\d+) bytes", told))


@contextmanager
def _translated(what: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # rocksdict raises plain Exception for everything
        told = f"the frontier cannot be {what}: {error}"
        if _is_damage(error):
            raise DamagedStore(f"{told}. Stop urlServer; {_WAY_ON}") from error
        raise StoreError(told) from error


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
    options.set_keep_log_file_num(_KEPT_LOGS)
    options.set_level_compaction_dynamic_level_bytes(True)
    # Digests hardly compress, and are looked up one by one; URL texts compress well, and are read in order.
    options.set_compression_type(DBCompressionType.lz4())
    if table not in (Table.URLS, Table.NAMES):
        options.set_bottommost_compression_type(DBCompressionType.zstd())
    blocks = BlockBasedOptions()
    blocks.set_block_cache(cache)
    if table not in _READ_IN_ORDER:
        blocks.set_bloom_filter(_BLOOM_BITS, block_based=False)
    # They stay in memory: about 1.5 bytes for each known URL, and 1.8 for one that is queued.
    blocks.set_cache_index_and_filter_blocks(False)
    options.set_block_based_table_factory(blocks)
    return options


def _explained(folder: Path, error: Exception) -> StoreError:
    if _is_lock(error):
        return StoreError(f"{folder} is in use by another urlServer; stop that one first")
    if _is_damage(error):
        return DamagedStore(_damaged(folder, str(error).strip(". ")))
    return StoreError(f"{folder} cannot be opened as a frontier: {error}")


def _damaged(folder: Path, what: str) -> str:
    return f"{folder} is damaged: {what}. Put a backup of it back, or: {_WAY_ON}"


def _is_lock(error: Exception) -> bool:
    return any(told in str(error).lower() for told in ("while lock file", "lock hold by current process"))


def _is_damage(error: Exception) -> bool:
    told = str(error)
    return any(what in told for what in _GONE) or ("Corruption" in told and "IO error" not in told)

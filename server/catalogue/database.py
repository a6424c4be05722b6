"""Opens the catalogue's SQLite file. Knows nothing of bundles; says when the file must be built anew."""

import logging
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

from common.errors import PavoukError

FILE_NAME = "catalogue.sqlite"
VERSION = 1  # of schema.sql
BUSY_SECONDS = 60.0  # the lock is only held by another writer, and not for long

log = logging.getLogger(__name__)


class CatalogueError(PavoukError):
    """The catalogue cannot be opened, read or written. The bundles are not affected."""


class CorruptCatalogue(CatalogueError):
    """The file is damaged or of another version: the bundles give a new one."""


@contextmanager
def mapped() -> Iterator[None]:
    """Turns what SQLite raises into CatalogueError."""
    try:
        yield
    except UnicodeDecodeError as error:  # of the words in which SQLite tells what is wrong with a damaged schema
        raise damaged("its schema is no text") from error
    except sqlite3.Error as error:
        if _tells_of_damage(error):
            raise damaged(str(error)) from error
        raise CatalogueError(f"the catalogue: {error}") from error


def damaged(what: str) -> CorruptCatalogue:
    """What is raised for a file that holds what nobody has written."""
    return CorruptCatalogue(
        f"the catalogue is damaged ({what}): crawlAdmin audit --repair, or ftpServer --rebuild-catalogue, makes it anew"
    )


def _tells_of_damage(error: sqlite3.Error) -> bool:
    if "decode to UTF-8" in str(error):  # raised by the module, which gives it no code
        return True
    code: int = getattr(error, "sqlite_errorcode", 0)
    # SQLITE_ERROR is a wrong statement; ours are right, so it is the file that lacks a table.
    codes = sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_FORMAT
    # The last: a journal from which who may write would roll the file back. Ours has none, but while it is made.
    return code & 0xFF in codes or code == sqlite3.SQLITE_READONLY_ROLLBACK


def check_integrity(database: sqlite3.Connection) -> None:
    """CorruptCatalogue unless SQLite finds each table sound, and its index the same. Reads all of it."""
    with mapped():
        report = database.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if report != "ok":
        raise damaged(" ".join(str(report).split()))


def connect_to_read(file: Path) -> sqlite3.Connection:
    """A connection that cannot write."""
    with mapped():
        # no isolation level: nothing of ours may begin a transaction that keeps the writer's log from being cut
        uri = f"{file.absolute().as_uri()}?mode=ro"
        database = sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None)
    try:
        with mapped():
            version = _version(database)
        if version != VERSION:
            raise CorruptCatalogue(f"{file} is of version {version}: ftpServer --rebuild-catalogue makes it anew")
    except BaseException:
        database.close()
        raise
    return database


def connect_to_write(file: Path) -> sqlite3.Connection:
    """The connection that writes; makes the tables in a new file. CorruptCatalogue if the file is no good."""
    with mapped():
        # no isolation level: the catalogue begins and ends transactions, not the module
        database = sqlite3.connect(file, timeout=BUSY_SECONDS, isolation_level=None)
    try:
        with mapped():
            _prepare(database)
    except CatalogueError as error:  # another than a corrupt one: locked, disk full, not permitted
        database.close()
        raise type(error)(f"{file}: {error}") from error
    return database


def move_aside(file: Path, reason: CorruptCatalogue) -> None:
    """Give a bad file another name, so that a new one can be made."""
    suffix = f".bad-{int(time.time())}"
    log.warning("%s; moved aside as %s%s, the bundles give a new one", reason, file.name, suffix)
    for ending in ("", "-wal", "-shm", "-journal"):
        part = file.with_name(file.name + ending)
        if part.exists():
            part.rename(file.with_name(file.name + suffix + ending))


def _prepare(database: sqlite3.Connection) -> None:
    # WAL lets others read meanwhile. NORMAL can lose the last transactions when the power goes, but never
    # damages the file; the next reconcile brings back what was lost.
    for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "foreign_keys = ON"):
        database.execute(f"PRAGMA {pragma}")
    if not database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        schema = files("server.catalogue").joinpath("schema.sql").read_text(encoding="utf-8")
        database.executescript(f"BEGIN;\n{schema}\nPRAGMA user_version = {VERSION};\nCOMMIT;")
    if _version(database) != VERSION:
        raise CorruptCatalogue("the catalogue is of another version")
    report = database.execute("PRAGMA quick_check(1)").fetchone()[0]
    if report != "ok":
        raise CorruptCatalogue(f"the catalogue is damaged: {' '.join(str(report).split())}")


def _version(database: sqlite3.Connection) -> int:
    return int(database.execute("PRAGMA user_version").fetchone()[0])

"""The catalogue as an object with few verbs. It never changes a bundle, and trusts no manifest unchecked."""

import os
import sqlite3
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from common.bundle import Manifest
from common.errors import BundleError
from server.catalogue import apart
from server.catalogue import database as db
from server.catalogue.apart import Apart, Judge
from server.catalogue.rows import StoredBundle, StoredPage, bundle_row, page_rows, stored_bundle, stored_page
from server.catalogue.stored import UnreadableFolder, bundle_names_in, domains_in, stored_manifest

_BATCH = 200  # bundles in one transaction when many are missing
_BATCH_PAGES = 20_000  # about 30 MB of memory

_INSERT_BUNDLE = (
    "INSERT INTO bundle (domain, name, job, created, size, sha256, pages)"
    " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING id"
)
_INSERT_PAGE = "INSERT INTO main.page VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_BUNDLES = "SELECT domain, name, job, created, size, sha256, pages FROM bundle"
_ALL_PAGES = (
    "SELECT domain, name, digest, url, folder, data_name, page.size, sha1, crawl_time, status, content_type"
    " FROM page JOIN bundle ON bundle.id = page.bundle"
)
_PAGES = f"{_ALL_PAGES} WHERE digest = ? ORDER BY crawl_time, page.bundle, position"
_DIGESTS = "SELECT digest, count(*) FROM page GROUP BY digest ORDER BY digest"  # in the order of the index
_ROWS = (
    "SELECT position, digest, url, folder, data_name, page.size, sha1, crawl_time, status, content_type"
    " FROM main.page AS page JOIN bundle ON bundle.id = page.bundle WHERE domain = ? AND name = ? ORDER BY position"
)
_NEWEST = (
    "SELECT position FROM page AS own JOIN bundle ON bundle.id = own.bundle"
    " WHERE domain = ? AND name = ? AND own.bundle <= ? AND NOT EXISTS (SELECT 1 FROM page AS other"
    " WHERE other.digest = own.digest AND other.bundle <= ?"
    " AND (other.crawl_time, other.bundle, other.position) > (own.crawl_time, own.bundle, own.position))"
)
_FIRST_URL = (
    "SELECT url, min(crawl_time) FROM page JOIN bundle ON bundle.id = page.bundle WHERE domain = ?"
)
_COUNTS = (
    "SELECT count(*), coalesce(sum(pages), 0), (SELECT count(DISTINCT digest) FROM page),"
    " coalesce(sum(size), 0) FROM bundle"
)


@dataclass(frozen=True, slots=True)
class Counts:
    """How much is stored."""

    bundles: int
    pages: int
    urls: int
    bytes: int  # of the bundles


@dataclass(frozen=True, slots=True)
class Changes:
    """What reconciling or rebuilding did. `broken`: each bundle that cannot be catalogued, and why."""

    added: int
    dropped: int
    broken: tuple[tuple[str, str], ...]


class Catalogue:
    """The pages stored in one directory. Belongs to the thread that opened it; owns a database connection."""

    def __init__(self, directory: Path, database: sqlite3.Connection) -> None:
        self._directory = directory
        self._database = database
        self._inode = self._inode_now()

    @classmethod
    def open(cls, directory: Path, *, read_only: bool = False, thorough: bool = False) -> Self:
        """Open the catalogue of `directory`. For writing it is made if missing, and made anew if damaged.

        `thorough`, for who needs all of it: all of it is read first. For reading, CorruptCatalogue if it is damaged.
        """
        file = directory / db.FILE_NAME
        if read_only:
            return cls(directory, db.connect_to_read(file))._looked_through(thorough)
        try:
            return cls(directory, db.connect_to_write(file))._looked_through(thorough)
        except db.CorruptCatalogue as error:
            db.move_aside(file, error)
            catalogue = cls(directory, db.connect_to_write(file))
            catalogue.rebuild()
            return catalogue

    def _looked_through(self, thorough: bool) -> Self:
        try:
            if thorough:
                self._look_through()
        except BaseException:
            self.close()
            raise
        return self

    def _look_through(self) -> None:
        db.check_integrity(self._database)
        with db.mapped():
            for row in self._database.execute(_BUNDLES):
                stored_bundle(row)
            for row in self._database.execute(_ALL_PAGES):
                stored_page(row)

    def is_replaced(self) -> bool:
        """Whether somebody has made the file anew meanwhile: nobody reads any more what is written to this one."""
        return self._inode_now() != self._inode

    def _inode_now(self) -> int:
        try:
            return (self._directory / db.FILE_NAME).stat().st_ino
        except OSError:
            return 0

    def close(self) -> None:
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def add(self, path: Path, manifest: Manifest) -> None:
        """Catalogue one bundle, completely or not at all. One that is known already changes nothing."""
        self.add_all([(path, manifest)])

    def add_all(self, bundles: Sequence[tuple[Path, Manifest]]) -> int:
        """Catalogue several bundles in one transaction; says how many were new."""
        if not bundles:
            return 0
        with self._transaction():
            return self._insert_all(bundles)

    def _insert_all(self, bundles: Iterable[tuple[Path, Manifest]]) -> int:
        return sum(self._insert(path.name, manifest) for path, manifest in bundles)

    def _insert(self, name: str, manifest: Manifest) -> bool:
        row = self._database.execute(_INSERT_BUNDLE, bundle_row(name, manifest)).fetchone()
        if row is None:
            return False
        self._database.executemany(_INSERT_PAGE, ((row[0], *page) for page in page_rows(manifest)))
        return True

    def replace(self, path: Path, manifest: Manifest) -> None:
        """Catalogue a bundle anew, because what was said of it is wrong."""
        with self._transaction():
            self._database.execute("DELETE FROM bundle WHERE domain = ? AND name = ?", (path.parent.name, path.name))
            self._insert(path.name, manifest)

    def set_apart(self, judge: Judge, mark: int) -> int:
        """From now on nothing here tells of pages that do not count, or that came after `mark`, but `apart`, `apart_of`
        and `rows_of`. Returns how many do not count. Before that all pages do."""
        with db.mapped():
            return apart.set_apart(self._database, judge, mark)

    def apart(self) -> Generator[tuple[bytes, int], None, None]:
        """URLs that have pages set apart, in the order of the digests, and how many."""
        with db.mapped():
            yield from apart.digests(self._database)

    def apart_of(self, digest: bytes) -> list[Apart]:
        """The pages of a URL that are set apart, in the order in which they came."""
        with db.mapped():
            return apart.pages_of(self._database, digest)

    def judged(self, digest: bytes, judge: Judge) -> Generator[Apart, None, None]:
        """Every stored version of one URL, as it came, and whether it counts; without a walk over all pages. `judge` is
        called when all of them have been found."""
        with db.mapped():
            yield from apart.judged(self._database, digest, judge)

    def told(self, digest: bytes, judge: Judge) -> tuple[list[Apart], int]:
        """The same for a person, oldest first: not more than one reads, and how many there are."""
        return apart.most_telling(self.judged(digest, judge))

    def pages_of(self, digest: bytes) -> list[StoredPage]:
        """Every stored version of a URL, oldest first."""
        with db.mapped():
            return [stored_page(row) for row in self._database.execute(_PAGES, (digest,))]

    def latest(self, digest: bytes) -> StoredPage | None:
        """The newest version of a URL."""
        pages = self.pages_of(digest)
        return pages[-1] if pages else None

    def bundles(self) -> Iterator[StoredBundle]:
        """All bundles, by domain and name."""
        with db.mapped():
            yield from map(stored_bundle, self._database.execute(f"{_BUNDLES} ORDER BY domain, name"))

    def bundles_of(self, domain: str) -> list[StoredBundle]:
        """The bundles of one domain."""
        with db.mapped():
            rows = self._database.execute(f"{_BUNDLES} WHERE domain = ? ORDER BY name", (domain,))
            return [stored_bundle(row) for row in rows]

    def digests(self) -> Generator[tuple[bytes, int], None, None]:
        """Every URL that has a page, in the order of the digests, and how many it has. Needs no memory to speak of."""
        with db.mapped():
            yield from self._database.execute(_DIGESTS)

    def rows_of(self, bundle: StoredBundle) -> list[tuple[Any, ...]]:
        """The pages of a bundle as `rows.page_rows` makes them from its manifest."""
        with db.mapped():
            return list(self._database.execute(_ROWS, (bundle.domain, bundle.name)))

    def mark(self) -> int:
        """What is catalogued now, for `newest_in`."""
        with db.mapped():
            return int(self._database.execute("SELECT coalesce(max(id), 0) FROM bundle").fetchone()[0])

    def newest_in(self, bundle: StoredBundle, mark: int) -> set[int]:
        """The positions of those pages of a bundle that have no newer version; what came after `mark` is not there."""
        with db.mapped():
            rows = self._database.execute(_NEWEST, (bundle.domain, bundle.name, mark, mark))
            return {row[0] for row in rows}

    def first_url(self, domain: str) -> str:
        """The URL that was the first to be crawled of a domain; empty if it has no pages."""
        with db.mapped():
            return self._database.execute(_FIRST_URL, (domain,)).fetchone()[0] or ""

    def counts(self) -> Counts:
        """How much is stored."""
        with db.mapped():
            return Counts(*self._database.execute(_COUNTS).fetchone())

    def reconcile(self) -> Changes:
        """Add stored bundles that are missing here, drop those that are gone. Lists every folder once."""
        added, dropped = 0, 0
        broken: list[tuple[str, str]] = []
        for domain, stored in self._listed(broken):
            known = self._names_of(domain)
            dropped += self._drop(domain, known - stored)
            missing = [self._directory / domain / name for name in sorted(stored - known)]
            for batch in _batches(_sound(missing, broken)):
                added += self.add_all(batch)
        return Changes(added, dropped, tuple(broken))

    def rebuild(self, *, verify: bool = False) -> Changes:
        """Forget everything and read all manifests again. Others see the old state until this is complete.

        `verify` also reads every bundle as a whole, and leaves out those that have another digest.
        """
        added, dropped = 0, 0
        broken: list[tuple[str, str]] = []
        with self._transaction():
            for domain, stored in self._listed(broken):
                dropped += self._database.execute("DELETE FROM bundle WHERE domain = ?", (domain,)).rowcount
                paths = [self._directory / domain / name for name in sorted(stored)]
                added += self._insert_all(_sound(paths, broken, verify))
        return Changes(added, dropped, tuple(broken))

    def _listed(self, broken: list[tuple[str, str]]) -> Iterator[tuple[str, set[str]]]:
        """Each domain and the names of its bundles. One that cannot be listed goes to `broken`: all stays as it is."""
        for domain in self.domains():
            try:
                stored = bundle_names_in(self._directory, domain)
            except UnreadableFolder as error:
                broken.append((domain, str(error)))
            else:
                yield domain, stored

    def domains(self) -> list[str]:
        """All domains that have a folder or are catalogued."""
        with db.mapped():
            known = {row[0] for row in self._database.execute("SELECT DISTINCT domain FROM bundle")}
        return sorted(known.union(domains_in(self._directory)))

    def _names_of(self, domain: str) -> set[str]:
        with db.mapped():
            rows = self._database.execute("SELECT name FROM bundle WHERE domain = ?", (domain,))
            return {row[0] for row in rows}

    def _drop(self, domain: str, names: Iterable[str]) -> int:
        # Looked at once more: it may have come since the folder was listed.
        gone = [(domain, name) for name in names if not os.path.lexists(self._directory / domain / name)]
        if gone:
            with self._transaction():
                self._database.executemany("DELETE FROM bundle WHERE domain = ? AND name = ?", gone)
        return len(gone)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with db.mapped():
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._database.execute("COMMIT")
            finally:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")


def _batches(bundles: Iterable[tuple[Path, Manifest]]) -> Iterator[list[tuple[Path, Manifest]]]:
    batch: list[tuple[Path, Manifest]] = []
    pages = 0
    for path, manifest in bundles:
        batch.append((path, manifest))
        pages += len(manifest.pages)
        if len(batch) == _BATCH or pages >= _BATCH_PAGES:
            yield batch
            batch, pages = [], 0
    yield batch


def _sound(
    paths: Iterable[Path], broken: list[tuple[str, str]], verify: bool = False
) -> Iterator[tuple[Path, Manifest]]:
    """Those of the bundles that can be catalogued; the others go to `broken`."""
    for path in paths:
        try:
            manifest = stored_manifest(path, verify)
        except BundleError as error:
            broken.append((f"{path.parent.name}/{path.name}", str(error)))
        else:
            yield path, manifest

"""The newest revision of every stored page, bundle by bundle: one page in memory at a time, each bundle read once.

Only what is catalogued when the export begins belongs to it, so that a crawl which goes on neither adds pages nor takes
them away under our hands. No transaction stays open meanwhile: it would keep ftpServer's log of changes from being cut.
"""

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from common.bundle import PageEntry, read_manifest, read_pages
from common.errors import BundleError, PavoukError
from server.catalogue import FILE_NAME, Catalogue, CatalogueError, StoredBundle
from server.catalogue.apart import Judge
from server.catalogue.database import connect_to_write
from server.catalogue.stored import UnreadableFolder, bundle_names_in, has_bundles

_ARRIVING_SECONDS = 60.0  # ftpServer catalogues what it has stored within moments


class NoCrawl(PavoukError):
    """There is nothing to export in this work folder."""


@dataclass(frozen=True, slots=True)
class Page:
    """A stored page with its body and its data.xml, as their digests say."""

    entry: PageEntry
    body: bytes
    xml: bytes


class Harvest:
    """What is stored in Pages/, as one export sees it. `left_out` names what could not be read, and why.

    All pages count until `judge_pages` is called.
    """

    def __init__(self, directory: Path, max_body_bytes: int = 0) -> None:
        self.left_out: list[str] = []
        self.remarks: list[str] = []  # on what was odd and cost nothing
        self._max_body_bytes = max_body_bytes
        self._directory = directory
        self._resources = ExitStack()  # owns the catalogue, and the folder of one that we made
        try:
            self._catalogue = self._resources.enter_context(self._opened())
            self._mark = self._catalogue.mark()
        except BaseException:
            self._resources.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._resources.close()

    def judge_pages(self, judge: Judge) -> int:
        """Leave out pages that do not count; returns how many. What it asks must be newer than the harvest: a page that
        is seen here was leased before it came."""
        return self._catalogue.set_apart(judge, self._mark)

    def domains(self) -> list[str]:
        """The folders of Pages/, in order."""
        return self._catalogue.domains()

    def first_scheme(self, domain: str) -> str:
        """Whether a domain was crawled by http or by https, at first."""
        return self._catalogue.first_url(domain).partition("://")[0]

    def pages(self, domain: str) -> Iterator[Page]:
        """Its pages, each in its newest revision, in the order in which they were stored."""
        bundles = sorted(self._catalogue.bundles_of(domain), key=lambda bundle: (bundle.created, bundle.name))
        for bundle in bundles:
            yield from self._pages_of(bundle)
        self._name_unknown(domain, {bundle.name for bundle in bundles})

    def _pages_of(self, bundle: StoredBundle) -> Iterator[Page]:
        wanted = self._catalogue.newest_in(bundle, self._mark)
        if not wanted:
            return
        path = self._directory / bundle.path
        try:
            for position, (entry, body, xml) in enumerate(read_pages(path, self._max_body_bytes)):
                if position in wanted:
                    yield Page(entry, body, xml)
                    wanted.remove(position)
            if wanted:
                raise BundleError(f"{path.name} has fewer pages than the catalogue says")
        except BundleError as error:
            self.left_out.append(f"{bundle.path}: {error}; {len(wanted)} pages of it are left out")

    def _name_unknown(self, domain: str, known: set[str]) -> None:
        """A bundle may have come just now. One that has been there for longer should be catalogued, if it can be."""
        try:
            unknown = bundle_names_in(self._directory, domain) - known
        except UnreadableFolder as error:
            self.left_out.append(f"{domain}: {error}")
            return
        for name in sorted(unknown):
            path = self._directory / domain / name
            try:
                read_manifest(path)
            except BundleError as error:
                if os.path.lexists(path):
                    self.left_out.append(f"{domain}/{name}: {error}")
                continue
            if _is_old(path):
                self.left_out.append(f"{domain}/{name} is not catalogued: ftpServer --rebuild-catalogue mends that")

    def _opened(self) -> Catalogue:
        if (self._directory / FILE_NAME).exists():
            try:
                return Catalogue.open(self._directory, read_only=True, thorough=True)
            except CatalogueError as error:
                self.remarks.append(f"{error}; made another one from the bundles, for this time only")
        elif not has_bundles(self._directory):
            raise NoCrawl(f"there are no pages in {self._directory.absolute()}: say which work folder with --dir")
        return self._made()

    def _made(self) -> Catalogue:
        """A catalogue of our own: Pages/ may be a copy without one, and it is not ours to write there."""
        folder = Path(self._resources.enter_context(tempfile.TemporaryDirectory(prefix="crawlExport-")))
        catalogue = Catalogue(self._directory, connect_to_write(folder / FILE_NAME))
        changes = catalogue.rebuild()
        self.left_out.extend(f"{name}: {reason}" for name, reason in changes.broken)
        return catalogue


def _is_old(path: Path) -> bool:
    try:
        return path.stat().st_mtime < time.time() - _ARRIVING_SECONDS
    except OSError:  # gone meanwhile
        return False

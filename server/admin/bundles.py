"""The bundles in Pages/ against the catalogue: each file is catalogued and each catalogued one is there, as its
manifest says. Reads; changes nothing."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from common.bundle import Manifest, read_beside, verify_pages
from common.errors import BundleError
from server.admin import findings as kinds
from server.admin.findings import Findings
from server.catalogue import Catalogue, StoredBundle
from server.catalogue.apart import COUNTS, Judge
from server.catalogue.rows import bundle_row, page_rows
from server.catalogue.stored import UnreadableFolder, bundle_names_in, stored_manifest
from server.frontier.records import KEY_LENGTH

_DIGEST, _SHA1 = 1, 6  # in a row of a page
_ARRIVING_SECONDS = 60.0  # ftpServer catalogues what it has stored within moments


@dataclass(frozen=True, slots=True)
class Trouble:
    """A bundle with which something is wrong, and what."""

    kind: str
    path: Path
    stored: StoredBundle | None  # what the catalogue says


OnTrouble = Callable[[Trouble], None]


def arriving_keys(catalogue: Catalogue, pages: Path, judge: Judge) -> set[bytes]:
    """The keys of pages that count in bundles that are not catalogued yet; few, unless the catalogue is damaged."""
    keys: set[bytes] = set()
    for path, stored in _pairs(catalogue, pages, lambda trouble: None):  # named when the bundles are looked at
        if stored is None:
            try:
                manifest = stored_manifest(path)
                rows = [(row[_DIGEST], row[_SHA1]) for row in page_rows(manifest)]
            except BundleError:
                continue  # so is this
            reasons = judge(manifest.job, rows)
            keys.update(digest[:KEY_LENGTH] for (digest, _), why in zip(rows, reasons, strict=True) if why == COUNTS)
    return keys


def check_bundles(
    catalogue: Catalogue, pages: Path, found: Findings, *, quick: bool, is_running: bool, max_body_bytes: int,
    on_trouble: OnTrouble = lambda trouble: None,
) -> None:  # fmt: skip
    """Look at every bundle; unless `quick`, read it completely."""
    for path, stored in _pairs(catalogue, pages, lambda trouble: found.differences.add(kinds.UNREADABLE, trouble)):
        try:
            size = path.stat().st_size
        except PermissionError as error:
            found.differences.add(kinds.UNREADABLE, f"{_name(path)}: {error.strerror}")
            continue
        except OSError:
            found.differences.add(kinds.BUNDLE_GONE, f"{_name(path)} with {stored.pages if stored else 0} pages")
            on_trouble(Trouble(kinds.BUNDLE_GONE, path, stored))
            continue
        found.counts["bundles"] += 1
        found.counts["bytes"] += size
        for kind, what in _troubles(catalogue, path, stored, quick, max_body_bytes):
            if kind == kinds.NOT_CATALOGUED and is_running and _is_recent(path):
                found.notes.add(kinds.IN_FLIGHT, f"{_name(path)} has just arrived")
            else:
                found.differences.add(kind, f"{_name(path)}: {what}" if what else _name(path))
                on_trouble(Trouble(kind, path, stored))


def _pairs(
    catalogue: Catalogue, pages: Path, on_unreadable: Callable[[str], None]
) -> Iterator[tuple[Path, StoredBundle | None]]:
    """Every bundle that is a file or catalogued. Files are listed first: what comes later is in the catalogue only."""
    for domain in catalogue.domains():
        try:
            names = bundle_names_in(pages, domain)
        except UnreadableFolder as error:
            on_unreadable(str(error))
            continue
        known = {bundle.name: bundle for bundle in catalogue.bundles_of(domain)}
        for name in sorted(names | known.keys()):
            yield pages / domain / name, known.get(name)


def _troubles(
    catalogue: Catalogue, path: Path, stored: StoredBundle | None, quick: bool, max_body_bytes: int
) -> Iterator[tuple[str, str]]:
    """The kinds of what is wrong with a bundle, and a sentence for each."""
    try:
        manifest = stored_manifest(path, verify=not quick)
        if not quick:
            verify_pages(path, max_body_bytes)
    except BundleError as error:
        yield kinds.BUNDLE_BROKEN, str(error)
        return
    if not _has_manifest_beside(path):
        yield kinds.MANIFEST_GONE, ""
    if stored is None:
        yield kinds.NOT_CATALOGUED, f"{len(manifest.pages)} pages"
    elif not _agrees(catalogue, stored, manifest):
        yield kinds.CATALOGUE_WRONG, "the catalogue says something else than the manifest"


def _has_manifest_beside(path: Path) -> bool:
    try:
        read_beside(path)
    except BundleError:
        return False
    return True


def _agrees(catalogue: Catalogue, stored: StoredBundle, manifest: Manifest) -> bool:
    row = (stored.domain, stored.name, stored.job, stored.created, stored.size, stored.sha256, stored.pages)
    return row == bundle_row(stored.name, manifest) and catalogue.rows_of(stored) == page_rows(manifest)


def _is_recent(path: Path) -> bool:
    try:
        return path.stat().st_mtime > time.time() - _ARRIVING_SECONDS
    except OSError:
        return False


def _name(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"

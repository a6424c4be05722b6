"""Manifests as rows of the catalogue, and back. What each field must be is checked where a manifest is read
(common.bundle); here it is only seen to that SQLite can hold it."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from common.bundle import Manifest, PageEntry, parse_bundle_name
from common.bundle.checks import MAX_NUMBER, MAX_TEXT_LENGTH
from common.errors import BundleError
from common.page import XML_NAME
from server.catalogue.database import damaged

_HEX = re.compile(r"[0-9a-f]*")
_BUNDLE_TYPES = (str, str, str, int, int, bytes, int)
_PAGE_TYPES = (str, str, bytes, str, str, str, int, bytes, float, int, str)


@dataclass(frozen=True, slots=True)
class StoredPage:
    """One page in Pages/. `bundle` is relative to Pages/."""

    bundle: PurePosixPath
    digest: bytes
    url: str
    folder: str
    data_name: str
    size: int
    sha1: bytes
    crawl_time: float
    status: int
    content_type: str

    @property
    def data_member(self) -> str:
        return f"{self.folder}/{self.data_name}"

    @property
    def xml_member(self) -> str:
        return f"{self.folder}/{XML_NAME}"


@dataclass(frozen=True, slots=True)
class StoredBundle:
    """One bundle in Pages/."""

    domain: str
    name: str
    job: str
    created: int
    size: int
    sha256: bytes
    pages: int

    @property
    def path(self) -> PurePosixPath:
        """Relative to Pages/."""
        return PurePosixPath(self.domain, self.name)


def bundle_row(name: str, manifest: Manifest) -> tuple[Any, ...]:
    """The row of a bundle, without its id."""
    parsed = parse_bundle_name(name)
    if parsed is None or parsed[:3] != (manifest.domain, manifest.created, manifest.job):
        raise BundleError(f"the manifest is not that of {name}")
    return (
        manifest.domain,
        name,
        manifest.job,
        _number(manifest.created, "created"),
        _number(manifest.bundle_size, "bundle_size"),
        _digest(manifest.bundle_sha256, 32, "bundle_sha256"),
        len(manifest.pages),
    )


def page_rows(manifest: Manifest) -> list[tuple[Any, ...]]:
    """The rows of its pages, without the bundle's id."""
    return [_page_row(position, entry) for position, entry in enumerate(manifest.pages)]


def _page_row(position: int, entry: PageEntry) -> tuple[Any, ...]:
    meta = entry.meta
    return (
        position,
        _digest(meta.digest, 20, "digest"),
        _text(meta.url, "url"),
        _text(entry.folder, "folder"),
        _text(entry.data_name, "data_name"),
        _number(entry.size, "size"),
        _digest(meta.sha1, 20, "sha1"),
        _time(meta.crawl_time),
        _number(meta.status, "status"),
        _text(meta.content_type, "content_type"),
    )


def stored_bundle(row: Sequence[Any]) -> StoredBundle:
    """A bundle from its row without the id. SQLite has no checksums, so what is read is looked at once more."""
    if tuple(map(type, row)) != _BUNDLE_TYPES:
        raise damaged(f"a bundle is {row!r:.100}")
    return StoredBundle(*row)


def stored_page(row: Sequence[Any]) -> StoredPage:
    """A page from domain and name of its bundle, and its own columns from digest on."""
    if tuple(map(type, row)) != _PAGE_TYPES:
        raise damaged(f"a page is {row!r:.100}")
    domain, name, *columns = row
    return StoredPage(PurePosixPath(domain, name), *columns)


def _number(value: object, field: str) -> int:
    if type(value) is not int or not 0 <= value <= MAX_NUMBER:
        raise BundleError(f"the manifest has a bad {field}: {value!r:.50}")
    return value


def _time(value: object) -> float:
    if type(value) not in (int, float) or not 0 <= value < math.inf:  # type: ignore[operator]
        raise BundleError(f"the manifest has a bad crawl_time: {value!r:.50}")
    return float(value)  # type: ignore[arg-type]


def _digest(value: object, length: int, field: str) -> bytes:
    if not isinstance(value, str) or len(value) != 2 * length or not _HEX.fullmatch(value):
        raise BundleError(f"the manifest has a bad {field}: {value!r:.50}")
    return bytes.fromhex(value)


def _text(value: object, field: str) -> str:
    if not isinstance(value, str) or len(value) > MAX_TEXT_LENGTH:
        raise BundleError(f"the manifest has a bad {field}: {value!r:.50}")
    return value.encode(errors="replace").decode()  # a lone surrogate cannot be stored

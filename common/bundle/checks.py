"""What each field of a manifest must be. A manifest comes from outside, and what it says of a page is shown to others:
that a URL is of this domain, that the digest is that of the URL and the folder that of the address, follows from
nothing else. Pure: knows no clock and no settings."""

import hashlib
import re
from typing import TYPE_CHECKING

from common.bundle.limits import bundle_room
from common.bundle.names import is_job_name, parse_bundle_name
from common.errors import UnsoundBundle
from common.names import domain_name, is_domain_name, page_folder
from common.page import MAX_TIME, XML_NAME
from common.urls import host_of, is_plain_address, resolve

if TYPE_CHECKING:
    from common.bundle.manifest import Manifest, PageEntry

MAX_TEXT_LENGTH = 20_000
MAX_NUMBER = 2**63 - 1  # what SQLite can hold
CLOCK_SECONDS = 86_400  # by which a page may be younger than its bundle: a clock was set meanwhile

_SHA1 = re.compile(r"[0-9a-f]{40}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_DATA_NAME = re.compile(r"data\.(?:[a-z0-9]{1,8}|source\.xml)")
_WORD = re.compile(r"[!-~]{0,250}")  # a media type or an encoding: ASCII without blanks, or nothing
_VISIBLE = re.compile(r"[!-~]+")  # as addresses and identities are; others could write on an operator's terminal
_ORIGIN = re.compile(r"https?://[^/]+(?=/)")
_TEXTS = (
    "url", "original_url", "final_url", "title", "content_type", "encoding", "etag", "last_modified", "server_date",
)  # fmt: skip


def check_manifest(name: str, manifest: "Manifest") -> None:
    """UnsoundBundle unless all fields are what they must be, and it is the manifest of the bundle of this name."""
    check_name(name, manifest)
    check_head(manifest)
    check = EntryCheck(manifest)
    for entry in manifest.pages:
        check(entry)


def check_name(name: str, manifest: "Manifest") -> None:
    """UnsoundBundle if it is the manifest of another bundle."""
    parsed = parse_bundle_name(name)
    if parsed is None or parsed[:3] != (manifest.domain, manifest.created, manifest.job):
        raise UnsoundBundle(f"the manifest is not that of {name}")


def check_sizes(manifest: "Manifest", packed_bytes: int, max_body_bytes: int) -> None:
    """UnsoundBundle if a body is larger than any that is kept, or all are more than can be in so few bytes."""
    for entry in manifest.pages:
        if entry.size > max_body_bytes:
            raise UnsoundBundle(f"{entry.data_member} has {entry.size} bytes, more than max_body_bytes")
    total = sum(entry.size for entry in manifest.pages)
    if total > bundle_room(packed_bytes, max_body_bytes):
        raise UnsoundBundle(f"its pages have {total} bytes, more than can be in a bundle of {packed_bytes}")


def check_head(head: "Manifest") -> None:
    """The first line."""
    _expect(isinstance(head.domain, str) and is_domain_name(head.domain), "domain", head.domain)
    _expect(isinstance(head.job, str) and is_job_name(head.job), "job", head.job)
    _expect(type(head.created) is int and 0 <= head.created <= MAX_TIME, "created", head.created)
    sha256 = head.bundle_sha256
    _expect(isinstance(sha256, str) and (not sha256 or _SHA256.fullmatch(sha256)), "bundle_sha256", sha256)
    _expect(_is_number(head.bundle_size), "bundle_size", head.bundle_size)


class EntryCheck:
    """UnsoundBundle for each page that cannot be one of this domain. Called for every page that is received."""

    def __init__(self, head: "Manifest") -> None:
        self._domain = head.domain
        self._latest = head.created + CLOCK_SECONDS
        self._origins: set[str] = set()  # of this domain
        self._digests: set[str] = set()  # of the pages so far: a job has each URL once

    def __call__(self, entry: "PageEntry") -> None:
        meta = entry.meta
        _check_texts(entry)
        for name, value in (("sha1", meta.sha1), ("digest", meta.digest), ("xml_sha1", entry.xml_sha1)):
            _expect(isinstance(value, str) and _SHA1.fullmatch(value), name, value)
        _expect(_is_number(entry.size), "size", entry.size)
        _expect(type(meta.status) is int and 100 <= meta.status <= 999, "status", meta.status)
        is_time = type(meta.crawl_time) in (int, float) and 0 <= meta.crawl_time <= self._latest
        _expect(is_time, "crawl_time", meta.crawl_time)
        _expect(_WORD.fullmatch(meta.content_type), "content_type", meta.content_type)
        _expect(_WORD.fullmatch(meta.encoding), "encoding", meta.encoding)
        self._check_addresses(entry)
        _expect(meta.digest not in self._digests, "digest (of an earlier page)", meta.digest)
        self._digests.add(meta.digest)

    def _check_addresses(self, entry: "PageEntry") -> None:
        meta, address = entry.meta, entry.meta.original_url
        _expect(is_plain_address(address) or resolve(address) == address, "original_url", address)
        for name, url in (("original_url", address), ("url", meta.url), ("final_url", meta.final_url)):
            _expect(_VISIBLE.fullmatch(url) and self._is_here(url), name, url)
        own = hashlib.sha1(meta.url.encode(), usedforsecurity=False).hexdigest()
        _expect(meta.digest == own, "digest", meta.digest)
        _expect(entry.folder == page_folder(address), "folder", entry.folder)
        is_data = _DATA_NAME.fullmatch(entry.data_name) and entry.data_name != XML_NAME
        _expect(is_data, "data_name", entry.data_name)

    def _is_here(self, url: str) -> bool:
        match = _ORIGIN.match(url)
        if match is None:
            return False
        origin = match[0]
        if origin not in self._origins:
            if domain_name(host_of(url)) != self._domain:
                return False
            self._origins.add(origin)
        return True


def _check_texts(entry: "PageEntry") -> None:
    texts = [*(getattr(entry.meta, name) for name in _TEXTS), entry.folder, entry.data_name]
    try:
        together = "".join(texts)
        if together.isascii() and len(together) <= MAX_TEXT_LENGTH:
            return
    except TypeError:
        pass
    for name, text in zip((*_TEXTS, "folder", "data_name"), texts, strict=True):
        is_text = isinstance(text, str) and len(text) <= MAX_TEXT_LENGTH
        _expect(is_text and not any("\ud800" <= character <= "\udfff" for character in text), name, text)


def _is_number(value: object) -> bool:
    return type(value) is int and 0 <= value <= MAX_NUMBER


def _expect(holds: object, field: str, value: object) -> None:
    if not holds:
        raise UnsoundBundle(f"the manifest has a bad {field}: {value!r:.80}")

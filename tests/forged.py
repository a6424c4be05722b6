"""Bundles that no honest client makes: each has one thing that is forged, odd or a bomb, and all else is correct, so
that nothing but the check of that one thing can refuse it."""

import bz2
import hashlib
import io
import json
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import zstandard

from common.bundle import BundleWriter, bundle_name, manifest_path
from common.page import PageText, page_xml
from tests.bundles import CREATED, page_meta, page_url

Row = dict[str, Any]
ZEROS = bytes(45_000_000)


@dataclass
class Forgery:
    """A bundle of one page of `domain`, as an attacker wants it: lines of the manifest, members, how it is packed."""

    domain: str = "a.example"
    job: str = "1"
    container: str = "tar.zst"
    created: int = CREATED
    row: Row = field(default_factory=dict)  # what the line of its page says instead
    head: Row = field(default_factory=dict)
    line: bytes | None = None  # the whole line of its page
    rows: int = 1  # so many times
    body: bytes = b"<title>forged</title>"
    xml: bytes | None = None
    tail: bytes = b""  # after the last member, instead of the end of the tar file
    inside: bytes | None = None  # the manifest in the bundle, if it is another
    beside: bytes | None = None  # the same beside it, packed
    packed_tail: bytes = b""  # more streams of bz2
    member_size: int | None = None  # of the body, as the header of the tar file says

    @property
    def url(self) -> str:
        return page_url(self.domain, 0)

    def lines(self, **head: Any) -> bytes:
        first = {"version": 1, "domain": self.domain, "job": self.job, "created": self.created}
        first |= {"bundle_sha256": "", "bundle_size": 0} | head | self.head
        return _line(first) + (self.line or _line(self._row())) * self.rows

    def _row(self) -> Row:
        meta = page_meta(self.url, self.body, self.created)
        row = {name: getattr(meta, name) for name in type(meta).__slots__}
        row |= {"folder": f"{self.domain}/page0.html", "data_name": "data.html", "size": len(self.body)}
        return row | {"xml_sha1": hashlib.sha1(self._xml()).hexdigest()} | self.row

    def _xml(self) -> bytes:
        if self.xml is not None:
            return self.xml
        return page_xml(page_meta(self.url, self.body, self.created), PageText([("http://b.example/new", "x")]))

    def write(self, folder: Path) -> Path:
        """The bundle with its manifest beside it, in `folder`/domain."""
        path = folder / self.domain / bundle_name(self.domain, self.created, self.job, self.container)
        path.parent.mkdir(parents=True, exist_ok=True)
        members = self._members()
        data = bz2.compress(members) if self.container == "tar.bz2" else _zstd(members)
        path.write_bytes(data + self.packed_tail)
        sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
        lines = self.lines(bundle_sha256=sha256, bundle_size=path.stat().st_size)
        manifest_path(path).write_bytes(_zstd(lines) if self.beside is None else self.beside)
        return path

    def _members(self) -> bytes:
        folder = self.row.get("folder", f"{self.domain}/page0.html")
        name = self.row.get("data_name", "data.html")
        inside = self.lines() if self.inside is None else self.inside
        made = _member("MANIFEST.jsonl", inside)
        made += _member(f"{folder}/{name}", self.body, self.member_size)
        if self.member_size is None:
            made += _member(f"{folder}/data.xml", self._xml())
        return made + (self.tail or bytes(1024))


def _member(name: str, data: bytes, size: int | None = None) -> bytes:
    info = tarfile.TarInfo(str(name).encode(errors="replace").decode())
    info.size = len(data) if size is None else size
    return info.tobuf(tarfile.PAX_FORMAT) + data + bytes(-len(data) % 512)


def _line(row: Any) -> bytes:
    return json.dumps(row).encode() + b"\n"


def _zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(data)


def zstd_of_many(parts: Sequence[tuple[bytes, int]], *, tells_size: bool = True) -> bytes:
    """One frame that unpacks to each of the parts so many times, without having it in memory."""
    size = sum(len(part) * times for part, times in parts) if tells_size else -1
    out = io.BytesIO()
    with zstandard.ZstdCompressor(level=1, write_checksum=True).stream_writer(out, size=size, closefd=False) as writer:
        for part, times in parts:
            for _ in range(times):
                writer.write(part)
    return out.getvalue()


def honest(folder: Path, domain: str = "b.example", job: str = "1") -> Path:
    """One page that must be there whatever happens to the others."""
    (folder / domain).mkdir(parents=True, exist_ok=True)
    writer = BundleWriter(domain, job, "tar.zst")
    meta = page_meta(page_url(domain, 0), b"honest", CREATED)
    writer.add(meta, "data.html", b"honest", page_xml(meta, PageText()))
    return writer.write(folder / domain, CREATED)

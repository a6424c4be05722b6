"""The file format of the harvest: one bundle holds pages of one domain from one job.

    example.org.1700000000.17.tar.bz2           a tar file: MANIFEST.jsonl, then data.* and data.xml of each page
    example.org.1700000000.17.tar.bz2.manifest  the same manifest, zstd, with size and digest of the whole file

The manifest inside makes a bundle prove itself; the one beside it lets the receiver verify and catalogue without
unpacking. The file beside is published first, so that a bundle with its final name always has its manifest.
"""

import bz2
import hashlib
import json
import os
import re
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from struct import Struct
from typing import IO, Any, cast

import zstandard

from common.errors import BundleError
from common.files import publish, sync_directory
from common.names import page_folder
from common.page import XML_NAME, PageMeta

FORMATS = ("tar.bz2", "tar.zst")
MANIFEST_SUFFIX = ".manifest"
MANIFEST_NAME = "MANIFEST.jsonl"
FORMAT_VERSION = 1

_FILE_NAME = re.compile(
    r"(?P<domain>.+)\.(?P<time>[0-9]{1,12})\.(?P<job>[0-9A-Za-z_-]{1,40})\.(?P<format>tar\.(?:bz2|zst))"
)
# Blocks of 300 KB instead of 900: a fifth faster, a sixth larger (measured on pages of documentation).
_BZ2_LEVEL = 3
_PIECE_BYTES = 3 * 300_000
# POSIX ustar: name, mode, owner, group, size, time, checksum, type, link, magic; the rest is empty.
_TAR_HEADER = Struct("100s8s8s8s12s12s8s1s100s8s247x")
_OWNER = (b"0000644", b"0000000", b"0000000")
_META_FIELDS = tuple(field.name for field in fields(PageMeta))
_MAX_MANIFEST_BYTES = 1 << 28  # a manifest (or data.xml) beyond this is a bomb: ours have about 400 bytes a page


@dataclass(frozen=True, slots=True)
class PageEntry:
    """One page as the manifest lists it."""

    folder: str  # inside the bundle
    data_name: str  # data.html, data.pdf, …
    size: int  # bytes of the body
    xml_sha1: str
    meta: PageMeta

    @property
    def data_member(self) -> str:
        return f"{self.folder}/{self.data_name}"

    @property
    def xml_member(self) -> str:
        return f"{self.folder}/{XML_NAME}"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a bundle contains. `bundle_*` are known only beside the bundle, not inside."""

    domain: str
    job: str
    created: int
    pages: tuple[PageEntry, ...]
    bundle_sha256: str = ""
    bundle_size: int = 0


class BundleWriter:
    """Collects pages of one domain in memory, then writes the bundle. Guarded by its owner, but for `squeeze`.

    bz2 takes far longer than anything else that is done with a page, so it is made piece by piece while pages
    arrive: each piece is a stream of its own, which every bzip2 reads as one file. Pieces are as long as whole
    blocks of bz2, so this costs no space. zstd is quick, and many of its readers stop after the first frame.
    """

    def __init__(self, domain: str, job: str, container: str) -> None:
        self.domain = domain
        self.job = job
        self.pages: list[PageEntry] = []
        self._container = container
        self._loose: list[bytes] = []
        self._loose_bytes = 0
        self._taken: list[bytes] = []  # what was loose and is to become the next piece
        self._pieces: list[bytes] = []

    def add(self, meta: PageMeta, data_name: str, body: bytes, xml: bytes) -> int:
        """Add one page; returns how many bytes it takes. Its folder follows from the address that answered for it."""
        entry = PageEntry(page_folder(meta.original_url), data_name, len(body), _sha1(xml), meta)
        time = int(meta.crawl_time)
        blocks = (*_member(entry.data_member, body, time), *_member(entry.xml_member, xml, time))
        size = sum(map(len, blocks))
        self.pages.append(entry)
        self._loose += blocks
        self._loose_bytes += size
        return size

    @property
    def has_piece(self) -> bool:
        """Whether enough has come together to squeeze it, or could not be squeezed before."""
        return bool(self._taken) or (self._loose_bytes >= _PIECE_BYTES and self._container == "tar.bz2")

    def take_piece(self) -> list[bytes]:
        """What has come together, to be given to `squeeze` at once. It stays here until that has succeeded."""
        if not self._taken:
            self._taken, self._loose, self._loose_bytes = self._loose, [], 0
        return self._taken

    def squeeze(self, piece: Iterable[bytes]) -> int:
        """Compress a piece; returns by how many bytes it became smaller. Pages may be added meanwhile."""
        raw = b"".join(piece)
        self._pieces.append(_bz2(raw))
        self._taken = []
        return len(raw) - len(self._pieces[-1])

    def write(self, folder: Path, created: int) -> Path:
        """Write bundle and manifest into `folder` and return the bundle's path; both are on disk then."""
        manifest = Manifest(self.domain, self.job, created, ())
        rows = b"".join(map(_row, self.pages))
        path = folder / bundle_name(self.domain, created, self.job, self._container)
        hasher = hashlib.sha256()
        size = 0
        with path.open("wb") as file:
            for chunk in self._chunks(_member(MANIFEST_NAME, _head(manifest) + rows, created)):
                hasher.update(chunk)
                size += file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        proven = replace(manifest, bundle_sha256=hasher.hexdigest(), bundle_size=size)
        publish(manifest_path(path), [_packed_manifest(_head(proven) + rows)])
        sync_directory(folder)
        return path

    def _chunks(self, manifest: Iterable[bytes]) -> Iterator[bytes]:
        end = bytes(2 * tarfile.BLOCKSIZE)
        if self._container == "tar.bz2":
            yield _bz2(b"".join(manifest))
            yield from self._pieces
            yield _bz2(b"".join((*self._taken, *self._loose, end)))
        else:
            compressor = zstandard.ZstdCompressor(write_checksum=True).compressobj()
            yield from filter(None, map(compressor.compress, (*manifest, *self._taken, *self._loose, end)))
            yield compressor.flush()


def _bz2(data: bytes) -> bytes:
    return bz2.compress(data, _BZ2_LEVEL)


def bundle_name(domain: str, created: int, job: str, container: str) -> str:
    """The file name of a bundle."""
    return f"{domain}.{created}.{job}.{container}"


def parse_bundle_name(name: str) -> tuple[str, int, str, str] | None:
    """Domain, time, job and container of a bundle's file name; None if it is not one."""
    match = _FILE_NAME.fullmatch(name)
    return (match["domain"], int(match["time"]), match["job"], match["format"]) if match else None


def manifest_path(bundle: Path) -> Path:
    """Where the manifest beside a bundle is."""
    return bundle.with_name(bundle.name + MANIFEST_SUFFIX)


def manifest_bytes(manifest: Manifest) -> bytes:
    """The file beside the bundle."""
    return _packed_manifest(_head(manifest) + b"".join(map(_row, manifest.pages)))


def parse_manifest(data: bytes) -> Manifest:
    """Read the file beside a bundle; BundleError if it is not one."""
    try:
        text = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(data).read(_MAX_MANIFEST_BYTES)
        length = zstandard.frame_content_size(data)
    except zstandard.ZstdError as error:
        raise BundleError(f"the manifest cannot be unpacked: {error}") from error
    if len(text) != length:  # a cut frame unpacks without an error up to where it is cut
        raise BundleError("the manifest is incomplete")
    return _parse_json_lines(text)


def read_manifest(bundle: Path) -> Manifest:
    """The manifest of a stored bundle: from the file beside it, or else from inside."""
    try:
        return parse_manifest(manifest_path(bundle).read_bytes())
    except (OSError, BundleError):
        return manifest_inside(bundle)


def manifest_inside(bundle: Path) -> Manifest:
    """The manifest in the bundle itself: its first member, so this reads the beginning only."""
    with _reading(bundle), _open_tar(bundle) as tar:
        member = tar.next()
        if member is None or member.name != MANIFEST_NAME:
            raise BundleError(f"{bundle.name} does not begin with a manifest")
        return _parse_json_lines(_content(tar, member))


def read_pages(bundle: Path) -> Iterator[tuple[PageEntry, bytes, bytes]]:
    """Each page with its body and its data.xml, checked against the manifest; BundleError if anything differs."""
    with _reading(bundle), _open_tar(bundle) as tar:
        first = tar.next()
        if first is None or first.name != MANIFEST_NAME:
            raise BundleError(f"{bundle.name} does not begin with a manifest")
        for entry in _parse_json_lines(_content(tar, first)).pages:
            body = _next_content(tar, entry.data_member, entry.size)
            xml = _next_content(tar, entry.xml_member)
            if (_sha1(body), _sha1(xml)) != (entry.meta.sha1, entry.xml_sha1):
                raise BundleError(f"{bundle.name}: {entry.folder} does not match its digest")
            yield entry, body, xml
        if tar.next() is not None:
            raise BundleError(f"{bundle.name} has members that its manifest does not list")


def file_sha256(path: Path) -> str:
    """Digest of a whole file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class _reading:
    """Turns what tarfile, bz2 and zstd raise on damaged input into BundleError."""

    def __init__(self, bundle: Path) -> None:
        self._bundle = bundle

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, tarfile.TarError | EOFError | zstandard.ZstdError | ValueError | OSError):
            raise BundleError(f"{self._bundle.name} cannot be read: {error}") from error


def _open_tar(bundle: Path) -> tarfile.TarFile:
    stream: Any
    if bundle.name.endswith(".zst"):
        stream = zstandard.open(bundle, "rb")
    else:
        stream = bz2.open(bundle, "rb")  # noqa: SIM115
    return tarfile.open(fileobj=cast(IO[bytes], stream), mode="r|")


def _next_content(tar: tarfile.TarFile, name: str, max_bytes: int | None = None) -> bytes:
    member = tar.next()
    if member is None or member.name != name:
        raise BundleError(f"{name} is missing; found {member.name if member else 'the end'}")
    return _content(tar, member, max_bytes)


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo, max_bytes: int | None = None) -> bytes:
    if member.size > (_MAX_MANIFEST_BYTES if max_bytes is None else max_bytes):
        raise BundleError(f"{member.name} is larger than it may be")
    file = tar.extractfile(member)
    if file is None:
        raise BundleError(f"{member.name} is no file")
    return file.read()


def _member(name: str, data: bytes, time: int) -> tuple[bytes, bytes, bytes]:
    return _tar_header(name, len(data), time), data, bytes(-len(data) % tarfile.BLOCKSIZE)


def _tar_header(name: str, size: int, time: int) -> bytes:
    """As tarfile makes it, which takes eight times as long; it does so for names that need more than a block."""
    if len(name) <= tarfile.LENGTH_NAME and name.isascii() and 0 <= size < 8**11 and 0 <= time < 8**11:
        numbers = b"%011o" % size, b"%011o" % time
        header = _TAR_HEADER.pack(name.encode(), *_OWNER, *numbers, b" " * 8, b"0", b"", b"ustar\x0000")
        return header[:148] + b"%06o\0 " % sum(header) + header[156:]
    info = tarfile.TarInfo(name)
    info.size = size
    info.mtime = time
    return info.tobuf(tarfile.PAX_FORMAT)


def _packed_manifest(lines: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(lines)


def _head(manifest: Manifest) -> bytes:
    head = {"version": FORMAT_VERSION} | asdict(replace(manifest, pages=()))
    del head["pages"]
    return _line(head)


def _row(page: PageEntry) -> bytes:
    # asdict copies deeply, which takes longer than all the rest
    row = {name: getattr(page.meta, name) for name in _META_FIELDS}
    own = {"folder": page.folder, "data_name": page.data_name, "size": page.size, "xml_sha1": page.xml_sha1}
    return _line(row | own)


def _line(row: dict[str, Any]) -> bytes:
    return (json.dumps(row, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass")


def _parse_json_lines(data: bytes) -> Manifest:
    try:
        head, *rows = (json.loads(line) for line in data.decode("utf-8", "surrogatepass").split("\n") if line)
        if head.pop("version") != FORMAT_VERSION:
            raise BundleError("the manifest is of another version")
        return Manifest(pages=tuple(_entry(row) for row in rows), **head)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise BundleError(f"the manifest is damaged: {error}") from error


def _entry(row: dict[str, Any]) -> PageEntry:
    own = {key: row.pop(key) for key in ("folder", "data_name", "size", "xml_sha1")}
    return PageEntry(meta=PageMeta(**row), **own)


def _sha1(data: bytes) -> str:
    return hashlib.sha1(data, usedforsecurity=False).hexdigest()

"""What a bundle says of itself: the values, and their form: JSON, a line for each object. Parsed as a stream."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import zstandard

from common.bundle.checks import EntryCheck, check_head
from common.bundle.limits import MAX_LINE_BYTES, MAX_MANIFEST_BYTES, MAX_WINDOW_BYTES, PIECE_BYTES, manifest_room
from common.errors import BundleError, UnsoundBundle
from common.page import XML_NAME, PageMeta

FORMAT_VERSION = 1

_META_FIELDS = tuple(field.name for field in fields(PageMeta))


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


# --- writing ---------------------------------------------------------------------------------------------------


def manifest_bytes(manifest: Manifest) -> bytes:
    """The file beside the bundle."""
    return packed(head_line(manifest) + b"".join(map(page_line, manifest.pages)))


def packed(lines: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(lines)


def head_line(manifest: Manifest) -> bytes:
    head = {"version": FORMAT_VERSION} | asdict(replace(manifest, pages=()))
    del head["pages"]
    return _line(head)


def page_line(page: PageEntry) -> bytes:
    # asdict copies deeply, which takes longer than all the rest
    row = {name: getattr(page.meta, name) for name in _META_FIELDS}
    own = {"folder": page.folder, "data_name": page.data_name, "size": page.size, "xml_sha1": page.xml_sha1}
    return _line(row | own)


def _line(row: dict[str, Any]) -> bytes:
    text = json.dumps(row, ensure_ascii=False) + "\n"
    try:
        return text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which is no character
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


# --- parsing ---------------------------------------------------------------------------------------------------


def parse_manifest(data: bytes) -> Manifest:
    """Read the file beside a bundle. BundleError if it is not whole, UnsoundBundle if it says what cannot be."""
    try:
        length = zstandard.frame_content_size(data)
        room = manifest_room(len(data))
        if length > room:
            raise UnsoundBundle(f"the manifest unpacks to {length} bytes, more than the {room} that it may")
        return parse_lines(_unpacked(data, length))
    except zstandard.ZstdError as error:
        raise BundleError(f"the manifest cannot be unpacked: {error}") from error


def parse_head(data: bytes) -> Manifest:
    """The same without the pages, of which only is looked at whether they have arrived. Cheap."""
    try:
        length = zstandard.frame_content_size(data)
        lines = _lines(_unpacked(data, min(length, MAX_MANIFEST_BYTES)))
        head = parse_lines([next(lines, b"")])
        for _ in lines:
            pass
    except zstandard.ZstdError as error:
        raise BundleError(f"the manifest cannot be unpacked: {error}") from error
    return head


def _unpacked(data: bytes, length: int) -> Iterator[bytes]:
    stream = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES).stream_reader(data)
    number = 0
    while number <= length and (piece := stream.read(PIECE_BYTES)):
        number += len(piece)
        yield piece
    if number != length:  # a cut frame unpacks without an error up to where it is cut
        raise BundleError("the manifest is incomplete")


def parse_lines(pieces: Iterable[bytes]) -> Manifest:
    """Each line is checked as it comes, so that one that is none costs no more than what is before it."""
    lines = enumerate(_lines(pieces), start=1)
    try:
        _, first = next(lines, (0, b""))
        number = 1
        head = _head(first)
        check_head(head)
        check, pages = EntryCheck(head), []
        for number, line in lines:  # noqa: B007
            entry = _entry(json.loads(line))
            check(entry)
            pages.append(entry)
        return replace(head, pages=tuple(pages))
    except UnsoundBundle as error:
        raise UnsoundBundle(f"line {number}: {error}") from error
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError) as error:
        raise BundleError(f"line {number} of the manifest is damaged: {error!r:.200}") from error


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        if max(map(len, (*lines, rest))) > MAX_LINE_BYTES:
            raise UnsoundBundle(f"a line of the manifest has more than {MAX_LINE_BYTES} bytes")
        yield from filter(None, lines)
    if rest:
        yield rest


def _head(line: bytes) -> Manifest:
    row = json.loads(line)
    if row.pop("version") != FORMAT_VERSION:
        raise BundleError("the manifest is of another version")
    return Manifest(pages=(), **row)


def _entry(row: dict[str, Any]) -> PageEntry:
    own = {key: row.pop(key) for key in ("folder", "data_name", "size", "xml_sha1")}
    return PageEntry(meta=PageMeta(**row), **own)

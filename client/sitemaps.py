"""Reads sitemaps: bytes in, addresses out. Pure: fetches nothing, follows no index, decides nothing.

Takes what sites publish under that name: sitemap XML and indexes of sitemaps (sitemaps.org), RSS and Atom feeds, plain
text with an address a line; each of them also in gzip. Never raises: of a damaged file it keeps what came before the
damage, and says what is wrong. Memory is bounded by the size of the file; no entity is ever expanded.
"""

import io
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from email.utils import parsedate_to_datetime
from typing import NamedTuple
from xml.parsers import expat

from client import charset
from client.encoding import Decoder, EncodingError
from common.urls import MAX_URL_LENGTH, resolve

MAX_BYTES = 50 << 20  # unpacked; this and the next are the limits of sitemaps.org
MAX_ENTRIES = 50_000

_GZIP_MAGIC = b"\x1f\x8b"
_SMALL_BYTES = 1 << 20
_PIECE = 1 << 16
_PACKED_PIECE = 1 << 10  # of gzip: what is lost before damage
_TOO_LONG = f"is longer than {MAX_BYTES} bytes"
_MAX_DEPTH = 64  # of elements; each costs memory
_MAX_TOKEN_BYTES = 1 << 18  # a longer tag is an attack: expat looks at it anew with each piece
_MAX_MENDED = 10 * MAX_ENTRIES
_MAX_TIME = 64
_MAX_TEXT = 2 * MAX_URL_LENGTH  # of a field; white space around an address does not matter
_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xfe\xff", "utf-16be"), (b"\xff\xfe", "utf-16le"))
_DECLARED = re.compile(rb"""\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9._:-]{1,40})["']""")
_CHARSET = re.compile(r"""charset\s*=\s*["']?([^\s"';]{1,40})""", re.IGNORECASE)
# XML 1.0 has no place for them, not even as references. In text they may be there by mistake.
_CONTROLS = {code: " " for code in (*range(0x20), 0xFFFE, 0xFFFF) if code not in (0x9, 0xA, 0xD)}

_AMPERSAND = re.compile(r"<!\[CDATA\[|\]\]>|&(?!(?:#[0-9]{1,7}|#x[0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{0,31});)")
_HALF = re.compile(r"(?:[&<][^&<>;]{0,40}|\]\]?)\Z")  # what the next piece may make one of these
_UNKNOWN = "\ufffd"

# Root element -> the element that is an entry. Names without prefix, in lower case.
_RECORDS = {"urlset": "url", "sitemapindex": "sitemap", "rss": "item", "rdf": "item", "feed": "entry"}
# Of an entry, the best first.
_ADDRESSES = ("loc", "link", "guid")
_TIMES = ("lastmod", "pubdate", "updated", "date", "published")
_FIELDS = frozenset([*_ADDRESSES, *_TIMES])
_ABSOLUTE = re.compile(r"\s*https?://", re.IGNORECASE)

_W3C_TIME = re.compile(
    r"(\d{4})(?:-(\d\d?)(?:-(\d\d?)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,]\d+)?)?\s*(Z|[+-]\d\d(?::?\d\d)?)?)?)?)?",
    re.IGNORECASE | re.ASCII,
)


class Entry(NamedTuple):
    """One address of a sitemap."""

    url: str  # an address, as common.urls has it
    modified: int = 0  # when it changed last, in seconds since 1970, UTC; 0: not known


class Sitemap(NamedTuple):
    """What a file says, each address once, in its order. Feeds have entries only, indexes have sitemaps only."""

    entries: tuple[Entry, ...] = ()
    sitemaps: tuple[Entry, ...] = ()
    problem: str = ""  # what is wrong with the file; what came before it counts

    def packed(self) -> bytes:
        """To be read in another process."""
        return json.dumps(self).encode()

    @classmethod
    def unpacked(cls, data: bytes) -> "Sitemap":
        entries, found, problem = json.loads(data)
        return cls(tuple(Entry(*each) for each in entries), tuple(Entry(*each) for each in found), problem)


class _Stop(Exception):
    """Nothing more is read; says why."""


def read(body: bytes, url: str, content_type: str = "") -> Sitemap:
    """The sitemap that `url` answered with; `content_type` as in the header, with its charset if there is one.

    Relative addresses are resolved in XML, where nothing else can be meant, and refused in plain text.
    """
    collected = _Collected(url)
    content, problem = _unpacked(body)
    stream = _text(content, content_type)
    try:
        if _is_xml(content):
            _read_xml(stream, collected)
        else:
            _read_lines(stream, collected, is_whole=not problem)
    except _Stop as stop:
        problem = problem or str(stop)
    return collected.sitemap(problem)


def may_be_large(body: bytes) -> bool:
    """Whether reading it may take more than a moment, or much memory."""
    return len(body) > _SMALL_BYTES or body.startswith(_GZIP_MAGIC)


class _Collected:
    """The addresses so far."""

    def __init__(self, base: str) -> None:
        self._base = base
        self._entries: dict[str, int] = {}
        self._sitemaps: dict[str, int] = {}

    def add(self, reference: str, modified: int, is_sitemap: bool = False) -> None:
        found = self._sitemaps if is_sitemap else self._entries
        # Without what could not be read it would be another address.
        url = resolve(reference.strip(), self._base) if reference and _UNKNOWN not in reference else None
        if url is None:
            return
        if url not in found and len(found) >= MAX_ENTRIES:
            raise _Stop(f"has more than {MAX_ENTRIES} entries")
        found[url] = max(modified, found.get(url, 0))

    def sitemap(self, problem: str) -> Sitemap:
        return Sitemap(
            tuple(Entry(*item) for item in self._entries.items()),
            tuple(Entry(*item) for item in self._sitemaps.items()),
            problem,
        )


def _unpacked(body: bytes) -> tuple[bytes, str]:
    """Without gzip, at most MAX_BYTES, and what is wrong with it."""
    if not body.startswith(_GZIP_MAGIC):
        return (body, "") if len(body) <= MAX_BYTES else (body[:MAX_BYTES], _TOO_LONG)
    decoder, problem = Decoder("gzip", MAX_BYTES, partial=True), ""
    try:
        for start in range(0, len(body), _PACKED_PIECE):
            decoder.feed(body[start : start + _PACKED_PIECE])
            if decoder.is_full:
                problem = _TOO_LONG
                break
    except EncodingError as error:
        problem = f"is damaged: {error}"
    if not problem and not decoder.is_complete:
        problem = "is damaged: the gzip data break off"
    return decoder.body(), problem


def _text(content: bytes, content_type: str) -> io.TextIOWrapper:
    """Decoded as it is read, so that only a piece of it is there as text."""
    head = content[:1024]
    encoding = next((name for mark, name in _BOMS if head.startswith(mark)), None)
    if encoding is None:
        labels = [match[1] for match in [_CHARSET.search(content_type)] if match]
        labels += [match[1].decode("ascii") for match in [_DECLARED.match(head)] if match]
        encoding = next(filter(None, map(charset.encoding_for, labels)), "utf-8")
        if encoding.startswith("utf-16"):  # without a mark: what can say so in ASCII is in another one
            encoding = "utf-8"
    try:
        return io.TextIOWrapper(io.BytesIO(content), encoding, "replace")
    except LookupError:  # one that Python does not know by this name
        return io.TextIOWrapper(io.BytesIO(content), "utf-8", "replace")


def _is_xml(content: bytes) -> bool:
    head = content[:1024].lstrip(b"\xef\xbb\xbf\xfe\xff\x00\t\n\r ")
    return head.startswith(b"<")


def _read_lines(stream: io.TextIOWrapper, collected: _Collected, is_whole: bool) -> None:
    is_begin = True  # of a line; a piece of one that is too long is no address, nor is half of the last one
    while line := stream.readline(_MAX_TEXT):
        address = line.strip("\ufeff\x00\t\n\r ")
        has_end = line.endswith("\n") or (is_whole and len(line) < _MAX_TEXT)
        if is_begin and has_end and _ABSOLUTE.match(address):
            collected.add(address, 0)
        is_begin = line.endswith("\n")


def _read_xml(stream: io.TextIOWrapper, collected: _Collected) -> None:
    parser = expat.ParserCreate("utf-8")  # whatever it says itself: it is decoded already
    parser.UseForeignDTD(True)  # entities that nobody declares, such as &nbsp;, are no damage
    parser.EntityDeclHandler = _refuse_entity
    handler = _Handler(collected)
    parser.StartElementHandler = handler.start
    parser.EndElementHandler = handler.end
    parser.CharacterDataHandler = handler.text
    parser.SkippedEntityHandler = lambda *_: handler.text(_UNKNOWN)
    parser.buffer_text = True
    fed = 0
    try:
        for data in _clean_pieces(stream):
            fed += len(data)
            parser.Parse(data, False)
            if fed - parser.CurrentByteIndex > _MAX_TOKEN_BYTES:
                raise _Stop(f"has a tag of more than {_MAX_TOKEN_BYTES} bytes")
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise _Stop(f"is damaged: {error}") from error


def _clean_pieces(stream: io.TextIOWrapper) -> Iterator[bytes]:
    """In UTF-8, without white space at the beginning, which no XML may have, forbidden characters, open ampersands."""
    mender, rest, begun = _Mender(), "", False
    while piece := stream.read(_PIECE):
        if not begun:
            piece = piece.lstrip("\ufeff\x00\t\n\r ")
            begun = piece != ""
        text = rest + piece.translate(_CONTROLS)
        half = _HALF.search(text)
        whole, rest = (text[: half.start()], half[0]) if half else (text, "")
        yield mender.mended(whole).encode()
    yield mender.mended(rest).encode()


class _Mender:
    """Closes open ampersands, the most common mistake in sitemaps: <loc>http://example.org/?a=1&b=2</loc>."""

    def __init__(self) -> None:
        self._in_cdata = False  # there they are no mistake
        self._times = 0

    def mended(self, text: str) -> str:
        if "&" not in text and not self._in_cdata and "<![" not in text:
            return text
        return _AMPERSAND.sub(self._closed, text)

    def _closed(self, found: re.Match[str]) -> str:
        if found[0] != "&":
            self._in_cdata = found[0] == "<![CDATA["
        if found[0] != "&" or self._in_cdata:
            return found[0]
        self._times += 1
        if self._times > _MAX_MENDED:
            raise _Stop("has too many open ampersands")
        return "&amp;"


def _refuse_entity(*_: object) -> None:
    raise _Stop("declares entities")


class _Handler:
    """What expat calls. Prefixes of names are compared as they are written: many files do not declare them."""

    def __init__(self, collected: _Collected) -> None:
        self._collected = collected
        self._depth = 0
        self._record = ""  # the name of entries in this file
        self._inside = 0  # depth of the entry that we are in; 0: in none
        self._prefix = ""  # of that entry; fields of other vocabularies, such as image:loc, have another
        self._field = ""  # that we are in
        self._pieces: list[str] = []
        self._length = 0
        self._fields: dict[str, str] = {}

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise _Stop(f"has more than {_MAX_DEPTH} elements in each other")
        prefix, name = _split(name)
        if self._depth == 1:
            self._record = _RECORDS.get(name, "")
            if not self._record:
                raise _Stop(f"is no sitemap: <{name[:40]}>")
        elif not self._inside:
            if name == self._record:
                self._inside, self._prefix, self._fields = self._depth, prefix, {}
        elif self._depth == self._inside + 1 and (prefix == self._prefix or name == "date"):
            self._begin_field(name, attributes)

    def _begin_field(self, name: str, attributes: dict[str, str]) -> None:
        if name == "link" and "href" in attributes:  # Atom
            if attributes.get("rel", "alternate") == "alternate":
                self._fields.setdefault("link", attributes["href"][:_MAX_TEXT])
        elif name in _FIELDS and attributes.get("isPermaLink") != "false":
            self._field, self._pieces, self._length = name, [], 0

    def text(self, data: str) -> None:
        if self._field and self._length <= _MAX_TEXT:
            self._pieces.append(data)
            self._length += len(data)

    def end(self, name: str) -> None:
        if self._inside and self._depth == self._inside + 1 and self._field:
            if self._length <= _MAX_TEXT:
                self._fields.setdefault(self._field, "".join(self._pieces).strip())
            self._field = ""
        elif self._depth == self._inside:
            self._inside = 0
            self._add()
        self._depth -= 1

    def _add(self) -> None:
        fields = self._fields
        if not _ABSOLUTE.match(fields.get("guid", "")):  # often a mere number
            fields.pop("guid", None)
        address = next((fields[name] for name in _ADDRESSES if fields.get(name)), "")
        time = next((fields[name] for name in _TIMES if fields.get(name)), "")
        self._collected.add(address, _seconds(time), is_sitemap=self._record == "sitemap")


def _split(name: str) -> tuple[str, str]:
    prefix, _, local = name.rpartition(":")
    return prefix, local.lower()


def _seconds(text: str) -> int:
    """A time as sitemaps (W3C) or feeds (RFC 822) write it, as seconds since 1970, UTC; 0 for nonsense."""
    text = text.strip()[:_MAX_TIME]
    try:
        match = _W3C_TIME.fullmatch(text)
        time = _w3c_time(match) if match else parsedate_to_datetime(text)
        return max(0, int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()))
    except (ValueError, TypeError, IndexError, OverflowError):
        return 0


def _w3c_time(match: re.Match[str]) -> datetime:
    year, month, day, hour, minute, second = (int(part) if part else None for part in match.groups()[:6])
    assert year is not None
    time = datetime(year, month or 1, day or 1, hour or 0, minute or 0, second or 0, tzinfo=UTC)
    zone = match[7] or "Z"
    if zone in "Zz":
        return time
    offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[3:].lstrip(":") or 0))
    return time.replace(tzinfo=timezone(-offset if zone[0] == "-" else offset))

"""Reads sitemaps: bytes in, addresses out. Pure: fetches nothing, follows no index, decides nothing.

Takes what sites publish under that name: sitemap XML and indexes of sitemaps (sitemaps.org), RSS and Atom feeds, plain
text with an address a line; each of them also in gzip. Never raises: of a damaged file it keeps what came before the
damage, and says what is wrong. Memory is bounded by the size of the file; no entity is ever expanded.
"""

import io
import re
from collections.abc import Iterator
from xml.parsers import expat

from client import charset
from client.blanks import trimmed
from client.encoding import Decoder, EncodingError
from client.sitemap import MAX_ENTRIES, MAX_TEXT, UNKNOWN, Collected, Entry, Sitemap, Stop
from client.sitemap_xml import Handler

__all__ = ["MAX_BYTES", "MAX_ENTRIES", "Entry", "Sitemap", "may_be_large", "read"]

MAX_BYTES = 50 << 20  # unpacked; this and MAX_ENTRIES are the limits of sitemaps.org

_GZIP_MAGIC = b"\x1f\x8b"
_SMALL_BYTES = 1 << 20
_PIECE = 1 << 16
_PACKED_PIECE = 1 << 10  # of gzip: what is lost before damage
_TOO_LONG = f"is longer than {MAX_BYTES} bytes"
_MAX_TOKEN_BYTES = 1 << 18  # a longer tag is an attack: expat looks at it anew with each piece
_MAX_MENDED = 10 * MAX_ENTRIES
_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xfe\xff", "utf-16be"), (b"\xff\xfe", "utf-16le"))
_DECLARED = re.compile(rb"""\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9._:-]{1,40})["']""")
_CHARSET = re.compile(r"""charset\s*=\s*["']?([^\s"';]{1,40})""", re.IGNORECASE)
# XML 1.0 has no place for them, not even as references. In text they may be there by mistake.
_CONTROLS = {code: " " for code in (*range(0x20), 0xFFFE, 0xFFFF) if code not in (0x9, 0xA, 0xD)}

_AMPERSAND = re.compile(r"<!\[CDATA\[|\]\]>|&(?!(?:#[0-9]{1,7}|#x[0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{0,31});)")
_HALF = re.compile(r"(?:[&<][^&<>;]{0,40}|\]\]?)\Z")  # what the next piece may make one of these


def read(body: bytes, url: str, content_type: str = "") -> Sitemap:
    """The sitemap that `url` answered with; `content_type` as in the header, with its charset if there is one.

    Relative addresses are resolved in XML, where nothing else can be meant, and refused in plain text. A file that has
    something to say and lists no address has a problem, too.
    """
    collected = Collected(url)
    content, problem = _unpacked(body)
    stream = _text(content, content_type)
    try:
        if _is_xml(content):
            _read_xml(stream, collected)
        else:
            _read_lines(stream, collected, is_whole=not problem)
    except Stop as stop:
        problem = problem or str(stop)
    return collected.sitemap(problem)


def may_be_large(body: bytes) -> bool:
    """Whether reading it may take more than a moment, or much memory."""
    return len(body) > _SMALL_BYTES or body.startswith(_GZIP_MAGIC)


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


def _read_lines(stream: io.TextIOWrapper, collected: Collected, is_whole: bool) -> None:
    is_begin = True  # of a line; a piece of one that is too long is no address, nor is half of the last one
    while line := stream.readline(MAX_TEXT):
        address = trimmed(line)
        has_end = line.endswith("\n") or (is_whole and len(line) < MAX_TEXT)
        if is_begin and address:
            collected.tried += 1
            if has_end and collected.is_absolute(address):
                collected.add(address)
        is_begin = line.endswith("\n")
    tried = collected.tried
    collected.nothing = f"lists nothing: none of its {tried} lines is an address" if tried else "is empty"


def _read_xml(stream: io.TextIOWrapper, collected: Collected) -> None:
    parser = expat.ParserCreate("utf-8")  # whatever it says itself: it is decoded already
    parser.UseForeignDTD(True)  # entities that nobody declares, such as &nbsp;, are no damage
    parser.EntityDeclHandler = _refuse_entity
    handler = Handler(collected)
    parser.StartElementHandler = handler.start
    parser.EndElementHandler = handler.end
    parser.CharacterDataHandler = handler.text
    parser.SkippedEntityHandler = lambda *_: handler.text(UNKNOWN)
    parser.buffer_text = True
    fed = 0
    try:
        for data in _clean_pieces(stream):
            fed += len(data)
            parser.Parse(data, False)
            if fed - parser.CurrentByteIndex > _MAX_TOKEN_BYTES:
                raise Stop(f"has a tag of more than {_MAX_TOKEN_BYTES} bytes")
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise Stop(f"is damaged: {error}") from error


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
            raise Stop("has too many open ampersands")
        return "&amp;"


def _refuse_entity(*_: object) -> None:
    raise Stop("declares entities")

"""One stored page: its metadata, and `data.xml`, which carries them beside the body. The schema is page.xsd."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from xml.parsers import expat

from common.errors import BundleError

XML_NAME = "data.xml"
MAX_TIME = 4_102_444_800  # the year 2100, in seconds since 1970: what is later is no time of a crawl

_LAST_SECOND = 253_402_300_799  # of the year 9999
_LINKS_AT_ONCE = 2_000  # hardly any page has more
_DEPTH = 3  # of what is read in a data.xml: page, meta, url
_MAX_DEPTH = 50
_MAX_ELEMENTS = 200_000  # a page has 50,000 links at most
_MAX_TEXT = 20_000_000  # characters that are kept; ours: 8,000,000 of addresses, 3,000,000 of anchors and text
_MAX_TAG_BYTES = 1 << 17  # in which an address fits, whatever of it is escaped
_PIECE_BYTES = 1 << 16  # parsed at once

# Characters that no XML 1.0 document may contain; pages contain them all the same.
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_CONTROLS = bytes(byte for byte in range(0x20) if byte not in b"\t\n\r")
_NO_CHARACTERS = ("\ufffe".encode(), "\uffff".encode())


@dataclass(frozen=True, slots=True)
class PageMeta:
    """What is recorded of a page besides its content. Empty text: the server did not say."""

    url: str  # the identity
    original_url: str  # the address of the job
    final_url: str  # the address that answered, after redirects within the same identity
    title: str
    crawl_time: float  # seconds since 1970, UTC
    status: int
    content_type: str
    encoding: str
    etag: str
    last_modified: str
    server_date: str
    sha1: str  # of the body, hexadecimal
    digest: str  # of the identity, hexadecimal


@dataclass(frozen=True, slots=True)
class PageText:
    """What was mined from a page. Links are pairs of address and anchor text."""

    links: Iterable[tuple[str, str]] = ()
    description: str = ""
    keywords: str = ""
    text: str = ""
    http_encoding: str = ""  # what the HTTP header said, if the page is not in that


def page_xml(meta: PageMeta, content: PageText) -> bytes:
    """data.xml of one page. Built as text: an element tree costs ten times as much and this runs for every page."""
    # In pieces: a character beyond the 65,536th makes all of a text take four bytes for each.
    return b"".join(map(_encoded, _pieces(meta, content)))


def _pieces(meta: PageMeta, content: PageText) -> Iterator[str]:
    parts = ['<?xml version="1.0" encoding="UTF-8"?>\n<page>\n <meta>\n']
    parts += [f"  <{tag}>{_escaped(value)}</{tag}>\n" for tag, value in _meta_elements(meta)]
    if content.http_encoding:
        at = parts.index(f"  <encoding>{_escaped(meta.encoding)}</encoding>\n")
        parts[at] = parts[at].replace("<encoding>", f'<encoding insteadOf="{_escaped(content.http_encoding)}">')
    parts.append(" </meta>\n <links>\n")
    links = iter(content.links)
    while some := list(islice(links, _LINKS_AT_ONCE)):
        parts += [f'  <link url="{_escaped(url)}">{_escaped(anchor)}</link>\n' for url, anchor in some]
        if len(some) == _LINKS_AT_ONCE:
            yield "".join(parts)
            parts = []
    parts.append(" </links>\n <data>\n")
    parts += [f"  <{tag}>{_escaped(value)}</{tag}>\n" for tag, value in _data_elements(content)]
    parts.append(" </data>\n</page>\n")
    yield "".join(parts)


def len_in_xml(value: str) -> int:
    """How many characters it takes in a data.xml."""
    return len(_escaped(value))


def links_in(xml: bytes) -> list[str]:
    """The addresses that a data.xml lists as links; none if it cannot be read."""
    try:
        return [url for url, _ in _parsed(xml).links]
    except BundleError:
        return []


def read_page_xml(xml: bytes) -> tuple[PageMeta, PageText]:
    """Undo `page_xml`; the crawl time comes back in whole seconds. BundleError if it is no data.xml.

    We never write a document type, and one could define entities that expand without end: it is refused.
    """
    page = _parsed(xml)
    description, keywords, text = (page.data.get(tag, "") for tag in ("description", "keywords", "text"))
    try:
        return _read_meta(page.meta), PageText(page.links, description, keywords, text, page.http_encoding)
    except (KeyError, ValueError, OverflowError) as error:
        raise BundleError(f"a data.xml cannot be read: {error!r:.200}") from error


@dataclass(slots=True)
class _Parsed:
    """What is told of a data.xml while it is read. Nothing is kept of elements that are not ours."""

    meta: dict[str, str] = field(default_factory=dict)
    data: dict[str, str] = field(default_factory=dict)
    links: list[tuple[str, str]] = field(default_factory=list)
    http_encoding: str = ""
    path: list[str] = field(default_factory=list)  # of the element that is open
    attributes: dict[str, str] = field(default_factory=dict)
    text: list[str] = field(default_factory=list)
    elements: int = 0
    characters: int = 0

    def on_start(self, tag: str, attributes: dict[str, str]) -> None:
        self.path.append(tag)
        self.elements += 1
        if len(self.path) > _MAX_DEPTH or self.elements > _MAX_ELEMENTS:
            raise BundleError("a data.xml has too many elements")
        if len(self.path) == _DEPTH:
            self.attributes, self.text = attributes, []
            self._keep(len(tag) + sum(map(len, attributes.values())))

    def on_text(self, text: str) -> None:
        if len(self.path) == _DEPTH:
            self._keep(len(text))
            self.text.append(text)

    def _keep(self, characters: int) -> None:
        """One of them that is beyond the first 65,536 of Unicode makes each of its text take four bytes."""
        self.characters += characters
        if self.characters > _MAX_TEXT:
            raise BundleError("a data.xml has too much text")

    def on_end(self, tag: str) -> None:
        if len(self.path) == _DEPTH and self.path[0] == "page":
            text = "".join(self.text)
            if self.path[1] == "meta":
                self.meta[tag] = text
                if tag == "encoding":
                    self.http_encoding = self.attributes.get("insteadOf", "")
            elif self.path[1] == "data":
                self.data[tag] = text
            elif self.path[1:] == ["links", "link"]:
                self.links.append((self.attributes.get("url", ""), text))
        self.path.pop()

    def on_doctype(self, *_: object) -> None:
        raise BundleError("a data.xml has a document type")


def _parsed(xml: bytes) -> _Parsed:
    page = _Parsed()
    parser = expat.ParserCreate("utf-8")  # whatever encoding it declares
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = page.on_start, page.on_end
    parser.CharacterDataHandler, parser.StartDoctypeDeclHandler = page.on_text, page.on_doctype
    try:
        for start in range(0, len(xml), _PIECE_BYTES):
            parser.Parse(xml[start : start + _PIECE_BYTES], False)
            if start - parser.CurrentByteIndex > _MAX_TAG_BYTES:
                raise BundleError("a data.xml has a tag without end")
        parser.Parse(b"", True)
    except (expat.ExpatError, ValueError) as error:
        raise BundleError(f"a data.xml cannot be read: {error!r:.200}") from error
    return page


def _read_meta(meta: dict[str, str]) -> PageMeta:
    return PageMeta(
        url=meta["url"],
        original_url=meta["originalUrl"],
        final_url=meta["finalUrl"],
        title=meta["title"],
        crawl_time=datetime.fromisoformat(meta["crawlTime"]).timestamp(),
        status=int(meta["status"]),
        content_type=meta["contentType"],
        encoding=meta["encoding"],
        etag=meta["etag"],
        last_modified=meta["lastModified"],
        server_date=meta["serverDate"],
        sha1=meta["sha1"],
        digest=meta["digest"],
    )


def iso_time(seconds: float) -> str:
    """UTC time as in data.xml: 2026-01-31T12:00:00Z. What is no time that a calendar has is the nearest one."""
    return datetime.fromtimestamp(min(max(seconds, 0), _LAST_SECOND), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _escaped(value: str) -> str:
    """As text, or as an attribute in double quotes."""
    value = value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return value.replace('"', "&quot;").replace("\r", "&#13;")


def _encoded(document: str) -> bytes:
    """In UTF-8, with what XML forbids replaced. Looked for in bulk first: the expression takes twenty times as long."""
    try:
        data = document.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        data = b""
    if data and len(data.translate(None, _CONTROLS)) == len(data) and not any(mark in data for mark in _NO_CHARACTERS):
        return data
    return _NOT_XML.sub("\ufffd", document).encode()


def _meta_elements(meta: PageMeta) -> list[tuple[str, str]]:
    return [
        ("url", meta.url),
        ("originalUrl", meta.original_url),
        ("finalUrl", meta.final_url),
        ("title", meta.title),
        ("crawlTime", iso_time(meta.crawl_time)),
        ("status", str(meta.status)),
        ("contentType", meta.content_type),
        ("encoding", meta.encoding),
        ("etag", meta.etag),
        ("lastModified", meta.last_modified),
        ("serverDate", meta.server_date),
        ("sha1", meta.sha1),
        ("digest", meta.digest),
    ]


def _data_elements(content: PageText) -> list[tuple[str, str]]:
    elements = [("description", content.description), ("keywords", content.keywords), ("text", content.text)]
    return [(tag, value) for tag, value in elements if value]

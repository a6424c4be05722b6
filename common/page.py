"""One stored page: its metadata, and `data.xml`, which carries them beside the body. The schema is page.xsd."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from xml.etree import ElementTree

from common.errors import BundleError

XML_NAME = "data.xml"

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
    parts = ['<?xml version="1.0" encoding="UTF-8"?>\n<page>\n <meta>\n']
    parts += [f"  <{tag}>{_escaped(value)}</{tag}>\n" for tag, value in _meta_elements(meta)]
    if content.http_encoding:
        at = parts.index(f"  <encoding>{_escaped(meta.encoding)}</encoding>\n")
        parts[at] = parts[at].replace("<encoding>", f'<encoding insteadOf="{_escaped(content.http_encoding)}">')
    parts.append(" </meta>\n <links>\n")
    parts += [f'  <link url="{_escaped(url)}">{_escaped(anchor)}</link>\n' for url, anchor in content.links]
    parts.append(" </links>\n <data>\n")
    parts += [f"  <{tag}>{_escaped(value)}</{tag}>\n" for tag, value in _data_elements(content)]
    parts.append(" </data>\n</page>\n")
    return _encoded("".join(parts))


def links_in(xml: bytes) -> list[str]:
    """The addresses that a data.xml lists as links; none if it cannot be read."""
    try:
        page = ElementTree.fromstring(xml)
    except (ElementTree.ParseError, ValueError):
        return []
    return [link.get("url", "") for link in page.iterfind("links/link")]


def read_page_xml(xml: bytes) -> tuple[PageMeta, PageText]:
    """Undo `page_xml`; the crawl time comes back in whole seconds. BundleError if it is no data.xml.

    We never write a document type, and one could define entities that expand without end: it is refused. Read as
    text, so that no declared encoding can hide it.
    """
    try:
        document = xml.decode()
        if "<!DOCTYPE" in document:
            raise BundleError("a data.xml has a document type")
        page = ElementTree.fromstring(document)
        meta = {element.tag: element.text or "" for element in page.iterfind("meta/*")}
        data = {element.tag: element.text or "" for element in page.iterfind("data/*")}
        links = [(link.get("url", ""), link.text or "") for link in page.iterfind("links/link")]
        encoding = page.find("meta/encoding")
        http_encoding = "" if encoding is None else encoding.get("insteadOf", "")
        description, keywords, text = (data.get(tag, "") for tag in ("description", "keywords", "text"))
        return _read_meta(meta), PageText(links, description, keywords, text, http_encoding)
    except (ElementTree.ParseError, KeyError, ValueError) as error:
        raise BundleError(f"a data.xml cannot be read: {error!r}") from error


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
    """UTC time as in data.xml: 2026-01-31T12:00:00Z."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


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

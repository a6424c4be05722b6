"""From what was fetched to what is stored: decodes a page, mines it, and writes its data.xml.

HTML is read by reading/. Other documents are kept as they are; of style sheets the references are read, and of plain
text the text. A page that cannot be mined is kept too, without links, and says so: nothing raises, no page is lost.
What a page asks of robots is heeded here: it may not want to be kept, or its links to be followed.
"""

import hashlib
import logging
import re
import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from client import bounds, charset, directives, embedded, links, plain, text
from client.fields import HTML_TYPES
from client.reading.reader import Reader
from client.reading.seen import Seen, Wanted
from client.results import FetchResult, MinedPage
from common import urls
from common.page import PageMeta, PageText, page_xml
from common.wire import JobSettings, Outcome

log = logging.getLogger(__name__)

# Fixed, because the mimetypes of the standard library differ from machine to machine.
_EXTENSIONS = {
    "application/atom+xml": "atom",
    "application/epub+zip": "epub",
    "application/gzip": "gz",
    "application/javascript": "js",
    "application/json": "json",
    "application/ld+json": "jsonld",
    "application/msword": "doc",
    "application/pdf": "pdf",
    "application/postscript": "ps",
    "application/rss+xml": "rss",
    "application/rtf": "rtf",
    "application/vnd.ms-excel": "xls",
    "application/vnd.ms-powerpoint": "ppt",
    "application/vnd.oasis.opendocument.spreadsheet": "ods",
    "application/vnd.oasis.opendocument.text": "odt",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": "pptx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/wasm": "wasm",
    "application/x-bzip2": "bz2",
    "application/x-gzip": "gz",
    "application/x-javascript": "js",
    "application/x-tar": "tar",
    "application/xml": "xml",
    "application/zip": "zip",
    "application/zstd": "zst",
    "audio/mpeg": "mp3",
    "audio/ogg": "ogg",
    "audio/wav": "wav",
    "font/ttf": "ttf",
    "font/woff": "woff",
    "font/woff2": "woff2",
    "image/avif": "avif",
    "image/bmp": "bmp",
    "image/gif": "gif",
    "image/jpeg": "jpg",
    "image/png": "png",
    "image/svg+xml": "svg",
    "image/tiff": "tif",
    "image/vnd.microsoft.icon": "ico",
    "image/webp": "webp",
    "image/x-icon": "ico",
    "text/calendar": "ics",
    "text/css": "css",
    "text/csv": "csv",
    "text/javascript": "js",
    "text/markdown": "md",
    "text/plain": "txt",
    "text/xml": "xml",
    "video/mp4": "mp4",
    "video/mpeg": "mpg",
    "video/webm": "webm",
}
_NOTHING = PageText()
_MANY_LINKS = 10_000
_HTML_EXTENSIONS = frozenset(["html", "htm", "xhtml"])
_PATH_EXTENSION = re.compile(r"\.([A-Za-z0-9]{1,8})\Z")


def mine(
    result: FetchResult, settings: JobSettings, reader: Reader, held: "threading.Lock | None" = None
) -> MinedPage:
    """Make a page of what was fetched; an outcome without a page passes through.

    `held` is a lock that the caller holds. It is let go while another process reads.
    """
    if result.outcome is Outcome.STORED and result.task.sha1 and _sha1(result.body) == result.task.sha1:
        result = replace(result, outcome=Outcome.UNCHANGED)  # its links are known, too
    if result.outcome is not Outcome.STORED:
        found = (result.redirect_url,) if result.outcome is Outcome.REDIRECTED else ()
        return MinedPage(
            result.task, result.outcome, result.detail, result.status, links=found, etag=result.etag,
            last_modified=result.last_modified,
        )  # fmt: skip
    is_html = result.content_type in HTML_TYPES
    if not is_html and not settings.document_save:
        return MinedPage(result.task, Outcome.UNWANTED, result.content_type, result.status)
    try:
        return _mined(result, settings, reader, held) if is_html else _document(result, settings)
    except Exception as error:  # last resort: whatever a page does to us, it is kept
        log.exception("cannot mine %s", result.task.url)
        name = "data.html" if is_html else _data_name(result)
        return _page(result, settings, name, detail=f"not mined: {type(error).__name__}: {error}")


def _document(result: FetchResult, settings: JobSettings) -> MinedPage:
    """What is not HTML. A style sheet leads to other documents, and has no place for a <base>."""
    asked = _directives(result, settings)
    if asked.refusal:
        return _refused(result, asked, ())
    if result.content_type == "text/plain":
        return _plain_text(result, settings)
    found: list[tuple[str, str]] = []
    if result.content_type == "text/css" and asked.follow:
        css = charset.text_of(result.body[: bounds.MAX_BYTES], charset.encoding_for(result.charset) or "utf-8")
        references = map(links.written, embedded.css_references(css))
        found = links.resolved(dict.fromkeys(filter(None, references), ""), "", _address(result))
    return _page(result, settings, _data_name(result), addresses=[address for address, _ in found])


def _plain_text(result: FetchResult, settings: JobSettings) -> MinedPage:
    found, encoding = plain.read(result.body, result.charset)
    content = PageText(text=found) if settings.page_parse else _NOTHING
    detail = _part(plain.MAX_BYTES, len(result.body)) if encoding else ""
    return _page(result, settings, _data_name(result), encoding, content=content, detail=detail)


def _part(length: int, whole: int) -> str:
    """What is said of a page if not more than `length` bytes of it were read."""
    return f"mined in part: the first {length} of {whole} bytes" if length < whole else ""


def _mined(
    result: FetchResult, settings: JobSettings, reader: Reader, held: "threading.Lock | None"
) -> MinedPage:
    body = bounds.beginning(result.body)
    encoding = charset.encoding_of(body, result.charset)
    html = _utf8(body, encoding)
    whole = len(html) if len(body) == len(result.body) else max(len(html), len(result.body))
    html = html[: bounds.MAX_BYTES]
    del body  # it may be 8 MB, and wait for a lane
    wanted = Wanted(settings.rel_nofollow, settings.document_save)
    seen = reader.read(html, wanted, urls.host_of(result.task.url), held)
    detail = _part(seen.length, whole)
    resolved = partial(links.resolved, base=seen.base, page_url=_address(result), encoding=encoding)
    allowance = links.Allowance(seen.length)
    found = resolved(seen.references, allowance=allowance)
    asked = _directives(result, settings, seen.metas)
    addresses = [address for address, _ in found] if asked.follow else []
    if addresses and seen.unfollowed:
        unfollowed = frozenset(seen.unfollowed)
        followed = {reference: "" for reference in seen.references if reference not in unfollowed}
        addresses = [address for address, _ in resolved(followed, allowance=links.Allowance(seen.length))]
    if asked.refusal:
        return _refused(result, asked, addresses)
    if seen.shown and asked.follow:
        shown = resolved(dict.fromkeys(seen.shown, ""), allowance=allowance)
        addresses = list(dict.fromkeys(addresses + [address for address, _ in shown]))[: links.MAX_LINKS]
    content = _content(found, seen) if settings.page_parse else PageText(found)
    if (http_encoding := charset.encoding_for(result.charset)) and http_encoding != encoding:
        content = replace(content, http_encoding=http_encoding)
    if allowance.is_used_up and not detail:
        detail = f"mined in part: the first {len(addresses) or len(found)} addresses"
    title = seen.title
    if len(found) > _MANY_LINKS:  # each of these is large then, and data.xml too
        del seen, html
    return _page(result, settings, "data.html", encoding, title, content, addresses, detail)


def _directives(
    result: FetchResult, settings: JobSettings, metas: Sequence[tuple[str, str]] = ()
) -> directives.Directives:
    if not settings.page_directives:
        return directives.FREE
    return directives.directives(result.robots_tags, metas, settings.agent_name)


def _refused(result: FetchResult, asked: directives.Directives, addresses: Sequence[str]) -> MinedPage:
    """A page that does not want to be kept. Where it leads to may be known, what it shows is not needed."""
    return MinedPage(result.task, Outcome.UNWANTED, asked.refusal, result.status, links=addresses)


def _address(result: FetchResult) -> str:
    return result.final_url or result.task.url


def _utf8(body: bytes, encoding: str) -> bytes:
    # lexbor reads UTF-8 and replaces what is none, so a page in UTF-8 need not be decoded here at all.
    if encoding == "utf-8":
        return body.removeprefix(b"\xef\xbb\xbf")
    return charset.text_of(body, encoding).encode()


def _content(found: list[tuple[str, str]], seen: Seen) -> PageText:
    description, keywords = text.meta(seen.metas, ("description", "keywords"))
    return PageText(found, description, keywords, seen.text)


def _page(
    result: FetchResult,
    settings: JobSettings,
    data_name: str,
    encoding: str = "",
    title: str = "",
    content: PageText = _NOTHING,
    addresses: Sequence[str] = (),
    detail: str = "",
) -> MinedPage:
    meta = _meta(result, settings, encoding, title)
    return MinedPage(
        result.task,
        Outcome.STORED,
        detail or result.detail,
        result.status,
        meta,
        data_name,
        result.body,
        page_xml(meta, content),
        addresses,
        result.etag,
        result.last_modified,
    )


def _meta(result: FetchResult, settings: JobSettings, encoding: str, title: str) -> PageMeta:
    identity = settings.identity(result.task.url)
    return PageMeta(
        url=identity,
        original_url=result.task.url,
        final_url=_address(result),
        title=title,
        crawl_time=result.fetched_at,
        status=result.status,
        content_type=result.content_type,
        encoding=encoding,
        etag=result.etag,
        last_modified=result.last_modified,
        server_date=result.server_date,
        sha1=_sha1(result.body),
        digest=urls.digest(identity).hex(),
    )


def _sha1(body: bytes) -> str:
    return hashlib.sha1(body, usedforsecurity=False).hexdigest()


def _data_name(result: FetchResult) -> str:
    """`data.` and the document's own extension, never that of our own data.xml."""
    extension = _EXTENSIONS.get(result.content_type) or _extension_of(_address(result))
    return "data.source.xml" if extension == "xml" else f"data.{extension}"


def _extension_of(address: str) -> str:
    match = _PATH_EXTENSION.search(urls.path_of(address).partition("?")[0])
    extension = match[1].lower() if match else "bin"
    return "bin" if extension in _HTML_EXTENSIONS else extension  # data.html is what is HTML, whatever it is called

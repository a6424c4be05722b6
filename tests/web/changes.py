"""What has changed on a web since it was made: a file that the server reads at each request, so that a test can write
it between two rounds of a crawl. Also how a page says which version it is."""

import base64
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.web.pages import Answer
from tests.web.resources import Document, Link, Missing, Page, Redirect, Resource

VALIDATORS = ("etag", "date", "none")
FIRST_DATE, LATER_DATE = "Mon, 02 Nov 2026 10:00:00 GMT", "Tue, 03 Nov 2026 10:00:00 GMT"


class Changes:
    """Written by a test, read by the server in another process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._all: dict[str, list[object]] = {}

    def page(self, url: str, title: str, links: Sequence[str] = ()) -> None:
        """There is another page now, or a first one."""
        self._write(url, ["page", title, *links])

    def file(self, url: str, body: bytes | str, content_type: str) -> None:
        """Something that is not HTML; for a robots.txt only the text counts."""
        content = body if isinstance(body, bytes) else body.encode()
        self._write(url, ["file", content_type, base64.b64encode(content).decode()])

    def gone(self, url: str) -> None:
        self._write(url, ["gone"])

    def moved(self, url: str, target: str) -> None:
        self._write(url, ["moved", target])

    def back(self, url: str) -> None:
        """As it was at first."""
        self._all.pop(url, None)
        self._write()

    def _write(self, url: str = "", what: list[object] | None = None) -> None:
        if what is not None:
            self._all[url] = what
        new = self._path.with_suffix(".new")
        new.write_text(json.dumps(self._all))
        new.rename(self._path)


def read_changes(path: Path) -> dict[str, Resource]:
    """What is there instead, by address."""
    if not path.exists():
        return {}
    return {url: _resource(*what) for url, what in json.loads(path.read_text()).items()}


def _resource(kind: str, *arguments: str) -> Resource:
    if kind == "gone":
        return Missing()
    if kind == "moved":
        return Redirect(arguments[0], arguments[0])
    if kind == "file":
        return Document(arguments[0], base64.b64decode(arguments[1]))
    title, *links = arguments
    return Page(title, tuple(Link(url, url) for url in links))


def with_validators(reply: Answer, kind: str, is_changed: bool) -> Answer:
    """The answer with its ETag, with a date instead, or with neither."""
    if kind == "etag" or reply.status != 200:
        return reply
    headers = [header for header in reply.headers if header[0] != "ETag"]
    if kind == "date":
        headers.append(("Last-Modified", LATER_DATE if is_changed else FIRST_DATE))
    return Answer(reply.status, tuple(headers), reply.body, reply.chunked)


def unless_known(reply: Answer, asked: Mapping[str, str]) -> Answer:
    """304 when the client shows that it has this version (RFC 9110 §13.1). `asked`: its headers, in lower case."""
    for header, condition in (("ETag", "if-none-match"), ("Last-Modified", "if-modified-since")):
        value = dict(reply.headers).get(header)
        if value is not None and asked.get(condition) == value:
            return Answer(304, ((header, value),), b"")
    return reply

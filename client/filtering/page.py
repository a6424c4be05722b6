"""What a filter gets, and how it crosses from the client to the process of the filters: a line of JSON, then bytes."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import IO, Any

from common.errors import BundleError
from common.page import PageMeta, PageText, read_page_xml

_META_FIELDS = tuple(item.name for item in fields(PageMeta))


@dataclass(frozen=True)
class Page:
    """A page that is about to be stored."""

    url: str  # the address that was asked for
    path: str  # of its data inside the bundle, such as example.org/news/!/data.html
    meta: PageMeta  # everything that is recorded of it
    body: bytes = field(repr=False)  # as it came, content encodings undone
    xml: bytes = field(repr=False)  # its data.xml

    @property
    def content_type(self) -> str:
        """The media type in lower case; empty if the server gave none."""
        return self.meta.content_type

    @property
    def title(self) -> str:
        return self.meta.title

    @property
    def text(self) -> str:
        """What a reader sees. Empty for what is no HTML, and with page_parse = 0."""
        return self._content.text

    @property
    def links(self) -> Iterable[tuple[str, str]]:
        """Address and anchor text of each link."""
        return self._content.links

    @cached_property
    def _content(self) -> PageText:
        # Read when somebody asks: many filters look at the address only.
        try:
            return read_page_xml(self.xml)[1]
        except BundleError:
            return PageText()


def send_page(page: Page, filters: Sequence[str], send: Any) -> None:
    """Hand a page over, to be judged by these filters. `send` takes bytes, and all of them."""
    meta = {name: getattr(page.meta, name) for name in _META_FIELDS}
    head = {"filters": filters, "url": page.url, "path": page.path, "meta": meta}
    send(json.dumps(head | {"body": len(page.body), "xml": len(page.xml)}).encode() + b"\n")
    send(page.body)
    send(page.xml)


def receive_page(stream: IO[bytes]) -> tuple[Page, list[str]] | None:
    """Undo `send_page`; None at the end."""
    line = stream.readline()
    if not line:
        return None
    head = json.loads(line)
    body, xml = stream.read(head["body"]), stream.read(head["xml"])
    return Page(head["url"], head["path"], PageMeta(**head["meta"]), body, xml), head["filters"]

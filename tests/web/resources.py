"""The values a web is made of: what can be behind an address, and the links of a page."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Link:
    """A link as written in a page, and what it must lead to. No target: not a link to follow."""

    href: str
    target: str | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """An HTML page. `declared` says how a reader can find out the charset."""

    title: str
    links: tuple[Link, ...] = ()
    charset: str = "utf-8"
    declared: Literal["header", "meta", "bom"] = "header"
    base: str = ""
    gzip: bool = False
    chunked: bool = False


@dataclass(frozen=True, slots=True)
class Document:
    """Something to store that is not HTML. It has no links."""

    content_type: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Redirect:
    """`location` is the header as written, `target` the absolute URL it means."""

    location: str
    target: str
    status: int = 301


@dataclass(frozen=True, slots=True)
class Missing:
    """Nothing here: 404."""


Resource = Page | Document | Redirect | Missing

"""What BeautifulSoup with html5lib finds in a page: an independent parser, and the rules of our manual in other words.

Slow (html5lib takes about a second for a megabyte) and without any of the limits of the client. The client's own code
is not used, except `common.urls.resolve`, which has truths of its own.
"""

import re
from collections.abc import Iterator

from bs4 import BeautifulSoup
from bs4.element import CData, NavigableString, PageElement, PreformattedString, Tag

from common.urls import resolve
from tests.mining import Mined

MAX_ANCHOR_LENGTH = 500
_FOLLOWED_RELATIONS = {"canonical", "next", "prev"}
_LINKS = ["a", "area", "frame", "iframe", "link", "meta"]
_REFRESH = re.compile(r"\s*[\d.]*\s*[;,\s]\s*(?:url\s*=\s*)?", re.IGNORECASE)

# What the reader does not see, and what begins and ends a line or stands between words, by the HTML standard's own
# style sheet ("Rendering") or because it is an object on its own.
_UNSEEN = {"script", "style", "noscript", "iframe", "noembed", "noframes", "title", "template"}
_BLOCKS = """
address article aside blockquote body br button caption center dd details dialog dir div dl dt fieldset figcaption
figure footer form frame frameset h1 h2 h3 h4 h5 h6 header hgroup hr img input legend li listing main menu nav object
ol optgroup option p plaintext pre search section select summary table tbody td textarea tfoot th thead tr ul video xmp
"""
_APART = frozenset(_BLOCKS.split())


def found_in(body: bytes | str, url: str, encoding: str | None = None) -> Mined:
    """The oracle's answer for a page; `encoding` is that of the HTTP header."""
    soup = BeautifulSoup(body, "html5lib", from_encoding=encoding)
    words = " ".join("".join(_seen(soup.body)).split()) if soup.body else ""
    return Mined(str(soup.original_encoding or ""), _title(soup), list(_links(soup, url).items()), words, "")


def _title(soup: BeautifulSoup) -> str:
    titles = [title for title in soup.find_all("title") if title.find_parent("svg") is None]
    return _folded(_text(titles[0])) if titles else ""


def _links(soup: BeautifulSoup, url: str) -> dict[str, str]:
    base = next((str(tag["href"]) for tag in soup.find_all("base", href=True) if tag["href"]), "")
    base_url = (resolve(base, url) if base else None) or url
    unframed = [BeautifulSoup(tag.get_text(), "html5lib") for tag in soup.find_all(["noframes", "noembed"])[:10]]
    found: dict[str, str] = {}
    for tag in [tag for part in [soup, *unframed] for tag in part.find_all(_LINKS)]:
        reference = _reference(tag)
        if not reference.partition("#")[0].strip():
            continue
        address = resolve(reference, base_url)
        if address is not None:
            text = anchor_text(tag)[:MAX_ANCHOR_LENGTH].rstrip() if tag.name in ("a", "area") else ""
            found[address] = found.get(address) or text
    return found


def anchor_text(tag: Tag) -> str:
    """The text of a link. An image speaks by its alt, also one that is a map."""
    if tag.name == "area":
        return _folded(str(tag.get("alt", "")))
    parts: list[str] = []
    for node in tag.descendants:
        if isinstance(node, Tag):
            parts += [" ", str(node["alt"]), " "] if node.name == "img" and node.get("alt") else []
        elif _is_text(node):
            parts.append(str(node))
    return _folded("".join(parts))


def _reference(tag: Tag) -> str:
    if tag.name == "meta":
        content = str(tag.get("content", ""))
        match = _REFRESH.match(content) if str(tag.get("http-equiv", "")).strip().lower() == "refresh" else None
        return _unquoted(content[match.end() :]) if match else ""
    if tag.name == "link" and _FOLLOWED_RELATIONS.isdisjoint(" ".join(tag.get_attribute_list("rel")).lower().split()):
        return ""
    return str(tag.get("src" if tag.name in ("frame", "iframe") else "href", ""))


def _unquoted(text: str) -> str:
    return text[1:].partition(text[0])[0] if text[:1] in ("'", '"') else text


def _text(tag: Tag) -> str:
    return "".join(str(node) for node in tag.descendants if _is_text(node))


def _is_text(node: PageElement) -> bool:
    return isinstance(node, NavigableString) and (isinstance(node, CData) or not isinstance(node, PreformattedString))


def _folded(text: str) -> str:
    return " ".join(text.split())


def _seen(tag: Tag) -> Iterator[str]:
    for child in tag.children:
        if isinstance(child, Tag):
            if child.name not in _UNSEEN:
                apart = " " if child.name in _APART else ""
                yield apart
                yield from _seen(child)
                yield apart
        elif _is_text(child):
            yield str(child)

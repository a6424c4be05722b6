"""What counts as a link, and which address it means. Reads parsed nodes, fetches nothing.

Followed: a, area, frame, iframe, meta refresh, and link with rel canonical, next or prev, also inside <noframes>.
References that are empty or only a fragment stay inside the page and are no links. What a page shows or runs is in
embedded.py.
"""

import re
from collections.abc import Iterable, Mapping
from itertools import islice

from selectolax.lexbor import LexborHTMLParser, LexborNode

from client import charset
from client.text import folded
from common.page import len_in_xml
from common.urls import MAX_URL_LENGTH, resolve

MAX_LINKS = 50_000
MAX_ANCHOR_LENGTH = 500
MAX_ADDRESS_BYTES = 8_000_000  # of all addresses of a page; 50,000 of 160 bytes
MIN_ADDRESS_BYTES = 1_000_000  # for a small page
ADDRESS_BYTES_PER_BYTE = 4  # more, for each byte of a page: references are shorter than what they mean
MAX_ANCHOR_BYTES = 2_000_000  # of the texts of all anchors; those in each other repeat one

_MAX_RAW_LENGTH = 4 * MAX_URL_LENGTH  # longer references (data:, junk) do not get shorter when resolved
_MAX_ANCHOR_NODES = 200  # tricks nest anchors; without a bound their texts cost the square of the page
_MANY_LINKS = MAX_ANCHOR_BYTES // (MAX_ANCHOR_LENGTH * len("&quot;"))  # fewer have no texts that are too many
_AMPERSAND_GROWS = len("&amp;") - 1
_RELATIONS = frozenset(["canonical", "next", "prev"])

_IMAGE = LexborHTMLParser("").create_node("img").tag_id
_DRAWINGS = frozenset(["svg", "math"])
_HTML_AGAIN = frozenset(["foreignObject", "desc", "annotation-xml"])  # inside drawings
_MAX_ANCESTORS = 100

# These mean the same on every page of a folder, in contrast to ?a=b or http:?a=b.
_SAME_IN_A_FOLDER = re.compile(r"(?:https?://)?[A-Za-z0-9_.~/-][A-Za-z0-9_.~/?&=%+-]{0,200}")
_MAX_FOLDER_LENGTH = 300
_MAX_REMEMBERED = 20_000
_MAX_OF_A_FOLDER = 2 * _MAX_REMEMBERED  # more than makes a check forget all, so that it does
_PAGES_BETWEEN_CHECKS = 50

# HTML "shared declarative refresh steps", without need for a number. No step is taken back: `0;url=` leads nowhere.
_REFRESH = re.compile(
    r"""\s*+[\d.]*+(?:\s++[;,]?+|[;,])\s*+(?:url\s*+=\s*+)?+(?:"([^"]*)|'([^']*)|(.+))""", re.I | re.A | re.DOTALL
)


def written(raw: str | None) -> str:
    """A reference as it is written, without fragment; empty if it stays inside the page or is junk."""
    if not raw or raw[0] == "#" or len(raw) > _MAX_RAW_LENGTH:
        return ""
    return (raw.partition("#")[0] if "#" in raw else raw).strip()


def target(node: LexborNode) -> str | None:
    """To what an anchor or an area refers."""
    attributes = node.attrs
    href = attributes.get("href")
    if href is None and (href := attributes.get("xlink:href")) is not None:
        return href if is_in_drawing(node) else None
    return href


def is_in_drawing(node: LexborNode) -> bool:
    """Whether a node belongs to SVG or MathML. One that is very deep does, so that the question costs little."""
    parent = node.parent
    for _ in range(_MAX_ANCESTORS):
        if parent is None or parent.tag in _HTML_AGAIN:
            return False
        if parent.tag in _DRAWINGS:
            return True
        parent = parent.parent
    return True


def reference(node: LexborNode) -> str | None:
    """To what a node other than these refers."""
    attributes = node.attrs
    tag = node.tag
    if tag == "link":
        relations = (attributes.get("rel") or "").lower().split()
        return None if _RELATIONS.isdisjoint(relations) else attributes.get("href")
    if tag == "meta":
        return _refresh_target(attributes.get("http-equiv") or "", attributes.get("content") or "")
    return attributes.get("src")


def unfollowed(pages: Iterable[LexborHTMLParser]) -> frozenset[str]:
    """References that are only made by links with rel=nofollow, in all parts of a page together."""
    pages = list(pages)
    marked = {written(target(node)) for page in pages for node in page.css("a[rel], area[rel]") if _is_nofollow(node)}
    if not marked:
        return frozenset()
    others = (node for page in pages for node in page.css("[href], [src]") if not _is_nofollow(node))
    return frozenset(marked - {written(node.attrs.get("href") or node.attrs.get("src")) for node in others})


def _is_nofollow(node: LexborNode) -> bool:
    return "nofollow" in (node.attrs.get("rel") or "").lower().split()


def _refresh_target(pragma: str, content: str) -> str | None:
    match = _REFRESH.match(content) if pragma.strip().lower() == "refresh" else None
    return (match[1] or match[2] or match[3]) if match else None


def anchor_text(node: LexborNode) -> str:
    """The text of an anchor, or the `alt` of an area, folded and cut. An image in an anchor says its `alt`."""
    child = node.first_child
    if child is None:
        return folded(node.attrs.get("alt") or "", MAX_ANCHOR_LENGTH) if node.tag == "area" else ""
    text = child.text_content if child.next is None else None  # most anchors hold one text and nothing else
    if text is None:
        nodes = islice(node.traverse(include_text=True), _MAX_ANCHOR_NODES)
        text = "".join([part.text_content or (_alt(part) if part.tag_id == _IMAGE else "") for part in nodes])
    return folded(text, MAX_ANCHOR_LENGTH)


def _alt(image: LexborNode) -> str:
    alt = image.attrs.get("alt")
    return f" {alt} " if alt else ""


class Allowance:
    """How much the addresses of one page and their texts may take together, as they are in its data.xml.

    A page of 700 KB can make 50,000 addresses of 2,000 characters: it needs to say a long beginning only once.
    """

    def __init__(self, page_bytes: int) -> None:
        self._addresses = min(MIN_ADDRESS_BYTES + ADDRESS_BYTES_PER_BYTE * page_bytes, MAX_ADDRESS_BYTES)
        self._texts = MAX_ANCHOR_BYTES
        self.is_used_up = False

    def has_place(self, address: str, found: Mapping[str, str]) -> bool:
        """For one more address; False, and used up, if there is none."""
        self._addresses -= len(address) + _AMPERSAND_GROWS * address.count("&")  # the rest that XML escapes is escaped
        if self._addresses >= 0 and (len(found) < MAX_LINKS or address in found):
            return True
        self.is_used_up = True
        return False

    def text(self, text: str) -> str:
        """A text if there is place for it; otherwise none, as of an anchor without one."""
        self._texts -= len_in_xml(text) if text else 0
        return text if self._texts >= 0 else ""


def resolved(
    references: Mapping[str, str], base: str, page_url: str, encoding: str = "utf-8", allowance: Allowance | None = None
) -> list[tuple[str, str]]:
    """The address of each reference, each address once, with the first text that is not empty; as many as may be.

    `encoding` is that of the page.
    """
    allowance = allowance or Allowance(MAX_ADDRESS_BYTES)
    base_url = (resolve(base, page_url) if base else None) or page_url
    known = _memory.of(base_url)
    found: dict[str, str] = {}
    many = len(references) > _MANY_LINKS
    for reference, text in references.items():
        address = known.get(reference, "")
        if address == "":
            address = resolve(_encoded(reference, encoding), base_url)
            if len(known) < _MAX_OF_A_FOLDER and _SAME_IN_A_FOLDER.fullmatch(reference):
                known[reference] = address
        if address is None or found.get(address):
            continue
        if not allowance.has_place(address, found):
            break
        found[address] = allowance.text(text) if many else text
    return list(found.items())


def _encoded(reference: str, encoding: str) -> str:
    if encoding == "utf-8" or reference.isascii():
        return reference
    path, mark, query = reference.partition("?")
    return path + mark + charset.in_query(query, encoding)


class _Memory:
    """Addresses of references by the folder of their page: the pages of a site repeat most of their links.

    Threads share it without a lock. The worst they can do to each other is to resolve something twice.
    """

    def __init__(self) -> None:
        self._folders: dict[str, dict[str, str | None]] = {}
        self._pages = 0

    def of(self, base_url: str) -> dict[str, str | None]:
        """What is known of references on a page, to be read and written."""
        self._pages += 1
        if self._pages % _PAGES_BETWEEN_CHECKS == 0 and sum(map(len, self._folders.values())) > _MAX_REMEMBERED:
            self._folders = {}
        folder = base_url.partition("?")[0].rpartition("/")[0]
        return self._folders.setdefault(folder, {}) if len(folder) <= _MAX_FOLDER_LENGTH else {}


_memory = _Memory()

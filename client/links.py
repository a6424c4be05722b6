"""The addresses a page links to, with the text of each link. Reads a parsed page, fetches nothing.

Followed: a, area, frame, iframe, meta refresh, and link with rel canonical, next or prev; with `embedded`
also what a page shows or runs. References that are empty or only a fragment stay inside the
page and are no links.
"""

import re
from itertools import islice

from selectolax.lexbor import LexborHTMLParser, LexborNode

from common.urls import MAX_URL_LENGTH, resolve

MAX_LINKS = 100_000
MAX_ANCHOR_LENGTH = 500

_MAX_RAW_LENGTH = 4 * MAX_URL_LENGTH  # longer references (data:, junk) do not get shorter when resolved
_MAX_ANCHOR_NODES = 200  # tricks nest anchors; without a bound their texts cost the square of the page
_RELATIONS = frozenset(["canonical", "next", "prev"])
_EMBEDDED_RELATIONS = _RELATIONS | {"stylesheet", "icon"}

_FOLLOWED = "a[href],area[href],frame[src],iframe[src],link[rel][href],meta[http-equiv][content],base[href]"
_EMBEDDED = ",img[src],source[src],video[src],audio[src],embed[src],object[data],script[src]"

_REFRESH = re.compile(r"""\s*[\d.]*[;,\s]\s*(?:url\s*=\s*)?(?:"([^"]*)|'([^']*)|(.+))""", re.I | re.DOTALL)


def extract(page: LexborHTMLParser, base_url: str, embedded: bool = False) -> list[tuple[str, str]]:
    """Each address once, in the order of the page, with the first text that is not empty."""
    base, references = _references(page, embedded)
    base_address = resolve(base, base_url) if base else None
    return _resolved(references, base_address or base_url)


def _references(page: LexborHTMLParser, embedded: bool) -> tuple[str, dict[str, str]]:
    """The first <base>, and each reference as written, without fragment, with its text.

    URL work is the larger part of mining, so references are told apart as text before any of it.
    """
    base = ""
    found: dict[str, str] = {}
    for node in page.css(_FOLLOWED + _EMBEDDED if embedded else _FOLLOWED):
        tag = node.tag
        if tag == "base":
            base = base or node.attrs.get("href") or ""
            continue
        raw = node.attrs.get("href") if tag == "a" else _reference(node, tag, embedded)
        if not raw or len(raw) > _MAX_RAW_LENGTH:
            continue
        reference = raw.partition("#")[0].strip()
        if reference and not found.get(reference):
            found[reference] = _anchor_text(node) if tag == "a" else ""
    return base, found


def _reference(node: LexborNode, tag: str | None, embedded: bool) -> str | None:
    attributes = node.attrs
    if tag == "link":
        relations = (attributes.get("rel") or "").lower().split()
        wanted = _EMBEDDED_RELATIONS if embedded else _RELATIONS
        return None if wanted.isdisjoint(relations) else attributes.get("href")
    if tag == "meta":
        return _refresh_target(attributes.get("http-equiv") or "", attributes.get("content") or "")
    return attributes.get("href") or attributes.get("src") or attributes.get("data")


def _refresh_target(pragma: str, content: str) -> str | None:
    match = _REFRESH.match(content) if pragma.strip().lower() == "refresh" else None
    return (match[1] or match[2] or match[3]) if match else None


def _anchor_text(node: LexborNode) -> str:
    child = node.first_child
    if child is None:
        return ""
    text = child.text_content if child.next is None else None  # most anchors hold one text and nothing else
    if text is None:
        nodes = islice(node.traverse(include_text=True), _MAX_ANCHOR_NODES)
        text = "".join([part.text_content or "" for part in nodes])
    return folded(text, MAX_ANCHOR_LENGTH)


def folded(text: str, max_length: int) -> str:
    """`text` with each run of white space as one blank, and cut."""
    return " ".join(text[: 10 * max_length].split())[:max_length].rstrip()


def _resolved(references: dict[str, str], base_url: str) -> list[tuple[str, str]]:
    found: dict[str, str] = {}
    for reference, text in references.items():
        address = resolve(reference, base_url)
        if address is None or found.get(address):
            continue
        if len(found) == MAX_LINKS and address not in found:
            break
        found[address] = text
    return list(found.items())

"""What a parsed page says about itself: title, description, keywords."""

from collections.abc import Iterable

from selectolax.lexbor import LexborHTMLParser

MAX_TITLE_LENGTH = 1000
MAX_META_LENGTH = 10_000


def title(page: LexborHTMLParser) -> str:
    """The first title that is not the label of a drawing."""
    head = page.head
    node = (head and head.css_first("title")) or page.css_first("title:not(svg title)")
    return folded(node.text(), MAX_TITLE_LENGTH) if node else ""


def meta(metas: Iterable[tuple[str, str]], names: Iterable[str]) -> list[str]:
    """The content of the first <meta> of each of these names; empty if there is none."""
    found: dict[str, str] = {}
    for name, content in metas:
        found.setdefault(name, content)
    return [folded(found.get(name, ""), MAX_META_LENGTH) for name in names]


def folded(text: str, max_length: int) -> str:
    """`text` with each run of white space as one blank, and cut."""
    return " ".join(text[: 10 * max_length].split())[:max_length].rstrip()

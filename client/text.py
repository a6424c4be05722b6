"""What a parsed page says about itself and shows to a reader: title, description, keywords, visible text.

Scripts, styles and the like are left out; a block begins a new word, so that <li>one<li>two is not onetwo.
"""

from collections.abc import Iterable
from itertools import islice

from selectolax.lexbor import LexborHTMLParser, LexborNode

from client.links import folded

MAX_TITLE_LENGTH = 1000
MAX_META_LENGTH = 10_000
MAX_TEXT_LENGTH = 1_000_000

_BLOCKS = """
address article aside blockquote br button caption center dd details dialog dir div dl dt fieldset figcaption
figure footer form frame frameset h1 h2 h3 h4 h5 h6 header hgroup hr img input legend li main menu nav object
ol option optgroup p pre search section select summary table tbody td textarea tfoot th thead tr ul video
"""
_HIDDEN = "script style noscript iframe noembed noframes title"


def _tag_ids(names: str) -> frozenset[int]:
    """lexbor's numbers of these tags: comparing them costs half of comparing names."""
    document = LexborHTMLParser("")
    return frozenset(document.create_node(name).tag_id for name in names.split())


_BLOCK_IDS = _tag_ids(_BLOCKS)
_HIDDEN_IDS = _tag_ids(_HIDDEN)
_TEXT_ID = 2  # LXB_TAG__TEXT; a test fails if it changes


def title(page: LexborHTMLParser) -> str:
    """The first title that is not the label of a drawing."""
    head = page.head
    node = (head and head.css_first("title")) or page.css_first("title:not(svg title)")
    return folded(node.text(), MAX_TITLE_LENGTH) if node else ""


def meta(page: LexborHTMLParser, names: Iterable[str]) -> list[str]:
    """The content of the first <meta> in the head for each of these names; empty if there is none."""
    found: dict[str, str] = {}
    for node in page.head.css("meta[name][content]") if page.head else ():
        name = (node.attrs.get("name") or "").strip().lower()
        found.setdefault(name, node.attrs.get("content") or "")
    return [folded(found.get(name, ""), MAX_META_LENGTH) for name in names]


def visible(page: LexborHTMLParser) -> str:
    """The text a reader sees, each run of white space as one blank."""
    body = page.body
    return folded("".join(_pieces(body)), MAX_TEXT_LENGTH) if body else ""


def _pieces(body: LexborNode) -> list[str]:
    """Texts in order, with a blank where a block begins or ends. Runs for every node, so few calls."""
    pieces: list[str] = []
    in_word = False  # the next text would continue the last one
    nodes = body.traverse(include_text=True)
    for node in nodes:
        number = node.tag_id
        if number in _BLOCK_IDS or (in_word and _after_block(node)):
            pieces.append(" ")
            in_word = False
        if number == _TEXT_ID:
            text = node.text_content or " "
            pieces.append(text)
            in_word = text[-1] > " "
        elif number in _HIDDEN_IDS:
            _skip_below(node, nodes)
    return pieces


def _after_block(node: LexborNode) -> bool:
    before = node.prev
    return before is not None and before.tag_id in _BLOCK_IDS


def _skip_below(node: LexborNode, nodes: Iterable[LexborNode]) -> None:
    """Advance `nodes`, which has just given `node`, past everything inside it."""
    below = sum(1 for _ in node.traverse(include_text=True)) - 1
    for _ in islice(nodes, below):
        pass

"""One walk over a parsed page: the references it makes, what it says in <meta>, and the text a reader sees.

To make a Python object of a node costs more than anything that is done with it, so each node is visited once.
Scripts, styles and the like have no text; a block begins a new word, so that <li>one<li>two is not onetwo.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser, LexborNode

from client import links
from client.text import folded

MAX_TEXT_LENGTH = 1_000_000
_MAX_UNFRAMED = 10  # of one page; a page of frames has one

_BLOCKS = """
address article aside blockquote br button caption center dd details dialog dir div dl dt fieldset figcaption
figure footer form frame frameset h1 h2 h3 h4 h5 h6 header hgroup hr img input legend li listing main menu nav object
ol option optgroup p plaintext pre search section select summary table tbody td textarea tfoot th thead tr ul video xmp
"""
_HIDDEN = "script style noscript iframe noembed noframes title"
_REFERRING = "area frame iframe link meta base"
_UNPARSED = "noembed noframes"  # the parser takes what is inside for text

_TEXT, _BLOCK, _HIDE, _ANCHOR, _REFERENCE, _UNFRAMED = (1 << bit for bit in range(6))


def _roles() -> dict[int, int]:
    """What to do at each kind of node, by lexbor's number for it: comparing numbers costs half of comparing names."""
    document = LexborHTMLParser("<body>text")
    text = document.body and document.body.first_child
    assert text is not None
    roles = {text.tag_id: _TEXT}
    for names, role in (
        (_BLOCKS, _BLOCK),
        (_HIDDEN, _HIDE),
        ("a", _ANCHOR),
        (_REFERRING, _REFERENCE),
        (_UNPARSED, _UNFRAMED),
    ):
        for name in names.split():
            number = document.create_node(name).tag_id
            roles[number] = roles.get(number, 0) | role
    return roles


_ROLES = _roles()


@dataclass(slots=True)
class Walked:
    """What a walk has found. References are as written, each with its first text that is not empty."""

    base: str = ""  # of the first <base>
    metas: list[tuple[str, str]] = field(default_factory=list)  # name in lower case, and content
    references: dict[str, str] = field(default_factory=dict)
    text: str = ""  # each run of white space as one blank
    unframed: list[LexborHTMLParser] = field(default_factory=list)  # what browsers without frames show


def parsed(html: bytes | str) -> LexborHTMLParser:
    """Without events: they cost a seventh of the time and only serve <selectedcontent>, with which a small page can
    make a huge one."""
    return LexborHTMLParser(html, options=LexborDocumentOptions.WO_EVENTS)


def walk(page: LexborHTMLParser) -> Walked:
    """Visit every node once. Of what browsers without frames show, the links count as if they stood at the end."""
    found = _walked(page)
    for part in found.unframed:
        for reference, text in _walked(part).references.items():
            if not found.references.get(reference):
                found.references[reference] = text
    return found


def _walked(page: LexborHTMLParser) -> Walked:
    found = Walked()
    if page.root is not None:
        pieces = _pieces(page.root.traverse(include_text=True), found)
        found.text = folded("".join(pieces), MAX_TEXT_LENGTH)
    return found


def _pieces(nodes: Iterator[LexborNode], found: Walked) -> list[str]:
    """Texts in order, with a blank where a block begins or ends. Runs for every node, so few calls."""
    pieces: list[str] = []
    in_word = False  # the next text would continue the last one
    block = 0  # the one that began last
    role_of, references = _ROLES.get, found.references
    for node in nodes:
        role = role_of(node.tag_id)
        if role is None:
            continue
        if role == _TEXT:
            if text := node.text_content:
                if in_word and text[0] > " " and _is_after_block(node, block):
                    pieces.append(" ")
                pieces.append(text)
                in_word = text[-1] > " "
        elif role == _ANCHOR:
            reference = links.written(links.target(node))
            if reference and not references.get(reference):
                references[reference] = links.anchor_text(node)
        else:
            if role & _BLOCK:
                pieces.append(" ")
                in_word = False
                block = node.mem_id
            if role != _BLOCK:
                _note(node, role, found)
                if role & _HIDE:
                    if role & _UNFRAMED and len(found.unframed) < _MAX_UNFRAMED:
                        found.unframed.append(parsed(node.text()))
                    _pass_hidden(node, nodes, found)
    return pieces


def _is_after_block(text: LexborNode, block: int) -> bool:
    """Whether a block ends between this text and the last one that counts. `block` is the one that began last."""
    parent = text.parent
    around = parent and parent.parent
    if parent is None or around is None or around.mem_id == block or parent.mem_id == block:
        return False  # most texts: while the block that began last is open, no other can have ended
    before = text.prev or _before(parent)
    while before is not None:
        role = _ROLES.get(before.tag_id, 0)
        if role & _BLOCK:
            return True
        if role == _TEXT and before.text_content:
            return False
        before = (None if role & _HIDE else before.last_child) or before.prev or _before(before.parent)
    return False


def _before(node: LexborNode | None) -> LexborNode | None:
    """What ends last before `node` begins."""
    while node is not None and node.prev is None:
        node = node.parent
    return node and node.prev


def _note(node: LexborNode, role: int, found: Walked) -> None:
    """Keep the reference that this node makes, or what it says about the page."""
    if role == _ANCHOR:
        _note_anchor(node, found)
    elif role & _REFERENCE:
        tag = node.tag
        if tag == "base":
            if not found.base and not links.is_in_drawing(node):
                found.base = node.attrs.get("href") or ""
            return
        if tag == "area":
            _note_anchor(node, found)
            return
        if tag == "meta" and (name := node.attrs.get("name")) and (content := node.attrs.get("content")):
            found.metas.append((name.strip().lower(), content))
        if reference := links.written(links.reference(node)):
            found.references.setdefault(reference, "")


def _note_anchor(node: LexborNode, found: Walked) -> None:
    reference = links.written(links.target(node))
    if reference and not found.references.get(reference):
        found.references[reference] = links.anchor_text(node)


def _pass_hidden(node: LexborNode, nodes: Iterator[LexborNode], found: Walked) -> None:
    """Advance `nodes`, which has just given `node`, past everything inside it: its links count, its text does not."""
    below = sum(1 for _ in node.traverse(include_text=True)) - 1
    for inner in islice(nodes, below):
        _note(inner, _ROLES.get(inner.tag_id, 0), found)

"""What a page shows or runs besides its text: images, media, style sheets, scripts, fonts. References as written.

Only asked for where documents are kept, so it looks at a parsed page by itself and costs the walk nothing.
"""

import re
from collections.abc import Iterator

from selectolax.lexbor import LexborHTMLParser, LexborNode

from client.links import written

_RELATIONS = frozenset(["stylesheet", "icon", "apple-touch-icon", "manifest", "preload", "modulepreload"])
_ATTRIBUTES = {
    "img": ("src",),
    "source": ("src",),
    "video": ("src", "poster"),
    "audio": ("src",),
    "track": ("src",),
    "embed": ("src",),
    "object": ("data",),
    "script": ("src",),
    "input": ("src",),
    "image": ("href", "xlink:href"),
    "use": ("href", "xlink:href"),
}
# One query for all: each walks over the whole page.
_SELECTOR = (
    "img, source, video, audio, track, embed, object, script[src], input[src], link[rel][href], image, use, "
    '[background], style, [style*="url("]'
)
_CANDIDATE = re.compile(r"([^\s,](?:\S*[^\s,])?)(?:\s[^,(]*+(?:\([^)]*+\)?+[^,(]*+)*+)?")  # of a srcset: address, width
# Comments and strings are passed over. What is left open ends with its line or with the text: none is read twice.
_CSS = re.compile(
    r"""/\*.*?(?:\*/|\Z)
    |@namespace\b[^;]*+
    |(?:@import\s*+|url\(\s*+)(?:"((?:[^"\\\n]|\\.?+)*+)(?:"|\Z)|'((?:[^'\\\n]|\\.?+)*+)(?:'|\Z))
    |url\(\s*+((?:[^\s"'()\\]|\\(?:[0-9a-f]{1,6}+\s?+|.))++)\s*+\)
    |"(?:[^"\\\n]|\\.?+)*+"?|'(?:[^'\\\n]|\\.?+)*+'?""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
_CSS_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})\s?|(\n)|(.))", re.DOTALL)
_MAX_CODE_POINT = 0x10FFFF


def references(page: LexborHTMLParser) -> dict[str, str]:
    """Each reference once, in the order of the page, without a text."""
    styles: set[str] = set()  # read so far: the same is often given to many elements
    found = (written(reference) for node in page.css(_SELECTOR) for reference in _of(node, styles))
    return dict.fromkeys(filter(None, found), "")


def css_references(css: str) -> Iterator[str]:
    """The addresses in a style sheet: url(...) and @import."""
    for match in _CSS.finditer(css):
        if raw := match[1] or match[2] or match[3]:
            yield _CSS_ESCAPE.sub(_unescaped, raw)


def srcset_references(srcset: str) -> Iterator[str]:
    """The addresses in a srcset attribute: `small.png 1x, large.png 2x`."""
    return (match[1] for match in _CANDIDATE.finditer(srcset))


def _of(node: LexborNode, styles: set[str]) -> Iterator[str]:
    attributes = node.attrs
    tag = node.tag
    if (style := attributes.get("style")) and style not in styles:
        styles.add(style)
        yield from css_references(style)
    if tag == "style":
        yield from css_references(node.text(deep=False))
    elif tag == "link":
        if not _RELATIONS.isdisjoint((attributes.get("rel") or "").lower().split()):
            yield attributes.get("href") or ""
    elif tag in _ATTRIBUTES:
        for name in _ATTRIBUTES[tag]:
            yield attributes.get(name) or ""
        yield from srcset_references(attributes.get("srcset") or "")
    if background := attributes.get("background"):
        yield background


def _unescaped(escape: re.Match[str]) -> str:
    if escape[1]:
        number = int(escape[1], 16)
        return chr(number) if 0 < number <= _MAX_CODE_POINT and not 0xD800 <= number < 0xE000 else "\ufffd"
    return escape[3] or ""

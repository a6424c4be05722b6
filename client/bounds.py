"""Which pages the HTML parser can be given without harm, whatever is in them.

The standard's algorithm takes the square of the input for pages built to do so (100,000 nested tags, 100,000
attributes), and <font> left open a few thousand times makes gigabytes of 40 KB. Which tags nest, and which end tags
count, only a parser knows; so what is said here rests on numbers that no arrangement of tags can get around. With these
limits a page takes at most some tenths of a second and some 60 MB.
"""

import re
from collections import Counter

MAX_BYTES = 8_000_000  # more of a page is never parsed
MAX_TAGS = 300_000  # likewise; about 200 bytes each in the parsed page
HARMLESS_TAGS = 6_000  # each may cost as many steps as there are before it

_HARMLESS_BYTES = 1_000_000
_MAX_COPIES = 150_000  # elements that the parser repeats because formatting was left open; about 400 bytes each
_FEW_TAGS = 500  # so few can not make more copies than that, however they are arranged
_FEW_BYTES = 32_000  # so few can not hold so many attributes that it matters
_MAX_ATTRIBUTES = 1_000  # of one tag
_WINDOW = 1_024
_SEPARATORS = (b" ", b"\n", b"\t", b"\r", b"\f", b"/", b'"', b"'")

# A tag ends with the first > unless that is in quotes, which are opened like this; in text it means nothing.
_QUOTED_END = re.compile(rb"""=\s*+(?:"[^">]*+>|'[^'>]*+>)""")
# Begins like a formatting element: the full list of names costs the expression engine ten times more.
_CANDIDATE = re.compile(rb"<(?:[bBeEfFiItTuU]|[cC][oO]|[sS][>\s/mMtT])[^>]*")
# Without a and nobr: of those, one at a time is open.
_FORMATTING = re.compile(rb"<(?:b|big|code|em|font|i|s|small|strike|strong|tt|u)(?![^\s/>])", re.IGNORECASE)
_PLAIN_TAG = re.compile(rb"""<\w++(?:[\s/]++[^\s/>="']++(?:\s*+=\s*+(?:"[^">]*+"|'[^'>]*+'|[^\s"'>]++))?+)*+[\s/]*+""")
_OPEN_OF_A_KIND = 3  # of formatting that is written in the same way, the parser keeps three open


def is_harmless(html: bytes) -> bool:
    """Whether the parser can be given all of a page. Most pages are; of others it is not known."""
    tags = html.count(b"<")
    if len(html) > _HARMLESS_BYTES or tags > HARMLESS_TAGS:
        return False
    if len(html) > _FEW_BYTES and (_may_have_a_large_tag(html) or _QUOTED_END.search(html)):
        return False
    return tags <= _FEW_TAGS or tags * _open_at_once(html) <= _MAX_COPIES


def parsable(html: bytes) -> bytes:
    """The beginning of a page that may be given to the parser where time and memory are limited."""
    return _cut(html, MAX_BYTES, MAX_TAGS)


def harmless_beginning(html: bytes) -> bytes:
    """A part of a page that is harmless, as much as can be found quickly."""
    part = _cut(html, _HARMLESS_BYTES, HARMLESS_TAGS)
    return part if is_harmless(part) else _cut(html, _FEW_BYTES, _FEW_TAGS)


def _cut(html: bytes, max_bytes: int, max_tags: int) -> bytes:
    html = html[:max_bytes]
    if html.count(b"<") <= max_tags:
        return html
    return b"<".join(html.split(b"<", max_tags + 1)[: max_tags + 1])


def _open_at_once(html: bytes) -> int:
    """At most how many formatting elements are open at any point."""
    number = 0
    for tag, times in Counter(_CANDIDATE.findall(html)).items():
        if _FORMATTING.match(tag):
            if not _PLAIN_TAG.fullmatch(tag):  # it may go on behind what looked like its end, each time in another way
                return len(html)
            number += min(times, _OPEN_OF_A_KIND)
    return number


def _may_have_a_large_tag(html: bytes) -> bool:
    """A tag with very many attributes fills a window without any >."""
    position = 0
    while position < len(html):
        if html.find(b">", position, position + _WINDOW) < 0:
            start = html.rfind(b">", max(0, position - _WINDOW), position) + 1
            end = html.find(b">", position)
            end = end if end >= 0 else len(html)
            if sum(html.count(separator, start, end) for separator in _SEPARATORS) > _MAX_ATTRIBUTES:
                return True
            position = end
        position += _WINDOW
    return False

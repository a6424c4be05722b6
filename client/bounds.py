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
_TAIL_BYTES = 10_000  # in which a page of that size has a tag
HARMLESS_TAGS = 6_000  # each may cost as many steps as there are before it

# What reading may take, of processor time. Real pages need a seventh of it at most, also those at all limits; so it
# will do on slower machines. Pages that take the square of their size are beyond it before they have cost much.
_SECONDS, _SECONDS_PER_TAG, _SECONDS_PER_BYTE = 0.2, 5e-6, 1e-7

_HARMLESS_BYTES = 1_000_000
_MAX_ATTRIBUTES = 50_000  # of all tags: each name that is new is looked for among those before it
_MAX_MERGED = 5_000  # attributes of <html> and <body>: those of all become one list
_MAX_COPIED_BYTES = 60_000_000  # of elements that the parser repeats because formatting was left open
_ELEMENT_BYTES, _ATTRIBUTE_BYTES, _TEXT_BYTES = 400, 150, 2  # for an element, each attribute, each byte of its tag
_FEW_TAGS = 1_000  # to so many even an anchor with as many attributes as fit into a tag does not matter
_SAME_KIND = 3  # of formatting that is written in the same way, the parser keeps so many open

# HTML has one kind of white space less than \s.
_SPACE = rb"[ \t\n\r\f]"
_ATTRIBUTE = rb"""(?:[ \t\n\r\f/]++[^ \t\n\r\f/>="']++(?:%b*+=%b*+(?:"[^">]*+"|'[^'>]*+'|[^ \t\n\r\f"'>]++))?+)"""
_ATTRIBUTE = _ATTRIBUTE % (_SPACE, _SPACE)
# A tag ends with the first > unless that is in quotes, which are opened like this; in text it means nothing.
_QUOTED_END = re.compile(rb"""=%b*+(?:"[^">]*+>|'[^'>]*+>)""" % _SPACE)
_LONG_TAG = re.compile(rb"<[A-Za-z][^>]{1000}")
_TAG = re.compile(rb"<[A-Za-z][^>]*+")
# Of anchors one at a time is open, so there is no need to know them all: hardly any has more attributes than this.
_LARGE_ANCHOR = re.compile(rb"<[aA](?=[ \t\n\r\f/])(?!%b{0,8}+[ \t\n\r\f/]*+>)" % _ATTRIBUTE)
# Begins like a formatting element, <html> or <body>: the list of names costs the expression engine ten times more.
_CANDIDATE = re.compile(rb"<(?:[bBeEfFiItTuU]|[cC][oO]|[hH][tT]|[nN][oO]|[sS][>\s/mMtT])[^>]*+")
_FORMATTING = re.compile(rb"<(?:b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u)(?![^ \t\n\r\f/>])", re.IGNORECASE)
_MERGED = re.compile(rb"<(?:html|body)(?![^ \t\n\r\f/>])", re.IGNORECASE)
_PLAIN_TAG = re.compile(rb"<\w++%b*+[ \t\n\r\f/]*+" % _ATTRIBUTE)
_QUOTED = re.compile(rb"""="[^"]*+"|='[^']*+'""")
_SEPARATORS = (b" ", b"\n", b"\t", b"\r", b"\f", b"/", b'"', b"'")


def is_harmless(html: bytes) -> bool:
    """Whether the parser can be given all of a page. Most pages are; of others it is not known."""
    tags = html.count(b"<")
    if len(html) > _HARMLESS_BYTES or tags > HARMLESS_TAGS:
        return False
    if _QUOTED_END.search(html) or _LONG_TAG.search(html) or (tags > _FEW_TAGS and _LARGE_ANCHOR.search(html)):
        return False
    return not _has_many_attributes(html) and _formatting_is_harmless(html, tags)


def beginning(body: bytes) -> bytes:
    """As much of a page in any encoding as is worth decoding, in whole characters if it has tags."""
    if len(body) <= MAX_BYTES:
        return body
    return body[: body.rfind(b">", MAX_BYTES - _TAIL_BYTES, MAX_BYTES) + 1 or MAX_BYTES]


def parsable(html: bytes) -> bytes:
    """The beginning of a page that may be given to the parser where time and memory are limited."""
    return _cut(html, MAX_BYTES, MAX_TAGS)


def seconds_for(html: bytes) -> float:
    """How much processor time it may take to read what is `parsable` of a page."""
    tags = min(html.count(b"<", 0, MAX_BYTES), MAX_TAGS)
    return _SECONDS + _SECONDS_PER_TAG * tags + _SECONDS_PER_BYTE * min(len(html), MAX_BYTES)


def harmless_beginning(html: bytes) -> bytes:
    """A part of a page that is harmless, as much as can be found quickly."""
    max_bytes, max_tags = _HARMLESS_BYTES, HARMLESS_TAGS
    while not is_harmless(part := _cut(html, max_bytes, max_tags)):
        max_bytes, max_tags = max_bytes // 2, max_tags // 2
    return part


def _cut(html: bytes, max_bytes: int, max_tags: int) -> bytes:
    html = html[:max_bytes]
    if html.count(b"<") <= max_tags:
        return html
    return b"<".join(html.split(b"<", max_tags + 1)[: max_tags + 1])


def _has_many_attributes(html: bytes) -> bool:
    if len(html) < 2 * _MAX_ATTRIBUTES:  # each takes two bytes at least
        return False
    return _separators(html) > _MAX_ATTRIBUTES < _separators(b"".join(_TAG.findall(html)))


def _formatting_is_harmless(html: bytes, tags: int) -> bool:
    """Each tag may close all formatting that is open, and make the parser repeat it."""
    open_bytes = merged = 0
    for tag, times in Counter(_CANDIDATE.findall(html)).items():
        if _FORMATTING.match(tag):
            if not _PLAIN_TAG.fullmatch(tag):
                return False
            open_bytes += _size(tag) * min(times, _SAME_KIND)
        elif _MERGED.match(tag):
            merged += _separators(tag) * times
    return merged <= _MAX_MERGED and tags * open_bytes <= _MAX_COPIED_BYTES


def _size(tag: bytes) -> int:
    """Of the element that a plain tag makes, at most."""
    bare = _QUOTED.sub(b"", tag)
    return _ELEMENT_BYTES + _ATTRIBUTE_BYTES * _separators(bare) + _TEXT_BYTES * len(tag)


def _separators(part: bytes) -> int:
    """At least as many as there are attributes."""
    return sum(map(part.count, _SEPARATORS))

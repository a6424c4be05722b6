"""How much of a page the HTML parser may be given, so that no page costs it more than a moment and some megabytes.

The standard's algorithm takes the square of the input for pages built to do so (100,000 nested tags, 100,000
attributes), and <font> left open a few thousand times makes gigabytes of 40 KB. A call of the parser can not be
interrupted, so what exceeds the limits is cut off before. Honest pages stay far below them.
"""

import re
from collections import defaultdict
from itertools import islice

MAX_BYTES = 8_000_000
MAX_TAGS = 300_000  # start and end tags; about 200 bytes each in the parsed page
MAX_DEPTH = 2_000  # elements open at once
MAX_COPIES = 150_000  # elements that the parser repeats because formatting was left open; about 400 bytes each
MAX_ATTRIBUTES = 1_000  # of one tag, counted where a tag is longer than a window
MAX_MERGED = 200  # <html> and <body> tags: the attributes of all go to one element

_WINDOW = 4096
_FEW_TAGS = 1_500  # so few can not do harm, however they are arranged
_MANY_TAGS = 40_000  # fewer cost about a second, however they are nested
_SEPARATORS = (b" ", b"\n", b"\t", b"\r", b"\f", b"/", b'"', b"'")

_TOKEN = re.compile(rb"<(?:(!--)|(/?)([a-zA-Z][a-zA-Z0-9]*))")
_ATTRIBUTE = re.compile(rb"""[^\s/>=]+(?:\s*=\s*(?:"[^"]*"|'[^']*'|[^\s>]*))?""")
_RAW_END = {name: re.compile(rb"</" + name, re.IGNORECASE) for name in (b"script", b"style", b"textarea", b"title")}
_FORMATTING = frozenset(b"a b big code em font i nobr s small strike strong tt u".split())
_FORMATTING_NAMES = b"|".join(sorted(_FORMATTING - {b"a", b"nobr"}))  # of those two, one at a time is open
_SLASH = ord("/")
# Begins like a formatting element, <html> or <body>: the full list of names costs the expression engine ten times more.
_REPEATED_TAG = re.compile(rb"<(?:[bBeEfFiItTuU]|[cC][oO]|[hH][tT]|[sS][>\s/mMtT])[^>]*")
_FORMATTING_OR_MERGED = re.compile(rb"<(?:" + _FORMATTING_NAMES + rb"|html|body)(?![^\s/>])", re.IGNORECASE)
_PLAIN_TAG = re.compile(rb"""<\w++(?:[\s/]++[^\s/>="']++(?:\s*+=\s*+(?:"[^">]*+"|'[^'>]*+'|[^\s"'>]++))?+)*+[\s/]*+""")
_FORMATTING_TOKEN = re.compile(
    rb"<(?:!--.*?(?:-->|\Z)|script.*?(?:</script|\Z)|style.*?(?:</style|\Z)|textarea.*?(?:</textarea|\Z)"
    rb"|title.*?(?:</title|\Z)|(/?(?:" + _FORMATTING_NAMES + rb"))(?![^\s/>]))",
    re.DOTALL,
)
# Never open for long: elements without content, and those that the next one of their kind closes.
_SHORT = frozenset(
    b"area base br col embed hr img input link meta param source track wbr "
    b"body head html p li dd dt option optgroup tr td th tbody thead tfoot rp rt button".split()
)


def parsable(html: bytes) -> bytes:
    """`html`, or the part of it before it becomes too much for the parser."""
    html = html[:MAX_BYTES]
    return html[: _end(html)] if _suspicious(html) else html


def _suspicious(html: bytes) -> bool:
    """Whether tags may pile up: judged in bulk, which is ten times cheaper than looking at each tag."""
    tags = html.count(b"<")
    if tags > _MANY_TAGS or _may_have_a_large_tag(html):
        return True
    if tags <= _FEW_TAGS:
        return False
    kinds = {tag for tag in set(_REPEATED_TAG.findall(html)) if _FORMATTING_OR_MERGED.match(tag)}
    if len(kinds) > MAX_MERGED or not all(map(_PLAIN_TAG.fullmatch, kinds)):
        return True
    # Of formatting that is written in the same way, the parser keeps three open.
    return tags * 3 * len(kinds) > MAX_COPIES and tags * _formatting_open_at_once(html) > MAX_COPIES


def _formatting_open_at_once(html: bytes) -> int:
    """At most how many formatting elements are open at any point."""
    still_open: defaultdict[bytes, int] = defaultdict(int)
    most = all_open = 0
    for name in _FORMATTING_TOKEN.findall(html.lower()):
        if not name:  # a comment, or something else that is no markup
            continue
        if name[0] != _SLASH:
            still_open[name] += 1
            all_open += 1
            most = max(most, all_open)
        elif still_open[name[1:]]:
            still_open[name[1:]] -= 1
            all_open -= 1
    return most


def _may_have_a_large_tag(html: bytes) -> bool:
    """A tag with very many attributes fills a window without any >."""
    position = 0
    while position < len(html):
        end = html.find(b">", position, position + _WINDOW)
        if end < 0:
            start = html.rfind(b">", max(0, position - _WINDOW), position) + 1
            end = _next(html, b">", position)
            if sum(html.count(separator, start, end) for separator in _SEPARATORS) > MAX_ATTRIBUTES:
                return True
            position = end
        position += _WINDOW
    return False


def _next(html: bytes, mark: bytes, position: int) -> int:
    found = html.find(mark, position)
    return found if found >= 0 else len(html)


def _end(html: bytes) -> int | None:
    """Where the page exceeds a limit: follows what is open, roughly as the parser does."""
    piles = _Piles()
    position = 0
    while token := _TOKEN.search(html, position):
        position = token.end()
        comment, closing, raw_name = token.groups()
        name = (raw_name or b"").lower()
        if comment:
            position = _next(html, b"-->", position)
        elif closing:
            piles.close(name)
        else:
            end = _next(html, b">", position)
            if piles.open(name) or (end - position > _WINDOW and _attributes(html, position, end) > MAX_ATTRIBUTES):
                return token.start()
            position = _raw_end(html, name, end)
    return None


def _attributes(html: bytes, start: int, end: int) -> int:
    return sum(1 for _ in islice(_ATTRIBUTE.finditer(html, start, end), MAX_ATTRIBUTES + 1))


def _raw_end(html: bytes, name: bytes, position: int) -> int:
    """Where markup goes on after the start tag that ends at `position`: what is in a script is not markup."""
    if name not in _RAW_END:
        return position
    end = _RAW_END[name].search(html, position)
    return end.start() if end else len(html)


class _Piles:
    """Counts of what is open while the tags of one page go by."""

    def __init__(self) -> None:
        self._open: defaultdict[bytes, int] = defaultdict(int)
        self._tags = self._merged = self._depth = self._formatting = self._copies = 0

    def open(self, name: bytes) -> bool:
        """Count a start tag; True if it is one too many."""
        self._tags += 2
        self._merged += name in (b"html", b"body")
        if name in _FORMATTING:
            self._formatting += 1
        else:
            self._copies += self._formatting
        if name not in _SHORT:
            self._open[name] += 1
            self._depth += 1
        return (
            self._depth > MAX_DEPTH
            or self._copies > MAX_COPIES
            or self._tags > MAX_TAGS
            or self._merged > MAX_MERGED
        )

    def close(self, name: bytes) -> None:
        """Count an end tag; one without a start tag closes nothing."""
        if self._open[name]:
            self._open[name] -= 1
            self._depth -= 1
            self._formatting -= name in _FORMATTING

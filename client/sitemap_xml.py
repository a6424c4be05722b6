"""The elements of a sitemap or a feed: which of them are entries, their addresses and their times. What expat calls."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from email.utils import parsedate_to_datetime

from client.blanks import trimmed
from client.sitemap import MAX_TEXT, Collected, Stop

_MAX_DEPTH = 64  # of elements; each costs memory
_MAX_TIME = 64

# Root element -> the element that is an entry. Names without prefix, in lower case.
_RECORDS = {"urlset": "url", "sitemapindex": "sitemap", "rss": "item", "rdf": "item", "feed": "entry"}
_ONLY_RECORDS = frozenset(["urlset", "sitemapindex"])  # have nothing but entries; a feed has a head, too
# Of an entry, the best first.
_FOREIGN_LINK = "atom:link"  # of another vocabulary than that of the entry
_ADDRESSES = ("loc", "link", "guid", _FOREIGN_LINK)
_TIMES = ("lastmod", "pubdate", "updated", "date", "published")
_FIELDS = frozenset([*_ADDRESSES, *_TIMES])

_W3C_TIME = re.compile(
    r"(\d{4})(?:-(\d\d?)(?:-(\d\d?)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,]\d+)?)?\s*(Z|[+-]\d\d(?::?\d\d)?)?)?)?)?",
    re.IGNORECASE | re.ASCII,
)


class Handler:
    """What expat calls. Prefixes of names are compared as they are written: many files do not declare them."""

    def __init__(self, collected: Collected) -> None:
        self._collected = collected
        self._depth = 0
        self._root = ""
        self._record = ""  # the name of entries in this file
        self._is_strange = False  # there is something beside entries where only these should be
        self._inside = 0  # depth of the entry that we are in; 0: in none
        self._prefix = ""  # of that entry; fields of other vocabularies, such as image:loc, have another
        self._field = ""  # that we are in
        self._pieces: list[str] = []
        self._length = 0
        self._fields: dict[str, str] = {}
        self._own: list[str] = []  # text of the entry in none of its elements
        self._own_length = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise Stop(f"has more than {_MAX_DEPTH} elements in each other")
        prefix, name = _split(name)
        if self._depth == 1:
            self._root, self._record = name, _RECORDS.get(name, "")
            if not self._record:
                raise Stop(f"is no sitemap: <{name[:40]}>")
        elif not self._inside:
            if name == self._record:
                self._inside, self._prefix, self._fields = self._depth, prefix, {}
                self._own, self._own_length = [], 0
            elif self._depth == 2:
                self._is_strange = True
        elif self._depth == self._inside + 1:
            if prefix == self._prefix or name == "date":
                self._begin_field(name, attributes)
            elif name == "link" and self._record == "item":
                self._note_link(_FOREIGN_LINK, attributes)

    def _begin_field(self, name: str, attributes: dict[str, str]) -> None:
        if name == "link" and "href" in attributes:
            self._note_link(name, attributes)
        elif name in _FIELDS and not (name == "guid" and _is_no_permalink(attributes)):
            self._field, self._pieces, self._length = name, [], 0

    def _note_link(self, field: str, attributes: dict[str, str]) -> None:
        """That of Atom, which RSS borrows."""
        if attributes.get("rel", "alternate") == "alternate":
            self._fields.setdefault(field, trimmed(attributes.get("href", "")[:MAX_TEXT]))

    def text(self, data: str) -> None:
        if self._field:
            if self._length <= MAX_TEXT:
                self._pieces.append(data)
                self._length += len(data)
        elif self._depth == self._inside:
            if self._own_length <= MAX_TEXT and not data.isspace():
                self._own.append(data)
                self._own_length += len(data)
        elif self._depth == 1 and not data.isspace():
            self._is_strange = True

    def end(self, name: str) -> None:
        if self._inside and self._depth == self._inside + 1 and self._field:
            if self._length <= MAX_TEXT:
                self._fields.setdefault(self._field, trimmed("".join(self._pieces)))
            self._field = ""
        elif self._depth == self._inside:
            self._inside = 0
            self._add()
        elif self._depth == 1:
            self._tell_of_nothing()
        self._depth -= 1

    def _add(self) -> None:
        """The entry that has ended, by the best of what could be its address."""
        self._collected.tried += 1
        fields = self._fields
        time = _seconds(next((fields[name] for name in _TIMES if fields.get(name)), ""))
        for address in self._candidates():
            if self._collected.add(address, time, self._record == "sitemap"):
                return

    def _candidates(self) -> Iterator[str]:
        for name in _ADDRESSES:
            address = self._fields.get(name, "")
            if address and (name != "guid" or self._collected.is_absolute(address)):  # often a mere number
                yield address
        own = trimmed("".join(self._own))  # <link/>http://… of a page's <link>, which has no end; or no <loc>
        if self._collected.is_absolute(own) and len(own.split()) == 1:
            yield own

    def _tell_of_nothing(self) -> None:
        if self._collected.tried:
            count = f"none of its {self._collected.tried} entries"
            self._collected.nothing = f"lists nothing: {count} has an address that can be crawled"
        elif self._is_strange and self._root in _ONLY_RECORDS:
            self._collected.nothing = f"lists nothing: <{self._root}> has other elements than <{self._record}>"


def _is_no_permalink(attributes: dict[str, str]) -> bool:
    return any(name.lower() == "ispermalink" and value.strip().lower() == "false" for name, value in attributes.items())


def _split(name: str) -> tuple[str, str]:
    prefix, _, local = name.rpartition(":")
    return prefix, local.lower()


def _seconds(text: str) -> int:
    """A time as sitemaps (W3C) or feeds (RFC 822) write it, as seconds since 1970, UTC; 0 for nonsense."""
    text = text.strip()[:_MAX_TIME]
    try:
        match = _W3C_TIME.fullmatch(text)
        time = _w3c_time(match) if match else parsedate_to_datetime(text)
        return max(0, int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()))
    except (ValueError, TypeError, IndexError, OverflowError):
        return 0


def _w3c_time(match: re.Match[str]) -> datetime:
    year, month, day, hour, minute, second = (int(part) if part else None for part in match.groups()[:6])
    assert year is not None
    time = datetime(year, month or 1, day or 1, hour or 0, minute or 0, second or 0, tzinfo=UTC)
    zone = match[7] or "Z"
    if zone in "Zz":
        return time
    offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[3:].lstrip(":") or 0))
    return time.replace(tzinfo=timezone(-offset if zone[0] == "-" else offset))

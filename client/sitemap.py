"""What a sitemap says, and how it is collected from a file. Pure."""

import json
import re
from typing import NamedTuple

from common.urls import MAX_URL_LENGTH, host_of, resolve

MAX_ENTRIES = 50_000
MAX_TEXT = 2 * MAX_URL_LENGTH  # of an address as it is written; blanks around it do not matter
UNKNOWN = "\ufffd"  # what could not be read

_ABSOLUTE = re.compile(r"https?://", re.IGNORECASE)
_WWW = re.compile(r"www\.[^\s/?#@.]+\.[^\s/?#@]+(?:[/?#]\S*)?", re.IGNORECASE)


class Entry(NamedTuple):
    """One address of a sitemap."""

    url: str  # an address, as common.urls has it
    modified: int = 0  # when it changed last, in seconds since 1970, UTC; 0: not known


class Sitemap(NamedTuple):
    """What a file says, each address once, in its order. Feeds have entries only, indexes have sitemaps only."""

    entries: tuple[Entry, ...] = ()
    sitemaps: tuple[Entry, ...] = ()
    problem: str = ""  # what is wrong with the file; what came before it counts

    def packed(self) -> bytes:
        """To be read in another process."""
        return json.dumps(self).encode()

    @classmethod
    def unpacked(cls, data: bytes) -> "Sitemap":
        entries, found, problem = json.loads(data)
        return cls(tuple(Entry(*each) for each in entries), tuple(Entry(*each) for each in found), problem)


class Stop(Exception):
    """Nothing more is read; says why."""


class Collected:
    """The addresses so far. Whoever reads counts in `tried` what should have been one, and says what that is."""

    def __init__(self, base: str) -> None:
        self._base = base
        self._scheme, self._host = base.partition(":")[0], host_of(base).removeprefix("www.")
        self._entries: dict[str, int] = {}
        self._sitemaps: dict[str, int] = {}
        self.tried = 0
        self.nothing = ""  # why there is none, if there is none

    def add(self, reference: str, modified: int = 0, is_sitemap: bool = False) -> bool:
        """Whether that is an address."""
        # Without what could not be read it would be another address.
        if not reference or UNKNOWN in reference:
            return False
        if self._lacks_scheme(reference):
            reference = f"{self._scheme}://{reference}"
        url = resolve(reference, self._base)
        if url is None:
            return False
        found = self._sitemaps if is_sitemap else self._entries
        if url not in found and len(found) >= MAX_ENTRIES:
            raise Stop(f"has more than {MAX_ENTRIES} entries")
        found[url] = max(modified, found.get(url, 0))
        return True

    def is_absolute(self, reference: str) -> bool:
        """Whether it names a host, so that it is an address wherever it stands."""
        return self._lacks_scheme(reference) or _ABSOLUTE.match(reference) is not None

    def _lacks_scheme(self, reference: str) -> bool:
        """`www.example.org/a`, or the host of the sitemap itself; other words before a slash may be a folder."""
        if reference.startswith(("http://", "https://")):
            return False  # nearly always
        if _WWW.fullmatch(reference):
            return True
        start = reference[: len(self._host)]
        return start.lower() == self._host and reference[len(start) : len(start) + 1] in ("", "/", "?", "#")

    def sitemap(self, problem: str) -> Sitemap:
        """All of it."""
        if not problem and not self._entries and not self._sitemaps:
            problem = self.nothing
        return Sitemap(
            tuple(Entry(*item) for item in self._entries.items()),
            tuple(Entry(*item) for item in self._sitemaps.items()),
            problem,
        )

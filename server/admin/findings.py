"""What an audit has found: counts, differences and notes. Bounded, however much is wrong."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

SHOWN = 100  # of each list; the number in all is always told


@dataclass(slots=True)
class Listing:
    """Things of several kinds: how many of each, and the first ones."""

    kinds: Counter[str] = field(default_factory=Counter)
    first: list[tuple[str, str]] = field(default_factory=list)

    def add(self, kind: str, what: str) -> None:
        self.kinds[kind] += 1
        if len(self.first) < SHOWN:
            self.first.append((kind, what))

    @property
    def number(self) -> int:
        return self.kinds.total()

    def as_json(self) -> dict[str, Any]:
        shown = [{"kind": kind, "what": what} for kind, what in self.first]
        return {"number": self.number, "kinds": dict(self.kinds), "first": shown}


@dataclass(slots=True)
class Findings:
    """A difference is something lost, doubled or damaged; a note is something that looks odd and is all right."""

    counts: Counter[str] = field(default_factory=Counter)
    differences: Listing = field(default_factory=Listing)
    notes: Listing = field(default_factory=Listing)

    def as_json(self) -> dict[str, Any]:
        return {
            "counts": dict(self.counts),
            "differences": self.differences.as_json(),
            "notes": self.notes.as_json(),
        }


# The kinds of differences, in the words of the manual.
FRONTIER = "frontier"  # its tables do not agree
PAGE_MISSING = "page missing"  # done and stored, says the frontier, but there is no page
PAGE_UNKNOWN = "page unknown"  # a page of a URL that the frontier does not know
NOT_REPORTED = "not reported"  # a page of a URL that is still to be crawled
NOT_CONFIRMED = "not confirmed"  # a page that its job never had, or of which it has said something else
STORED_TWICE = "stored twice"  # a page that is there twice under one job; the first one counts
BUNDLE_GONE = "bundle gone"  # catalogued, but there is no file
NOT_CATALOGUED = "not catalogued"  # a file that the catalogue does not know
CATALOGUE_WRONG = "catalogue wrong"  # it says something else than the manifest
BUNDLE_BROKEN = "bundle broken"  # the file is not what its manifest says
UNREADABLE = "unreadable"  # a folder or a bundle at which we may not look
MANIFEST_GONE = "manifest gone"  # there is none beside the bundle, or it cannot be read

# The kinds of notes.
STORED_AGAIN = "stored again"  # the same in several jobs: a client lost its lease after it had uploaded
LATER_OUTCOME = "later outcome"  # stored, and something else at a later try
IN_FLIGHT = "in flight"  # of a crawl that goes on: uploaded, and not yet reported or catalogued

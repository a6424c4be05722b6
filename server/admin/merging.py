"""The frontier against the catalogue: both are in the order of the URLs' digests, so one walk along both compares them
without holding either in memory."""

from collections.abc import Callable, Generator, Iterator
from itertools import pairwise
from pathlib import Path

from common.wire import Outcome
from server.admin import findings as kinds
from server.admin.doubts import doubt
from server.admin.findings import Findings
from server.catalogue import Catalogue, StoredPage
from server.catalogue.apart import REPEATED, Apart
from server.frontier.claims import Claim
from server.frontier.records import KEY_LENGTH, State, UrlState

_OPEN = (State.QUEUED, State.LEASED, State.WAITING)
_HAVE_PAGE = (Outcome.STORED, Outcome.UNCHANGED)


class Merge:
    """Is told of each URL of the frontier in order (`on_state`), then `finish`; `close` in any case.

    The catalogue has set apart what does not count. `since` is when the copy of a running crawl's frontier was made,
    None for a crawl that stands still. `on_missing` is told of each done URL without a page, by its key.
    """

    def __init__(
        self, catalogue: Catalogue, pages: Path, found: Findings, since: float | None, arriving: set[bytes],
        on_missing: Callable[[bytes], None] = lambda key: None,
    ) -> None:  # fmt: skip
        self._catalogue = catalogue
        self._pages = pages
        self._found = found
        self._since = since
        self._arriving = arriving
        self._on_missing = on_missing
        self._confirmed = _Stream(catalogue.digests())
        self._apart = _Stream(catalogue.apart())

    def on_state(self, key: bytes, state: UrlState) -> None:
        """The next URL of the frontier."""
        for digest, copies in self._confirmed.before(key):
            self._take_unknown(digest, copies)
        for digest, copies in self._apart.before(key):
            self._take_apart(digest, copies, None)
        confirmed = self._confirmed.at(key)
        if confirmed is not None:
            self._take_known(*confirmed, state)
        elif state.has_page and key not in self._arriving:
            self._found.differences.add(kinds.PAGE_MISSING, f"{key.hex()}… is done, and has no page")
            self._on_missing(key)
        unconfirmed = self._apart.at(key)
        if unconfirmed is not None:
            self._take_apart(*unconfirmed, state)

    def finish(self) -> None:
        """The frontier has no more URLs."""
        for digest, copies in self._confirmed.before(None):
            self._take_unknown(digest, copies)
        for digest, copies in self._apart.before(None):
            self._take_apart(digest, copies, None)

    def close(self) -> None:
        """Let go of the catalogue, which can be closed then."""
        self._confirmed.close()
        self._apart.close()

    # --- pages that count --------------------------------------------------------------------------------------

    def _take_unknown(self, digest: bytes, copies: int) -> None:
        page = self._latest(digest)
        self._differs_or_is_new(kinds.PAGE_UNKNOWN, page, f"{page.url} in {page.bundle}")
        self._check_copies(digest, copies)

    def _take_known(self, digest: bytes, copies: int, state: UrlState) -> None:
        if not state.was_stored:  # by an earlier visit: then what has become of the last one does not matter
            self._compare(self._latest(digest), state)
        self._check_copies(digest, copies, state.was_stored)

    def _compare(self, page: StoredPage, state: UrlState) -> None:
        """A page with its URL, which was not stored before this visit."""
        if state.state in _OPEN or state.is_outside:
            what = f"{page.url} is {state.state.name.lower()}, and stored in {page.bundle}"
            if self._since is None:
                self._found.differences.add(kinds.NOT_REPORTED, what)
            else:
                self._found.notes.add(kinds.IN_FLIGHT, what)
        elif state.state is not State.DONE or state.outcome not in _HAVE_PAGE:
            reason = state.rule or state.outcome.value
            self._found.notes.add(kinds.LATER_OUTCOME, f"{page.url} is stored, and was {reason} later")

    def _check_copies(self, digest: bytes, copies: int, is_revisited: bool = False) -> None:
        """Several that count are of several jobs."""
        self._found.counts["URLs with a page"] += 1
        self._found.counts["pages"] += copies
        if copies == 1:
            return
        pages = self._catalogue.pages_of(digest)
        same = sum(page.sha1 == before.sha1 for before, page in pairwise(pages)) if is_revisited else copies - 1
        if same:
            self._found.notes.add(kinds.STORED_AGAIN, f"{pages[0].url}: in {same + 1} jobs")
        self._found.counts["revisions"] += copies - 1 - same

    # --- pages that do not -------------------------------------------------------------------------------------

    def _take_apart(self, digest: bytes, copies: int, state: UrlState | None) -> None:
        self._found.counts["pages not confirmed"] += copies
        for stored in self._catalogue.apart_of(digest):
            if stored.why == Claim.HELD:
                self._take_held(stored, state)
            else:
                kind = kinds.STORED_TWICE if stored.why == REPEATED else kinds.NOT_CONFIRMED
                what = f"{stored.page.url} in {stored.page.bundle}: {doubt(stored)}"
                self._differs_or_is_new(kind, stored.page, what)

    def _take_held(self, stored: Apart, state: UrlState | None) -> None:
        """Uploaded and not reported, or not in time."""
        page = stored.page
        if state is None:
            self._differs_or_is_new(kinds.PAGE_UNKNOWN, page, f"{page.url} in {page.bundle}")
        elif state.has_page:
            kind = kinds.IN_FLIGHT if self._since is not None and state.state in _OPEN else kinds.STORED_AGAIN
            self._found.notes.add(kind, f"{page.url} in {page.bundle}: {doubt(stored)}")
        else:
            self._compare(page, state)

    # --- both --------------------------------------------------------------------------------------------------

    def _differs_or_is_new(self, kind: str, page: StoredPage, what: str) -> None:
        if self._is_newer(page):
            self._found.notes.add(kinds.IN_FLIGHT, f"{page.url} was stored during the audit")
        else:
            self._found.differences.add(kind, what)

    def _latest(self, digest: bytes) -> StoredPage:
        page = self._catalogue.latest(digest)
        assert page is not None  # its digest comes from there
        return page

    def _is_newer(self, page: StoredPage) -> bool:
        """Stored after the frontier was copied, which could not know it then."""
        try:
            return self._since is not None and (self._pages / page.bundle).stat().st_mtime >= self._since
        except OSError:
            return False


class _Stream:
    """URLs of the catalogue, each with a number of pages, on which one walk goes on."""

    def __init__(self, rows: Generator[tuple[bytes, int], None, None]) -> None:
        self._rows = rows
        self._next = next(rows, None)

    def before(self, key: bytes | None) -> Iterator[tuple[bytes, int]]:
        """Those before a key, or all that are left."""
        while self._next is not None and (key is None or self._next[0][:KEY_LENGTH] < key):
            yield self._next
            self._next = next(self._rows, None)

    def at(self, key: bytes) -> tuple[bytes, int] | None:
        """The one of this key, if it is there."""
        found = self._next
        if found is None or found[0][:KEY_LENGTH] != key:
            return None
        self._next = next(self._rows, None)
        return found

    def close(self) -> None:
        self._rows.close()

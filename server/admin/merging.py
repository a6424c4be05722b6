"""The frontier against the catalogue: both are in the order of the URLs' digests, so one walk along both compares them
without holding either in memory."""

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from common.bundle import parse_bundle_name
from common.wire import Outcome
from server.admin import findings as kinds
from server.admin.findings import Findings
from server.catalogue import Catalogue, StoredPage
from server.frontier.records import KEY_LENGTH, State, UrlState

_OPEN = (State.QUEUED, State.LEASED, State.WAITING)
_HAVE_PAGE = (Outcome.STORED, Outcome.UNCHANGED)


class Merge:
    """Is told of each URL of the frontier in order (`on_state`), then `finish`; `close` in any case.

    `since` is when the copy of a running crawl's frontier was made, None for a crawl that stands still.
    `on_missing` is told of each done URL without a page, by its key.
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
        self._stored = catalogue.digests()
        self._next = next(self._stored, None)

    def on_state(self, key: bytes, state: UrlState) -> None:
        """The next URL of the frontier."""
        while self._next is not None and self._next[0][:KEY_LENGTH] < key:
            self._take_unknown(*self._next)
        if self._next is not None and self._next[0][:KEY_LENGTH] == key:
            self._take_known(*self._next, state)
        elif state.has_page and key not in self._arriving:
            self._found.differences.add(kinds.PAGE_MISSING, f"{key.hex()}… is done, and has no page")
            self._on_missing(key)

    def finish(self) -> None:
        """The frontier has no more URLs."""
        while self._next is not None:
            self._take_unknown(*self._next)

    def close(self) -> None:
        """Let go of the catalogue, which can be closed then."""
        self._stored.close()

    def _advance(self, copies: int) -> None:
        self._found.counts["URLs with a page"] += 1
        self._found.counts["pages"] += copies
        self._next = next(self._stored, None)

    def _take_unknown(self, digest: bytes, copies: int) -> None:
        page = self._latest(digest)
        if self._is_newer(page):
            self._found.notes.add(kinds.IN_FLIGHT, f"{page.url} was stored during the audit")
        else:
            self._found.differences.add(kinds.PAGE_UNKNOWN, f"{page.url} in {page.bundle}")
        self._check_copies(digest, copies)
        self._advance(copies)

    def _take_known(self, digest: bytes, copies: int, state: UrlState) -> None:
        if state.was_stored:
            pass  # by an earlier visit; what has become of the last one does not matter
        elif state.state in _OPEN or state.is_outside:
            self._take_open(digest, state)
        elif state.state is not State.DONE or state.outcome not in _HAVE_PAGE:
            reason = state.rule or state.outcome.value
            self._found.notes.add(kinds.LATER_OUTCOME, f"{self._latest(digest).url} is stored, and was {reason} later")
        self._check_copies(digest, copies, state.was_stored)
        self._advance(copies)

    def _take_open(self, digest: bytes, state: UrlState) -> None:
        page = self._latest(digest)
        what = f"{page.url} is {state.state.name.lower()}, and stored in {page.bundle}"
        if self._since is None:
            self._found.differences.add(kinds.NOT_REPORTED, what)
        else:
            self._found.notes.add(kinds.IN_FLIGHT, what)

    def _check_copies(self, digest: bytes, copies: int, is_revisited: bool = False) -> None:
        if copies == 1:
            return
        pages = self._catalogue.pages_of(digest)
        job, most = Counter(_job_of(page) for page in pages).most_common(1)[0]
        if most > 1:
            self._found.differences.add(kinds.STORED_TWICE, f"{pages[0].url}: {most} times under job {job}")
            return
        same = sum(page.sha1 == before.sha1 for before, page in pairwise(pages)) if is_revisited else copies - 1
        if same:
            self._found.notes.add(kinds.STORED_AGAIN, f"{pages[0].url}: in {same + 1} jobs")
        self._found.counts["revisions"] += copies - 1 - same

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


def _job_of(page: StoredPage) -> str:
    parsed = parse_bundle_name(page.bundle.name)
    return parsed[2] if parsed else ""

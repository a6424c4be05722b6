"""Mends what an audit has found, while urlServer is stopped. Says what it did; can be interrupted and run again."""

import os
from collections.abc import Callable, Container
from contextlib import closing
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path, PurePosixPath

from common.bundle import manifest_bytes, manifest_path, read_pages
from common.clock import SystemClock
from common.errors import BundleError, PavoukError
from common.files import publish, sync_directory
from common.names import address_of
from common.page import links_in
from common.settings import Settings
from common.urls import digest, identity, resolve
from common.wire import FoundUrl
from server.admin import findings as kinds
from server.admin.audit import Examination, examine
from server.admin.bundles import Trouble
from server.admin.findings import Findings, Listing
from server.admin.merging import Merge
from server.catalogue import Catalogue, StoredBundle
from server.catalogue.apart import COUNTS
from server.catalogue.stored import has_bundles, stored_manifest
from server.frontier.claims import Claim, Claims
from server.frontier.frontier import Frontier
from server.frontier.records import KEY_LENGTH, State, UrlState
from server.frontier.recount import recount
from server.frontier.store import Store, Table, Write
from server.opening import reopened

NOT_MENDED = "not mended"  # what is said of a difference that stays
_QUARANTINE = ".quarantine"
_BATCH = 1_000  # URLs in one change
_OPEN = (State.QUEUED, State.WAITING)
_LOST_KINDS = (kinds.BUNDLE_GONE, kinds.BUNDLE_BROKEN)


def repair(store: Store, settings: Settings, seen: Examination, quick: bool, believe: bool = False) -> Listing:
    """Mend all that can be mended; returns what was done. No frontier may have the store open. `believe`: pages are
    what their bundles say, also where their jobs never had them."""
    done, pages = Listing(), settings.pages
    if seen.found.counts["stored"] and not has_bundles(pages):
        raise PavoukError(
            f"there are no bundles in {pages.absolute()}: if they are somewhere else, set directory in [ftp_Server]; "
            "repairing would forget all pages"
        )
    for line in recount(store):
        done.add("counted again", line)
    if pages.is_dir():
        with Catalogue.open(pages, thorough=True) as catalogue:  # makes it anew if it is missing or damaged
            if not seen.has_catalogue:
                catalogue.reconcile()
                number = catalogue.counts().bundles
                done.add("catalogued", f"{number} bundles; the catalogue was missing or damaged")
                seen = examine(store, pages, quick=quick, max_body_bytes=settings.url_server.max_body_bytes)
            frontier = reopened(store, settings, SystemClock())
            _Repair(store, frontier, catalogue, settings, done, believe).run(seen)
    store.sync()
    return done


class _Repair:
    def __init__(
        self, store: Store, frontier: Frontier, catalogue: Catalogue, settings: Settings, done: Listing, believe: bool
    ) -> None:
        self._store = store
        self._frontier = frontier
        self._catalogue = catalogue
        self._pages = settings.pages
        self._max_body_bytes = settings.url_server.max_body_bytes
        self._done = done
        self._trusted = {Claim.HELD, Claim.FALSE} if believe else {Claim.HELD}  # claims that are made good
        self._bad: set[PurePosixPath] = set()  # bundles that are gone or broken

    def run(self, seen: Examination) -> None:
        mend: dict[str, Callable[[Trouble], None]] = {
            kinds.BUNDLE_GONE: self._take_leave,
            kinds.BUNDLE_BROKEN: self._quarantine,
            kinds.MANIFEST_GONE: self._write_manifest,
            kinds.CATALOGUE_WRONG: self._catalogue_anew,
        }
        self._bad = {PurePosixPath(_name(item.path)) for item in seen.troubles if item.kind in _LOST_KINDS}
        for trouble in seen.troubles:
            if trouble.kind in mend:
                try:
                    mend[trouble.kind](trouble)
                except (BundleError, OSError) as error:  # it has become worse since the audit, or is not ours to move
                    self._done.add(NOT_MENDED, f"{_name(trouble.path)}: {error}")
        changes = self._catalogue.reconcile()
        if changes.added:
            self._done.add("catalogued", f"{changes.added} bundles that were not")
        if changes.dropped:
            self._done.add("dropped", f"{changes.dropped} bundles that are gone, from the catalogue")
        for bundle in self._catalogue.bundles():
            self._settle_pages_of(bundle)
        if seen.found.differences.kinds[kinds.UNREADABLE]:
            self._done.add(NOT_MENDED, "what is unreadable: missing pages may be there, so none is forgotten")
        else:
            self._settle_missing()

    # --- bundles -----------------------------------------------------------------------------------------------

    def _take_leave(self, trouble: Trouble) -> None:
        """Of a bundle that cannot be looked at. There may be something of its name all the same: a link to nowhere."""
        if os.path.lexists(trouble.path):
            self._quarantine(trouble)
        else:
            self._crawl_again(trouble)

    def _crawl_again(self, trouble: Trouble) -> None:
        """Before the catalogue forgets a bundle: it is the last to know the addresses of its pages."""
        lost: dict[bytes, str] = {}
        rows = self._catalogue.rows_of(trouble.stored) if trouble.stored else []
        states = self._frontier.states([row[1][:KEY_LENGTH] for row in rows])
        for row, state in zip(rows, states, strict=True):
            # of the others nothing is lost; what is queued again already is not looked for in all bundles once more
            if state is not None and state.is_visited and not self._has_page(row[1], {COUNTS, *self._trusted}):
                lost[row[1][:KEY_LENGTH]] = _address(row[1], row[2], row[3])
        if number := self._frontier.crawl_again(lost.items()):
            self._done.add("queued again", f"{number} URLs whose pages were in {_name(trouble.path)}")

    def _has_page(self, digest: bytes, reasons: Container[int]) -> bool:
        """Whether there is a sound page of this URL that counts, or does not for one of these reasons."""
        pages = self._catalogue.judged(digest, Claims(self._store).judge)
        return any(each.why in reasons and each.page.bundle not in self._bad for each in pages)

    def _quarantine(self, trouble: Trouble) -> None:
        self._crawl_again(trouble)
        folder = self._pages / _QUARANTINE
        folder.mkdir(exist_ok=True)
        now = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        for path in (trouble.path, manifest_path(trouble.path)):
            if os.path.lexists(path):
                path.rename(folder / f"{now}-{path.name}"[:255])
        sync_directory(trouble.path.parent)
        self._done.add("quarantined", f"{_name(trouble.path)}, now in {_QUARANTINE}")

    def _write_manifest(self, trouble: Trouble) -> None:
        publish(manifest_path(trouble.path), [manifest_bytes(stored_manifest(trouble.path))])
        self._done.add("manifest written", _name(trouble.path))

    def _catalogue_anew(self, trouble: Trouble) -> None:
        self._catalogue.replace(trouble.path, stored_manifest(trouble.path))
        self._done.add("catalogued anew", _name(trouble.path))

    # --- URLs --------------------------------------------------------------------------------------------------

    def _settle_pages_of(self, bundle: StoredBundle) -> None:
        """Pages that nobody reported: their links are taken in as the report would have done, then they are done."""
        if bundle.path in self._bad:  # it could not be moved away; its URLs are queued again
            return
        rows = [row for row in self._catalogue.rows_of(bundle) if _is_sound(row[1], row[2])]
        judge = Claims(self._store)
        claims = judge.judge(bundle.job, [(row[1], row[6]) for row in rows])
        states = self._frontier.states([row[1][:KEY_LENGTH] for row in rows])
        wanted, doubtful = dict[bytes, str](), list[tuple[bytes, bytes]]()
        for row, claim, state in zip(rows, claims, states, strict=True):
            is_open = state is None or _is_open(state)
            if is_open and claim in (Claim.CONFIRMED, *self._trusted):
                wanted[row[1][:KEY_LENGTH]] = row[2]
            if claim in self._trusted and (is_open or self._is_needed(row[1], claim, state)):
                doubtful.append((row[1], row[6]))
        notes = judge.noted(bundle.job, doubtful)
        if (wanted or notes) and self._settle(bundle, wanted, notes) and notes:
            self._done.add("confirmed", f"{len(doubtful)} pages in {bundle.path}")

    def _is_needed(self, digest: bytes, claim: Claim, state: UrlState | None) -> bool:
        """Whether a page of a URL that has ended shall count: what is believed; else only if no other one does."""
        if claim is Claim.FALSE:
            return True
        return state is not None and state.has_page and not self._has_page(digest, {COUNTS})

    def _settle(self, bundle: StoredBundle, wanted: dict[bytes, str], notes: list[Write]) -> bool:
        """False if it cannot be read, which is found only now when the audit was quick: then all stays as it is."""
        try:
            new = self._take_links(self._pages / bundle.path, wanted)
        except BundleError as error:
            self._done.add(NOT_MENDED, f"{bundle.path}: {error}; an audit that is not quick names it")
            return False
        number = self._frontier.mark_stored(wanted.items(), notes)
        if number:
            self._done.add("settled", f"{number} URLs whose pages are in {bundle.path}; {new} new links")
        return True

    def _take_links(self, path: Path, wanted: dict[bytes, str]) -> int:
        """Reads all of the bundle, also for one whose links are known: what cannot be read does not count."""
        new = 0
        for entry, _, xml in read_pages(path, self._max_body_bytes):
            url = wanted.get(bytes.fromhex(entry.meta.digest)[:KEY_LENGTH])
            if url is not None:
                depth = self._frontier.explain(url).depth + 1
                new += self._frontier.add([FoundUrl(link, depth) for link in links_in(xml)])
        return new

    def _settle_missing(self) -> None:
        """Done URLs without a page, of which nobody knows the address any more."""
        missing: list[bytes] = []
        self._catalogue.set_apart(Claims(self._store).judge, self._catalogue.mark())
        scanned = self._store.scan(Table.URLS)
        forgotten = 0
        with closing(Merge(self._catalogue, self._pages, Findings(), None, set(), missing.append)) as merge:
            while rows := list(islice(scanned, _BATCH)):
                for key, value in rows:
                    merge.on_state(key, UrlState.unpacked(value))
                forgotten += self._frontier.forget(missing) if missing else 0
                missing.clear()
        if forgotten:
            self._done.add(
                "forgotten",
                f"{forgotten} done URLs without a page; their addresses are not kept, so they are crawled again when "
                "they are found again or added",
            )


def _is_open(state: UrlState) -> bool:
    return (state.state in _OPEN and not state.was_stored) or state.is_outside


def _is_sound(stored_digest: bytes, url: str) -> bool:
    """The manifest of a stranger could say anything."""
    return resolve(url) is not None and digest(url) == stored_digest


def _address(stored_digest: bytes, url: str, folder: str) -> str:
    """What to request: the folder of a page tells the address that was found first, `url` is only its identity."""
    address = resolve(address_of(folder))
    if address is not None and stored_digest in (digest(identity(address, True)), digest(identity(address, False))):
        return address
    return url


def _name(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


"""Proves that nothing was lost or taken twice: the frontier's tables among themselves, the frontier against the
catalogue, the bundles against the catalogue. Looks at what it is given; `repair` mends."""

import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from common.errors import PavoukError
from common.settings import Settings
from server.admin import findings as kinds
from server.admin.bundles import Trouble, arriving_keys, check_bundles
from server.admin.findings import Findings
from server.admin.merging import Merge
from server.admin.remote import Remote
from server.catalogue import FILE_NAME, Catalogue, CorruptCatalogue
from server.catalogue.stored import has_bundles
from server.frontier.audit import Findings as TableFindings
from server.frontier.audit import audit
from server.frontier.claims import Claims
from server.frontier.records import State
from server.frontier.rocks import RocksStore
from server.frontier.store import Store


@dataclass(slots=True)
class Examination:
    """The result, and what a repair needs of it."""

    found: Findings = field(default_factory=Findings)
    troubles: list[Trouble] = field(default_factory=list)
    has_catalogue: bool = True  # else pages and bundles could not be compared with anything


@contextmanager
def copied(remote: Remote, settings: Settings) -> Iterator[tuple[Store, float]]:
    """A copy of a running server's frontier and the time when it was made; removed afterwards."""
    answer = remote.run("copy", {})
    folder = settings.memory / Path(str(answer["folder"])).name
    if not folder.is_dir():
        raise PavoukError(f"urlServer does not work in {settings.folder.absolute()}: give its folder with --dir")
    try:
        store = RocksStore(folder, read_only=True)
        try:
            yield store, float(answer["time"])
        finally:
            store.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def examine(
    store: Store, pages: Path, *, quick: bool, since: float | None = None, max_body_bytes: int = 0
) -> Examination:
    """Compare everything. `since`: the crawl runs, and the store is a copy made at that time."""
    if not (pages / FILE_NAME).exists():
        return _without_catalogue(store, pages, "")
    try:
        with Catalogue.open(pages, read_only=True, thorough=True) as catalogue:
            return _compared(store, catalogue, pages, quick, since, max_body_bytes)
    except CorruptCatalogue as error:  # what was compared with it so far says nothing
        return _without_catalogue(store, pages, f"{pages / FILE_NAME}: {error}")


def _compared(
    store: Store, catalogue: Catalogue, pages: Path, quick: bool, since: float | None, max_body_bytes: int
) -> Examination:
    result = Examination()
    judge = Claims(store).judge
    arriving = arriving_keys(catalogue, pages, judge)  # first: what is catalogued meanwhile is there below
    catalogue.set_apart(judge, catalogue.mark())
    with closing(Merge(catalogue, pages, result.found, since, arriving)) as merge:
        _take_tables(audit(store, merge.on_state), result.found)
        merge.finish()
    check_bundles(
        catalogue, pages, result.found, quick=quick, is_running=since is not None, max_body_bytes=max_body_bytes,
        on_trouble=result.troubles.append,
    )  # fmt: skip
    return result


def _without_catalogue(store: Store, pages: Path, damage: str) -> Examination:
    """`damage` is what is wrong with it, if it is there. Before the first upload there is none."""
    result = Examination(has_catalogue=False)
    found = result.found
    _take_tables(audit(store), found)
    if not damage and (found.counts["stored"] or has_bundles(pages)):
        damage = f"there is no catalogue in {pages}"
    if damage:
        found.differences.add(kinds.CATALOGUE_WRONG, damage)
    return result


def _take_tables(tables: TableFindings, found: Findings) -> None:
    states = tables.states
    found.counts["known"] = states.total()
    found.counts["queued"] = states[State.QUEUED] + states[State.WAITING]
    for state in (State.LEASED, State.DONE, State.FAILED, State.EXCLUDED):
        found.counts[state.name.lower()] = states[state]
    found.counts["stored"] = tables.totals.stored
    for difference in tables.differences:
        found.differences.add(kinds.FRONTIER, difference)
    found.differences.kinds[kinds.FRONTIER] += tables.number - len(tables.differences)
    found.differences.kinds += Counter()  # drops a zero

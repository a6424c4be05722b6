"""Goes on with what is left of a damaged frontier. What is there is kept first: somebody may know how to do more."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from server.frontier.audit import audit
from server.frontier.frontier import is_begun
from server.frontier.leasing import skip_jobs
from server.frontier.promise import promise_in
from server.frontier.recount import recount
from server.frontier.rocks import RocksStore, rebuild, rename_head
from server.frontier.store import DamagedStore, LostChanges, StoreError, Table

_NEVER_CHANGED = ".sst"  # RocksDB writes such a file once, so a second name for it is as good as a copy


@dataclass(frozen=True, slots=True)
class Recovery:
    """What was done, and what came of it."""

    damage: str
    kept: Path  # the damaged files
    missing: int  # changes that were acknowledged and are gone, as far as that can be told
    differences: int  # between its tables, which make it useless

    @property
    def is_sound(self) -> bool:
        return not self.differences


def recover(folder: Path, now: float) -> Recovery | None:
    """Make the frontier in this folder one that can be opened; None if it is one. StoreError if it is in use."""
    promised = promise_in(folder)
    damage = _damage(folder)
    if damage is None:
        return None
    kept = _keep(folder, folder.with_name(f"{folder.name}.damaged-{int(now)}"))
    if not isinstance(damage, LostChanges):
        rename_head(folder)
        if not isinstance(_damage(folder), LostChanges | None):
            rebuild(folder)
    store = RocksStore(folder, accept_loss=True)
    try:
        missing = max(0, promised.surely - store.reach()) if promised else 0
        return Recovery(str(damage), kept, missing, _settled(store))
    finally:
        store.close()


def _damage(folder: Path) -> DamagedStore | None:
    """What is wrong with it; every row is read."""
    try:
        store = RocksStore(folder)
        try:
            for table in Table:
                for _ in store.scan(table):
                    pass
        finally:
            store.close()
    except DamagedStore as damage:
        return damage
    return None


def _keep(folder: Path, kept: Path) -> Path:
    def copy(source: str, target: str) -> None:
        if source.endswith(_NEVER_CHANGED):
            os.link(source, target)
        else:
            shutil.copy2(source, target)

    try:
        shutil.copytree(folder, kept, copy_function=copy)
    except (OSError, shutil.Error) as error:
        raise StoreError(f"{folder} cannot be kept as {kept}: {error}; nothing was changed") from error
    return kept


def _settled(store: RocksStore) -> int:
    """How many differences there are between the tables that counting again does not mend."""
    if not is_begun(store):
        return 1  # it does not even know what it is
    recount(store)
    skip_jobs(store)
    store.sync()
    return audit(store).number

"""Goes on with what is left of a damaged frontier. What is there is kept first: somebody may know how to do more."""

import gc
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from server.frontier.audit import audit
from server.frontier.frontier import is_begun
from server.frontier.leasing import skip_jobs
from server.frontier.promise import Promise, begin_recovery, end_recovery, is_recovering, promise_in
from server.frontier.recount import recount
from server.frontier.rocks import RocksStore, is_about_head, rebuild, rename_head
from server.frontier.store import DamagedStore, LostChanges, StoreError, Table

_NEVER_CHANGED = ".sst"  # RocksDB writes such a file once, so a second name for it is as good as a copy


@dataclass(frozen=True, slots=True)
class Recovery:
    """What was done, and what came of it."""

    damage: str
    kept: Path  # the damaged files
    missing: int | None  # changes that were acknowledged and are gone; None if nobody can tell how many
    differences: int  # between its tables, which make it useless

    @property
    def is_sound(self) -> bool:
        return not self.differences


def recover(folder: Path, now: float) -> Recovery | None:
    """Make the frontier in this folder one that can be opened; None if it is one. StoreError if it is in use. One that
    is killed on the way can be repeated."""
    promised = promise_in(folder)
    damage = _damage(folder)
    if damage is None:
        if not is_recovering(folder):
            return None
        damage = DamagedStore("the last recovery was not finished, or has found nothing to go on with")
    kept = _keep(folder, folder.with_name(f"{folder.name}.damaged-{int(now)}"))
    begin_recovery(folder)
    if not isinstance(damage, LostChanges):
        rename_head(folder)
        if not isinstance(_damage(folder), LostChanges | None):
            rebuild(folder)
    store = RocksStore(folder, recovers=True, accept_loss=True)
    try:
        done = Recovery(str(damage), kept, _missing(promised, store.reach(), damage), _settled(store))
    finally:
        store.close()
    if done.is_sound:
        end_recovery(folder)
    return done


def _damage(folder: Path) -> DamagedStore | None:
    """What is wrong with it; every row is read."""
    try:
        store = RocksStore(folder, recovers=True)
        try:
            for table in Table:
                for _ in store.scan(table):
                    pass
        finally:
            store.close()
    except DamagedStore as damage:
        # Its traces hold iterators and tables, also in circles, and those the database: nobody could open it.
        damage.__traceback__ = damage.__cause__ = damage.__context__ = None
        gc.collect()
        return damage
    return None


def _missing(promised: Promise | None, reach: int, damage: DamagedStore) -> int | None:
    if promised is not None and reach < promised.surely:
        return promised.surely - reach
    return 0 if is_about_head(damage) else None  # what is gone from the middle does not change the last number


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

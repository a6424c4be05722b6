"""Several threads in one frontier: what runs outside its lock asks the store, and changes nothing that others see."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

from common.wire import FoundUrl
from server.frontier.store import Store, Table
from server.policy.policy import Policy
from tests.conftest import STORES
from tests.frontier import Case
from tests.memory_store import MemoryStore


class Barrier:
    """Holds one thread back each time after it has read from a table, until another one has had its turn."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.held: threading.Thread | None = None  # whom
        self.reached, self.passed = threading.Event(), threading.Event()

    def wait(self, table: Table) -> None:
        if table is self.table and threading.current_thread() is self.held and not self.reached.is_set():
            self.reached.set()
            assert self.passed.wait(60)


def held_back(make: Callable[[Path], Store], barrier: Barrier) -> Callable[[Path], Store]:
    """The same kind of store with a barrier in `get_many`."""

    def made(folder: Path) -> Store:
        store = make(folder)
        get_many = store.get_many

        def slow(table: Table, keys: Sequence[bytes]) -> Sequence[bytes | None]:
            values = get_many(table, keys)
            barrier.wait(table)
            return values

        store.get_many = slow  # type: ignore[method-assign]
        return store

    return made


def race(case: Case, barrier: Barrier, first: Callable[[], object], second: Callable[[], object]) -> None:
    """`first` is held back at the barrier, if it comes there without the lock, while `second` runs to its end."""
    held = threading.Thread(target=first)
    ended = threading.Thread(target=lambda: (held.join(), barrier.reached.set()))
    barrier.held = held
    held.start()
    ended.start()
    assert barrier.reached.wait(60)
    other = threading.Thread(target=second)
    other.start()
    other.join(1 if held.is_alive() else 60)  # it may wait for the lock that the first one has
    barrier.passed.set()
    for thread in (other, held, ended):
        thread.join(60)


@pytest.mark.parametrize("table", [Table.NAMES, Table.HOSTS, Table.URLS], ids=lambda table: table.name)
@pytest.mark.parametrize("make", STORES)
def test_a_host_that_is_not_in_memory_is_the_same_for_two_threads(
    tmp_path: Path, make: Callable[[Path], Store], table: Table
) -> None:
    """One thread asks about a host on disk while another one takes in URLs of it: none of them may be lost."""
    barrier = Barrier(table)
    case = Case(tmp_path, policy=Policy(max_depth=1), make=held_back(make, barrier))
    case.add("http://a/deep", "http://a/deeper", depth=2)  # excluded, so the host is idle
    case.reopen()
    race(
        case,
        barrier,
        lambda: case.frontier.add([FoundUrl("http://a/deep", 1)]),  # nearer than was known
        lambda: case.frontier.add([FoundUrl("http://a/new", 1)]),
    )
    assert case.audit().queued == 2
    assert sorted(case.drain()) == ["http://a/deep", "http://a/new"]
    case.audit()
    case.close()
    MemoryStore.forget(tmp_path)


def test_what_a_verb_has_without_the_lock_cannot_change(tmp_path: Path) -> None:
    """The façade holds the store, frozen values, and the lock that alone leads to everything else."""
    case = Case(tmp_path, make=MemoryStore)
    held = vars(case.frontier)
    assert held.keys() == {"_store", "_view", "_names", "_decide"}
    for name in ("_view", "_names"):
        assert is_dataclass(held[name])
        assert held[name].__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert {field.name for field in fields(held["_view"])} == {"store", "policy", "rules", "moves"}
    assert {type(getattr(held["_names"], field.name)) for field in fields(held["_names"])} == {int, bool, bytes}
    case.close()
    MemoryStore.forget(tmp_path)

"""A frontier whose n-th write fails, or is what its process is killed in; and steps that are taken on it."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from server.frontier.frontier import Rules
from server.frontier.rocks import RocksStore
from server.frontier.store import Store, StoreError, Table, Write
from tests.frontier import Case
from tests.processes import ROOT

# Each can be repeated, as a client repeats a call that got a fault.
Steps = Callable[[Case], list[Callable[[], object]]]


class FailingStore:
    """Another store, whose n-th write fails and changes nothing; or whose n-th sync fails, after the write."""

    def __init__(self, store: Store, failing: int, failing_sync: int = 0) -> None:
        self._store = store
        self._failing = failing
        self._failing_sync = failing_sync
        self.writes = self.syncs = 0

    def fail_at_sync(self, number: int) -> None:
        self._failing_sync = number

    def write(self, writes: Sequence[Write]) -> None:
        self.writes += 1
        if self.writes == self._failing:
            raise StoreError("no space left")
        self._store.write(writes)

    def get(self, table: Table, key: bytes) -> bytes | None:
        return self._store.get(table, key)

    def get_many(self, table: Table, keys: Sequence[bytes]) -> Sequence[bytes | None]:
        return self._store.get_many(table, keys)

    def scan(self, table: Table, start: bytes = b"", end: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        return self._store.scan(table, start, end)

    def sync(self) -> None:
        self.syncs += 1
        if self.syncs == self._failing_sync:
            raise StoreError("input/output error")
        self._store.sync()

    def copy_to(self, folder: Path) -> None:
        self._store.copy_to(folder)

    def close(self) -> None:
        self._store.close()


def run_failing(
    folder: Path, rules: Rules, steps: Steps, failing: int, failing_sync: int = 0
) -> tuple[Case, FailingStore]:
    """Take all steps, that with the fault twice, and audit after each."""
    stores: list[FailingStore] = []

    def make(folder: Path) -> Store:
        stores.append(FailingStore(RocksStore(folder), failing, failing_sync))
        return stores[-1]

    case = Case(folder, rules, make=make)
    for step in steps(case):
        try:
            step()
        except StoreError:
            case.audit()
            step()
        case.audit()
    return case, stores[0]


class KillingStore(RocksStore):
    """Kills its process in the n-th call of write or sync, before or after it is done."""

    left = 0
    too_late = False

    def write(self, writes: Sequence[Write]) -> None:
        self._call(lambda: RocksStore.write(self, writes))

    def sync(self) -> None:
        self._call(lambda: RocksStore.sync(self))

    def _call(self, real: object) -> None:
        assert callable(real)
        self.left -= 1
        if self.left == 0 and not self.too_late:
            os.kill(os.getpid(), signal.SIGKILL)
        real()
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def run_killed(folder: Path, rules: Rules, steps: Steps) -> int:
    """Take the steps in a process that is killed within its first write, then in one for the second, and so on until
    one comes to its end; returns how many were killed. Each has a folder of its own, called by its number."""
    for number in range(1000):
        child = os.fork()
        if child == 0:
            case = Case(folder / str(number), rules, make=KillingStore)
            assert isinstance(case.store, KillingStore)
            case.store.left, case.store.too_late = number // 2 + 1, number % 2 == 1
            for step in steps(case):
                step()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status) or os.WTERMSIG(status) != signal.SIGKILL:
            return number
    raise AssertionError("never ended")


def run_killed_outside(module: str, folder: Path) -> int:
    """The same in a program that has no threads: `module`, which prints what `run_killed` returns."""
    program = [sys.executable, "-m", module, str(folder)]
    ended = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stderr
    return int(ended.stdout)

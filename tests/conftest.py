"""Fixtures that several files share."""

import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from server.frontier.frontier import Rules
from server.frontier.rocks import RocksStore
from server.policy.policy import Policy
from tests.frontier import Case, Make
from tests.memory_store import MemoryStore

STORES = [RocksStore, MemoryStore]  # another store joins here, and every contract test runs on it


@pytest.fixture(autouse=True)
def process_as_before() -> Iterator[None]:
    """A command that a test has called in this process may have sent the logs elsewhere, and set their level and the
    modes of new files."""
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    umask = os.umask(0o022)
    os.umask(umask)
    yield
    os.umask(umask)
    root.setLevel(level)
    root.handlers[:] = handlers


@pytest.fixture(params=STORES)
def frontiers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    """Makes frontiers; each is audited at the end of the test, and once more after a restart."""
    cases: list[Case] = []

    def make(policy: Policy | None = None, **rules: Any) -> Case:
        folder = tmp_path / str(len(cases))
        cases.append(Case(folder, Rules(**rules), policy or Policy(), request.param))
        return cases[-1]

    yield make
    for case in cases:
        before = case.audit()
        case.reopen()
        assert case.audit() == before
        case.close()
        MemoryStore.forget(case.folder)

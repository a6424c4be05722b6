"""Fixtures that several files share."""

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

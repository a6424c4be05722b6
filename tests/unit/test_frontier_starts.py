"""Start URLs on disk and in the scope: also those of an older frontier, and many without being counted each time."""

import json
from pathlib import Path

import pytest

from common.clock import ManualClock
from common.settings import Settings, UrlServerSettings
from server.frontier.starts import known_starts
from server.frontier.store import Table
from server.opening import last_policy, open_frontier, open_store, reading_store, reopened
from server.policy.policy import Policy
from server.starting import LookUps, private_addresses, take_in
from tests.frontier import Make

OLD = (Table.META, b"start urls", json.dumps(["http://old.org/x", "http://older.org/"]).encode())


def settings_of(folder: Path, scope: str = "host") -> Settings:
    (folder / ".mem").mkdir(exist_ok=True)
    return Settings(folder, UrlServerSettings(scope=scope))


@pytest.mark.parametrize("how", ["server", "operator", "reader"])
def test_start_urls_of_an_older_frontier_stay(tmp_path: Path, how: str) -> None:
    settings, clock = settings_of(tmp_path), ManualClock()
    open_frontier(settings, clock).close()
    store = open_store(settings)
    store.write([OLD])
    store.close()
    if how == "reader":
        with reading_store(settings) as reader:
            assert reader is not None
            known = last_policy(reader, settings)
        assert known.starts == ["http://old.org/x", "http://older.org/"]
        assert not known.policy.excluded_by("http://old.org/", "old.org", 0, 0)
        return
    if how == "server":
        open_frontier(settings, clock, ["http://new.org/"]).close()
    else:
        reopened(open_store(settings), settings, clock).close()
    store = open_store(settings)
    new = ["http://new.org/"] if how == "server" else []
    assert list(known_starts(store)) == [*new, "http://old.org/x", "http://older.org/"]
    assert store.get(*OLD[:2]) is None
    store.close()


def test_batches_of_start_urls_are_like_one(tmp_path: Path) -> None:
    addresses = [f"http://h{number % 7}.org/{number}" for number in range(12_000)]
    told: list[int] = []
    frontier = open_frontier(
        settings_of(tmp_path), ManualClock(), addresses, take_in=lambda it, starts: take_in(it, starts, told.append)
    )
    assert (frontier.totals().known, frontier.totals().queued) == (12_000, 12_000)
    assert told == [5_000, 10_000, 12_000]
    frontier.close()
    frontier = open_frontier(settings_of(tmp_path), ManualClock(), addresses, take_in=take_in)
    assert frontier.totals().known == 12_000
    frontier.close()
    store = open_store(settings_of(tmp_path))
    assert len(list(known_starts(store))) == 12_000
    store.close()


def test_a_scope_that_grows_is_asked_for_by_all_who_know_the_policy(frontiers: Make) -> None:
    policy = Policy("host", ("http://a.org/",))
    case = frontiers(policy)
    case.frontier.widen([f"http://h{number}.org/" for number in range(1_000)])
    assert not policy.excluded_by("http://h7.org/x", "h7.org", 0, 0)
    case.add("http://h7.org/x", "http://elsewhere.org/")
    assert case.audit().excluded == 1


def test_an_operator_waits_once_for_names_not_for_each_batch() -> None:
    asked: list[str] = []

    def look_up(name: str) -> list[str]:
        asked.append(name)
        return ["10.0.0.1"]

    look_ups = LookUps(names=5)
    found = [private_addresses([f"h{n}.org", f"i{n}.org", "10.1.1.1"], look_up, look_ups=look_ups) for n in range(6)]
    assert len(asked) == 5
    assert [len(batch) for batch in found] == [3, 3, 2, 1, 1, 1], "addresses need no name server"
    slow = LookUps(seconds=0.0)
    assert private_addresses(["h.org", "10.1.1.1"], look_up, look_ups=slow) == {"10.1.1.1": ("10.1.1.1",)}

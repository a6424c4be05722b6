"""Rules that change while URLs are queued."""

from pathlib import Path

import pytest

from common.clock import ManualClock
from common.settings import Settings, UrlServerSettings
from common.wire import FoundUrl, Outcome
from server.frontier import narrowing
from server.frontier.frontier import Frontier
from server.opening import open_frontier
from server.policy.policy import Policy
from tests.frontier import Make, urls_of


def test_what_is_queued_or_waits_is_judged_anew(frontiers: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(narrowing, "_BATCH", 7)
    case = frontiers(delay_seconds=0)
    case.add("http://a/trap/start", start=True)
    case.add("http://b/trap/tried", depth=1)
    case.finish("a", case.lease(), Outcome.TIMEOUT)  # both wait for another try
    case.add("http://a/trap/leased", depth=1)
    leased = case.lease("a")
    case.add(*(f"http://a/{kind}/{n}" for n in range(20) for kind in ("trap", "good")), depth=1)
    case.policy = Policy(reject=("/trap/",))
    case.reopen()
    assert case.frontier.narrow() == 21
    totals = case.audit()
    assert (totals.excluded, totals.queued, totals.leased) == (21, 21, 1)
    assert case.frontier.explain("http://a/trap/7").reason == "reject: /trap/"
    assert case.frontier.explain("http://b/trap/tried").state == "excluded"
    assert case.frontier.narrow() == 0
    case.finish("a", leased)
    asked = case.drain()
    assert sorted(asked) == sorted([*(f"http://a/good/{n}" for n in range(20)), "http://a/trap/start"])
    case.audit()


def test_a_host_that_has_nothing_left_is_out_of_the_line(frontiers: Make) -> None:
    case = frontiers(Policy("host", ("http://a/", "http://b/")), delay_seconds=0)
    case.add("http://a/1", "http://b/1", depth=1)
    case.policy = Policy("host", ("http://b/",))
    case.reopen()
    assert case.frontier.narrow() == 1
    assert urls_of(case.lease()) == ["http://b/1"]
    case.add("http://a/1", depth=1)
    assert case.frontier.explain("http://a/1").reason == "scope=host"


def _opened(folder: Path, **rules: object) -> Frontier:
    (folder / ".mem").mkdir(exist_ok=True)
    settings = Settings(folder, UrlServerSettings(**rules))  # type: ignore[arg-type]
    return open_frontier(settings, ManualClock(), ["http://a/"])


def test_a_server_that_starts_with_other_rules_enforces_them_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frontier = _opened(tmp_path)
    frontier.add([FoundUrl("http://a/1", 1), FoundUrl("http://b/1", 1)])
    frontier.close()
    calls: list[int] = []
    narrow = Frontier.narrow
    monkeypatch.setattr(Frontier, "narrow", lambda self: calls.append(narrow(self)) or calls[-1])  # type: ignore[func-returns-value]
    for rules, expected in [({}, []), ({"scope": "host"}, [1]), ({"scope": "host"}, [1]), ({}, [1, 0])]:
        frontier = _opened(tmp_path, **rules)
        assert calls == expected
        frontier.close()


def test_enforcing_goes_on_after_a_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frontier = _opened(tmp_path)
    frontier.add([FoundUrl(f"http://b/{n}", 1) for n in range(20)])
    frontier.close()
    opened: list[Frontier] = []

    def crashing(self: Frontier) -> int:
        opened.append(self)
        raise RuntimeError("power is off")

    with monkeypatch.context() as patch:
        patch.setattr(Frontier, "narrow", crashing)
        with pytest.raises(RuntimeError, match="power"):
            _opened(tmp_path, scope="host")
    opened[0].close()
    frontier = _opened(tmp_path, scope="host")
    assert (frontier.totals().excluded, frontier.totals().queued) == (20, 0)
    frontier.close()

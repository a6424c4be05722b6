"""Which links an index lists: what the crawl's own rules say, whether urlServer has the frontier open or not."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from common.clock import SystemClock
from common.errors import PavoukError
from common.settings import Settings, UrlServerSettings
from export.accepted import LinkRules, configured, link_rules
from export.frontier import asked
from server.frontier.frontier import Frontier
from server.opening import STORE_FOLDER, last_policy, open_frontier

START = "http://a.org/start.tmp"


def _rules(settings: Settings) -> LinkRules | None:
    return asked(settings, lambda store: link_rules(last_policy(store, settings)))


@contextmanager
def _frontier(folder: Path, **keys: object) -> Iterator[Frontier]:
    """The frontier of a urlServer that runs with these keys on its command line."""
    settings = Settings(folder, UrlServerSettings(**keys))  # type: ignore[arg-type]
    with closing(open_frontier(settings, SystemClock(), [START])) as frontier:
        yield frontier


@pytest.mark.parametrize("is_running", [True, False])
def test_the_rules_of_the_crawl(tmp_path: Path, is_running: bool) -> None:
    settings = Settings(tmp_path)  # config.cfg has the defaults
    with _frontier(tmp_path, scope="host", reject=(r"\.tmp$",), max_depth=1, drop_index_names=False):
        rules = _rules(settings)
    if not is_running:
        rules = _rules(settings)
    assert rules is not None
    assert rules.identity("http://a.org/index.html") == "http://a.org/index.html"
    answers = {url: rules.accepts(url) for url in ("http://a.org/x", "http://b.org/x", "http://a.org/x.tmp", START)}
    assert list(answers.values()) == [True, False, False, True]


def test_without_a_frontier_every_link_is_accepted(tmp_path: Path) -> None:
    settings = Settings(tmp_path, UrlServerSettings(drop_index_names=False))
    assert _rules(settings) is None
    rules, index = configured(settings), "http://anywhere.org/index.html"
    assert (rules.identity(index), rules.accepts(index)) == (index, True)
    assert list(tmp_path.iterdir()) == [], "nothing is made"


def test_a_damaged_frontier_is_told(tmp_path: Path) -> None:
    settings = Settings(tmp_path)
    with _frontier(tmp_path):
        pass
    (settings.memory / STORE_FOLDER / "CURRENT").write_text("nonsense")
    with pytest.raises(PavoukError, match="which pages count"):
        _rules(settings)

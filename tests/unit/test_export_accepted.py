"""Which links an index lists: what the crawl's own rules say, whether urlServer has the frontier open or not."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from common.clock import SystemClock
from common.errors import PavoukError
from common.settings import Settings, UrlServerSettings
from export.accepted import link_rules
from server.frontier.frontier import Frontier
from server.opening import STORE_FOLDER, open_frontier

START = "http://a.org/start.tmp"


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
        rules = link_rules(settings)
    if not is_running:
        rules = link_rules(settings)
    assert rules.are_known
    assert rules.identity("http://a.org/index.html") == "http://a.org/index.html"
    answers = {url: rules.accepts(url) for url in ("http://a.org/x", "http://b.org/x", "http://a.org/x.tmp", START)}
    assert list(answers.values()) == [True, False, False, True]


def test_without_a_frontier_every_link_is_accepted(tmp_path: Path) -> None:
    rules = link_rules(Settings(tmp_path, UrlServerSettings(drop_index_names=False)))
    index = "http://anywhere.org/index.html"
    assert (rules.are_known, rules.identity(index), rules.accepts(index)) == (False, index, True)
    assert list(tmp_path.iterdir()) == [], "nothing is made"


def test_a_damaged_frontier_is_told(tmp_path: Path) -> None:
    settings = Settings(tmp_path)
    with _frontier(tmp_path):
        pass
    (settings.memory / STORE_FOLDER / "CURRENT").write_text("nonsense")
    with pytest.raises(PavoukError, match="--all-links"):
        link_rules(settings)

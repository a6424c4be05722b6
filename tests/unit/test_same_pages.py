"""What is the same page is the crawl's own: it stays as it was when the crawl began, whatever later versions think."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from common.clock import ManualClock
from common.settings import Settings, UrlServerSettings
from common.wire import FoundUrl, Outcome, Report, UrlResult
from export.accepted import LinkRules, link_rules
from export.frontier import asked
from server.frontier.rocks import RocksStore
from server.frontier.store import Table
from server.opening import STORE_FOLDER, last_policy, open_frontier
from server.urlserver.journal import Journal
from server.urlserver.service import UrlService

OLD, NEW = "http://a/Index.HTML", "http://a/"


def _settings(folder: Path, **keys: object) -> Settings:
    return Settings(folder, UrlServerSettings(delay=0, **keys))  # type: ignore[arg-type]


def _opened(folder: Path, **keys: object):
    return closing(open_frontier(_settings(folder, **keys), ManualClock()))


def _link_rules(folder: Path) -> LinkRules:
    settings = _settings(folder)
    rules = asked(settings, lambda store: link_rules(last_policy(store, settings)))
    assert rules is not None
    return rules


def _journal(folder: Path) -> Journal:
    return Journal(folder / ".mem", ManualClock(), ())


def _begun_by_an_older_version(folder: Path, **keys: object) -> None:
    with _opened(folder, **keys):
        pass
    with closing(RocksStore(folder / ".mem" / STORE_FOLDER)) as store:
        rules = json.loads(store.get(Table.META, b"rules") or b"")
        del rules["few_index_names"]
        store.write([(Table.META, b"rules", json.dumps(rules).encode())])


def test_a_crawl_that_an_older_version_began_keeps_its_pages_apart(tmp_path: Path) -> None:
    _begun_by_an_older_version(tmp_path)
    for _ in range(2):  # and the second time
        with _opened(tmp_path) as frontier:
            frontier.add([FoundUrl(OLD, 0), FoundUrl(NEW, 0), FoundUrl("http://a/index.html", 0)])
            assert frontier.totals().known == 2
            assert frontier.explain(OLD).identity == OLD
            settings = UrlService(frontier, _settings(tmp_path), _journal(tmp_path)).get_job("c", "1", 1).settings
            assert (settings.identity(OLD), settings.identity("http://a/index.php")) == (OLD, NEW)
            assert _link_rules(tmp_path).identity(OLD) == OLD


def test_a_new_crawl_takes_all_names(tmp_path: Path) -> None:
    for _ in range(2):
        with _opened(tmp_path) as frontier:
            frontier.add([FoundUrl(OLD, 0), FoundUrl(NEW, 0)])
            assert frontier.totals().known == 1
            settings = UrlService(frontier, _settings(tmp_path), _journal(tmp_path)).get_job("c", "1", 1).settings
            assert settings.identity(OLD) == _link_rules(tmp_path).identity(OLD) == NEW


@pytest.mark.parametrize("first", [True, False])
def test_drop_index_names_stays_as_it_was_and_the_log_says_so(
    tmp_path: Path, first: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with _opened(tmp_path, drop_index_names=first) as frontier:
        frontier.add([FoundUrl(OLD, 0), FoundUrl(NEW, 0)])
        known = frontier.totals().known
    assert not caplog.messages
    with _opened(tmp_path, drop_index_names=not first) as frontier:
        assert frontier.add([FoundUrl(OLD, 0), FoundUrl(NEW, 0)]) == 0
        assert frontier.totals().known == known == (1 if first else 2)
        service = UrlService(frontier, _settings(tmp_path, drop_index_names=not first), _journal(tmp_path))
        job = service.get_job("c", "1", 10)
        assert job.settings.identity(OLD) == (NEW if first else OLD)
        results = [UrlResult(task.url, Outcome.STORED) for task in job.tasks]
        assert service.send_all_data("c", "", Report(job.job, results, [])).accepted == known
    assert caplog.messages == [
        f"drop_index_names = {int(not first)} is for new crawls: this one began with {int(first)}, and goes on so"
    ]

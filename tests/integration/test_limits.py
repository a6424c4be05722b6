"""Each limit with the real commands: exact numbers, the reason, and that a higher limit goes on."""

from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.integration.admin import ask_admin, run_admin
from tests.integration.cluster import run_cluster
from tests.integration.onecommand import Crawls
from tests.web.running import run_hostile, run_web

pytestmark = pytest.mark.integration


def reached(crawls: Crawls) -> str:
    """The limit that the summary names."""
    word, _, rest = crawls.summary()[""].partition(": ")
    assert word == "finished"
    return rest.partition(" is reached")[0]


def test_max_pages_is_exact_with_two_clients(tmp_path: Path) -> None:
    options = ("--delay", "0.1", "--urls-to-crawl", "6", "--report-seconds", "0.3", "--max-pages", "73")
    with run_web(hosts=4, pages=30) as web, run_cluster(tmp_path, web.start_urls, *options) as cluster:
        cluster.start("one")
        cluster.start("two")
        totals = cluster.wait_until_finished()
        assert totals.stored == 73
        assert totals.queued > 0
        assert cluster.coordinator.ended_by() == "max_pages"
        assert not cluster.coordinator.get_job("more", 10).tasks
        assert "finished: max_pages is reached" in run_admin(cluster.host, "status").stdout
        assert (cluster.stop("one"), cluster.stop("two")) == (0, 0)
        stored = cluster.stored_urls()
        assert sum(stored.values()) == len(stored) == 73
        for name in ("one", "two"):
            assert "[CT: " in cluster.programs[name].output(), "both clients had work"


def test_a_trap_stops_at_its_share_and_all_others_are_complete(tmp_path: Path) -> None:
    crawls = Crawls(tmp_path)
    with run_web(hosts=2, pages=10, odd=False) as web, run_hostile() as hostile:
        trap = hostile.url("/trap/")
        crawls.run(*web.start_urls, trap, "--max-pages-per-host", "25")
        hosts = Counter(urlsplit(url).netloc for url in crawls.stored())
        assert hosts.pop(urlsplit(trap).netloc) == 25
        assert {url for url in crawls.stored() if urlsplit(url).netloc in hosts} == web.truth.stored
        assert reached(crawls) == "max_pages_per_host"
        assert int(crawls.summary()["still to do"]) > 0
        [full] = ask_admin(tmp_path, "status")["full"]["first"]
        assert (full["name"], full["stored"]) == (urlsplit(trap).netloc, 25)
        assert "full with 25 pages (max_pages_per_host)" in run_admin(tmp_path, "explain", trap).stdout
        crawls.run("--max-pages-per-host", "30")
        assert len(crawls.stored()) == 30 + len(web.truth.stored)
        assert not ask_admin(tmp_path, "audit")["differences"]["number"]


def test_max_bytes_ends_the_crawl_and_it_can_go_on(tmp_path: Path) -> None:
    crawls = Crawls(tmp_path)
    with run_web(hosts=2, pages=30, odd=False) as web:
        crawls.run(*web.start_urls, "--max-bytes", "9000", "--urls-to-crawl", "5")
        totals = ask_admin(tmp_path, "status")["totals"]
        assert reached(crawls) == "max_bytes"
        assert totals["size"] >= 9000
        assert totals["stored"] < len(web.truth.stored)
        assert totals["stored"] == sum(crawls.stored().values())
        crawls.run(*web.start_urls)
        assert crawls.summary()[""] == "finished"
        assert set(crawls.stored()) == web.truth.stored
        assert set(crawls.stored().values()) == {1}


def test_max_time_ends_the_crawl_and_counts_all_runs(tmp_path: Path) -> None:
    crawls = Crawls(tmp_path)

    def running_seconds() -> float:
        return float(ask_admin(tmp_path, "status")["running_seconds"])

    with run_web(hosts=1, pages=400, odd=False) as web:
        slowly = (*web.start_urls, "--delay", "0.2")
        crawls.run(*slowly, "--max-pages", "5")
        first, asked_before = running_seconds(), len(web.log())
        assert first > 0
        crawls.run(*slowly, "--max-time", str(first - 0.01))
        assert len(web.log()) == asked_before, "the time is over"
        assert reached(crawls) == "max_time"
        crawls.run(*slowly, "--max-time", str(first + 3))
        assert reached(crawls) == "max_time"
        assert running_seconds() >= first + 3
        assert 5 <= sum(crawls.stored().values()) <= 5 + 3 / 0.2 + 4
        assert ask_admin(tmp_path, "status")["totals"]["leased"] == 0, "given back"

"""Delays and connections across the whole cluster, proved from the log of the web server."""

import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from tests.integration.cluster import Cluster, run_cluster
from tests.waiting import wait_until
from tests.web.requestlog import Request, assert_delay_kept
from tests.web.running import run_hostile, run_web

pytestmark = pytest.mark.integration

DELAY = 0.3
CLIENTS = ("one", "two", "three")
OPTIONS = ("--delay", str(DELAY), "--lease-seconds", "6", "--report-seconds", "0.3", "--urls-to-crawl", "20")


def done(cluster: Cluster) -> int:
    totals = cluster.totals()
    return totals[0].done if totals else 0


def start(cluster: Cluster, *names: str) -> None:
    for name in names:
        cluster.start(name)


def had_work(cluster: Cluster, name: str) -> bool:
    return "[CT: text/html]" in cluster.programs[name].output()


def test_the_delay_holds_whichever_clients_come_and_go(tmp_path: Path) -> None:
    with run_web(hosts=6, pages=14, odd=False) as web, run_cluster(tmp_path, web.start_urls, *OPTIONS) as cluster:
        start(cluster, *CLIENTS)
        wait_until(lambda: done(cluster) > 10, 60)
        assert cluster.stop("one") == 0
        cluster.kill("two")
        start(cluster, "one", "two")
        wait_until(lambda: done(cluster) > 40, 60)
        cluster.kill("three")
        totals = cluster.wait_until_finished()
        assert totals.stored == len(web.truth.stored)
        assert_delay_kept(web.log(), DELAY, tolerance=0.0)
        assert sum(request.is_robots for request in web.log()) > 6, "hosts went from one client to another"


def test_crawl_delay_and_retry_after_are_obeyed(tmp_path: Path) -> None:
    with run_hostile() as web:
        slow = [web.url(f"/ok?{number}", "crawl-delay") for number in range(5)]
        busy = [web.url(f"/ok?{number}", "none") for number in range(6)]
        busy.insert(2, web.url("/retry-after?times=1&seconds=2", "none"))
        overloaded = [web.url(f"/ok?{number}", "rules") for number in range(6)]
        overloaded.insert(2, web.url("/retry-after?times=1&seconds=2&status=503", "rules"))
        with run_cluster(tmp_path, [*slow, *busy, *overloaded], *OPTIONS) as cluster:
            start(cluster, "one", "two")
            assert cluster.wait_until_finished().stored == 5 + 7 + 7
        log = web.log()
        assert_delay_kept([each for each in log if each.url in slow or each.host in slow[0]], 1.0, tolerance=0.0)
        assert_delay_kept(log, DELAY, tolerance=0.0)
        for status in (429, 503):
            assert_pause_kept(log, status, 2.0)


def assert_pause_kept(log: list[Request], status: int, seconds: float) -> None:
    (refusal,) = [request for request in log if request.status == status]
    later = [each for each in log if each.host == refusal.host and each.monotonic > refusal.monotonic]
    assert later, "the host is asked again in the end"
    assert later[0].monotonic - refusal.monotonic >= seconds


def test_hosts_at_one_address_share_the_delay_once_that_is_known(tmp_path: Path) -> None:
    """Nobody knows that names share an address before each has answered once: until the first jobs are settled their
    requests may overlap, though never those of one name. From then on all of them together keep the delay.
    """
    with run_web(hosts=4, pages=9, odd=False, links=0, names=True) as web:
        first = [url + "s0/0.html" for url in web.start_urls]
        with run_cluster(tmp_path, first, *OPTIONS, "--max-depth", "1") as cluster:
            start(cluster, *CLIENTS)
            cluster.wait_until_finished()
            cluster.stop("url")
            known_since = time.monotonic()  # the clock of the log
            cluster.start_urls = [f"{url}s{number % 5}/{number}.html" for url in web.start_urls for number in (3, 4, 5)]
            cluster.start("url")
            wait_until(lambda: done(cluster) > 4 * 3, 60)  # these are new work for a finished crawl
            totals = cluster.wait_until_finished()
            assert totals.done == 4 * 8
        log = web.log()
        assert_delay_kept(log, DELAY, tolerance=0.0)
        later = [replace(request, host="all of them") for request in log if request.monotonic > known_since]
        assert len({request.url for request in log if request.monotonic > known_since}) >= 4 * 5
        assert_delay_kept(later, DELAY, tolerance=0.0)


def test_shared_connections_are_never_exceeded(tmp_path: Path) -> None:
    options = ("--delay", "0", "--connections-per-host", "3", "--report-seconds", "0.3", "--urls-to-crawl", "20")
    with run_web(hosts=1, pages=150, odd=False, latency=0.1) as web:
        with run_cluster(tmp_path, web.start_urls, *options) as cluster:
            start(cluster, "one", "two")
            totals = cluster.wait_until_finished()
            assert totals.stored == len(web.truth.stored)
            assert [had_work(cluster, name) for name in ("one", "two")] == [True, True]
        assert most_at_once(web.log()) == 3


def test_idle_workers_share_the_hosts_evenly(tmp_path: Path) -> None:
    options = ("--delay", "0.08", "--lease-seconds", "300", "--report-seconds", "30")
    with run_web(hosts=6, pages=90, odd=False) as web, run_cluster(tmp_path, web.start_urls, *options) as cluster:
        cluster.processes, cluster.threads = 2, 10
        start(cluster, "one", "two")
        totals = cluster.wait_until_finished()
        assert totals.stored == len(web.truth.stored)
        pages = [cluster.programs[name].output().count("[CT: ") for name in ("one", "two")]
        assert min(pages) > 0.25 * sum(pages), pages
        assert_delay_kept(web.log(), 0.08, tolerance=0.0)


def most_at_once(log: Iterable[Request]) -> int:
    """The most requests that a host had to answer at one moment."""
    events: defaultdict[str, list[tuple[float, int]]] = defaultdict(list)
    for request in log:
        assert request.finished is not None
        events[request.host] += [(request.monotonic, 1), (request.finished, -1)]
    most: Counter[str] = Counter()
    for host, changes in events.items():
        under_way = 0
        for _, change in sorted(changes):
            under_way += change
            most[host] = max(most[host], under_way)
    return max(most.values())


def test_the_count_of_requests_at_once() -> None:
    def request(begin: float, end: float) -> Request:
        return Request(0.0, begin, "a", "/", "", 200, 1, end)

    log = [request(0, 1), request(1, 3), request(2, 4), request(2.5, 2.6)]
    assert most_at_once(log) == 3
    assert all(most_at_once(pair) == 1 for pair in pairwise([log[0], log[2]]))

"""kill -9 of each program at random moments, and a restart: in the end nothing is lost and nothing is there twice."""

import random
import threading
from collections import Counter
from pathlib import Path

import pytest

from common.bundle import parse_bundle_name, read_pages
from tests.integration.admin import ask_admin
from tests.integration.cluster import Cluster, run_cluster, stored_bundles
from tests.waiting import wait_until
from tests.web.running import run_web

pytestmark = [pytest.mark.integration, pytest.mark.faults]

KILLS = 7  # per program
IN_TIME = 5  # so many of them at least must have hit a crawl that was under way


OPTIONS = ("--delay", "0.04", "--report-seconds", "0.5", "--urls-to-crawl", "40")


@pytest.mark.parametrize("victim", ["url", "ftp", "one"])
def test_kill_and_restart(tmp_path: Path, victim: str) -> None:
    chance = random.Random(victim)
    in_time = 0
    with run_web(hosts=5, pages=60) as web, run_cluster(tmp_path, web.start_urls, *OPTIONS) as cluster:
        cluster.start("one")
        for _ in range(KILLS):
            before = _known_and_done(cluster)
            wait_until(lambda before=before: _known_and_done(cluster) > before or _finished(cluster), 60)
            # A moment somewhere in what the program does next, not always right after a report.
            threading.Event().wait(chance.uniform(0.0, 0.4))
            cluster.kill(victim)
            cluster.start(victim)
            in_time += not _finished(cluster)  # it has not been finished before the kill, then
        totals = cluster.wait_until_finished()
        assert in_time >= IN_TIME, "the web is too small to show anything"
        assert cluster.stop("one") == 0
        assert ask_admin(cluster.host, "audit")["differences"]["first"] == []
        stored = _stored_by_job(cluster)
        assert {url for _, url in stored} == web.truth.stored
        assert set(stored.values()) == {1}, "a page is stored twice under the same job"
        assert totals.stored == len(web.truth.stored)
        assert totals.failed == len(web.truth.missing)
        assert not list((tmp_path / "one").glob(".client/spool/[0-9]*")), "everything was delivered"


def _known_and_done(cluster: Cluster) -> int:
    totals = cluster.totals()
    return totals[0].known + totals[0].done if totals else -1


def _finished(cluster: Cluster) -> bool:
    totals = cluster.totals()
    return totals is not None and totals[1]


def _stored_by_job(cluster: Cluster) -> Counter[tuple[str, str]]:
    """How often each URL is stored under each job."""
    stored: Counter[tuple[str, str]] = Counter()
    for bundle in stored_bundles(cluster.host / "Pages"):
        name = parse_bundle_name(bundle.name)
        assert name is not None
        stored.update((name[2], entry.meta.url) for entry, _, _ in read_pages(bundle))
    return stored

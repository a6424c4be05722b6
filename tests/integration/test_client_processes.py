"""A client of several processes: all of them work, one that dies is started again, none outlives the client."""

import os
import signal
from pathlib import Path

import pytest

from tests.integration.cluster import Cluster, run_cluster
from tests.integration.daemon import is_alive
from tests.waiting import wait_until
from tests.web.requestlog import assert_no_url_twice
from tests.web.running import run_web

pytestmark = pytest.mark.integration


def children(cluster: Cluster, name: str) -> list[int]:
    """The processes of a client, by what the kernel says."""
    pid = cluster.programs[name].process.pid
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_all_processes_work_and_nothing_is_asked_twice(tmp_path: Path) -> None:
    with run_web(hosts=6, pages=20) as web, run_cluster(tmp_path, web.start_urls, "--delay", "0.05") as cluster:
        cluster.processes = 2
        cluster.start("one")
        totals = cluster.wait_until_finished()
        assert cluster.stop("one") == 0
        assert set(cluster.stored_urls()) == web.truth.stored
        assert totals.stored == len(web.truth.stored)
        assert_no_url_twice(web.log())
        for name in ("one", "one-2"):
            assert f"from {name} [" in cluster.programs["url"].output(), f"{name} had work"


def test_a_process_that_dies_is_started_again(tmp_path: Path) -> None:
    with run_web(hosts=4, pages=30) as web, run_cluster(tmp_path, web.start_urls, "--delay", "0.05") as cluster:
        cluster.processes = 2
        cluster.start("one")
        wait_until(lambda: len(children(cluster, "one")) == 2, 30)
        victim = children(cluster, "one")[0]
        wait_until(lambda: cluster.coordinator.totals()[0].done > 0, 60)
        os.kill(victim, signal.SIGKILL)
        wait_until(lambda: len(set(children(cluster, "one")) - {victim}) == 2, 30)
        cluster.wait_until_finished()
        assert cluster.stop("one") == 0
        assert set(cluster.stored_urls()) == web.truth.stored


def test_no_process_outlives_the_client(tmp_path: Path) -> None:
    with run_web(hosts=2, pages=5) as web, run_cluster(tmp_path, web.start_urls) as cluster:
        cluster.processes = 3
        cluster.start("one")
        wait_until(lambda: len(children(cluster, "one")) == 3, 30)
        workers = children(cluster, "one")
        cluster.kill("one")
        wait_until(lambda: not any(is_alive(pid) for pid in workers), 10)


def test_what_more_processes_left_is_delivered_by_as_many(tmp_path: Path) -> None:
    with run_web(hosts=4, pages=30) as web, run_cluster(tmp_path, web.start_urls, "--delay", "0.05") as cluster:
        cluster.processes = 3
        cluster.start("one")
        spools = tmp_path / "one" / ".client"
        wait_until(lambda: any(spools.glob("spool-[23]/[0-9]*")), 60)
        cluster.kill("one")
        cluster.processes = 1
        cluster.start("one")
        cluster.wait_until_finished()
        assert cluster.stop("one") == 0
        assert set(cluster.stored_urls()) == web.truth.stored
        assert not list(spools.glob("spool*/[0-9]*"))

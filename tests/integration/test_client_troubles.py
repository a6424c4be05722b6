"""A client at work when it is stopped or killed, when a server goes away, and when hosts are dead: nothing is lost."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.cluster import Cluster, run_cluster
from tests.integration.daemon import daemon
from tests.jobs import job_name
from tests.waiting import wait_until
from tests.web.requestlog import assert_asked_exactly, assert_no_url_twice
from tests.web.running import RunningWeb, run_hostile, run_web

pytestmark = pytest.mark.integration


def _stored_at_least(cluster: Cluster, pages: int) -> Callable[[], bool]:
    return lambda: (totals := cluster.totals()) is not None and totals[0].stored >= pages


def _assert_all_stored_once(cluster: Cluster, web: RunningWeb) -> None:
    stored = cluster.stored_urls()
    assert set(stored) == web.truth.stored
    assert set(stored.values()) == {1}, {url: times for url, times in stored.items() if times > 1}


def test_stop_gives_back_and_another_client_does_the_rest(tmp_path: Path) -> None:
    options = ("--delay", "0.05", "--lease-seconds", "600", "--report-seconds", "0.5")
    with (
        run_web(hosts=4, pages=10) as web,
        run_cluster(tmp_path, web.start_urls, *options) as cluster,
        daemon(tmp_path / "first", cluster.server_port) as first,
    ):
        first.start()
        wait_until(_stored_at_least(cluster, 20), 60)
        assert first.call("stop")[0] == 0
        totals, finished = cluster.coordinator.totals()
        assert totals.leased == 0, "given back at once, not when the lease ends"
        assert not finished
        assert totals.queued > 0
        assert not list(first.folder.glob(".client/spool/[0-9]*")), "nothing is left behind"
        cluster.start("second")
        cluster.wait_until_finished()
        assert cluster.stop("second") == 0
        _assert_all_stored_once(cluster, web)
        assert_asked_exactly(web.log(), web.truth)
        assert_no_url_twice(web.log())


def test_killed_client_is_started_again_and_delivers_what_it_had(tmp_path: Path) -> None:
    with (
        run_web(hosts=4, pages=10) as web,
        run_cluster(tmp_path, web.start_urls, "--delay", "0.05", "--report-seconds", "0.5") as cluster,
        daemon(tmp_path / "one", cluster.server_port) as client,
    ):
        client.start()
        wait_until(_stored_at_least(cluster, 10), 60)
        cluster.stop("ftp")
        wait_until(client.parcels, 60, lambda: client.log)
        client.kill()
        assert client.call("status")[0] == 1
        kept = len(client.parcels())
        assert kept > 0
        cluster.start("ftp")
        client.start()
        cluster.wait_until_finished()
        assert client.call("stop")[0] == 0
        assert set(cluster.stored_urls()) == web.truth.stored
        assert not client.parcels()


def test_url_server_away_at_the_start_and_in_the_middle(tmp_path: Path) -> None:
    with (
        run_web(hosts=4, pages=10) as web,
        run_cluster(tmp_path, web.start_urls, "--delay", "0.03", "--report-seconds", "0.5") as cluster,
        daemon(tmp_path / "one", cluster.server_port) as client,
    ):
        cluster.stop("url")
        client.start()
        wait_until(lambda: "no job" in client.log, 30, lambda: client.log)
        cluster.start("url")
        wait_until(_stored_at_least(cluster, 10), 60, lambda: client.log)
        assert cluster.stop("url") == 0
        wait_until(client.parcels, 60, lambda: client.log)  # it goes on with what it has
        cluster.start("url")
        cluster.wait_until_finished()
        assert client.call("stop")[0] == 0
        _assert_all_stored_once(cluster, web)
        assert_no_url_twice(web.log())


def test_ftp_server_away_delays_the_reports_and_loses_nothing(tmp_path: Path) -> None:
    with (
        run_web(hosts=3, pages=15) as web,
        run_cluster(tmp_path, web.start_urls, "--delay", "0.03", "--report-seconds", "0.5") as cluster,
        daemon(tmp_path / "one", cluster.server_port) as client,
    ):
        cluster.stop("ftp")
        client.start()
        wait_until(client.parcels, 60, lambda: client.log)
        wait_until(lambda: "uploading" in client.log, 30, lambda: client.log)
        totals, _ = cluster.coordinator.totals()
        assert totals.done == 0, "nothing is reported before it is stored"
        cluster.start("ftp")
        cluster.wait_until_finished()
        assert client.call("stop")[0] == 0
        _assert_all_stored_once(cluster, web)
        assert_no_url_twice(web.log())


def test_files_in_the_way_of_the_spool_cost_only_time(tmp_path: Path) -> None:
    """No parcel can be packed and no job begun; as soon as that works again, all goes on in the same process."""
    with (
        run_web(hosts=3, pages=12) as web,
        run_cluster(tmp_path, web.start_urls, "--delay", "0.03", "--report-seconds", "0.3") as cluster,
        daemon(tmp_path / "one", cluster.server_port) as client,
    ):
        cluster.stop("url")  # so that the files are there before anything is done
        pid, spool = client.start(), client.folder / ".client" / "spool"
        first, *later = [spool / job_name(cluster.host, number) for number in range(1, 40)]
        for_parcels = [first / f"{number:06}" for number in range(1, 9)]
        for_jobs = later
        first.mkdir()
        for path in (*for_parcels, *for_jobs):
            path.touch()
        cluster.start("url")
        for loop, in_the_way in (("pack", for_parcels), ("coordinate", for_jobs)):
            wait_until(lambda loop=loop: f"  {loop}: " in client.call("status")[1], 60, lambda: client.log)
            for path in in_the_way:
                path.unlink()
        cluster.wait_until_finished()
        code, status = client.call("status")
        assert (code, client.pid) == (0, pid)
        assert "Error" in status
        assert "died" not in status, "no process had to be started again"
        assert client.call("stop")[0] == 0
        _assert_all_stored_once(cluster, web)
        assert_no_url_twice(web.log())
        assert not client.parcels()


def test_good_hosts_are_crawled_while_others_hang_or_have_no_address(tmp_path: Path) -> None:
    options = ("--delay", "0.02", "--fetch-timeout", "5", "--retry-wait", "60")
    with run_web(hosts=2, pages=15) as web, run_hostile() as hostile:
        dead = [f"http://nobody-{number}.invalid/" for number in range(3)]
        hanging = [hostile.url(f"/hang?{number}") for number in range(3)]
        with run_cluster(tmp_path, [*dead, *hanging, *web.start_urls], *options) as cluster:
            cluster.start("one")  # 4 pairs of threads: fewer than there are bad URLs
            wait_until(_stored_at_least(cluster, len(web.truth.stored)), 60, lambda: str(cluster.totals()))
            totals, finished = cluster.coordinator.totals()
            assert not finished, "the bad ones are tried again later"
            assert totals.queued + totals.leased == len(dead) + len(hanging)
            assert cluster.stop("one") == 0
            _assert_all_stored_once(cluster, web)

"""Whole crawls whose bundles go to an FTP server that is not ours; the catalogue is made beside them afterwards."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.foreign_ftp import KINDS, Foreign, foreign_server
from tests.integration.admin import ask_admin
from tests.integration.cluster import Cluster, run_cluster
from tests.processes import ROOT
from tests.waiting import wait_until
from tests.web.running import RunningWeb, run_web

pytestmark = pytest.mark.integration

OPTIONS = ("--delay", "0.05", "--scope", "host", "--urls-to-crawl", "10")


@pytest.fixture(params=KINDS)
def foreign(request: pytest.FixtureRequest) -> Iterator[Foreign]:
    with foreign_server(request.param) as running:
        yield running


def configure(folder: Path, foreign: Foreign) -> None:
    server = foreign.server
    lines = (
        "[ftp_Server]", f"ftp_port = {server.port}", f"user = {server.user}", f"password = {server.password}",
        f"directory = {foreign.pages}", "",
    )  # fmt: skip
    folder.mkdir(parents=True)
    (folder / "config.cfg").write_text("\n".join(lines))


def rebuild_catalogue(folder: Path) -> str:
    command = [sys.executable, "-m", "server.ftpserver.main", "--rebuild-catalogue", "--dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


def check_harvest(cluster: Cluster, web: RunningWeb) -> None:
    """What is stored is the truth, each page once; and the catalogue that is made of it satisfies the audit."""
    stored = cluster.stored_urls()
    assert set(stored) == web.truth.stored
    assert set(stored.values()) == {1}
    assert f"{len(stored)} pages, {len(stored)} URLs, 0 broken" in rebuild_catalogue(cluster.host)
    assert ask_admin(cluster.host, "audit")["differences"]["number"] == 0


def test_a_crawl_with_a_foreign_receiver_finishes_with_the_true_harvest(foreign: Foreign, tmp_path: Path) -> None:
    configure(tmp_path / "host", foreign)
    with ExitStack() as stack:
        web = stack.enter_context(run_web(hosts=4, pages=15))
        cluster = stack.enter_context(run_cluster(tmp_path, web.start_urls, *OPTIONS, receiver=foreign.server.port))
        cluster.start("one")
        cluster.start("two")
        totals = cluster.wait_until_finished()
        assert totals.failed == len(web.truth.missing)
        assert (cluster.stop("one"), cluster.stop("two")) == (0, 0)
        check_harvest(cluster, web)
        assert not [path for path in foreign.pages.rglob("*.part") if ".incoming" not in path.parts]


def test_a_receiver_that_is_away_in_the_middle_costs_nothing(foreign: Foreign, tmp_path: Path) -> None:
    configure(tmp_path / "host", foreign)
    with ExitStack() as stack:
        web = stack.enter_context(run_web(hosts=4, pages=15))
        cluster = stack.enter_context(run_cluster(tmp_path, web.start_urls, *OPTIONS, receiver=foreign.server.port))
        cluster.start("one")
        wait_until(lambda: any(foreign.pages.glob("*/*.bz2")), 60)
        foreign.stop()
        cluster.programs["one"].wait_for_errors("uploading .* cannot be reached")
        foreign.start()
        cluster.wait_until_finished()
        assert cluster.stop("one") == 0
        check_harvest(cluster, web)


def test_a_receiver_that_may_not_write_is_told_of_and_waited_for(foreign: Foreign, tmp_path: Path) -> None:
    configure(tmp_path / "host", foreign)
    foreign.allow_writing(False)
    with ExitStack() as stack:
        web = stack.enter_context(run_web(hosts=3, pages=8))
        cluster = stack.enter_context(run_cluster(tmp_path, web.start_urls, *OPTIONS, receiver=foreign.server.port))
        cluster.start("one")
        cluster.programs["one"].wait_for_errors("uploading .* which only stores, does not take it: 55[03]")
        totals = cluster.totals()
        assert totals is not None
        assert totals[0].stored == 0, "what is not stored is not reported"
        foreign.allow_writing(True)
        cluster.wait_until_finished()
        assert cluster.stop("one") == 0
        check_harvest(cluster, web)

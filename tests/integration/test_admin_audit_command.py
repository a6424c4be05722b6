"""crawlAdmin audit after real crawls: with kill -9 of every part it finds nothing, and it finds whatever is broken."""

import random
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from common.settings import Settings
from common.wire import Outcome
from server.catalogue import Catalogue
from server.catalogue.stored import stored_manifest
from server.frontier.hosts import Host
from server.frontier.records import State, UrlState
from server.frontier.store import Table
from server.opening import open_store
from tests.bundles import make_bundle, page_url
from tests.integration.admin import ask_admin, run_admin
from tests.integration.cluster import Cluster, run_cluster, stored_bundles
from tests.urlserver import Soap, address_of, serving, urls_of
from tests.waiting import wait_until
from tests.web.running import RunningWeb, run_web

pytestmark = pytest.mark.integration

OPTIONS = ("--delay", "0.02", "--report-seconds", "0.5", "--urls-to-crawl", "40", "--scope", "host")


def done(cluster: Cluster) -> int:
    totals = cluster.totals()
    return totals[0].done if totals else -1


@pytest.mark.faults
def test_nothing_is_lost_or_taken_twice_by_kills(tmp_path: Path) -> None:
    chance = random.Random(1)
    slowly = (*OPTIONS, "--delay", "0.1")  # it must not be finished before the last kill
    with run_web(hosts=4, pages=50) as web, run_cluster(tmp_path, web.start_urls, *slowly) as cluster:
        cluster.start("one")
        for victim in ("url", "ftp", "one", "url", "one"):
            before = done(cluster)
            wait_until(lambda before=before: done(cluster) > before, 60, lambda: str(cluster.totals()))
            answer = ask_admin(cluster.host, "audit", "--quick")  # in the middle of it
            assert answer["differences"]["number"] == 0
            threading.Event().wait(chance.uniform(0.0, 0.2))
            cluster.kill(victim)
            cluster.start(victim)
        cluster.wait_until_finished()
        assert ask_admin(cluster.host, "audit")["counts"]["URLs with a page"] == len(web.truth.stored)
        for part in ("one", "url", "ftp"):
            assert cluster.stop(part) == 0
        answer = ask_admin(cluster.host, "audit")
        assert answer["counts"]["stored"] == len(web.truth.stored)
        assert not list((cluster.host / ".mem").glob("audit-copy-*")), "copies are removed"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The work folder of a finished crawl, all programs stopped. Each test leaves it in order."""
    folder = tmp_path_factory.mktemp("finished")
    with ExitStack() as stack:
        web: RunningWeb = stack.enter_context(run_web(hosts=3, pages=10))
        cluster = stack.enter_context(run_cluster(folder, web.start_urls, *OPTIONS))
        cluster.start("one")
        cluster.wait_until_finished()
        for part in ("one", "url", "ftp"):
            assert cluster.stop(part) == 0
        yield cluster.host


def some_bundle(host: Path) -> Path:
    return next(path for path in stored_bundles(host / "Pages") if path.parent.name != ".quarantine")


def delete_bundle(host: Path) -> None:
    some_bundle(host).unlink()


def flip_byte(host: Path) -> None:
    path = some_bundle(host)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x10
    path.write_bytes(bytes(data))


def delete_row(host: Path) -> None:
    with sqlite3.connect(host / "Pages" / "catalogue.sqlite") as database:
        database.execute("DELETE FROM page WHERE position = 0")
    database.close()


def edit_counter(host: Path) -> None:
    store = open_store(Settings(host))
    key, value = next(store.scan(Table.HOSTS))
    record = Host.unpacked(key, value)
    record.known += 5
    store.write([(Table.HOSTS, key, record.packed())])
    store.close()


def lose_url(host: Path) -> None:
    """The frontier does not know a stored page any more."""
    store = open_store(Settings(host))
    states = ((key, UrlState.unpacked(value)) for key, value in store.scan(Table.URLS))
    key = next(key for key, state in states if (state.state, state.outcome) == (State.DONE, Outcome.STORED))
    store.write([(Table.URLS, key, None)])
    store.close()


def upload_without_report(host: Path) -> None:
    """A client has uploaded a page and is gone. As long as the server runs, it may still report."""
    with serving(host) as server:
        ask_admin(host, "add", page_url("late.example", 0))
        job = Soap(address_of(server)).job("late")
        assert page_url("late.example", 0) in urls_of(job)
        path = make_bundle(host / "Pages" / "late.example", "late.example", job.job, pages=1)
        assert ask_admin(host, "audit")["notes"]["kinds"] == {"in flight": 1}, "not even catalogued"
        with Catalogue.open(host / "Pages") as catalogue:
            catalogue.add(path, stored_manifest(path))
        assert ask_admin(host, "audit")["notes"]["kinds"] == {"in flight": 1}


@pytest.mark.parametrize(
    ("harm", "kind"),
    [
        (edit_counter, "frontier"),
        (delete_row, "catalogue wrong"),
        (lose_url, "page unknown"),
        (upload_without_report, "not reported"),
        (flip_byte, "bundle broken"),
        (delete_bundle, "bundle gone"),
    ],
)
def test_harm_is_found_and_mended(finished: Path, harm: Callable[[Path], None], kind: str) -> None:
    assert ask_admin(finished, "audit")["differences"]["number"] == 0
    harm(finished)
    assert kind in ask_admin(finished, "audit", code=1)["differences"]["kinds"]
    shown = run_admin(finished, "audit", "--repair")
    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert f"  {kind}" in shown.stdout
    assert "\nrepaired" in shown.stdout
    assert ask_admin(finished, "audit")["differences"]["number"] == 0


def test_repair_wants_the_server_stopped(finished: Path) -> None:
    with serving(finished):
        answer = run_admin(finished, "audit", "--repair")
    assert answer.returncode == 2
    assert "stop it first" in answer.stderr


def test_a_lost_frontier_is_had_again_from_the_pages(finished: Path) -> None:
    before = ask_admin(finished, "audit", "--quick")["counts"]
    (finished / ".mem" / "frontier").rename(finished / ".mem" / "lost")
    with serving(finished, "--scope", "host"):
        pass
    answer = ask_admin(finished, "audit", "--repair", "--believe")
    assert answer["differences"]["kinds"] == {"not confirmed": before["URLs with a page"]}
    after = ask_admin(finished, "audit")["counts"]
    assert (after["stored"], after["URLs with a page"]) == (before["stored"], before["URLs with a page"])
    assert after["known"] > after["done"], "their links are known, too"

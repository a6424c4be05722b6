"""Rounds of a crawl over a web that changes in between: exactly the requests and the revisions that there must be."""

import random
import re
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from common.bundle import read_pages
from export.index import read
from tests.integration.admin import ask_admin, run_admin
from tests.integration.cluster import Cluster, run_cluster, stored_bundles
from tests.integration.daemon import run_command
from tests.integration.onecommand import Crawls
from tests.waiting import wait_until
from tests.web.requestlog import Request
from tests.web.running import RunningWeb, run_web

pytestmark = pytest.mark.integration

SECONDS = 1.8
PERIOD = ("--period", "0.0005")  # hours


class Rounds:
    """Runs of crawl over one web, each with the requests that it made."""

    def __init__(self, folder: Path, web: RunningWeb, *options: str) -> None:
        self.crawls = Crawls(folder)
        self._web = web
        self._options = options or PERIOD
        self._seen = 0

    def run(self, *more: str) -> Counter[tuple[str, int]]:
        """One round, begun when everything is due; what was asked for, with the status of the answer."""
        began = time.monotonic()
        wait_until(lambda: time.monotonic() > began + SECONDS, 2 * SECONDS)
        return self.run_now(*more)

    def run_now(self, *more: str) -> Counter[tuple[str, int]]:
        self.crawls.run(*self._web.start_urls, *self._options, *more)
        log = self._web.log()
        new, self._seen = log[self._seen :], len(log)
        return Counter((request.url, request.status) for request in new if not request.is_robots)

    def visited(self) -> str:
        return self.crawls.summary()["visited again"]


def each(urls: set[str], status: int) -> Counter[tuple[str, int]]:
    return Counter((url, status) for url in urls)


def test_rounds_with_changed_unchanged_gone_and_moved_pages(tmp_path: Path) -> None:
    with run_web(hosts=2, pages=8, odd=False) as web:
        rounds = Rounds(tmp_path, web)
        stored = set(web.truth.stored)
        assert rounds.run_now() == each(stored, 200)
        home = web.start_urls[0].rstrip("/")
        changed, gone, moved = (f"{home}/s{number % 5}/{number}.html" for number in (3, 4, 5))
        new, target = f"{home}/new.html", f"{home}/target.html"
        web.changes.page(changed, "Another title", [new])
        web.changes.gone(gone)
        web.changes.moved(moved, target)
        for url in (new, target):
            web.changes.page(url, f"Page at {url}")
        same = stored - {changed, gone, moved}
        fresh = each({changed, new, target}, 200) + each({gone}, 404) + each({moved}, 301)
        assert rounds.run() == each(same, 304) + fresh
        assert rounds.visited() == f"{len(stored)}  (1 changed, {len(same)} unchanged, 2 gone or failed)"
        expected = Counter(dict.fromkeys(stored | {new, target}, 1)) + Counter([changed])
        assert rounds.crawls.stored() == expected
        assert rounds.crawls.summary()["failed"] == "0"

        known = stored | {new, target}
        assert rounds.run() == each(known - {gone, moved}, 304) + each({gone}, 404) + each({moved}, 301)
        assert rounds.crawls.stored() == expected

        web.changes.back(gone)  # the very page that was there before
        web.changes.page(moved, "Here again")
        assert rounds.run() == each(known - {moved}, 304) + each({moved}, 200)
        assert rounds.crawls.stored() == expected + Counter([moved])
        _check_admin(tmp_path, changed, len(known))
        _check_export(tmp_path, expected + Counter([moved]), changed)


def _check_admin(folder: Path, changed: str, pages: int) -> None:
    answer = ask_admin(folder, "audit")
    assert (answer["differences"]["number"], answer["notes"]["number"]) == (0, 0)
    assert answer["counts"]["URLs with a page"] == answer["counts"]["stored"] == pages
    assert answer["counts"]["revisions"] == 2
    explained = ask_admin(folder, "explain", changed)
    assert (explained["state"], explained["reason"], len(explained["stored"])) == ("done", "unchanged", 2)
    assert explained["due"] > explained["ended"]


def _check_export(folder: Path, stored: Counter[str], changed: str) -> None:
    """The newest revision of each page, and no other."""
    done = run_command("export.main", "index", "--dir", folder, "--output", folder / "index.txt")
    assert done.returncode == 0, done.stderr
    with (folder / "index.txt").open("rb") as file:
        records = {record.url: record for record in read(file)}
    assert set(records) == set(stored)
    done = run_command("export.main", "files", "--dir", folder, "--output", folder / "copies")
    assert done.returncode == 0, done.stderr
    copies = [path.read_text() for path in (folder / "copies").rglob("*.html")]
    assert sum("Another title" in text for text in copies) == 1
    assert not any("Page 3 of host 0" in text for text in copies)
    assert len(copies) == len(stored)


def test_gone_and_moved_pages_are_shown(tmp_path: Path) -> None:
    with run_web(hosts=1, pages=3, odd=False) as web:
        rounds = Rounds(tmp_path, web)
        rounds.run_now()
        home = web.start_urls[0].rstrip("/")
        web.changes.gone(f"{home}/s1/1.html")
        web.changes.moved(f"{home}/s2/2.html", f"{home}/")
        rounds.run()
        text = run_admin(tmp_path, "explain", f"{home}/s1/1.html").stdout
        assert re.search(r"^reason +not_found$", text, re.MULTILINE)
        assert re.search(r"^gone since +\d{4}-", text, re.MULTILINE)
        assert re.search(r"^stored in ", text, re.MULTILINE)
        text = run_admin(tmp_path, "explain", f"{home}/s2/2.html").stdout
        assert re.search(r"^moved since +\d{4}-", text, re.MULTILINE)
        status = run_admin(tmp_path, "status").stdout
        assert re.search(r"^visited again +4: 0 changed, 2 unchanged$", status, re.MULTILINE)
        assert re.search(r"^next visit +\d{4}-", status, re.MULTILINE)
        assert re.search(r"^stored +4 pages", status, re.MULTILINE)


@pytest.mark.parametrize(("validators", "status"), [("date", 304), ("none", 200)])
def test_other_ways_to_find_out_that_nothing_has_changed(tmp_path: Path, validators: str, status: int) -> None:
    with run_web(hosts=1, pages=6, odd=False, validators=validators) as web:
        rounds = Rounds(tmp_path, web)
        stored = set(web.truth.stored)
        rounds.run_now()
        size = sum(path.stat().st_size for path in stored_bundles(tmp_path / "Pages"))
        assert rounds.run() == each(stored, status)
        assert rounds.visited() == f"{len(stored)}  (0 changed, {len(stored)} unchanged)"
        assert sum(path.stat().st_size for path in stored_bundles(tmp_path / "Pages")) == size
        changed = min(stored)
        web.changes.page(changed, "Another title")
        assert rounds.run() == each(stored - {changed}, status) + each({changed}, 200)
        assert rounds.crawls.stored() == Counter([*stored, changed])


def test_odd_pages_are_unchanged_as_well(tmp_path: Path) -> None:
    """Compressed, in chunks, documents, redirected, in all encodings."""
    with run_web(hosts=3, pages=5) as web:
        rounds = Rounds(tmp_path, web)
        rounds.run_now()
        assert set(rounds.crawls.stored()) == web.truth.stored
        asked = rounds.run()
        assert {status for _, status in asked} == {304}
        assert asked.total() == len(web.truth.stored)
        assert set(rounds.crawls.stored().values()) == {1}


def test_before_its_time_nothing_is_asked_again(tmp_path: Path) -> None:
    with run_web(hosts=1, pages=5, odd=False) as web:
        rounds = Rounds(tmp_path, web, "--period", "72")
        first = rounds.run_now()
        assert re.fullmatch(r"finished; the next page is due at 20\S+Z: .*", rounds.crawls.summary()[""])
        assert not rounds.run_now()
        assert rounds.visited() == "0  (0 changed, 0 unchanged)"
        began = time.monotonic()
        wait_until(lambda: time.monotonic() > began + SECONDS, 2 * SECONDS)
        again = rounds.run_now(*PERIOD)  # another period counts for what is known
        assert {url for url, _ in again} == {url for url, _ in first}


def test_an_adaptive_period(tmp_path: Path) -> None:
    options = ("--period", "adaptive", "--period-min", "0.0001", "--period-max", "0.0025")
    with run_web(hosts=1, pages=3, odd=False) as web:
        rounds = Rounds(tmp_path, web, *options)
        rounds.run_now()
        changed, *same = sorted(web.truth.stored)
        web.changes.page(changed, "Another title")
        rounds.run()
        hours = {url: ask_admin(tmp_path, "explain", url)["interval_seconds"] / 3600 for url in (changed, *same)}
        assert hours[changed] == pytest.approx(0.00025)
        assert [hours[url] for url in same] == [pytest.approx(0.001)] * 3


def test_limits_hold_and_do_not_keep_pages_from_being_visited(tmp_path: Path) -> None:
    with run_web(hosts=2, pages=20, odd=False) as web:
        rounds = Rounds(tmp_path, web)
        first = rounds.run_now("--max-pages", "9")
        assert first.total() == 9
        again = rounds.run("--max-pages", "9")
        assert again == each({url for url, _ in first}, 304)
        assert rounds.crawls.summary()[""].startswith("finished: max_pages is reached")
        assert rounds.crawls.summary()["pages stored"].startswith("9 ")
        more = rounds.run("--max-pages", "12")
        assert Counter(status for _, status in more) == {304: 9, 200: 3}


@pytest.mark.faults
@pytest.mark.parametrize("victim", ["url", "one"])
def test_a_kill_in_a_round_loses_nothing(tmp_path: Path, victim: str) -> None:
    chance = random.Random(victim)
    options = ("--delay", "0.02", "--report-seconds", "0.3", "--urls-to-crawl", "15", "--period", "0.0008")
    with run_web(hosts=3, pages=20, odd=False) as web, run_cluster(tmp_path, web.start_urls, *options) as cluster:
        cluster.start("one")
        stored = web.truth.stored
        wait_until(lambda: _totals(cluster, "stored") == len(stored), 60)
        changing = sorted(stored)[::7]
        for number in range(6):
            web.changes.page(changing[number % len(changing)], f"Revision {number}")
            before = _totals(cluster, "revisits")
            wait_until(lambda before=before: _totals(cluster, "revisits") > before, 60)
            threading.Event().wait(chance.uniform(0.0, 0.3))
            cluster.kill(victim)
            cluster.start(victim)
        enough = _totals(cluster, "revisits") + 2 * len(stored)
        wait_until(lambda: _totals(cluster, "revisits") >= enough, 90, lambda: str(cluster.totals()))
        assert cluster.stop("one") == 0
        assert cluster.stop("url") == 0
        assert cluster.stop("ftp") == 0
        answer = ask_admin(cluster.host, "audit")
        assert answer["differences"]["number"] == 0
        assert answer["counts"]["stored"] == answer["counts"]["URLs with a page"] == len(stored)
        newest = _newest(cluster.host / "Pages")
        for number in range(6 - len(changing), 6) if len(changing) < 6 else range(6):
            assert f"Revision {number}".encode() in newest[changing[number % len(changing)]]
        unchanged = stored - set(changing)
        copies = cluster.stored_urls()
        assert {copies[url] for url in unchanged} == {1}


def _totals(cluster: Cluster, name: str) -> int:
    totals = cluster.totals()
    return getattr(totals[0], name) if totals else -1


def _newest(pages: Path) -> dict[str, bytes]:
    found = [(entry.meta.crawl_time, entry.meta.url, body) for path in stored_bundles(pages)
             for entry, body, _ in read_pages(path)]  # fmt: skip
    return {url: body for _, url, body in sorted(found)}


def test_the_server_goes_on_by_itself(tmp_path: Path) -> None:
    with run_web(hosts=1, pages=4, odd=False) as web, run_cluster(tmp_path, web.start_urls, *PERIOD) as cluster:
        cluster.start("one")
        urls = web.truth.stored

        def counted() -> Counter[str]:
            return Counter(request.url for request in web.log() if not request.is_robots)

        wait_until(lambda: all(counted()[url] >= 3 for url in urls), 60)
        assert cluster.stop("one") == 0
        assert set(cluster.stored_urls().values()) == {1}
        _assert_period_kept(web.log())


def _assert_period_kept(log: list[Request]) -> None:
    last: dict[str, float] = {}
    for request in log:
        if not request.is_robots:
            assert request.monotonic - last.get(request.url, 0.0) >= SECONDS
            last[request.url] = request.monotonic

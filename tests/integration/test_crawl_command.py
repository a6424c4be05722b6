"""The command crawl: from start to end, interrupted, killed, with parts that die, with limits."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.certificates import make_certificate
from tests.integration.onecommand import QUICK, Crawls
from tests.processes import ROOT
from tests.urlserver import serving
from tests.waiting import wait_until
from tests.web.requestlog import asked, assert_asked_exactly, assert_no_url_twice, assert_nothing_disallowed
from tests.web.running import RunningWeb, run_hostile, run_web

pytestmark = pytest.mark.integration


@pytest.fixture
def crawls(tmp_path: Path) -> Crawls:
    return Crawls(tmp_path / "work")


def _assert_all_stored_once(crawls: Crawls, web: RunningWeb) -> None:
    stored = crawls.stored()
    assert set(stored) == web.truth.stored
    assert set(stored.values()) == {1}


def test_one_command_crawls_all_and_says_what_it_did(crawls: Crawls) -> None:
    with run_web(hosts=2, pages=10) as web:
        text = crawls.run(*web.start_urls)
        _assert_all_stored_once(crawls, web)
        assert_asked_exactly(web.log(), web.truth)
        assert_nothing_disallowed(web.log(), web.truth)
        summary = crawls.summary()
        assert summary[""] == "finished"
        assert summary["pages stored"] == str(len(web.truth.stored))
        assert int(summary["failed"].split()[0]) == len(web.truth.missing)
        assert summary["still to do"] == "0"
        progress = r"^ +\d+ s  \d+ stored, \d+ to do, \d+ failed, \d+ excluded, [\d.]+ MB, [\d.]+ pages/s$"
        assert re.search(progress, text, re.MULTILINE)
        assert text.startswith(f"begins anew in {crawls.folder}\n")
        assert text.endswith((crawls.folder / "summary.txt").read_text())
        assert not crawls.parts()


@pytest.mark.parametrize("section", ["url_Server", "ftp_Server"])
def test_tls_of_the_configuration_is_for_parts_on_other_machines(crawls: Crawls, section: str) -> None:
    crawls.folder.mkdir()
    certificate, key = make_certificate(crawls.folder)
    (crawls.folder / "config.cfg").write_text(f"[{section}]\ntls_cert = {certificate.name}\ntls_key = {key.name}\n")
    with run_web(hosts=1, pages=3) as web:
        crawls.run("--max-time", "10", *web.start_urls)
        assert set(crawls.stored()) == web.truth.stored


def test_finished_crawl_asks_nothing_again(crawls: Crawls) -> None:
    with run_web(hosts=1, pages=5) as web:
        crawls.run(*web.start_urls)
        before = len(web.log())
        text = crawls.run()  # the start URLs are known by now
        assert text.startswith(f"goes on in {crawls.folder}: {len(crawls.stored())} stored, 0 to do\n")
        assert len(web.log()) == before
        assert "(0 in this run)" in crawls.summary()["pages stored"]


def test_a_crawl_goes_on_with_what_is_queued_though_nothing_was_sent(crawls: Crawls) -> None:
    crawls.folder.mkdir()
    with run_web(hosts=1, pages=2) as web:
        with serving(crawls.folder, *web.start_urls) as server:
            assert server.stop() == 0
        assert crawls.run(*web.start_urls).startswith(f"goes on in {crawls.folder}: 0 stored, 1 to do\n")
        assert set(crawls.stored()) == web.truth.stored


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_interrupted_crawl_goes_on_when_run_again(crawls: Crawls, number: int) -> None:
    with run_web(hosts=3, pages=12) as web:
        with crawls.running(*web.start_urls) as program:
            crawls.wait_for_pages(15)
            assert program.stop(number) == 130
        assert not crawls.parts()
        summary = crawls.summary()
        assert summary[""].startswith("interrupted")
        assert summary["pages stored"] == str(sum(crawls.stored().values())), "also those that came last"
        assert int(summary["still to do"]) > 0
        crawls.run(*web.start_urls)
        _assert_all_stored_once(crawls, web)
        assert int(crawls.summary()["pages stored"].split()[0]) == len(web.truth.stored)
        assert_asked_exactly(web.log(), web.truth)
        assert_no_url_twice(web.log())


def test_killed_crawl_leaves_no_process_and_goes_on_at_once(crawls: Crawls) -> None:
    with run_web(hosts=3, pages=12) as web:
        with crawls.running(*web.start_urls) as program:
            crawls.wait_for_pages(15)
            assert set(crawls.parts()) == {"url", "ftp", "client"}
            program.kill()
            wait_until(lambda: not crawls.parts(), 10, lambda: f"still there: {crawls.parts()}")
        crawls.run(*web.start_urls)
        assert set(crawls.stored()) == web.truth.stored
        assert int(crawls.summary()["pages stored"].split()[0]) == len(web.truth.stored)


def test_parts_that_die_are_started_again(crawls: Crawls) -> None:
    with run_web(hosts=3, pages=25, latency=0.05) as web, crawls.running(*web.start_urls) as program:
        for name in ("client", "ftp", "url"):
            pid = crawls.parts()[name]
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda name=name, pid=pid: crawls.parts().get(name, pid) != pid, 30)
        assert program.wait() == 0
        assert program.errors().count("had died and was started again") == 3
        assert set(crawls.stored()) == web.truth.stored
        assert crawls.summary()["still to do"] == "0"


def test_max_pages_is_exact(crawls: Crawls) -> None:
    with run_web(hosts=2, pages=30) as web:
        crawls.run(*web.start_urls, "--max-pages", "13")
        stored = crawls.stored()
        assert sum(stored.values()) == len(stored) == 13
        assert crawls.summary()["pages stored"] == "13"
        crawls.run(*web.start_urls, "--max-pages", "20")
        assert sum(crawls.stored().values()) == 20, "a higher limit goes on"


def test_hosts_of_the_start_urls_are_the_default_scope(crawls: Crawls) -> None:
    with run_web(hosts=2, pages=6) as web:
        start = web.start_urls[0]
        crawls.run(start)
        truth = web.truth_from([start], same_hosts=True)
        assert truth.outside, "there is something to stay away from"
        assert set(crawls.stored()) == truth.stored
        assert {request.host for request in web.log()} == {urlsplit(start).netloc}


def test_scope_free_leaves_the_start_host(crawls: Crawls) -> None:
    with run_web(hosts=2, pages=6) as web:
        crawls.run(web.start_urls[0], "--scope", "free", "--allow-private", "1")
        assert set(crawls.stored()) == web.truth_from(web.start_urls[:1]).stored
        assert len({urlsplit(url).netloc for url in crawls.stored()}) == 2


def test_max_depth_counts_links_from_the_start(crawls: Crawls) -> None:
    with run_web(hosts=1, pages=31, links=0, odd=False) as web:  # a binary tree below the home page
        crawls.run(*web.start_urls, "--max-depth", "3")
        pages = sorted(urlsplit(url).path for url in crawls.stored())
        assert pages == sorted(["/", *(f"/s{number % 5}/{number}.html" for number in range(7))])
        assert len(asked(web.log())) == 8


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("mailto:somebody@example.org",), "start URL 'mailto:somebody@example.org' is no http or https URL"),
        (("http://",), "is no http or https URL"),
        ((), "give a start URL"),
        (("http://127.0.0.1/", "--colour", "red"), "unrecognized arguments: --colour red"),
        (("http://127.0.0.1/", "--delay", "soon"), "--delay soon: expected a number"),
        (("http://127.0.0.1/", "--scope", "galaxy"), "--scope galaxy: expected one of"),
    ],
)
def test_mistakes_are_told_before_anything_starts(crawls: Crawls, arguments: tuple[str, ...], said: str) -> None:
    assert said in crawls.run(*arguments, code=2)
    assert not crawls.folder.exists()


def test_bad_start_url_in_the_file(crawls: Crawls) -> None:
    crawls.folder.mkdir()
    (crawls.folder / "config.cfg").write_text("[url_Server]\nstart_Urls = ftp://example.org/\n")
    assert "start URL 'ftp://example.org/' is no http or https URL" in crawls.run(code=2)


def test_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    text = Crawls(tmp_path / "file" / "work").run("http://127.0.0.1/", code=2)
    assert "cannot write to the work folder" in text


@pytest.mark.parametrize("closed", ["output", "both"])
def test_a_reader_that_has_seen_enough_does_not_end_a_crawl(crawls: Crawls, closed: str) -> None:
    """As in `crawl … | head -1`."""
    with run_web(hosts=1, pages=4) as web:
        command = [sys.executable, "-m", "onehost.main", *QUICK, "--dir", str(crawls.folder), *web.start_urls]
        errors = subprocess.STDOUT if closed == "both" else subprocess.PIPE
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors) as crawl:
            assert crawl.stdout is not None
            crawl.stdout.readline()
            crawl.stdout.close()
            if crawl.stderr is not None:
                assert crawl.stderr.read() == b""
            assert crawl.wait(60) == 0
        assert set(crawls.stored()) == web.truth.stored
    assert crawls.summary()[""] == "finished"


@pytest.mark.parametrize("start", ["404", "http://nobody.invalid/"])
def test_nothing_to_store_is_told(crawls: Crawls, start: str) -> None:
    with run_hostile() as hostile:
        text = crawls.run(hostile.url("/status/404") if start == "404" else start, code=1)
        assert "no page was stored" in text
        assert ("contact is empty, and nobody.invalid" in text) == (start != "404"), "loopback is nobody else's"
        assert crawls.summary()["failed"].startswith("1 ")
        (line,) = (crawls.folder / ".mem" / "blacklist.txt").read_text().splitlines()
        assert line.split("\t")[1] == ("not_found" if start == "404" else "dns")

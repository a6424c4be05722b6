"""Crawls with filters, by the real commands: what they discard is not stored, and their mistakes cost no page."""

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.integration.admin import ask_admin
from tests.integration.cluster import run_cluster
from tests.integration.daemon import Daemon, daemon, is_alive
from tests.integration.onecommand import Crawls
from tests.languages import PARAGRAPHS
from tests.processes import ROOT
from tests.waiting import wait_until
from tests.web.running import run_web

pytestmark = pytest.mark.integration

SHIPPED = ROOT / "config" / "filters"
HOSTS = ("site.localhost", "ads.localhost", "banner.ads.localhost", "loads.localhost")


def _body(path: str) -> bytes:
    """The home page of each host leads to the others; /LANGUAGE is a page in it that leads to /LANGUAGE/deeper."""
    language = path.strip("/").partition("/")[0] or "cs"
    links = [f"<a href=/{language}/deeper></a>"] if path.count("/") == 1 and path != "/" else []
    if path == "/":
        links = [f"<a href=/{code}></a>" for code in PARAGRAPHS]
        links += [f"<a href=//{host}:{{port}}/></a>" for host in HOSTS]
    return f"<!doctype html><meta charset=utf-8><p>{PARAGRAPHS[language]}</p>{''.join(links)}".encode()


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        is_page = self.path != "/robots.txt"
        body = _body(self.path).replace(b"{port}", str(self.server.server_port).encode()) if is_page else b""
        self.send_response(200 if is_page else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def _site() -> Iterator[int]:
    """Serves all hosts; gives the port."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


@pytest.fixture
def crawls(tmp_path: Path) -> Crawls:
    (tmp_path / "work" / "filters").mkdir(parents=True)
    return Crawls(tmp_path / "work")


def _crawl(crawls: Crawls, port: int, *options: str) -> set[str]:
    """Crawls all hosts and returns what is stored, as host and path."""
    url = f"http://site.localhost:{port}/"
    crawls.run(url, "--scope", "free", "--allow-private", "1", "--delay", "0", "--filters", "filters", *options)
    stored = crawls.stored()
    assert set(stored.values()) == {1}
    return {page.removeprefix("http://").replace(f":{port}", "") for page in stored}


def _everything(*hosts: str) -> set[str]:
    paths = ["/", *(f"/{code}" for code in PARAGRAPHS), *(f"/{code}/deeper" for code in PARAGRAPHS)]
    return {host + path for host in hosts for path in paths}


def test_advertising_and_language_discard_exactly_what_they_should(crawls: Crawls) -> None:
    filters = crawls.folder / "filters"
    for path in SHIPPED.glob("*.*"):
        shutil.copy(path, filters)
    with (filters / "advertising.txt").open("a") as file:
        file.write("ads.localhost\n")
    (filters / "language.txt").write_text("cs\nru\n")
    with _site() as port:
        stored = _crawl(crawls, port)
        wanted = _everything("site.localhost", "loads.localhost")
        assert stored == {page for page in wanted if page.endswith("/") or "/cs" in page or "/ru" in page}
        totals = crawls.summary()
        assert totals["failed"] == "0"
        assert int(totals["excluded"].split()[0]) == len(_everything(*HOSTS)) - len(stored)
        deeper = f"http://site.localhost:{port}/en/deeper"
        assert ask_admin(crawls.folder, "explain", deeper)["reason"] == "unwanted: filter language"
    log = (crawls.folder / ".mem" / "clientCrawler.log").read_text()
    assert f"{deeper} [unwanted][filter language]" in log, "links of discarded pages are followed"
    assert f"http://banner.ads.localhost:{port}/cs [unwanted][filter advertising]" in log
    discarded = len(_everything("ads.localhost", "banner.ads.localhost"))
    assert f"filter advertising: {len(wanted)} pages kept, {discarded} discarded" in log


def test_filters_that_raise_hang_and_crash_cost_no_page(crawls: Crawls) -> None:
    filters = crawls.folder / "filters"
    (filters / "crashes.py").write_text("import os\ndef keep(page): return '/ja/d' not in page.path or os.abort()")
    hangs = "def keep(page):\n while '//site.' in page.url and page.url.endswith('/fr'): pass\n return True"
    (filters / "hangs.py").write_text(hangs)
    (filters / "raises.py").write_text("def keep(page): raise LookupError('no')")
    (filters / "sound.py").write_text("def keep(page): return '/de/' not in page.path")
    with _site() as port:
        stored = _crawl(crawls, port, "--filter-seconds", "1.5")
    assert stored == {page for page in _everything(*HOSTS) if "/de/" not in f"{page}/"}
    log = (crawls.folder / ".mem" / "clientCrawler.log").read_text()
    assert "filter crashes ended its process (signal 6)" in log
    assert "filter hangs did not answer in time" in log
    assert "filter raises raised LookupError" in log
    assert "Traceback" in log, "of the filter"


def test_a_bad_filter_is_told_before_anything_begins(crawls: Crawls) -> None:
    (crawls.folder / "filters" / "broken.py").write_text("def keep(page) return True")
    client = Daemon(crawls.folder, 1, "--filters", "filters")
    code, text = client.call("start")
    assert code == 2
    assert text.startswith(f"clientCrawler: filters: {crawls.folder / 'filters' / 'broken.py'}: SyntaxError")
    assert client.call("status") == (3, "clientCrawler is not running\n")
    told = crawls.run("http://127.0.0.1:1/", "--filters", "filters", code=1)
    assert f"{crawls.folder / 'filters' / 'broken.py'}: SyntaxError" in told


def _filter_processes(folder: Path) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(FileNotFoundError, ProcessLookupError):
            arguments = path.read_bytes().decode(errors="replace").split("\0")
            if "client.filtering.child" in arguments and str(folder) in arguments and is_alive(int(path.parent.name)):
                found.append(int(path.parent.name))
    return found


def test_a_daemon_and_its_filters_end_together(tmp_path: Path) -> None:
    folder = tmp_path / "work" / "filters"
    folder.mkdir(parents=True)
    (folder / "odd.py").write_text("def keep(page): return '/s1/' not in page.url")
    with (
        run_web(hosts=4, pages=40, odd=False) as web,
        run_cluster(tmp_path / "host", web.start_urls, "--delay", "0.1", "--connections-per-host", "1") as cluster,
        daemon(tmp_path / "work", cluster.server_port, "--filters", "filters", "--processes", "2") as client,
    ):
        client.start()
        wait_until(lambda: len(_filter_processes(folder)) == 2, 30)
        client.kill()
        wait_until(lambda: not _filter_processes(folder), 10)
        client.start()
        wait_until(lambda: len(_filter_processes(folder)) == 2, 30)
        assert client.call("stop")[0] == 0
        assert not _filter_processes(folder)
        assert client.log.count("filter odd: ") == 2
        stored = cluster.stored_urls()
        assert stored
        assert not [url for url in stored if "/s1/" in url]

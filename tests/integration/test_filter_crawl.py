"""Crawls with filters, by the real commands: what they discard is not stored, and their mistakes cost no page."""

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.integration.admin import ask_admin
from tests.integration.daemon import Daemon
from tests.integration.onecommand import Crawls
from tests.languages import PARAGRAPHS
from tests.processes import ROOT

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
        assert ask_admin(crawls.folder, "explain", deeper)["reason"] == "unwanted"
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
    daemon = Daemon(crawls.folder, 1, "--filters", "filters")
    code, text = daemon.call("start")
    assert code == 2
    assert text.startswith(f"clientCrawler: filters: {crawls.folder / 'filters' / 'broken.py'}: SyntaxError")
    assert daemon.call("status") == (3, "clientCrawler is not running\n")
    told = crawls.run("http://127.0.0.1:1/", "--filters", "filters", code=1)
    assert f"{crawls.folder / 'filters' / 'broken.py'}: SyntaxError" in told

"""The test web against itself: a tiny crawler that shares no code with it finds exactly what `truth` says."""

import gzip
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from html.parser import HTMLParser
from http.client import HTTPConnection, HTTPMessage
from pathlib import Path
from urllib.parse import quote, urljoin, urlsplit

import pytest
from protego import Protego

from tests.web.child import ROOT
from tests.web.graph import Web
from tests.web.identity import identity
from tests.web.nginx import DOCS_VARIABLE, nginx_program, python_docs, run_nginx
from tests.web.pages import answer
from tests.web.requestlog import (
    Request,
    assert_agent,
    assert_asked_exactly,
    assert_delay_kept,
    assert_no_url_twice,
    assert_nothing_disallowed,
)
from tests.web.resources import Page
from tests.web.running import RunningHostile, RunningWeb, run_hostile, run_web
from tests.web.truth import truth

AGENT = "tiny/1.0 (+http://example.org/)"
HOSTS = ("127.0.0.2:80", "127.0.0.3:8000", "h2.localhost:8000", "127.0.0.5:8000")


class LinkParser(HTMLParser):
    """Collects hrefs, resolved against the base."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.base = url
        self.urls: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        href = dict(attrs).get("href")
        if tag == "base" and href:
            self.base = urljoin(self.base, href)
        elif tag == "a" and href is not None:
            self._add(href.strip())

    def _add(self, href: str) -> None:
        try:
            url = urljoin(self.base, href)
        except ValueError:
            return
        if urlsplit(url).scheme == "http":
            self.urls.append(quote(url, safe="%/:?#[]@!$&'()*+,;="))


class TinyCrawler:
    """One connection per host, one request at a time."""

    def __init__(self, address: str | None = None) -> None:
        self.address = address
        self.connections: dict[str, HTTPConnection] = {}
        self.robots: dict[str, Protego] = {}
        self.results: dict[str, tuple[int, str]] = {}

    def crawl(self, start_urls: tuple[str, ...]) -> None:
        waiting = list(start_urls)
        while waiting:
            url = waiting.pop()
            if identity(url) not in self.results and self.is_allowed(url):
                waiting += self.visit(url)

    def visit(self, url: str) -> list[str]:
        status, headers, body = self.fetch(url)
        content_type = headers.get("Content-Type", "")
        self.results[identity(url)] = (status, content_type)
        if "Location" in headers:
            return [urljoin(url, headers["Location"])]
        if status != 200 or not content_type.startswith("text/html"):
            return []
        parser = LinkParser(url)
        parser.feed(decoded(headers, body))
        return parser.urls

    def is_allowed(self, url: str) -> bool:
        host = urlsplit(url).netloc
        if host not in self.robots:
            status, _, body = self.fetch(urljoin(url, "/robots.txt"))
            self.robots[host] = Protego.parse(body.decode() if status == 200 else "")
        return self.robots[host].can_fetch(url, AGENT)

    def fetch(self, url: str) -> tuple[int, HTTPMessage, bytes]:
        parts = urlsplit(url)
        connection = self.connections.get(parts.netloc)
        if connection is None:
            address = self.address or parts.hostname or ""
            connection = self.connections[parts.netloc] = HTTPConnection(address, parts.port, timeout=10)
        target = parts._replace(scheme="", netloc="", path=parts.path or "/", fragment="").geturl()
        connection.request("GET", target, headers={"Host": parts.netloc, "User-Agent": AGENT})
        response = connection.getresponse()
        return response.status, response.headers, response.read()

    def close(self) -> None:
        for connection in self.connections.values():
            connection.close()

    def with_status(self, *statuses: int) -> set[str]:
        return {url for url, (status, _) in self.results.items() if status in statuses}


def decoded(headers: HTTPMessage, body: bytes) -> str:
    if headers.get("Content-Encoding") == "gzip":
        body = gzip.decompress(body)
    if body.startswith((b"\xff\xfe", b"\xfe\xff")):
        return body.decode("utf-16")
    meta = re.search(rb"charset=([\w-]+)", body)
    return body.decode(headers.get_content_charset() or (meta[1].decode() if meta else "utf-8"))


@pytest.fixture(scope="module")
def web() -> Iterator[RunningWeb]:
    with run_web(hosts=4, pages=25) as running:
        yield running


@pytest.fixture(scope="module")
def hostile() -> Iterator[RunningHostile]:
    with run_hostile() as running:
        yield running


@pytest.fixture(scope="module")
def crawler(web: RunningWeb) -> TinyCrawler:
    with closing(TinyCrawler()) as tiny:
        tiny.crawl(web.start_urls)
    return tiny


def test_a_crawl_finds_exactly_the_truth(web: RunningWeb, crawler: TinyCrawler) -> None:
    html = {url for url in crawler.with_status(200) if crawler.results[url][1].startswith("text/html")}
    assert html == web.truth.pages
    assert crawler.with_status(200) == web.truth.stored
    assert crawler.with_status(404) == web.truth.missing
    assert crawler.with_status(301, 302, 307, 308) == set(web.truth.redirects)


def test_the_log_agrees_with_the_truth(web: RunningWeb, crawler: TinyCrawler) -> None:
    log = web.log()
    assert len(log) == len(crawler.results) + len(web.web.hosts)
    assert_asked_exactly(log, web.truth)
    assert_no_url_twice(log, robots=True)
    assert_nothing_disallowed(log, web.truth)
    assert_agent(log, r"tiny/[0-9.]+ \(\+http://example\.org/\)")
    assert all(request.finished and request.finished >= request.monotonic for request in log)


def test_connections_are_kept_alive(web: RunningWeb, crawler: TinyCrawler) -> None:
    assert len({(request.host, request.client_port) for request in web.log()}) == len(web.web.hosts)


def test_names_are_told_apart_by_the_host_header() -> None:
    with run_web(hosts=2, pages=3, names=True) as web, closing(TinyCrawler("127.0.0.1")) as tiny:
        tiny.crawl(web.start_urls)
    assert tiny.with_status(200) == web.truth.stored
    assert web.start_urls[1].startswith("http://h1.localhost:")
    assert_asked_exactly(web.log(), web.truth)


def test_a_known_version_is_not_sent_again() -> None:
    with run_web(hosts=1) as web, closing(HTTPConnection(web.web.hosts[0], timeout=10)) as connection:
        connection.request("HEAD", "/")
        first = connection.getresponse()
        first.read()
        connection.request("GET", "/", headers={"If-None-Match": first.headers["ETag"]})
        second = connection.getresponse()
        assert (first.status, second.status, second.read()) == (200, 304, b"")


@pytest.mark.parametrize("end", ["input", "signal"])
def test_the_server_ends_with_its_input_and_on_a_signal(end: str) -> None:
    command = [sys.executable, "-m", "tests.web.server", "--hosts=1"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"ready ")
        if end == "input":
            process.stdin.close()
        else:
            process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0


# The graph and its truth, without a server.


def test_the_same_seed_gives_the_same_web_and_another_a_different_one() -> None:
    def content(web: Web) -> list[bytes]:
        return [answer(web.resource(url)).body for url in web.urls()]

    assert content(Web(HOSTS)) == content(Web(HOSTS))
    assert content(Web(HOSTS)) != content(Web(HOSTS, seed=2))


def test_every_link_is_written_so_that_it_leads_to_its_target() -> None:
    web = Web(HOSTS)
    pages = {url: page for url in web.urls() if isinstance(page := web.resource(url), Page)}
    links = [(urljoin(url, page.base), link) for url, page in pages.items() for link in page.links]
    for base, link in links:
        if link.target is not None:
            resolved = quote(urljoin(base, link.href.strip()), safe="%/:?#&=")
            assert identity(resolved) == identity(link.target), link
    assert len(links) > 500


def test_the_truth_has_every_case() -> None:
    web = Web(HOSTS)
    found = truth(web, web.start_urls)
    assert {"http://127.0.0.2/loop/a", "http://127.0.0.2/loop/b"} < found.endless
    assert len(found.endless) == 2 * len(HOSTS)
    assert "http://127.0.0.2/private/open/page.html" in found.disallowed
    assert "http://127.0.0.3:8000/private/open/page.html" in found.pages
    assert "http://h2.localhost:8000/hidden.html" in found.pages
    assert "http://127.0.0.2/hidden.html" in found.never
    assert "http://127.0.0.5:8000/notes.secret" in found.disallowed
    assert found.disallowed < found.never
    assert not found.never & found.requested


def test_the_truth_of_a_crawl_that_stays_on_its_host() -> None:
    web = Web(HOSTS)
    found = truth(web, [web.start_urls[0]], same_hosts=True)
    assert all(url.startswith("http://127.0.0.2/") for url in found.requested)
    assert "http://127.0.0.3:8000/docs/intro.html" in found.outside
    assert found.redirects["http://127.0.0.2/away"] in found.outside


def test_the_truth_without_robots_txt() -> None:
    web = Web(HOSTS)
    found = truth(web, web.start_urls, robots=False)
    assert not found.disallowed
    assert {identity(url) for url in web.urls()} == found.requested - found.missing


def test_without_oddities_there_are_only_plain_pages() -> None:
    web = Web(HOSTS, pages=10, odd=False)
    found = truth(web, web.start_urls)
    assert len(found.pages) == len(HOSTS) * 11
    assert found.requested == found.pages


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://h/", "http://h"),
        ("http://h/", "HTTP://H:80/index.html#x"),
        ("http://h/a/", "http://h/a/default.aspx"),
        ("http://h/%c5%99", "http://h/%C5%99"),
        ("http://h/~a", "http://h/%7Ea"),
    ],
)
def test_addresses_of_the_same_page(one: str, other: str) -> None:
    assert identity(one) == identity(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://h/a", "http://h/a/"),
        ("http://h/a", "http://h/A"),
        ("http://h/", "http://h:8080/"),
        ("http://h/?q=1", "http://h/?q=2"),
        ("http://h/a%2Fb", "http://h/a/b"),
    ],
)
def test_addresses_of_different_pages(one: str, other: str) -> None:
    assert identity(one) != identity(other)


# The assertions about logs must be able to fail.

FIRST = Request(100.0, 10.0, "127.0.0.2:80", "/", AGENT, 200, 4000, 10.1)
LATER = replace(FIRST, monotonic=11.0, target="/a")


def test_a_url_asked_twice_is_found() -> None:
    assert_no_url_twice([FIRST, LATER])
    again = [FIRST, LATER, replace(LATER, target="/index.html")]
    with pytest.raises(AssertionError, match=r"1 asked more than once:\n  2 x http://127\.0\.0\.2/$"):
        assert_no_url_twice(again)
    assert_no_url_twice(again, but={"http://127.0.0.2/"})


def test_robots_txt_counts_only_if_wanted() -> None:
    log = [replace(FIRST, target="/robots.txt")] * 2
    assert_no_url_twice(log)
    with pytest.raises(AssertionError, match=r"robots\.txt"):
        assert_no_url_twice(log, robots=True)


def test_a_disallowed_request_is_found() -> None:
    found = truth(Web(HOSTS), ["http://127.0.0.2/"])
    assert_nothing_disallowed([FIRST], found)
    with pytest.raises(AssertionError, match="private/trapped"):
        assert_nothing_disallowed([FIRST, replace(FIRST, target="/private/trapped.html")], found)


def test_a_request_too_many_or_too_few_is_found() -> None:
    found = truth(Web(HOSTS, pages=2, odd=False), ["http://127.0.0.2/"])
    with pytest.raises(AssertionError, match="never asked for"):
        assert_asked_exactly([FIRST], found)
    with pytest.raises(AssertionError, match="should not be"):
        assert_asked_exactly([replace(FIRST, target="/in-a-comment.html")], found)


def test_haste_is_found_per_host() -> None:
    other_host = replace(FIRST, monotonic=10.1, host="127.0.0.3:80")
    assert_delay_kept([LATER, other_host, FIRST], 1.0)
    with pytest.raises(AssertionError, match=r"1\.000 s from http://127\.0\.0\.2:80/ to"):
        assert_delay_kept([FIRST, LATER], 1.5)


def test_a_wrong_agent_is_found() -> None:
    with pytest.raises(AssertionError, match="tiny"):
        assert_agent([FIRST], "pavouk/.*")


# Hostile servers: each way can be told from a good answer.


def exchange(url: str, receive_bytes: int = 1 << 20) -> bytes:
    """What comes back, up to a limit, read without any HTTP library."""
    parts = urlsplit(url)
    request = f"GET {parts.path}?{parts.query} HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n"
    received = b""
    with socket.create_connection((parts.hostname, parts.port), timeout=5) as connection:
        connection.sendall(request.encode())
        while len(received) < receive_bytes and (data := connection.recv(65536)):
            received += data
    return received


@pytest.mark.parametrize(
    ("path", "start", "part"),
    [
        ("/ok", b"HTTP/1.1 200", b"some text"),
        ("/truncated", b"HTTP/1.1 200", b"Content-Length: 100000"),
        ("/endless", b"HTTP/1.1 200", b"some text"),
        ("/no-content-length", b"HTTP/1.1 200", b"Connection: close"),
        ("/bad-gzip", b"HTTP/1.1 200", b"nonsense"),
        ("/bomb/gzip", b"HTTP/1.1 200", b"Content-Encoding: gzip"),
        ("/bad-chunk", b"HTTP/1.1 200", b"\r\nzz\r\n"),
        ("/huge-headers", b"HTTP/1.1 200", b"X-Filler"),
        ("/redirect-loop-3?at=2", b"HTTP/1.1 302", b"Location: /redirect-loop-3?at=0"),
        ("/redirect-to?u=http://example.org/", b"HTTP/1.1 302", b"Location: http://example.org/"),
        ("/status/418", b"HTTP/1.1 418", b""),
        ("/status/599", b"HTTP/1.1 599", b""),
        ("/empty", b"", b""),
        ("/unknown", b"HTTP/1.1 404", b""),
    ],
)
def test_hostile_answers(hostile: RunningHostile, path: str, start: bytes, part: bytes) -> None:
    received = exchange(hostile.url(path))
    assert received.startswith(start)
    assert part in received
    assert bool(received) == bool(start)


def test_hostile_reset(hostile: RunningHostile) -> None:
    with pytest.raises(ConnectionResetError):
        exchange(hostile.url("/reset"))


def test_hostile_slow_bytes_and_hanging(hostile: RunningHostile) -> None:
    assert exchange(hostile.url("/slow-bytes?seconds=0.001"), 200).endswith(b"aa")
    with closing(HTTPConnection(urlsplit(hostile.url("/")).netloc, timeout=0.2)) as connection:
        connection.request("GET", "/hang")
        with pytest.raises(TimeoutError):
            connection.getresponse()


def test_hostile_retry_after(hostile: RunningHostile) -> None:
    statuses = [exchange(hostile.url("/retry-after?times=2"))[9:12] for _ in range(3)]
    assert statuses == [b"429", b"429", b"200"]
    assert [request.status for request in hostile.log() if "retry" in request.target] == [429, 429, 200]


@pytest.mark.parametrize(
    ("kind", "status", "has_rule"),
    [
        ("none", b"404", False),
        ("forbidden", b"403", False),
        ("broken", b"503", False),
        ("rules", b"200", True),
        ("crawl-delay", b"200", True),
        ("redirects-5", b"302", False),
        ("huge", b"200", True),
        ("binary", b"200", True),
    ],
)
def test_hostile_robots(hostile: RunningHostile, kind: str, status: bytes, has_rule: bool) -> None:
    received = exchange(hostile.url("/robots.txt", robots=kind))
    assert received[9:12] == status
    assert (b"Disallow: /closed/" in received) == has_rule


def test_hostile_robots_redirects_end(hostile: RunningHostile) -> None:
    assert exchange(hostile.url("/robots-4.txt", robots="redirects-5"))[9:12] == b"302"
    assert b"Disallow" in exchange(hostile.url("/robots-5.txt", robots="redirects-5"))


# nginx

needs_nginx = pytest.mark.skipif(nginx_program() is None, reason="nginx is not installed")


@needs_nginx
def test_nginx_serves_a_folder_and_logs(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<p>hello</p>", encoding="utf-8")
    with run_nginx(tmp_path) as nginx, closing(TinyCrawler()) as tiny:
        status, headers, body = tiny.fetch(nginx.url)
        missing, _, _ = tiny.fetch(nginx.url + 'missing?q="1"')
        first, second = nginx.log()
    assert (status, missing, body) == (200, 404, b"<p>hello</p>")
    assert headers["Content-Type"].startswith("text/html")
    assert (first.url, first.status, first.agent) == (nginx.url, 200, AGENT)
    assert (second.target, second.status) == ('/missing?q="1"', 404)
    assert not Path(f"/proc/{nginx.pid}").exists()


def test_python_docs_are_taken_from_where_the_operator_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DOCS_VARIABLE, str(tmp_path))
    assert python_docs() != tmp_path
    (tmp_path / "index.html").touch()
    assert python_docs() == tmp_path

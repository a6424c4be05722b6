"""Endless sites, crawled with the limits that are on by default: every page there is, once, and then an end."""

import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.integration.admin import ask_admin
from tests.integration.onecommand import Crawls

pytestmark = pytest.mark.integration


def _links(path: str) -> list[str]:
    """What the page at a path links to. No page of this site is without a further one."""
    session = secrets.token_hex(16)
    if path == "/":
        parameters = "&".join(f"p{n}=1" for n in range(50))
        return ["x/", "p/q/", "d/0/", f"/forum;jsessionid={session}", f"/list?{parameters}"]
    if path.startswith("/d/"):
        return [f"{path.count('/')}/"]
    if path.startswith("/forum"):
        return [f"/forum;jsessionid={session}", f"/topic?sid={session}&t=1"]
    if path.startswith("/topic"):
        return [f"?PHPSESSID={session}&t=1", f"/(S({session[:24]}))/forum"]
    if path.startswith("/list"):
        return [f"{path}&more=1"]
    return ["x/" if path.startswith("/x/") else "p/q/"]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        found = self.path != "/robots.txt"
        body = "".join(f'<a href="{link}">x</a>' for link in _links(self.path) if found).encode()
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def _endless_site() -> Iterator[tuple[str, list[str]]]:
    """Its home page, and what is asked for."""
    asked: list[str] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"asked": asked}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()


def test_endless_sites_come_to_an_end(tmp_path: Path) -> None:
    crawls = Crawls(tmp_path / "work")
    parameters = "&".join(f"p{n}=1" for n in range(50))
    with _endless_site() as (site, asked):
        crawls.run(f"{site}/", "--delay", "0", "--max-path-depth", "7")
        expected = {"/", "/x/", "/x/x/", "/x/x/x/", "/p/q/", "/p/q/p/q/", "/p/q/p/q/p/q/", "/forum", "/topic?t=1"}
        expected |= {"/d/0/", "/d/0/3/", "/d/0/3/4/", "/d/0/3/4/5/", "/d/0/3/4/5/6/", "/d/0/3/4/5/6/7/"}
        expected.add(f"/list?{parameters}")
        stored = crawls.stored()
        assert {url.removeprefix(site) for url in stored} == expected
        assert set(stored.values()) == {1}
        assert len(asked) == len(expected) + 1, "these and robots.txt, each once"
        for path, rule in {
            "/x/x/x/x/": "path_repetition",
            "/p/q/p/q/p/q/p/q/": "max_path_depth",
            "/d/0/3/4/5/6/7/8/": "max_path_depth",
            f"/list?{parameters}&more=1": "max_query_parameters",
        }.items():
            assert ask_admin(crawls.folder, "explain", site + path)["reason"] == rule, path
        explained = ask_admin(crawls.folder, "explain", f"{site}/forum;jsessionid={'0' * 32}")
        assert (explained["identity"], explained["state"]) == (f"{site}/forum", "done")

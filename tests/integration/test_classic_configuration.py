"""The configuration that users of such a system have had for years, as it is: only addresses and ports are local."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from client.coordinator import Coordinator
from common.bundle import PageEntry, read_pages
from tests.integration.cluster import stored_bundles
from tests.integration.daemon import run_command
from tests.ports import free_port
from tests.processes import ROOT, running
from tests.waiting import wait_until
from tests.web.requestlog import assert_delay_kept, assert_no_url_twice, assert_nothing_disallowed
from tests.web.running import run_web

pytestmark = pytest.mark.integration

MANUAL = ROOT / "manual" / "classic.md"
CLASSIC = """\
[url_Server]
ip = 127.0.0.1
server_port = {server_port}
start_Urls = {start_urls}
urls_to_crawl = 300
robots_control = {robots_control}
page_parse = {page_parse}
sitemap = {sitemap}
document_save = {document_save}

[ftp_Server]
ip = 127.0.0.1
ftp_port = {ftp_port}
directory = Pages

[settings]
server_ip = 127.0.0.1
server_port = {server_port}
number_of_threads = 5
"""
Stored = tuple[PageEntry, bytes, bytes]
PROGRAMS = (
    ("server.urlserver.main", "listens on"),
    ("server.ftpserver.main", "listens on"),
    ("client.main", "foreground", "works for"),
)
SWITCHES = {"robots_control": 1, "page_parse": 1, "sitemap": 0, "document_save": 1}
IMPATIENT = "[url_Server]\ndelay = 0\n"  # the one key that is not classic, where the web is too large for a second each


def _crawled(folder: Path, starts: Sequence[str], delay: bool = False, **switches: int) -> list[Stored]:
    """All three programs, started with nothing but `--dir`, until the crawl is done; then the stored pages."""
    return _crawled_as_written(folder, _write_configuration(folder, starts, delay, switches))


def _crawled_as_written(folder: Path, server_port: int, token: str = "") -> list[Stored]:
    with ExitStack() as stack:
        programs = [
            stack.enter_context(running(["-m", module, *command, "--dir", folder], ready))
            for module, *command, ready in PROGRAMS
        ]
        coordinator = Coordinator(f"http://127.0.0.1:{server_port}/", "test", token)
        wait_until(lambda: coordinator.totals()[1], 90, lambda: "".join(each.errors() for each in programs))
        coordinator.close()
    return [page for bundle in stored_bundles(folder / "Pages") for page in read_pages(bundle)]


def _write_configuration(folder: Path, starts: Sequence[str], delay: bool, switches: Mapping[str, int]) -> int:
    """Returns the port of the URL server."""
    server_port = free_port()
    values = {**SWITCHES, **switches, "server_port": server_port, "ftp_port": free_port()}
    text = CLASSIC.format(start_urls=";".join(starts), **values)
    (folder / "config.cfg").write_text(text if delay else text.replace("[url_Server]\n", IMPATIENT))
    return server_port


def _urls(pages: list[Stored]) -> list[str]:
    return sorted(entry.meta.url for entry, _, _ in pages)


def test_as_it_is(tmp_path: Path) -> None:
    with run_web(hosts=5, pages=1, odd=False) as web:
        pages = _crawled(tmp_path, web.start_urls, delay=True)
        assert _urls(pages) == sorted(web.truth.stored)
        assert_no_url_twice(web.log())
        assert_delay_kept(web.log(), 1.0, tolerance=0.0)
        for _, _, xml in pages:
            data = ET.fromstring(xml).find("data")
            assert data is not None
            assert "pavouk" in (data.findtext("text") or "")
            assert data.findtext("keywords")
        assert (tmp_path / ".mem" / "progress.csv").exists()


def test_a_public_address_needs_one_line_more(tmp_path: Path) -> None:
    line = re.findall(r"^```\n\[url_Server\]\n(.*)\n```$", MANUAL.read_text(), re.MULTILINE)[0]
    with run_web(hosts=1, pages=3) as web:
        server_port = _write_configuration(tmp_path, web.start_urls, delay=False, switches={})
        file = tmp_path / "config.cfg"
        file.write_text(file.read_text().replace("\nip = 127.0.0.1", "\nip = 0.0.0.0"))
        for module, *_ in PROGRAMS[:2]:
            refused = run_command(module, "--dir", tmp_path)
            assert refused.returncode == 2
            assert "0.0.0.0 is reachable from outside and needs a token" in refused.stderr
        file.write_text(file.read_text().replace("[url_Server]\n", f"[url_Server]\n{line}\n"))
        (tmp_path / "token").touch(0o600)
        (tmp_path / "token").write_text("a-secret-of-the-host\n")
        pages = _crawled_as_written(tmp_path, server_port, "a-secret-of-the-host")
        assert _urls(pages) == sorted(web.truth.stored)


def test_page_parse_off_keeps_the_html_and_its_metadata_only(tmp_path: Path) -> None:
    with run_web(hosts=1, pages=6) as web:
        pages = _crawled(tmp_path, web.start_urls, page_parse=0)
        assert _urls(pages) == sorted(web.truth.stored), "links are followed all the same"
        for entry, body, xml in pages:
            page = ET.fromstring(xml)
            assert page.findtext("meta/url") == entry.meta.url
            assert body
            for tag in ("text", "keywords", "description"):
                assert page.find(f"data/{tag}") is None


def test_document_save_off_stores_no_documents(tmp_path: Path) -> None:
    with run_web(hosts=1, pages=6) as web:
        pages = _crawled(tmp_path, web.start_urls, document_save=0)
        assert web.truth.documents
        assert _urls(pages) == sorted(web.truth.pages)
        assert {entry.meta.content_type for entry, _, _ in pages} == {"text/html"}


@pytest.mark.parametrize("control", [1, 0])
def test_robots_control(tmp_path: Path, control: int) -> None:
    with run_web(hosts=1, pages=6) as web:
        pages = _crawled(tmp_path, web.start_urls, robots_control=control)
        truth = web.truth_from(web.start_urls, robots=bool(control))
        assert _urls(pages) == sorted(truth.stored)
        if control:
            assert_nothing_disallowed(web.log(), truth)
            assert truth.disallowed
        else:
            assert not any(request.is_robots for request in web.log()), "nobody asks for rules that do not count"


def test_sitemap_stays_on_the_hosts_of_the_start_urls(tmp_path: Path) -> None:
    with run_web(hosts=2, pages=6) as web:
        pages = _crawled(tmp_path, web.start_urls[:1], sitemap=1)
        truth = web.truth_from(web.start_urls[:1], same_hosts=True)
        assert truth.outside
        assert _urls(pages) == sorted(truth.stored)
        assert {request.host for request in web.log()} == {urlsplit(web.start_urls[0]).netloc}

"""crawlExport after and during real crawls: what it says is what the served files say, by the word of BeautifulSoup."""

from datetime import UTC, datetime
from hashlib import md5
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from common.urls import identity
from export.index import Record, read
from tests.integration.daemon import run_command
from tests.integration.onecommand import Crawls
from tests.oracle import found_in
from tests.web.nginx import nginx_program, python_docs, run_nginx
from tests.web.running import run_web

pytestmark = pytest.mark.integration

_ORACLE_BYTES = 60_000  # html5lib is slow; the documentation has hundreds of pages that are no longer than this
_SAMPLE = 9  # every so many of them


def _index(folder: Path, *options: str) -> list[Record]:
    output = folder / "index.txt"
    done = run_command("export.main", "index", "--dir", folder, "--output", output, *options)
    assert done.returncode == 0, done.stderr
    with output.open("rb") as file:
        return list(read(file))


def _tree(folder: Path) -> dict[str, bytes]:
    tree = folder / "tree"
    done = run_command("export.main", "files", "--dir", folder, "--output", tree)
    assert done.returncode == 0, done.stderr
    return {str(path.relative_to(tree)): path.read_bytes() for path in tree.rglob("*") if path.is_file()}


def _source(docs: Path, url: str) -> Path:
    path = docs / unquote(urlsplit(url).path).removeprefix("/")
    return path / "index.html" if path.is_dir() else path


@pytest.mark.skipif(python_docs() is None, reason="needs Debian's python3.11-doc: run ./test as root")
@pytest.mark.skipif(nginx_program() is None, reason="needs nginx: apt-get install nginx-light")
def test_a_documentation(tmp_path: Path) -> None:
    docs = python_docs()
    assert docs is not None
    crawls = Crawls(tmp_path)
    with run_nginx(docs) as web:
        options = ("--delay", "0", "--connections-per-host", "8", "--bundle-format", "tar.zst")
        crawls.run(web.url, *options, "--document-save", "0")  # style sheets have queries, which are no part of a file
    _check_index(crawls, docs)
    _check_copies(crawls, docs)


def _check_index(crawls: Crawls, docs: Path) -> None:
    records = _index(crawls.folder)
    assert {record.url for record in records} == set(crawls.stored())
    assert len(records) == len(crawls.stored()) > 400
    assert {record.type for record in records} >= {"html"}
    for record in records:
        source = _source(docs, record.original_url)
        changed = datetime.fromtimestamp(int(source.stat().st_mtime), UTC)
        assert datetime.fromisoformat(record.last_modified) == changed
        assert datetime.fromisoformat(record.server_date) > changed
        assert record.checksum == md5(record.url.encode()).hexdigest()
    small = [record for record in records if _is_small_page(record, docs)]
    assert len(small) > 200
    everything = {record.url: record.links for record in _index(crawls.folder, "--all-links")}
    for record in small[::_SAMPLE]:
        expected = found_in(_source(docs, record.original_url).read_bytes(), record.original_url, "utf-8")
        assert (record.title, record.encoding) == (expected.title, "utf-8")
        links = tuple((identity(url), anchor) for url, anchor in expected.links)
        assert everything[record.url] == links
        inside = tuple(link for link in links if urlsplit(link[0]).netloc == urlsplit(record.url).netloc)
        assert record.links == inside, "crawl stays on the start host, so only its links are accepted"


def _is_small_page(record: Record, docs: Path) -> bool:
    return record.type == "html" and _source(docs, record.original_url).stat().st_size < _ORACLE_BYTES


def _check_copies(crawls: Crawls, docs: Path) -> None:
    copies = _tree(crawls.folder)
    assert len(copies) == len(crawls.stored())
    for name, body in copies.items():
        host, _, path = name.partition("/")
        assert host.startswith("127.0.0.1+")
        assert (docs / path).read_bytes() == body


def test_a_crawl_that_runs_is_exported_and_goes_on(tmp_path: Path) -> None:
    crawls = Crawls(tmp_path / "work")
    with run_web(hosts=2, pages=20, latency=0.05) as web, crawls.running(*web.start_urls) as program:
        crawls.wait_for_pages(10)
        early = _index(crawls.folder)
        copies = _tree(crawls.folder)
        assert program.process.poll() is None, "the crawl still runs"
        assert program.wait() == 0
        late = _index(crawls.folder)
        urls = [record.url for record in early]
        assert 0 < len(urls) == len(set(urls)) < len(web.truth.stored)
        assert set(urls) < web.truth.stored == {record.url for record in late}
        assert len(urls) <= len(copies) <= len(late)
        by_url = {record.url: record for record in late}
        assert all(by_url[record.url] == record for record in early)
        assert "died" not in program.errors()
        assert len(_tree(crawls.folder)) == len(web.truth.stored)

"""A real documentation set behind nginx: our crawl and wget, an independent crawler, find the same pages."""

import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from common.bundle import read_pages
from tests.integration.cluster import stored_bundles
from tests.processes import ROOT
from tests.web.nginx import nginx_program, python_docs, run_nginx

pytestmark = pytest.mark.integration


@pytest.mark.skipif(python_docs() is None, reason="needs Debian's python3.11-doc: run ./test as root")
@pytest.mark.skipif(nginx_program() is None, reason="needs nginx: apt-get install nginx-light")
@pytest.mark.skipif(shutil.which("wget") is None, reason="needs wget: apt-get install wget")
def test_same_pages_as_wget(tmp_path: Path) -> None:
    docs = python_docs()
    assert docs is not None
    with run_nginx(docs) as web:
        ours = _crawled(web.url, tmp_path / "crawl")
        theirs = _wgot(web.url, tmp_path / "wget")
    assert len(theirs) > 400, "the documentation set is smaller than it should be"
    assert ours == theirs


def _crawled(url: str, folder: Path) -> set[str]:
    """The paths of the HTML pages that `crawl` stores."""
    options = ("--delay", "0", "--connections-per-host", "8", "--dir", str(folder), "--retry-wait", "0.2")
    command = [sys.executable, "-m", "onehost.main", url, *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = [entry.meta for bundle in stored_bundles(folder / "Pages") for entry, _, _ in read_pages(bundle)]
    paths = [_path(page.original_url) for page in pages if page.content_type == "text/html"]
    assert len(paths) == len(set(paths)), "no page is stored twice"
    return set(paths)


def _wgot(url: str, folder: Path) -> set[str]:
    folder.mkdir()
    command = ["wget", "-r", "-l", "inf", "-q", "--reject-regex", r"\.(css|js|png|svg|ico|txt)$", "-nH", url]
    subprocess.run(command, cwd=folder, timeout=300)  # its exit code tells of broken links, too
    return {_path("/" + str(path.relative_to(folder))) for path in folder.rglob("*.html")}


def _path(url: str) -> str:
    path = urlsplit(url).path
    return path.removesuffix("index.html") if path.endswith("/index.html") else path

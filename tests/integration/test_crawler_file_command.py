"""crawl with a classic crawler file, as it is: only the start URLs are those of the test web."""

import os
import re
import stat
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from common.bundle import read_pages
from export.index import read
from tests.crawler_file import EXAMPLE
from tests.integration.cluster import stored_bundles
from tests.integration.onecommand import QUICK
from tests.processes import ROOT, running
from tests.web.running import run_web

pytestmark = pytest.mark.integration


def _crawl(folder: Path, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run crawl in `folder` with a crawler file and nothing else but haste."""
    (folder / "crawler.conf").write_text(text)
    command = [sys.executable, "-m", "onehost.main", "--crawler-conf", "crawler.conf", *QUICK, *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)


def _with_starts(starts: Sequence[str]) -> str:
    listed = "".join(f'    "{url}",\n' for url in starts)
    return re.sub(r"Starting-points = \{\n.*?\};", f"Starting-points = {{\n{listed}}};", EXAMPLE, flags=re.DOTALL)


def _copies(repository: Path) -> dict[str, bytes]:
    """The page copies: every folder that is not the work folder's own."""
    hosts = (folder for folder in repository.iterdir() if folder.is_dir() and folder.name not in (".mem", "Pages"))
    files = (path for host in hosts for path in host.rglob("*") if path.is_file())
    return {str(path.relative_to(repository)): path.read_bytes() for path in files if ".client" not in path.parts}


def test_the_example_runs(tmp_path: Path) -> None:
    with run_web(hosts=2, pages=8) as web:
        done = _crawl(tmp_path, _with_starts(web.start_urls))
        assert done.returncode == 0, done.stdout + done.stderr
        assert "period" not in done.stderr
        assert "finished; the next page is due at " in done.stdout
        repository = tmp_path / "testbedCSDICS"
        pages = [page for bundle in stored_bundles(repository / "Pages") for page in read_pages(bundle)]
        stored = {entry.meta.original_url for entry, _, _ in pages}
        assert set(web.start_urls) < stored
        assert all(re.search(r"\.(html?|php)$", url) for url in stored - set(web.start_urls))
        assert {entry.meta.url for entry, _, _ in pages} < web.truth.stored, "the accept list leaves something out"
        copies = _copies(repository)
        assert sorted(copies.values()) == sorted(body for _, body, _ in pages)
        for url in web.start_urls:
            assert f"{urlsplit(url).netloc.replace(':', '+')}/index.html" in copies
        assert (repository / ".mem" / "urlServer.log").stat().st_size > 0
        log = (tmp_path / "log").read_text()
        assert log.count("stopped") == 3, "what the parts log"
        assert stat.S_IMODE((tmp_path / "log").stat().st_mode) == 0o600
        with (repository / "index.txt").open("rb") as index:
            records = list(read(index))
        assert sorted(record.url for record in records) == sorted(entry.meta.url for entry, _, _ in pages)
        assert any(record.links for record in records)
        assert done.stdout.endswith("page copies    testbedCSDICS\nindex file     testbedCSDICS/index.txt\n")
        assert (repository / "summary.txt").read_text() == done.stdout[done.stdout.index("finished; ") :]


def test_options_count_more_and_logs_go_to_the_screen(tmp_path: Path) -> None:
    text = EXAMPLE.replace('"log";', '"screen";')
    with run_web(hosts=1, pages=8) as web:
        starts = re.sub(r'"http://www\.[^"]*",\n', "", text)
        done = _crawl(tmp_path, starts, *web.start_urls, "--max-pages", "3", "--dir", "work")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "pages stored   3" in done.stdout
    assert re.search(r"INFO .*stopped", done.stderr)
    assert (tmp_path / "work" / "Pages").is_dir()
    assert len(_copies(tmp_path / "testbedCSDICS")) == 3
    written = "crawlExport: 3 pages in testbedCSDICS\ncrawlExport: 3 pages in testbedCSDICS/index.txt\n"
    assert done.stderr.endswith(written)
    assert not (tmp_path / "testbedCSDICS" / "Pages").exists()


def test_a_mistake_is_told_with_its_place(tmp_path: Path) -> None:
    done = _crawl(tmp_path, EXAMPLE.replace("period = 72", "perod = 72"))
    assert done.returncode == 2
    assert done.stderr.startswith("crawl: crawler.conf, line 16, column 1: unknown name perod, expected one of ")
    assert not (tmp_path / "testbedCSDICS").exists()


def test_more_starting_points_than_a_command_line_takes(tmp_path: Path) -> None:
    with run_web(hosts=1, pages=2) as web:
        many = [f"http://127.0.0.1:9/{'x' * 1_900}/{number}" for number in range(1_500)]  # 2.9 MB
        done = _crawl(tmp_path, _with_starts([*web.start_urls, *many]), "--max-pages", "1", "--scope", "path")
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert re.search(r"pages stored +1\n", done.stdout)


def test_older_spellings_and_no_limit(tmp_path: Path) -> None:
    with run_web(hosts=1, pages=4) as web:
        text = f"""<crawler-options>
            starting-points = {{ "{web.start_urls[0]}" }}; max-page-number = -1; scope = "host-scope";
            <log-options> log-file = "logs/crawl.log"; log-level = 2;
            <multithreading-options> number-of-threads = 2;"""
        done = _crawl(tmp_path, text, "--dir", "work")
        assert done.returncode == 0, done.stdout + done.stderr
        assert f"pages stored   {len(web.truth.stored)}\n" in done.stdout
    assert "everything is kept in work" in (tmp_path / "logs" / "crawl.log").read_text()
    assert "index file" not in done.stdout, "only into a repository"


def test_a_log_that_cannot_be_written_is_told_before_the_crawl(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    done = _crawl(tmp_path, EXAMPLE, "--dir", "work")
    assert done.returncode == 2
    assert done.stderr.endswith("crawl: cannot write to the log file log: Is a directory\n")
    assert not (tmp_path / "work" / "Pages").exists()


def test_what_a_part_says_when_it_cannot_start_is_told_from_the_log(tmp_path: Path) -> None:
    (tmp_path / "work" / ".mem").mkdir(parents=True)
    (tmp_path / "work" / ".mem" / "frontier").write_text("no folder")
    done = _crawl(tmp_path, EXAMPLE, "--dir", "work")
    assert done.returncode == 1
    assert "urlServer did not start:" in done.stderr
    assert "'work/.mem/frontier'" in done.stderr.partition("did not start")[2]


def test_a_repository_that_cannot_be_written_is_told_before_the_crawl(tmp_path: Path) -> None:
    (tmp_path / "testbedCSDICS").write_text("no folder")
    done = _crawl(tmp_path, EXAMPLE, "--dir", "work")
    assert done.returncode == 2
    assert done.stderr == "crawl: cannot write to the repository testbedCSDICS: File exists\n"
    assert not (tmp_path / "work" / "Pages").exists()


@pytest.mark.parametrize(("repository", "said"), [("/proc", "No such file"), ("copies", "index.txt is a folder")])
def test_so_is_one_in_which_nothing_can_be_written(tmp_path: Path, repository: str, said: str) -> None:
    (tmp_path / "copies" / "index.txt").mkdir(parents=True)
    text = f'<crawler-options> Starting-points = {{"a.example"}}; repository = "{repository}";'
    done = _crawl(tmp_path, text, "--dir", "work")
    assert done.returncode == 2
    assert done.stderr.startswith(f"crawl: cannot write to the repository {repository}: {said}")
    assert not (tmp_path / "work" / "Pages").exists()


def test_folders_may_begin_with_a_dash(tmp_path: Path) -> None:
    (tmp_path / "-c").write_text("[url_Server]\nmax_pages = 1\n")
    with run_web(hosts=1, pages=3) as web:
        text = _with_starts(web.start_urls).replace("testbedCSDICS", "-rep")
        done = _crawl(tmp_path, text, "--dir=-work", "--config=-c", "--directory=-pages")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "-rep" / "index.txt").exists()
    assert (tmp_path / "-work" / "-pages").exists()


def test_page_copies_can_be_interrupted(tmp_path: Path) -> None:
    (tmp_path / "testbedCSDICS").mkdir()
    os.mkfifo(tmp_path / "testbedCSDICS" / "index.txt")  # nobody reads it: the index waits for ever
    with run_web(hosts=1, pages=2) as web:
        (tmp_path / "crawler.conf").write_text(_with_starts(web.start_urls))
        command = ["-m", "onehost.main", "--crawler-conf", "crawler.conf", *QUICK]
        with running(command, "^bundles ", folder=tmp_path) as crawl:
            assert crawl.stop() == 130
            assert "Traceback" not in crawl.errors()
            assert crawl.output().endswith("interrupted; run the same command again to go on\n")

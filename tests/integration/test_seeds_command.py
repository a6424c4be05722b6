"""Start URLs from a file: crawl, urlServer and crawlAdmin take them, and a million of them are no trouble."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.admin import ask_admin
from tests.integration.onecommand import QUICK, Crawls
from tests.processes import ROOT, running
from tests.urlserver import serving
from tests.waiting import wait_until
from tests.web.running import run_web

pytestmark = pytest.mark.integration

FEW, MANY = 30_000, 120_000


def run(module: str, *arguments: object, text: bytes = b"", code: int = 0) -> tuple[str, str]:
    """One command with something on its standard input; what it said on both streams."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, input=text, capture_output=True, timeout=120)
    assert done.returncode == code, done.stderr
    assert b"Traceback" not in done.stderr
    return done.stdout.decode(), done.stderr.decode()


@pytest.mark.parametrize("source", ["file", "standard input", "pipe"])
def test_a_crawl_of_seeds(tmp_path: Path, source: str) -> None:
    crawls = Crawls(tmp_path / "work")
    with run_web(hosts=3, pages=4) as web:
        first, *others = web.start_urls
        text = "\n".join(["# seeds", *others, "ftp://nowhere.example/"]).encode()
        name = "-" if source == "standard input" else str(tmp_path / "seeds.txt")
        writer = None
        if source == "file":
            Path(name).write_bytes(text)
        elif source == "pipe":
            os.mkfifo(name)
            writer = subprocess.Popen([sys.executable, "-c", f"open({name!r}, 'wb').write({text!r})"])
        _, errors = run("onehost.main", *QUICK, "--dir", crawls.folder, first, "--seeds", name, text=text)
        if writer is not None:
            assert writer.wait(10) == 0
        assert set(crawls.stored()) == web.truth.stored, "they are within the scope, as other start URLs are"
    shown = "standard input" if name == "-" else name
    assert errors.splitlines()[:2] == [
        f"crawl: {shown}, line 4: 'ftp://nowhere.example/' is no http or https URL",
        f"crawl: {shown}: 1 of 4 lines are no http or https URLs",
    ]
    assert not (crawls.folder / ".mem" / "seeds.txt").exists()


def test_what_was_piped_in_is_not_lost_with_its_reader(tmp_path: Path) -> None:
    """urlServer is started again with what only the first had read; so is a crawl that was killed."""
    crawls = Crawls(tmp_path / "work")
    with run_web(hosts=2, pages=40) as web:
        seeds = tmp_path / "seeds"
        seeds.write_text("\n".join(web.start_urls))
        with crawls.running("--seeds", str(seeds), "--delay", "0.1") as program:
            seeds.unlink()
            assert (crawls.folder / ".mem" / "seeds.txt").stat().st_mode & 0o077 == 0
            os.kill(crawls.parts()["url"], signal.SIGKILL)
            program.wait_for_errors("urlServer had died and was started again")
            program.kill()
        wait_until(lambda: not crawls.parts(), 20)
        crawls.run()
        assert set(crawls.stored()) == web.truth.stored


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("source", ["nothing yet", "half a line", "no end"])
def test_a_server_that_takes_in_seeds_ends_cleanly(tmp_path: Path, source: str, number: int) -> None:
    reader, writer = os.pipe()
    endless = subprocess.Popen(["yes", "http://a.example/"], stdout=writer) if source == "no end" else None
    if source == "half a line":
        os.write(writer, b"http://a.example/\nhttp://b.exam")
    command = [sys.executable, "-m", "server.urlserver.main", "--dir", tmp_path, "--server-port", "0", "--seeds", "-"]
    program = subprocess.Popen(command, cwd=ROOT, stdin=reader, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    os.close(reader)
    assert program.stdout is not None
    while b"begins anew" not in program.stdout.readline():
        assert program.poll() is None
    program.send_signal(number)
    output, errors = program.communicate(timeout=30)
    os.close(writer)
    if endless is not None:
        endless.wait(10)
    assert (program.returncode, output) == (0, b"")
    assert b"Traceback" not in errors
    assert ask_admin(tmp_path, "status")["totals"]["known"] <= 1, "half a line is no seed"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_crawl_that_waits_for_seeds_ends_at_once(tmp_path: Path, number: int) -> None:
    command = [sys.executable, "-m", "onehost.main", "--dir", tmp_path / "work", "--seeds", "-"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        assert program.stdin is not None
        assert program.stderr is not None
        program.stdin.write(b"a.example\nftp://x/\n")
        program.stdin.flush()
        assert b"line 2" in program.stderr.readline()
        program.send_signal(number)
        assert program.wait(30) == 130
        assert b"Traceback" not in program.stderr.read()
    assert not (tmp_path / "work" / ".mem" / "seeds.txt").exists(), "half of them would be taken for all"


def test_a_file_instead_of_a_url(tmp_path: Path) -> None:
    (tmp_path / "here").write_text("a.org\n")
    for module in ("onehost.main", "server.urlserver.main"):
        for name in ("seeds.txt", str(tmp_path / "here")):
            _, errors = run(module, "--dir", tmp_path / "work", name, code=2)
            assert f"{name!r} looks like a file: with --seeds {name} start URLs are read from it" in errors
        _, errors = run(module, "--dir", tmp_path / "work", "--seeds", tmp_path / "missing", code=2)
        assert "missing cannot be read" in errors
    _, errors = run("onehost.main", "--dir", tmp_path / "work", "--seeds", "-", text=b"# none\n", code=2)
    assert "there is no start URL in -" in errors
    _, errors = run("onehost.main", "--dir", tmp_path / "other", code=2)
    assert "give a start URL" in errors


@pytest.mark.parametrize("is_running", [True, False])
def test_an_operator_adds_seeds(tmp_path: Path, is_running: bool) -> None:
    seeds = tmp_path / "seeds"
    seeds.write_text("".join(f"http://h{number % 50}.example/{number}\n" for number in range(5_000)))
    with serving(tmp_path, "http://h1.example/1", "--scope", "host", "--max-message-bytes", "100000") as server:
        if not is_running:
            assert server.stop() == 0
        assert ask_admin(tmp_path, "add", "--seeds", str(seeds)) == {"added": 4_999, "known": 1}
        assert ask_admin(tmp_path, "add", "h1.example/new", "--seeds", str(seeds)) == {"added": 1, "known": 5_000}
        with seeds.open("a") as file:
            file.write("ftp://h/\n")
        assert ask_admin(tmp_path, "add", "--seeds", str(seeds), code=1) == {"added": 0, "known": 5_000}
        assert ask_admin(tmp_path, "status")["totals"]["known"] == 5_001
    _, errors = run("server.admin.main", "add", "--dir", tmp_path, code=2)
    assert "add what? Give URLs, or --seeds FILE" in errors
    _, errors = run("server.admin.main", "add", "--dir", tmp_path, "seeds.csv", code=2)
    assert "looks like a file" in errors


def test_many_seeds_of_one_host_cost_no_memory(tmp_path: Path) -> None:
    """What the server keeps follows from the hosts, not from the seeds; and it says so while it takes them in."""
    peaks = []
    for number in (FEW, MANY):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "seeds").write_text("".join(f"http://a.example/{'x' * 40}/{n}\n" for n in range(number)))
        command = ["-m", "server.urlserver.main", "--dir", folder, "--server-port", 0, "--scope", "path"]
        with running([*command, "--seeds", folder / "seeds", "--durability", "normal"], "listens on") as program:
            status = Path(f"/proc/{program.process.pid}/status").read_text()
            peaks.append(int(status.partition("VmHWM:")[2].split()[0]))
            assert ask_admin(folder, "status")["totals"]["known"] == number
    assert peaks[1] - peaks[0] < 12_000, f"kilobytes: {peaks}"

"""What the real programs leave on disk and show in the list of processes: nothing for other users of the machine."""

import ftplib
import os
import signal
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from client.coordinator import Coordinator
from common.errors import RemoteUnavailable
from common.secrets import FTP_USER, ftp_password, known_host_secret
from tests.integration.admin import ask_admin
from tests.integration.daemon import daemon
from tests.integration.onecommand import Crawls
from tests.ports import free_port
from tests.processes import running
from tests.waiting import wait_until
from tests.web.running import run_web

pytestmark = pytest.mark.integration

TOKEN = "ToKeN-0f-the-test"


def open_to_others(folder: Path) -> list[str]:
    """Everything below that group or others may do something with."""
    found = [folder, *folder.rglob("*")]
    return [str(path) for path in found if not path.is_symlink() and path.stat().st_mode & 0o077]


class Watch:
    """Looks at the command lines of all processes again and again."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while not self._ended.wait(0.01):
            for file in Path("/proc").glob("[0-9]*/cmdline"):
                with suppress(OSError):
                    self.seen.add(file.read_bytes().decode(errors="replace"))

    def end(self) -> None:
        self._ended.set()
        self._thread.join()


@contextmanager
def watching() -> Iterator[Watch]:
    watch = Watch()
    try:
        yield watch
    finally:
        watch.end()


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


@pytest.mark.parametrize("mask", [0o000, 0o022], ids=oct)
def test_a_crawl(tmp_path: Path, mask: int) -> None:
    folder = tmp_path / "work"
    with run_web(hosts=1, pages=10) as web, watching() as watch, umask(mask):
        Crawls(folder).run(*web.start_urls)
    assert open_to_others(folder / ".mem") == []
    assert stat.S_IMODE((folder / ".mem" / "secret").stat().st_mode) == 0o600
    assert open_to_others(folder / ".client") == []
    bundles = list((folder / "Pages").glob("*/*.tar.bz2"))
    assert {stat.S_IMODE(path.stat().st_mode) for path in bundles} == {0o666 & ~mask}, "the harvest is as umask says"
    secret = known_host_secret(folder / ".mem")
    assert secret is not None
    ours = [line for line in watch.seen if str(folder) in line]
    assert {module for module in ("server.urlserver", "server.ftpserver", "client.main", "onehost.main")
            if any(module in line for line in ours)} == {
        "server.urlserver", "server.ftpserver", "client.main", "onehost.main"}  # fmt: skip
    assert [line for line in watch.seen if secret in line or ftp_password(secret) in line] == []


def test_nobody_else_on_this_machine_takes_part_in_a_crawl(tmp_path: Path) -> None:
    """Whoever does not read the work folder gets no job, and steers nothing."""
    crawls = Crawls(tmp_path / "work")
    with run_web(hosts=1, pages=300) as web, crawls.running("--delay", "0.5", *web.start_urls):
        address = (tmp_path / "work" / ".mem" / "urlServer.address").read_text()
        stranger = Coordinator(address, "stranger")
        with pytest.raises(RemoteUnavailable, match="token is missing or wrong"):
            stranger.get_job("r", 1)
        assert ask_admin(tmp_path / "work", "status")["totals"]["known"] > 0, "its owner can ask"


def test_a_host_without_a_token_has_no_password_that_can_be_known(tmp_path: Path) -> None:
    port, other = free_port(), free_port()
    ftp = ["-m", "server.ftpserver.main", "--dir", tmp_path, "--ftp-port", port]
    with running(ftp, "listens on"):
        secret = known_host_secret(tmp_path / ".mem")
        assert secret is not None
        with ftplib.FTP() as session:
            session.connect("127.0.0.1", port)
            with pytest.raises(ftplib.error_perm, match="530"):
                session.login(FTP_USER, ftp_password(""))
        url = ["-m", "server.urlserver.main", "--dir", tmp_path, "--server-port", other, "http://a.example/"]
        with running(url, "listens on"), ftplib.FTP() as session:
            job = Coordinator(f"http://127.0.0.1:{other}/", "one").get_job("r", 1)
            session.connect("127.0.0.1", port)
            assert session.login(job.settings.ftp_user, job.settings.ftp_password).startswith("230")
            assert job.settings.ftp_password == ftp_password(secret)


@pytest.mark.parametrize("source", ["variable", "file", "credential"])
def test_programs_with_a_token_do_not_show_it(tmp_path: Path, source: str) -> None:
    ports = {"server": free_port(), "ftp": free_port()}
    file = tmp_path / "pavouk-token"
    file.write_text(TOKEN + "\n")
    file.chmod(0o600)
    environment = {"variable": {"PAVOUK_TOKEN": TOKEN}, "credential": {"CREDENTIALS_DIRECTORY": str(tmp_path)}}
    extra = environment.get(source, {})
    options = ["--token-file", str(file)] if source == "file" else []
    host = ["--dir", tmp_path / "host", "--ftp-port", ports["ftp"], *options]
    with pytest.MonkeyPatch.context() as patch, run_web(hosts=1, pages=5) as web, watching() as watch:
        for name, value in extra.items():
            patch.setenv(name, value)
        server = ["-m", "server.urlserver.main", *host, "--server-port", ports["server"], *web.start_urls]
        quick = ["--delay", "0", "--retry-wait", "0.2", "--report-seconds", "0.5"]
        with (
            running(["-m", "server.ftpserver.main", *host], "listens on"),
            running([*server, *quick], "listens on") as url_server,
            umask(0o000),
            daemon(tmp_path / "worker", ports["server"], *options) as worker,
        ):
            worker.start()
            coordinator = Coordinator(f"http://127.0.0.1:{ports['server']}/", "test", TOKEN)
            wait_until(lambda: coordinator.totals()[1], 60, lambda: worker.log)
            assert coordinator.totals()[0].stored == len(web.truth.stored)
            assert worker.call("stop")[0] == 0
            errors = url_server.errors()
    assert open_to_others(tmp_path / "worker" / ".client") == []
    assert len([line for line in watch.seen if "client.main" in line and str(tmp_path) in line]) > 0
    assert [line for line in watch.seen if TOKEN in line or ftp_password(TOKEN) in line] == []
    assert TOKEN not in errors + worker.log
    assert not (tmp_path / "host" / ".mem" / "secret").exists(), "a host with a token needs no other secret"


def test_a_token_on_the_command_line_works_and_is_warned_of(tmp_path: Path) -> None:
    command = ["-m", "server.urlserver.main", "--dir", tmp_path, "--server-port", 0, "--token", "abc"]
    with running(command, "listens on") as program:
        program.wait_for_errors("--token shows the token to every user of this machine")
        assert program.stop(signal.SIGTERM) == 0

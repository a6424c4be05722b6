"""clientCrawler start, stop, restart, status, foreground: exit codes, files, and what a person is told."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cluster import run_cluster
from tests.integration.daemon import Daemon, daemon, is_alive, run_command
from tests.ports import free_port
from tests.processes import ROOT, running
from tests.waiting import wait_until
from tests.web.running import run_web

pytestmark = pytest.mark.integration

RUNNING, NOT_RUNNING, DEAD = 0, 3, 1  # of status, as the Linux Standard Base has it


@pytest.fixture
def lonely(tmp_path: Path) -> Iterator[Daemon]:
    """A client whose URL server does not exist."""
    with daemon(tmp_path / "work", free_port()) as it:
        yield it


@pytest.mark.smoke
def test_the_life_of_a_daemon(lonely: Daemon) -> None:
    assert lonely.call("status") == (NOT_RUNNING, "clientCrawler is not running\n")
    assert not lonely.folder.exists(), "asking leaves no trace"
    pid = lonely.start()
    assert lonely.call("status") == (RUNNING, f"clientCrawler is running (pid {pid})\n")
    code, text = lonely.call("start")
    assert code == 0
    assert f"already running (pid {pid})" in text
    assert lonely.call("stop") == (0, "clientCrawler stopped\n")
    assert not is_alive(pid)
    assert lonely.call("status")[0] == NOT_RUNNING
    assert lonely.call("stop") == (0, "clientCrawler is not running\n")


def test_the_daemon_has_left_its_terminal(lonely: Daemon) -> None:
    code, text = lonely.call("start")
    assert code == 0
    assert str(lonely.folder / ".client" / "clientCrawler.log") in text
    fields = Path(f"/proc/{lonely.pid}/stat").read_text().rpartition(")")[2].split()
    session, terminal = int(fields[3]), int(fields[4])
    assert session != 0
    assert session != int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[3])
    assert terminal == 0
    assert Path(f"/proc/{lonely.pid}/cwd").resolve() == lonely.folder.resolve()
    assert Path(f"/proc/{lonely.pid}/fd/0").resolve() == Path("/dev/null")


def test_restart_is_another_process(lonely: Daemon) -> None:
    first = lonely.start()
    code, text = lonely.call("restart")
    assert code == 0, text
    assert lonely.pid != first
    assert not is_alive(first)
    assert is_alive(lonely.pid)


def test_restart_starts_what_is_not_running(lonely: Daemon) -> None:
    assert lonely.call("restart")[0] == 0
    assert is_alive(lonely.pid)


def test_status_tells_what_was_caught_since_the_start(lonely: Daemon) -> None:
    pid = lonely.start()
    children = Path(f"/proc/{pid}/task/{pid}/children")
    wait_until(lambda: children.read_text().split(), 20)
    os.kill(int(children.read_text().split()[0]), signal.SIGKILL)
    wait_until(lambda: "process 1" in lonely.call("status")[1], 20, lambda: lonely.log)
    assert lonely.call("status") == (RUNNING, (
        f"clientCrawler is running (pid {pid})\nit has caught 1 errors and gone on; its log tells more\n"
        "  process 1: 1, the last: ChildProcessError: died (-9)\n"
    ))  # fmt: skip
    assert lonely.call("restart")[0] == 0
    assert lonely.call("status") == (RUNNING, f"clientCrawler is running (pid {lonely.pid})\n")


def test_killed_daemon_is_noticed_and_can_be_started_again(lonely: Daemon) -> None:
    killed = lonely.start()
    lonely.kill()
    code, text = lonely.call("status")
    assert code == DEAD
    assert "ended without being stopped" in text
    assert lonely.call("stop")[0] == 0
    assert lonely.start() != killed
    assert lonely.call("status")[0] == RUNNING


def test_a_recycled_process_id_is_not_taken_for_ours(lonely: Daemon) -> None:
    """The lock decides, not the number: a stranger that has it now must not be stopped."""
    lonely.pid_file.parent.mkdir(parents=True)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as stranger:
        lonely.pid_file.write_text(f"{stranger.pid}\n")
        assert lonely.call("status")[0] == DEAD
        assert lonely.call("stop")[0] == 0
        assert stranger.poll() is None
        lonely.start()
        lonely.call("stop")
        assert stranger.poll() is None
        stranger.kill()


def test_log_says_what_is_wrong_once_in_a_while(lonely: Daemon) -> None:
    lonely.start()
    wait_until(lambda: "no job" in lonely.log, 20, lambda: lonely.log)
    assert "refused" in lonely.log.lower()
    assert lonely.call("stop")[0] == 0
    assert "stopped" in lonely.log
    assert "Traceback" not in lonely.log


def test_two_clients_in_one_folder_are_refused(lonely: Daemon) -> None:
    pid = lonely.start()
    code, text = lonely.call("foreground")
    assert code == 1
    assert f"already running (pid {pid})" in text
    assert is_alive(pid)


def test_ctrl_c_ends_the_foreground(tmp_path: Path) -> None:
    arguments = ["-m", "client.main", "foreground", "--dir", tmp_path, "--server-port", str(free_port())]
    with running(arguments, "works for") as program:
        assert program.stop(signal.SIGINT) == 0
        assert "Traceback" not in program.errors()


def test_no_argument_shows_the_usage() -> None:
    done = run_command("client.main")
    assert done.returncode == 2
    assert done.stderr.startswith("usage: clientCrawler")
    assert "start" in done.stderr
    assert "foreground" in done.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--number-of-threads", "0"), "--number-of-threads 0: expected a whole number from 1 to 1000"),
        (("--server-port", "port"), "--server-port port: expected"),
        (("--tls-ca", "nowhere.pem"), "tls_ca: there is no file"),
        (("--colour", "red"), "unrecognized arguments: --colour red"),
    ],
)
def test_bad_settings_are_refused_before_anything_starts(lonely: Daemon, options: tuple[str, ...], said: str) -> None:
    code, text = lonely.call("start", *options)
    assert code == 2
    assert said in text
    assert lonely.call("status")[0] == NOT_RUNNING


@pytest.mark.parametrize("options", [("--tls-ca", "nowhere.pem"), ("--filters", "none"), ("--token-file", "none")])
def test_a_restart_with_bad_settings_leaves_the_worker_alone(lonely: Daemon, options: tuple[str, ...]) -> None:
    pid = lonely.start()
    assert lonely.call("restart", *options)[0] == 2
    assert lonely.call("status") == (0, f"clientCrawler is running (pid {pid})\n")


def test_a_worker_whose_token_is_gone_can_be_asked_and_stopped(lonely: Daemon) -> None:
    lonely.folder.mkdir()
    (lonely.folder / "config.cfg").write_text("[settings]\ntoken_file = token\n")
    (lonely.folder / "token").write_text("abc")
    lonely.start()
    (lonely.folder / "token").unlink()
    assert lonely.call("status")[0] == 0
    assert lonely.call("restart")[0] == 2
    assert lonely.call("stop") == (0, "clientCrawler stopped\n")


def test_bad_configuration_file_is_quoted(lonely: Daemon) -> None:
    lonely.folder.mkdir()
    (lonely.folder / "config.cfg").write_text("[settings]\nserver_ip = 127.0.0.1\nnumber_of_treads = 3\n")
    code, text = lonely.call("start")
    assert code == 2
    assert "config.cfg, line 3: unknown key 'number_of_treads' in [settings]" in text


@pytest.mark.parametrize("command", ["start", "foreground"])
def test_a_work_folder_that_cannot_be_written(tmp_path: Path, command: str) -> None:
    (tmp_path / "file").write_text("not a folder")
    done = run_command("client.main", command, "--dir", tmp_path / "file" / "work")
    assert done.returncode == 2
    assert "cannot use the work folder" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.smoke
def test_foreground_prints_a_line_for_each_url(tmp_path: Path) -> None:
    with run_web(hosts=1, pages=3) as web, run_cluster(tmp_path, web.start_urls, "--delay", "0") as cluster:
        cluster.start("one")
        cluster.wait_until_finished()
        assert cluster.stop("one") == 0
        lines = cluster.programs["one"].output().splitlines()[1:]
        page = next(line for line in lines if line.split()[1].endswith("/s0/0.html"))
        assert re.fullmatch(r"\d+ http://\S+/s0/0\.html \[CT: text/html\]\[size: [1-9]\d*\]", page)
        assert re.search(r"^\d+ http://\S+/missing\.html \[not_found\]\[status 404\]$", "\n".join(lines), re.MULTILINE)
        assert all(re.fullmatch(r"\d+ http://\S+ (\[[^\]]*\])+", line) for line in lines), lines
        assert cluster.stored_urls().keys() == web.truth.stored


def test_a_reader_that_goes_away_does_not_stop_the_work(tmp_path: Path) -> None:
    """As in `clientCrawler foreground | head`."""
    with run_web(hosts=1, pages=10) as web, run_cluster(tmp_path, web.start_urls, "--delay", "0") as cluster:
        command = [sys.executable, "-m", "client.main", "foreground", "--dir", str(tmp_path / "one"),
                   "--server-port", str(cluster.server_port)]  # fmt: skip
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as client:
            assert client.stdout is not None
            client.stdout.readline()
            client.stdout.close()
            try:
                cluster.wait_until_finished()
            finally:
                client.terminate()
        assert cluster.stored_urls().keys() == web.truth.stored

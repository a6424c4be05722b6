"""The real clientCrawler as a user calls it, with a daemon that never outlives its test."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.processes import ROOT
from tests.waiting import wait_until

_LIMIT_SECONDS = 90


def run_command(module: str, *arguments: object, timeout: float = _LIMIT_SECONDS) -> subprocess.CompletedProcess[str]:
    """One command of ours, run to its end."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=timeout)


class Daemon:
    """clientCrawler in one work folder."""

    def __init__(self, folder: Path, server_port: int, *options: str) -> None:
        self.folder = folder
        one = ("--processes", "1")  # so that a test knows where things are
        self._options = ("--dir", folder, "--server-port", server_port, "--max-wait", "0.3", *one, *options)

    @property
    def pid_file(self) -> Path:
        return self.folder / ".client" / "clientCrawler.pid"

    @property
    def log(self) -> str:
        return (self.folder / ".client" / "clientCrawler.log").read_text()

    @property
    def pid(self) -> int:
        """0 if there is none."""
        try:
            return int(self.pid_file.read_text() or 0)
        except FileNotFoundError:
            return 0

    def call(self, command: str, *more: str) -> tuple[int, str]:
        """The exit code, and what was printed on either stream."""
        done = run_command("client.main", command, *self._options, *more)
        assert "Traceback" not in done.stderr
        return done.returncode, done.stdout + done.stderr

    def start(self, *more: str) -> int:
        """Start it and return its process id."""
        code, text = self.call("start", *more)
        assert code == 0, text
        assert is_alive(self.pid)
        return self.pid

    def kill(self) -> None:
        """kill -9."""
        pid = self.pid
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not is_alive(pid), 20)

    def parcels(self) -> list[Path]:
        """What is packed and not delivered yet."""
        return list(self.folder.glob(".client/spool/[0-9]*/[0-9]*/report.json"))


def is_alive(pid: int) -> bool:
    """A zombie has ended: in a container nobody may collect it."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return pid > 0 and Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


@contextmanager
def daemon(folder: Path, server_port: int, *options: str) -> Iterator[Daemon]:
    """A daemon that the test may start; it is gone after the block, whatever happens in it."""
    it = Daemon(folder, server_port, *options)
    try:
        yield it
    finally:
        if is_alive(it.pid):
            it.kill()

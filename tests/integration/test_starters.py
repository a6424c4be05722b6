"""The commands in an unpacked source folder: from anywhere, and as README shows them on two machines."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.clones import COMMANDS, clone
from tests.integration.cluster import stored_bundles
from tests.processes import ROOT
from tests.waiting import wait_until

pytestmark = pytest.mark.integration

PYTHON = {"PAVOUK_PYTHON": os.path.realpath(sys.executable)}
SECONDS = 90


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return clone(tmp_path_factory.mktemp("clone") / "a folder with blanks" / "pavouk")


def called(command: Path | str, folder: Path, *arguments: str, **environment: str) -> str:
    done = subprocess.run(
        [command, *arguments], cwd=folder, env={**os.environ, **PYTHON, **environment},
        capture_output=True, text=True, timeout=SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_starts_from_everywhere(tree: Path, tmp_path: Path, command: str) -> None:
    usage = f"usage: {command} "
    assert called(f"./{command}", tree, "--help").startswith(usage)
    assert called(tree / command, tmp_path, "--help").startswith(usage)
    assert called(f"{tree.name}/{command}", tree.parent, "--help", CDPATH=str(tree.parent)).startswith(usage)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / command).symlink_to(tree / command)
    (tmp_path / "bin" / "short").symlink_to(command)  # a relative link to a link, with a name of the user's own
    for name in (command, "short"):
        assert called(tmp_path / "bin" / name, Path("/"), "--help").startswith(usage)
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    assert called(shutil.which(command, path=path) or "", tmp_path, "--help", PATH=path).startswith(usage)


def test_the_commands_are_one_script() -> None:
    assert {name: (ROOT / name).resolve() for name in COMMANDS} == dict.fromkeys(COMMANDS, ROOT / "crawl")
    assert [name for name in COMMANDS if (ROOT / name).is_symlink()] == [name for name in COMMANDS if name != "crawl"]


SITE = """\
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
ThreadingHTTPServer(("93.184.216.34", 80), SimpleHTTPRequestHandler).serve_forever()
"""
NETWORK = """\
set -e
ip link set lo up
ip addr add 93.184.216.34/32 dev lo
ip addr add 192.0.2.1/32 dev lo
printf '127.0.0.1 localhost\\n93.184.216.34 example.org\\n192.0.2.1 host.example.net\\n' > hosts
mount --bind hosts /etc/hosts
mkdir site && echo '<p>Hello.' > site/index.html && cd site
exec "$0" -c "$1"
"""
SCP = '#!/bin/sh\nexec cp "{host}/${{1#host.example.net:pavouk/}}" "$2"\n'  # of one file from the host


class Machines:
    """A network of its own, in which each shell line is run in the clone of its machine."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.clones = {name: clone(folder / name / "pavouk") for name in ("host", "worker")}
        (folder / "bin").mkdir()
        (folder / "bin" / "scp").write_text(SCP.format(host=self.clones["host"]))
        (folder / "bin" / "scp").chmod(0o755)
        self._environment = {**os.environ, **PYTHON, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
        self._stack = stack
        inside = ["unshare", "--mount", "--net", "--propagation", "private"]
        web = self._started([*inside, "sh", "-c", NETWORK, sys.executable, SITE], folder)
        self._enter = ["nsenter", f"--target={web.pid}", "--mount", "--net"]
        site = "import urllib.request as u; u.urlopen('http://example.org/')"
        wait_until(lambda: subprocess.run([*self._enter, sys.executable, "-c", site],
                                          capture_output=True).returncode == 0, 30)  # fmt: skip

    def run(self, machine: str, line: str) -> str:
        """A line that ends by itself."""
        done = subprocess.run(
            self._line(line), cwd=self.clones[machine], env=self._environment,
            capture_output=True, text=True, timeout=SECONDS,
        )  # fmt: skip
        assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
        return done.stdout

    def start(self, machine: str, line: str) -> None:
        """A line that goes on until the end."""
        log = self.clones[machine] / f"{line.split()[0]}.log"
        self._started(self._line(f"exec {line} > '{log}' 2>&1"), self.clones[machine])
        wait_until(lambda: log.exists() and "listens on" in log.read_text(), SECONDS, lambda: log.read_text())

    def _line(self, line: str) -> list[str]:
        return [*self._enter, "--wd=.", "sh", "-c", line]

    def _started(self, command: list[str], folder: Path) -> "subprocess.Popen[bytes]":
        process = subprocess.Popen(command, cwd=folder, env=self._environment)
        self._stack.callback(_end, process)
        return process


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    process.wait(SECONDS)


@contextmanager
def machines(folder: Path) -> Iterator[Machines]:
    with ExitStack() as stack:
        yield Machines(folder, stack)


def readme_lines() -> list[tuple[str, str, str]]:
    """Machine, line and what it prints, as README's "Use more machines" shows them."""
    text = (ROOT / "README.md").read_text()
    part = text[text.index("Use more machines") : text.index("## The manual")]
    blocks = "\n".join(re.findall(r"```\n(.*?)```", part, re.DOTALL))
    return re.findall(r"^(host|worker)\$ (.*)\n((?:(?!host\$|worker\$).*\n)*)", blocks, re.MULTILINE)


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("ip"), reason="needs root and ip, for a network of its own")
def test_more_machines_as_readme_shows_them(tmp_path: Path) -> None:
    lines = readme_lines()
    assert [line.split()[0] for _, line, _ in lines] == [
        "(umask", "./urlServer", "./ftpServer", "scp", "./clientCrawler", "./clientCrawler", "./clientCrawler",
    ]  # fmt: skip
    with machines(tmp_path) as those:
        host, worker = those.clones["host"], those.clones["worker"]
        for machine, line, output in lines:
            if line.split()[0] in ("./urlServer", "./ftpServer"):
                those.start(machine, line)
                continue
            if line.endswith(" stop"):
                wait_until(lambda: "finished" in those.run("host", "./crawlAdmin status --token-file token"), SECONDS)
            expected = re.escape(output.replace("/home/me/pavouk", str(worker)).strip()).replace("4711", r"\d+")
            assert re.fullmatch(expected, those.run(machine, line).strip())
        assert stored_bundles(host / "Pages") != []
        assert (worker / "token").read_text() == (host / "token").read_text()

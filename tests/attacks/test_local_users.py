"""Other users of the machine, who see the list of processes and may write where everybody may."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from onehost.parts import held_port
from tests.integration.onecommand import Crawls
from tests.web.running import run_web

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")

STRANGER = 65_534
# Tries to listen on a port until standard input ends; says what has happened.
SQUATTER = """
import os, socket, select, sys
os.setgroups([]), os.setuid(int(sys.argv[1]))
print("begins", flush=True)
tries = 0
while not tries or not select.select([sys.stdin], [], [], 0.0)[0]:
    for ip in ("127.0.0.1", "0.0.0.0"):
        for options in ((), (socket.SO_REUSEADDR,), (socket.SO_REUSEPORT,), (socket.SO_REUSEADDR, socket.SO_REUSEPORT)):
            tries += 1
            with socket.socket() as listening:
                for option in options:
                    listening.setsockopt(socket.SOL_SOCKET, option, 1)
                try:
                    listening.bind((ip, int(sys.argv[2])))
                    listening.listen()
                except OSError:
                    continue
                print("listens as", ip, options, flush=True)
print(tries, "tries")
"""


def squatter(port: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", SQUATTER, str(STRANGER), str(port)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "begins\n"
    return process


def said(process: subprocess.Popen[str]) -> str:
    return process.communicate("that is all\n", timeout=60)[0]


@needs_root
def test_a_port_that_is_held_is_for_one_user() -> None:
    with held_port() as held:
        assert re.fullmatch(r"\d+ tries\n", said(squatter(held.getsockname()[1])))


@needs_root
@pytest.mark.integration
@pytest.mark.parametrize("part", ["url", "ftp"])
def test_nobody_takes_the_place_of_a_part_that_died(tmp_path: Path, part: str) -> None:
    """Whoever listens there is told the token by the next client, or sent the harvest."""
    crawls = Crawls(tmp_path / "work")
    with run_web(hosts=1, pages=50) as web, crawls.running("--delay", "0.2", *web.start_urls) as crawl:
        pid = crawls.parts()[part]
        line = Path(f"/proc/{pid}/cmdline").read_text()
        found = re.search(r"--(?:server|ftp)-port\0(\d+)", line)
        assert found, line
        thief = squatter(int(found[1]))
        os.kill(pid, signal.SIGKILL)
        crawl.wait_for_errors("had died and was started again")
        assert re.fullmatch(r"\d+ tries\n", said(thief))

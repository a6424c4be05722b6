"""Names that fail, lie and change, in a network of its own: what counts is the address that is connected to."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict

import pytest

from common.wire import Outcome
from tests.processes import ROOT
from tests.web import island
from tests.web.island import Asked, Fetched
from tests.web.nameserver import PUBLIC, PUBLIC_6

NOISE_SECONDS = 30.0


class Island:
    """The island's process. Owns it."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [*island.COMMAND, sys.executable, "-m", "tests.web.island"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, text=True,
        )  # fmt: skip
        assert self._line().startswith("ready"), "the island did not start"

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def fetch(self, url: str, **more: object) -> Fetched:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(asdict(Asked(url, **more))) + "\n")  # type: ignore[arg-type]
        self._process.stdin.flush()
        return Fetched(**json.loads(self._line()))

    def close(self) -> None:
        self._process.communicate(timeout=60)


@pytest.fixture(scope="module")
def net() -> Iterator[Island]:
    if os.geteuid() != 0:
        pytest.skip("only root can make a network of its own")
    if missing := [program for program in ("unshare", "ip", "mount") if shutil.which(program) is None]:
        pytest.skip(f"not installed: {' '.join(missing)}")
    if subprocess.run([*island.COMMAND, "true"], capture_output=True).returncode:
        pytest.skip("this machine does not let even root make a network of its own")
    made = Island()
    yield made
    made.close()


@pytest.mark.parametrize("name", ["missing", "failing", "refused", "empty", "circle"])
def test_name_without_an_address(net: Island, name: str) -> None:
    assert net.fetch(f"http://{name}.example/").outcome == Outcome.DNS


@pytest.mark.parametrize("name", ["silent", "junk"])
def test_name_server_that_does_not_answer(net: Island, name: str) -> None:
    before = time.monotonic()
    assert net.fetch(f"http://{name}.example/", connect_timeout_seconds=0.5).outcome == Outcome.DNS
    assert time.monotonic() - before < NOISE_SECONDS


@pytest.mark.parametrize(("name", "address"), [("public", PUBLIC), ("public6", PUBLIC_6)])
def test_public_address(net: Island, name: str, address: str) -> None:
    fetched = net.fetch(f"http://{name}.example/")
    assert (fetched.outcome, fetched.body) == (Outcome.STORED, address), fetched.detail


@pytest.mark.parametrize(
    "name", ["private", "loopback", "metadata", "zero", "loopback6", "local6", "mapped", "alias"]
)
def test_closed_address(net: Island, name: str) -> None:
    fetched = net.fetch(f"http://{name}.example/")
    assert fetched.outcome == Outcome.FORBIDDEN_ADDRESS
    assert "is not a public address" in fetched.detail
    assert set(fetched.served) <= {PUBLIC, PUBLIC_6}, "nobody else was asked anything"


def test_closed_address_that_is_allowed(net: Island) -> None:
    assert net.fetch("http://loopback6.example/", allow_private=True).body == "::1"


def test_closed_addresses_before_a_public_one(net: Island) -> None:
    fetched = net.fetch("http://mixed.example/")
    assert (fetched.outcome, fetched.body) == (Outcome.STORED, PUBLIC)


def test_name_that_changes_between_check_and_connect(net: Island) -> None:
    fetched = net.fetch("http://changing.example/", check=True)
    assert fetched.checked == [PUBLIC], "whoever looked before was content"
    assert fetched.outcome == Outcome.FORBIDDEN_ADDRESS
    assert "10.0.0.1" in fetched.detail
    assert "10.0.0.1" not in fetched.served

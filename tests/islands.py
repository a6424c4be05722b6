"""A network of its own for tests: the process of `tests.web.island`. Skips where there can be none."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict

import pytest

from tests.processes import ROOT
from tests.web import island
from tests.web.island import Asked, Fetched


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

    def run(self, command: Sequence[str]) -> tuple[int, str, list[str]]:
        """Run a program there; its exit code, what it printed, and which addresses were asked for something so far."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(list(command)) + "\n")
        self._process.stdin.flush()
        code, printed, served = json.loads(self._line())
        return code, printed, served

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

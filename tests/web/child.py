"""A server for tests as a child process: it says when it is ready and never outlives the test."""

import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

ROOT = Path(__file__).resolve().parents[2]
STOP_SECONDS = 10


class Child:
    """A module of ours run as a program that prints `ready PORT`. Owns the process."""

    def __init__(self, module: str, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            text=True,
        )
        self.port = self._wait_until_ready(module)

    def _wait_until_ready(self, module: str) -> int:
        assert self._process.stdout is not None
        word, _, port = self._process.stdout.readline().partition(" ")
        if word != "ready":
            self.stop()
            raise RuntimeError(f"{module} did not start (exit code {self._process.returncode})")
        return int(port)

    @property
    def is_running(self) -> bool:
        """Whether the process has not ended."""
        return self._process.poll() is None

    def stop(self) -> None:
        """Ends the process and waits until it has ended; can be repeated."""
        self._process.terminate()
        try:
            self._process.communicate(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

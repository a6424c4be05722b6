"""Our programs as real processes: `with running(["-m", "server.ftpserver.main"], ready="listens") as it:`.

Waits for the line that says that the program is ready, keeps what it prints, and never leaves it behind.
"""

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parents[1]
READY_SECONDS = 60.0
STOP_SECONDS = 60.0


class _Lines:
    """Collects a stream line by line in a thread of its own, so that the program never waits for us."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._lines: list[str] = []
        self._ended = False
        self._changed = threading.Condition()  # guards the two above
        self._thread = threading.Thread(target=self._collect, daemon=True)
        self._thread.start()

    def _collect(self) -> None:
        for line in self._stream:
            with self._changed:
                self._lines.append(line)
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def text(self) -> str:
        with self._changed:
            return "".join(self._lines)

    def wait_for(self, pattern: str, timeout_seconds: float) -> re.Match[str] | None:
        """The first match; None when the stream ends or the time is over without one."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended or self._search(pattern), timeout_seconds)
            return self._search(pattern)

    def _search(self, pattern: str) -> re.Match[str] | None:
        return next(filter(None, (re.search(pattern, line) for line in self._lines)), None)

    def finish(self) -> None:
        self._thread.join()
        self._stream.close()


class Running:
    """A program that has said it is ready; `match` is what its line matched. Ending it can be repeated."""

    def __init__(
        self, command: Sequence[str], ready: str, folder: Path | None, extra: Mapping[str, str]
    ) -> None:
        # unbuffered: what was printed before a kill must have arrived
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", **extra}
        self.process = subprocess.Popen(
            command, cwd=folder or ROOT, env=environment, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self._output, self._errors = _Lines(self.process.stdout), _Lines(self.process.stderr)
        match = self._output.wait_for(ready, READY_SECONDS)
        if match is None:
            self.kill()
            raise RuntimeError(f"{command} never said {ready!r}:\n{self.output()}{self.errors()}")
        self.match = match

    def output(self) -> str:
        """What it has printed so far."""
        return self._output.text()

    def errors(self) -> str:
        """What has come on standard error so far: logs and tracebacks."""
        return self._errors.text()

    def wait_for_output(self, pattern: str, timeout_seconds: float = READY_SECONDS) -> re.Match[str]:
        """Waits until a line on standard output matches."""
        return self._found(self._output.wait_for(pattern, timeout_seconds), pattern)

    def wait_for_errors(self, pattern: str, timeout_seconds: float = READY_SECONDS) -> re.Match[str]:
        """Waits until a line on standard error matches."""
        return self._found(self._errors.wait_for(pattern, timeout_seconds), pattern)

    def _found(self, match: re.Match[str] | None, pattern: str) -> re.Match[str]:
        assert match is not None, f"no line matches {pattern!r}:\n{self.output()}{self.errors()}"
        return match

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Asks it to end, waits, and returns its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.wait()

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()
        self.wait()

    def wait(self) -> int:
        """Waits until it has ended by itself, and returns its exit code."""
        try:
            code = self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        self._output.finish()
        self._errors.finish()
        return code


@contextmanager
def running(
    arguments: Sequence[str | Path],
    ready: str,
    *,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Running]:
    """Runs Python with these arguments until the end of the block, in `folder` or in the source tree."""
    command = [sys.executable, *map(str, arguments)]
    program = Running(command, ready, folder, environment or {})
    try:
        yield program
    finally:
        if program.process.poll() is None:
            program.stop()

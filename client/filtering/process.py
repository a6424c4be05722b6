"""The process of the filters, from outside: started, asked with a time limit, and killed when it does not answer."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from client.filtering.page import Page, send_page
from common.errors import PavoukError

_START_SECONDS = 60.0  # for all filters together; libraries with models take a while to load
_MAX_LINE_BYTES = 1 << 16
_END_SECONDS = 1.0
_RUBBISH = "wrote to a connection that is not its own"


class ProcessTrouble(PavoukError):
    """It does not answer any more, or cannot be started; nothing can be done but to end it. Says why."""


class FilterProcess:
    """One process with the filters of a folder. Used by one thread at a time; `kill` it when it is in trouble.

    It dies with the thread that makes it: this is what the kernel counts as its parent.
    """

    def __init__(self, folder: Path, max_seconds: float) -> None:
        self._max_seconds = max_seconds
        self._received = b""
        self._link, theirs = socket.socketpair()
        with theirs:
            handle = theirs.fileno()
            self._process = subprocess.Popen(
                # -P: a folder of the user's that is called like one of our packages must not get in the way
                [sys.executable, "-P", "-m", "client.filtering.child", str(os.getpid()), str(handle), str(folder)],
                stdin=subprocess.DEVNULL,
                stdout=2,  # what filters print is no output of ours
                pass_fds=[handle],
                start_new_session=True,  # Ctrl-C is for us, and a filter can be killed with all that it has started
            )
        try:
            self._wait_until_ready()
        except ProcessTrouble:
            self.kill()
            raise

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def answers(self, page: Page, filters: Sequence[str]) -> Iterator[dict[str, Any]]:
        """What each of the filters says of the page, up to the first that discards it. ProcessTrouble ends it."""
        self._link.settimeout(self._max_seconds)
        try:
            send_page(page, filters, self._link.sendall)
        except OSError as error:
            raise ProcessTrouble(self._why(error)) from error
        for _ in filters:
            yield self._message(self._max_seconds)

    def end(self) -> None:
        """Let it end by itself; kill it if it does not."""
        self._link.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_SECONDS)
        self.kill()

    def kill(self) -> None:
        """Now, with all that it has started."""
        self._link.close()
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _wait_until_ready(self) -> None:
        deadline, loading = time.monotonic() + _START_SECONDS, "the filters"
        while True:
            try:
                message = self._message(deadline - time.monotonic())
            except ProcessTrouble as error:
                raise ProcessTrouble(f"{loading}: {error}") from error
            if "error" in message:
                raise ProcessTrouble(message["error"])
            if "ready" in message:
                return
            loading = message.get("loading", loading)

    def _message(self, seconds: float) -> dict[str, Any]:
        deadline = time.monotonic() + seconds
        while b"\n" not in self._received:
            self._link.settimeout(max(0.001, deadline - time.monotonic()))
            try:
                piece = self._link.recv(1 << 14)
            except OSError as error:
                raise ProcessTrouble(self._why(error)) from error
            if not piece:
                raise ProcessTrouble(self._why())
            if len(self._received) > _MAX_LINE_BYTES:
                raise ProcessTrouble(_RUBBISH)
            self._received += piece
        line, _, self._received = self._received.partition(b"\n")
        try:
            return dict(json.loads(line))
        except (ValueError, TypeError) as error:
            raise ProcessTrouble(_RUBBISH) from error

    def _why(self, error: OSError | None = None) -> str:
        if isinstance(error, TimeoutError):
            return "did not answer in time"
        try:
            code = self._process.wait(_END_SECONDS)  # the end of the socket comes a moment before that of the process
        except subprocess.TimeoutExpired:
            return "does not talk to us any more"
        return f"ended its process (signal {-code})" if code < 0 else f"ended its process (exit code {code})"

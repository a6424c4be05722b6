"""The parts of a crawl on one machine, as child processes that end with us and are started again when they die."""

import functools
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from io import BufferedReader
from itertools import count, islice
from pathlib import Path
from typing import IO

from common.errors import PavoukError
from common.files import open_private
from common.lifeline import end_with_parent

_READY_SECONDS = 60.0
_LOOK_SECONDS = 0.1
_STOP_SECONDS = 90.0
_PIECE_BYTES = 1 << 16
_MAX_RESTARTS = 5  # in a row
_HEALTHY_SECONDS = 60.0  # one that has lived so long does not belong to a row of deaths


# Below the range that Linux takes the ports of outgoing connections from: a port in that range can be taken by one
# while its server is being restarted, even by the very client that tries to reach it.
_PORTS = range(20_000, 32_000)
# Each process begins elsewhere and takes no port twice.
_numbers = count(os.getpid() * 97)
SHARED_PORT = "--shared-port"  # for a part that shall listen on a port that is held


def held_port() -> socket.socket:
    """A port on loopback, held by a socket that does not listen. Until that is closed only programs of the same user
    can listen there: nobody else who sees the number takes it while a part is (re)started, and is told the token."""
    for number in islice(_numbers, len(_PORTS)):
        held = socket.socket()
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        try:
            held.bind(("127.0.0.1", _PORTS[number % len(_PORTS)]))
        except OSError:
            held.close()
        else:
            return held
    raise PartFailed("no free port was found on this machine")


def open_log(path: Path) -> IO[bytes]:
    """A log to append to, of which lines of several parts stay whole. Private if it is made now; whoever has made it
    before knows who may read it."""
    return open(path, "ab", opener=lambda name, flags: os.open(name, flags, 0o600))


class PartFailed(PavoukError):
    """A part cannot be started, or dies again and again."""


class Part:
    """One child process. Started, watched and stopped by the main thread; its output goes to a log file, and the log
    that it writes itself there, too, or to a file that others share, or to our own standard error."""

    def __init__(
        self,
        name: str,
        module: str,
        ready: str,
        log: Path,
        log_on_screen: bool = False,
        environment: Mapping[str, str] | None = None,
        own_log: Path | None = None,
    ) -> None:
        self.name = name
        self._module = module
        self._ready = re.compile(ready.encode())
        self._log = log
        self._log_on_screen = log_on_screen
        self._own_log = own_log or log
        self._environment = environment or {}  # beside our own; here a secret is seen by its owner only
        self._arguments: Sequence[str] = ()
        self._process: subprocess.Popen[bytes] | None = None
        self._reader: _Reader | None = None
        self._restarts = 0
        self._started = 0.0
        self._log_start = 0  # where in the log its last start begins

    def start(self, arguments: Sequence[str]) -> None:
        """Start and wait until it says that it is ready."""
        self.launch(arguments)
        self.wait_until_ready()

    def launch(self, arguments: Sequence[str]) -> None:
        """Start, without waiting."""
        self._arguments = arguments
        self._started = time.monotonic()
        log = open_private(self._log, "ab")
        with open_log(self._own_log) as own_log:
            self._log_start = own_log.tell()
            self._process = subprocess.Popen(
                # -P: a folder of the user's that is called like one of our packages must not get in the way
                [sys.executable, "-P", "-m", self._module, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=None if self._log_on_screen else own_log,
                env={**os.environ, **self._environment},
                start_new_session=True,  # Ctrl-C is for us; the parts are ended in order
                preexec_fn=functools.partial(end_with_parent, os.getpid()),
            )
        self._reader = _Reader(self._process.stdout, log, self._ready)  # type: ignore[arg-type]

    def wait_until_ready(self, is_over: Callable[[], bool] = lambda: False) -> None:
        """Until it is ready, or nobody needs it any more. PartFailed if it does not become ready, and says nothing."""
        assert self._process is not None
        assert self._reader is not None
        since = time.monotonic()
        while not self._reader.is_decided(_LOOK_SECONDS):
            if is_over():
                return
            if time.monotonic() > max(since, self._reader.heard_at) + _READY_SECONDS:
                self._process.kill()
                break
        if not self._reader.is_ready:
            code = self._process.wait()
            how = f"it was ended by signal {-code}" if code < 0 else f"it ended with exit code {code}"
            raise PartFailed(f"{self.name} did not start:\n{self._last_lines() or how}")

    def keep_alive(self) -> bool:
        """Start it again if it has died; says whether that was so."""
        if self._process is None or self._process.poll() is None:
            return False
        healthy = time.monotonic() - self._started > _HEALTHY_SECONDS
        self._restarts = 1 if healthy else self._restarts + 1
        if self._restarts > _MAX_RESTARTS:
            raise PartFailed(f"{self.name} dies again and again:\n{self._last_lines()}")
        self.start(self._arguments)
        return True

    def ask_to_stop(self) -> None:
        """Tell it to end, without waiting."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)

    def stop(self) -> None:
        """End it properly; it gets time for that."""
        if self._process is None or self._process.poll() is not None:
            return
        self.ask_to_stop()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _last_lines(self) -> str:
        """Of what it has said since it was started."""
        with self._own_log.open("rb") as log:
            log.seek(self._log_start)
            return "\n".join(log.read().decode(errors="replace").splitlines()[-5:])


class _Reader:
    """Copies a part's standard output to its log, and looks for the line that says it is ready."""

    def __init__(self, stream: BufferedReader, log: IO[bytes], ready: re.Pattern[bytes]) -> None:
        self._stream = stream
        self._log = log
        self._pattern = ready
        self.is_ready = False
        self.heard_at = 0.0  # when it said something before it was ready
        self._done = threading.Event()  # it is ready, or has ended
        threading.Thread(target=self._copy, daemon=True).start()

    def is_decided(self, seconds: float) -> bool:
        """Wait so long until it is ready or has ended; says whether that is so."""
        return self._done.wait(seconds)

    def _copy(self) -> None:
        with self._stream, suppress(OSError), self._log:
            for line in self._stream:
                self._keep(line)
                self.heard_at = time.monotonic()
                if self._pattern.search(line):
                    self.is_ready = True
                    self._done.set()
                    break
            # A client writes a line for each page: they are not looked at any more.
            while piece := self._stream.read1(_PIECE_BYTES):
                self._keep(piece)
        self._done.set()

    def _keep(self, piece: bytes) -> None:
        """A full disk costs lines of the log: a part that nobody reads from any more would come to harm."""
        with suppress(OSError):
            self._log.write(piece)
            self._log.flush()

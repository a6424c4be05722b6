"""The processes that read pages which may do harm, from outside: asked with limits, ended when in trouble.

One process makes the others as copies of itself. So there is a new one within milliseconds, which the start of an
interpreter would take a hundred times; and whoever sends pages that end processes delays nobody by that.
"""

import json
import signal
import socket
import threading
import time
from dataclasses import asdict, dataclass
from typing import Any

from client.children import Child, ChildTrouble
from client.reading.seen import Wanted

_MAX_LINE_BYTES = 1 << 12
_MAKING_SECONDS = 20.0  # the first takes as long as the start of an interpreter; much longer on a busy machine
# A machine that is busy with other things takes this much longer than its processor.
_WALL_FACTOR, _LEAST_WALL_SECONDS = 4.0, 1.0


class OutOfTime(ChildTrouble):
    """It has had the time that was allowed."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What the reading of one page or sitemap may cost."""

    seconds: float  # of processor time, so that other work on the machine does not count
    memory_bytes: int  # beyond what the process needs for itself

    def within(self, others: "Limits") -> "Limits":
        """The lesser of both."""
        return Limits(min(self.seconds, others.seconds), min(self.memory_bytes, others.memory_bytes))

    @property
    def wall_seconds(self) -> float:
        return max(_LEAST_WALL_SECONDS, _WALL_FACTOR * self.seconds)


class ReadingProcess:
    """One process. Used by one thread at a time; `kill` it when it is in trouble."""

    def __init__(self, maker: "ProcessMaker", link: socket.socket, pid: int) -> None:
        self._maker = maker
        self._link = link
        self._stream = link.makefile("rb")
        self._pid = pid
        self._ended: int | None = None  # as subprocess says it

    def read(self, html: bytes, wanted: Wanted, limits: Limits) -> bytes:
        """A packed Seen; ChildTrouble if there is no answer. Of a page that is far too much, the beginning is read."""
        return self._ask({"wanted": asdict(wanted)}, html, limits)

    def read_sitemap(self, body: bytes, url: str, content_type: str, limits: Limits) -> bytes:
        """A packed Sitemap, as client.sitemaps reads it. ChildTrouble if there is no answer."""
        return self._ask({"sitemap": [url, content_type]}, body, limits)

    @property
    def is_alive(self) -> bool:
        """Between two pages: one that was ended has closed its end."""
        self._link.setblocking(False)
        try:
            return bool(self._link.recv(1, socket.MSG_PEEK))
        except BlockingIOError:
            return True
        except OSError:
            return False

    def _ask(self, head: dict[str, Any], body: bytes, limits: Limits) -> bytes:
        deadline = time.monotonic() + limits.wall_seconds
        head = head | {"size": len(body), "seconds": limits.seconds, "memory": limits.memory_bytes}
        try:
            for part in (json.dumps(head).encode() + b"\n", body):
                self._limit(deadline)
                self._link.sendall(part)
            answer = self._answer(deadline)
            self._limit(deadline)
            packed = self._stream.read(answer["size"])
        except TimeoutError as error:
            raise OutOfTime("did not answer in time") from error
        except OSError as error:
            raise self._trouble() from error
        if len(packed) < answer["size"]:
            raise self._trouble()
        return packed

    def _limit(self, deadline: float) -> None:
        self._link.settimeout(max(0.001, deadline - time.monotonic()))

    def _answer(self, deadline: float) -> dict[str, Any]:
        self._limit(deadline)
        line = self._stream.readline(_MAX_LINE_BYTES)
        if not line.endswith(b"\n"):
            raise self._trouble()
        answer = json.loads(line)  # a line of ours: it ends with its \n
        if "trouble" in answer:
            raise ChildTrouble(answer["trouble"])
        return dict(answer)

    def _trouble(self) -> ChildTrouble:
        """Why it does not talk to us any more."""
        self.kill()
        if self._ended == -signal.SIGPROF:
            return OutOfTime("did not answer in time")
        if self._ended is None:
            return ChildTrouble("ended its process, and so did the one that made it")
        how = f"signal {-self._ended}" if self._ended < 0 else f"exit code {self._ended}"
        return ChildTrouble(f"ended its process ({how})")

    def kill(self) -> None:
        """Now. Also for one that has ended."""
        if self._ended is None:
            self._stream.close()
            self._link.close()
            self._ended = self._maker.end_copy(self._pid)


class ProcessMaker(Child):
    """The process that makes the others; they end with it. Thread-safe."""

    def __init__(self) -> None:
        super().__init__("client.reading.child")
        self._lock = threading.Lock()  # one order at a time
        self.link.settimeout(_MAKING_SECONDS)

    def make(self) -> ReadingProcess:
        """A new one. OSError or ChildTrouble if there can be none."""
        ours, theirs = socket.socketpair()
        try:
            with theirs, self._lock:
                socket.send_fds(self.link, [b"make\n"], [theirs.fileno()])
                pid = self._answer()
        except BaseException:
            ours.close()
            raise
        return ReadingProcess(self, ours, pid)

    def end_copy(self, pid: int) -> int | None:
        """Kill one of its processes; tells how it had ended. None if that is not known: all are gone then."""
        try:
            with self._lock:
                self.link.sendall(b"%d\n" % pid)
                return self._answer()
        except (OSError, ChildTrouble):
            self.kill()  # what does not end a process must not stay
            return None

    def _answer(self) -> int:
        answer = self.link.recv(_MAX_LINE_BYTES)
        if not answer.endswith(b"\n"):
            raise self.trouble()
        return int(answer)

"""What a command costs: seconds, processor time and memory of all the processes it makes, whoever their parents are.

The command runs below a process of its own (this module as a program), which all orphans come back to. So the
kernel adds up their processor time when they are waited for, and nothing is missed between two looks.
"""

import ctypes
import functools
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks.crawl.processes import Memory, descendants, memory_below
from common.lifeline import end_with_parent

ROOT = Path(__file__).resolve().parents[2]
SAMPLE_SECONDS = 0.5

_PR_SET_CHILD_SUBREAPER = 36  # <linux/prctl.h>
_TICK_SECONDS = 0.01
_END_SECONDS = 120.0  # for a command that is told to end


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be run and watched."""

    command: Sequence[str]
    output: str  # file for what it prints
    result: str  # file for the Usage
    limit_seconds: float  # then it is told to end (SIGTERM)
    sample_seconds: float = SAMPLE_SECONDS
    keeps_samples: bool = False


@dataclass(frozen=True, slots=True)
class Sample:
    """The memory of all processes at one moment."""

    seconds: float  # since the start
    processes: list[Memory]


@dataclass(frozen=True, slots=True)
class Usage:
    """What one command has used, with all its descendants."""

    status: int
    reached_limit: bool
    wall_seconds: float
    ended_at: float  # seconds since 1970
    cpu_seconds: float
    peak_bytes: int  # of all processes together, by samples
    largest_bytes: dict[str, int]  # of one process, by its name, by samples
    samples: list[Sample] = field(default_factory=list)


def measured(order: Order) -> Usage:
    """Run the command of `order` to its end."""
    Path(order.result).unlink(missing_ok=True)
    measurer = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.crawl.measuring", json.dumps(asdict(order))],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is for us
    )
    try:
        measurer.wait()
    finally:
        if measurer.poll() is None:
            measurer.terminate()
            measurer.wait()
    raw = json.loads(Path(order.result).read_text())
    samples = [Sample(item["seconds"], [Memory(**each) for each in item["processes"]]) for item in raw.pop("samples")]
    return Usage(samples=samples, **raw)


class _Watch:
    """Keeps the peaks of all samples, and the samples themselves if wanted."""

    def __init__(self, keeps_samples: bool) -> None:
        self.peak_bytes = 0
        self.largest_bytes: dict[str, int] = {}
        self.samples: list[Sample] = []
        self._keeps_samples = keeps_samples

    def look(self, seconds: float) -> None:
        processes = memory_below(os.getpid())
        self.peak_bytes = max(self.peak_bytes, sum(process.pss for process in processes))
        for process in processes:
            self.largest_bytes[process.name] = max(self.largest_bytes.get(process.name, 0), process.rss)
        if self._keeps_samples:
            self.samples.append(Sample(seconds, processes))


def _run(order: Order, stopped: Callable[[], bool]) -> Usage:
    watch = _Watch(order.keeps_samples)
    end_in_time = functools.partial(end_with_parent, os.getpid())
    started = time.monotonic()
    with Path(order.output).open("wb") as output:
        process = subprocess.Popen(
            order.command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, preexec_fn=end_in_time
        )
    next_look = started + order.sample_seconds
    told_at = 0.0
    while process.poll() is None:
        now = time.monotonic()
        if not told_at and (stopped() or now - started > order.limit_seconds):
            process.terminate()
            told_at = now
        elif told_at and now - told_at > _END_SECONDS:
            process.kill()
        if now >= next_look:
            watch.look(now - started)
            next_look = now + order.sample_seconds
        time.sleep(_TICK_SECONDS)
    wall_seconds, ended_at = time.monotonic() - started, time.time()
    _wait_for_orphans()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Usage(
        status=process.returncode,
        reached_limit=bool(told_at),
        wall_seconds=wall_seconds,
        ended_at=ended_at,
        cpu_seconds=used.ru_utime + used.ru_stime,
        peak_bytes=watch.peak_bytes,
        largest_bytes=watch.largest_bytes,
        samples=watch.samples,
    )


def _wait_for_orphans() -> None:
    """Those that the command has left behind are ended if they do not end by themselves."""
    deadline = time.monotonic() + _END_SECONDS
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if time.monotonic() > deadline:
            for left in descendants(os.getpid()):
                with suppress(ProcessLookupError):
                    os.kill(left, signal.SIGKILL)
        if pid == 0:
            time.sleep(_TICK_SECONDS)


def main() -> None:
    order = Order(**json.loads(sys.argv[1]))
    told: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: told.append(number))
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    end_with_parent(os.getppid())
    usage = _run(order, lambda: bool(told))
    Path(order.result).write_text(json.dumps(asdict(usage)))


if __name__ == "__main__":
    main()

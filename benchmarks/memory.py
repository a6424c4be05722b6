"""What holds the memory of urlServer: `python -m benchmarks.memory [--urls N] [--shapes NAMES] [--trace]`.

A real urlServer with its real store, over SOAP; several clients at once that take jobs and report, without a network
behind them. At intervals: its resident memory beside the number of known URLs and of hosts, and what it is made of.
Then nothing more is found and all is crawled: what is held then is held by history. Shapes of what clients report:

    few       20 hosts with many URLs, and links to outside
    broad     200,000 hosts with some pages each, that come and go; one in twenty fails, and is tried again
    revisits  500 hosts with pages that are visited again and again (a period of seconds)
    guests    as few, and every job is asked for by a client that is never seen again

--trace: also which lines of Python hold how much, in a run of its own, because tracing takes memory itself.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.memory_server import MARK
from client.coordinator import Coordinator
from common.errors import RemoteRefused, RemoteUnavailable
from common.wire import FoundUrl, HostFact, Job, Outcome, Report, UrlResult
from onehost.parts import held_port

CLIENTS = 4
URLS_OF_A_JOB = 1_000
FOUND_PER_PAGE = 12
OUTSIDE_SHARE = 0.02
FAILING_SHARE = 0.05
_FAILURES = (Outcome.TIMEOUT, Outcome.SERVER_ERROR, Outcome.NOT_FOUND, Outcome.BUSY)
_VISITING_SECONDS = 60.0  # when nothing more is found
_MB = 1 << 20


@dataclass(frozen=True)
class Shape:
    """What the web is like."""

    hosts: int
    options: tuple[str, ...] = ()  # of urlServer
    fails: bool = False
    guests: bool = False
    is_endless: bool = False

    def found(self, chance: random.Random, fresh: Callable[[], int]) -> Iterator[FoundUrl]:
        """Links of one page: new ones, and some that were found before."""
        for _ in range(FOUND_PER_PAGE):
            number = fresh()
            if chance.random() < 0.4:
                number = chance.randrange(number + 1)
            if not self.fails and chance.random() < OUTSIDE_SHARE:
                yield FoundUrl(f"http://other{number % 300_007}.example/", 3)
            else:
                yield FoundUrl(self.url(number), 3)

    def url(self, number: int) -> str:
        # Neighbours in time are on the same hosts, so that these come and go.
        host = (number // 12 + number % 7 * 13) % self.hosts if self.fails else number % self.hosts
        return f"http://www.host{host}.example/articles/{number % 97}/page-{number}.html"


_SCOPE = ("--scope", "domain")
SHAPES = {
    "few": Shape(20, _SCOPE),
    "broad": Shape(200_000, fails=True),
    "revisits": Shape(500, (*_SCOPE, "--period", "0.005"), is_endless=True),
    "guests": Shape(20, _SCOPE, guests=True),
}
COLUMNS = (
    ("known", 1), ("hosts", 1), ("resident", _MB), ("active", 1), ("in_memory", 1), ("tasks", 1), ("entries", 1),
    ("parked", 1), ("clients", 1), ("objects", 1), ("estimate-table-readers-mem", _MB),
    ("cur-size-all-mem-tables", _MB), ("block-cache-usage", _MB),
)  # fmt: skip
_SHORT = {"estimate-table-readers-mem": "readers", "cur-size-all-mem-tables": "memtables", "block-cache-usage": "cache"}


class Crawl:
    """One shape: the clients, and what they have found so far."""

    def __init__(self, shape: Shape, urls: int) -> None:
        self.shape = shape
        self.urls = urls  # so many are found
        self.is_over = threading.Event()
        self._lock = threading.Lock()
        self._found = 0

    def work(self, url: str, number: int) -> None:
        """The life of a client, until there is nothing more to do or its server goes away."""
        chance, turn = random.Random(number), 0
        coordinator = Coordinator(url, f"client-{number}")
        while not self.is_over.is_set():
            turn += 1
            if self.shape.guests:
                coordinator._ident = f"guest-{number}-{turn}-{time.time():.0f}"
            try:
                job = coordinator.get_job(f"{number} {turn} {time.time()}", URLS_OF_A_JOB)
                if job.tasks:
                    coordinator.send(self._report(job, chance))
                else:
                    self.is_over.wait(min(job.wait_seconds, 0.2))
            except (RemoteUnavailable, RemoteRefused):  # restarted
                self.is_over.wait(0.2)

    def _report(self, job: Job, chance: random.Random) -> Report:
        results, found = [], []
        for task in job.tasks:
            outcome = Outcome.STORED
            if self.shape.fails and chance.random() < FAILING_SHARE:
                outcome = chance.choice(_FAILURES)
            results.append(UrlResult(task.url, outcome, 200, 10_000, etag='"1"'))
            if outcome is Outcome.STORED and self._found < self.urls:
                found += self.shape.found(chance, self._fresh)
        facts = [HostFact(share.host, _address(share.host), -1.0, 0.0, 0.05) for share in job.hosts]
        return Report(job.job, results, found, facts, 100_000)

    def _fresh(self) -> int:
        with self._lock:
            self._found += 1
            return self._found


def _address(host: str) -> str:
    number = int("".join(filter(str.isdigit, host)) or 0)
    return f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"


class Server:
    """A urlServer process that can be asked for what it holds."""

    def __init__(self, folder: Path, options: tuple[str, ...], port: int, trace: bool) -> None:
        own = ["--dir", str(folder), "--server-port", str(port), "--delay", "0.1", "--log-level", "ERROR"]
        command = [sys.executable, "-m", "benchmarks.memory_server", *own, "--retry-wait", "1", *options]
        self.url = f"http://127.0.0.1:{port}/"
        self._process = subprocess.Popen(
            [*command, *(f"http://www.host{number}.example/" for number in range(20))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=os.environ | ({"PYTHONTRACEMALLOC": "1"} if trace else {}),
        )  # fmt: skip
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if "listens on" in line:
                break
        threading.Thread(target=self._process.stdout.read, daemon=True).start()  # its lines about reports


    def tell(self, trim: bool = False) -> dict[str, Any]:
        """`trim`: after it has given back what it can."""
        assert self._process.stdin is not None
        assert self._process.stderr is not None
        resident = 0 if trim else self._resident()
        self._process.stdin.write("trim\n" if trim else "tell\n")
        self._process.stdin.flush()
        for line in self._process.stderr:
            if line.startswith(MARK):
                return {**json.loads(line.removeprefix(MARK)), "resident": resident or self._resident()}
            print(line, end="", file=sys.stderr)
        raise AssertionError("urlServer has ended")

    def _resident(self) -> int:
        for line in Path(f"/proc/{self._process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) * 1024
        raise AssertionError("no VmRSS")

    def end(self) -> None:
        self._process.terminate()
        self._process.wait()


def main() -> int:
    options = _parser().parse_args()
    results = {}
    for name in options.shapes.split(","):
        folder = Path(tempfile.mkdtemp(prefix="memory-", dir=options.dir))
        try:
            results[name] = _measured(name, folder, options)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--urls", type=int, default=3_000_000, help="that are found (default 3,000,000)")
    parser.add_argument("--shapes", default=",".join(SHAPES), help=f"default {','.join(SHAPES)}")
    parser.add_argument("--seconds", type=int, default=600, help="for one shape at the most (default 600)")
    parser.add_argument("--restarts", type=int, default=1, help="of the server, on the way (default 1)")
    parser.add_argument("--trace", action="store_true", help="also which lines of Python hold what")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there, too")
    parser.add_argument("--dir", type=Path, metavar="FOLDER", help="where the frontier is put while it is measured")
    return parser


def _measured(name: str, folder: Path, options: argparse.Namespace) -> list[dict[str, Any]]:
    shape, rows = SHAPES[name], list[dict[str, Any]]()
    crawl = Crawl(shape, options.urls)
    with held_port() as held:
        port = held.getsockname()[1]
    server = Server(folder, shape.options, port, options.trace)
    restarts = [options.urls * (number + 1) // (options.restarts + 1) for number in range(options.restarts)]
    until, seen_until = time.monotonic() + options.seconds, 0.0
    print(f"\n{name}\n{'':10}" + "".join(f"{_SHORT.get(column, column):>11}" for column, _ in COLUMNS), flush=True)

    def note(when: str, trim: bool = False) -> dict[str, Any]:
        row = server.tell(trim) | {"when": when}
        rows.append(row)
        cells = "".join(f"{row[column] / unit:11,.{int(unit > 1)}f}" for column, unit in COLUMNS)
        print(f"{when:10}{cells}", flush=True)
        for line in row.get("top", ()):
            print(f"    {line}", flush=True)
        return row

    note("begin")
    with _working(crawl, server.url):
        step = max(1, options.urls // 8)
        marks = list(range(step, options.urls + 1, step))
        while (marks or not crawl.is_over.is_set()) and time.monotonic() < until:
            time.sleep(0.5)
            if restarts and crawl._found >= restarts[0]:
                del restarts[0]
                note("stop")
                server.end()
                server = Server(folder, shape.options, port, options.trace)
                note("restart")
            if marks and crawl._found >= marks[0]:
                del marks[0]
                note("on the way")
            elif not marks and shape.is_endless:
                seen_until = seen_until or time.monotonic() + _VISITING_SECONDS
                if time.monotonic() > seen_until:
                    break
            elif not marks and server.tell()["active"] <= shape.hosts // 200:
                break
    note("drained")
    note("trimmed", trim=True)
    server.end()
    return rows


@contextmanager
def _working(crawl: Crawl, url: str) -> Iterator[None]:
    threads = [threading.Thread(target=crawl.work, args=(url, number)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        crawl.is_over.set()
        for thread in threads:
            thread.join()


if __name__ == "__main__":
    sys.exit(main())

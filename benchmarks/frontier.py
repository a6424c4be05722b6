"""How fast and how large the frontier is: `python -m benchmarks.frontier [--urls N] [--soap] [--json FILE]`.

In process, on RocksDB with full durability, and the default rules about what to crawl. Each batch is one call of the
façade, as one SOAP call makes it. Rates are measured at the beginning (the first 200,000 URLs) and at the end (the last
200,000 of N). Memory is that of this process beyond what it has with an empty frontier. With --soap also over SOAP: a
real urlServer, and zeep as the client.
"""

import argparse
import ctypes
import gc
import json
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks import soap
from common.clock import SystemClock
from common.settings import UrlServerSettings
from common.wire import FoundUrl, Outcome, Report, UrlResult
from server.frontier.frontier import Frontier, Rules
from server.frontier.rocks import RocksStore
from server.policy.policy import policy_of

HOSTS = 10_000
KNOWN_SHARE = 0.45
BATCH = 512
SAMPLE = 200_000
SHA1 = "5baa61e4c9b93f3f0682250b6cf8331b7ee68fd8"  # of each body; none compares them


class Web:
    """An endless supply of URLs over HOSTS hosts, of which a share was given out before. Reproducible."""

    def __init__(self) -> None:
        self._random = random.Random(1)
        self.fresh = 0

    def batch(self, size: int, known_share: float) -> list[FoundUrl]:
        found = []
        for _ in range(size):
            if self.fresh and self._random.random() < known_share:
                number = self._random.randrange(self.fresh)
            else:
                number = self.fresh
                self.fresh += 1
            host = number * 7919 % HOSTS
            found.append(FoundUrl(f"http://www.host{host}.example/articles/{number % 97}/page-{number}.html", 3))
        return found


def main() -> int:
    options = _parser().parse_args()
    folder = Path(tempfile.mkdtemp(prefix="frontier-", dir=options.dir))
    try:
        results = _in_process(folder, options.urls, options.durability)
        if options.soap:
            results |= _over_soap(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for name, value in results.items():
        print(f"{name:48} {value:>14,.1f}")
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--urls", type=int, default=1_000_000, help="known URLs at the end (default 1,000,000)")
    parser.add_argument("--durability", choices=("full", "normal"), default="full")
    parser.add_argument("--soap", action="store_true", help="also measure over SOAP")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there, too")
    parser.add_argument("--dir", type=Path, metavar="FOLDER", help="where the frontier is put while it is measured")
    return parser


def _in_process(folder: Path, urls: int, durability: str) -> dict[str, float]:
    web = Web()
    frontier = _open(folder, durability)
    empty = _resident()
    results: dict[str, float] = {}
    results["put at the beginning, URLs/s"] = _put(frontier, web, SAMPLE)
    results["lease + report at the beginning, URLs/s"] = _crawl(frontier, SAMPLE // 4)
    while web.fresh < urls - SAMPLE:
        frontier.add(web.batch(20_000, 0.0))
        _say(f"{web.fresh:,} URLs")
    results["put at the end, URLs/s"] = _put(frontier, web, SAMPLE)
    results["lease + report at the end, URLs/s"] = _crawl(frontier, SAMPLE // 4)
    results["memory beyond empty, bytes per known URL"] = (_resident() - empty) / frontier.totals().known
    results["known URLs"] = frontier.totals().known
    frontier.close()
    results |= _start(folder, durability)
    results["disk, bytes per known URL (with URL texts)"] = _disk(folder) / results["known URLs"]
    return results


def _open(folder: Path, durability: str) -> Frontier:
    rules = Rules(delay_seconds=0, durability=durability)
    return Frontier(RocksStore(folder / "store"), policy_of(UrlServerSettings(), ()), rules, SystemClock())


def _put(frontier: Frontier, web: Web, urls: int) -> float:
    batches = [web.batch(BATCH, KNOWN_SHARE) for _ in range(urls // BATCH)]
    return urls / _seconds(lambda: [frontier.add(batch) for batch in batches])


def _crawl(frontier: Frontier, urls: int) -> float:
    """Lease and report; making the reports is what the client does, and not counted."""
    done, seconds = 0, 0.0
    for job in _jobs(frontier):
        start = time.perf_counter()
        leased = job()
        seconds += time.perf_counter() - start
        report = Report("", [UrlResult(task.url, Outcome.STORED, 200, 1000, sha1=SHA1) for task in leased.tasks], ())
        seconds += _seconds(lambda leased=leased, report=report: frontier.report("c", leased.job, report))  # type: ignore[misc]
        done += len(leased.tasks)
        if done >= urls:
            return done / seconds
    raise AssertionError("unreachable")


def _jobs(frontier: Frontier) -> Iterator[Callable[[], object]]:
    number = 0
    while True:
        number += 1
        yield lambda number=number: frontier.lease("c", f"{time.time()} {number}", 1000)  # type: ignore[misc]


def _start(folder: Path, durability: str) -> dict[str, float]:
    """From nothing to the first job."""
    start = time.perf_counter()
    frontier = _open(folder, durability)
    leased = frontier.lease("c", "first", 300)
    seconds = time.perf_counter() - start
    assert leased.tasks
    frontier.close()
    return {"start to first job, seconds": seconds}


def _over_soap(folder: Path) -> dict[str, float]:
    web = Web()
    batches = [web.batch(soap.FOUND_PER_CALL, KNOWN_SHARE) for _ in range(soap.FOUND_CALLS)]
    return {
        "found URLs over SOAP in calls of 5,000, URLs/s": soap.found_per_second(folder / "found", batches),
        "small getJob calls with 8 clients, calls/s": soap.jobs_per_second(folder / "jobs", batches[0]),
    }


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _resident() -> int:
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what was freed before counts for nobody
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmRSS")


def _disk(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*.sst"))


def _say(text: str) -> None:
    print(text, end="\r", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())

"""Runs and what follows from them: medians, ratios against Scrapy, a table, and JSON for later comparison."""

import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.crawl.contenders import CLIENT
from benchmarks.crawl.measuring import Usage

BASE = "scrapy"


@dataclass(frozen=True, slots=True)
class Run:
    """One crawl of the whole site by one crawler."""

    crawler: str
    round: int
    pages: int  # stored
    expected: int
    requests: int  # answered with a page
    first_at: float  # when the first page was sent, in seconds since 1970; 0 for never
    last_at: float
    is_good: bool  # ended by itself, and said that all went well
    usage: Usage

    @property
    def is_complete(self) -> bool:
        return self.is_good and self.pages == self.expected

    @property
    def whole_rate(self) -> float:
        """Pages per second of the whole command, from its start to its end."""
        return _quotient(self.pages, self.usage.wall_seconds)

    @property
    def started_rate(self) -> float:
        """Pages per second from the first page to the end of the command: without the time to start."""
        return _quotient(self.pages, self.usage.ended_at - self.first_at)

    @property
    def fetching_rate(self) -> float:
        """Pages per second from the first page to the last: what is still being stored then does not count."""
        return _quotient(self.pages, self.last_at - self.first_at)

    @property
    def cpu_milliseconds(self) -> float:
        return _quotient(1000 * self.usage.cpu_seconds, self.pages)

    @property
    def cores(self) -> float:
        """How many of them were at work on average, from the start of the command to its end."""
        return _quotient(self.usage.cpu_seconds, self.usage.wall_seconds)

    @property
    def client_bytes(self) -> int:
        """The largest process that does the crawling: of ours the largest client process."""
        largest = self.usage.largest_bytes
        return largest.get(CLIENT) or max(largest.values(), default=0)


_Number = Callable[[Run], float]
_COLUMNS: tuple[tuple[str, _Number, str], ...] = (
    ("pages", lambda run: run.pages, ",.0f"),
    ("pages/s", lambda run: run.whole_rate, ",.1f"),
    ("started", lambda run: run.started_rate, ",.1f"),
    ("fetching", lambda run: run.fetching_rate, ",.1f"),
    ("CPU ms/page", lambda run: run.cpu_milliseconds, ",.2f"),
    ("cores", lambda run: run.cores, ".2f"),
    ("memory MB", lambda run: run.usage.peak_bytes / 1e6, ",.0f"),
    ("process MB", lambda run: run.client_bytes / 1e6, ",.0f"),
)
_RATIOS: tuple[tuple[str, _Number, str], ...] = (
    ("pages/s", lambda run: run.whole_rate, "×"),
    ("started", lambda run: run.started_rate, "×"),
    ("fetching", lambda run: run.fetching_rate, "×"),
    ("CPU", lambda run: run.cpu_milliseconds, "%"),
)
LEGEND = """Medians of all rounds; a crawler marked ! has not got every page in every round.
pages/s     pages stored per second of the whole command, start and end included
started     the same from the first page that nginx sent to the end of the command: starting does not count
fetching    the same from the first page to the last that nginx sent: pages kept waiting to be stored do not count
CPU         user and system time of all processes of a crawler together, without nginx; cores: how many that kept busy
memory      peak of all its processes together (PSS); process: of its largest one (RSS), of ours the largest client"""


def ratio(runs: Sequence[Run], base: Sequence[Run], number: _Number) -> float | None:
    """The median of `runs` as a multiple of the median of `base`; None where there is nothing to compare with."""
    below = median(map(number, base)) if base else 0.0
    return median(map(number, runs)) / below if runs and below else None


def table(runs: Sequence[Run]) -> str:
    """One line for each crawler, in the order in which they came."""
    crawlers = list(dict.fromkeys(run.crawler for run in runs))
    base = [run for run in runs if run.crawler == BASE]
    heads = [name for name, _, _ in _COLUMNS] + ([f"{name} {sign}" for name, _, sign in _RATIOS] if base else [])
    rows = [["", *heads]]
    for crawler in crawlers:
        own = [run for run in runs if run.crawler == crawler]
        mark = "" if all(run.is_complete for run in own) else " !"
        cells = [format(median(map(number, own)), shape) for _, number, shape in _COLUMNS]
        if base:
            cells += [_written(ratio(own, base, number), sign) for _, number, sign in _RATIOS]
        rows.append([crawler + mark, *cells])
    note = [f"the last {len(_RATIOS)} columns: against {BASE}"] if base else []
    return "\n".join([*_aligned(rows), *note])


def line(run: Run) -> str:
    """What a run has brought, and what is wrong with it."""
    text = (
        f"round {run.round}  {run.crawler:10} {run.pages:,} pages in {run.usage.wall_seconds:.1f} s: "
        f"{run.whole_rate:.1f} pages/s, {run.fetching_rate:.1f} while fetching, CPU {run.cpu_milliseconds:.2f} ms/page"
    )
    faults = []
    if run.pages != run.expected:
        faults.append(f"the site has {run.expected:,} pages")
    if not run.is_good:
        reason = "did not end in time" if run.usage.reached_limit else f"ended with status {run.usage.status}"
        faults.append(reason)
    return text + (f"  ! {', '.join(faults)}" if faults else "")


def machine() -> dict[str, Any]:
    """Where and when."""
    return {
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "command": ["python", "-m", "benchmarks.crawl", *sys.argv[1:]],
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "processor": _processor(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "load_before": os.getloadavg()[0],
    }


def record(run: Run) -> dict[str, Any]:
    """A run for the JSON file, with the numbers that follow from it."""
    derived = {name: number(run) for name, number, _ in _COLUMNS}
    return asdict(run) | {"is_complete": run.is_complete, "derived": derived}


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), "")


def _quotient(above: float, below: float) -> float:
    return above / below if below > 0 else 0.0


def _written(value: float | None, sign: str) -> str:
    if value is None:
        return "-"
    return f"{value:.2f}" if sign == "×" else f"{100 * value:.0f}"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) if not place else cell.rjust(width) for place, (cell, width) in enumerate(pairs))
        for pairs in (list(zip(row, widths, strict=True)) for row in rows)
    ]

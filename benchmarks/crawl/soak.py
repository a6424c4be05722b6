"""Our client for a long time on a site without end, and how the memory of each of its processes goes."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.crawl.contenders import CLIENT, ours
from benchmarks.crawl.measuring import Order, Sample, Usage, measured
from benchmarks.crawl.site import Site

_SAMPLE_SECONDS = 5.0
_WARM_UP = 0.2  # of the time: buffers and caches fill, which is no leak
_WINDOW = 0.1  # of the time: a level is a median over so much, as memory goes up and down with the bundles under way


@dataclass(frozen=True, slots=True)
class Curve:
    """The memory of one process over time, in bytes."""

    pid: int
    name: str
    points: list[tuple[float, int]]  # seconds since the start, RSS

    def level(self, moment: float) -> float:
        """The median around `moment`, a share of the time: 0 is the start, 1 the end."""
        first, last = self.points[0][0], self.points[-1][0]
        middle, reach = first + moment * (last - first), _WINDOW / 2 * (last - first)
        nearest = min(self.points, key=lambda point: abs(point[0] - middle))
        return median([size for at, size in self.points if abs(at - middle) <= reach] or [nearest[1]])

    @property
    def growth(self) -> float:
        """By which share the process is larger at the end than after the warm-up."""
        warm = self.level(_WARM_UP)
        return self.level(1.0) / warm - 1 if warm else 0.0

    @property
    def growth_per_hour(self) -> float:
        """The same in bytes per hour."""
        seconds = (1 - _WARM_UP) * (self.points[-1][0] - self.points[0][0])
        return (self.level(1.0) - self.level(_WARM_UP)) * 3600 / seconds if seconds else 0.0


def soak(site: Site, folder: Path, minutes: float, clients: int, options: Sequence[str]) -> Usage:
    """Crawl for so many minutes, with `folder` for what is written."""
    crawl = ours("tar.zst", clients, options)
    work = folder / "work"
    work.mkdir()
    return measured(
        Order(
            command=crawl.command(site.starts, work),
            output=str(folder / "output"),
            result=str(folder / "usage.json"),
            limit_seconds=60 * minutes,
            sample_seconds=_SAMPLE_SECONDS,
            keeps_samples=True,
        )
    )


def curves(samples: Sequence[Sample]) -> list[Curve]:
    """A curve for each process that was seen at least twice, clients first; all but the last samples count.

    The last two are of the time in which the crawl ends, when a process gives back what it has.
    """
    found: dict[tuple[int, str], list[tuple[float, int]]] = {}
    for sample in samples[:-2] or samples:
        for process in sample.processes:
            found.setdefault((process.pid, process.name), []).append((sample.seconds, process.rss))
    made = [Curve(pid, name, points) for (pid, name), points in found.items() if len(points) > 1]
    return sorted(made, key=lambda curve: (curve.name != CLIENT, curve.name, curve.pid))


def table(made: Sequence[Curve]) -> str:
    """The levels at the start, the quarters and the end, and the growth after the warm-up."""
    moments = (0.0, 0.25, 0.5, 0.75, 1.0)
    lines = [f"{'RSS in MB':34}" + "".join(f"{f'{moment:.0%}':>8}" for moment in moments) + "  growth   MB/hour"]
    for curve in made:
        levels = "".join(f"{curve.level(moment) / 1e6:8.1f}" for moment in moments)
        rest = f"{curve.growth:8.1%}{curve.growth_per_hour / 1e6:10.1f}"
        lines.append(f"{curve.name:26}{curve.pid:>8}{levels}{rest}")
    return "\n".join([*lines, f"growth: from {_WARM_UP:.0%} of the time, when it has warmed up, to the end"])

"""Crawls one site with our whole system, Scrapy and wget in turn, and compares what they need.

The site is made of generated pages, or is a folder of your own, served by nginx on several loopback addresses.
With --soak only our system runs, on a site without end, and the memory of its processes is watched; that takes about
10 GB an hour in the temporary folder (TMPDIR). What comes after -- are further options for our crawler, such as:
-- --processes 1 --number-of-threads 20
"""

import argparse
import json
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.crawl import report, soak
from benchmarks.crawl.contenders import NAMES, Contender, contenders
from benchmarks.crawl.errors import BenchmarkError
from benchmarks.crawl.measuring import Order, measured
from benchmarks.crawl.report import Run
from benchmarks.crawl.serving import PageLog, listening, served
from benchmarks.crawl.site import Site, from_folder, generated, origins_of


def main() -> int:
    options = _parser().parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # with the usual cleaning up on the way
    try:
        _check(options)
        about = report.machine()
        results = _soak(options) if options.soak else _compare(options)
    except BenchmarkError as error:
        print(f"benchmarks.crawl: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    if options.json:
        options.json.write_text(json.dumps({"machine": about, **results}, indent=1), encoding="utf-8")
    return 0 if results["is_good"] else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.crawl",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--pages", type=_positive, default=3_000, metavar="N", help="generated pages (default: 3000)")
    parser.add_argument("--folder", type=Path, help="HTML of your own instead; each host serves all of it")
    parser.add_argument("--hosts", type=_hosts, default=6, metavar="N", help="127.0.0.2 and onward (default: 6)")
    parser.add_argument("--port", type=_port, default=0, help="of nginx, on all hosts (default: one that is free)")
    parser.add_argument("--seed", type=int, default=1, help="of the generated pages")
    parser.add_argument("--rounds", type=_positive, default=3, metavar="N", help="all crawlers in turn (default: 3)")
    parser.add_argument("--only", default=",".join(NAMES), metavar="NAMES", help="crawlers (default: %(default)s)")
    parser.add_argument("--scrapy", type=Path, metavar="PYTHON", help="an interpreter that has Scrapy already")
    parser.add_argument(
        "--clients", type=_numbers, default=(1,), metavar="N,…",
        help="clientCrawlers of our system; of several numbers each is a crawler of its own (default: 1)",
    )  # fmt: skip
    parser.add_argument("--limit", type=float, default=60, metavar="MINUTES", help="for one run (default: 60)")
    parser.add_argument("--soak", type=float, metavar="MINUTES", help="watch our client for so long instead")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all runs and the machine to FILE")
    parser.add_argument("ours", nargs="*", metavar="-- OPTION", help="further options for our crawler")
    return parser


def _check(options: argparse.Namespace) -> None:
    """Mistakes are found before hours are spent."""
    if options.json and not options.json.resolve().parent.is_dir():
        raise BenchmarkError(f"there is no folder for {options.json}")
    if options.soak is not None and options.soak <= 0:
        raise BenchmarkError("--soak needs a number of minutes above 0")
    if options.soak and len(options.clients) > 1:
        raise BenchmarkError("--soak needs one number of --clients")
    if options.soak and options.folder:
        raise BenchmarkError("--soak makes pages of its own, without end; leave out --folder")


def _positive(text: str) -> int:
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError("expected a number above 0")
    return number


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(_positive(word) for word in text.split(","))


def _port(text: str) -> int:
    if not 0 <= (number := int(text)) <= 65_535:
        raise argparse.ArgumentTypeError("expected a number from 0 to 65535")
    return number


def _hosts(text: str) -> int:
    if (number := _positive(text)) > 250:
        raise argparse.ArgumentTypeError("at most 250 hosts")
    return number


def _compare(options: argparse.Namespace) -> dict[str, Any]:
    made = contenders(options.only.split(","), options.clients, options.ours, options.scrapy)
    runs: list[Run] = []
    with _site(options) as (site, log, folder):
        print(f"{site.pages:,} pages of {site.mean_bytes / 1000:.1f} KB on {len(site.origins)} hosts", flush=True)
        for number in range(1, options.rounds + 1):
            for contender in made:
                runs.append(_run(contender, number, site, log, folder, 60 * options.limit))
                print(report.line(runs[-1]), flush=True)
    print(f"\n{report.table(runs)}\n\n{report.LEGEND}")
    is_good = all(run.is_complete for run in runs)
    return {"is_good": is_good, "site": _facts(site), "runs": [report.record(run) for run in runs]}


def _soak(options: argparse.Namespace) -> dict[str, Any]:
    with _site(options, is_endless=True) as (site, log, folder):
        usage = soak.soak(site, folder, options.soak, options.clients[0], options.ours)
        pages = len(log.since(0))
        output = (folder / "output").read_text(errors="replace")
    curves = soak.curves(usage.samples)
    print(f"{pages:,} pages sent in {usage.wall_seconds:.0f} s\n{soak.table(curves)}")
    if not usage.reached_limit:
        print(f"! the crawl ended by itself, with status {usage.status}:\n{output[-1000:]}", file=sys.stderr)
    shown = [asdict(curve) | {"growth": curve.growth, "bytes_per_hour": curve.growth_per_hour} for curve in curves]
    facts = {"pages": pages, "wall_seconds": usage.wall_seconds, "cpu_seconds": usage.cpu_seconds, "curves": shown}
    return {"is_good": usage.reached_limit, "site": _facts(site), "soak": facts}


@contextmanager
def _site(options: argparse.Namespace, is_endless: bool = False) -> Iterator[tuple[Site, PageLog, Path]]:
    """The site, served; its log; and a folder for what the crawlers write, all of which goes at the end."""
    with (
        tempfile.TemporaryDirectory(prefix="benchmark-crawl-", ignore_cleanup_errors=True) as name,
        listening(options.hosts, options.port) as sockets,
    ):
        folder = Path(name)
        origins = origins_of(options.hosts, sockets.port)
        if options.folder and not is_endless:
            site = from_folder(options.folder, origins)
        else:
            site = generated(folder / "site", origins, options.pages, options.seed, is_endless)
        for part in ("nginx", "run"):
            (folder / part).mkdir()
        with served(site, sockets, folder / "nginx", is_endless) as log:
            yield site, log, folder / "run"


def _run(contender: Contender, number: int, site: Site, log: PageLog, folder: Path, limit_seconds: float) -> Run:
    work = folder / "work"
    work.mkdir()
    mark = log.end()
    order = Order(
        command=contender.command(site.starts, work),
        output=str(folder / "output"),
        result=str(folder / "usage.json"),
        limit_seconds=limit_seconds,
    )
    usage = measured(order)
    is_good = usage.status in contender.good_statuses and not usage.reached_limit
    if not is_good:
        _show_end(folder / "output")
    sent = log.since(mark)
    pages = contender.count(work)
    shutil.rmtree(work)
    first, last = (sent[0], sent[-1]) if sent else (0.0, 0.0)
    return Run(contender.name, number, pages, site.pages, len(sent), first, last, is_good, usage)


def _show_end(output: Path) -> None:
    lines: Sequence[str] = output.read_text(errors="replace").splitlines()
    print("\n".join(f"    {line}" for line in lines[-10:]), file=sys.stderr)


def _facts(site: Site) -> dict[str, Any]:
    return {"hosts": len(site.origins), "pages": site.pages, "mean_bytes": site.mean_bytes, "made": time.time()}


if __name__ == "__main__":
    sys.exit(main())

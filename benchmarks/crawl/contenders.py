"""The crawlers that are compared: how each is called, and how many pages it has stored when it is done.

All may ask 32 times at once on a host, wait for nothing, obey robots.txt, and follow links on the given hosts only.
wget asks once at a time; it knows no other way.
"""

import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.crawl.environment import checked, scrapy_python
from benchmarks.crawl.errors import BenchmarkError
from common.bundle import FORMATS, parse_bundle_name, read_manifest

CLIENT = "client.main"  # our worker, as the process list shows it
NAMES = ("ours-bz2", "ours-zst", "scrapy", "scrapy-tuned", "wget")

_SPIDER = Path(__file__).with_name("spider.py")
_SUFFIXES = (".html", ".htm")
_WGET_SOME_FAILED = 8  # the site answered 404 for something: robots.txt at least


@dataclass(frozen=True, slots=True)
class Contender:
    """A crawler. `command` gets the start URLs and an empty folder of its own; `count` finds the pages there."""

    name: str
    command: Callable[[Sequence[str], Path], list[str]]
    count: Callable[[Path], int]
    good_statuses: frozenset[int] = frozenset({0})


def contenders(
    names: Sequence[str], clients: Sequence[int] = (1,), options: Sequence[str] = (), python: Path | None = None
) -> list[Contender]:
    """The crawlers of these names, ours with each number of `clients`.

    `options` are further ones for ours, `python` is an interpreter with Scrapy.
    """
    unknown = set(names) - set(NAMES)
    if unknown or not names:
        raise BenchmarkError(f"no crawler is called {', '.join(unknown)!r}; there are {', '.join(NAMES)}")
    made = []
    for name in names:
        if name.startswith("scrapy"):
            made.append(_scrapy(name, checked(python) if python else scrapy_python()))
        elif name == "wget":
            made.append(_wget())
        else:
            container = next(item for item in FORMATS if item.endswith(name.removeprefix("ours-")))
            for number in clients:
                made.append(ours(container, number, options, name if number == 1 else f"{name}-{number}"))
    return made


def ours(container: str, clients: int = 1, options: Sequence[str] = (), name: str = "ours") -> Contender:
    """Our whole system: URL server, FTP server, and clients. Other documents than HTML are not followed by all."""
    fixed = ("--delay", "0", "--connections-per-host", "32", "--document-save", "0", "--bundle-format", container)
    program = ["onehost.main"] if clients == 1 else ["benchmarks.crawl.several", str(clients)]

    def command(starts: Sequence[str], folder: Path) -> list[str]:
        return [sys.executable, "-m", *program, "--dir", str(folder), *fixed, *options, *starts]

    return Contender(name, command, _count_bundled)


def _scrapy(name: str, python: Path) -> Contender:
    kind = "tuned" if name.endswith("-tuned") else "plain"

    def command(starts: Sequence[str], folder: Path) -> list[str]:
        return [str(python), str(_SPIDER), kind, str(folder), *starts]

    return Contender(name, command, _count_files)


def _wget() -> Contender:
    if not shutil.which("wget"):
        raise BenchmarkError("wget is not installed")

    def command(starts: Sequence[str], folder: Path) -> list[str]:
        hosts = ",".join(str(urlsplit(url).hostname) for url in starts)
        plain = ["wget", "--no-config", "-q", "-r", "-l", "inf", "-e", "robots=on", "--follow-tags=a,area"]
        return [*plain, "-H", "-D", hosts, "-P", str(folder), *starts]

    return Contender("wget", command, _count_files, frozenset({0, _WGET_SOME_FAILED}))


def _count_files(folder: Path) -> int:
    return sum(path.name.endswith(_SUFFIXES) for path in folder.rglob("*") if path.is_file())


def _count_bundled(folder: Path) -> int:
    """Different pages of HTML in complete bundles."""
    urls: set[str] = set()
    for path in (folder / "Pages").rglob("*"):
        if parse_bundle_name(path.name):
            urls |= {page.meta.url for page in read_manifest(path).pages if page.data_name.endswith(_SUFFIXES)}
    return len(urls)

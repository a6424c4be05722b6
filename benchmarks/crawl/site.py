"""The pages that are crawled: where they lie, from where a crawl begins, and how many there are to be found."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import lxml.html

from benchmarks.crawl.errors import BenchmarkError
from benchmarks.crawl.pages import Author, Place

_SUFFIXES = (".html", ".htm")


@dataclass(frozen=True, slots=True)
class Site:
    """Folder `folders[h]` is what `origins[h]` serves. Every crawler has to find `pages` pages of HTML."""

    origins: tuple[str, ...]  # http://ADDRESS:PORT
    folders: tuple[Path, ...]
    pages: int
    mean_bytes: float

    @property
    def starts(self) -> tuple[str, ...]:
        return tuple(f"{origin}/index.html" for origin in self.origins)


def origins_of(hosts: int, port: int) -> tuple[str, ...]:
    """127.0.0.2 and onward: Linux answers for all of them without being told."""
    return tuple(f"http://{address}:{port}" for address in addresses_of(hosts))


def addresses_of(hosts: int) -> tuple[str, ...]:
    return tuple(f"127.0.0.{number}" for number in range(2, hosts + 2))


def generated(folder: Path, origins: Sequence[str], pages: int, seed: int, is_endless: bool = False) -> Site:
    """Writes `pages` pages below `folder`, shared out among the hosts."""
    counts = [len(range(host, pages, len(origins))) for host in range(len(origins))]
    if 0 in counts:
        raise BenchmarkError(f"{pages} pages are too few for {len(origins)} hosts")
    author = Author(seed, counts, origins, is_endless)
    total = 0
    for host, count in enumerate(counts):
        for number in range(count):
            place = Place(host, number)
            file = folder / f"host{host}" / place.path
            file.parent.mkdir(parents=True, exist_ok=True)
            total += file.write_bytes(author.page(place))
    folders = tuple(folder / f"host{host}" for host in range(len(origins)))
    return Site(tuple(origins), folders, pages, total / pages)


def from_folder(folder: Path, origins: Sequence[str]) -> Site:
    """The user's own pages; every host serves all of them, so that the size of the crawl grows with the hosts."""
    if not (folder / "index.html").is_file():
        raise BenchmarkError(f"there is no index.html in {folder}, where the crawl would begin")
    folder = folder.resolve()
    pages = reachable({"http://site": folder}, ["http://site/index.html"])
    sizes = [(folder / unquote(urlsplit(url).path)[1:]).stat().st_size for url in pages]
    number = len(origins)
    return Site(tuple(origins), (folder,) * number, len(pages) * number, sum(sizes) / len(sizes))


def reachable(folders: dict[str, Path], starts: Sequence[str]) -> set[str]:
    """The pages found by following <a> and <area> from `starts`; `folders` says what each origin serves.

    Told by another parser than our crawler's, so that a mistake of ours is seen.
    """
    found: set[str] = set()
    queue = deque(starts)
    while queue:
        url = queue.popleft()
        if url in found or (file := _file(folders, url)) is None:
            continue
        found.add(url)
        queue.extend(target for target in _targets(file, url) if target not in found)
    return found


def _file(folders: dict[str, Path], url: str) -> Path | None:
    """The file of a page; None for what is elsewhere, missing, or no HTML."""
    parts = urlsplit(url)
    folder = folders.get(f"{parts.scheme}://{parts.netloc}")
    if folder is None or not parts.path.endswith(_SUFFIXES):
        return None
    file = folder / unquote(parts.path).lstrip("/")
    return file if file.is_file() else None


def _targets(file: Path, url: str) -> set[str]:
    data = file.read_bytes()
    if not data.strip():
        return set()
    targets = set()
    for element in lxml.html.document_fromstring(data).iter("a", "area"):
        if reference := (element.get("href") or "").strip():
            targets.add(_canonical(reference, url))
    return targets


def _canonical(reference: str, url: str) -> str:
    """One spelling for each page: no fragment, no query, and the name of a folder's page."""
    try:
        parts = urlsplit(urldefrag(urljoin(url, reference)).url)
    except ValueError:
        return ""
    path = parts.path or "/"
    return f"{parts.scheme}://{parts.netloc}{path}{'index.html' if path.endswith('/') else ''}"

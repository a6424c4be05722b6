"""What a damaged disk does: a byte flipped, a file cut, zeroed or deleted, in each kind of file that we keep.

Nothing that was promised is lost without a word, and what can be had from other files is made again from them.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from common.clock import SystemClock
from common.settings import Settings
from common.wire import FoundUrl, Outcome, Report, UrlResult
from export.stored import Harvest
from server.admin import main as crawl_admin
from server.admin.operator import Operator
from server.catalogue import FILE_NAME, Catalogue, CatalogueWriter
from server.ftpserver import main as ftp_server
from server.opening import open_frontier
from tests.bundles import make_bundle, page_url

Damage = Callable[[Path], None]


def flipped(share: float, bit: int = 0) -> Damage:
    """One bit, so far into the file."""

    def damage(path: Path) -> None:
        data = bytearray(path.read_bytes())
        data[min(int(len(data) * share), len(data) - 1)] ^= 1 << bit
        path.write_bytes(bytes(data))

    return damage


def cut(share: float) -> Damage:
    def damage(path: Path) -> None:
        data = path.read_bytes()
        path.write_bytes(data[: int(len(data) * share)])

    return damage


def zeroed(share: float, size: int = 4_096) -> Damage:
    """A block of a disk that came back empty."""

    def damage(path: Path) -> None:
        data = bytearray(path.read_bytes())
        start = int(len(data) * share) // size * size
        data[start : start + size] = bytes(len(data[start : start + size]))
        path.write_bytes(bytes(data))

    return damage


def deleted(path: Path) -> None:
    path.unlink()


# --- the catalogue of Pages/ ------------------------------------------------------------------------------------

DOMAINS = [f"d{number}.example" for number in range(6)]
PAGES = 40  # of each: several blocks of the file, in trees of two levels

CATALOGUE_DAMAGES: dict[str, Damage] = {
    "a byte of the head": flipped(0.0),
    "the size of its blocks": lambda path: _set(path, 16, b"\x03\x01"),
    "the form of its text": lambda path: _set(path, 56, b"\0\0\0\x09"),
    "its schema": lambda path: _set(path, path.read_bytes().index(b"CREATE TABLE page"), b"CREATE TABLE qage"),
    "the version": lambda path: _set(path, 60, b"\0\0\0\x07"),
    "the first tenth": zeroed(0.1),
    "a third": zeroed(0.35),
    "the middle": zeroed(0.5),
    "nearly the end": zeroed(0.8),
    "the last block": zeroed(0.999),
    "half of it": cut(0.5),
    "all but the end": cut(0.95),
    "all of it": cut(0.0),
    "the file": deleted,
    "rubbish": lambda path: _set(path, 0, b"no database at all" * 1_000),
    **{f"bit {place % 8} at {place} %": flipped(place / 100, place % 8) for place in range(1, 100, 7)},
}


def _set(path: Path, position: int, value: bytes) -> None:
    data = bytearray(path.read_bytes())
    data[position : position + len(value)] = value
    path.write_bytes(bytes(data))


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A work folder after a crawl that is in order."""
    folder = tmp_path_factory.mktemp("crawled")
    settings = Settings(folder)
    frontier = open_frontier(settings, SystemClock())
    frontier.add([FoundUrl(page_url(domain, number), 0) for domain in DOMAINS for number in range(PAGES)])
    while (leased := frontier.lease("w", "", 1_000)).tasks:
        results = [UrlResult(task.url, Outcome.STORED) for task in leased.tasks]
        frontier.report("w", leased.job, Report(str(leased.job), results, []))
    frontier.close()
    for domain in DOMAINS:
        make_bundle(settings.pages / domain, domain, pages=PAGES)
    with Catalogue.open(settings.pages) as catalogue:
        catalogue.reconcile()
    return folder


@pytest.fixture
def work(crawled: Path, tmp_path: Path) -> Path:
    return shutil.copytree(crawled, tmp_path / "work")


def rows(folder: Path) -> list[object]:
    """All that the catalogue says."""
    with Catalogue.open(folder / "Pages", read_only=True) as catalogue:
        return [(bundle, catalogue.rows_of(bundle)) for bundle in catalogue.bundles()] + [*catalogue.digests()]


def exported(folder: Path) -> set[tuple[str, bytes]]:
    with Harvest(folder / "Pages") as harvest:
        return {(page.entry.meta.url, page.body) for domain in harvest.domains() for page in harvest.pages(domain)}


def admin(folder: Path, *command: str) -> int:
    return crawl_admin.main([*command, "--dir", str(folder)])


def each_catalogue_damage() -> pytest.MarkDecorator:
    return pytest.mark.parametrize("damage", CATALOGUE_DAMAGES.values(), ids=CATALOGUE_DAMAGES)


@each_catalogue_damage()
def test_a_damaged_catalogue_is_named_and_made_again(
    crawled: Path, work: Path, damage: Damage, capfd: pytest.CaptureFixture[str]
) -> None:
    damage(work / "Pages" / FILE_NAME)
    is_seen = admin(work, "audit") == 1
    told = capfd.readouterr().out
    assert is_seen == ("catalogue wrong" in told)
    assert admin(work, "audit", "--repair") == 0, told
    assert admin(work, "audit") == 0
    assert rows(work) == rows(crawled)


@each_catalogue_damage()
def test_whoever_reads_a_damaged_catalogue_goes_on(crawled: Path, work: Path, damage: Damage) -> None:
    damage(work / "Pages" / FILE_NAME)
    assert exported(work) == exported(crawled)
    frontier = open_frontier(Settings(work), SystemClock())
    for domain in DOMAINS:
        answer = Operator(frontier, Settings(work)).run("explain", {"url": page_url(domain, 7)})
        assert answer["state"] == "done"
        assert answer["stored"] or answer["catalogue"], "it says why it does not know the page"
    frontier.close()


@each_catalogue_damage()
def test_ftp_server_starts_with_a_damaged_catalogue(crawled: Path, work: Path, damage: Damage) -> None:
    damage(work / "Pages" / FILE_NAME)
    bundle = make_bundle(work / "Pages" / "new.example", "new.example")
    writer = CatalogueWriter(work / "Pages")
    writer.start()
    writer.close()
    with Catalogue.open(work / "Pages", read_only=True) as catalogue:
        assert bundle.name in {stored.name for stored in catalogue.bundles()}
    assert ftp_server.main(["--rebuild-catalogue", "--dir", str(work)]) == 0
    bundle.unlink()
    assert admin(work, "audit", "--repair") == 0
    assert rows(work) == rows(crawled)

"""What a damaged disk does: a byte flipped, a file cut, zeroed or deleted, in each kind of file that we keep.

Nothing that was promised is lost without a word, and what can be had from other files is made again from them.
"""

import os
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from itertools import pairwise
from pathlib import Path

import pytest

from client.spool import REPORT_NAME
from common.clock import SystemClock
from common.settings import Settings
from common.wire import FoundUrl, Outcome, Report, UrlResult
from export import main as crawl_export
from export.stored import Harvest
from server.admin import main as crawl_admin
from server.admin.operator import Operator
from server.catalogue import FILE_NAME, Catalogue, CatalogueWriter
from server.frontier import promise, recovery
from server.frontier.jobnames import next_job
from server.frontier.rocks import RocksStore
from server.frontier.store import DamagedStore, StoreError, Table
from server.ftpserver import main as ftp_server
from server.opening import STORE_FOLDER, open_frontier
from tests.bundles import make_bundle, page_url
from tests.ftp import stored_bundles
from tests.integration.admin import run_admin
from tests.jobs import job_name
from tests.processes import ROOT
from tests.unit.test_delivery import Host
from tests.urlserver import serving

Damage = Callable[[Path], None]


def flipped(share: float, bit: int = 0) -> Damage:
    """One bit, so far into the file."""

    def damage(path: Path) -> None:
        data = bytearray(path.read_bytes())
        if data:
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

_JOURNAL = bytes.fromhex("d9d505f920a163d7")  # SQLite rolls back by what begins so

CATALOGUE_DAMAGES: dict[str, Damage] = {
    "a byte of the head": flipped(0.0),
    "the size of its blocks": lambda path: _set(path, 16, b"\x03\x01"),
    "the form of its text": lambda path: _set(path, 56, b"\0\0\0\x09"),
    "its schema": lambda path: _set(path, path.read_bytes().index(b"CREATE TABLE page"), b"CREATE TABLE qage"),
    "its schema, which is no text": lambda path: _set(
        path, path.read_bytes().index(b"domain  TEXT    NOT NULL") + 22, bytes([ord("L") ^ 0x80])
    ),
    "its schema, which is text no more": lambda path: _set(
        path, path.read_bytes().index(b"CREATE TABLE bundle") + 13, b"\xff\xfe\xfd\xfc\xfb\xfa"
    ),
    "a journal of another program": lambda path: _with_beside(path, "-journal", _JOURNAL + bytes(4_000)),
    "a journal of rubbish": lambda path: _with_beside(path, "-journal", _JOURNAL + b"\x07rubbish" * 1_000),
    "a log of rubbish": lambda path: _with_beside(path, "-wal", b"\x37\x7f\x06\x82rubbish" * 1_000),
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


def _with_beside(path: Path, ending: str, data: bytes) -> None:
    path.with_name(path.name + ending).write_bytes(data)


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
        make_bundle(settings.pages / domain, domain, job_name(folder), pages=PAGES)
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


# --- a folder of Pages/ that may not be looked at ----------------------------------------------------------------


def closed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For root there is no such folder."""
    iterdir = Path.iterdir

    def refuses(self: Path) -> Iterator[Path]:
        if self == folder:
            raise PermissionError(13, "Permission denied", str(self))
        return iterdir(self)

    monkeypatch.setattr(Path, "iterdir", refuses)


@pytest.mark.parametrize("has_catalogue", [True, False])
def test_a_folder_that_cannot_be_listed_holds_up_no_other(
    crawled: Path, work: Path, has_catalogue: bool, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Nothing in it is forgotten, and the rest is rebuilt, mended and exported."""
    truth = rows(crawled)
    if not has_catalogue:
        (work / "Pages" / FILE_NAME).unlink()
    closed(work / "Pages" / DOMAINS[0], monkeypatch)
    is_exported = PAGES * (len(DOMAINS) - (not has_catalogue))
    assert crawl_export.main(["index", "--output", str(work / "index.txt"), "--dir", str(work)]) == 1
    told = capfd.readouterr().err
    assert f"{DOMAINS[0]} cannot be listed: Permission denied" in told
    assert f"{is_exported} pages in {work / 'index.txt'}; 1 times something was left out" in told
    assert ftp_server.main(["--rebuild-catalogue", "--dir", str(work)]) == 1
    assert f"broken: {DOMAINS[0]}: " in capfd.readouterr().out
    assert admin(work, "audit") == 1
    assert "unreadable" in capfd.readouterr().out
    assert admin(work, "audit", "--repair") == 1
    monkeypatch.undo()
    assert admin(work, "audit", "--repair") == 0
    assert admin(work, "audit") == 0
    assert sorted(map(repr, rows(work))) == sorted(map(repr, truth))
    assert exported(work) == exported(crawled), "no page is fetched again"


def test_a_catalogue_for_this_time_leaves_nothing_out(work: Path, capfd: pytest.CaptureFixture[str]) -> None:
    _set(work / "Pages" / FILE_NAME, 0, b"no database at all" * 1_000)
    assert crawl_export.main(["index", "--output", str(work / "index.txt"), "--dir", str(work)]) == 0
    told = capfd.readouterr().err
    assert "made another one from the bundles, for this time only" in told
    assert "left out" not in told


# --- the frontier's log -----------------------------------------------------------------------------------------

URLS = 600
BEGIN = f"""
import sys
from pathlib import Path
from common.clock import SystemClock
from common.settings import Settings
from common.wire import FoundUrl
from server.opening import open_frontier
frontier = open_frontier(Settings(Path(sys.argv[1])), SystemClock())
for number in range({URLS}):
    frontier.add([FoundUrl(f"http://h{{number % 7}}.example/{{number}}", 0)])
print("acknowledged", flush=True)
sys.stdin.read()
"""


def killed(script: str, folder: Path) -> str:
    """A process that is killed after it has printed a line."""
    command = [sys.executable, "-c", script, str(folder)]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    process.kill()
    process.communicate()
    return line


@pytest.fixture(scope="module")
def frontier_of_600(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A work folder whose urlServer was killed when it had acknowledged 600 URLs, with durability = full."""
    folder = tmp_path_factory.mktemp("killed")
    assert killed(BEGIN, folder) == "acknowledged\n"
    return folder


@pytest.fixture
def frontier(frontier_of_600: Path, tmp_path: Path) -> Path:
    return shutil.copytree(frontier_of_600, tmp_path / "work")


def file_of(work: Path, pattern: str) -> Path:
    [path] = (work / ".mem" / STORE_FOLDER).glob(pattern)
    return path


def known(work: Path) -> int:
    frontier = open_frontier(Settings(work), SystemClock())
    try:
        return frontier.totals().known
    finally:
        frontier.close()


def contents(work: Path) -> dict[str, bytes]:
    """Of the files that count; LOG is RocksDB's diary."""
    paths = (work / ".mem" / STORE_FOLDER).iterdir()
    return {path.name: path.read_bytes() for path in paths if not path.name.startswith("LO")}


ALL, SOME, NOTHING = "all", "some", "nothing"  # of it is left

LOSSES: dict[str, tuple[str, Damage, str]] = {
    "log: a byte a third of the way in": ("*.log", flipped(1 / 3), SOME),
    "log: its first byte": ("*.log", flipped(0.0), NOTHING),
    "log: its last byte": ("*.log", flipped(1.0), SOME),
    "log: cut to nine tenths": ("*.log", cut(0.9), SOME),
    "log: its last byte is cut off": ("*.log", lambda path: os.truncate(path, path.stat().st_size - 1), SOME),
    "log: nothing in it": ("*.log", cut(0.0), NOTHING),
    "log: a block in the middle": ("*.log", zeroed(0.5), SOME),
    "log: its first block": ("*.log", zeroed(0.0), NOTHING),
    "log: its last block": ("*.log", zeroed(0.999), SOME),
    "log: deleted": ("*.log", deleted, NOTHING),
    "MANIFEST: a byte": ("MANIFEST-*", flipped(0.5), ALL),
    "MANIFEST: nothing in it": ("MANIFEST-*", cut(0.0), ALL),
    "MANIFEST: deleted": ("MANIFEST-*", deleted, ALL),
    "CURRENT: a byte": ("CURRENT", flipped(0.0), ALL),
    "CURRENT: another number": ("CURRENT", flipped(0.9), ALL),
    "CURRENT: cut": ("CURRENT", cut(0.5), ALL),
    "CURRENT: nothing in it": ("CURRENT", cut(0.0), ALL),
    "CURRENT: deleted": ("CURRENT", deleted, ALL),
}


def each_loss() -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("pattern", "damage", "left"), LOSSES.values(), ids=LOSSES)


@each_loss()
def test_what_was_acknowledged_and_is_gone_stops_the_start(
    frontier: Path, pattern: str, damage: Damage, left: str, capfd: pytest.CaptureFixture[str]
) -> None:
    damage(file_of(frontier, pattern))
    before = contents(frontier)
    for _ in range(2):
        with pytest.raises(DamagedStore, match=r"(?s)frontier is damaged: .+crawlAdmin recover"):
            known(frontier)
    assert contents(frontier) == before, "somebody may know how to mend it"
    for command in ("audit", "status"):
        assert admin(frontier, command) == 2
        assert "frontier is damaged" in capfd.readouterr().err


@each_loss()
def test_recover_goes_on_with_what_is_left(
    frontier: Path, pattern: str, damage: Damage, left: str, capfd: pytest.CaptureFixture[str]
) -> None:
    damage(file_of(frontier, pattern))
    before = contents(frontier)
    assert admin(frontier, "recover") == (1 if left == NOTHING else 0), capfd.readouterr()
    told = capfd.readouterr().out
    assert ("changes that were acknowledged" in told) == (left != ALL)
    [kept] = (frontier / ".mem").glob("frontier.damaged-*")
    assert str(kept) in told
    assert {path.name: path.read_bytes() for path in kept.iterdir() if path.name in before} == before
    if left == NOTHING:
        assert "nothing to go on with" in told
        return
    assert admin(frontier, "audit", "--repair") == 0
    assert known(frontier) == URLS if left == ALL else 0 < known(frontier) < URLS
    capfd.readouterr()
    assert admin(frontier, "recover") == 0
    assert "nothing is damaged" in capfd.readouterr().out


SMALL_DAMAGES: dict[str, tuple[str, Damage]] = {
    "log: what was never acknowledged behind it": (
        "*.log", lambda path: _set(path, path.stat().st_size, b"\x17" * 300)
    ),
    "IDENTITY: deleted": ("IDENTITY", deleted),
    "rocksdict-config.json: deleted": ("rocksdict-config.json", deleted),
    "rocksdict-config.json: nothing in it": ("rocksdict-config.json", cut(0.0)),
    "PROMISED: deleted": ("PROMISED", deleted),
    "PROMISED: a byte": ("PROMISED", flipped(0.0)),
    "PROMISED: cut": ("PROMISED", cut(0.5)),
    "PROMISED: nothing in it": ("PROMISED", cut(0.0)),
    "PROMISED: zeros": ("PROMISED", zeroed(0.0)),
}  # fmt: skip


@pytest.mark.parametrize(("pattern", "damage"), SMALL_DAMAGES.values(), ids=SMALL_DAMAGES)
def test_what_costs_nothing_stops_nothing(
    frontier: Path, pattern: str, damage: Damage, caplog: pytest.LogCaptureFixture
) -> None:
    damage(file_of(frontier, pattern))
    assert known(frontier) == URLS
    if pattern == "*.log":
        assert re.search(r"never acknowledged: 300 bytes are cut", caplog.text)
    caplog.clear()
    assert known(frontier) == URLS
    assert not caplog.text, "it is said once"


@pytest.mark.parametrize("durability", ["full", "normal"])
def test_a_power_loss_may_cost_what_was_not_on_disk(
    tmp_path: Path, durability: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = RocksStore(tmp_path / "store")
    store.write([(Table.URLS, b"1", b"one")])
    store.sync()
    store.write([(Table.URLS, b"2", b"two")])
    if durability == "full":
        store.sync()
    after = shutil.copytree(tmp_path / "store", tmp_path / "after")  # as it is at this moment
    store.close()
    log = max(after.glob("*.log"))
    os.truncate(log, log.stat().st_size - 3)
    with pytest.raises(DamagedStore, match="1 of 2 changes"):
        RocksStore(after)
    monkeypatch.setattr(promise, "_run", lambda: b"another".ljust(16))  # the machine was started anew
    if durability == "full":
        with pytest.raises(DamagedStore, match="1 of 2 changes"):
            RocksStore(after)
    else:
        left = RocksStore(after)
        assert left.get(Table.URLS, b"1") == b"one"
        assert left.get(Table.URLS, b"2") is None
        left.close()
        assert "the last 1 changes of" in caplog.text


def test_a_power_loss_may_leave_a_hole_in_what_was_not_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The disk writes in any order. Nothing was promised of what is behind it, and without what was in it that would be
    no state that ever was."""
    store = RocksStore(tmp_path / "store")
    log = max((tmp_path / "store").glob("*.log"))
    sizes = []
    for number in range(1, 5):
        store.write([(Table.URLS, bytes([number]), b"x" * 1_000)])
        sizes.append(log.stat().st_size)
        if number == 2:
            store.sync()
    after = shutil.copytree(tmp_path / "store", tmp_path / "after")
    store.close()
    _set(after / log.name, sizes[1], bytes(sizes[2] - sizes[1]))
    with pytest.raises(DamagedStore, match=r"\.log has nothing at byte"):
        RocksStore(after)
    monkeypatch.setattr(promise, "_run", lambda: b"another".ljust(16))  # the machine was started anew
    for told in ("the last 2 changes of", ""):
        caplog.clear()
        left = RocksStore(after)
        assert [key for key, _ in left.scan(Table.URLS)] == [b"\x01", b"\x02"]
        left.close()
        assert told in caplog.text
    assert not caplog.text


STEPS = ("begin_recovery", "rename_head", "rebuild", "is_begun", "recount", "skip_jobs", "audit", "end_recovery")


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("damaged", ["*.log", "MANIFEST-*"])
def test_a_recovery_that_is_killed_is_repeated(
    frontier: Path, step: str, damaged: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = frontier / ".mem" / STORE_FOLDER
    flipped(1 / 3)(file_of(frontier, damaged))

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(recovery, step, killed)
        with suppress(KeyboardInterrupt):
            recovery.recover(folder, 1)
            return  # it does not need that step
    with pytest.raises(DamagedStore):
        known(frontier)
    done = recovery.recover(folder, 2)
    assert done is not None
    assert done.is_sound
    assert recovery.recover(folder, 3) is None
    store = RocksStore(folder)
    assert next_job(store) > 1_000, "no number is given out again"
    store.close()


def test_one_that_is_in_use_is_not_called_damaged(frontier: Path) -> None:
    folder = frontier / ".mem" / STORE_FOLDER
    store = RocksStore(folder)
    store.write([(Table.URLS, b"key", b"value")])
    for command in ("status", "recover"):
        done = run_admin(frontier, command)
        assert done.returncode == 2
        assert "is in use by another urlServer" in done.stderr
    store.close()


LIMITS = [(resource.RLIMIT_FSIZE, 100), (resource.RLIMIT_FSIZE, 2_000), (resource.RLIMIT_NOFILE, 12)]


@pytest.mark.parametrize(("kind", "limit"), LIMITS)
def test_a_limit_is_not_called_damage(frontier: Path, kind: int, limit: int) -> None:
    """As that of a quota."""
    for command in ("audit", "recover"):
        done = subprocess.run(
            [sys.executable, "-m", "server.admin.main", command, "--dir", str(frontier)], cwd=ROOT, check=False,
            capture_output=True, text=True, preexec_fn=lambda: resource.setrlimit(kind, (limit, limit)),
        )  # fmt: skip
        assert done.returncode == 2
        assert "cannot be opened as a frontier" in done.stderr
    assert not list((frontier / ".mem").glob("*.damaged-*"))
    assert known(frontier) == URLS


def test_a_real_server_killed_and_its_log_damaged(tmp_path: Path) -> None:
    urls = [f"http://h.example/{number}" for number in range(50)]
    with serving(tmp_path) as server:
        assert run_admin(tmp_path, "add", *urls).returncode == 0
        server.kill()
    flipped(1 / 3)(max((tmp_path / ".mem" / STORE_FOLDER).glob("*.log")))
    command = [sys.executable, "-m", "server.urlserver.main", "--dir", str(tmp_path), "--server-port", "0"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert re.search(r"frontier is damaged: \d+ of \d+ changes that were acknowledged are gone", done.stderr)
    assert "Traceback" not in done.stderr
    assert run_admin(tmp_path, "recover").returncode == 0
    with serving(tmp_path, *urls):
        assert run_admin(tmp_path, "audit").returncode == 0


# --- a parcel in a worker's spool -------------------------------------------------------------------------------


def first_bundle(damage: Damage) -> Damage:
    return lambda parcel: damage(min(parcel.glob("*.tar.*[!t]")))


def first_manifest(damage: Damage) -> Damage:
    return lambda parcel: damage(min(parcel.glob("*.manifest")))


def report(damage: Damage) -> Damage:
    return lambda parcel: damage(parcel / REPORT_NAME)


def bundles_deleted(parcel: Path) -> None:
    for path in parcel.glob("*.tar.*"):
        path.unlink()


PARCEL_DAMAGES: dict[str, Damage] = {
    "a bundle: deleted": first_bundle(deleted),
    "a bundle: a byte": first_bundle(flipped(0.5)),
    "a bundle: half": first_bundle(cut(0.5)),
    "a bundle: nothing in it": first_bundle(cut(0.0)),
    "a manifest: deleted": first_manifest(deleted),
    "a manifest: a byte": first_manifest(flipped(0.5)),
    "a manifest: nothing in it": first_manifest(cut(0.0)),
    "all bundles and manifests: deleted": bundles_deleted,
    "report: zeros": report(zeroed(0.0)),
    "report: half": report(cut(0.5)),
    "report: nothing in it": report(cut(0.0)),
    **{f"report: bit {place % 8} at {place} %": report(flipped(place / 100, place % 8)) for place in range(1, 100, 14)},
}


@pytest.mark.parametrize("damage", PARCEL_DAMAGES.values(), ids=PARCEL_DAMAGES)
def test_no_page_of_a_damaged_parcel_is_told_as_stored(
    tmp_path: Path, damage: Damage, caplog: pytest.LogCaptureFixture
) -> None:
    with ExitStack() as stack:
        host = Host(tmp_path, stack)
        host.start_ftp()
        damage(host.parcel(host.job()).folder)
        host.delivery().recover()
        totals = host.coordinator.totals()[0]
        assert (totals.stored, totals.leased, totals.queued) == (0, 0, totals.known), "all are fetched again"
        assert not stored_bundles(host.pages)
        [aside] = (tmp_path / "spool").iterdir()
        assert ".refused." in aside.name
        assert str(aside) in caplog.text


# --- many logs and tables ---------------------------------------------------------------------------------------

WRITE = """
import os, sys
from pathlib import Path
from server.frontier import rocks
from server.frontier.store import Table
rocks._WRITE_BUFFER_BYTES, rocks._WRITE_BUFFERS_BYTES = 64 << 10, 256 << 10
store = rocks.RocksStore(Path(sys.argv[1]))
for number in range(1_500):
    table = number % 3 if number % 50 else 3 + number // 50 % 10  # some tables are seldom written: old logs are needed
    store.write([(Table(table), number.to_bytes(4, "big"), number.to_bytes(4, "big") + os.urandom(1_000))])
    if number % 20 == 0:
        store.sync()
print("acknowledged", flush=True)
sys.stdin.read()
"""
ROWS = 1_500


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("large") / "store"
    assert killed(WRITE, folder) == "acknowledged\n"
    assert len(list(folder.glob("*.log"))) > 3
    assert len(list(folder.glob("*.sst"))) > 3
    return folder


def rows_there(folder: Path) -> int:
    """All rows, each as it was written; DamagedStore if that is not possible, be it only now."""
    store = RocksStore(folder)
    try:
        found = [row for table in Table for row in store.scan(table)]
    finally:
        store.close()
    assert all(key == value[:4] for key, value in found)
    return len(found)


def is_noticed(folder: Path) -> bool:
    """Else all rows are there: the file was not needed any more when the process was killed."""
    try:
        assert rows_there(folder) == ROWS
    except DamagedStore:
        return True
    return False


FILE_DAMAGES: dict[str, Damage] = {
    "a byte": flipped(0.4), "half": cut(0.5), "nothing in it": cut(0.0), "a block": zeroed(0.5, 512),
    "deleted": deleted, "its last bytes": lambda path: os.truncate(path, max(0, path.stat().st_size - 3)),
}  # fmt: skip


@pytest.mark.parametrize("damage", FILE_DAMAGES.values(), ids=FILE_DAMAGES)
@pytest.mark.parametrize("suffix", ["log", "sst"])
def test_no_file_is_damaged_without_a_word(large: Path, tmp_path: Path, suffix: str, damage: Damage) -> None:
    names = sorted(path.name for path in large.glob(f"*.{suffix}"))
    noticed = 0
    for name in [names[0], names[len(names) // 2], names[-1]]:
        folder = shutil.copytree(large, tmp_path / name)
        damage(folder / name)
        told = ""
        try:
            assert rows_there(folder) == ROWS, f"{name} is not needed any more, or else"
        except DamagedStore as error:
            told = str(error)
        noticed += bool(told)
        assert not told or "crawlAdmin recover" in told
        shutil.rmtree(folder)
    assert noticed, "some of them are needed"


@pytest.mark.parametrize("size", [512, 4_096, 1 << 20])
def test_a_log_that_begins_with_zeros(large: Path, tmp_path: Path, size: int) -> None:
    """RocksDB takes them for what was never written, goes on behind them, and has the right last number in the end."""
    noticed = 0
    for log in sorted(large.glob("*.log")):
        folder = shutil.copytree(large, tmp_path / log.name)
        data = (folder / log.name).read_bytes()
        (folder / log.name).write_bytes(bytes(min(size, len(data))) + data[size:])
        noticed += is_noticed(folder)
    assert noticed > 1


def test_logs_that_are_exchanged(large: Path, tmp_path: Path) -> None:
    logs = sorted(path.name for path in large.glob("*.log"))
    noticed = 0
    for one, other in pairwise(logs):
        folder = shutil.copytree(large, tmp_path / one)
        for name, content in ((one, other), (other, one)):
            shutil.copy(large / content, folder / name)
        noticed += is_noticed(folder)
    assert noticed > 1


def test_damage_that_is_met_in_the_background_is_told_at_the_end(large: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(large, tmp_path / "store")
    for path in folder.glob("*.sst"):
        flipped(0.4)(path)
    store = RocksStore(folder)
    for table in store._tables:  # as RocksDB does when it sees fit
        with suppress(Exception):
            table.compact_range(None, None)
    with pytest.raises(DamagedStore, match="crawlAdmin recover"):
        store.close()


@pytest.mark.parametrize("when", ["while it is read", "while it is closed"])
def test_recover_opens_what_has_damaged_tables(
    large: Path, tmp_path: Path, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whenever they are met, nothing may hold the database open then."""
    close = RocksStore.close

    def close_after_background_work(store: RocksStore) -> None:
        for table in store._tables:
            with suppress(Exception):
                table.compact_range(None, None)
        close(store)

    if when == "while it is closed":
        monkeypatch.setattr(RocksStore, "close", close_after_background_work)
    folder = shutil.copytree(large, tmp_path / "store")
    for path in folder.glob("*.sst"):  # all of them: some may be in use no more, or not yet
        flipped(0.4)(path)
    done = recovery.recover(folder, 1)
    assert done is not None
    assert ".sst" in done.damage
    assert done.missing is None, "nobody can tell"


def test_an_older_manifest_is_noticed(large: Path, tmp_path: Path) -> None:
    manifest = next(large.glob("MANIFEST-*"))
    noticed = 0
    for share in (0.2, 0.4, 0.6, 0.8):
        folder = shutil.copytree(large, tmp_path / str(share))
        cut(share)(folder / manifest.name)
        try:
            assert rows_there(folder) == ROWS
        except StoreError:
            noticed += 1
    assert noticed

import sqlite3
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from common.bundle import MANIFEST_SUFFIX, check_manifest, manifest_path, parse_manifest
from common.errors import BundleError
from common.urls import digest
from server.catalogue import FILE_NAME, Catalogue, CatalogueError, CatalogueWriter, Counts
from server.catalogue import writer as writer_module
from server.catalogue.apart import COUNTS
from server.catalogue.stored import stored_manifest
from tests.bundles import CREATED, make_bundle, page_url
from tests.processes import ROOT


def store(directory, domain="example.org", job="1", **options):
    """A bundle as ftpServer leaves it in Pages/."""
    return make_bundle(directory / domain, domain, job, **options)


def add(catalogue, path):
    catalogue.add(path, stored_manifest(path))


def rows(directory):
    """Everything the catalogue says, without the numbers SQLite gives to rows."""
    with Catalogue.open(directory, read_only=True) as catalogue:
        bundles = list(catalogue.bundles())
    with sqlite3.connect(directory / FILE_NAME) as database:
        pages = database.execute(
            "SELECT domain, name, position, digest, url, folder, data_name, page.size, sha1, crawl_time,"
            " status, content_type FROM page JOIN bundle ON bundle.id = page.bundle ORDER BY 1, 2, 3"
        ).fetchall()
    database.close()
    return bundles, pages


def test_a_page_is_found_by_the_digest_of_its_url(tmp_path):
    path = store(tmp_path)
    with Catalogue.open(tmp_path) as catalogue:
        add(catalogue, path)
        [page] = catalogue.pages_of(digest(page_url("example.org", 1)))
        assert tmp_path / page.bundle == path
        assert page.url == page_url("example.org", 1)
        assert (page.data_member, page.xml_member) == (
            "example.org/page1.html/data.html", "example.org/page1.html/data.xml"
        )  # fmt: skip
        assert (page.status, page.content_type, page.crawl_time) == (200, "text/html", 1_700_000_001)
        assert catalogue.pages_of(bytes(20)) == []
        assert catalogue.latest(bytes(20)) is None


def test_the_latest_version_is_the_newest_whatever_the_order_of_arrival(tmp_path):
    with Catalogue.open(tmp_path) as catalogue:
        for job, created in (("2", 1_700_000_200), ("1", 1_700_000_100), ("3", 1_700_000_150)):
            add(catalogue, store(tmp_path, job=job, created=created))
        key = digest(page_url("example.org", 0))
        assert [page.crawl_time for page in catalogue.pages_of(key)] == [
            1_700_000_100, 1_700_000_150, 1_700_000_200
        ]  # fmt: skip
        assert catalogue.latest(key).crawl_time == 1_700_000_200


def test_adding_twice_changes_nothing(tmp_path):
    path = store(tmp_path)
    with Catalogue.open(tmp_path) as catalogue:
        add(catalogue, path)
        before = catalogue.counts()
        add(catalogue, path)
        assert catalogue.counts() == before == Counts(1, 3, 3, path.stat().st_size)


def test_counts_tell_pages_from_urls(tmp_path):
    with Catalogue.open(tmp_path) as catalogue:
        assert catalogue.counts() == Counts(0, 0, 0, 0)
        add(catalogue, store(tmp_path, job="1"))
        add(catalogue, store(tmp_path, job="2"))
        add(catalogue, store(tmp_path, "example.net", pages=1))
        counts = catalogue.counts()
    assert (counts.bundles, counts.pages, counts.urls) == (3, 7, 4)


def test_a_bundle_is_added_completely_or_not_at_all(tmp_path):
    path = store(tmp_path)
    manifest = stored_manifest(path)
    bad_page = replace(manifest.pages[2], size=-1)
    with Catalogue.open(tmp_path) as catalogue:
        with pytest.raises(BundleError, match="bad size"):
            catalogue.add(path, replace(manifest, pages=(*manifest.pages[:2], bad_page)))
        assert catalogue.counts().bundles == 0
        assert catalogue.pages_of(digest(page_url("example.org", 0))) == []
        add(catalogue, path)
        assert catalogue.counts().pages == 3


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("crawl_time", float("nan")), ("crawl_time", "now"), ("crawl_time", True), ("status", 200.0),
        ("status", 2**70), ("digest", "abc"), ("digest", None), ("sha1", "Z" * 40), ("url", None),
        ("url", "x" * 100_000),
    ],
)  # fmt: skip
def test_a_manifest_with_a_bad_field_is_refused(tmp_path, field, value):
    path = store(tmp_path)
    manifest = stored_manifest(path)
    page = replace(manifest.pages[0], meta=replace(manifest.pages[0].meta, **{field: value}))
    with pytest.raises(BundleError, match=field):
        check_manifest(path.name, replace(manifest, pages=(page,)))


def test_a_manifest_of_another_bundle_is_refused(tmp_path):
    path, other = store(tmp_path), store(tmp_path, job="2")
    with pytest.raises(BundleError, match="not that of"):
        check_manifest(path.name, stored_manifest(other))


def test_a_url_that_is_no_unicode_text_is_catalogued_all_the_same(tmp_path):
    path = store(tmp_path)
    manifest = stored_manifest(path)
    meta = replace(manifest.pages[0].meta, url="https://example.org/\udce9")
    with Catalogue.open(tmp_path) as catalogue:
        catalogue.add(path, replace(manifest, pages=(replace(manifest.pages[0], meta=meta),)))
        assert catalogue.latest(bytes.fromhex(meta.digest)).url == "https://example.org/?"


def test_reconcile_adds_what_is_missing_and_drops_what_is_gone(tmp_path):
    stays, goes, comes = (store(tmp_path, job=str(number)) for number in (1, 2, 3))
    other = store(tmp_path, "example.net", container="tar.zst")
    with Catalogue.open(tmp_path) as catalogue:
        add(catalogue, stays)
        add(catalogue, goes)
        goes.unlink()
        changes = catalogue.reconcile()
        assert (changes.added, changes.dropped, changes.broken) == (2, 1, ())
        assert [bundle.path.name for bundle in catalogue.bundles()] == [other.name, stays.name, comes.name]
        assert len(catalogue.pages_of(digest(page_url("example.org", 0)))) == 2
        assert catalogue.reconcile().added == 0


@pytest.mark.parametrize("container", ["tar.bz2", "tar.zst"])
def test_a_bundle_that_lost_its_manifest_is_catalogued_from_the_one_inside(tmp_path, container):
    path = store(tmp_path, container=container)
    with Catalogue.open(tmp_path) as catalogue:
        add(catalogue, path)
    before = rows(tmp_path)
    manifest_path(path).unlink()
    with Catalogue.open(tmp_path) as catalogue:
        catalogue.rebuild()
    assert rows(tmp_path) == before


def test_rebuilding_gives_the_same_rows(tmp_path):
    with Catalogue.open(tmp_path) as catalogue:
        for number in range(20):
            add(catalogue, store(tmp_path, f"h{number % 4}.example.org", str(number), pages=number))
        before = rows(tmp_path)
        changes = catalogue.rebuild(verify=True)
        assert (changes.added, changes.dropped, changes.broken) == (20, 20, ())
    assert rows(tmp_path) == before
    (tmp_path / FILE_NAME).unlink()
    with Catalogue.open(tmp_path) as catalogue:
        catalogue.reconcile()
    assert rows(tmp_path) == before


def test_broken_bundles_are_reported_and_left_alone(tmp_path):
    good, short, altered, empty = (store(tmp_path, job=str(number), padding=2000) for number in range(4))
    short.write_bytes(short.read_bytes()[:-10])
    content = bytearray(altered.read_bytes())
    content[-20] ^= 1
    altered.write_bytes(content)
    manifest_path(empty).unlink()
    empty.write_bytes(b"")
    with Catalogue.open(tmp_path) as catalogue:
        changes = catalogue.rebuild(verify=True)
        named = [f"example.org/{path.name}" for path in (short, altered, empty)]
        assert [name for name, _ in changes.broken] == named
        assert [bundle.name for bundle in catalogue.bundles()] == [good.name]
    assert all(path.exists() for path in (short, altered, empty))


def test_files_that_are_no_bundles_are_overlooked(tmp_path):
    store(tmp_path)
    (tmp_path / ".quarantine" / "example.net").mkdir(parents=True)
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "example.org" / "notes.txt").write_text("mine")
    make_bundle(tmp_path / "example.org", "elsewhere.org")
    make_bundle(tmp_path / ".quarantine", "example.net")
    with Catalogue.open(tmp_path) as catalogue:
        assert catalogue.reconcile().broken == ()
        assert catalogue.counts().bundles == 1


@pytest.mark.parametrize("damage", ["garbage", "middle", "version", "truncated"])
def test_a_damaged_file_is_moved_aside_and_made_anew(tmp_path, damage, caplog):
    with Catalogue.open(tmp_path) as catalogue:
        for number in range(30):
            add(catalogue, store(tmp_path, job=str(number)))
    before = rows(tmp_path)
    file = tmp_path / FILE_NAME
    _damage(file, damage)
    with Catalogue.open(tmp_path):
        pass
    assert rows(tmp_path) == before
    assert len(list(tmp_path.glob(f"{FILE_NAME}.bad-*"))) == 1
    assert "moved aside" in caplog.text


def _damage(file: Path, damage: str) -> None:
    content = file.read_bytes()
    if damage == "garbage":
        file.write_bytes(b"this is no database" * 1000)
    elif damage == "middle":
        file.write_bytes(content[:4096] + bytes(8192) + content[12288:])
    elif damage == "truncated":
        file.write_bytes(content[: len(content) // 2])
    else:
        with sqlite3.connect(file) as database:
            database.execute("PRAGMA user_version = 99")
        database.close()


def test_others_read_while_one_writes(tmp_path):
    with Catalogue.open(tmp_path) as catalogue:
        add(catalogue, store(tmp_path, job="0"))
        program = (
            "import sys; from pathlib import Path; from server.catalogue import Catalogue\n"
            "with Catalogue.open(Path(sys.argv[1]), read_only=True) as catalogue:\n"
            "    for line in sys.stdin: print(catalogue.counts().pages, flush=True)\n"
        )
        reader = subprocess.Popen(
            [sys.executable, "-c", program, tmp_path], cwd=ROOT, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        with reader:
            seen = []
            for number in range(1, 6):
                with catalogue._transaction():
                    catalogue._insert_all([(path := store(tmp_path, job=str(number)), stored_manifest(path))])
                    seen.append(_ask(reader))
                seen.append(_ask(reader))
            reader.stdin.close()
    assert seen == [3, 6, 6, 9, 9, 12, 12, 15, 15, 18]


def _ask(reader):
    reader.stdin.write("\n")
    reader.stdin.flush()
    return int(reader.stdout.readline())


def test_reading_cannot_write_and_says_when_there_is_nothing(tmp_path):
    with pytest.raises(CatalogueError, match="unable to open"):
        Catalogue.open(tmp_path, read_only=True)
    path = store(tmp_path)
    Catalogue.open(tmp_path).close()
    with Catalogue.open(tmp_path, read_only=True) as catalogue, pytest.raises(CatalogueError, match="readonly"):
        add(catalogue, path)


def test_the_writer_catalogues_what_many_threads_put_and_what_was_there_before(tmp_path):
    earlier = store(tmp_path, "earlier.org")
    writer = CatalogueWriter(tmp_path)
    writer.start()
    paths = [store(tmp_path, f"h{number % 3}.org", str(number)) for number in range(60)]

    def put_all(part):
        for path in part:
            writer.put(path, stored_manifest(path))

    threads = [threading.Thread(target=put_all, args=(paths[number::4],)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.close()
    with Catalogue.open(tmp_path, read_only=True) as catalogue:
        assert {bundle.name for bundle in catalogue.bundles()} == {path.name for path in (*paths, earlier)}


def test_what_the_full_queue_turned_away_is_catalogued_before_the_writer_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(writer_module, "QUEUE_LENGTH", 2)
    writer = CatalogueWriter(tmp_path)
    writer.start()
    for number in range(50):
        path = store(tmp_path, job=str(number), pages=1)
        writer.put(path, parse_manifest(manifest_path(path).read_bytes()))
    writer.close()
    with Catalogue.open(tmp_path, read_only=True) as catalogue:
        assert catalogue.counts().bundles == 50


def test_a_database_that_cannot_be_written_stops_nobody(tmp_path, caplog):
    store(tmp_path, job="1")
    (tmp_path / FILE_NAME).mkdir()
    writer = CatalogueWriter(tmp_path)
    writer.start()
    path = store(tmp_path, job="2")
    writer.put(path, stored_manifest(path))
    writer.close()
    assert "no bundle is lost" in caplog.text
    (tmp_path / FILE_NAME).rmdir()
    with Catalogue.open(tmp_path) as catalogue:
        assert catalogue.reconcile().added == 2


def test_the_manifest_beside_has_the_suffix_that_the_walk_overlooks(tmp_path):
    path = store(tmp_path)
    assert {entry.name for entry in path.parent.iterdir()} == {path.name, path.name + MANIFEST_SUFFIX}
    with Catalogue.open(tmp_path) as catalogue:
        assert catalogue.reconcile().added == 1


def test_what_is_set_apart_is_seen_by_nobody_else(tmp_path):
    """A page of job 2 does not count: not as the newest, nor as the first, nor as a URL that is there."""
    for job, created in (("1", CREATED + 100), ("2", CREATED), ("3", CREATED + 200)):
        make_bundle(tmp_path / "a.org", "a.org", job, pages=2 if job == "2" else 1, created=created)
    with Catalogue.open(tmp_path) as catalogue:
        catalogue.reconcile()
        bundles = {bundle.job: bundle for bundle in catalogue.bundles()}
        rows = {job: catalogue.rows_of(bundle) for job, bundle in bundles.items()}
        number = catalogue.set_apart(lambda job, pages: [7 if job == "2" else 0] * len(pages), catalogue.mark())
        shared, other = digest(page_url("a.org", 0)), digest(page_url("a.org", 1))
        assert number == 2
        assert list(catalogue.digests()) == [(shared, 2)]
        assert [page.bundle.name for page in catalogue.pages_of(shared)] == [bundles["1"].name, bundles["3"].name]
        assert catalogue.latest(other) is None
        assert [catalogue.newest_in(bundles[job], catalogue.mark()) for job in "123"] == [set(), set(), {0}]
        assert dict(catalogue.apart()) == {shared: 1, other: 1}
        assert [(each.job, each.why, each.page.url) for each in catalogue.apart_of(other)] == [
            ("2", 7, page_url("a.org", 1))
        ]
        assert {job: catalogue.rows_of(bundle) for job, bundle in bundles.items()} == rows, "it is all there"
        make_bundle(tmp_path / "b.org", "b.org")
        assert catalogue.reconcile().added == 1
        assert len(list(catalogue.digests())) == 1, "what came later has not been judged"
        assert catalogue.set_apart(lambda job, pages: [0] * len(pages), catalogue.mark()) == 0
        assert len(list(catalogue.digests())) == 5


@pytest.mark.parametrize("whole", [True, False])
def test_of_two_pages_under_one_job_the_first_that_came_counts(tmp_path, whole):
    url = digest(page_url("a.org", 0))
    with Catalogue.open(tmp_path) as catalogue:
        for created in (CREATED + 50, CREATED, CREATED + 100):
            make_bundle(tmp_path / "a.org", "a.org", "1", pages=1, created=created)
            catalogue.reconcile()

        def judge(job, pages):
            return [0] * len(pages)

        if whole:
            assert catalogue.set_apart(judge, catalogue.mark()) == 2
            assert [page.crawl_time for page in catalogue.pages_of(url)] == [CREATED + 50]
        else:
            judged = list(catalogue.judged(url, judge))
            assert [each.page.crawl_time for each in judged if each.why == COUNTS] == [CREATED + 50]
            told, number = catalogue.told(url, judge)
            assert number == 3
            assert [each.page.crawl_time for each in told] == [CREATED, CREATED + 50, CREATED + 100]

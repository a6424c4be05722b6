"""crawlExport on folders with bundles: newest revisions only, damage is named, nothing else is lost or touched."""

import io
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from common.bundle import BundleWriter, manifest_path
from common.page import PageText, page_xml
from export import files
from export.index import Record, read
from export.main import main
from export.stored import Harvest
from server.catalogue import FILE_NAME, Catalogue
from tests.bundles import make_bundle, page_meta, page_url
from tests.processes import ROOT

LATER = 1_700_009_999


class Exports:
    """A work folder, and crawlExport on it."""

    def __init__(self, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
        self.folder, self._capfd = folder, capfd
        self.pages = folder / "Pages"
        self.tree = folder / "tree"

    def store(self, domain: str, job: str, urls: Sequence[tuple[str, bytes]], created: int) -> Path:
        """A bundle that the catalogue does not know yet."""
        folder = self.pages / domain
        folder.mkdir(parents=True, exist_ok=True)
        writer = BundleWriter(domain, job, "tar.zst")
        for url, body in urls:
            meta = replace(page_meta(url, body, created), original_url=f"https://{domain}/")
            writer.add(meta, "data.html", body, page_xml(meta, PageText()))
        return writer.write(folder, created)

    def catalogue(self) -> None:
        with Catalogue.open(self.pages) as catalogue:
            catalogue.reconcile()

    def run(self, *arguments: str, code: int = 0) -> str:
        """What was printed on standard error."""
        assert main([*arguments, "--dir", str(self.folder)]) == code
        return self._capfd.readouterr().err

    def index(self, code: int = 0) -> list[Record]:
        output = self.folder / "index.txt"
        self.errors = self.run("index", "--output", str(output), code=code)
        return list(read(io.BytesIO(output.read_bytes())))

    def files(self, code: int = 0) -> dict[str, bytes]:
        self.errors = self.run("files", "--output", str(self.tree), code=code)
        found = (path for path in self.tree.rglob("*") if path.is_file())
        return {str(path.relative_to(self.tree)): path.read_bytes() for path in found}


@pytest.fixture
def exports(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Exports:
    return Exports(tmp_path, capfd)


def _damage(bundle: Path) -> None:
    """The end of it is missing: the pages before are sound."""
    data = bundle.read_bytes()
    bundle.write_bytes(data[: len(data) // 2])


def test_every_page_by_domain_and_order_of_storage(exports: Exports) -> None:
    make_bundle(exports.pages / "b.org", "b.org", "2", created=LATER, pages=1)
    make_bundle(exports.pages / "b.org", "b.org", "10", pages=2)
    make_bundle(exports.pages / "a.org", "a.org", "3", pages=1, container="tar.zst")
    exports.catalogue()
    urls = [record.url for record in exports.index()]
    assert urls == [page_url("a.org", 0), page_url("b.org", 1), page_url("b.org", 0)]
    assert "3 pages" in exports.errors
    files = exports.files()
    assert sorted(files) == ["a.org/page0.html", "b.org/page0.html", "b.org/page1.html"]
    assert b"of job 2" in files["b.org/page0.html"], "the newest revision"


def test_what_arrives_during_an_export_neither_adds_nor_takes_away(exports: Exports) -> None:
    exports.store("a.org", "1", [("http://a.org/x", b"old")], 1)
    exports.store("b.org", "1", [("http://b.org/y", b"old")], 1)
    exports.catalogue()
    with Harvest(exports.pages) as harvest:
        bodies = [page.body for page in harvest.pages("a.org")]
        exports.store("a.org", "2", [("http://a.org/z", b"new")], LATER)
        exports.store("b.org", "2", [("http://b.org/y", b"new")], LATER)
        exports.catalogue()
        bodies += [page.body for page in harvest.pages("b.org")]
        assert bodies == [b"old", b"old"]
        assert harvest.left_out == []
    assert len(exports.index()) == 3


def test_the_same_page_twice_at_the_same_time_is_there_once(exports: Exports) -> None:
    for job in ("1", "2", "3"):
        exports.store("a.org", job, [("http://a.org/x", job.encode())], 5)
    exports.catalogue()
    assert exports.files() == {"a.org/x~.html": b"3"}


def test_a_damaged_bundle_is_named_and_the_rest_exported(exports: Exports) -> None:
    make_bundle(exports.pages / "a.org", "a.org", padding=500_000)
    broken = make_bundle(exports.pages / "b.org", "b.org", padding=500_000)
    gone = make_bundle(exports.pages / "c.org", "c.org")
    make_bundle(exports.pages / "d.org", "d.org")
    exports.catalogue()
    _damage(broken)
    gone.unlink()
    urls = [record.url for record in exports.index(code=1)]
    assert urls == [page_url("a.org", n) for n in range(3)] + [page_url("b.org", 0)] + [
        page_url("d.org", n) for n in range(3)
    ]
    assert f"b.org/{broken.name}: " in exports.errors
    assert "2 pages of it are left out" in exports.errors
    assert f"c.org/{gone.name}: " in exports.errors
    assert len(exports.files(code=1)) == 7


def test_without_a_catalogue_the_bundles_are_enough(exports: Exports) -> None:
    make_bundle(exports.pages / "a.org", "a.org", "1")
    make_bundle(exports.pages / "a.org", "a.org", "2", created=LATER, pages=2)
    assert len(exports.index()) == 3
    assert not (exports.pages / FILE_NAME).exists(), "Pages/ is not ours to write to"
    assert b"of job 2" in exports.files()["a.org/page1.html"]


def test_a_damaged_catalogue_is_told(exports: Exports) -> None:
    make_bundle(exports.pages / "a.org", "a.org")
    (exports.pages / FILE_NAME).write_bytes(b"no database" * 1000)
    assert len(exports.index()) == 3
    assert "made another one from the bundles" in exports.errors


def test_a_bundle_that_is_not_catalogued_is_named_when_it_is_old(exports: Exports) -> None:
    make_bundle(exports.pages / "a.org", "a.org", "1", pages=1)
    exports.catalogue()
    late = make_bundle(exports.pages / "a.org", "a.org", "2", created=LATER)
    assert len(exports.index()) == 1
    os.utime(late, (0, 0))
    assert len(exports.index(code=1)) == 1
    assert f"a.org/{late.name} is not catalogued" in exports.errors


def test_unfinished_and_refused_uploads_are_not_looked_at(exports: Exports) -> None:
    bundle = make_bundle(exports.pages / "a.org", "a.org", pages=1)
    exports.catalogue()
    for name in (".incoming", ".quarantine"):
        (exports.pages / name).mkdir()
        shutil.copy(bundle, exports.pages / name)
        shutil.copy(manifest_path(bundle), exports.pages / name)
    (bundle.parent / (bundle.name + ".part")).write_bytes(b"half")
    assert len(exports.index()) == 1


def test_http_and_https_of_a_host_are_kept_apart(exports: Exports) -> None:
    exports.store("a.org", "1", [("https://a.org/", b"s")], 5)
    exports.store("a.org", "2", [("http://a.org/", b"plain")], 6)
    exports.store("b.org", "2", [("http://b.org/", b"plain")], 6)
    exports.catalogue()
    assert exports.files() == {
        "a.org/index.html": b"s", "a.org+http/index.html": b"plain", "b.org/index.html": b"plain",
    }  # fmt: skip


def test_files_are_replaced_and_others_left_alone(exports: Exports) -> None:
    exports.store("a.org", "1", [("http://a.org/", b"1")], 5)
    exports.catalogue()
    exports.files()
    (exports.tree / "a.org" / "mine.txt").write_bytes(b"mine")
    exports.store("a.org", "2", [("http://a.org/", b"2")], LATER)
    exports.catalogue()
    assert exports.files() == {"a.org/index.html": b"2", "a.org/mine.txt": b"mine"}


def test_a_page_cannot_leave_the_folder(exports: Exports) -> None:
    exports.store("a.org", "1", [("http://a.org/../../x", b"1"), ("http://a.org/..%2f", b"3")], 5)
    exports.store("a.org", "2", [("/etc/x", b"2")], 5)
    exports.catalogue()
    assert set(exports.files(code=1)) == {"a.org/!2e!2e/!2e!2e/x~.html", "a.org/!2e.%2f"}
    assert "bad url: '/etc/x'" in exports.errors


def test_a_crawl_without_pages_gives_an_empty_index(exports: Exports) -> None:
    exports.pages.mkdir()
    exports.catalogue()
    assert exports.index() == []
    assert exports.files() == {}


def test_no_crawl_is_told(exports: Exports) -> None:
    assert f"there are no pages in {exports.pages}" in exports.run("index", code=2)
    exports.pages.mkdir()
    assert "--dir" in exports.run("files", "--output", str(exports.tree), code=2)
    assert not exports.tree.exists()


def test_bundles_may_be_elsewhere(exports: Exports) -> None:
    make_bundle(exports.folder / "harvest" / "a.org", "a.org", pages=2)
    assert "2 pages" in exports.run("index", "--directory", "harvest")


@pytest.mark.parametrize("command", ["index", "files"])
def test_output_that_cannot_be_written_is_told(exports: Exports, command: str) -> None:
    make_bundle(exports.pages / "a.org", "a.org")
    (exports.folder / "file").write_text("")
    output = exports.folder / "file" / "x"
    assert f"cannot write to {output}: Not a directory" in exports.run(command, "--output", str(output), code=2)


def test_a_folder_in_the_way_is_told(exports: Exports) -> None:
    make_bundle(exports.pages / "a.org", "a.org", pages=1)
    (exports.tree / "a.org" / "page0.html").mkdir(parents=True)
    assert "page0.html: Is a directory" in exports.run("files", "--output", str(exports.tree), code=2)
    assert "Is a directory" in exports.run("index", "--output", str(exports.tree), code=2)
    assert [path.name for path in exports.folder.rglob("*.part")] == []


def test_a_full_disk_is_told(exports: Exports) -> None:
    make_bundle(exports.pages / "a.org", "a.org")
    assert "cannot write to /dev/full: No space left on device" in exports.run("index", "--output", "/dev/full", code=2)


def test_an_index_that_cannot_be_finished_leaves_the_old_one(exports: Exports) -> None:
    make_bundle(exports.pages / "a.org", "a.org", pages=1000)
    exports.catalogue()
    output = exports.folder / "index.txt"
    output.write_text("old")
    done = _shell(exports, f"--output {output}", "ulimit -f 64; ")  # kilobytes in a file
    assert done.returncode == 2
    assert done.stderr == f"{_all_count(exports)}crawlExport: cannot write to {output}: File too large\n"
    assert output.read_text() == "old"
    assert list(exports.folder.glob(".*")) == []


def test_capitals_are_told_apart_everywhere(exports: Exports, monkeypatch: pytest.MonkeyPatch) -> None:
    exports.store("a.org", "1", [("http://a.org/A.html", b"1"), ("http://a.org/a.html", b"2")], 5)
    assert set(exports.files()) == {"a.org/A.html", "a.org/a.html"}
    shutil.rmtree(exports.tree)
    monkeypatch.setattr(files, "_takes_capitals_for_small_letters", lambda folder: True)
    assert set(exports.files()) == {"a.org/A~1.html", "a.org/a.html"}


def _all_count(exports: Exports) -> str:
    return f"crawlExport: no frontier in {exports.folder / '.mem'} tells which pages were reported: all count\n"


def _shell(exports: Exports, rest: str, before: str = "") -> subprocess.CompletedProcess[str]:
    command = f"{before}{sys.executable} -m export.main index --all-links --dir {exports.folder} {rest}"
    return subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True)


def test_standard_output(exports: Exports) -> None:
    make_bundle(exports.pages / "a.org", "a.org", pages=200)
    done = _shell(exports, "")
    assert len(list(read(io.BytesIO(done.stdout.encode())))) == 200
    assert done.returncode == 0
    done = _shell(exports, "> /dev/full")
    assert done.returncode == 2
    told = _all_count(exports)
    assert done.stderr == f"{told}crawlExport: cannot write to standard output: No space left on device\n"
    done = _shell(exports, "| head -c 10")
    assert done.stderr in (told, f"{told}crawlExport: 200 pages\n")

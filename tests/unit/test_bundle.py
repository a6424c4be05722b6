"""Bundles: what goes in comes out, and no damage goes unnoticed. Each test runs on both containers."""

import bz2
import hashlib
import io
import json
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import zstandard

from common import bundle
from common.bundle import BundleWriter, Manifest, limits, reader
from common.bundle.manifest import head_line, packed
from common.bundle.writer import _tar_header
from common.errors import BundleError, UnsoundBundle
from common.page import PageMeta, PageText, page_xml
from common.urls import digest
from tests.forged import Forgery

Page = tuple[PageMeta, str, bytes, bytes]


@pytest.fixture(params=bundle.FORMATS)
def container(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def _page(number: int, body: bytes) -> Page:
    url = f"http://example.org/Seite-{number}/%C3%A4?q={number}"
    sha1 = hashlib.sha1(body).hexdigest()
    title = "Title\U0001f577\x85\n"
    own = digest(url).hex()
    meta = PageMeta(url, url, url, title, 1.7e9, 200, "text/html", "utf-8", "", "", "", sha1, own)
    return meta, "data.html", body, page_xml(meta, PageText(text=f"text {number}"))


PAGES = [_page(number, body) for number, body in enumerate([b"", b"<p>x</p>", bytes(range(256)) * 5, b"a" * 100_000])]


def _write(folder: Path, container: str, pages: list[Page] = PAGES) -> Path:
    writer = BundleWriter("example.org", "job-1", container)
    for page in pages:
        writer.add(*page)
        if writer.has_piece:
            writer.squeeze(writer.take_piece())
    return writer.write(folder, 1_700_000_000)


def _contents(path: Path) -> list[Page]:
    return [(entry.meta, entry.data_name, body, xml) for entry, body, xml in bundle.read_pages(path)]


def _decompressed(path: Path) -> bytes:
    data = path.read_bytes()
    if path.suffix == ".bz2":
        return bz2.decompress(data)
    return zstandard.ZstdDecompressor().decompressobj().decompress(data)


def _compressed(data: bytes, container: str) -> bytes:
    return bz2.compress(data) if container == "tar.bz2" else zstandard.ZstdCompressor().compress(data)


def _rewritten(path: Path, container: str, members: list[tuple[str, bytes]]) -> None:
    """Replace a bundle by one with other members, correctly packed."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    path.write_bytes(_compressed(buffer.getvalue(), container))


def _members(path: Path) -> list[tuple[str, bytes]]:
    with tarfile.open(fileobj=io.BytesIO(_decompressed(path))) as tar:
        return [(member.name, tar.extractfile(member).read()) for member in tar]  # type: ignore[union-attr]


def test_pages_come_back(tmp_path: Path, container: str) -> None:
    path = _write(tmp_path, container)
    assert path.name == f"example.org.1700000000.job-1.{container}"
    assert _contents(path) == PAGES


def test_half_a_surrogate_is_replaced(tmp_path: Path, container: str) -> None:
    """It is no character, so nobody could write it down again; whole pairs are what they mean."""
    meta, *rest = _page(0, b"x")
    path = _write(tmp_path, container, [(replace(meta, title="a\ud800b\ud83d\udd77"), *rest)])
    assert [entry.meta.title for entry in bundle.read_manifest(path).pages] == ["a\ufffdb\U0001f577"]
    assert [page[0].title for page in _contents(path)] == ["a\ufffdb\U0001f577"]


def test_other_programs_can_read_it(tmp_path: Path, container: str) -> None:
    path = _write(tmp_path, container)
    folders = [entry.folder for entry in bundle.read_manifest(path).pages]
    expected = [f"{folder}/{name}" for folder in folders for name in ("data.html", "data.xml")]
    assert [name for name, _ in _members(path)] == ["MANIFEST.jsonl", *expected]


def test_an_empty_bundle_is_a_bundle(tmp_path: Path, container: str) -> None:
    path = _write(tmp_path, container, [])
    assert _contents(path) == []
    assert bundle.manifest_inside(path).pages == ()


def test_a_large_bundle_goes_through_a_file(tmp_path: Path, container: str) -> None:
    pages = [_page(number, bytes([number]) * 400_000) for number in range(5)]
    assert _contents(_write(tmp_path, container, pages)) == pages


def test_the_manifest_inside_equals_the_one_beside(tmp_path: Path, container: str) -> None:
    path = _write(tmp_path, container)
    beside = bundle.read_manifest(path)
    assert beside.bundle_sha256 == hashlib.sha256(path.read_bytes()).hexdigest() == bundle.file_sha256(path)
    assert beside.bundle_size == path.stat().st_size
    assert bundle.manifest_inside(path) == replace(beside, bundle_sha256="", bundle_size=0)
    assert [(page.size, page.meta) for page in beside.pages] == [(len(page[2]), page[0]) for page in PAGES]


def test_without_the_file_beside_the_manifest_is_found_inside(tmp_path: Path, container: str) -> None:
    path = _write(tmp_path, container)
    beside = bundle.read_manifest(path)
    bundle.manifest_path(path).write_bytes(b"broken")
    assert bundle.read_manifest(path) == replace(beside, bundle_sha256="", bundle_size=0)
    bundle.manifest_path(path).unlink()
    assert bundle.read_manifest(path) == replace(beside, bundle_sha256="", bundle_size=0)


@pytest.mark.parametrize("twentieth", range(20))
def test_a_truncated_bundle_is_noticed(tmp_path: Path, container: str, twentieth: int) -> None:
    path = _write(tmp_path, container)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * twentieth // 20])
    with pytest.raises(BundleError):
        _contents(path)


@pytest.mark.parametrize("missing", range(1, 10))
def test_a_few_missing_bytes_do_no_harm(tmp_path: Path, container: str, missing: int) -> None:
    """The end of a file is a checksum: without it, all pages are there and match their digests, or it is refused."""
    path = _write(tmp_path, container)
    sha256 = bundle.read_manifest(path).bundle_sha256
    path.write_bytes(path.read_bytes()[:-missing])
    assert bundle.file_sha256(path) != sha256
    assert _unharmed_or_refused(path)


def test_no_flipped_byte_goes_unnoticed(tmp_path: Path, container: str) -> None:
    """Reading refuses the file, or gives exactly what was stored; the digest beside it is never the same."""
    path = _write(tmp_path, container)
    manifest = bundle.read_manifest(path)
    data = bytearray(path.read_bytes())
    for position in range(0, len(data), max(1, len(data) // 150)):
        data[position] ^= 0x55
        path.write_bytes(data)
        assert bundle.file_sha256(path) != manifest.bundle_sha256
        assert _unharmed_or_refused(path)
        data[position] ^= 0x55


def _unharmed_or_refused(path: Path) -> bool:
    try:
        return _contents(path) == PAGES
    except BundleError:
        return True


def test_no_flipped_byte_in_the_manifest_goes_unnoticed(tmp_path: Path, container: str) -> None:
    path = bundle.manifest_path(_write(tmp_path, container))
    manifest = bundle.parse_manifest(path.read_bytes())
    data = bytearray(path.read_bytes())
    for position in range(len(data)):
        data[position] ^= 0x55
        assert _manifest_or_none(bytes(data)) in (None, manifest), position
        data[position] ^= 0x55
        assert _manifest_or_none(bytes(data[:position])) in (None, manifest), position


def _manifest_or_none(data: bytes) -> Manifest | None:
    try:
        return bundle.parse_manifest(data)
    except BundleError:
        return None


def test_a_missing_member_is_noticed(tmp_path: Path, container: str) -> None:
    path = _write(tmp_path, container)
    members = _members(path)
    for missing in range(len(members)):
        _rewritten(path, container, members[:missing] + members[missing + 1 :])
        with pytest.raises(BundleError):
            _contents(path)


def test_an_extra_member_is_noticed(tmp_path: Path, container: str) -> None:
    path = _write(tmp_path, container)
    _rewritten(path, container, [*_members(path), ("example.org/more/data.html", b"x")])
    with pytest.raises(BundleError, match="does not list"):
        _contents(path)


def test_changed_content_is_noticed(tmp_path: Path, container: str) -> None:
    path = _write(tmp_path, container)
    members = _members(path)
    for changed in range(1, len(members)):
        name, data = members[changed]
        _rewritten(path, container, [*members[:changed], (name, data + b"x"), *members[changed + 1 :]])
        with pytest.raises(BundleError, match=r"digest|larger"):
            _contents(path)


def test_a_link_instead_of_a_file_is_noticed(tmp_path: Path, container: str) -> None:
    path = _write(tmp_path, container)
    (manifest_name, manifest), (name, _), *_ = _members(path)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        info = tarfile.TarInfo(manifest_name)
        info.size = len(manifest)
        tar.addfile(info, io.BytesIO(manifest))
        link = tarfile.TarInfo(name)
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    path.write_bytes(_compressed(buffer.getvalue(), container))
    with pytest.raises(BundleError):
        _contents(path)


def test_what_is_no_bundle_is_refused(tmp_path: Path, container: str) -> None:
    path = tmp_path / f"example.org.1.1.{container}"
    for content in (b"", b"not packed", _compressed(b"", container), _compressed(b"no tar" * 1000, container)):
        path.write_bytes(content)
        with pytest.raises(BundleError):
            bundle.manifest_inside(path)
        with pytest.raises(BundleError):
            _contents(path)


def test_a_file_that_is_not_there_is_a_bundle_error(tmp_path: Path, container: str) -> None:
    with pytest.raises(BundleError):
        bundle.read_manifest(tmp_path / f"example.org.1.1.{container}")


def test_a_manifest_bomb_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_MANIFEST_ROOM", 1 << 20)
    bomb = zstandard.ZstdCompressor().compress(b'{"version": 1}\n' * 1_000_000)
    assert len(bomb) < 10_000
    with pytest.raises(BundleError):
        bundle.parse_manifest(bomb)


def test_a_manifest_bomb_inside_is_refused(tmp_path: Path, container: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _write(tmp_path, container)
    (name, manifest), *members = _members(path)
    _rewritten(path, container, [(name, manifest + b"\n" * 2_000_000), *members])
    monkeypatch.setattr(limits, "_MANIFEST_ROOM", 1 << 20)
    with pytest.raises(BundleError):
        bundle.manifest_inside(path)


HEAD = {"version": 1, "domain": "a", "job": "1", "created": 1, "bundle_sha256": "", "bundle_size": 0}


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [[]],
        ["text"],
        [HEAD | {"version": 2}],
        [HEAD | {"more": 1}],
        [{"version": 1, "domain": "a"}],
        [HEAD, {}],
        [HEAD, []],
        [HEAD, {"folder": "x"}],
    ],
)
def test_odd_manifests_are_refused(lines: list[object]) -> None:
    text = "".join(json.dumps(line) + "\n" for line in lines)
    with pytest.raises(BundleError):
        bundle.parse_manifest(zstandard.ZstdCompressor().compress(text.encode()))


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("example.org.1700000000.17.tar.bz2", ("example.org", 1_700_000_000, "17", "tar.bz2")),
        ("a.org.1.17-00ff00ff00ff00ff.tar.zst", ("a.org", 1, "17-00ff00ff00ff00ff", "tar.zst")),
        ("a.1.2.3.4.tar.zst", ("a.1.2", 3, "4", "tar.zst")),
        ("example.org+8080.1.a-B_c.tar.zst", ("example.org+8080", 1, "a-B_c", "tar.zst")),
        ("example.org.tar.bz2", None),
        ("example.org.1.2.tar", None),
        ("example.org.1.2.tar.bz2.manifest", None),
        ("example.org.x.2.tar.bz2", None),
        (".1.2.tar.bz2", None),
    ],
)
def test_file_names(name: str, parts: tuple[str, int, str, str] | None) -> None:
    assert bundle.parse_bundle_name(name) == parts
    if parts:
        assert bundle.bundle_name(*parts) == name


@pytest.mark.parametrize("size", [0, 1, 511, 8**11 - 1, 8**11])
@pytest.mark.parametrize("name", ["a", "a/b.html", "x" * 100, "x" * 101, "ž/data.html", "a" * 300])
def test_tar_headers_are_those_of_the_library(name: str, size: int) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mtime = size, 1_700_000_000
    assert _tar_header(name, size, 1_700_000_000) == info.tobuf(tarfile.PAX_FORMAT)


@pytest.mark.parametrize(("times", "is_taken"), [(30, True), (60, False), (1_000, False)])
def test_a_manifest_is_not_many_times_as_long_as_it_is_packed(
    monkeypatch: pytest.MonkeyPatch, times: int, is_taken: bool
) -> None:
    """Each line is a sound one or none, so that nothing but its length can be wrong."""
    monkeypatch.setattr(limits, "_MANIFEST_ROOM", 0)
    head = head_line(Manifest("example.org", "1", 1_700_000_000, ()))
    length = len(packed(head)) * times
    data = packed(head + b"\n" * (length - len(head)))
    assert times / 2 < length / len(data) < times, "the line feeds take next to nothing"
    if is_taken:
        assert bundle.parse_manifest(data).pages == ()
    else:
        with pytest.raises(UnsoundBundle, match="more than the"):
            bundle.parse_manifest(data)


@pytest.mark.parametrize("read", [bundle.read_pages, bundle.verify_pages])
@pytest.mark.parametrize("larger", ["body", "xml"])
def test_a_member_is_not_larger_than_it_may_be(
    tmp_path: Path, container: str, larger: str, read: Callable[[Path], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though its digest is that of the manifest: nobody has to read 100 GB to see that."""
    forged = Forgery(container=container, row={"size": 20} if larger == "body" else {})
    if larger == "xml":
        monkeypatch.setattr(reader, "MAX_XML_BYTES", 20)
    with pytest.raises(UnsoundBundle, match=r"data\.(html|xml) is larger than it may be"):
        list(read(forged.write(tmp_path)) or ())

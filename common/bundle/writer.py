"""Makes bundles. Collects pages in memory, and compresses while they arrive."""

import bz2
import hashlib
import os
import tarfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from struct import Struct

import zstandard

from common.bundle.manifest import Manifest, PageEntry, head_line, packed, page_line
from common.bundle.names import MANIFEST_NAME, bundle_name, manifest_path
from common.files import publish, sync_directory
from common.names import page_folder
from common.page import PageMeta

# Blocks of 300 KB instead of 900: a fifth faster, a sixth larger (measured on pages of documentation).
_BZ2_LEVEL = 3
_PIECE_BYTES = 3 * 300_000
# POSIX ustar: name, mode, owner, group, size, time, checksum, type, link, magic; the rest is empty.
_TAR_HEADER = Struct("100s8s8s8s12s12s8s1s100s8s247x")
_OWNER = (b"0000644", b"0000000", b"0000000")


class BundleWriter:
    """Collects pages of one domain in memory, then writes the bundle. Guarded by its owner, but for `squeeze`.

    bz2 takes far longer than anything else that is done with a page, so it is made piece by piece while pages
    arrive: each piece is a stream of its own, which every bzip2 reads as one file. Pieces are as long as whole
    blocks of bz2, so this costs no space. zstd is quick, and many of its readers stop after the first frame.
    """

    def __init__(self, domain: str, job: str, container: str) -> None:
        self.domain = domain
        self.job = job
        self.pages: list[PageEntry] = []
        self._container = container
        self._loose: list[bytes] = []
        self._loose_bytes = 0
        self._taken: list[bytes] = []  # what was loose and is to become the next piece
        self._pieces: list[bytes] = []

    def add(self, meta: PageMeta, data_name: str, body: bytes, xml: bytes) -> int:
        """Add one page; returns how many bytes it takes. Its folder follows from the address that answered for it."""
        entry = PageEntry(page_folder(meta.original_url), data_name, len(body), _sha1(xml), meta)
        time = int(meta.crawl_time)
        blocks = (*_member(entry.data_member, body, time), *_member(entry.xml_member, xml, time))
        size = sum(map(len, blocks))
        self.pages.append(entry)
        self._loose += blocks
        self._loose_bytes += size
        return size

    @property
    def has_piece(self) -> bool:
        """Whether enough has come together to squeeze it, or could not be squeezed before."""
        return bool(self._taken) or (self._loose_bytes >= _PIECE_BYTES and self._container == "tar.bz2")

    def take_piece(self) -> list[bytes]:
        """What has come together, to be given to `squeeze` at once. It stays here until that has succeeded."""
        if not self._taken:
            self._taken, self._loose, self._loose_bytes = self._loose, [], 0
        return self._taken

    def squeeze(self, piece: Sequence[bytes]) -> int:
        """Compress a piece; returns by how many bytes it became smaller. Pages may be added meanwhile."""
        size = sum(map(len, piece))
        self._pieces.append(_bz2(piece))
        self._taken = []
        return size - len(self._pieces[-1])

    def write(self, folder: Path, created: int) -> Path:
        """Write bundle and manifest into `folder` and return the bundle's path; both are on disk then."""
        manifest = Manifest(self.domain, self.job, created, ())
        rows = b"".join(map(page_line, self.pages))
        path = folder / bundle_name(self.domain, created, self.job, self._container)
        hasher = hashlib.sha256()
        size = 0
        with path.open("wb") as file:
            for chunk in self._chunks(_member(MANIFEST_NAME, head_line(manifest) + rows, created)):
                hasher.update(chunk)
                size += file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        proven = replace(manifest, bundle_sha256=hasher.hexdigest(), bundle_size=size)
        publish(manifest_path(path), [packed(head_line(proven) + rows)])
        sync_directory(folder)
        return path

    def _chunks(self, manifest: Iterable[bytes]) -> Iterator[bytes]:
        end = bytes(2 * tarfile.BLOCKSIZE)
        if self._container == "tar.bz2":
            yield _bz2(manifest)
            yield from self._pieces
            yield _bz2((*self._taken, *self._loose, end))
        else:
            compressor = zstandard.ZstdCompressor(write_checksum=True).compressobj()
            yield from filter(None, map(compressor.compress, (*manifest, *self._taken, *self._loose, end)))
            yield compressor.flush()


def _bz2(blocks: Iterable[bytes]) -> bytes:
    compressor = bz2.BZ2Compressor(_BZ2_LEVEL)
    return b"".join([*map(compressor.compress, blocks), compressor.flush()])


def _member(name: str, data: bytes, time: int) -> tuple[bytes, bytes, bytes]:
    return _tar_header(name, len(data), time), data, bytes(-len(data) % tarfile.BLOCKSIZE)


def _tar_header(name: str, size: int, time: int) -> bytes:
    """As tarfile makes it, which takes eight times as long; it does so for names that need more than a block."""
    if len(name) <= tarfile.LENGTH_NAME and name.isascii() and 0 <= size < 8**11 and 0 <= time < 8**11:
        numbers = b"%011o" % size, b"%011o" % time
        header = _TAR_HEADER.pack(name.encode(), *_OWNER, *numbers, b" " * 8, b"0", b"", b"ustar\x0000")
        return header[:148] + b"%06o\0 " % sum(header) + header[156:]
    info = tarfile.TarInfo(name)
    info.size = size
    info.mtime = time
    return info.tobuf(tarfile.PAX_FORMAT)


def _sha1(data: bytes) -> str:
    return hashlib.sha1(data, usedforsecurity=False).hexdigest()

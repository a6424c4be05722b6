"""The tar file of a bundle as a stream: unpacked piece by piece, one member after the other.

tarfile itself reads what a header announces, however much that is, and one header in another without end; so headers
are read here. Members are plain files; a name that is too long for its header comes before it, as POSIX or GNU do it.
"""

import bz2
import re
import tarfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import zstandard

from common.bundle.limits import MAX_NAME_BYTES, MAX_WINDOW_BYTES, PIECE_BYTES
from common.errors import BundleError, UnsoundBundle

_PAX_RECORD = re.compile(rb"([0-9]{1,6}) ([^=\n]{1,100})=")
_FILES = (tarfile.REGTYPE, tarfile.AREGTYPE)
_END = bytes(tarfile.BLOCKSIZE)
_MAX_EXTENSIONS = 2  # headers before that of a member


@dataclass(frozen=True, slots=True)
class Member:
    """A file in the bundle; its content is what `content` gives next."""

    name: str
    size: int


class Container:
    """The members of one bundle, in order. Of what it unpacks to, no more than `room` bytes are ever looked at.

    A context: it turns what bz2, zstd and tarfile raise on damaged input into BundleError, with the name of the bundle.
    """

    def __init__(self, bundle: Path, room: int) -> None:
        self._bundle = bundle
        self._room = room
        self._left = room
        self._stream: IO[bytes] | None = None
        self._skip = 0  # bytes up to the next header

    def __enter__(self) -> "Container":
        with _mapped(self._bundle):
            self._stream = _opened(self._bundle)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._stream is not None:
            with suppress(OSError):
                self._stream.close()
        _raise_mapped(self._bundle, error)

    def next(self) -> Member | None:
        """The next member; what is left of the last one is passed over. None at the end."""
        for _ in self._pieces(self._skip):
            pass
        self._skip, name = 0, ""
        for _ in range(_MAX_EXTENSIONS + 1):
            block = self._exactly(tarfile.BLOCKSIZE)
            if block == _END:
                return None
            info = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
            if info.type in _FILES and info.size >= 0:
                self._skip = _padded(info.size)
                return Member(name or info.name, info.size)
            name = self._long_name(info) or name
        raise UnsoundBundle("a member has more headers than it may")

    def content(self, member: Member) -> Iterator[bytes]:
        """What is in the member that came last."""
        left = member.size
        for piece in self._pieces(member.size):
            self._skip -= len(piece)
            left -= len(piece)
            yield piece
        if left:
            raise BundleError(f"{member.name} ends too soon")

    def _long_name(self, info: tarfile.TarInfo) -> str:
        if info.type not in (tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME):
            raise UnsoundBundle(f"{info.name!r:.200} is no file")
        if not 0 <= info.size <= MAX_NAME_BYTES:
            raise UnsoundBundle(f"the name of a member has {info.size} bytes")
        data = self._exactly(_padded(info.size))[: info.size]
        if info.type == tarfile.XHDTYPE:
            return _path_in(data)
        return data.rstrip(b"\0").decode("utf-8", "surrogateescape")

    def _exactly(self, size: int) -> bytes:
        data = b"".join(self._pieces(size))
        if len(data) != size:
            raise BundleError("it ends too soon")
        return data

    def _pieces(self, size: int) -> Iterator[bytes]:
        assert self._stream is not None
        while size:
            if self._left <= 0:
                raise UnsoundBundle(f"it unpacks to more than the {self._room} bytes that it may")
            piece = self._stream.read(min(size, PIECE_BYTES))
            if not piece:
                return
            size -= len(piece)
            self._left -= len(piece)
            yield piece


class _mapped:
    def __init__(self, bundle: Path) -> None:
        self._bundle = bundle

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        _raise_mapped(self._bundle, error)


def _raise_mapped(bundle: Path, error: BaseException | None) -> None:
    if isinstance(error, UnsoundBundle):
        raise UnsoundBundle(f"{bundle.name}: {error}") from error
    if isinstance(error, BundleError):
        raise BundleError(f"{bundle.name}: {error}") from error
    if isinstance(error, tarfile.TarError | EOFError | zstandard.ZstdError | ValueError | OSError | OverflowError):
        raise BundleError(f"{bundle.name} cannot be read: {error}") from error


def _opened(bundle: Path) -> IO[bytes]:
    if not bundle.name.endswith(".zst"):
        return cast(IO[bytes], bz2.open(bundle, "rb"))
    unpacker: Any = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES)
    return cast(IO[bytes], unpacker.stream_reader(bundle.open("rb"), read_size=PIECE_BYTES, closefd=True))


def _padded(size: int) -> int:
    return size + -size % tarfile.BLOCKSIZE


def _path_in(data: bytes) -> str:
    """The name in a POSIX extended header: lines of `LENGTH KEY=VALUE`."""
    path, position = "", 0
    while match := _PAX_RECORD.match(data, position):
        end = position + int(match[1])
        if end <= match.end() or end > len(data):
            raise BundleError("a header is damaged")
        if match[2] == b"size":
            raise UnsoundBundle("a member has more bytes than any page")
        if match[2] == b"path":
            path = data[match.end() : end - 1].decode("utf-8", "surrogateescape")
        position = end
    return path

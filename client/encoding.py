"""Undoes Content-Encoding while a body arrives, with a limit on the unpacked size. Looks at no other header and opens
no archives: a .gz document sent without Content-Encoding stays as it is.
"""

import io
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

import brotli
import zstandard

from common.errors import PavoukError

ACCEPT_ENCODING = "gzip, deflate, br, zstd"

_MAX_ENCODINGS = 5  # in a row; honest servers use one
_MAX_MEMBERS = 10_000  # of one gzip body: each costs a new decompressor
_GZIP_MAGIC = b"\x1f\x8b"
_PIECE = 1 << 18  # unpacked at once: what a bomb can make of a few bytes before anybody counts
_ZSTD_SLICE = 1 << 8  # its output has no limit, and 4 bytes can make 128 KB: a slice makes 8 MB at most
_ZSTD_MAX_WINDOW = 1 << 23  # RFC 9659: 8 MB for content encodings


class EncodingError(PavoukError):
    """The body is not in the encoding that the header names, or the encoding is unknown."""


class TooLarge(PavoukError):
    """The body unpacks to more than the limit."""


class Decoder:
    """One body on its way in, without the encodings of the header. Holds what is unpacked, and nothing else of it.

    `partial` takes what there is of a body that breaks off or is too large.
    """

    def __init__(self, content_encoding: str, max_bytes: int, partial: bool = False) -> None:
        names = [name for part in content_encoding.split(",") if (name := part.strip().lower())]
        if len(names) > _MAX_ENCODINGS:
            raise EncodingError(f"{len(names)} content encodings in a row")
        self._layers = [_Layer(name, max_bytes, partial) for name in reversed(names) if name != "identity"]
        self._max_bytes = max_bytes
        self._partial = partial
        self._unpacked = io.BytesIO()  # hands out its content without a copy

    @property
    def size(self) -> int:
        """Bytes that are unpacked so far."""
        return self._unpacked.tell()

    @property
    def is_full(self) -> bool:
        """Whether a partial body has all that it may have."""
        return self._partial and self._unpacked.tell() >= self._max_bytes

    @property
    def is_complete(self) -> bool:
        """Whether all encodings have come to their end."""
        return all(layer.has_ended for layer in self._layers)

    def feed(self, data: bytes) -> None:
        """The next part of the body as it was received, not too long: EncodingError or TooLarge end it."""
        pieces: Iterable[bytes] = [data] if data else []
        for layer in self._layers:
            pieces = layer.undone(pieces)
        try:
            for piece in pieces:
                self._add(piece)
                if self.is_full:
                    return
        except TooLarge:
            self._unpacked = io.BytesIO()
            raise

    def _add(self, piece: bytes) -> None:
        room = self._max_bytes - self._unpacked.tell()
        if len(piece) > room and not self._partial:
            raise TooLarge(f"unpacks to more than {self._max_bytes} bytes")
        self._unpacked.write(piece[:room] if len(piece) > room else piece)

    def body(self) -> bytes:
        """All of it; EncodingError if it has no proper end."""
        for layer in self._layers:
            layer.check_end()
        return self._unpacked.getvalue()


class _Engine(Protocol):
    """Undoes one encoding. `unpack` gives pieces, and stops being asked when they are too many."""

    def unpack(self, data: bytes) -> Iterator[bytes]: ...

    @property
    def ended(self) -> bool: ...


class _Layer:
    """One of the encodings of a body: its engine, and what is common to all."""

    def __init__(self, name: str, max_bytes: int, partial: bool) -> None:
        if name not in _ENGINES:
            raise EncodingError(f"unknown content encoding {name[:40]!r}")
        self._name = name
        self._engine: _Engine = _ENGINES[name]()
        self._max_bytes = max_bytes
        self._partial = partial
        self._used = False
        self._made = 0

    def undone(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        try:
            for piece in pieces:
                self._used = True
                for made in self._engine.unpack(piece):
                    yield self._counted(made)
        except (zlib.error, brotli.error, zstandard.ZstdError) as error:
            raise EncodingError(f"bad {self._name} data: {error}") from error

    def _counted(self, made: bytes) -> bytes:
        """Also between two encodings there is a limit: what is unpacked there may vanish in the next."""
        self._made += len(made)
        if self._made > self._max_bytes and not self._partial:
            raise TooLarge(f"unpacks to more than {self._max_bytes} bytes")
        return made

    @property
    def has_ended(self) -> bool:
        # Servers name an encoding for empty bodies too.
        return not self._used or self._engine.ended

    def check_end(self) -> None:
        if not self._partial and not self.has_ended:
            raise EncodingError(f"the {self._name} data break off")


class _Gzip:
    """All members one after the other (RFC 1952 §2.2). Junk behind the last is ignored, as gzip does it."""

    def __init__(self) -> None:
        self._engine = zlib.decompressobj(31)
        self._members = 1
        self._between = b""  # the first byte behind a member: not enough to tell another from junk
        self._junk = False

    @property
    def ended(self) -> bool:
        return self._engine.eof

    def unpack(self, data: bytes) -> Iterator[bytes]:
        while data and not self._junk:
            if self._engine.eof:
                data, self._between = self._between + data, b""
                if len(data) < len(_GZIP_MAGIC):
                    self._between = data
                    return
                self._next_member(data)
                continue
            yield self._engine.decompress(data, _PIECE)
            data = self._engine.unused_data or self._engine.unconsumed_tail

    def _next_member(self, data: bytes) -> None:
        if not data.startswith(_GZIP_MAGIC):
            self._junk = True
            return
        self._engine = zlib.decompressobj(31)
        self._members += 1
        if self._members > _MAX_MEMBERS:
            raise EncodingError(f"more than {_MAX_MEMBERS} gzip members")


class _Deflate:
    """In zlib's frame as RFC 9110 §8.4.1.2 says, or raw as some servers send it and browsers take it."""

    def __init__(self) -> None:
        self._engine = zlib.decompressobj(zlib.MAX_WBITS)
        self._head: bytes | None = b""  # until something could be unpacked: it may yet turn out to be raw

    @property
    def ended(self) -> bool:
        return self._engine.eof

    def unpack(self, data: bytes) -> Iterator[bytes]:
        while data and not self._engine.eof:
            if self._head is not None:
                self._head += data
            try:
                made = self._engine.decompress(data, _PIECE)
            except zlib.error:
                if self._head is None:
                    raise
                data, self._head = self._head, None
                self._engine = zlib.decompressobj(-zlib.MAX_WBITS)
                continue
            if made:
                self._head = None
            yield made
            data = self._engine.unconsumed_tail


class _Brotli:
    def __init__(self) -> None:
        self._engine = brotli.Decompressor()

    @property
    def ended(self) -> bool:
        return bool(self._engine.is_finished())

    def unpack(self, data: bytes) -> Iterator[bytes]:
        if self._engine.is_finished():  # in one piece with the end, brotli itself says no
            raise EncodingError("junk behind the br data")
        yield self._engine.process(data, output_buffer_limit=_PIECE)  # may go beyond by one block of 32 KB
        while not self._engine.can_accept_more_data():
            yield self._engine.process(b"", output_buffer_limit=_PIECE)


class _Zstd:
    """All frames one after the other (RFC 8878 §3.1)."""

    def __init__(self) -> None:
        self._decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_MAX_WINDOW)
        self._engine: Any = self._decompressor.decompressobj()

    @property
    def ended(self) -> bool:
        return bool(self._engine.eof)

    def unpack(self, data: bytes) -> Iterator[bytes]:
        for start in range(0, len(data), _ZSTD_SLICE):
            piece = data[start : start + _ZSTD_SLICE]
            while piece:
                if self._engine.eof:
                    self._engine = self._decompressor.decompressobj()
                yield self._engine.decompress(piece)
                piece = self._engine.unused_data


_ENGINES: Mapping[str, type[_Engine]] = {
    "gzip": _Gzip,
    "x-gzip": _Gzip,  # RFC 9110 §8.4.1.3
    "deflate": _Deflate,
    "br": _Brotli,
    "zstd": _Zstd,
}

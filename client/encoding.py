"""Undoes Content-Encoding with a limit on the unpacked size. Looks at no other header and opens no archives:
a .gz document sent without Content-Encoding stays as it is.
"""

import zlib
from collections.abc import Callable, Mapping

import brotli
import zstandard

from common.errors import PavoukError

ACCEPT_ENCODING = "gzip, deflate, br, zstd"

_MAX_ENCODINGS = 5  # in a row; honest servers use one
_MAX_MEMBERS = 10_000  # of one gzip body: each costs a new decompressor
_GZIP_MAGIC = b"\x1f\x8b"
_ZLIB_SLICE = 1 << 18  # what follows a gzip member is copied, so bodies go in in slices
_ZSTD_SLICE = 1 << 8  # its output has no limit, and 4 bytes can make 128 KB: a slice makes 8 MB at most
_ZSTD_MAX_WINDOW = 1 << 23  # RFC 9659: 8 MB for content encodings

# Unpacks to a little more than `room` bytes at most, and says whether the input came to its proper end.
_Unpack = Callable[[bytes, int], tuple[bytes, bool]]


class EncodingError(PavoukError):
    """The body is not in the encoding that the header names, or the encoding is unknown."""


class TooLarge(PavoukError):
    """The body unpacks to more than the limit."""


def decode(body: bytes, content_encoding: str, max_bytes: int, partial: bool = False) -> bytes:
    """`body` without the encodings of the header. `partial` takes what there is of a cut or too large one."""
    names = [name for part in content_encoding.split(",") if (name := part.strip().lower())]
    if len(names) > _MAX_ENCODINGS:
        raise EncodingError(f"{len(names)} content encodings in a row")
    for name in reversed(names):
        body = _undo(name, body, max_bytes, partial)
    return body


def _undo(name: str, body: bytes, max_bytes: int, partial: bool) -> bytes:
    unpack = _UNPACK.get(name)
    if unpack is None:
        raise EncodingError(f"unknown content encoding {name[:40]!r}")
    if not body:  # servers name an encoding for empty bodies too
        return body
    try:
        output, ended = unpack(body, max_bytes + 1)
    except (zlib.error, brotli.error, zstandard.ZstdError) as error:
        raise EncodingError(f"bad {name} data: {error}") from error
    if partial:
        return output[:max_bytes]
    if len(output) > max_bytes:
        raise TooLarge(f"unpacks to more than {max_bytes} bytes")
    if not ended:
        raise EncodingError(f"the {name} data break off")
    return output


def _identity(data: bytes, room: int) -> tuple[bytes, bool]:
    return data[:room], True


def _gzip(data: bytes, room: int) -> tuple[bytes, bool]:
    """All members one after the other (RFC 1952 §2.2). Junk behind the last is ignored, as gzip does it."""
    output = bytearray()
    engine = zlib.decompressobj(31)
    members = 1
    for start in range(0, len(data), _ZLIB_SLICE):
        piece = data[start : start + _ZLIB_SLICE]
        while piece:
            if engine.eof:
                if not _GZIP_MAGIC.startswith(piece[:2]):
                    return bytes(output), True
                engine = zlib.decompressobj(31)
                members += 1
            output += engine.decompress(piece, room - len(output))
            if len(output) >= room:
                return bytes(output), False
            if members > _MAX_MEMBERS:
                raise EncodingError(f"more than {_MAX_MEMBERS} gzip members")
            piece = engine.unused_data
    return bytes(output), engine.eof


def _deflate(data: bytes, room: int) -> tuple[bytes, bool]:
    """In zlib's frame as RFC 9110 §8.4.1.2 says, or raw as some servers send it and browsers take it."""
    try:
        return _inflate(data, room, zlib.MAX_WBITS)
    except zlib.error:
        return _inflate(data, room, -zlib.MAX_WBITS)


def _inflate(data: bytes, room: int, window_bits: int) -> tuple[bytes, bool]:
    engine = zlib.decompressobj(window_bits)
    output = engine.decompress(data, room)
    return output, engine.eof


def _brotli(data: bytes, room: int) -> tuple[bytes, bool]:
    engine = brotli.Decompressor()
    output = engine.process(data, output_buffer_limit=room)  # may go beyond by one block of 32 KB
    return output, engine.is_finished()


def _zstd(data: bytes, room: int) -> tuple[bytes, bool]:
    """All frames one after the other (RFC 8878 §3.1)."""
    decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_MAX_WINDOW)
    engine = decompressor.decompressobj()
    output = bytearray()
    for start in range(0, len(data), _ZSTD_SLICE):
        piece = data[start : start + _ZSTD_SLICE]
        while piece:
            if engine.eof:
                engine = decompressor.decompressobj()
            output += engine.decompress(piece)
            if len(output) >= room:
                return bytes(output), False
            piece = engine.unused_data
    return bytes(output), engine.eof


_UNPACK: Mapping[str, _Unpack] = {
    "identity": _identity,
    "gzip": _gzip,
    "x-gzip": _gzip,  # RFC 9110 §8.4.1.3
    "deflate": _deflate,
    "br": _brotli,
    "zstd": _zstd,
}

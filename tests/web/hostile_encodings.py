"""Content encodings that cannot be undone, or that unpack to ten gigabytes. These are never in memory."""

import gzip
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from itertools import chain, repeat

import brotli
import zstandard

from tests.web.call import HTML, HTML_START, PAGE, Behaviour, Call
from tests.web.pages import Answer

BOMB_BYTES = 10 << 30
_BLOCK_BYTES = 16 << 20
_BLOCKS = BOMB_BYTES // _BLOCK_BYTES
_ZSTD_BLOCK_BYTES = 128 << 10  # the largest a block may be
_FILLER = b"\0" * _BLOCK_BYTES


async def bomb(call: Call) -> int:
    """/bomb/NAME: 10 GB, in 10 MB of gzip or deflate, some 10 KB of brotli, 330 KB of zstd."""
    encoding, blocks = BOMBS[call.argument]
    start = HTML_START + f"Content-Encoding: {encoding}\r\nConnection: close\r\n\r\n".encode()
    return await call.stream(start, blocks())


async def cut(call: Call) -> int:
    """/cut/NAME: data that break off, and say that they are whole."""
    packed = PACK[call.argument](PAGE * 100)
    return await _encoded(call, call.argument, packed[: len(packed) // 2])


async def bad_gzip(call: Call) -> int:
    """A gzip stream that breaks off into nonsense."""
    packed = gzip.compress(PAGE * 100)
    return await _encoded(call, "gzip", packed[: len(packed) // 2] + b"nonsense" * 20)


async def encoding(call: Call) -> int:
    """/encoding/NAMES: a plain page that claims to be encoded so."""
    return await _encoded(call, call.argument, PAGE)


BEHAVIOURS: dict[str, Behaviour] = {"/bomb/": bomb, "/cut/": cut, "/bad-gzip": bad_gzip, "/encoding/": encoding}


async def _encoded(call: Call, name: str, body: bytes) -> int:
    return await call.reply(Answer(200, (*HTML, ("Content-Encoding", name)), body))


def _deflated(window_bits: int) -> Iterator[bytes]:
    # After a full flush the packer starts anew, so that the same packed block can be repeated. There is no
    # checksum: whoever gets that far has unpacked it all.
    start, block = _deflate_parts(window_bits)
    return chain([start], repeat(block, _BLOCKS))


@cache
def _deflate_parts(window_bits: int) -> tuple[bytes, bytes]:
    packer = zlib.compressobj(9, zlib.DEFLATED, window_bits)
    start = packer.compress(b"\0" * 1024) + packer.flush(zlib.Z_FULL_FLUSH)
    return start, packer.compress(_FILLER) + packer.flush(zlib.Z_FULL_FLUSH)


@cache
def _brotli_parts() -> tuple[bytes, bytes]:
    # A flush ends at a whole byte. What follows copies from what came before, which is the same each time.
    packer = brotli.Compressor(quality=5, lgwin=24)
    start = packer.process(_FILLER) + packer.flush()
    return start, packer.process(_FILLER) + packer.flush()


def _brotli() -> Iterator[bytes]:
    start, block = _brotli_parts()
    return chain([start], repeat(block, _BLOCKS))


def _zstd() -> Iterator[bytes]:
    # RFC 8878: magic number, no checksum and no size, a window of 128 KB; then blocks of one repeated byte.
    frame = b"\x28\xb5\x2f\xfd" + b"\x00" + bytes([7 << 3])
    repeated = ((_ZSTD_BLOCK_BYTES << 3) | (1 << 1)).to_bytes(3, "little") + b"\0"
    return chain([frame], repeat(repeated * 1024, BOMB_BYTES // _ZSTD_BLOCK_BYTES // 1024))


def _gzip_twice() -> Iterator[bytes]:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    for block in _deflated(31):
        yield packer.compress(block) + packer.flush(zlib.Z_SYNC_FLUSH)
    yield packer.flush()


def _gzip_members() -> Iterator[bytes]:
    return repeat(gzip.compress(b"\0" * 1_000_000), BOMB_BYTES // 1_000_000)


# The header, and the packed blocks.
BOMBS: dict[str, tuple[str, Callable[[], Iterator[bytes]]]] = {
    "gzip": ("gzip", lambda: _deflated(31)),
    "gzip-members": ("gzip", _gzip_members),
    "gzip-twice": ("gzip, gzip", _gzip_twice),
    "deflate": ("deflate", lambda: _deflated(15)),
    "br": ("br", _brotli),
    "zstd": ("zstd", _zstd),
}
PACK: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.compress,
}

"""Content encodings: every kind, in a row, cut, corrupted and as bombs."""

import gzip
import os
import tracemalloc
import zlib
from collections.abc import Callable

import brotli
import pytest
import zstandard

from client.encoding import Decoder, EncodingError, TooLarge

TEXT = b"".join(b"<p>line %d of a page</p>\n" % number for number in range(5000))
LIMIT = 1_000_000


def decode(body: bytes, header: str, max_bytes: int, partial: bool = False, step: int = 1 << 17) -> bytes:
    """The whole of a body that arrives in parts of `step` bytes."""
    decoder = Decoder(header, max_bytes, partial)
    for start in range(0, len(body), step):
        decoder.feed(body[start : start + step])
    return decoder.body()


def raw_deflate(data: bytes) -> bytes:
    engine = zlib.compressobj(wbits=-15)
    return engine.compress(data) + engine.flush()


def quick_brotli(data: bytes) -> bytes:
    return brotli.compress(data, quality=2)


def zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_content_size=False).compress(data)


PACK: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": quick_brotli,
    "zstd": zstd,
}


@pytest.mark.parametrize("name", PACK)
@pytest.mark.parametrize("data", [TEXT, b"x", b"", os.urandom(300_000)], ids=["text", "one", "none", "noise"])
def test_each_encoding(name: str, data: bytes) -> None:
    assert decode(PACK[name](data), name, LIMIT) == data


@pytest.mark.parametrize("step", [1, 2, 3, 1000])
@pytest.mark.parametrize("name", PACK)
def test_parts_of_any_length(name: str, step: int) -> None:
    assert decode(PACK[name](TEXT[:9999]), name, LIMIT, step=step) == TEXT[:9999]
    with pytest.raises(EncodingError, match="break off"):
        decode(PACK[name](TEXT)[:-1], name, LIMIT, step=step)


@pytest.mark.parametrize("step", [1, 1000, 1 << 17])
def test_raw_deflate(step: int) -> None:
    assert decode(raw_deflate(TEXT), "deflate", LIMIT, step=step) == TEXT


@pytest.mark.parametrize("header", ["", "identity", " , ", "Identity"])
def test_no_encoding(header: str) -> None:
    assert decode(TEXT, header, LIMIT) == TEXT


def test_gz_document_without_the_header_stays() -> None:
    document = gzip.compress(TEXT)
    assert decode(document, "", LIMIT) == document


def test_several_in_a_row_are_undone_from_the_last() -> None:
    assert decode(brotli.compress(gzip.compress(TEXT)), "GZIP, identity ,br", LIMIT) == TEXT


def test_too_many_in_a_row() -> None:
    with pytest.raises(EncodingError, match="6 content encodings"):
        decode(TEXT, ",".join(["identity"] * 6), LIMIT)


FIRST = gzip.compress(TEXT)


@pytest.mark.parametrize("step", [1, len(FIRST) - 1, len(FIRST), len(FIRST) + 1, 1 << 17])
def test_several_gzip_members(step: int) -> None:
    members = FIRST + gzip.compress(b"") + gzip.compress(b"end")
    assert decode(members, "gzip", LIMIT, step=step) == TEXT + b"end"


@pytest.mark.parametrize("step", [1, 1 << 17])
@pytest.mark.parametrize("name", ["gzip", "deflate"])
def test_junk_behind_the_end_is_ignored(name: str, step: int) -> None:
    assert decode(PACK[name](TEXT) + bytes(600), name, LIMIT, step=step) == TEXT


@pytest.mark.parametrize("step", [1, 1 << 17])
@pytest.mark.parametrize("name", ["br", "zstd"])
def test_junk_behind_the_end_is_refused(name: str, step: int) -> None:
    with pytest.raises(EncodingError):
        decode(PACK[name](TEXT) + bytes(600), name, LIMIT, step=step)


def test_limit_between_two_encodings() -> None:
    """10 MB of empty blocks unpack to nothing, and are too much all the same."""
    engine = zlib.compressobj(wbits=31)
    start = engine.compress(b"x") + engine.flush(zlib.Z_FULL_FLUSH)
    packed = gzip.compress(start + b"\0\0\0\xff\xff" * 2_000_000)
    with pytest.raises(TooLarge):
        decode(packed, "gzip, gzip", LIMIT)


def test_endless_gzip_members() -> None:
    with pytest.raises(EncodingError, match="members"):
        decode(gzip.compress(b"") * 20_000, "gzip", LIMIT)


def test_several_zstd_frames() -> None:
    assert decode(zstd(TEXT) + zstd(b"end"), "zstd", LIMIT) == TEXT + b"end"


def test_zstd_window_is_bounded() -> None:
    parameters = zstandard.ZstdCompressionParameters.from_level(3, window_log=27)
    engine = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    with pytest.raises(EncodingError, match="bad zstd data"):
        decode(engine.compress(TEXT) + engine.flush(), "zstd", LIMIT)


@pytest.mark.parametrize("name", ["utf-8", "compress", "none", "g" * 500, "\x00"])
def test_unknown(name: str) -> None:
    with pytest.raises(EncodingError, match="unknown"):
        decode(TEXT, name, LIMIT)


@pytest.mark.parametrize("name", PACK)
def test_cut_off(name: str) -> None:
    whole = PACK[name](TEXT)
    for size in (1, 5, len(whole) // 2, len(whole) - 1):
        with pytest.raises(EncodingError):
            decode(whole[:size], name, LIMIT)


@pytest.mark.parametrize("name", PACK)
def test_not_encoded_at_all(name: str) -> None:
    with pytest.raises(EncodingError):
        decode(b"<!doctype html><title>plain</title>" * 20, name, LIMIT)


@pytest.mark.parametrize("name", PACK)
def test_partial_takes_what_there_is(name: str) -> None:
    whole = PACK[name](TEXT)
    assert decode(whole, name, 1000, partial=True) == TEXT[:1000]
    beginning = decode(whole[: len(whole) * 3 // 4], name, LIMIT, partial=True)
    assert TEXT.startswith(beginning)


@pytest.mark.parametrize("name", PACK)
def test_limit_is_exact(name: str) -> None:
    assert decode(PACK[name](TEXT), name, len(TEXT)) == TEXT
    with pytest.raises(TooLarge):
        decode(PACK[name](TEXT), name, len(TEXT) - 1)


@pytest.mark.parametrize("name", PACK)
def test_bomb_needs_no_memory(name: str) -> None:
    bomb = PACK[name](bytes(200_000_000))
    tracemalloc.start()
    try:
        with pytest.raises(TooLarge):
            decode(bomb, name, LIMIT)
        assert tracemalloc.get_traced_memory()[1] < 30_000_000
    finally:
        tracemalloc.stop()


def test_bomb_within_a_bomb() -> None:
    bomb = gzip.compress(gzip.compress(bytes(200_000_000)))
    with pytest.raises(TooLarge):
        decode(bomb, "gzip, gzip", LIMIT)

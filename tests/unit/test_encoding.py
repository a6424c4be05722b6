"""Content encodings: every kind, in a row, cut, corrupted and as bombs."""

import gzip
import os
import tracemalloc
import zlib
from collections.abc import Callable

import brotli
import pytest
import zstandard

from client.encoding import EncodingError, TooLarge, decode

TEXT = b"".join(b"<p>line %d of a page</p>\n" % number for number in range(5000))
LIMIT = 1_000_000


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


def test_raw_deflate() -> None:
    assert decode(raw_deflate(TEXT), "deflate", LIMIT) == TEXT


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


def test_several_gzip_members() -> None:
    members = gzip.compress(TEXT) + gzip.compress(b"") + gzip.compress(b"end")
    assert decode(members, "gzip", LIMIT) == TEXT + b"end"


def test_gzip_member_that_ends_with_a_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    first = gzip.compress(TEXT)
    monkeypatch.setattr("client.encoding._ZLIB_SLICE", len(first))
    assert decode(first + gzip.compress(b"end"), "gzip", LIMIT) == TEXT + b"end"


def test_junk_behind_gzip_is_ignored() -> None:
    assert decode(gzip.compress(TEXT) + bytes(600), "gzip", LIMIT) == TEXT


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

"""Undoes Content-Encoding with a limit on the unpacked size. Knows nothing of connections or headers' other lines."""

from common.errors import PavoukError

ACCEPT_ENCODING = "gzip, deflate, br, zstd"


class EncodingError(PavoukError):
    """The body is not in the encoding that the header names, or the encoding is unknown."""


class TooLarge(PavoukError):
    """The body unpacks to more than the limit."""


def decode(body: bytes, content_encoding: str, max_bytes: int, partial: bool = False) -> bytes:
    """`body` without the encodings of the header. `partial` takes what there is of a cut or too large body."""
    raise NotImplementedError

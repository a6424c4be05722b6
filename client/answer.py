"""One HTTP answer as its pieces arrive: headers, limits, body. No connections and no meaning of statuses.

Gives up as early as it can: at the header that is one too many, at an announced length beyond the limit.
"""

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from client.encoding import Decoder, EncodingError, TooLarge
from client.large import FREE_BYTES, LargeBodies

_DRAIN_BYTES = 1 << 16  # an unwanted body up to this size is read all the same: cheaper than a new connection
_NOT_ASCII = re.compile("[\x80-\xff]")  # header values are latin-1: a character is an octet
_STATUS_LINE = re.compile(rb"HTTP/[0-9.]+ ([0-9]{3})(?![0-9])")


@dataclass(frozen=True, slots=True)
class Limits:
    """How long and how large one request may become."""

    connect_timeout_seconds: float
    idle_timeout_seconds: float  # in whole seconds, and noticed up to five seconds later
    fetch_timeout_seconds: float  # all in all
    max_body_bytes: int  # received, and unpacked
    max_header_bytes: int  # libcurl itself refuses more than 300 KB


class Headers:
    """The header lines of one answer, in order. Names are looked up in any case."""

    __slots__ = ("pairs",)

    def __init__(self, pairs: Sequence[tuple[str, str]] = ()) -> None:
        self.pairs = tuple(pairs)

    def get(self, name: str) -> str:
        """The first value of `name`, or an empty text."""
        name = name.lower()
        return next((value for key, value in self.pairs if key.lower() == name), "")

    def joined(self, name: str) -> str:
        """All values of `name` with commas between: one list, as RFC 9110 §5.3 reads it."""
        return ", ".join(self.every(name))

    def every(self, name: str) -> tuple[str, ...]:
        """The values of all lines of `name`."""
        name = name.lower()
        return tuple(value for key, value in self.pairs if key.lower() == name)

    @property
    def location(self) -> str:
        """Location with its raw octets beyond ASCII escaped, UTF-8 or not: what browsers request then."""
        return _NOT_ASCII.sub(lambda char: f"%{ord(char[0]):02X}", self.get("Location"))


Wanted = Callable[[int, Headers], bool]


class Answer:
    """Collects one answer piece by piece. Answering a piece with -1 ends the transfer, as libcurl has it."""

    def __init__(self, limits: Limits, wanted: Wanted | None, cut: bool, large: LargeBodies) -> None:
        self._limits = limits
        self._large = large
        self._held_bytes = FREE_BYTES
        self._deadline = time.monotonic() + limits.fetch_timeout_seconds
        self._wanted = wanted
        self._cut = cut
        self._header_bytes = 0
        self._pairs: list[tuple[str, str]] = []
        self._decoder: Decoder | None = None  # there when the headers are, if the body is wanted
        self._body_bytes = 0
        self.status = 0
        self.headers: Headers | None = None  # of the final answer, when they are complete
        self.keep = True  # the body is wanted
        self.too_large = ""  # why the answer is refused, if it is
        self.bad_content = ""  # likewise
        self.no_room = ""  # likewise: there was no memory for it in time
        self._stopped = False  # by us, and what we have is enough

    @property
    def is_usable(self) -> bool:
        """Whether a transfer that ended early gave all that was wanted. An unwanted body may well break."""
        return self._stopped or (self.headers is not None and not self.keep)

    @property
    def is_cut(self) -> bool:
        return self._stopped or not self.keep

    def on_header(self, line: bytes) -> int | None:
        self._header_bytes += len(line)
        if self._header_bytes > self._limits.max_header_bytes:
            self.too_large = f"more than {self._limits.max_header_bytes} bytes of headers"
            return -1
        if self.headers is not None:  # trailers behind a chunked body
            return None
        if match := _STATUS_LINE.match(line):
            self.status = int(match[1])
            self._pairs.clear()
        elif line not in (b"\r\n", b"\n"):
            self._add_line(line.decode("latin-1"))
        elif self.status >= 200:  # below are interim answers: 100, 103
            return self._on_headers_end()
        return None

    def _add_line(self, line: str) -> None:
        if line[0] in " \t" and self._pairs:  # folded, RFC 9112 §5.2
            name, value = self._pairs[-1]
            self._pairs[-1] = (name, f"{value} {line.strip()}")
            return
        name, colon, value = line.partition(":")
        if colon:
            self._pairs.append((name.strip(), value.strip()))

    def _on_headers_end(self) -> int | None:
        self.headers = Headers(self._pairs)
        self.keep = self._wanted is None or self._wanted(self.status, self.headers)
        if self.keep and not self._can_decode(self.headers.joined("Content-Encoding")):
            return -1
        length = self.headers.get("Content-Length")
        if length.isdecimal() and self.status not in (204, 304):
            return self._stop_beyond(int(length[:20]))
        return None

    def on_body(self, chunk: bytes) -> int | None:
        self._body_bytes += len(chunk)
        stop = self._stop_beyond(self._body_bytes)
        if self._decoder is None or self.too_large:
            return stop
        try:
            self._decoder.feed(chunk)
        except TooLarge as error:
            self.too_large = str(error)
            return -1
        except EncodingError as error:
            self.bad_content = str(error)
            return -1
        self._stopped = self._stopped or self._decoder.is_full
        return -1 if self._stopped or not self._has_room(self._decoder.size) else stop

    def _has_room(self, size: int) -> bool:
        """Waits while too many other bodies are large; a megabyte at a time, so that this is rarely asked."""
        if size < self._held_bytes:
            return True
        self._held_bytes = size + FREE_BYTES
        if not self._large.hold(self, self._held_bytes, self._deadline - time.monotonic()):
            self.no_room = "no memory for a large body in time"
        return not self.no_room

    def _can_decode(self, encoding: str) -> bool:
        try:
            self._decoder = Decoder(encoding, self._limits.max_body_bytes, self._cut)
        except EncodingError as error:
            self.bad_content = str(error)
        return self._decoder is not None

    def _stop_beyond(self, size: int) -> int | None:
        if not self.keep:
            self._stopped = size > _DRAIN_BYTES
            return -1 if self._stopped else None
        if size <= self._limits.max_body_bytes:
            return None
        if not self._cut:
            self.too_large = f"more than {self._limits.max_body_bytes} bytes"
            return -1
        self._stopped = self._body_bytes > self._limits.max_body_bytes  # not yet when only announced
        return -1 if self._stopped else None

    def drop(self) -> None:
        """Free our copy of the body. libcurl's handle keeps this object until its next request."""
        self._decoder = None

    def let_go(self) -> None:
        """The body does not count any more as one on its way."""
        self._large.let_go(self)

    def body(self) -> bytes:
        """What was received, without its content encodings. EncodingError if it has no proper end."""
        return self._decoder.body() if self._decoder else b""

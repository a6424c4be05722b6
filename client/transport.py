"""One HTTP request at a time through libcurl: limits, closed addresses, errors as outcomes. The only importer of pycurl.

It follows no redirects, asks no robots.txt, keeps no cookies and judges no status: that is the fetcher's.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from common.wire import Outcome


@dataclass(frozen=True, slots=True)
class Limits:
    """How long and how large one request may become."""

    connect_timeout_seconds: float
    idle_timeout_seconds: float
    fetch_timeout_seconds: float  # all in all
    max_body_bytes: int  # received, and unpacked
    max_header_bytes: int


class Headers:
    """The header lines of one answer, in order. Names are looked up in any case."""

    def __init__(self, pairs: Sequence[tuple[str, str]] = ()) -> None:
        self.pairs = tuple(pairs)

    def get(self, name: str) -> str:
        """The first value of `name`, or an empty text."""
        raise NotImplementedError

    def joined(self, name: str) -> str:
        """All values of `name` with commas between: one list, as RFC 9110 §5.3 reads it."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Response:
    """What a server answered. The body has its content encodings undone."""

    status: int
    headers: Headers
    body: bytes
    address: str  # the IP address that answered
    seconds: float
    cut: bool = False  # the body was left off or cut at the caller's wish


class TransportError(Exception):
    """There is no usable answer. Carries what is known all the same."""

    def __init__(self, outcome: Outcome, detail: str, status: int = 0, address: str = "") -> None:
        super().__init__(detail)
        self.outcome = outcome
        self.detail = detail
        self.status = status
        self.address = address


Wanted = Callable[[int, Headers], bool]


class Transport:
    """Makes requests for one thread, which owns it and closes it. Connections and DNS answers are reused."""

    def __init__(self, user_agent: str, sender: str = "", verify_tls: bool = True) -> None:
        raise NotImplementedError

    def request(
        self,
        url: str,
        limits: Limits,
        extra_headers: Sequence[tuple[str, str]] = (),
        allow_private: bool = False,
        wanted: Wanted | None = None,
        cut: bool = False,
    ) -> Response:
        """GET `url`. TransportError if there is no usable answer.

        `wanted` sees status and headers; if it says no, the body is left off. `cut` gives the beginning of a body
        that is too large instead of an error.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Close all connections."""
        raise NotImplementedError

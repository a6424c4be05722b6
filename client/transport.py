"""One HTTP request at a time through libcurl, with limits; trouble as outcomes. The only importer of pycurl.

It follows no redirects, asks no robots.txt, keeps no cookies and judges no status: that is the fetcher's.
"""

import socket
import ssl
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import ceil
from pathlib import Path
from typing import Any

import certifi
import pycurl

from client.answer import Answer, Headers, Limits, Wanted
from client.encoding import ACCEPT_ENCODING, EncodingError
from client.large import LargeBodies
from common.addresses import is_open_to
from common.urls import host_of
from common.wire import Outcome, clean_text

__all__ = ["Headers", "Limits", "Response", "Transport", "TransportError", "Wanted"]

_HOSTS_FILE = Path("/etc/hosts")
# Where systems keep the certificates to trust: Debian, Fedora, SUSE, Alpine. libcurl knows only one place.
_CA_FILES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
_ACCEPT = "text/html,application/xhtml+xml,*/*;q=0.8"
_RECEIVE_BYTES = 1 << 17  # fewer and larger calls of the body callback than with curl's 16 KB
_MAX_CONNECTIONS = 16  # kept open by one handle for later requests; a process often has 1,024 descriptors
_MAX_IDLE_SECONDS = 60  # servers commonly close after less; an older connection is not tried
_LARGE_BYTES = 32 << 20  # of all bodies on their way beyond a megabyte; one more may be at its limit
_TOO_LARGE_CODE = 100  # CURLE_TOO_LARGE, unknown to pycurl: header lines beyond libcurl's own limits

_OUTCOMES: Mapping[int, Outcome] = {
    pycurl.E_COULDNT_RESOLVE_HOST: Outcome.DNS,
    pycurl.E_URL_MALFORMAT: Outcome.DNS,  # our URLs are canonical: what curl refuses in them is the host name
    pycurl.E_COULDNT_CONNECT: Outcome.REFUSED,
    pycurl.E_INTERFACE_FAILED: Outcome.REFUSED,
    pycurl.E_OPERATION_TIMEDOUT: Outcome.TIMEOUT,
    pycurl.E_SSL_CONNECT_ERROR: Outcome.TLS,
    pycurl.E_PEER_FAILED_VERIFICATION: Outcome.TLS,
    pycurl.E_SSL_CERTPROBLEM: Outcome.TLS,
    pycurl.E_SSL_CIPHER: Outcome.TLS,
    pycurl.E_SSL_CACERT_BADFILE: Outcome.TLS,
    pycurl.E_SSL_INVALIDCERTSTATUS: Outcome.TLS,
    pycurl.E_SSL_ISSUER_ERROR: Outcome.TLS,
    _TOO_LARGE_CODE: Outcome.TOO_LARGE,
}  # all others are Outcome.BROKEN


_large = LargeBodies(_LARGE_BYTES)  # one for all threads: memory is the process's


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


class _Gate:
    """Opens the sockets of one request, or refuses to. It sees the address that is really connected to."""

    def __init__(self, allow_private: bool, private: Collection[str]) -> None:
        self._allow_private = allow_private
        self._private = private
        self._passed = False
        self._refused = ""

    def on_socket(self, purpose: int, address: Any) -> Any:
        ip = address.addr[0]
        if not self._allow_private and not is_open_to(ip, self._private):
            self._refused = ip
            return pycurl.SOCKET_BAD
        self._passed = True
        try:
            return socket.socket(address.family, address.socktype, address.protocol)
        except OSError:  # no such family on this machine, or no file descriptors left
            return pycurl.SOCKET_BAD

    @property
    def closed_address(self) -> str:
        """The closed address that was refused, if no other was tried."""
        return "" if self._passed else self._refused


class Transport:
    """Makes requests for one thread, which owns it and closes it. Connections and DNS answers are reused.

    Closing may wait for a name look-up under way: libcurl cannot break off getaddrinfo.
    """

    def __init__(
        self, user_agent: str, sender: str = "", verify_tls: bool = True, large: LargeBodies = _large
    ) -> None:
        self._large = large
        self._headers = [_header_line("Accept", _ACCEPT), _header_line("Accept-Encoding", ACCEPT_ENCODING)]
        if sender:
            self._headers.append(_header_line("From", sender))
        self._user_agent = clean_text(user_agent)
        self._verify_tls = verify_tls
        # A handle for requests that may go to a private address, and one for the others: a connection that one of
        # them was allowed to open must not serve another. Each host has connections, and addresses, of its own.
        self._curls: dict[bool, Any] = {}
        self._last: Answer | None = None  # its body counts until `let_go`

    def request(
        self,
        url: str,
        limits: Limits,
        extra_headers: Sequence[tuple[str, str]] = (),
        allow_private: bool = False,
        private: Collection[str] = (),
        wanted: Wanted | None = None,
        cut: bool = False,
    ) -> Response:
        """GET `url`. TransportError if there is no usable answer.

        `wanted` sees status and headers; if it says no, the body is left off. `cut` gives the beginning of a
        body that is too large instead of an error. The memory of the body counts as used until `let_go`.
        Only public addresses are connected to, those in `private`, or with `allow_private` all.
        """
        self.let_go()
        curl = self._curl(allow_private or bool(private))
        gate = _Gate(allow_private, private)
        answer = Answer(limits, wanted, cut, self._large)
        curl.setopt(pycurl.OPENSOCKETFUNCTION, gate.on_socket)
        curl.setopt(pycurl.HEADERFUNCTION, answer.on_header)
        curl.setopt(pycurl.WRITEFUNCTION, answer.on_body)
        self._prepare(curl, url, limits, extra_headers)
        self._last = answer
        try:
            _perform(curl, answer, gate)
            return _response(curl, answer)
        except TransportError:
            self.let_go()
            raise
        finally:
            answer.drop()

    def let_go(self) -> None:
        """The body of the last answer is somebody else's now, or nobody's."""
        if self._last is not None:
            self._last.let_go()
            self._last = None

    def close(self) -> None:
        """Close all connections."""
        self.let_go()
        for curl in self._curls.values():
            curl.close()
        self._curls.clear()

    def _curl(self, is_private: bool) -> Any:
        if is_private not in self._curls:
            self._curls[is_private] = _new_handle(self._user_agent, self._verify_tls)
        return self._curls[is_private]

    def _prepare(self, curl: Any, url: str, limits: Limits, extra: Sequence[tuple[str, str]]) -> None:
        curl.setopt(pycurl.URL, url.encode())
        curl.setopt(pycurl.HTTPHEADER, self._headers + [_header_line(*pair) for pair in extra])
        curl.setopt(pycurl.IPRESOLVE, _families(url))
        curl.setopt(pycurl.CONNECTTIMEOUT_MS, ceil(limits.connect_timeout_seconds * 1000))
        curl.setopt(pycurl.TIMEOUT_MS, ceil(limits.fetch_timeout_seconds * 1000))
        curl.setopt(pycurl.LOW_SPEED_TIME, ceil(limits.idle_timeout_seconds))


def _new_handle(user_agent: str, verify_tls: bool) -> Any:
    curl = pycurl.Curl()
    options = {
        pycurl.USERAGENT: user_agent.encode(),
        pycurl.NOSIGNAL: 1,  # signals and threads do not go together
        pycurl.PROTOCOLS: pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS,
        pycurl.FOLLOWLOCATION: 0,
        pycurl.PROXY: b"",  # none, also when the environment names one: the address check would see the proxy
        pycurl.NETRC: pycurl.NETRC_IGNORED,
        # One request at a time gains nothing from HTTP/2, and pays for its framing.
        pycurl.HTTP_VERSION: pycurl.CURL_HTTP_VERSION_1_1,
        pycurl.HTTP09_ALLOWED: 0,
        pycurl.HTTP_CONTENT_DECODING: 0,  # encoding.py does it, with a limit
        pycurl.PATH_AS_IS: 1,  # dot segments are resolved already
        pycurl.LOW_SPEED_LIMIT: 1,
        pycurl.BUFFERSIZE: _RECEIVE_BYTES,
        pycurl.MAXCONNECTS: _MAX_CONNECTIONS,
        pycurl.MAXAGE_CONN: _MAX_IDLE_SECONDS,
        pycurl.SSL_VERIFYPEER: int(verify_tls),
        pycurl.SSL_VERIFYHOST: 2 if verify_tls else 0,
        pycurl.CAINFO: _ca_file(),
        pycurl.SSLVERSION: pycurl.SSLVERSION_TLSv1_2,
    }
    for option, value in options.items():
        curl.setopt(option, value)
    return curl


def _ca_file() -> str:
    """The certificates to trust: what SSL_CERT_FILE names, else the system's, else (in a bare container) certifi's."""
    openssl = ssl.get_default_verify_paths().cafile
    known = (openssl, *_CA_FILES) if openssl else _CA_FILES
    return next((file for file in known if Path(file).is_file()), certifi.where())


def _families(url: str) -> int:
    """The kinds of addresses to look up. libcurl (threaded resolver) asks for A and AAAA apart; for a name that
    /etc/hosts has with IPv4 only, AAAA goes to the name server and stalls as long as that is silent (10 s).
    """
    name = host_of(url).partition(":")[0]
    return int(pycurl.IPRESOLVE_V4 if name in _local_ipv4_names() else pycurl.IPRESOLVE_WHATEVER)


@cache
def _local_ipv4_names() -> frozenset[str]:
    """Names that /etc/hosts knows with IPv4 addresses only. Read once: it hardly ever changes."""
    try:
        lines = _HOSTS_FILE.read_text("utf-8", "replace").splitlines()
    except OSError:
        return frozenset()
    names: dict[bool, set[str]] = {True: set(), False: set()}
    for line in lines:
        address, *known_as = line.partition("#")[0].lower().split() or [""]
        names[":" in address].update(known_as)
    return frozenset(names[False] - names[True])


def _header_line(name: str, value: str) -> bytes:
    return f"{name}: {clean_text(value)}".encode("latin-1", "replace")


def _perform(curl: Any, answer: Answer, gate: _Gate) -> None:
    try:
        curl.perform()
    except pycurl.error as error:
        if not answer.is_usable:
            raise _trouble(curl, error, answer, gate.closed_address) from None


def _response(curl: Any, answer: Answer) -> Response:
    address = curl.getinfo(pycurl.PRIMARY_IP)
    if answer.headers is None:
        raise TransportError(Outcome.BROKEN, "the headers break off", answer.status, address)
    try:
        body = answer.body()
    except EncodingError as error:
        raise TransportError(Outcome.BAD_CONTENT, str(error), answer.status, address) from error
    seconds = curl.getinfo(pycurl.TOTAL_TIME)
    return Response(answer.status, answer.headers, body, address, seconds, answer.is_cut)


def _trouble(curl: Any, error: pycurl.error, answer: Answer, closed_address: str) -> TransportError:
    code, message = error.args
    outcome = _OUTCOMES.get(code, Outcome.BROKEN)
    if answer.too_large:
        outcome, message = Outcome.TOO_LARGE, answer.too_large
    elif answer.no_room:
        outcome, message = Outcome.TIMEOUT, answer.no_room
    elif answer.bad_content:
        outcome, message = Outcome.BAD_CONTENT, answer.bad_content
    elif closed_address:
        outcome, message = Outcome.FORBIDDEN_ADDRESS, f"{closed_address} is not a public address"
    elif code == pycurl.E_OPERATION_TIMEDOUT and message.startswith("Resolving"):
        outcome = Outcome.DNS
    return TransportError(outcome, clean_text(message), answer.status, curl.getinfo(pycurl.PRIMARY_IP))

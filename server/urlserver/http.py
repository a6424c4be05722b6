"""HTTP under the SOAP service: a bounded pool of threads, TLS, and a guard that looks before anything is parsed.

cheroot carries it: unlike waitress it speaks TLS itself.
"""

import logging
import socket
import sys
import threading
from collections.abc import Callable, Iterable
from http import HTTPStatus
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from cheroot.ssl.builtin import BuiltinSSLAdapter
from cheroot.wsgi import Server

from common.errors import ConfigError
from common.secrets import same_secret
from server.urlserver import web

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

_SOAP_FAULT = (
    '<?xml version="1.0" encoding="UTF-8"?>'
    '<soap:Envelope xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/"><soap:Body><soap:Fault>'
    "<faultcode>soap:{code}</faultcode><faultstring>{text}</faultstring>"
    "</soap:Fault></soap:Body></soap:Envelope>"
)
_IDLE_SECONDS = 20  # without a byte; then a connection is closed, for a half request holds a thread
_CONTENT_TYPES = ("text/xml", "application/xml")
_WAKE_SECONDS = 0.1
_MAX_IDLE_CONNECTIONS = 1000  # they cost no thread; a client that must connect anew for each call costs more
_MAX_HEADER_BYTES = 64_000
_MAX_LENGTH_DIGITS = 15
_CHUNK_BYTES = 1 << 16
_MAX_DISCARDED_BYTES = 256 << 20
_log = logging.getLogger(__name__)


class Guard:
    """A WSGI application around two others: refuses what has no token or is too large, and serves the WSDL."""

    def __init__(self, app: Wsgi, wsdl: bytes, token: str, max_bytes: int, admin: Wsgi | None = None) -> None:
        self._app = app
        self._admin = admin
        self._wsdl = wsdl
        self._expected = f"Bearer {token}" if token else ""
        self._max_bytes = max_bytes

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] == "GET" and environ.get("QUERY_STRING", "").lower() == "wsdl":
            start_response("200 OK", _headers(self._wsdl))
            return [self._wsdl]
        refusal = self._refusal(environ)
        if refusal is None:
            app = self._admin if self._admin and _is_admin(environ) else self._app
            return app(environ, start_response)
        status, text = refusal
        _discard(environ)
        body, headers = _refused(status, text, _is_admin(environ))
        headers.append(("Connection", "close"))
        if status is HTTPStatus.UNAUTHORIZED:
            headers.append(("WWW-Authenticate", "Bearer"))  # RFC 9110 §15.5.2
        start_response(f"{status.value} {status.phrase}", headers)
        return [body]

    def _refusal(self, environ: dict[str, Any]) -> tuple[HTTPStatus, str] | None:
        if environ["REQUEST_METHOD"] != "POST":
            return HTTPStatus.METHOD_NOT_ALLOWED, "send SOAP by POST, or get the WSDL at ?wsdl"
        if self._expected and not same_secret(environ.get("HTTP_AUTHORIZATION", ""), self._expected):
            return HTTPStatus.UNAUTHORIZED, "the token is missing or wrong: send it as 'Authorization: Bearer TOKEN'"
        kind = environ.get("CONTENT_TYPE", "").partition(";")[0].strip().lower()
        if _is_admin(environ):
            if kind != web.CONTENT_TYPE:
                return HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"send commands with the Content-Type {web.CONTENT_TYPE}"
            if environ.get("HTTP_ORIGIN"):  # browsers send it, also for a name that was bent to point to this machine
                return HTTPStatus.FORBIDDEN, "commands are not taken from web pages"
        elif kind not in _CONTENT_TYPES:  # spyne would also unpack MIME attachments
            return HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "send SOAP 1.1 with the Content-Type text/xml"
        length = _length_of(environ)
        if length is None or environ.get("HTTP_TRANSFER_ENCODING"):
            return HTTPStatus.LENGTH_REQUIRED, "the message needs a Content-Length"
        if length > self._max_bytes:
            return HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the message has more than {self._max_bytes} bytes: split it"
        return None


def _is_admin(environ: dict[str, Any]) -> bool:
    return bool(environ.get("PATH_INFO") == web.ADMIN_PATH)


def _refused(status: HTTPStatus, text: str, as_json: bool) -> tuple[bytes, list[tuple[str, str]]]:
    if as_json:
        body = web.error_body(text)
        return body, web.json_headers(body)
    code = "Client.Token" if status is HTTPStatus.UNAUTHORIZED else "Client"
    body = _SOAP_FAULT.format(code=code, text=escape(text)).encode()
    return body, _headers(body)


def _discard(environ: dict[str, Any]) -> None:
    """Read what was refused: closing a connection with unread data would also throw away our answer."""
    left = _length_of(environ)
    if environ.get("HTTP_TRANSFER_ENCODING"):
        left = _MAX_DISCARDED_BYTES
    if left is None or left > _MAX_DISCARDED_BYTES:
        return
    try:
        while left > 0 and (chunk := environ["wsgi.input"].read(_CHUNK_BYTES)):
            left -= len(chunk)
    except (OSError, ValueError):  # broken off, or chunks that are none: nobody waits for the answer
        return


def _length_of(environ: dict[str, Any]) -> int | None:
    text = environ.get("CONTENT_LENGTH") or ""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MAX_LENGTH_DIGITS else None


def _headers(body: bytes) -> list[tuple[str, str]]:
    return [("Content-Type", "text/xml; charset=utf-8"), ("Content-Length", str(len(body)))]


class HttpServer:
    """The listening server. `bind` first, so that port 0 is known; `serve` blocks until `stop`."""

    def __init__(
        self, ip: str, port: int, threads: int, tls_cert: str, tls_key: str, folder: Path, shared_port: bool = False
    ) -> None:
        self._server = Server(
            (ip, port), None, numthreads=threads, max=threads, timeout=_IDLE_SECONDS, request_queue_size=128,
            reuse_port=shared_port,
        )  # fmt: skip
        self._server.error_log = _log_cheroot  # type: ignore[method-assign]
        self._server.max_request_header_size = _MAX_HEADER_BYTES
        self._server.keep_alive_conn_limit = _MAX_IDLE_CONNECTIONS
        self._server.expiration_interval = _WAKE_SECONDS  # also how late it notices that it shall stop
        self._stopped = threading.Event()
        self._tls = bool(tls_cert)
        if self._tls:
            self._server.ssl_adapter = _tls_adapter(folder / tls_cert, folder / tls_key)

    def bind(self) -> str:
        """Take the port; returns the URL. ConfigError if it cannot be had."""
        host, port = self._server.bind_addr[:2]
        try:
            self._server.prepare()
        except OSError as error:
            reason = f"{error.strerror or error}; choose another ip or server_port"
            raise ConfigError(f"cannot listen on {host} port {port}: {reason}") from error
        bound_host, bound_port = self._server.bind_addr[:2]
        shown = f"[{bound_host}]" if ":" in str(bound_host) else bound_host
        return f"{'https' if self._tls else 'http'}://{shown}:{bound_port}/"

    def serve(self, app: Wsgi) -> None:
        self._server.wsgi_app = app
        self._server.serve()
        self._stopped.wait()  # cheroot returns at once, while threads still work on requests

    def stop(self) -> None:
        """Finish the requests under way and end `serve`."""
        self._server.stop()
        self._stopped.set()


class _TlsAdapter(BuiltinSSLAdapter):
    """Leaves the handshake to the thread that reads: cheroot would do it where it accepts connections, and one
    silent peer would keep all others out."""

    def wrap(self, sock: socket.socket) -> tuple[socket.socket, dict[str, str]]:
        wrapped = self.context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
        return wrapped, {"wsgi.url_scheme": "https", "HTTPS": "on"}


def _tls_adapter(certificate: Path, key: Path) -> BuiltinSSLAdapter:
    try:
        return _TlsAdapter(str(certificate), str(key))
    except (OSError, ValueError) as error:
        raise ConfigError(f"tls_cert {certificate} and tls_key {key} cannot be used: {error}") from error


def quiet_lost_connections() -> None:
    """Since Python 3.13 cheroot's files complain on standard error when they are collected after a lost connection."""

    def note(unraisable: Any) -> None:
        if isinstance(unraisable.exc_value, OSError):
            _log.debug("lost connection: %s", unraisable.exc_value)
        else:
            sys.__unraisablehook__(unraisable)

    sys.unraisablehook = note


def _log_cheroot(msg: str = "", level: int = logging.INFO, traceback: bool = False) -> None:
    if isinstance(error := sys.exc_info()[1], OSError):  # broken connections are daily life, also those with TLS
        _log.debug("%s: %s", msg, error)
    else:
        _log.log(level, "%s", msg, exc_info=traceback)

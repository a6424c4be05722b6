"""Calls a WSGI application with a request that is complete. Knows no sockets."""

import logging
import sys
from http import HTTPStatus
from typing import Any, BinaryIO, cast
from urllib.parse import unquote_to_bytes

from server.urlserver.guard import Answer, Head, Headers, Wsgi

_log = logging.getLogger(__name__)


def called(app: Wsgi, head: Head, body: BinaryIO, scheme: str, own: tuple[str, int]) -> Answer:
    """What it answers. Whatever is raised becomes a 500 without a word of why, which stands in the log."""
    try:
        return _called(app, _environ(head, body, scheme, own))
    except Exception:  # the one place for all that a worker thread runs
        _log.exception("a request could not be answered")
        status = HTTPStatus.INTERNAL_SERVER_ERROR
        text = b"an error of the server; see its log\n"
        return Answer(status.value, status.phrase, [("Content-Type", "text/plain")], text)


def _called(app: Wsgi, environ: dict[str, Any]) -> Answer:
    told: list[tuple[str, Headers]] = []
    parts: list[bytes] = []

    def start_response(status: str, headers: Headers, exc_info: Any = None) -> Any:
        told.append((status, headers))
        return parts.append

    given = app(environ, start_response)
    try:
        parts.extend(given)
    finally:
        if close := getattr(given, "close", None):
            close()
    status, headers = told[-1]
    number, _, phrase = status.partition(" ")
    kept = [(name, value) for name, value in headers if name.lower() != "content-length"]
    return Answer(int(number), phrase, kept, b"".join(parts))


def _environ(head: Head, body: BinaryIO, scheme: str, own: tuple[str, int]) -> dict[str, Any]:
    """As PEP 3333 wants it."""
    environ = {
        "REQUEST_METHOD": head.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(head.path).decode("latin-1"),
        "QUERY_STRING": head.query,
        "CONTENT_TYPE": head.headers.get("content-type", ""),
        "CONTENT_LENGTH": str(head.length or 0),
        "SERVER_NAME": own[0],
        "SERVER_PORT": str(own[1]),
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": head.peer,
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scheme,
        "wsgi.input": body,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    for name, value in head.headers.items():
        if name not in ("content-type", "content-length"):
            environ[f"HTTP_{name.upper().replace('-', '_')}"] = value
    return cast(dict[str, Any], environ)

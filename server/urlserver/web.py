"""What urlServer answers beside SOAP: an operator's commands as JSON, at /admin.

The guard has looked at token, size and origin before.
"""

import json
import logging
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any

from server.admin.operator import Operator, OperatorError
from server.frontier.frontier import FrontierError
from server.frontier.store import StoreError

ADMIN_PATH = "/admin"
CONTENT_TYPE = "application/json"
MAX_BYTES = 1_000_000  # of a command: parsed, JSON can take 27 times its size, and no other thread runs meanwhile

_log = logging.getLogger(__name__)


class AdminApp:
    """A WSGI application: {"command": …, "arguments": {…}} in, the operator's answer out. Called by many threads."""

    def __init__(self, operator: Operator) -> None:
        self._operator = operator

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        status, answer = self._answer(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
        body = json.dumps(answer).encode()
        start_response(f"{status.value} {status.phrase}", json_headers(body))
        return [body]

    def _answer(self, message: bytes) -> tuple[HTTPStatus, dict[str, Any]]:
        try:
            command, arguments = _request(message)
            return HTTPStatus.OK, self._operator.run(command, arguments)
        except (OperatorError, FrontierError) as error:
            return HTTPStatus.BAD_REQUEST, {"error": str(error)}
        except (StoreError, OSError) as error:
            _log.error("%s", error)
            return HTTPStatus.SERVICE_UNAVAILABLE, {"error": str(error)}


def _request(message: bytes) -> tuple[str, dict[str, Any]]:
    try:
        request = json.loads(message)
    except (ValueError, RecursionError) as error:
        raise OperatorError("the message is no JSON") from error
    if not isinstance(request, dict) or not isinstance(request.get("command"), str):
        raise OperatorError('the message must be {"command": …, "arguments": {…}}')
    arguments = request.get("arguments", {})
    if not isinstance(arguments, dict):
        raise OperatorError("arguments must be an object")
    return request["command"], arguments


def json_headers(body: bytes) -> list[tuple[str, str]]:
    return [("Content-Type", CONTENT_TYPE), ("Content-Length", str(len(body)))]


def error_body(text: str) -> bytes:
    return json.dumps({"error": text}).encode()

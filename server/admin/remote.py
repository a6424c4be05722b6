"""Calls an operator's verbs on a running urlServer, over HTTP and JSON. Says whether there is one at all."""

import ipaddress
import json
import ssl
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from urllib.parse import urlsplit

from common.errors import PavoukError, RemoteRefused, RemoteUnavailable
from common.settings import Settings
from server.admin.operator import Answer, Arguments, OperatorError
from server.opening import ADDRESS_NAME

_TIMEOUT_SECONDS = 600.0  # a retry of a million URLs takes its time
_PING_SECONDS = 20.0  # what listens there and is silent is not ours, or in trouble


class NotRunning(PavoukError):
    """Nobody listens there."""


class NotOurs(RemoteRefused):
    """Somebody listens there, but it is no urlServer."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a server listens."""

    host: str
    port: int
    tls: bool

    def __str__(self) -> str:
        shown = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{shown}:{self.port}/"


class Remote:
    """The urlServer at one place. A connection for each call."""

    def __init__(self, place: Place, token: str, certificate: Path | None) -> None:
        self._place = place
        self._token = token
        self._certificate = certificate

    def run(self, command: str, arguments: Arguments) -> Answer:
        """What the server answers; NotRunning if nobody listens, another PavoukError if it cannot be had."""
        body = json.dumps({"command": command, "arguments": dict(arguments)}).encode()
        headers = {"Content-Type": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        connection = self._connection(_PING_SECONDS if command == "ping" else _TIMEOUT_SECONDS)
        try:
            connection.request("POST", "/admin", body, headers)
            answer = connection.getresponse()
            return self._understood(answer.status, answer.read())
        except ConnectionRefusedError as error:
            raise NotRunning(f"nobody listens at {self._place}") from error
        except ssl.SSLError as error:
            raise NotOurs(f"{self._place} does not show the certificate of this urlServer: {error}") from error
        except HTTPException as error:
            raise NotOurs(f"what listens at {self._place} is no urlServer") from error
        except OSError as error:
            raise RemoteUnavailable(f"urlServer at {self._place} cannot be reached: {error}") from error
        finally:
            connection.close()

    def _connection(self, timeout: float) -> HTTPConnection:
        if not self._place.tls:
            return HTTPConnection(self._place.host, self._place.port, timeout=timeout)
        try:
            context = ssl.create_default_context(cafile=self._certificate)
        except OSError as error:
            raise RemoteUnavailable(f"tls_cert {self._certificate} cannot be read: {error}") from error
        # The certificate itself is what we trust, and it is made out to the name that workers use, not to loopback.
        if self._certificate is not None:
            context.check_hostname = False
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
            context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        return HTTPSConnection(self._place.host, self._place.port, timeout=timeout, context=context)

    def _understood(self, status: int, body: bytes) -> Answer:
        try:
            answer = json.loads(body)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise NotOurs(f"what listens at {self._place} is no urlServer")
        if status == 200:
            return answer
        text = str(answer.get("error", f"status {status}"))
        if status == 400:
            raise OperatorError(text)
        if status == 401:
            raise RemoteRefused("the token is missing or wrong: give that of urlServer (--token-file or config.cfg)")
        raise RemoteUnavailable(f"urlServer at {self._place}: {text}")


def written_place(settings: Settings) -> Place | None:
    """Where the server says it listens that has the work folder open, or had when it was killed."""
    try:
        parts = urlsplit((settings.memory / ADDRESS_NAME).read_text().strip())
        return Place(reachable(parts.hostname or ""), parts.port or 0, parts.scheme == "https")
    except (OSError, ValueError):
        return None


def configured_place(settings: Settings) -> Place:
    """Where the settings say that it listens."""
    server = settings.url_server
    return Place(reachable(server.ip), server.server_port, bool(server.tls_cert))


def reachable(ip: str) -> str:
    """Where to call a server that listens on `ip`: one that listens everywhere does so on loopback, too."""
    try:
        address = ipaddress.ip_address(ip)
    except ValueError:
        return ip or "127.0.0.1"
    if not address.is_unspecified:
        return ip
    return "127.0.0.1" if address.version == 4 else "::1"

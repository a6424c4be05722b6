"""HTTP under the SOAP service: listens, and reads from all connections in one thread; a pool of threads answers.

Neither cheroot nor waitress would do: the one gives a thread to each connection that has sent a byte, the other knows
no TLS and sets no time for a whole request.
"""

import asyncio
import logging
import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from common.errors import ConfigError
from common.files import trusted
from common.handles import allow_open_files
from server.lobby import MAX_WAITING
from server.places import Places
from server.urlserver.connection import Connection, Hall
from server.urlserver.guard import Guard

MAX_CONNECTIONS = 1000  # with a good token; they cost no thread
MAX_CONNECTIONS_PER_ADDRESS = 250
_BACKLOG = 256  # connections that the system keeps until they are accepted
_OTHER_FILES = 500  # of the frontier
_PAUSE_SECONDS = 0.1  # when there is no file number left for a connection

_log = logging.getLogger(__name__)


class HttpServer:
    """The listening server. `bind` first, so that port 0 is known; `serve` blocks until `stop`; `close` in any case."""

    def __init__(
        self, ip: str, port: int, threads: int, tls_cert: str, tls_key: str, folder: Path, shared_port: bool = False
    ) -> None:
        self._address = ip, port
        self._threads = threads
        self._shared_port = shared_port
        self._tls = _tls_context(trusted(folder, tls_cert), trusted(folder, tls_key)) if tls_cert else None
        self._socket = socket.socket()
        self._loop = asyncio.new_event_loop()
        self._ending = asyncio.Event()

    def bind(self) -> str:
        """Take the port; returns the URL. ConfigError if it cannot be had."""
        try:
            self._socket.close()
            self._socket = _listening(*self._address, self._shared_port)
        except OSError as error:
            reason = f"{error.strerror or error}; choose another ip or server_port"
            host, port = self._address
            raise ConfigError(f"cannot listen on {host} port {port}: {reason}") from error
        host, port = self._socket.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        return f"{'https' if self._tls else 'http'}://{shown}:{port}/"

    def serve(self, guard: Guard, spool: Path) -> None:
        """`spool`: a folder for large messages that wait for their turn."""
        allow_open_files(_OTHER_FILES + MAX_CONNECTIONS + MAX_WAITING)
        self._loop.set_exception_handler(_note_lost)
        self._loop.run_until_complete(self._serve(guard, spool))

    def stop(self) -> None:
        """Finish the requests under way and end `serve`. Any thread may say so, at any time."""
        with suppress(RuntimeError):  # it has ended
            self._loop.call_soon_threadsafe(self._ending.set)

    def close(self) -> None:
        """After `serve`, or instead of it."""
        self._socket.close()
        self._loop.close()

    async def _serve(self, guard: Guard, spool: Path) -> None:
        with ThreadPoolExecutor(self._threads, "soap") as pool:
            places = Places(MAX_CONNECTIONS, MAX_CONNECTIONS_PER_ADDRESS)
            hall = Hall(guard, pool, self._socket.getsockname()[:2], spool, self._tls, places)
            accepting = self._loop.create_task(self._accept(hall))
            await self._ending.wait()
            accepting.cancel()
            hall.is_ending = True
            if ends := [connection.finish() for connection in list(hall.connections)]:
                await asyncio.wait(ends)

    async def _accept(self, hall: Hall) -> None:
        while True:
            async with hall.look_ups:  # no more are taken in than can be looked up
                pass
            try:
                accepted, address = await self._loop.sock_accept(self._socket)
            except ConnectionError:  # gone before it was accepted
                continue
            except OSError as error:  # too many open files
                _log.error("no connection can be accepted for the moment: %s", error)
                await asyncio.sleep(_PAUSE_SECONDS)
                continue
            hall.lobby.enter(Connection(accepted, address[0], hall))
            await asyncio.sleep(0)  # `sock_accept` does not wait while there is one more: those before have their turn


def _listening(ip: str, port: int, shared_port: bool) -> socket.socket:
    family, _, _, _, address = socket.getaddrinfo(ip, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    everywhere = address[0] == "::" and socket.has_dualstack_ipv6()
    listening = socket.create_server(
        address[:2], family=family, backlog=_BACKLOG, reuse_port=shared_port, dualstack_ipv6=everywhere
    )
    listening.setblocking(False)
    return listening


def _tls_context(certificate: Path, key: Path) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate, key)
    except (OSError, ValueError) as error:
        raise ConfigError(f"tls_cert {certificate} and tls_key {key} cannot be used: {error}") from error
    return context


def _note_lost(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What asyncio has nobody to tell of. Broken connections are daily life, also those with TLS."""
    if isinstance(error := context.get("exception"), OSError):
        _log.debug("lost connection: %s", error)
    else:
        _log.error("%s", context["message"], exc_info=error)

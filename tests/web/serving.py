"""What the servers for tests share: bind, read a request, log it, run until told to stop.

Made for one event loop. Each request is logged when it has been answered or given up."""

import asyncio
import os
import signal
import socket
import ssl
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.web.requestlog import Request

BACKLOG = 1024
PORT_TRIES = 20
# A request for this host is not logged: it tells a test that all earlier ones are.
CONTROL_HOST = "control.invalid"

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Head:
    """A request without its body. Header names are in lower case."""

    method: str
    target: str
    version: str
    headers: dict[str, str]
    unix: float
    monotonic: float

    @property
    def host(self) -> str:
        """The authority that was asked."""
        return self.headers.get("host", "").lower()

    @property
    def keeps_alive(self) -> bool:
        """Whether the client wants to go on with this connection."""
        return self.version == "HTTP/1.1" and self.headers.get("connection", "").lower() != "close"


class RequestLog:
    """Appends requests to a file, each flushed at once; without a path it does nothing."""

    def __init__(self, path: Path | None) -> None:
        self._file = path.open("a", encoding="utf-8", buffering=1) if path else None

    def add(self, head: Head, writer: asyncio.StreamWriter, status: int, *, finished: bool) -> None:
        if self._file is None or head.host == CONTROL_HOST:
            return
        request = Request(
            unix=head.unix,
            monotonic=head.monotonic,
            host=head.host,
            target=head.target,
            agent=head.headers.get("user-agent", ""),
            status=status,
            client_port=writer.get_extra_info("peername")[1],
            finished=time.monotonic() if finished else None,
            method=head.method,
        )
        self._file.write(request.as_line())


async def read_head(reader: asyncio.StreamReader) -> Head | None:
    """The next request of a connection, None when there is none or it is not HTTP."""
    words = (await reader.readline()).decode("latin-1").split()
    unix, monotonic = time.time(), time.monotonic()
    if len(words) != 3:
        return None
    headers: dict[str, str] = {}
    while (line := await reader.readline()).strip():
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.strip().lower()] = value.strip()
    return Head(words[0], words[1], words[2], headers, unix, monotonic)


def run_server(
    handler: Handler, addresses: Sequence[str], port: int, tls: Mapping[str, ssl.SSLContext] | None = None
) -> None:
    """Serves on the same port of all addresses, prints `ready PORT`, ends on SIGTERM or end of input.

    `tls` has what is said at an address before anything else, if it talks TLS."""
    with suppress(KeyboardInterrupt):
        asyncio.run(_run(handler, addresses, port, tls or {}))


async def _run(handler: Handler, addresses: Sequence[str], port: int, tls: Mapping[str, ssl.SSLContext]) -> None:
    listening = _bind(addresses, port)
    stop = _told_to_stop()
    servers = [
        await asyncio.start_server(_guarded(handler), sock=each, ssl=tls.get(address))
        for address, each in zip(addresses, listening, strict=True)
    ]
    print("ready", listening[0].getsockname()[1], flush=True)
    await stop.wait()
    for server in servers:
        server.close()


def _guarded(handler: Handler) -> Handler:
    """A client that goes away, and the end of the server, end a connection without a word."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await handler(reader, writer)
        writer.close()

    return serve


def _told_to_stop() -> asyncio.Event:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stop.set)

    def wait_for_end_of_input() -> None:
        # os.read, not sys.stdin: a thread inside a buffered read makes the interpreter abort at exit.
        while os.read(0, 1024):
            pass
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(stop.set)

    threading.Thread(target=wait_for_end_of_input, daemon=True).start()
    return stop


def _bind(addresses: Sequence[str], port: int) -> list[socket.socket]:
    """The same port on every address; a port chosen by the system may be taken on one of the others."""
    for _ in range(1 if port else PORT_TRIES):
        try:
            return _bind_once(addresses, port)
        except OSError as error:
            failure = error
    raise SystemExit(f"no port is free on all of {addresses[0]} .. {addresses[-1]}: {failure}")


def _bind_once(addresses: Sequence[str], port: int) -> list[socket.socket]:
    bound: list[socket.socket] = []
    try:
        for address in addresses:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            bound.append(socket.create_server((address, port), family=family, backlog=BACKLOG))
            port = bound[0].getsockname()[1]
    except OSError:
        for each in bound:
            each.close()
        raise
    return bound

"""A small HTTP server for unit tests: sends exactly the bytes it was given, and keeps what it was asked."""

import socketserver
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from socket import socket


@dataclass
class Asked:
    """One request as it came in."""

    path: str
    headers: dict[str, str]  # names in lower case
    connection: int


Reply = bytes | Callable[["Canned", socket], None]


@dataclass
class Canned:
    """`replies` by path; None stands for all other paths. A function writes for itself, then is cut off."""

    port: int = 0
    scheme: str = "http"
    replies: dict[str | None, Reply] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)  # functions that hang wait for this
    connections: int = 0

    @property
    def origin(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def url(self, path: str) -> str:
        return self.origin + path

    def paths(self) -> list[str]:
        return [asked.path for asked in self.asked]


def reply(body: bytes = b"", status: str = "200 OK", **headers: str) -> bytes:
    """A well-formed answer. Underscores in header names become dashes; an empty value leaves one off."""
    lines = {"Content-Length": str(len(body)), "Content-Type": "text/html"}
    lines |= {name.replace("_", "-"): value for name, value in headers.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items() if value)
    return f"HTTP/1.1 {status}\r\n{head}\r\n".encode("latin-1") + body


def redirect(location: str, status: str = "302 Found") -> bytes:
    return reply(b"moved", status, Location=location)


def hang(canned: Canned, connection: socket) -> None:
    """Never answers."""
    canned.over.wait()


def broken_off(data: bytes) -> Reply:
    """Sends `data` and hangs up."""
    return lambda canned, connection: connection.sendall(data)


def dribble(start: bytes) -> Reply:
    """Begins with `start`, then sends a byte every now and then."""

    def write(canned: Canned, connection: socket) -> None:
        connection.sendall(start)
        while not canned.over.wait(0.05):
            connection.sendall(b"x")

    return write


def endless(start: bytes, block: bytes) -> Reply:
    """Begins with `start`, then repeats `block` as long as somebody listens."""

    def write(canned: Canned, connection: socket) -> None:
        connection.sendall(start)
        while not canned.over.is_set():
            connection.sendall(block)

    return write


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    canned: Canned
    tls: ssl.SSLContext | None = None

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that hang up are what these tests are about."""


class _Handler(socketserver.StreamRequestHandler):
    server: _Server

    def setup(self) -> None:
        if self.server.tls:
            self.request = self.server.tls.wrap_socket(self.request, server_side=True)
        super().setup()

    def handle(self) -> None:
        canned = self.server.canned
        canned.connections += 1
        number = canned.connections
        while request_line := self.rfile.readline():
            if not request_line.startswith(b"GET "):  # TLS, for example
                return
            path = request_line.split()[1].decode()
            canned.asked.append(Asked(path, dict(self._headers()), number))
            answer = canned.replies.get(path, canned.replies.get(None, reply(b"not here", "404 Not Found")))
            if callable(answer):
                answer(canned, self.request)
                return
            self.request.sendall(answer)
            if b"Content-Length:" not in answer and b"chunked" not in answer and b" 304 " not in answer:
                return

    def _headers(self) -> Iterator[tuple[str, str]]:
        while line := self.rfile.readline().decode("latin-1").strip():
            name, _, value = line.partition(":")
            yield name.lower(), value.strip()


@contextmanager
def serving(tls: ssl.SSLContext | None = None, address: str = "127.0.0.1") -> Iterator[Canned]:
    """Run a server on a free port until the block ends."""
    with _Server((address, 0), _Handler) as server:
        server.tls = tls
        server.canned = Canned(server.server_address[1], "https" if tls else "http")
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server.canned
        finally:
            server.canned.over.set()
            server.shutdown()
            thread.join()

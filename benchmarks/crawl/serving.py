"""nginx as the web server of a site: one process for all hosts, with its files in a folder that goes with it.

Its log holds one moment for each page sent, and nothing else: it costs a few microseconds a page.
"""

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.crawl.errors import BenchmarkError
from benchmarks.crawl.pages import NEXT_ROUND
from benchmarks.crawl.site import Site, addresses_of

_TRIES = 20
_STOP_SECONDS = 10
_CONFIG = """
daemon off;
worker_processes 1;
{user}
pid {folder}/nginx.pid;
error_log stderr crit;
events {{ worker_connections 4096; }}
http {{
    types {{ text/html html htm; text/css css; application/javascript js; text/plain txt; image/png png;
            image/svg+xml svg; application/pdf pdf; application/zip zip; }}
    default_type application/octet-stream;
    charset utf-8;
    log_not_found off;
    sendfile on;
    keepalive_timeout 60;
    keepalive_requests 1000000;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    map "$status $sent_http_content_type" $is_page {{ "~^200 text/html" 1; default 0; }}
    log_format moment '$msec';
    access_log {log} moment if=$is_page;
{servers}
}}
"""
_SERVER = "    server {{ listen {address}:{port}; root {root}; index index.html; {extra} }}"
# Any round is the same pages; each answer names a round that nobody has named before.
_ENDLESS = f"rewrite ^/r[0-9a-f]+/(.*)$ /$1 break; sub_filter {NEXT_ROUND} $request_id; sub_filter_once off;"


@dataclass(frozen=True, slots=True)
class Listening:
    """Sockets that are already listening, the same port on every host: nobody can take it before nginx does."""

    sockets: tuple[socket.socket, ...]
    port: int


@dataclass(frozen=True, slots=True)
class PageLog:
    """When pages were sent, in seconds since 1970."""

    path: Path

    def end(self) -> int:
        """A mark to read on from."""
        return self.path.stat().st_size

    def since(self, mark: int) -> list[float]:
        with self.path.open("rb") as file:
            file.seek(mark)
            return sorted(map(float, file.read().split()))


@contextmanager
def listening(hosts: int, port: int = 0) -> Iterator[Listening]:
    """Port 0 takes one that is free on all hosts."""
    addresses = addresses_of(hosts)
    with ExitStack() as held:
        for attempt in range(_TRIES):
            try:
                sockets = _bound(addresses, port)
                break
            except OSError as error:
                if port or attempt == _TRIES - 1:
                    raise BenchmarkError(f"cannot listen on {error}; choose another port with --port") from error
        for item in sockets:
            held.enter_context(item)
        yield Listening(tuple(sockets), sockets[0].getsockname()[1])


def _bound(addresses: Sequence[str], port: int) -> list[socket.socket]:
    with ExitStack() as held:
        sockets: list[socket.socket] = []
        for address in addresses:
            try:
                item = held.enter_context(socket.create_server((address, port), backlog=511))
            except OSError as error:
                raise OSError(f"{address} port {port}: {os.strerror(error.errno or 0)}") from error
            port = item.getsockname()[1]
            sockets.append(item)
        held.pop_all()
        return sockets


@contextmanager
def served(site: Site, sockets: Listening, folder: Path, is_endless: bool = False) -> Iterator[PageLog]:
    """Serves the site until the end of the block; `folder` takes what nginx writes."""
    log = folder / "pages.log"
    log.touch()
    extra = _ENDLESS if is_endless else ""
    hosts = zip(addresses_of(len(site.folders)), site.folders, strict=True)
    values = {
        # Started by root, workers become `user`: by default one who cannot read temporary folders.
        "user": "user root root;" if os.geteuid() == 0 else "",
        "folder": folder,
        "log": log,
        "servers": "\n".join(
            _SERVER.format(address=address, port=sockets.port, root=f'"{root}"', extra=extra) for address, root in hosts
        ),
    }
    (folder / "nginx.conf").write_text(_CONFIG.format(**values), encoding="utf-8")
    process = _start(folder, sockets)
    try:
        if not _answers(process, sockets):
            said = (folder / "errors").read_text(errors="replace").strip()
            raise BenchmarkError(f"nginx did not start: {said}")
        yield PageLog(log)
    finally:
        _stop(process)


def _start(folder: Path, listening: Listening) -> subprocess.Popen[bytes]:
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
    if program is None:
        raise BenchmarkError("nginx is not installed")
    numbers = [item.fileno() for item in listening.sockets]
    # nginx takes over the sockets named in NGINX. setpriv: it ends when we die.
    environment = {**os.environ, "NGINX": "".join(f"{number};" for number in numbers)}
    command = ["setpriv", "--pdeathsig", "TERM", program, "-e", "stderr", "-c", str(folder / "nginx.conf")]
    with (folder / "errors").open("wb") as errors:
        return subprocess.Popen(command, env=environment, stderr=errors, pass_fds=numbers, start_new_session=True)


def _answers(process: subprocess.Popen[bytes], listening: Listening) -> bool:
    """A request waits in the socket's queue until nginx takes it; if nginx has died, nobody will."""
    with socket.create_connection(listening.sockets[0].getsockname()) as connection:
        connection.settimeout(0.2)
        connection.sendall(b"GET /robots.txt HTTP/1.0\r\n\r\n")
        while process.poll() is None:
            try:
                if connection.recv(1):
                    return True
            except TimeoutError:
                continue
    return False


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # its workers are in the session that we made
        process.wait()

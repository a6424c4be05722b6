"""A real nginx that serves a folder, as a child process, and the folder of a real documentation set.

It needs no rights of its own: configuration, logs and temporary files are in a folder that goes with it.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

from tests.web.child import ROOT, STOP_SECONDS
from tests.web.requestlog import Request

# The operator's choice of the folder that holds Python's documentation as HTML.
DOCS_VARIABLE = "PAVOUK_TEST_PYTHON_DOCS"
READY_PATH = "/-/ready"

CONFIG = """
daemon off;
worker_processes 1;
{user}
pid {folder}/nginx.pid;
error_log stderr error;
events {{ worker_connections 1024; }}
http {{
    types {{ text/html html htm; text/css css; application/javascript js; image/png png; image/svg+xml svg;
            text/plain txt; application/pdf pdf; application/zip zip; }}
    default_type application/octet-stream;
    charset utf-8;
    log_not_found off;
    sendfile on;
    keepalive_timeout 60;
    keepalive_requests 100000;
    log_format requests escape=json '{{"at":$msec,"took":$request_time,"host":"$http_host",'
        '"target":"$request_uri","agent":"$http_user_agent","status":$status,"client_port":$remote_port,'
        '"method":"$request_method"}}';
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen {address}:{port};
        root {root};
        index index.html;
        access_log {folder}/access.log requests;
        location = {ready} {{ access_log off; return 204; }}
    }}
}}
"""


@dataclass(frozen=True, slots=True)
class Nginx:
    """A running nginx. Its log can be read while it runs."""

    address: str
    port: int
    access_log: Path
    pid: int

    @property
    def url(self) -> str:
        """The address of the served folder."""
        return f"http://{self.address}:{self.port}/"

    def wait_until_answered(self) -> None:
        """Returns when nginx answers, and so has logged what it answered before."""
        connection = HTTPConnection(self.address, self.port, timeout=STOP_SECONDS)
        try:
            connection.request("GET", READY_PATH)
            connection.getresponse().read()
        finally:
            connection.close()

    def log(self) -> list[Request]:
        """All requests so far, in the order in which they came."""
        self.wait_until_answered()
        lines = self.access_log.read_text(encoding="utf-8").splitlines()
        return sorted(map(_request, lines), key=lambda request: request.monotonic)


@contextmanager
def run_nginx(root: Path, address: str = "127.0.0.1") -> Iterator[Nginx]:
    """Serves the folder `root` on a free port until the end of the block."""
    with (
        tempfile.TemporaryDirectory(prefix="testnginx-") as folder,
        _started(root, address, Path(folder)) as nginx,
    ):
        nginx.wait_until_answered()
        yield nginx


def nginx_program() -> str | None:
    """Where nginx is: installed (often not in the PATH of users other than root), or unpacked by ./test."""
    folders = f"/usr/sbin:/usr/local/sbin:{ROOT / '.setup' / 'bin'}"
    return shutil.which("nginx") or shutil.which("nginx", path=folders)


def python_docs() -> Path | None:
    """Python's documentation in HTML: as told, as installed, or as unpacked by ./test."""
    told = os.environ.get(DOCS_VARIABLE)
    folders = [Path("/usr/share/doc/python3.11/html"), ROOT / ".setup" / "python-doc"]
    if told:
        folders.insert(0, Path(told))
    return next((folder for folder in folders if (folder / "index.html").is_file()), None)


@contextmanager
def _started(root: Path, address: str, folder: Path) -> Iterator[Nginx]:
    with socket.create_server((address, 0), backlog=511) as listening:
        port = listening.getsockname()[1]
        (folder / "nginx.conf").write_text(_config(root, address, port, folder), encoding="utf-8")
        process = _start(folder, listening)
    try:
        yield Nginx(address, port, folder / "access.log", process.pid)
    finally:
        _stop(process)


def _start(folder: Path, listening: socket.socket) -> subprocess.Popen[bytes]:
    program = nginx_program()
    if program is None:
        raise FileNotFoundError("nginx is not installed")
    # nginx takes over sockets named in NGINX. So nobody else can take the port in between, and early
    # connections wait instead of being refused. (With `master_process off` version 1.22 crashes on it.)
    # setpriv: nginx ends when the test dies.
    command = ["setpriv", "--pdeathsig", "TERM", program, "-e", "stderr", "-c", str(folder / "nginx.conf")]
    environment = {**os.environ, "NGINX": f"{listening.fileno()};"}
    return subprocess.Popen(command, env=environment, pass_fds=[listening.fileno()], start_new_session=True)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        # A master that is killed leaves its worker behind; both are in the session that we made.
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _config(root: Path, address: str, port: int, folder: Path) -> str:
    # Started by root, workers become `user`: by default one who cannot read folders made by tests.
    values = {"folder": folder, "root": root.resolve(), "address": address, "port": port, "ready": READY_PATH}
    return CONFIG.format(user="user root root;" if os.geteuid() == 0 else "", **values)


def _request(line: str) -> Request:
    # nginx knows only the wall clock, and the time at which it was done.
    record = json.loads(line)
    finished = record.pop("at")
    started = finished - record.pop("took")
    return Request(unix=started, monotonic=started, finished=finished, **record)

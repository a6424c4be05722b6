"""Starts the servers for tests: `with run_web(hosts=3) as web:` and `with run_hostile() as server:`."""

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from tests.web.changes import Changes
from tests.web.child import Child
from tests.web.graph import Web
from tests.web.hostile import plain_hosts
from tests.web.hostile_robots import ROBOTS_HOSTS
from tests.web.hostile_tls import AUTHORITY_NAME, TLS_HOSTS
from tests.web.requestlog import Request, read_log
from tests.web.server import host_names
from tests.web.serving import CONTROL_HOST
from tests.web.truth import Truth, truth

CHANGES_NAME = "changes.json"


class RunningServer:
    """A child with a request log. The log can still be read when the child has ended."""

    def __init__(self, child: Child, address: str, log_file: Path) -> None:
        self._child = child
        self._address = address
        self._log_file = log_file
        self._final_log: list[Request] | None = None
        self.port = child.port

    def log(self) -> list[Request]:
        """All requests answered so far, in the order in which they came."""
        if self._final_log is not None:
            return list(self._final_log)
        self._wait_for_log()
        return read_log(self._log_file)

    def stop(self) -> None:
        """Ends the server; can be repeated."""
        self._child.stop()
        if self._final_log is None:
            self._final_log = read_log(self._log_file)

    def _wait_for_log(self) -> None:
        # The server is one event loop: when it answers this, it has logged what it answered before.
        connection = HTTPConnection(self._address, self.port, timeout=10)
        try:
            connection.request("GET", "/", headers={"Host": CONTROL_HOST})
            connection.getresponse().read()
        finally:
            connection.close()


Running = TypeVar("Running", bound=RunningServer)


class RunningWeb(RunningServer):
    """A served web, and what is true about it."""

    def __init__(self, child: Child, address: str, log_file: Path, web: Web) -> None:
        super().__init__(child, address, log_file)
        self.web = web
        self.changes = Changes(log_file.with_name(CHANGES_NAME))
        self.start_urls = web.start_urls

    @cached_property
    def truth(self) -> Truth:
        """For a crawl of all hosts from their home pages."""
        return self.truth_from(self.start_urls)

    def truth_from(self, urls: Iterable[str], **rules: Any) -> Truth:
        """For a crawl that starts elsewhere, or by other rules: the arguments of `truth`."""
        return truth(self.web, urls, **rules)


class RunningHostile(RunningServer):
    """The misbehaving server. Each way to answer robots.txt has an address of its own."""

    def url(self, path: str, robots: str = "none") -> str:
        """The address of a behaviour, on the host with that kind of robots.txt."""
        return f"http://{ROBOTS_HOSTS[robots]}:{self.port}{path}"

    def plain_url(self, number: int, path: str) -> str:
        """The address of a behaviour on one of the hosts without a robots.txt, counted from 0."""
        return f"http://{plain_hosts(number + 1)[number]}:{self.port}{path}"


@dataclass(frozen=True, slots=True)
class RunningTls:
    """Servers with bad TLS, and the certificate that a client must trust to find that out."""

    port: int
    authority: Path

    def url(self, kind: str) -> str:
        """An address of that kind."""
        return f"https://{TLS_HOSTS[kind]}:{self.port}/"


@contextmanager
def run_web(
    hosts: int = 3,
    pages: int = 30,
    *,
    links: int = 5,
    seed: int = 1,
    odd: bool = True,
    latency: float = 0.0,
    names: bool = False,
    called: Sequence[str] = (),
    port: int = 0,
    validators: str = "etag",
) -> Iterator[RunningWeb]:
    """Serves a computed web until the end of the block. `names`: h0.localhost, ... instead of addresses; `called`:
    the hosts have these names, which must end in localhost."""
    own_names = tuple(called) or host_names(hosts, names=names)
    hosts, names = len(own_names), names or bool(called)
    options = {"hosts": hosts, "pages": pages, "links": links, "seed": seed, "odd": int(odd), "port": port}
    arguments = [f"--{name}={value}" for name, value in options.items()] + [f"--latency={latency}"]
    arguments += [*["--names"] * names, *[f"--called={name}" for name in called], f"--validators={validators}"]
    with _logged_child("tests.web.server", *arguments, changes=True) as (child, log_file):
        authorities = tuple(f"{name}:{child.port}" for name in own_names)
        web = Web(authorities, pages, links, seed, odd)
        address = "127.0.0.1" if names else str(urlsplit(web.start_urls[0]).hostname)
        with _stopped_at_end(RunningWeb(child, address, log_file, web)) as running:
            yield running


@contextmanager
def run_hostile(hosts: int = 0, *, ipv6: bool = False) -> Iterator[RunningHostile]:
    """Runs the misbehaving server until the end of the block, with so many hosts without a robots.txt."""
    with (
        _logged_child("tests.web.hostile", f"--hosts={hosts}", *["--ipv6"] * ipv6) as (child, log_file),
        _stopped_at_end(RunningHostile(child, ROBOTS_HOSTS["none"], log_file)) as running,
    ):
        yield running


@contextmanager
def run_hostile_tls(folder: Path) -> Iterator[RunningTls]:
    """Runs the servers with bad TLS until the end of the block; `folder` is for their certificates."""
    with Child("tests.web.hostile_tls", f"--folder={folder}") as child:
        yield RunningTls(child.port, folder / AUTHORITY_NAME)


@contextmanager
def _logged_child(module: str, *arguments: str, changes: bool = False) -> Iterator[tuple[Child, Path]]:
    with tempfile.TemporaryDirectory(prefix="testweb-") as folder:
        log_file = Path(folder, "requests.jsonl")
        more = [f"--changes={log_file.with_name(CHANGES_NAME)}"] * changes
        with Child(module, *arguments, *more, f"--log={log_file}") as child:
            yield child, log_file


@contextmanager
def _stopped_at_end(running: Running) -> Iterator[Running]:
    try:
        yield running
    finally:
        running.stop()

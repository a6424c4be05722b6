"""A host and its workers as real processes, each with a folder of its own, and what they have stored."""

import shutil
import signal
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from client.coordinator import Coordinator
from common.bundle import PageEntry, parse_bundle_name, read_pages
from common.config import load
from common.errors import RemoteUnavailable
from common.wire import Totals
from tests.ports import free_port
from tests.processes import Running, running
from tests.waiting import wait_until

_QUICK = ("--lease-seconds", "20", "--retry-wait", "0.2", "--report-seconds", "2")


class Cluster:
    """Starts, kills and restarts the programs. The ports stay the same over restarts."""

    def __init__(
        self, folder: Path, start_urls: Sequence[str], stack: ExitStack, *options: str, receiver: int | None = None
    ) -> None:
        self.host = folder / "host"
        self._folder = folder
        self._stack = stack
        self.start_urls = start_urls
        self._options = options
        self.processes = 1  # of a client
        self.threads = 4  # pairs of each
        self._ports = {"ftp": receiver or free_port(), "url": free_port()}
        self.programs: dict[str, Running] = {}
        if receiver is None:
            self.start("ftp")
        self.start("url")
        self.coordinator = Coordinator(self.url, "test")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/"

    @property
    def server_port(self) -> int:
        return self._ports["url"]

    def start(self, name: str) -> None:
        """Start `ftp`, `url`, or a client of any other name."""
        if name == "ftp":
            where = ("--dir", self.host, "--ftp-port", self._ports["ftp"])
            program = self._run("server.ftpserver.main", "listens on", *where)
        elif name == "url":
            program = self._run(
                "server.urlserver.main", "listens on", "--dir", self.host, "--server-port", self._ports["url"],
                "--ftp-port", self._ports["ftp"], *_QUICK, *self._options, *self.start_urls,
            )  # fmt: skip
        else:
            program = self._run(
                "client.main", "works for", "foreground", "--dir", self._folder / name, "--name", name,
                "--server-port", self._ports["url"], "--number-of-threads", str(self.threads), "--max-wait", "0.5",
                "--processes", str(self.processes),
            )  # fmt: skip
        self.programs[name] = program

    def _run(self, module: str, ready: str, *arguments: object) -> Running:
        return self._stack.enter_context(running(["-m", module, *map(str, arguments)], ready))

    def kill(self, name: str) -> None:
        self.programs[name].kill()

    def stop(self, name: str, number: int = signal.SIGTERM) -> int:
        return self.programs[name].stop(number)

    def totals(self) -> tuple[Totals, bool] | None:
        """None while the server is away."""
        try:
            return self.coordinator.totals()
        except RemoteUnavailable:
            return None

    def wait_until_finished(self, seconds: float = 120.0) -> Totals:
        """Until nothing is queued or leased any more."""
        wait_until(lambda: (self.totals() or (None, False))[1], seconds, lambda: f"not finished: {self.totals()}")
        totals = self.totals()
        assert totals is not None
        return totals[0]

    def stored(self) -> list[PageEntry]:
        """Every stored page, read from the bundles and checked against their manifests."""
        pages = load(self.host).pages
        return [entry for bundle in stored_bundles(pages) for entry, _, _ in read_pages(bundle)]

    def stored_urls(self) -> Counter[str]:
        """How often each identity is stored."""
        return Counter(entry.meta.url for entry in self.stored())


def stored_bundles(pages: Path) -> list[Path]:
    """The complete bundles in Pages/."""
    return [path for path in sorted(pages.glob("*/*")) if parse_bundle_name(path.name)]


@contextmanager
def run_cluster(
    folder: Path, start_urls: Sequence[str], *options: str, receiver: int | None = None
) -> Iterator[Cluster]:
    """A host with both servers; the test starts the clients. Everything ends with the block.

    With `receiver` another FTP server, on that port, takes the bundles; host/config.cfg says with which account.
    """
    with ExitStack() as stack:
        yield Cluster(folder, start_urls, stack, *options, receiver=receiver)
    shutil.rmtree(folder, ignore_errors=True)

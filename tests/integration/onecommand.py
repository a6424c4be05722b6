"""The command crawl as a user calls it, its parts, and what it has stored."""

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from common.bundle import read_pages
from tests.integration.cluster import stored_bundles
from tests.integration.daemon import is_alive, run_command
from tests.processes import Running, running
from tests.waiting import wait_until

QUICK = ("--delay", "0.02", "--retry-wait", "0.1", "--report-seconds", "0.5", "--number-of-threads", "4",
         "--processes", "1")  # fmt: skip
MODULES = {"url": "server.urlserver.main", "ftp": "server.ftpserver.main", "client": "client.main"}


class Crawls:
    """All runs of crawl in one work folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, *arguments: str, code: int = 0) -> str:
        """Run it to its end, and return what it printed."""
        done = run_command("onehost.main", *QUICK, "--dir", self.folder, *arguments, timeout=120)
        assert done.returncode == code, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout + done.stderr

    @contextmanager
    def running(self, *arguments: str) -> Iterator[Running]:
        """It has begun to crawl when this returns."""
        command = ["-m", "onehost.main", *QUICK, "--dir", self.folder, *arguments]
        with running(command, r" to do, ") as program:
            try:
                yield program
            finally:
                if program.process.poll() is None:
                    program.stop()

    def stored(self) -> Counter[str]:
        """How often each identity is stored."""
        bundles = stored_bundles(self.folder / "Pages")
        return Counter(entry.meta.url for bundle in bundles for entry, _, _ in read_pages(bundle))

    def wait_for_pages(self, count: int) -> None:
        """Until so many are stored by a run that is under way."""
        wait_until(lambda: sum(self.stored().values()) >= count, 60)

    def summary(self) -> dict[str, str]:
        """The lines of summary.txt; the first one is under the empty name."""
        first, *lines = (self.folder / "summary.txt").read_text().splitlines()
        return {"": first} | dict(re.split(r" {2,}", line, maxsplit=1) for line in lines)

    def parts(self) -> dict[str, int]:
        """The process ids of the parts that work in this folder."""
        found: dict[str, int] = {}
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                arguments = path.read_bytes().decode(errors="replace").split("\0")
            except (FileNotFoundError, ProcessLookupError):
                continue
            for name, module in MODULES.items():
                if module in arguments and f"--dir={self.folder}" in arguments:
                    pid = int(path.parent.name)
                    # The client's own processes look the same; it was there before them.
                    if is_alive(pid):
                        found[name] = min(pid, found.get(name, pid))
        return found

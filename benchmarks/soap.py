"""The URL server over SOAP, with zeep as the client: a real urlServer process, and our own coordinator in this one."""

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from client.coordinator import Coordinator
from common.wire import FoundUrl, Report
from onehost.parts import held_port

FOUND_PER_CALL = 5_000
FOUND_CALLS = 40
CLIENTS = 8
JOBS_PER_CLIENT = 100


def found_per_second(folder: Path, batches: Sequence[list[FoundUrl]]) -> float:
    """Found URLs in reports of FOUND_PER_CALL, one after the other, from one client."""
    with _url_server(folder) as url:
        coordinator = Coordinator(url, "benchmark")
        job = coordinator.get_job("first", 1).job
        start = time.perf_counter()
        for batch in batches:
            coordinator.send(Report(job, (), batch))
        return sum(map(len, batches)) / (time.perf_counter() - start)


def jobs_per_second(folder: Path, found: list[FoundUrl]) -> float:
    """getJob calls of one URL each, from CLIENTS clients at once."""
    with _url_server(folder) as url:
        coordinator = Coordinator(url, "filler")
        coordinator.send(Report(coordinator.get_job("first", 1).job, (), found))

        def ask(client: int) -> None:
            mine = Coordinator(url, f"client-{client}")
            for number in range(JOBS_PER_CLIENT):
                assert mine.get_job(f"{client} {number}", 1).tasks

        with ThreadPoolExecutor(CLIENTS) as pool:
            start = time.perf_counter()
            list(pool.map(ask, range(CLIENTS)))
            return CLIENTS * JOBS_PER_CLIENT / (time.perf_counter() - start)


@contextmanager
def _url_server(folder: Path) -> Iterator[str]:
    with held_port() as held:
        port = held.getsockname()[1]
    options = ["--dir", str(folder), "--server-port", str(port), "--delay", "0", "--log-level", "WARNING"]
    command = [sys.executable, "-m", "server.urlserver.main", *options, "http://start.example/"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if "listens on" in line:
                break
        # What it prints from now on is read by nobody: little enough for the pipe.
        yield f"http://127.0.0.1:{port}/"
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()

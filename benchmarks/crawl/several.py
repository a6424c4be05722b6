"""A crawl with more than one clientCrawler on this machine: `python -m benchmarks.crawl.several CLIENTS OPTION…`.

The options are those of crawl, with --dir; those of a client hold for all clients. crawl brings the first client; the
others join as soon as its URL server says where it is.
"""

import argparse
import functools
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from common.config import add_options, given_options
from common.lifeline import end_with_parent
from common.secrets import SECRET_NAME

_LISTENS = re.compile(r"listens on http://127\.0\.0\.1:(\d+)")
_POLL_SECONDS = 0.05


def main() -> int:
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("clients", type=int)
    parser.add_argument("--dir", type=Path, required=True)
    options, rest = parser.parse_known_args()
    told: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: told.append(number))
    crawl = _started("onehost.main", ["--dir", str(options.dir), *rest])
    others: list[subprocess.Popen[bytes]] = []
    try:
        port = _port(options.dir / ".mem" / "urlServer.log", crawl, told)
        if port is not None:
            given = client_options(rest)
            folders = [options.dir / f"client{number}" for number in range(2, options.clients + 1)]
            others += [_client(port, folder, options.dir / ".mem" / SECRET_NAME, given) for folder in folders]
        while crawl.poll() is None and not told:
            time.sleep(_POLL_SECONDS)
    finally:
        # Before crawl, if that is still there: they have something to deliver to its servers.
        for process in others:
            process.terminate()
        for process in others:
            process.wait()
        crawl.terminate()
    return crawl.wait()


def _port(log: Path, crawl: subprocess.Popen[bytes], told: Sequence[int]) -> str | None:
    """Where the URL server listens; None if the crawl is over, or we are told to end, before it says so."""
    while crawl.poll() is None and not told:
        if log.exists() and (match := _LISTENS.search(log.read_text(errors="replace"))):
            return match[1]
        time.sleep(_POLL_SECONDS)
    return None


def client_options(arguments: Sequence[str]) -> list[str]:
    """Those of crawl's options that are for a client."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    add_options(parser, "settings")
    return given_options(parser.parse_known_args(arguments)[0], "client")


def _client(port: str, folder: Path, token: Path, given: Sequence[str]) -> subprocess.Popen[bytes]:
    folder.mkdir()
    where = ["--server-ip", "127.0.0.1", "--server-port", port, "--tls", "0", "--max-wait", "5"]
    where += ["--token-file", str(token.absolute())]
    return _started("client.main", ["foreground", "--dir", str(folder), "--log-level", "WARNING", *given, *where])


def _started(module: str, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
    ending = functools.partial(end_with_parent, os.getpid())
    return subprocess.Popen([sys.executable, "-m", module, *arguments], preexec_fn=ending)


if __name__ == "__main__":
    sys.exit(main())

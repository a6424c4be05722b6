"""A crawl with more than one clientCrawler on this machine: `python -m benchmarks.crawl.several CLIENTS OPTION…`.

The options are those of crawl, with --dir. crawl brings the first client; the others join as soon as its URL server
says where it is.
"""

import argparse
import re
import subprocess
import sys
import time
from pathlib import Path

_LISTENS = re.compile(r"listens on http://127\.0\.0\.1:(\d+)")
_POLL_SECONDS = 0.05


def main() -> int:
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("clients", type=int)
    parser.add_argument("--dir", type=Path, required=True)
    options, rest = parser.parse_known_args()
    crawl = subprocess.Popen([sys.executable, "-m", "onehost.main", "--dir", str(options.dir), *rest])
    port = _port(options.dir / ".mem" / "urlServer.log", crawl)
    numbers = range(2, options.clients + 1) if port else ()
    others = [_client(port or "", options.dir / f"client{number}") for number in numbers]
    try:
        return crawl.wait()
    finally:
        for process in others:
            process.terminate()
        for process in others:
            process.wait()


def _port(log: Path, crawl: subprocess.Popen[bytes]) -> str | None:
    """Where the URL server listens; None if the crawl is over before it says so."""
    while crawl.poll() is None:
        if log.exists() and (match := _LISTENS.search(log.read_text(errors="replace"))):
            return match[1]
        time.sleep(_POLL_SECONDS)
    return None


def _client(port: str, folder: Path) -> subprocess.Popen[bytes]:
    folder.mkdir()
    where = ["--server-ip", "127.0.0.1", "--server-port", port, "--token", "", "--tls", "0", "--max-wait", "5"]
    command = [sys.executable, "-m", "client.main", "foreground", "--dir", str(folder), *where]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    sys.exit(main())

"""The process that reads what may do harm, pages and sitemaps: `python -m client.reading.child PARENT HANDLE`.

Takes them from the socket HANDLE, a line of JSON and then the body, and answers a line of JSON and then what is seen
in it. It can be killed at any moment, and ends itself when a page needs too much memory.
"""

import json
import os
import resource
import socket
import sys
from pathlib import Path
from typing import Any

from client import bounds, heap, sitemaps
from client.reading.seen import Seen, Wanted, see
from client.sitemaps import Sitemap
from common.lifeline import end_with_parent

MAX_PAGE_MEMORY = 140 << 20  # beyond what the process needs for itself; a page at all limits takes about 100 MB
MAX_SITEMAP_MEMORY = 240 << 20  # likewise; one of 50 MB that is full of long addresses takes 190 MB
_MAX_TEXT = 200


def main() -> int:
    parent, handle = int(sys.argv[1]), int(sys.argv[2])
    end_with_parent(parent)
    os.nice(5)  # one hostile page shall not slow down all others
    heap.keep_small()
    own_bytes = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    with socket.socket(fileno=handle) as link, link.makefile("rb") as pages:
        while line := pages.readline():
            head = json.loads(line)
            most = own_bytes + (MAX_SITEMAP_MEMORY if "sitemap" in head else MAX_PAGE_MEMORY)
            resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
            link.sendall(_answer(head, pages.read(head["size"])))
    return 0


def _answer(head: dict[str, Any], body: bytes) -> bytes:
    try:
        packed = _read(head, body).packed()
    except Exception as error:
        return json.dumps({"trouble": f"failed: {type(error).__name__}: {error}"[:_MAX_TEXT]}).encode() + b"\n"
    return json.dumps({"size": len(packed)}).encode() + b"\n" + packed


def _read(head: dict[str, Any], body: bytes) -> Seen | Sitemap:
    if "sitemap" in head:
        return sitemaps.read(body, *head["sitemap"])
    return see(bounds.parsable(body), Wanted(**head["wanted"]))


if __name__ == "__main__":
    sys.exit(main())

"""The process that reads pages which may do harm: `python -m client.reading.child PARENT HANDLE`.

Takes pages from the socket HANDLE, a line of JSON and then the HTML, and answers a line of JSON and then what is seen
in it. It can be killed at any moment, and ends itself when a page needs too much memory.
"""

import json
import os
import resource
import socket
import sys
from pathlib import Path
from typing import Any

from client import bounds, heap
from client.reading.seen import Wanted, see
from common.lifeline import end_with_parent

MAX_MEMORY_BYTES = 140 << 20  # beyond what the process needs for itself; a page at all limits takes about 100 MB
_MAX_TEXT = 200


def main() -> int:
    parent, handle = int(sys.argv[1]), int(sys.argv[2])
    end_with_parent(parent)
    os.nice(5)  # one hostile page shall not slow down all others
    heap.keep_small()
    _limit_memory()
    with socket.socket(fileno=handle) as link, link.makefile("rb") as pages:
        while line := pages.readline():
            head = json.loads(line)
            link.sendall(_answer(head, pages.read(head["size"])))
    return 0


def _answer(head: dict[str, Any], html: bytes) -> bytes:
    try:
        packed = see(bounds.parsable(html), Wanted(head["unfollowed"], head["shown"])).packed()
    except Exception as error:
        return json.dumps({"trouble": f"failed: {type(error).__name__}: {error}"[:_MAX_TEXT]}).encode() + b"\n"
    return json.dumps({"size": len(packed)}).encode() + b"\n" + packed


def _limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MAX_MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


if __name__ == "__main__":
    sys.exit(main())

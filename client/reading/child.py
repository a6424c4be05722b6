"""The processes that read what may do harm, pages and sitemaps: `python -m client.reading.child PARENT HANDLE`.

The first one reads nothing: it takes orders from the socket HANDLE, makes copies of itself and ends them. A copy takes
pages from a socket of its own, a line of JSON and then the body, and answers a line of JSON and then what is seen in
it. It can be killed at any moment: by the kernel when a page needs too much time, by itself when it is too much memory.
"""

import json
import os
import resource
import signal
import socket
import sys
from pathlib import Path
from typing import Any

from client import bounds, sitemaps
from client.reading.seen import Seen, Wanted, see
from client.sitemaps import Sitemap
from common import heap
from common.lifeline import end_with_parent

_MAX_TEXT = 200
_MAX_ORDER = 100


def main() -> int:
    parent, handle = int(sys.argv[1]), int(sys.argv[2])
    end_with_parent(parent)
    os.nice(5)  # one hostile page shall not slow down all others
    signal.signal(signal.SIGPROF, signal.SIG_DFL)  # that is: end
    heap.keep_small()
    with socket.socket(fileno=handle) as link:
        while True:
            order, handles, _, _ = socket.recv_fds(link, _MAX_ORDER, 1)
            if not order:
                return 0
            link.sendall(b"%d\n" % (_make(link, handles[0]) if handles else _end(int(order))))


def _make(orders: socket.socket, handle: int) -> int:
    """A copy of this process that reads pages; its process number. Ends this one if there can be none."""
    parent = os.getpid()
    if pid := os.fork():
        os.close(handle)
        return pid
    try:
        end_with_parent(parent)
        orders.close()
        with socket.socket(fileno=handle) as link:
            _serve(link)
    finally:
        os._exit(0)


def _end(pid: int) -> int:
    """End a copy. If it had ended before, that counts."""
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


def _serve(link: socket.socket) -> None:
    own_bytes = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    with link.makefile("rb") as pages:
        while line := pages.readline():
            head = json.loads(line)
            resource.setrlimit(resource.RLIMIT_AS, (own_bytes + head["memory"], resource.RLIM_INFINITY))
            signal.setitimer(signal.ITIMER_PROF, head["seconds"])
            answer = _answer(head, pages.read(head["size"]))
            signal.setitimer(signal.ITIMER_PROF, 0)
            link.sendall(answer)
            del answer  # before the next page


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

"""Ways to answer robots.txt, each on a loopback address of its own. Pure: path in, answer out."""

import re
from collections.abc import Iterable
from itertools import repeat

from tests.web.pages import Answer

TEXT = (("Content-Type", "text/plain; charset=utf-8"),)
RULES = b"User-agent: *\nDisallow: /closed/\n"
KIB = 1024

KINDS = (
    "none",  # 404: all is allowed
    "forbidden",  # 403: all is allowed (RFC 9309 §2.3.1.3)
    "broken",  # 503: nothing is allowed
    "hangs",  # no answer at all: nothing is allowed
    "rules",  # /closed/ is disallowed, as in all kinds below
    "crawl-delay",
    "redirects-5",  # must be followed
    "redirects-6",  # need not be followed
    "huge",  # the rule ends at 490 KiB of 600
    "binary",  # the rule stands between bytes that are no text
    "bom",  # a byte order mark is before the rule
    "endless",  # 100 MB, the rule first
    "broken-once",  # 500, then the rule
    "redirects-away",  # to a private address that nobody has allowed
    "redirects-to-file",  # no usable target: all is allowed
)
ROBOTS_HOSTS = {kind: f"127.0.0.{number}" for number, kind in enumerate(KINDS, start=2)}
KIND_OF_ADDRESS = {address: kind for kind, address in ROBOTS_HOSTS.items()}


Stream = tuple[bytes, Iterable[bytes]]  # what is too long to be made at once: head, blocks


def robots_answer(kind: str, path: str, times: int = 0) -> Answer | Stream | None:
    """The answer to a request for robots.txt or a step on the way to it, the `times`-th; None: never answer."""
    if kind.removeprefix("redirects-").isdecimal():
        return _redirects(path, int(kind.removeprefix("redirects-")))
    if kind == "endless":
        return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (100 * KIB**2) + RULES, repeat(b"# more\n" * 1000)
    return {
        "none": Answer(404, TEXT, b"no robots.txt\n"),
        "forbidden": Answer(403, TEXT, b"forbidden\n"),
        "broken": Answer(503, TEXT, b"broken\n"),
        "hangs": None,
        "rules": Answer(200, TEXT, RULES),
        "crawl-delay": Answer(200, TEXT, RULES + b"Crawl-delay: 1\n"),
        "huge": Answer(200, TEXT, _huge()),
        "bom": Answer(200, TEXT, b"\xef\xbb\xbf" + RULES),
        "broken-once": Answer(200, TEXT, RULES) if times else Answer(500, TEXT, b"broken\n"),
        "redirects-away": Answer(302, (*TEXT, ("Location", "http://127.0.0.1:1/robots.txt")), b"moved\n"),
        "redirects-to-file": Answer(302, (*TEXT, ("Location", "file:///etc/passwd")), b"moved\n"),
        "binary": Answer(200, TEXT, b"\xff\xfe\0\x80\r\n" + RULES + b"\0\xc3\x28\n"),
    }[kind]


def is_robots_path(path: str) -> bool:
    """Whether a path is robots.txt or a step of its redirects."""
    return re.fullmatch(r"/robots(-[0-9]+)?\.txt", path) is not None


def _redirects(path: str, count: int) -> Answer:
    step = int("0" + re.sub(r"[^0-9]", "", path))
    if step >= count:
        return Answer(200, TEXT, RULES)
    return Answer(302, (*TEXT, ("Location", f"/robots-{step + 1}.txt")), b"moved\n")


def _huge() -> bytes:
    comment = b"# nothing to see here\n"
    before = comment * ((490 * KIB - len(RULES)) // len(comment))
    return before + RULES + comment * (110 * KIB // len(comment))

"""What has to become of each way to misbehave. One table, for fetches one by one and for a whole crawl."""

from dataclasses import dataclass
from urllib.parse import quote

from common.wire import Outcome
from tests.web.call import PAGE
from tests.web.hostile_encodings import BOMBS, PACK
from tests.web.hostile_pages import CHARSETS, PAGES


@dataclass(frozen=True, slots=True)
class Case:
    """One address, and its outcome for who asks for it for the first time."""

    path: str
    outcome: Outcome
    status: int = 0
    body: bytes | None = None  # what is to be stored, where that is not obvious
    is_slow: bool = False  # it ends with the deadline, not before

    @property
    def name(self) -> str:
        return self.path if len(self.path) < 60 else f"{self.path[:57]}..."


def _raw(answer: bytes) -> str:
    return f"/raw?hex={answer.hex()}"


def _junk(location: bytes) -> str:
    return f"/redirect-to?hex={location.hex()}"


_START = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"

SLOW = [
    Case("/hang", Outcome.TIMEOUT, is_slow=True),
    Case("/slow-bytes?seconds=1", Outcome.TIMEOUT, 200, is_slow=True),
    Case("/slow-headers", Outcome.TIMEOUT, 200, is_slow=True),
]

TRANSFERS = [
    Case("/reset", Outcome.BROKEN),
    Case("/reset-in-headers", Outcome.BROKEN, 200),
    Case("/reset-in-body", Outcome.BROKEN, 200),
    Case("/empty", Outcome.BROKEN),
    Case("/headers-without-end", Outcome.BROKEN, 200),
    Case("/truncated", Outcome.BROKEN, 200),
    Case("/huge-headers", Outcome.TOO_LARGE, 200),
    Case("/huge-header-line", Outcome.TOO_LARGE, 200),
    Case("/endless-interim", Outcome.TOO_LARGE, 103),
    Case("/endless", Outcome.TOO_LARGE, 200),
    Case("/endless-chunks", Outcome.TOO_LARGE, 200),
    Case("/no-content-length", Outcome.STORED, 200, PAGE),
    Case("/length?is=5", Outcome.STORED, 200, PAGE[:5]),  # what the server says is the whole page
    Case("/length?is=100000000000", Outcome.TOO_LARGE, 200),
    Case("/length?is=10,20", Outcome.BROKEN, 200),
    Case(f"/length?is={len(PAGE)},{len(PAGE)}", Outcome.STORED, 200, PAGE),  # RFC 9112 §6.3: the same is harmless
    Case("/length?is=-5", Outcome.BROKEN, 200),
    Case("/length?is=5x", Outcome.BROKEN, 200),
    Case("/length-and-chunks", Outcome.STORED, 200, PAGE),
    Case("/forged", Outcome.STORED, 200, PAGE),
    Case("/bad-chunk", Outcome.BROKEN, 200),
    Case("/bad-chunk?then=ffffffffffffffffff%0d%0ax", Outcome.BROKEN, 200),
    Case("/bad-chunk?then=-5%0d%0ahello", Outcome.BROKEN, 200),
    Case("/bad-chunk?then=5%0d%0ahel", Outcome.BROKEN, 200),
    Case(_raw(b"hello, this is not HTTP\r\n\r\n"), Outcome.BROKEN),
    Case(_raw(b"<html>HTTP 0.9</html>"), Outcome.BROKEN),
    Case(_raw(b"\0" * 100), Outcome.BROKEN),
    Case(_raw(b"HTTP/1.1 99999 Odd\r\n\r\n"), Outcome.BROKEN),
    Case(_raw(b"HTTP/1.1 abc Odd\r\n\r\n"), Outcome.BROKEN),
    Case(_raw(b"HTTP/7.7 200 OK\r\n\r\n"), Outcome.BROKEN),
    Case(_raw(_START + b"X-Nul: a\0b\r\n\r\nbody"), Outcome.BROKEN, 200),
]

ENCODINGS = [
    *[Case(f"/bomb/{name}", Outcome.TOO_LARGE, 200) for name in BOMBS],
    *[Case(f"/cut/{name}", Outcome.BAD_CONTENT, 200) for name in PACK],
    *[Case(f"/encoding/{name}", Outcome.BAD_CONTENT, 200) for name in (*PACK, "sdch", "none", "gzip,gzip,br,br,br,br")],
    Case("/encoding/identity", Outcome.STORED, 200, PAGE),
    Case("/bad-gzip", Outcome.BAD_CONTENT, 200),
]

REDIRECTS = [
    Case("/redirect-loop-1", Outcome.REDIRECTED, 302),
    Case("/redirects/1000", Outcome.REDIRECTED, 302),
    Case("/redirect-to?u=http://127.0.0.1:1/", Outcome.REDIRECTED, 302),  # what is there is the target's outcome
    Case("/redirect-to?u=http://169.254.169.254/", Outcome.REDIRECTED, 302),
    *[
        Case(f"/redirect-to?u={quote(target)}", Outcome.BAD_REDIRECT, 302)
        for target in (
            "file:///etc/passwd", "ftp://127.0.0.1/", "gopher://127.0.0.1/", "javascript:alert(1)", "data:text/html,x",
            "about:blank", "http://", "http://[", "http://a b/",
        )
    ],
    Case("/redirect-to?pad=100000", Outcome.BAD_REDIRECT, 302),
    Case(_junk(b""), Outcome.BAD_REDIRECT, 302),
    Case(_junk(b"/\xff\xfe\x01\x7f"), Outcome.REDIRECTED, 302),  # a browser would go to /%FF%FE%01%7F
    Case(_junk(b"http://\xff\xfe/"), Outcome.BAD_REDIRECT, 302),
    Case(_junk(b"/a\0b"), Outcome.BROKEN, 302),
    Case("/status/302", Outcome.BAD_REDIRECT, 302),
    Case("/status/300", Outcome.BAD_REDIRECT, 300),
    Case("/status/399", Outcome.BAD_REDIRECT, 399),
]  # fmt: skip

STATUSES = [
    Case("/status/204", Outcome.STORED, 204, b""),
    Case("/no-content-with-body", Outcome.STORED, 204, b""),
    Case("/status/206", Outcome.BROKEN, 206),
    Case("/status/304", Outcome.BROKEN, 304),
    *[Case(f"/status/{status}", Outcome.CLIENT_ERROR, status) for status in (401, 403, 407, 451, 418)],
    *[Case(f"/status/{status}", Outcome.NOT_FOUND, status) for status in (404, 410)],
    *[Case(f"/status/{status}", Outcome.SERVER_ERROR, status) for status in (500, 501, 502, 503, 504, 599, 999)],
    *[
        Case(f"/retry-after?times=99&{wait}", Outcome.BUSY, 429)
        for wait in ("seconds=0", "date=-100", "seconds=nonsense", "seconds=-1", "seconds=0.5", "seconds=")
    ],
    Case("/retry-after?times=99&status=503&seconds=0", Outcome.BUSY, 503),
    Case("/retry-after?times=99&status=503&seconds=nonsense", Outcome.SERVER_ERROR, 503),
]

TYPES = [
    Case("/type/html?is=image/png", Outcome.STORED, 200, PAGE),
    Case("/type/png?is=text/html", Outcome.STORED, 200),
    Case("/type/png?is=application/pdf", Outcome.STORED, 200),
    Case("/type/html?is=nonsense", Outcome.STORED, 200, PAGE),
    Case("/type/html", Outcome.STORED, 200, PAGE),
    Case("/type/nothing?is=text/html", Outcome.STORED, 200, b""),
    Case(f"/type/html?is=text/{'x' * 1500}", Outcome.STORED, 200, PAGE),
]

HTML = [
    *[
        Case(f"/pages/{name}", Outcome.TOO_LARGE if name == "huge" else Outcome.STORED, 200)
        for name in PAGES
    ],
    *[Case(f"/charset/{name}", Outcome.STORED, 200) for name in CHARSETS],
    Case("/trap/", Outcome.STORED, 200),
]  # fmt: skip

# Names that file systems take for others, or for devices, or not at all.
NAMES = [
    Case(f"/names/{name}", Outcome.STORED, 200)
    for name in (
        "a", "A", "aux", "AUX", "con", "CON", "Con.txt", "nul", "NUL.tar.gz", "COM1", "lpt9.", "prn%20", "data.html",
        "data.xml", "caf%C3%A9", "cafe%CC%81", "%EF%AC%81", "fi", "%C5%BF", "s", "S", "%E2%84%AA", "k", "K",
        "a.", "a..", "a...", "a%20", "%20a", ".a", "..a", "%2e%2e%2fa", "..%2f..%2f..%2fetc%2fpasswd", "a%5Cb", "a%00b",
        "a:b", "a*b", "a%3Fb", "a%22b", "a%3Cb", "a|b", "~a", "-rf", "a%0Ab", "%FF%FE", "!", "!2e", "a~1", "x" * 300,
        "x" * 300 + "y", "X" * 300, "x/" * 300, "a?b", "a%3fb=c", "a?b=../../c", "a//b", "a/b", "a/", "a//",
        "MANIFEST.jsonl",
    )
]  # fmt: skip

QUICK = [*TRANSFERS, *ENCODINGS, *REDIRECTS, *STATUSES, *TYPES, *HTML, *NAMES]

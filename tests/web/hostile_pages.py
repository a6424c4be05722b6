"""Pages that are built to hurt whoever parses or decodes them: /pages/NAME and /charset/NAME.

They are made while they are sent. Each has one link to /ok that is to be found, as far as that can be asked.
"""

from collections.abc import Callable, Iterator
from itertools import repeat

from tests.web.call import HTML_START, Behaviour, Call

LINK = b'<a href="/ok">ok</a>\n'
START = b"<!DOCTYPE html><title>Hostile</title>\n" + LINK
MILLION = 1_000_000
# Every character that means something somewhere, as it stands and escaped, and some that no name may have.
ODD_CHARACTERS = [*range(0x21), *b"\"#%&'<>?@[\\]^`{|}", 0x7F, 0x85, 0xA0, 0x202E, 0xD7FF, 0xFFFD, 0xFFFF, 0x1F577]


async def page(call: Call) -> int:
    """/pages/NAME"""
    if call.argument not in PAGES:
        return await call.missing()
    return await call.stream(HTML_START + b"Connection: close\r\n\r\n", PAGES[call.argument]())


async def charset(call: Call) -> int:
    """/charset/NAME"""
    content_type, body = CHARSETS[call.argument]
    return await call.page(body, content_type)


BEHAVIOURS: dict[str, Behaviour] = {"/pages/": page, "/charset/": charset}


def _huge() -> Iterator[bytes]:
    """50 MB."""
    yield START
    yield from repeat(b"<p>some text</p>\n" * 1000, 50 * MILLION // 17_000)


def _nested() -> Iterator[bytes]:
    yield START
    yield from repeat(b"<div>" * 1000, 100)


def _million_links() -> Iterator[bytes]:
    """To another host, which is no part of any crawl; 17 MB."""
    yield START + b'<base href="http://links.invalid/">'
    for thousand in range(MILLION // 1000):
        yield b"".join(b"<a href=%d>x</a>" % (1000 * thousand + n) for n in range(1000))


def _long_attribute() -> Iterator[bytes]:
    yield START + b'<a href="'
    yield from repeat(b"x" * 10_000, 1000)
    yield b'">long</a>'


def _many_attributes() -> Iterator[bytes]:
    yield START + b"<a"
    yield from (b" a%d=b" % number for number in range(100_000))
    yield b">many</a>"


def _long_urls() -> Iterator[bytes]:
    """100 KB each: as path, as query, as fragment (which is no part of an address), as host."""
    yield START
    long = b"x" * 100_000
    for reference in (long, b"/?" + long, b"/ok#" + long, b"http://" + long + b"/", b"/" + b"../" * 33_000 + b"ok"):
        yield b'<a href="%b">long</a>\n' % reference


def _odd_links() -> Iterator[bytes]:
    yield START
    for code in ODD_CHARACTERS:
        text = chr(code).encode("utf-8", "surrogatepass")
        yield b"<a href=\"/names/a%bb\">x</a><a href='/names/a&#%d;b'>x</a>" % (text, code)
        yield b"<a href='/names/a%%%02xb'>x</a><a href='//127.0.0.1%b/'>x</a>" % (code % 256, text)
    yield b"".join(b'<a href="%b">x</a>' % each for each in ODD_REFERENCES)


def _based(base: bytes) -> Callable[[], Iterator[bytes]]:
    def made() -> Iterator[bytes]:
        yield b"<!DOCTYPE html><title>Hostile</title><base href='%b'>" % base + LINK

    return made


ODD_REFERENCES = (
    b"", b" ", b"#", b"?", b"//", b"///", b"////", b"\\\\", b"/\\", b"http:", b"http:/", b"http://", b"http:///ok",
    b"http://[", b"http://[::1", b"http://[::1]:99999/", b"http://[fe80::1%25lo]/", b"http://a:b@c:d/", b"http://.../",
    b"http://%00/", b"http://a%2fb/", b"http://0/", b"http://0x7f.1/", b"http://2130706433/", b"http://\xef\xbc\x91\x32/",
    b"javascript:alert(1)", b"data:text/html,<p>", b"file:///etc/passwd", b"ftp://127.0.0.1/", b"mailto:a@b", b"tel:1",
    b"about:blank", b"blob:http://a/b", b"ws://127.0.0.1/", b"view-source:http://a/", b"HTTP:ok", b"\x00/ok", b"/%",
    b"/%zz", b"/%u0041", b"/ok%00", b"/..%2f..%2fetc/passwd", b"/../../../../etc/passwd", b"/\xff\xfe", b"&#0;",
)  # fmt: skip

PAGES: dict[str, Callable[[], Iterator[bytes]]] = {
    "huge": _huge,
    "nested": _nested,
    "million-links": _million_links,
    "long-attribute": _long_attribute,
    "many-attributes": _many_attributes,
    "long-urls": _long_urls,
    "odd-links": _odd_links,
    "base-file": _based(b"file:///etc/"),
    "base-script": _based(b"javascript:alert(1)//"),
    "base-data": _based(b"data:text/html,"),
    "base-junk": _based(b"http://["),
    "base-long": _based(b"http://" + b"x" * 100_000 + b"/"),
    "base-elsewhere": _based(b"//elsewhere.invalid/deep/er/"),
    "base-nul": _based(b"\x00\xff/"),
}

_UMLAUT = "<title>Grün</title><p>žluťoučký kůň</p>"
CHARSETS: dict[str, tuple[str, bytes]] = {
    "wrong": ("text/html; charset=utf-8", LINK + _UMLAUT.encode("windows-1250")),
    "unknown": ("text/html; charset=no-such-thing", LINK + _UMLAUT.encode()),
    "none": ("text/html", LINK + _UMLAUT.encode("windows-1250")),
    "utf-16": ("text/html", (LINK.decode() + _UMLAUT).encode("utf-16")),
    "utf-16-unmarked": ("text/html; charset=utf-16", (LINK.decode() + _UMLAUT).encode("utf-16-le")),
    "utf-16-odd": ("text/html; charset=utf-16", (LINK.decode() + _UMLAUT).encode("utf-16-le") + b"\xd8"),
    "utf-7": ("text/html; charset=utf-7", LINK + b"<p>+ADw-a href=/no+AD4-"),
    "contradicting": ("text/html; charset=utf-8", b"<meta charset=shift_jis>" + LINK + _UMLAUT.encode()),
    "mixed": ("text/html; charset=utf-8", LINK + b"".join(map(_UMLAUT.encode, ("utf-8", "utf-16", "cp1250")))),
    "nul": ("text/html; charset=utf-8", b"<title>a\0b</title>\0" * 1000 + LINK),
    "invalid": ("text/html; charset=utf-8", bytes(range(0x80, 0x100)) * 100 + LINK + b"\xed\xa0\x80\xf5\xc0\xaf"),
    "controls": ("text/html", b"<title>" + bytes(range(0x20)) + b"</title>" + LINK + b"<p>\xef\xbf\xbf\xef\xb7\x90"),
}

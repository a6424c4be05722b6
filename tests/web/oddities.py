"""The resources that every host has once: each is a case that crawlers are known to get wrong.

Links are written as pairs of href and target, by hand, so that the truth does not depend on any resolver.
"""

import struct
import zlib

from tests.web.resources import Document, Link, Page, Redirect, Resource

HORSE = "/%C5%BElu%C5%A5ou%C4%8Dk%C3%BD-k%C5%AF%C5%88.html"
RIVER = "/%C5%99eka.html"
BRIDGE = "/m%C5%AFstek.html"
SPACE = "/with%20space.html"

# href on the home page -> path it leads to
HOME_LINKS = (
    ("index.html", "/"),
    ("/index.html#top", "/"),
    ("docs", "/docs"),
    ("docs/index.htm", "/docs/"),
    ("\n  ./docs/#part-2\t", "/docs/"),
    ("moved", "/moved"),
    ("/away", "/away"),
    ("chain/1", "/chain/1"),
    ("loop/a", "/loop/a"),
    ("trap", "/trap"),
    ("missing.html", "/missing.html"),
    ("/missing.html#again", "/missing.html"),
    ("to-missing", "/to-missing"),
    ("private/secret.html", "/private/secret.html"),
    ("/private/open/page.html", "/private/open/page.html"),
    ("notes.secret", "/notes.secret"),
    ("report.pdf", "/report.pdf"),
    ("picture.png", "/picture.png"),
    ("windows-1250.html", "/windows-1250.html"),
    ("windows-1250-meta.html", "/windows-1250-meta.html"),
    ("utf-16.html", "/utf-16.html"),
    ("gzip.html", "/gzip.html"),
    ("chunked.html", "/chunked.html"),
    ("žluťoučký-kůň.html", HORSE),
    (HORSE.lower(), HORSE),
    ("with space.html", SPACE),
    ("with%20space.html", SPACE),
    ("search?q=1", "/search?q=1"),
    ("/search?q=2&lang=cs", "/search?q=2&lang=cs"),
    ("a/./b/x/../c/deep.html", "/a/b/c/deep.html"),
    ("based.html", "/based.html"),
)

# Not pages of the web: a crawler must neither ask for these nor stumble over them.
NOISE = (
    Link("#top"),
    Link("mailto:spider@example.org"),
    Link("javascript:void(0)"),
    Link("tel:+420123456789"),
    Link("data:text/plain,hello"),
    Link("ftp://example.org/file"),
    Link("http://[broken/"),
)


def oddities(home: str, next_home: str, home_links: tuple[Link, ...]) -> dict[str, Resource]:
    """Path and query -> resource for one host; `home` and `next_home` are like `http://host:port`.

    `home_links` are put on the home page besides its own."""
    front = Page("Home", _links(home, *HOME_LINKS) + NOISE + home_links)
    return {
        "/": front,
        **_folders(home, next_home),
        **_redirects(home, next_home),
        **_closed(home),
        **_encodings(home),
        **_queries(home),
        **_documents(),
    }


def _links(home: str, *pairs: tuple[str, str]) -> tuple[Link, ...]:
    return tuple(Link(href, home + path) for href, path in pairs)


def _folders(home: str, next_home: str) -> dict[str, Resource]:
    next_authority = next_home.removeprefix("http://")
    across = (
        Link(f"//{next_authority}/", next_home + "/"),
        Link(f"HTTP://{next_authority.upper()}/index.php", next_home + "/"),
        Link(f"{next_home}/docs/intro.html#end", next_home + "/docs/intro.html"),
    )
    here = "/a/b/c/deep.html"
    up = _links(home, ("../../top.html", "/a/top.html"), ("../../../../../", "/"), ("#here", here))
    by_base = _links(home, ("by-base.html", "/docs/by-base.html"))
    docs = _links(home, ("intro.html", "/docs/intro.html"), ("../index.html", "/"), ("", "/docs/"))
    return {
        "/docs/": Page("Documentation", docs),
        "/docs/intro.html": Page("Introduction", _links(home, ("./", "/docs/"), (".", "/docs/"))),
        "/docs/by-base.html": Page("Found by way of a base"),
        "/based.html": Page("With a base", by_base, base="/docs/"),
        here: Page("Deep", up + across),
        "/a/top.html": Page("Top"),
    }


def _redirects(home: str, next_home: str) -> dict[str, Resource]:
    away = next_home + "/docs/intro.html"
    return {
        "/docs": Redirect("/docs/", home + "/docs/"),
        "/moved": Redirect("a/target.html", home + "/a/target.html"),
        "/a/target.html": Page("Found by way of a redirect"),
        "/away": Redirect(away, away, 302),
        "/chain/1": Redirect("2", home + "/chain/2", 307),
        "/chain/2": Redirect(home + "/chain/end.html", home + "/chain/end.html", 308),
        "/chain/end.html": Page("End of the chain"),
        "/loop/a": Redirect("b", home + "/loop/b", 302),
        "/loop/b": Redirect("a", home + "/loop/a", 302),
        "/to-missing": Redirect("/missing.html", home + "/missing.html"),
        # Allowed itself, but leads into the disallowed tree.
        "/trap": Redirect("/private/trapped.html", home + "/private/trapped.html"),
    }


def _closed(home: str) -> dict[str, Resource]:
    inside = _links(home, ("deeper.html", "/private/deeper.html"), ("../hidden.html", "/hidden.html"))
    return {
        "/private/secret.html": Page("Secret", inside),
        "/private/deeper.html": Page("Deeper"),
        "/private/trapped.html": Page("Trapped"),
        "/private/open/page.html": Page("Open inside the closed"),
        "/notes.secret": Page("Notes"),
        # Allowed, but only a disallowed page knows of it.
        "/hidden.html": Page("Hidden"),
    }


def _encodings(home: str) -> dict[str, Resource]:
    # Who decodes one of these wrongly finds no link, or a wrong one.
    river = _links(home, ("řeka.html", RIVER))
    bridge = _links(home, ("můstek.html", BRIDGE))
    by_utf_16 = _links(home, ("by-utf-16.html", "/by-utf-16.html"))
    return {
        HORSE: Page("Příliš žluťoučký kůň"),
        RIVER: Page("Řeka"),
        BRIDGE: Page("Můstek"),
        SPACE: Page("With a space"),
        "/windows-1250.html": Page("Úpěl ďábelské ódy", river, "windows-1250"),
        "/windows-1250-meta.html": Page("Ďábelské ódy úpěl", bridge, "windows-1250", "meta"),
        "/utf-16.html": Page("Šest čápů", by_utf_16, "utf-16", "bom"),
        "/by-utf-16.html": Page("Found by way of UTF-16"),
        "/gzip.html": Page("Packed", _links(home, ("by-gzip.html", "/by-gzip.html")), gzip=True),
        "/by-gzip.html": Page("Found by way of gzip"),
        "/chunked.html": Page("In chunks", _links(home, ("by-chunks.html", "/by-chunks.html")), chunked=True),
        "/by-chunks.html": Page("Found by way of chunks"),
    }


def _queries(home: str) -> dict[str, Resource]:
    return {
        "/search?q=1": Page("Search 1", _links(home, ("?q=3", "/search?q=3"), ("?q=1", "/search?q=1"))),
        "/search?q=2&lang=cs": Page("Search 2", _links(home, ("?q=3#hit", "/search?q=3"))),
        "/search?q=3": Page("Search 3", _links(home, ("search?q=1", "/search?q=1"))),
    }


def _documents() -> dict[str, Resource]:
    # The link inside is bait: only HTML may be mined.
    pdf = b'%PDF-1.4\n%\xe2\xe3\xcf\xd3\n<a href="/inside-a-document.html">bait</a>\n%%EOF\n'
    return {"/report.pdf": Document("application/pdf", pdf), "/picture.png": Document("image/png", _png())}


def _png() -> bytes:
    """One grey pixel."""
    header = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(b"\0\x80")), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(map(_png_chunk, chunks))


def _png_chunk(chunk: tuple[bytes, bytes]) -> bytes:
    name, data = chunk
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

"""The bytes of a resource: status, headers and body as a server sends them."""

import gzip
import hashlib
import random
from dataclasses import dataclass
from html import escape

from tests.web.resources import Document, Page, Redirect, Resource

WORDS = ("pavouk", "přede", "síť", "pomalu", "a", "nikdy", "nespěchá", "each", "page", "is", "kept", "once")
WORDS_PER_PAGE = 150

# Text that looks like links to whoever does not parse HTML.
BAIT = """<!-- <a href="/in-a-comment.html">comment</a> -->
<script>document.write('<a href="/in-a-script.html">script</a>');</script>
<p>&lt;a href="/in-the-text.html"&gt;text&lt;/a&gt;</p>"""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server sends. Length and connection headers are the server's own business."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    chunked: bool = False


def answer(resource: Resource) -> Answer:
    """The answer for a resource; the same for the same resource, always."""
    match resource:
        case Page():
            return _page(resource)
        case Document(content_type, body):
            return Answer(200, (("Content-Type", content_type), ("ETag", _etag(body))), body)
        case Redirect(location, _, status):
            return Answer(status, (("Location", location), ("Content-Type", "text/plain")), b"moved\n")
    return Answer(404, (("Content-Type", "text/html"),), b'<a href="/on-a-404-page.html">not found</a>\n')


def html(page: Page) -> str:
    """A page as text, before it is encoded."""
    return f"""<!DOCTYPE html>
<html lang="cs"><head>{_meta_charset(page)}
<title>{escape(page.title)}</title>
<meta name="description" content="About {escape(page.title)}">
<meta name="keywords" content="spider, {escape(page.title.lower())}">
{f'<base href="{page.base}">' if page.base else ""}</head>
<body><h1>{escape(page.title)}</h1>
<p>{_text(page.title)}</p>
{BAIT}
<ul>
{_list(page)}
</ul></body></html>
"""


def _page(page: Page) -> Answer:
    body = html(page).encode(page.charset)
    charset = f"; charset={page.charset}" if page.declared == "header" else ""
    headers = [("Content-Type", f"text/html{charset}")]
    if page.gzip:
        body = gzip.compress(body, mtime=0)
        headers.append(("Content-Encoding", "gzip"))
    return Answer(200, (*headers, ("ETag", _etag(body))), body, page.chunked)


def _meta_charset(page: Page) -> str:
    if page.declared != "meta":
        return ""
    return f'<meta http-equiv="Content-Type" content="text/html; charset={page.charset}">'


def _list(page: Page) -> str:
    # Tags in both cases and quotes of both kinds, as on the real web.
    tags = ('<li><a href="{}">link {}</a></li>', "<LI><A class=x HREF='{}'>link {}</A></LI>")
    return "\n".join(tags[n % 2].format(escape(link.href), n) for n, link in enumerate(page.links))


def _text(title: str) -> str:
    dice = random.Random(title)
    return " ".join(WORDS[int(dice.random() * len(WORDS))] for _ in range(WORDS_PER_PAGE))


def _etag(body: bytes) -> str:
    return f'"{hashlib.sha1(body).hexdigest()[:16]}"'

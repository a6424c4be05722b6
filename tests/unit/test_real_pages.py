"""Real pages: BeautifulSoup with html5lib must find the same encoding, title, links, anchor texts and words in them.

Python's documentation (generated, HTML 5), Apache's (XHTML in eleven languages and three encodings) and a book on mail
(written by hand in the nineties; no doctype, tags that nobody closes).
"""

from pathlib import Path

import pytest

from client import charset
from tests.mining import mined
from tests.oracle import found_in
from tests.packages import debian_pages
from tests.web.nginx import python_docs

URL = "http://example.org/manual/dir/page.html"
MAX_BYTES = 60_000  # the oracle takes a second for a megabyte
PAGES_EACH = 150
FOLDERS = {"Python": python_docs(), "Apache": debian_pages("apache2-doc"), "mail": debian_pages("mh-book")}


def _sample(folder: Path) -> list[Path]:
    """The same pages each time, evenly from the whole set."""
    paths = [path for path in sorted(folder.rglob("*.htm*")) if path.is_file() and path.stat().st_size <= MAX_BYTES]
    return paths[:: max(1, len(paths) // PAGES_EACH)][:PAGES_EACH]


def _pages(name: str) -> list[Path]:
    folder = FOLDERS[name]
    if folder is None:
        pytest.skip("needs pages of Debian packages: run ./test")
    return _sample(folder)


@pytest.mark.parametrize("name", FOLDERS)
def test_the_oracle_finds_the_same(name: str) -> None:
    wrong = []
    links = words = 0
    for path in _pages(name):
        body = path.read_bytes()
        ours = mined(body, URL)
        # Where nothing is declared, html5lib takes windows-1252 without a look.
        theirs = found_in(body, URL, None if _declares(body) else ours.encoding)
        links += len(ours.links)
        words += len(ours.text.split())
        if ours != theirs:
            wrong.append((path, ours, theirs))
    assert wrong == []
    assert links > 1000
    assert words > 50_000


def _declares(body: bytes) -> bool:
    return b"charset" in body[:2000].lower() or b"encoding=" in body[:100]


def test_encodings_of_the_sample() -> None:
    """The pages are worth comparing only if they are in several encodings."""
    assert {mined(path.read_bytes(), URL).encoding for path in _pages("Apache")} >= {"utf-8", "euc-kr", "windows-1252"}


@pytest.mark.parametrize("name", FOLDERS)
def test_what_a_header_says_counts(name: str) -> None:
    """The same pages in other encodings: the words stay the same, whatever the page says of itself."""
    for path in _pages(name)[::10]:
        text, _ = charset.decode(path.read_bytes(), "")
        plain = mined(text.encode(), URL, "utf-8")
        for other in ("utf-16le", "gb18030"):
            again = mined(text.encode(other), URL, other)
            assert again.encoding == other
            assert (again.title, again.links, again.text) == (plain.title, plain.links, plain.text), path

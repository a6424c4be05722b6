"""Links: which references count, against what they resolve, and BeautifulSoup as the independent truth."""

import random

import pytest
from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from client import links, text
from client.walk import walk
from common.page import len_in_xml
from common.urls import resolve
from tests.oracle import anchor_text
from tests.web.nginx import python_docs

BASE = "http://example.org/dir/page.html"


def _extract(html: str) -> list[tuple[str, str]]:
    return _extracted(LexborHTMLParser(html))


def _extracted(page: LexborHTMLParser) -> list[tuple[str, str]]:
    seen = walk(page)
    return links.resolved(seen.references, seen.base, BASE)


def _addresses(html: str) -> list[str]:
    return [address.removeprefix("http://example.org") for address, _ in _extract(html)]


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<a href=x>", ["/dir/x"]),
        ("<a name=x>", []),
        ("<a href>", []),
        ("<a href=''>", []),
        ("<a href='#top'>", []),
        ("<a href='x#a'><a href='x#b'>", ["/dir/x"]),
        ("<a href=' /x\n'>", ["/x"]),
        ("<a href='/a?b=1&amp;c=2'>", ["/a?b=1&c=2"]),
        ("<A HREF=/x>", ["/x"]),
        ("<map><area href=/x><area></map>", ["/x"]),
        ("<iframe src=/x></iframe>", ["/x"]),
        ("<frameset><frame src=/x><frame src=/y></frameset>", ["/x", "/y"]),
        ("<link rel=canonical href=/x>", ["/x"]),
        ("<link rel='NEXT foo' href=/x><link rel=prev href=/y>", ["/x", "/y"]),
        ("<link rel=alternate href=/x><link rel=stylesheet href=/y><link href=/z>", []),
        ("<img src=/x><script src=/y></script>", []),
        ("<noscript><a href=/x></noscript>", ["/x"]),
        (
            "<frameset><frame src=/x><noframes><body><a href=/y>y</a><map><area href=/z></map></noframes>",
            ["/x", "/y", "/z"],
        ),
        ("<frameset><frame src=/x></frameset><noframes><base href=/b/><a href=y>", ["/x", "/dir/y"]),
        ("<base href=/b/><noframes><a href=y>&lt;/a></noframes><a href=z>", ["/b/z", "/b/y"]),
        ("<noframes><!-- <a href=/x> --><script>'<a href=/y>'</script></noframes>", []),
        ("<noframes>" * 2 + "<a href=/x></noframes>", []),
        ("<noembed><a href=/x></noembed>", ["/x"]),
        (
            "".join(f"<noframes><a href=/{number}></noframes>" for number in range(20)),
            [f"/{number}" for number in range(10)],
        ),
        ("<!-- <a href=/x> --><script>'<a href=/y>'</script><textarea><a href=/z></textarea>", []),
        ("<svg><a href=/x></a></svg>", ["/x"]),
        ("<a href=mailto:a@b.cz><a href=javascript:x><a href=ftp://x/><a href=data:,x>", []),
        ("<a href='//other.org/x'>", ["http://other.org/x"]),
        ("<a href='http://u:p@other.org/x'>", ["http://other.org/x"]),
        (f"<a href='/{'a' * 10_000}'>", []),
        ("<a href=/b><a href=/a><a href=/b>", ["/b", "/a"]),
        ("<a href=a><a href=./a><a href=/dir/a>", ["/dir/a"]),
    ],
)
def test_which_references_are_links(html: str, expected: list[str]) -> None:
    assert _addresses(html) == expected


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("0;url=/x", ["/x"]),
        ("5; URL = '/x y'", ["/x%20y"]),
        ('0, "/x" trailing', ["/x"]),
        ("0 /x", ["/x"]),
        ("1.5;/x", ["/x"]),
        ("; url=/x", ["/x"]),
        ("30", []),
        ("", []),
        ("soon; url=/x", []),
    ],
)
def test_meta_refresh(content: str, expected: list[str]) -> None:
    content = content.replace('"', "&quot;")
    assert _addresses(f'<meta http-equiv=Refresh content="{content}">') == expected


@pytest.mark.parametrize(
    ("bases", "expected"),
    [
        ("<base href=/other/>", "/other/x"),
        ("<base target=_top><base href=sub/><base href=/later/>", "/dir/sub/x"),
        ("<base href='http://b.org/'>", "http://b.org/x"),
        ("<base href='javascript:x'>", "/dir/x"),
        ("<base href='data:text/html,x'>", "/dir/x"),
        ("<base href='http://['>", "/dir/x"),
        ("<base href=''>", "/dir/x"),
        (f"<base href='/{'a' * 3000}/'>", "/dir/x"),
    ],
)
def test_base(bases: str, expected: str) -> None:
    assert _addresses(f"{bases}<a href=x>") == [expected]


def test_base_counts_for_links_before_it() -> None:
    assert _addresses("<body><a href=x><base href=/other/>") == ["/other/x"]


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<a href=x>one</a>", "one"),
        ("<a href=x> one\n\t two&nbsp;</a>", "one two"),
        ("<a href=x><b>o</b>ne <i>two</i></a>", "one two"),
        ("<a href=x><img src=y></a><a href=x></a><a href=x>second</a><a href=x>third</a>", "second"),
        ("<a href=x#a></a><a href=./x>later</a>", "later"),
        ("<a href=x>" + "word " * 1000, ("word " * 100).strip()),
        ("<a href=x>" + "<i>a</i>" * 1000, "a" * 99),
        ("<iframe src=x>not a text</iframe>", ""),
        ("<a href=x><img src=y alt=' The\nspider '></a>", "The spider"),
        ("<a href=x><img alt=One><b>two<img alt=three></b>four<img alt=''>five</a>", "One two three fourfive"),
        ("<a href=x><img></a><a href=x><span><picture><source><img alt=later></picture></span></a>", "later"),
        ("<a href=x><img alt='" + "word " * 1000 + "'></a>", ("word " * 100).strip()),
        ("<map><area href=x alt='The  north'></map><a href=x>south</a>", "The north"),
        ("<map><area href=x></map><a href=x>south</a>", "south"),
        ("<frameset><frame src=x><noframes><a href=x>without <img alt=frames></a></noframes>", "without frames"),
    ],
)
def test_anchor_text(html: str, text: str) -> None:
    assert _extract(html) == [("http://example.org/dir/x", text)]


def test_the_number_of_links_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "MAX_LINKS", 10)
    assert _addresses("".join(f"<a href={number}>" for number in range(100))) == [f"/dir/{n}" for n in range(10)]


LONG = "http://example.org/" + "a" * 1_000 + "/"
LONG_TEXT = '"' * links.MAX_ANCHOR_LENGTH


@pytest.mark.parametrize(("page_bytes", "base", "most"), [
    (0, LONG, links.MIN_ADDRESS_BYTES),
    (500_000, LONG, links.MIN_ADDRESS_BYTES + 4 * 500_000),
    (500_000, LONG.replace("aa", "a&"), links.MIN_ADDRESS_BYTES + 4 * 500_000),
    (20_000_000, LONG, links.MAX_ADDRESS_BYTES),
])  # fmt: skip
def test_addresses_together_are_bounded(page_bytes: int, base: str, most: int) -> None:
    allowance = links.Allowance(page_bytes)
    found = links.resolved({f"{number:05}": "" for number in range(20_000)}, base, BASE, allowance=allowance)
    size = len_in_xml(found[0][0])
    assert len(found) == most // size
    assert allowance.is_used_up


def test_texts_of_anchors_together_are_bounded() -> None:
    references = {str(number): LONG_TEXT for number in range(2_000)}
    allowance = links.Allowance(1_000_000)
    texts = [text for _, text in links.resolved(references, "", BASE, allowance=allowance)]
    most = links.MAX_ANCHOR_BYTES // len_in_xml(LONG_TEXT)
    assert texts == [LONG_TEXT] * most + [""] * (2_000 - most)
    assert not allowance.is_used_up


def test_an_allowance_that_is_used_up_stays_so() -> None:
    allowance = links.Allowance(0)
    assert links.resolved({f"{number:05}": "" for number in range(1_000)}, LONG, BASE, allowance=allowance)
    assert links.resolved({"x": ""}, "", BASE, allowance=allowance) == []
    assert allowance.is_used_up


def test_pages_with_many_links_are_within_the_bounds() -> None:
    references = {f"/a/folder/and/page-{number:05}.html": "A text of some length" for number in range(9_000)}
    html = "".join(f"<a href={reference}>{text}</a>" for reference, text in references.items())
    allowance = links.Allowance(len(html))
    assert len(links.resolved(references, "", BASE, allowance=allowance)) == 9_000
    assert not allowance.is_used_up


@given(st.lists(st.text(max_size=20), max_size=5))
def test_any_text_in_a_reference_gives_crawlable_addresses_or_none(references: list[str]) -> None:
    escaped = [reference.replace("&", "&amp;").replace('"', "&quot;") for reference in references]
    html = "".join(f'<a href="{reference}">' for reference in escaped)
    for address, _ in _extracted(LexborHTMLParser(html.encode("utf-8", "replace"))):
        assert resolve(address) == address


_WORDS = ["one", "two &amp; three", "čtyři", "<b>five</b>", "<i>six <u>seven</u></i>", "  eight\n", ""]
_PLACES = ["a.html", "../b/", "/c?d=1&amp;e=2", "//other.org/f", "http://example.com:8080/g#h"]
_REFERENCES = [*_PLACES, "#i", "mailto:j@k.cz", "?l"]
_BLOCKS = ["<p>{}</p>", "<div><ul><li>{}</ul></div>", "<table><tr><td>{}</table>", "<pre>{}</pre>", "{}<br>"]


def _random_page(seed: int) -> str:
    """A page with links in all kinds of places, well-formed enough for a simple parser to agree on it."""
    choose = random.Random(seed)
    blocks = []
    for number in range(choose.randrange(5, 60)):
        reference = choose.choice(_REFERENCES).replace("a.html", f"a{number % 17}.html")
        anchor = f'<a class=x href="{reference}">{choose.choice(_WORDS)}</a>'
        blocks.append(choose.choice(_BLOCKS).format(f"text {anchor} {choose.choice(_WORDS)}"))
    base = choose.choice(["", '<base href="/base/x/">', '<base href="https://base.example/">'])
    return f"<!DOCTYPE html><html><head>{base}<title>Page {seed}</title></head><body>{''.join(blocks)}</body></html>"


def _truth(soup: BeautifulSoup) -> dict[str, str]:
    """The same question to BeautifulSoup, in the plainest way."""
    base = soup.find("base", href=True)
    base_url = resolve(str(base["href"]), BASE) if base else BASE
    found: dict[str, str] = {}
    for anchor in soup.find_all("a", href=True):
        address = resolve(str(anchor["href"]), base_url)
        if address and str(anchor["href"]).partition("#")[0]:
            found[address] = found.get(address) or anchor_text(anchor)
    return found


@pytest.mark.parametrize("seed", range(30))
def test_beautiful_soup_finds_the_same(seed: int) -> None:
    html = _random_page(seed)
    found = _extract(html)
    assert dict(found) == _truth(BeautifulSoup(html, "html.parser"))
    assert len(found) == len(dict(found)) > 0


@pytest.mark.skipif(python_docs() is None, reason="no documentation set on this machine")
def test_beautiful_soup_finds_the_same_in_real_pages() -> None:
    folder = python_docs()
    assert folder is not None
    for path in sorted(folder.glob("library/*.html"))[::25]:
        html = path.read_text(encoding="utf-8")
        soup = BeautifulSoup(html, "html.parser")
        page = LexborHTMLParser(html)
        anchors = {address: anchor for address, anchor in _extract(html) if anchor}
        assert anchors == {address: anchor for address, anchor in _truth(soup).items() if anchor}
        assert soup.title is not None
        assert text.title(page) == " ".join(soup.title.get_text().split())


def test_what_is_remembered_of_one_page_is_right_on_the_next() -> None:
    references = [
        "x",
        "?q=1",
        "./y",
        "../z",
        "/r",
        "//h.org/p",
        "http:?q=2",
        "http:x",
        "https://h.org/a",
        "a:b",
        "\x01?c",
    ]
    pages = [
        "http://a.org/d/1?x=/y", "http://a.org/d/2", "http://a.org/d/e/1", "https://a.org/d/1", "http://b.org/", "http://a.org/d"
    ]  # fmt: skip
    for _ in range(2):
        for page in pages:
            expected = [resolve(reference, page) for reference in references]
            found = links.resolved(dict.fromkeys(references, ""), "", page)
            assert [address for address, _ in found] == list(dict.fromkeys(filter(None, expected)))


def test_memory_of_links_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "_MAX_REMEMBERED", 100)
    monkeypatch.setattr(links, "_memory", links._Memory())
    for number in range(200):
        links.resolved({f"{number}-{link}": "" for link in range(10)}, "", f"http://a.org/{number % 7}/")
    assert sum(map(len, links._memory._folders.values())) <= 100 + links._PAGES_BETWEEN_CHECKS * 10

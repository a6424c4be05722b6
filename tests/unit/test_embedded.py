"""What a page shows or runs: asked for with document_save only, and never recorded as a link."""

import time

import pytest

from client.embedded import css_references, srcset_references
from client.results import FetchResult
from common.page import links_in
from common.wire import Outcome, UrlTask
from tests.mining import mine
from tests.tickets import job_settings

URL = "http://example.org/dir/page.html"


def _reported(body: str, content_type: str = "text/html", *, documents: bool = True) -> list[str]:
    result = FetchResult(
        UrlTask(URL), Outcome.STORED, status=200, final_url=URL, content_type=content_type, body=body.encode()
    )
    page = mine(result, job_settings(document_save=documents))
    return [link.removeprefix("http://example.org") for link in page.links]


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<img src=1 srcset='2, 3 2x' alt=x><img>", ["1", "2", "3"]),
        ("<picture><source srcset='1 100w,2 200w'><img src=3></picture>", ["1", "2", "3"]),
        ("<video src=1 poster=2><source src=3><track src=4></video><audio src=5></audio>", ["1", "2", "3", "4", "5"]),
        ("<embed src=1><object data=2></object><input type=image src=3>", ["1", "2", "3"]),
        ("<script src=1></script><script>'<img src=2>'</script>", ["1"]),
        ("<link rel=stylesheet href=1><link rel='shortcut ICON' href=2><link rel=preload href=3>", ["1", "2", "3"]),
        ("<link rel=manifest href=1><link rel=apple-touch-icon href=2>", ["1", "2"]),
        ("<link rel=dns-prefetch href=1><link rel=alternate href=2><link href=3>", []),
        ("<svg><image href=1 /><image xlink:href=2 /><use href='3#part' /><use href='#part' /></svg>", ["1", "2", "3"]),
        ("<body background=1><table><tr><td background=2></table>", ["1", "2"]),
        ("<p style='color: red; background: url(1)'><img src=2 style=\"background: url('3')\">", ["1", "3", "2"]),
        ("<style>@import '1'; a { background: url(2) }</style>", ["1", "2"]),
        ("<noscript><img src=1></noscript>", ["1"]),
        ("<img src='data:image/png;base64,AAAA'><img src=''><img src='#x'>", []),
        ("<img src=1><img src=./1><img src=1#x>", ["1"]),
    ],
)
def test_what_a_page_shows(html: str, expected: list[str]) -> None:
    assert _reported(html) == [f"/dir/{path}" for path in expected]
    assert _reported(html, documents=False) == []


def test_links_come_first_and_alone_are_recorded() -> None:
    html = "<base href=/b/><img src=1><a href=2>two</a><a href=1>one</a>"
    assert _reported(html) == ["/b/2", "/b/1"]
    result = FetchResult(UrlTask(URL), Outcome.STORED, content_type="text/html", body=html.encode() + b"<img src=3>")
    page = mine(result, job_settings())
    assert links_in(page.xml) == ["http://example.org/b/2", "http://example.org/b/1"]
    assert page.links[2:] == ["http://example.org/b/3"]


@pytest.mark.parametrize(
    ("srcset", "expected"),
    [
        ("", []),
        ("a", ["a"]),
        ("a 1x, b 2x", ["a", "b"]),
        ("a,b", ["a,b"]),
        ("a, b", ["a", "b"]),
        ("\n a 100w 50h,\n\tb 200w,\n", ["a", "b"]),
        (",,a,, ,b", ["a", "b"]),
        ("a (1x, 2x) 3x, b", ["a", "b"]),
        ("a (1x, b", ["a"]),
        ("data:image/png;base64,AA== 1x, b", ["data:image/png;base64,AA==", "b"]),
    ],
)
def test_srcset(srcset: str, expected: list[str]) -> None:
    assert list(srcset_references(srcset)) == expected


@pytest.mark.parametrize(
    ("css", "expected"),
    [
        ("", []),
        ("a { background: url(x.png) }", ["x.png"]),
        ("a { background: URL( 'x y.png' ), url(\"z\") }", ["x y.png", "z"]),
        ("@import 'a.css'; @IMPORT \"b.css\" screen; @import url(c.css) print;", ["a.css", "b.css", "c.css"]),
        ("@import'a.css';", ["a.css"]),
        ("@font-face { src: url(a.woff2) format('woff2'), url(b.woff) }", ["a.woff2", "b.woff"]),
        ("/* url(a) */ x { y: url(b) } /* url(c)", ["b"]),
        ("x::before { content: 'url(a)'; content: \"url(b)\" }", []),
        ("@namespace svg url(http://www.w3.org/2000/svg); x { y: url(b) }", ["b"]),
        (r"x { y: url(a\)b) } x { y: url('a\'b') } x { y: url(\61 b) } x { y: url('a\d800\0') }",
         ["a)b", "a'b", "ab", "a\ufffd\ufffd"]),
        ("x { y: url(a b) } x { y: url() } x { y: url('') }", []),
        ("x { y: url(a", []),
    ],
)  # fmt: skip
def test_css(css: str, expected: list[str]) -> None:
    assert list(css_references(css)) == expected


def test_a_style_sheet_leads_on() -> None:
    css = "@import 'more.css'; a { background: url(/x.png) } b { background: url(data:,x) } c { behavior: url(#y) }"
    assert _reported(css, "text/css") == ["/dir/more.css", "/x.png"]
    assert _reported(css, "text/plain") == []
    assert _reported(css, "text/css", documents=False) == []


@pytest.mark.parametrize(
    "css", ["url(" * 500_000, "url('" * 400_000, "/*" * 500_000, "'\\" * 500_000, "@import " * 200_000, "\\" * 500_000]
)
def test_hostile_style_sheets_cost_little(css: str) -> None:
    began = time.process_time()
    _reported(css, "text/css")
    assert time.process_time() - began < 2


@pytest.mark.parametrize("srcset", ["a " * 500_000, "," * 500_000, "a," * 500_000, "a (" * 300_000, "a,,," * 10**5])
def test_hostile_srcsets_cost_little(srcset: str) -> None:
    began = time.process_time()
    _reported(f"<img srcset='{srcset}'>")
    assert time.process_time() - began < 2

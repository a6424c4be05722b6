"""Mining: what becomes of each kind of answer, and pages that try to hurt."""

import hashlib
import random
import subprocess
import sys
import tracemalloc
from dataclasses import replace

import pytest
from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from client import miner
from client.reading.seen import Wanted, see
from client.results import FetchResult
from common import urls
from common.wire import JobSettings, Outcome, UrlTask
from tests.mining import READER, mine

SETTINGS = JobSettings(
    ftp_host="",
    ftp_port=1,
    ftp_user="",
    ftp_password="",
    ftp_tls=False,
    agent_name="test",
    contact="",
    robots_control=True,
    page_parse=True,
    document_save=True,
    drop_index_names=True,
    bundle_format="tar.bz2",
    max_body_bytes=20_000_000,
    max_header_bytes=10_000,
    max_redirects=10,
    connect_timeout_seconds=1,
    idle_timeout_seconds=1,
    fetch_timeout_seconds=1,
    max_crawl_delay_seconds=1,
    report_seconds=1,
    verify_tls=True,
    page_directives=True,
    rel_nofollow=False,
)
URL = "http://example.org/dir/index.html"
HTML = (
    "<!doctype html><title>A &lt;title&gt;</title>"
    "<meta name=description content=About><meta name=keywords content='a, b'>"
    "<p>Žluťoučký <a href=x>kůň</a></p><a href='/y?a=1&amp;b=2'>&lt;y&gt;</a><img src=z>"
)


def _fetched(body: bytes, content_type: str = "text/html", **more: object) -> FetchResult:
    result = FetchResult(
        UrlTask(URL), Outcome.STORED, status=200, final_url=URL, content_type=content_type, body=body, fetched_at=1.7e9
    )
    return replace(result, **more)


def _xml(xml: bytes) -> etree._Element:
    return etree.fromstring(xml)


@pytest.mark.parametrize("kind", ["text/html", "application/pdf"])
def test_a_body_that_is_stored_already_is_no_news(kind: str) -> None:
    sha1 = hashlib.sha1(HTML.encode()).hexdigest()
    page = mine(_fetched(HTML.encode(), kind, task=UrlTask(URL, sha1=sha1), etag='"e"'), SETTINGS)
    assert (page.outcome, page.status, page.meta, page.body) == (Outcome.UNCHANGED, 200, None, b"")
    assert (list(page.links), page.etag) == ([], '"e"')
    page = mine(_fetched(HTML.encode() + b" ", kind, task=UrlTask(URL, sha1=sha1)), SETTINGS)
    assert page.outcome is Outcome.STORED


def test_a_page_is_mined() -> None:
    page = mine(_fetched(HTML.encode(), etag='"e"', last_modified="then", server_date="now"), SETTINGS)
    assert (page.outcome, page.status, page.detail, page.data_name) == (Outcome.STORED, 200, "", "data.html")
    assert page.body == HTML.encode()
    assert list(page.links) == ["http://example.org/dir/x", "http://example.org/y?a=1&b=2", "http://example.org/dir/z"]
    root = _xml(page.xml)
    assert [(link.get("url"), link.text) for link in root.iterfind("links/link")] == [
        ("http://example.org/dir/x", "kůň"),
        ("http://example.org/y?a=1&b=2", "<y>"),
    ]
    assert [root.findtext(f"data/{tag}") for tag in ("description", "keywords", "text")] == [
        "About",
        "a, b",
        "Žluťoučký kůň <y>",
    ]


def test_the_metadata_of_a_page() -> None:
    meta = mine(_fetched(HTML.encode(), final_url="http://example.org/dir/", etag="e"), SETTINGS).meta
    assert meta is not None
    assert meta.url == "http://example.org/dir/"
    assert meta.original_url == URL
    assert meta.final_url == "http://example.org/dir/"
    assert meta.title == "A <title>"
    assert (meta.crawl_time, meta.status, meta.content_type, meta.encoding) == (1.7e9, 200, "text/html", "utf-8")
    assert meta.sha1 == hashlib.sha1(HTML.encode()).hexdigest()
    assert meta.digest == urls.digest("http://example.org/dir/").hex()


def test_index_names_are_kept_when_the_job_says_so() -> None:
    meta = mine(_fetched(b"x"), replace(SETTINGS, drop_index_names=False)).meta
    assert meta is not None
    assert meta.url == URL


def test_links_are_relative_to_the_address_that_answered() -> None:
    page = mine(_fetched(b"<a href=x>", final_url="https://www.example.org/other/"), SETTINGS)
    assert page.links == ["https://www.example.org/other/x"]


def test_without_page_parse_only_title_and_links() -> None:
    page = mine(_fetched(HTML.encode()), replace(SETTINGS, page_parse=False))
    assert len(page.links) == 3
    assert page.meta is not None
    assert page.meta.title == "A <title>"
    assert len(_xml(page.xml).find("data")) == 0


@pytest.mark.parametrize(("codec", "charset"), [("iso-8859-2", "latin2"), ("utf-16", ""), ("utf-8-sig", "koi8-r")])
def test_other_encodings(codec: str, charset: str) -> None:
    page = mine(_fetched(HTML.encode(codec, "replace"), charset=charset), SETTINGS)
    assert _xml(page.xml).findtext("data/text") == "Žluťoučký kůň <y>"
    assert page.meta is not None
    assert page.meta.title == "A <title>"


@pytest.mark.parametrize(
    ("codec", "header", "encoding", "instead"),
    [
        ("cp949", "utf-8", "euc-kr", "utf-8"),
        ("cp949", "EUC-KR", "euc-kr", None),
        ("cp949", "", "euc-kr", None),
        ("utf-8-sig", "latin1", "utf-8", "windows-1252"),
        ("utf-8", "nonsense", "euc-kr", None),
    ],
)
@pytest.mark.parametrize("page_parse", [True, False])
def test_what_the_header_says_wrongly(
    codec: str, header: str, encoding: str, instead: str | None, page_parse: bool
) -> None:
    body = ("<meta charset=euc-kr><title>한국어</title><p>한국어 페이지입니다. 안녕하세요 여러분").encode(codec)
    page = mine(_fetched(body, charset=header), replace(SETTINGS, page_parse=page_parse))
    found = _xml(page.xml).find("meta/encoding")
    assert page.meta is not None
    assert (page.meta.encoding, found.text, found.get("insteadOf")) == (encoding, encoding, instead)
    assert (page.meta.title == "한국어") == (header != "nonsense")


@pytest.mark.parametrize("outcome", [outcome for outcome in Outcome if outcome is not Outcome.STORED])
def test_other_outcomes_pass_through(outcome: Outcome) -> None:
    target = "http://example.org/target"
    result = _fetched(b"ignored", outcome=outcome, detail="why", status=301, redirect_url=target)
    page = mine(result, SETTINGS)
    assert (page.task, page.outcome, page.detail, page.status) == (result.task, outcome, "why", 301)
    assert (page.meta, page.body, page.xml, page.data_name) == (None, b"", b"", "")
    assert list(page.links) == ([target] if outcome is Outcome.REDIRECTED else [])


@pytest.mark.parametrize(
    ("content_type", "url", "name"),
    [
        ("application/pdf", "http://a/x.html", "data.pdf"),
        ("image/jpeg", "http://a/x", "data.jpg"),
        ("text/plain", "http://a/x.html", "data.txt"),
        ("application/octet-stream", "http://a/x.TAR", "data.tar"),
        ("application/octet-stream", "http://a/x.tar.gz?a=b.c", "data.gz"),
        ("application/octet-stream", "http://a/x.verylongname", "data.bin"),
        ("application/octet-stream", "http://a/x.%2f", "data.bin"),
        ("application/octet-stream", "http://a.cz/", "data.bin"),
        ("application/octet-stream", "http://a.cz/x.HTM", "data.bin"),
        ("", "http://a/x.png", "data.png"),
        ("text/xml", "http://a/x", "data.source.xml"),
        ("application/octet-stream", "http://a/x.xml", "data.source.xml"),
        ("application/rss+xml", "http://a/x.xml", "data.rss"),
    ],
)
def test_documents_keep_their_extension(content_type: str, url: str, name: str) -> None:
    result = _fetched(b"<a href=x>\x00", content_type, task=UrlTask(url), final_url=url)
    if not content_type:
        result = replace(result, body=b"\x89PNG")
    page = mine(result, SETTINGS)
    assert (page.outcome, page.data_name, list(page.links)) == (Outcome.STORED, name, [])
    assert page.body == result.body
    assert page.meta is not None
    assert (page.meta.title, page.meta.encoding) == ("", "")


PLAIN = "Žluťoučký  kůň\r\n\tpěl <b>ódy</b> &amp; více\n"
PLAIN_TEXTS = {  # body, charset of the header, text, encoding
    "UTF-8": (PLAIN.encode(), "utf-8", None, "utf-8"),
    "nothing said": (PLAIN.encode(), "", None, "utf-8"),
    "a byte order mark": (PLAIN.encode("utf-16"), "koi8-r", None, "utf-16le"),
    "UTF-16 by the header": (PLAIN.encode("utf-16-le"), "UTF-16", None, "utf-16le"),
    "the other UTF-16 by the header": (PLAIN.encode("utf-16-be"), "utf-16be", None, "utf-16be"),
    "another encoding": (PLAIN.encode("iso-8859-2"), "latin2", None, "iso-8859-2"),
    "a meta in it is text": (b"<meta charset=koi8-r> \xc5\xbe", "", "<meta charset=koi8-r> ž", "utf-8"),
    "ASCII": (b"plain", "", "plain", "utf-8"),
    "an escape sequence": (b"\x1b$B7/$N\x1b(B", "iso-2022-jp", "君の", "iso-2022-jp"),
    "nothing": (b"", "", "", "utf-8"),
    "what no text has": (b"PK\x03\x04 words", "utf-8", "", ""),
    "what no text has, far behind": (b"text " * 300 + b"\x00", "", "text " * 300 + "\ufffd", "utf-8"),
}


@pytest.mark.parametrize("name", PLAIN_TEXTS)
def test_plain_text_is_mined(name: str) -> None:
    body, charset, text, encoding = PLAIN_TEXTS[name]
    page = mine(_fetched(body, "text/plain", charset=charset), SETTINGS)
    assert (page.outcome, page.body, page.data_name, list(page.links)) == (Outcome.STORED, body, "data.txt", [])
    expected = "Žluťoučký kůň pěl <b>ódy</b> &amp; více" if text is None else text
    assert (_xml(page.xml).findtext("data/text") or "") == expected
    assert page.meta is not None
    assert (page.meta.encoding, page.meta.title, page.detail) == (encoding, "", "")
    without = mine(_fetched(body, "text/plain", charset=charset), replace(SETTINGS, page_parse=False))
    assert _xml(without.xml).find("data/text") is None


def test_much_plain_text_is_mined_in_part_in_little_memory() -> None:
    tracemalloc.start()
    page = mine(_fetched("žé ".encode() * 4_000_000, "text/plain"), SETTINGS)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert page.detail == "mined in part: the first 2000000 of 20000000 bytes"
    text = _xml(page.xml).findtext("data/text") or ""
    assert text == ("žé " * 400_000)[:1_000_000]
    assert peak < 120_000_000


def test_documents_are_unwanted_when_the_job_says_so() -> None:
    page = mine(_fetched(b"%PDF", "application/pdf"), replace(SETTINGS, document_save=False))
    assert (page.outcome, page.meta, page.body) == (Outcome.UNWANTED, None, b"")
    assert mine(_fetched(b"x"), replace(SETTINGS, document_save=False)).outcome is Outcome.STORED


def test_xhtml_is_mined() -> None:
    page = mine(_fetched(b"<html xmlns='x'><a href='x'/></html>", "application/xhtml+xml"), SETTINGS)
    assert (page.data_name, list(page.links)) == ("data.html", ["http://example.org/dir/x"])


def test_a_page_that_cannot_be_mined_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("the parser broke")

    monkeypatch.setattr(miner.links, "resolved", broken)
    page = mine(_fetched(HTML.encode()), SETTINGS)
    assert (page.outcome, page.body, list(page.links)) == (Outcome.STORED, HTML.encode(), [])
    assert page.detail == "not mined: RuntimeError: the parser broke"
    assert _xml(page.xml).findtext("meta/sha1") == hashlib.sha1(HTML.encode()).hexdigest()


_KINDS = st.sampled_from(["text/html", "", "application/pdf", "text/plain"])


@given(st.binary(max_size=300), _KINDS, st.text(max_size=10))
def test_any_bytes_can_be_mined(body: bytes, content_type: str, charset: str) -> None:
    page = mine(_fetched(body, content_type, charset=charset), SETTINGS)
    assert page.outcome is Outcome.STORED
    assert not page.detail
    assert page.body == body
    assert _xml(page.xml).tag == "page"


HOSTILE = {
    "nested tags": "b'<div>' * 100_000 + b'<a href=x>'",
    "nested anchors": "b''.join(b'<object><a href=%d>' % n for n in range(100_000))",
    "a million links": "b''.join(b'<a href=/%d>x</a>' % n for n in range(1_000_000))",
    "one attribute": "b'<a href=\"' + b'x' * 10_000_000 + b'\">'",
    "one text": "b'<a href=x>' + b'x ' * 5_000_000",
    "attributes": "b'<a ' + b' '.join(b'a%d' % n for n in range(100_000)) + b'>'",
    "formatting": "b''.join(b'<font size=%d><p>' % n for n in range(3_000))",
    "templates": "b'<template>' * 100_000",
    "options": "b'<select><button><selectedcontent></selectedcontent></button>' + b'<option selected>x' * 100_000",
    "noscript": "b'<noscript>' * 100_000",
    "titles": "b'<svg><title>x' * 100_000",
    "junk": "random.Random(1).randbytes(5_000_000)",
    "angle brackets": "b'<' * 5_000_000",
    "tags in tags": "b'<a ' * 2_000_000",
    "quotes": "b'<a b=\\'\"' * 1_000_000",
    "empty attributes": "b'<a' + b' =' * 2_000_000",
    "unclosed scripts": "b'<script>' * 500_000",
    "comments": "b'<!--' * 1_000_000",
    "nested behind a comment without an end": "b'<!-->' + b'<div>' * 100_000",
    "nested in a title that is none": "b'<svg><title>' + b'<div>' * 100_000",
    "nested in what ends nothing": "b'<div><template></div></template>' * 70_000",
    "attributes behind a quoted end": "b'<a b=\">\" ' + b' '.join(b'a%d' % n for n in range(100_000)) + b'>'",
    "formatting in tables": "b''.join(b'<b a=%d><table><td></b></table>' % n for n in range(2_000)) + b'<p>x' * 3_000",
    "small formatting": "b''.join(b'<font size=%d>' % n for n in range(700)) + b'<p>x' * 700",
    "ruby": "b'<rt>' * 100_000",
    "items": "b'<li><dd>' * 100_000",
    "drawing": "b'<svg>' + b'<g>' * 100_000 + b'</x>' * 100_000",
    "a long base": "BASE % (b'a' * 1_900) + LINKS",
    "a long base that XML escapes": "BASE % (b'&' * 1_900) + LINKS",
    "a long base without links to follow": "BASE % (b'a' * 1_900) + b'<a rel=nofollow href=x>' + LINKS",
    "a long base and a large character": "BASE % (b'a' * 1_900) + '\U0001f600'.encode() + LINKS * 8",
    "one text in many anchors": "b''.join(b'<a href=%d><object>' % n + TEXT * (n % 60 < 1) for n in range(20_000))",
    "hosts of 3,800 characters": "b''.join(b'<a href=\"http://%d%b/\">' % (n, NAME) for n in range(600))",
    "no windows-1253": "in_('windows-1253', b'\\xd2' * 19_000_000)",
    "no UTF-16": "in_('utf-16', b'\\0\\xdc' * 9_500_000)",
    "no EUC-JP": "in_('euc-jp', b'\\xff\\xad\\xa1' * 6_000_000)",
    "no UTF-8, but what it says": "in_('utf-8', b'<meta charset=windows-1251>' + b'ab\\xe9' * 6_300_000)",
    "UTF-8 with large characters": "'<p>\U0001f600'.encode() * 2_700_000",
}
_CHILD = """
import random, resource, sys, time
from tests.unit.test_miner import _fetched
from tests.mining import READER, mine, peak_kilobytes_outside
def in_(encoding, text):
    global charset
    charset = encoding
    return text
charset = ""
LINKS = b''.join(b'<a href=%d>' % n for n in range(50_000))
TEXT = b'"' * 500
BASE = b'<base href="http://h.example/%b/">'
NAME = ''.join(map(chr, range(0x4e00, 0x4e00 + 3_800))).encode()
body = {body}
before = resource.getrusage(resource.RUSAGE_SELF)
page = mine(_fetched(body, charset=charset))
after = resource.getrusage(resource.RUSAGE_SELF)
outside = peak_kilobytes_outside()
READER.close()
assert page.body == body
assert not page.detail.startswith("not mined"), page.detail
seconds_outside = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
print(after.ru_utime - before.ru_utime, after.ru_maxrss - before.ru_maxrss, seconds_outside, outside)
"""


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pages_cost_little(name: str) -> None:
    """In a process of its own, because a parser that recurses too deep takes the process with it."""
    command = [sys.executable, "-c", _CHILD.format(body=HOSTILE[name])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    seconds, kilobytes, seconds_outside, kilobytes_outside = map(float, done.stdout.split())
    assert seconds < 5
    assert kilobytes < 100_000
    assert seconds_outside < 10
    assert kilobytes_outside < 200_000


def test_a_page_that_was_cut_says_so() -> None:
    page = mine(_fetched(b"<a href=x>" + b"<div>" * 100_000), SETTINGS)
    assert page.links == ["http://example.org/dir/x"]
    assert page.detail == "mined in part: the first 30005 of 500010 bytes"


def test_a_page_whose_links_are_cut_says_so() -> None:
    body = b'<base href="http://h.example/' + b"a" * 1_900 + b'/">' + b"".join(b"<a href=%d>" % n for n in range(5_000))
    page = mine(_fetched(body), replace(SETTINGS, document_save=True))
    assert 500 < len(page.links) < 1_000
    assert page.detail == f"mined in part: the first {len(page.links)} addresses"
    assert len(page.xml) < 2_000_000
    followed = mine(_fetched(b"<a rel=nofollow href=x>" + body), replace(SETTINGS, rel_nofollow=True))
    assert 500 < len(followed.links) < 1_000


CUT = [
    ("utf-8", "<p>žluťoučký</p>".encode() * 500_000, "utf-8"),
    ("", "<p>žluťoučký</p>".encode() * 500_000, "utf-8"),
    ("", "žluťoučký ".encode() * 500_000 + "<p>ž</p>".encode() * 400_000, "utf-8"),
    ("windows-1251", "<p>Съешь</p>".encode("windows-1251") * 800_000, "windows-1251"),
    ("", b"<meta charset=gbk>" + "<p>網頁</p>".encode("gbk") * 1_000_000, "gbk"),
]


@pytest.mark.parametrize(("charset", "body", "encoding"), CUT)
def test_a_page_is_cut_between_characters(
    charset: str, body: bytes, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before it is decoded; half a character at the end would make another encoding of it."""
    read: list[bytes] = []
    monkeypatch.setattr(READER, "read", lambda html, *_: read.append(html) or see(html[:1000], Wanted()))
    page = mine(_fetched(body, charset=charset))
    assert page.meta is not None
    assert page.meta.encoding == encoding
    assert b"\xef\xbf\xbd" not in read[0]
    assert 7_900_000 < len(read[0]) <= 8_000_000
    assert page.detail.startswith("mined in part: the first 1000 of ")
    assert int(page.detail.split()[-2]) >= len(body)


@pytest.mark.parametrize("seed", range(20))
def test_beautiful_soup_sees_the_same_title_and_text(seed: int) -> None:
    choose = random.Random(seed)
    words = [choose.choice(["a", "<b>b</b>", "&amp;", "č", "<script>no</script>"]) for _ in range(choose.randrange(50))]
    html = f"<html><head><title> t {seed} &eacute;\n</title></head><body><p>{' '.join(words)}</p></body></html>"
    soup = BeautifulSoup(html, "html.parser")
    for script in soup.find_all("script"):
        script.decompose()
    page = mine(_fetched(html.encode()), SETTINGS)
    assert page.meta is not None
    assert soup.title is not None
    assert soup.body is not None
    assert page.meta.title == " ".join(soup.title.get_text().split())
    assert (_xml(page.xml).findtext("data/text") or "") == " ".join(soup.body.get_text().split())

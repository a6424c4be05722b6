"""What a client makes of sitemaps: which ones it tells of, and the rows that it makes of those that it has fetched."""

import gzip
import hashlib
import logging

import pytest

from client import listing
from client.results import FetchResult, MinedPage
from client.sitemaps import MAX_BYTES
from common.clock import ManualClock
from common.wire import Kind, ListedUrl, Outcome, UrlTask

ORIGIN = "http://a.test"
URL = f"{ORIGIN}/sitemap.xml"
PAGE = f"{ORIGIN}/1"


def read(body: bytes | str, content_type: str = "application/xml", task: UrlTask | None = None) -> MinedPage:
    content = body if isinstance(body, bytes) else body.encode()
    task = task or UrlTask(URL, 2, 1, kind=Kind.SITEMAP)
    result = FetchResult(
        task, Outcome.STORED, status=200, final_url=task.url, content_type=content_type, body=content, etag='"e"'
    )
    return listing.read(result, lambda origin: None)


def urlset(*urls: str) -> str:
    return f"<urlset>{''.join(f'<url><loc>{url}</loc><lastmod>2026-11-02</lastmod></url>' for url in urls)}</urlset>"


NOV_2 = 1_793_577_600

# --- which ones there are


def test_an_origin_is_told_of_once_a_day() -> None:
    clock = ManualClock()
    origins = listing.Origins(clock)
    assert not origins.has(ORIGIN)
    assert origins.news(ORIGIN, 3, [f"{ORIGIN}/x.xml", "https://cdn.test/y.xml"]) == [
        ListedUrl(f"{ORIGIN}/x.xml", 3, kind=Kind.SITEMAP),
        ListedUrl("https://cdn.test/y.xml", 3, kind=Kind.SITEMAP, host="a.test"),
        ListedUrl(URL, 3, kind=Kind.GUESSED),
    ]
    assert origins.has(ORIGIN)
    assert origins.news(ORIGIN, 0, [f"{ORIGIN}/new.xml"]) == ()
    clock.advance(86_400)
    assert not origins.has(ORIGIN), "its robots.txt is read again, and may name others"
    assert origins.news(ORIGIN, 0, [f"{ORIGIN}/new.xml"])[0].url == f"{ORIGIN}/new.xml"


def test_what_is_named_is_not_guessed() -> None:
    assert listing.Origins(ManualClock()).news(ORIGIN, 0, [URL]) == [ListedUrl(URL, 0, kind=Kind.SITEMAP)]


def test_memory_is_bounded_and_the_one_not_asked_about_for_longest_goes() -> None:
    origins = listing.Origins(ManualClock(), max_origins=2)
    for origin in ("http://1.test", "http://2.test"):
        origins.news(origin, 0, ())
    assert origins.has("http://1.test")
    origins.news("http://3.test", 0, ())
    assert [origins.has(f"http://{number}.test") for number in (1, 2, 3)] == [True, False, True]


# --- what they say


def test_pages_are_one_deeper_and_sitemaps_are_not() -> None:
    page = read(urlset(PAGE, "http://other.test/"))
    assert (page.outcome, page.detail, page.meta, page.etag) == (Outcome.LISTED, "", None, '"e"')
    assert page.sha1 == hashlib.sha1(urlset(PAGE, "http://other.test/").encode()).hexdigest()
    assert page.listed == [ListedUrl(PAGE, 3, NOV_2), ListedUrl("http://other.test/", 3, NOV_2, host="a.test")]
    index = "<sitemapindex><sitemap><loc>/b.xml</loc></sitemap><sitemap><loc>http://c.test/</loc></sitemap></sitemapindex>"
    assert read(index).listed == [
        ListedUrl(f"{ORIGIN}/b.xml", 2, 0, Kind.SITEMAP, 2),
        ListedUrl("http://c.test/", 2, 0, Kind.SITEMAP, 2, "a.test"),
    ]


def test_a_host_can_let_the_sitemap_of_another_speak_for_it() -> None:
    named = {"http://b.test": [URL], "http://c.test": ["http://a.test/other.xml"]}
    pages = ["http://b.test/1", "http://c.test/1", "http://unknown.test/1"]
    result = FetchResult(UrlTask(URL, kind=Kind.SITEMAP), Outcome.STORED, body=urlset(*pages).encode(), final_url=URL)
    assert [row.host for row in listing.read(result, named.get).listed] == ["", "a.test", "a.test"]


def test_a_sitemap_that_is_the_same_as_before_says_nothing() -> None:
    body = urlset(PAGE)
    sha1 = hashlib.sha1(body.encode()).hexdigest()
    page = read(body, task=UrlTask(URL, sha1=sha1, kind=Kind.GUESSED))
    assert (page.outcome, page.listed) == (Outcome.UNCHANGED, ())


@pytest.mark.parametrize("outcome", [Outcome.UNCHANGED, Outcome.NOT_FOUND, Outcome.TIMEOUT, Outcome.DISALLOWED])
def test_an_outcome_passes_through(outcome: Outcome) -> None:
    page = listing.read(FetchResult(UrlTask(URL, kind=Kind.SITEMAP), outcome, "why"), lambda origin: None)
    assert (page.outcome, page.detail, page.listed) == (outcome, "why", ())


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (f"{PAGE}\n", "text/plain"),
        (gzip.compress(urlset(PAGE).encode(), mtime=0), "application/gzip"),
        (f"<rss><channel><item><link>{PAGE}</link></item></channel></rss>", "application/rss+xml"),
        (f"<feed><entry><link href='{PAGE}'/></entry></feed>", ""),
        (urlset(PAGE), "text/html"),  # badly served, but a sitemap
        (urlset(PAGE).encode("utf-16"), "application/xml"),
    ],
    ids=["text", "gzip", "rss", "atom", "as html", "utf-16"],
)
def test_kinds_of_sitemaps(body: bytes | str, content_type: str) -> None:
    page = read(body, content_type)
    assert (page.outcome, [row.url for row in page.listed]) == (Outcome.LISTED, [PAGE])


# --- trouble


def test_what_comes_before_the_damage_counts_and_the_log_says_so(caplog: pytest.LogCaptureFixture) -> None:
    page = read(urlset(PAGE)[:-5] + "<oops")
    assert (page.outcome, [row.url for row in page.listed]) == (Outcome.LISTED, [PAGE])
    assert page.detail.startswith("the file is damaged: ")
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", f"{URL}: {page.detail}; the 1 addresses before that count")
    ]


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b"<!DOCTYPE a [<!ENTITY b 'c'>]><urlset/>", "the file declares entities"),
        (b"<urlset><url>", "the file is damaged: no element found"),
        (gzip.compress(b" " * (MAX_BYTES + 1), mtime=0), f"the file is longer than {MAX_BYTES} bytes"),
        (b"\x1f\x8bnonsense", "the file is damaged: "),
        (b"<svg/>", "the file is no sitemap: <svg>"),
        (b"", "the file is empty"),
        (gzip.compress(b"", mtime=0), "the file is empty"),
        (b"<sitemapindex><sitemap/></sitemapindex>", "the file lists nothing: none of its 1 entries has an address"),
        (b"Sorry\n", "the file lists nothing: none of its 1 lines is an address"),
    ],
)
def test_of_some_nothing_can_be_read(body: bytes, detail: str, caplog: pytest.LogCaptureFixture) -> None:
    page = read(body)
    assert page.outcome is Outcome.BAD_CONTENT
    assert page.detail.startswith(detail)
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    caplog.clear()
    assert read(body, task=UrlTask(URL, kind=Kind.GUESSED)).outcome is Outcome.BAD_CONTENT
    assert not caplog.records, "nobody has named it"


def test_html_is_no_sitemap() -> None:
    page = read("<!DOCTYPE html><html><p>Sorry", "text/html")
    assert (page.outcome, page.detail) == (Outcome.UNWANTED, "the file is no sitemap: <html>")
    assert read("", "text/html").detail == "no sitemap: text/html"


def test_an_empty_sitemap_is_one_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    for body in ("<urlset></urlset>", "<rss><channel><title>No news</title></channel></rss>"):
        page = read(body)
        assert (page.outcome, page.detail) == (Outcome.LISTED, "the file lists nothing")
        assert [record.getMessage() for record in caplog.records] == [f"{URL}: the file lists nothing"]
        caplog.clear()


# --- redirects


@pytest.mark.parametrize(
    ("target", "kind", "expected"),
    [
        (f"{ORIGIN}/map", Kind.SITEMAP, ListedUrl(f"{ORIGIN}/map", 2, 0, Kind.SITEMAP, 2)),
        ("http://b.test/", Kind.SITEMAP, ListedUrl("http://b.test/", 2, 0, Kind.SITEMAP, 2, "a.test")),
        (f"{ORIGIN}/wp-sitemap", Kind.GUESSED, ListedUrl(f"{ORIGIN}/wp-sitemap", 2, 0, Kind.GUESSED, 2)),
        (f"{ORIGIN}/x.XML.gz?y", Kind.GUESSED, ListedUrl(f"{ORIGIN}/x.XML.gz?y", 2, 0, Kind.GUESSED, 2)),
        (f"{ORIGIN}/", Kind.GUESSED, None),
        (f"{ORIGIN}/login?from=/sitemap.xml", Kind.GUESSED, None),
    ],
)
def test_where_redirects_lead_to(target: str, kind: Kind, expected: ListedUrl | None) -> None:
    task = UrlTask(URL, 2, 1, kind=kind)
    page = listing.read(FetchResult(task, Outcome.REDIRECTED, redirect_url=target), lambda origin: None)
    assert list(page.listed) == ([expected] if expected else [])
    assert page.outcome is (Outcome.REDIRECTED if expected else Outcome.NOT_FOUND)
    assert page.links == ()

"""The fetcher: turns, robots.txt, redirects and what a status means, against a real server."""

from collections.abc import Iterator
from dataclasses import replace
from email.utils import formatdate
from itertools import pairwise

import pytest

from client.fetcher import Fetcher, Turn, Visit, sender, user_agent
from client.fields import charset, looks_like_html, media_type, retry_after_seconds
from client.results import FetchResult
from client.robots import Robots
from client.sitemaps import MAX_BYTES
from client.transport import Transport
from common.clock import ManualClock
from common.wire import HostShare, JobSettings, Kind, Outcome, UrlTask
from tests.unit.canned import Canned, broken_off, endless, hang, redirect, reply, serving

SETTINGS = JobSettings(
    ftp_host="",
    ftp_port=0,
    ftp_user="",
    ftp_password="",
    ftp_tls=False,
    agent_name="pavouk",
    contact="",
    robots_control=False,
    page_parse=True,
    document_save=True,
    drop_index_names=True,
    bundle_format="tar.bz2",
    max_body_bytes=100_000,
    max_header_bytes=20_000,
    max_redirects=3,
    connect_timeout_seconds=2.0,
    idle_timeout_seconds=5.0,
    fetch_timeout_seconds=10.0,
    max_crawl_delay_seconds=60.0,
    report_seconds=30.0,
    verify_tls=True,
    page_directives=True,
    rel_nofollow=False,
)
OBEDIENT = replace(SETTINGS, robots_control=True)
HTML_ONLY = replace(SETTINGS, document_save=False)


class Client:
    """A fetcher, its server and its clock."""

    def __init__(self, canned: Canned) -> None:
        self.canned = canned
        self.clock = ManualClock()
        self.robots = Robots("pavouk", self.clock)
        self.transport = Transport("pavouk/0.1.0")
        self.fetcher = Fetcher(self.transport, self.robots, self.clock)

    def visit(self, path: str, settings: JobSettings = SETTINGS, private: bool = True, **task: object) -> Visit:
        share = HostShare(f"127.0.0.1:{self.canned.port}", 1.0, allow_private=private)
        return Visit(UrlTask(self.canned.url(path), **task), share, settings)  # type: ignore[arg-type]

    def once(self, path: str, settings: JobSettings = SETTINGS, **task: object) -> FetchResult:
        """A visit that needs one turn."""
        result = self.fetcher.turn(self.visit(path, settings, **task))  # type: ignore[arg-type]
        assert isinstance(result, FetchResult)
        return result

    def whole(self, visit: Visit) -> tuple[FetchResult, int]:
        """The result, and how many turns came before it."""
        for turns in range(20):
            result = self.fetcher.turn(visit)
            if isinstance(result, FetchResult):
                return result, turns
            assert result is Turn.AGAIN
        raise AssertionError("the visit does not end")


@pytest.fixture
def client() -> Iterator[Client]:
    with serving() as canned:
        made = Client(canned)
        yield made
        made.transport.close()


def test_page(client: Client) -> None:
    client.canned.replies["/a"] = reply(
        b"<p>hello",
        Content_Type='Text/HTML; Charset="utf-8"; x=y',
        ETag='W/"1"',
        Last_Modified="Mon, 01 Jan 2024 00:00:00 GMT",
        Date="Tue, 02 Jan 2024 00:00:00 GMT",
    )
    result = client.once("/a", depth=2)
    assert result.seconds > 0
    assert replace(result, seconds=0.0) == FetchResult(
        UrlTask(client.canned.url("/a"), depth=2),
        Outcome.STORED,
        status=200,
        final_url=client.canned.url("/a"),
        content_type="text/html",
        charset="utf-8",
        etag='W/"1"',
        last_modified="Mon, 01 Jan 2024 00:00:00 GMT",
        server_date="Tue, 02 Jan 2024 00:00:00 GMT",
        body=b"<p>hello",
        fetched_at=client.clock.now(),
        address="127.0.0.1",
    )


STATUSES = [
    ("200 OK", Outcome.STORED),
    ("201 Created", Outcome.STORED),
    ("203 Other", Outcome.STORED),
    ("206 Partial", Outcome.BROKEN),
    ("300 Choices", Outcome.BAD_REDIRECT),
    ("304 Not Modified", Outcome.BROKEN),
    ("305 Proxy", Outcome.BAD_REDIRECT),
    ("400 Bad", Outcome.CLIENT_ERROR),
    ("401 Who", Outcome.CLIENT_ERROR),
    ("403 No", Outcome.CLIENT_ERROR),
    ("404 Not Found", Outcome.NOT_FOUND),
    ("407 Proxy", Outcome.CLIENT_ERROR),
    ("410 Gone", Outcome.NOT_FOUND),
    ("429 Slow", Outcome.BUSY),
    ("451 Law", Outcome.CLIENT_ERROR),
    ("500 Oops", Outcome.SERVER_ERROR),
    ("503 Busy", Outcome.SERVER_ERROR),
    ("999 Denied", Outcome.SERVER_ERROR),
]


@pytest.mark.parametrize(("status", "outcome"), STATUSES)
def test_statuses(client: Client, status: str, outcome: Outcome) -> None:
    client.canned.replies["/"] = reply(b"text", status)
    result = client.once("/")
    assert (result.outcome, result.status, result.requested) == (outcome, int(status[:3]), True)
    assert result.body == (b"text" if outcome == Outcome.STORED else b"")
    assert (result.detail == "") == (outcome == Outcome.STORED)


@pytest.mark.parametrize("status", ["204 No Content", "205 Reset"])
def test_no_content_is_an_empty_page(client: Client, status: str) -> None:
    client.canned.replies["/"] = f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n".encode()
    result = client.once("/")
    assert (result.outcome, result.body, result.content_type) == (Outcome.STORED, b"", "")
    assert client.once("/", HTML_ONLY).outcome == Outcome.UNWANTED


def test_conditional_request(client: Client) -> None:
    client.canned.replies["/"] = b"HTTP/1.1 304 Not Modified\r\n\r\n"
    result = client.once("/", etag='"1"', last_modified="yesterday")
    assert (result.outcome, result.status, result.body) == (Outcome.UNCHANGED, 304, b"")
    headers = client.canned.asked[0].headers
    assert (headers["if-none-match"], headers["if-modified-since"]) == ('"1"', "yesterday")
    client.canned.replies["/"] = b'HTTP/1.1 304 Not Modified\r\nETag: "2"\r\nLast-Modified: today\r\n\r\n'
    result = client.once("/", etag='"1"')
    assert (result.outcome, result.etag, result.last_modified) == (Outcome.UNCHANGED, '"2"', "today")


@pytest.mark.parametrize(
    ("status", "value", "outcome", "seconds"),
    [
        ("503 Busy", "120", Outcome.BUSY, 120.0),
        ("503 Busy", "0", Outcome.BUSY, 0.0),
        ("503 Busy", "soon", Outcome.SERVER_ERROR, 0.0),
        ("429 Slow", "soon", Outcome.BUSY, 0.0),
        ("429 Slow", "99999999999999999999", Outcome.BUSY, 86_400.0),
        ("429 Slow", formatdate(1_700_000_090, usegmt=True), Outcome.BUSY, 90.0),
        ("429 Slow", formatdate(1_600_000_000, usegmt=True), Outcome.BUSY, 0.0),
        ("200 OK", "120", Outcome.STORED, 0.0),
    ],
)
def test_retry_after(client: Client, status: str, value: str, outcome: Outcome, seconds: float) -> None:
    client.canned.replies["/"] = reply(b"later", status, Retry_After=value)
    result = client.once("/")
    assert (result.outcome, result.retry_after_seconds) == (outcome, seconds)


def test_trouble_is_a_result(client: Client) -> None:
    client.canned.replies["/broken"] = broken_off(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx")
    client.canned.replies["/large"] = endless(b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 1000)
    client.canned.replies["/gzip"] = reply(b"no gzip", Content_Encoding="gzip")
    client.canned.replies["/mute"] = hang
    hasty = replace(SETTINGS, fetch_timeout_seconds=0.3)
    outcomes = [client.once(path, hasty).outcome for path in ("/broken", "/large", "/gzip", "/mute")]
    assert outcomes == [Outcome.BROKEN, Outcome.TOO_LARGE, Outcome.BAD_CONTENT, Outcome.TIMEOUT]


def test_closed_address(client: Client) -> None:
    result = client.fetcher.turn(client.visit("/", private=False))
    assert isinstance(result, FetchResult)
    assert result.outcome == Outcome.FORBIDDEN_ADDRESS
    assert client.canned.asked == []


def test_unusable_header_values(client: Client) -> None:
    client.canned.replies["/"] = reply(b"", ETag="x" * 501, Last_Modified="y\x01z", Content_Type="nonsense")
    result = client.once("/")
    assert (result.etag, result.last_modified, result.content_type) == ("", "y z", "")


# Types


@pytest.mark.parametrize(
    ("value", "body", "outcome", "kind"),
    [
        ("text/html", b"x", Outcome.STORED, "text/html"),
        ("application/xhtml+xml; charset=x", b"x", Outcome.STORED, "application/xhtml+xml"),
        ("application/pdf", b"%PDF", Outcome.UNWANTED, "application/pdf"),
        ("text/plain", b"<html>", Outcome.UNWANTED, "text/plain"),
        ("", b"\n <!DOCTYPE html><p>", Outcome.STORED, "text/html"),
        ("", b"%PDF-1.4", Outcome.UNWANTED, ""),
        ("html", b"<html >", Outcome.STORED, "text/html"),
    ],
)
def test_html_only(client: Client, value: str, body: bytes, outcome: Outcome, kind: str) -> None:
    client.canned.replies["/"] = reply(body, Content_Type=value)
    result = client.once("/", HTML_ONLY)
    assert (result.outcome, result.content_type) == (outcome, kind)
    assert result.body == (body if outcome == Outcome.STORED else b"")


def test_unwanted_is_not_downloaded(client: Client) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\nContent-Length: 99999999\r\n\r\n"
    client.canned.replies["/"] = endless(head, b"x" * 1000)
    assert client.once("/", HTML_ONLY).outcome == Outcome.UNWANTED


# Redirects


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 Other", "307 Temporary", "308 Permanent"])
def test_redirect_to_another_page(client: Client, status: str) -> None:
    client.canned.replies["/a/"] = redirect("../b?c#d", status)
    result = client.once("/a/")
    assert (result.outcome, result.redirect_url) == (Outcome.REDIRECTED, client.canned.url("/b?c"))
    assert client.canned.paths() == ["/a/"]


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("https://other.example/x", "https://other.example/x"),
        ("//other.example", "http://other.example/"),
        ("/caf\xc3\xa9", "/caf%C3%A9"),  # raw UTF-8
        ("/caf\xe9", "/caf%E9"),  # raw octets that are no UTF-8
        ("/a b\t", "/a%20b"),
    ],
)
def test_redirect_targets(client: Client, location: str, target: str) -> None:
    client.canned.replies["/"] = redirect(location)
    expected = target if "://" in target else client.canned.url(target)
    assert client.once("/").redirect_url == expected


@pytest.mark.parametrize(
    "location", ["", "file:///etc/passwd", "javascript:1", "http://", "http://[", "/" + "x" * 3000]
)
def test_redirect_without_a_usable_target(client: Client, location: str) -> None:
    client.canned.replies["/"] = redirect(location)
    result = client.once("/")
    assert result.outcome == Outcome.BAD_REDIRECT
    assert 0 < len(result.detail) <= 200


def test_redirect_to_another_spelling_is_the_next_turn(client: Client) -> None:
    client.canned.replies |= {"/a/index.html": redirect("/a/"), "/a/": reply(b"here")}
    visit = client.visit("/a/index.html")
    result, turns = client.whole(visit)
    assert (result.outcome, result.body, turns) == (Outcome.STORED, b"here", 1)
    assert result.task.url == client.canned.url("/a/index.html")
    assert result.final_url == client.canned.url("/a/")


def test_other_spelling_is_another_page_when_index_names_count(client: Client) -> None:
    client.canned.replies["/a/index.html"] = redirect("/a/")
    settings = replace(SETTINGS, drop_index_names=False)
    assert client.once("/a/index.html", settings).outcome == Outcome.REDIRECTED


def test_redirect_to_itself(client: Client) -> None:
    client.canned.replies["/"] = redirect("/")
    assert client.once("/").detail == "redirects in a circle"


def test_circle_of_spellings(client: Client) -> None:
    client.canned.replies |= {"/": redirect("/index.html"), "/index.html": redirect("/")}
    result, turns = client.whole(client.visit("/"))
    assert (result.outcome, result.detail, turns) == (Outcome.BAD_REDIRECT, "redirects in a circle", 1)


@pytest.mark.parametrize(("hops", "outcome"), [(2, Outcome.REDIRECTED), (3, Outcome.BAD_REDIRECT)])
def test_too_many_redirects(client: Client, hops: int, outcome: Outcome) -> None:
    client.canned.replies["/"] = redirect("/next")
    assert client.once("/", hops=hops).outcome == outcome


def test_too_many_spellings(client: Client) -> None:
    spellings = ["/", "/index.html", "/index.php", "/default.asp", "/index.htm"]
    client.canned.replies |= {here: redirect(there) for here, there in pairwise(spellings)}
    result, turns = client.whole(client.visit("/"))
    assert (result.outcome, result.detail, turns) == (Outcome.BAD_REDIRECT, "more than 3 redirects", 3)


# robots.txt


def test_robots_first_then_the_page(client: Client) -> None:
    client.canned.replies |= {"/robots.txt": reply(b"User-agent: *\nDisallow: /no"), "/yes": reply(b"here")}
    visit = client.visit("/yes", OBEDIENT)
    assert client.fetcher.turn(visit) is Turn.AGAIN
    assert client.canned.paths() == ["/robots.txt"]
    assert client.whole(visit)[0].outcome == Outcome.STORED
    result = client.once("/no", OBEDIENT)
    assert (result.outcome, result.requested) == (Outcome.DISALLOWED, False)
    assert client.canned.paths() == ["/robots.txt", "/yes"]


def test_robots_is_not_asked_when_switched_off(client: Client) -> None:
    client.canned.replies |= {"/robots.txt": reply(b"User-agent: *\nDisallow: /"), "/no": reply(b"here")}
    assert client.once("/no").outcome == Outcome.STORED
    assert client.canned.paths() == ["/no"]


def test_somebody_else_is_asking_for_robots(client: Client) -> None:
    client.robots.claim(client.canned.origin)
    assert client.fetcher.turn(client.visit("/", OBEDIENT)) is Turn.PENDING
    assert client.canned.asked == []


def test_robots_behind_redirects(client: Client) -> None:
    client.canned.replies |= {
        "/robots.txt": redirect("/r2"),
        "/r2": redirect("/r3"),
        "/r3": reply(b"User-agent: *\nDisallow: /"),
    }
    result, turns = client.whole(client.visit("/", OBEDIENT))
    assert (result.outcome, turns) == (Outcome.DISALLOWED, 3)


def test_robots_away(client: Client) -> None:
    client.canned.replies["/robots.txt"] = reply(b"", "500 Oops")
    result, turns = client.whole(client.visit("/", OBEDIENT))
    assert (result.outcome, result.requested, turns) == (Outcome.ROBOTS_UNREACHABLE, False, 1)
    assert "500" in result.detail
    client.clock.advance(60)
    client.canned.replies |= {"/robots.txt": reply(b""), "/": reply(b"here")}
    assert client.whole(client.visit("/", OBEDIENT))[0].outcome == Outcome.STORED


def test_host_away_is_told_as_such(client: Client) -> None:
    result, turns = client.whole(client.visit("/", OBEDIENT, private=False))
    assert (result.outcome, result.requested, turns) == (Outcome.FORBIDDEN_ADDRESS, False, 1)


def test_permission_for_private_addresses_ends_at_the_host(client: Client) -> None:
    with serving() as other:
        client.canned.replies["/robots.txt"] = redirect(other.url("/robots.txt"))
        result, turns = client.whole(client.visit("/", OBEDIENT))
        assert (result.outcome, turns) == (Outcome.ROBOTS_UNREACHABLE, 2)
        assert other.connections == 0


def test_endless_robots(client: Client) -> None:
    start = b"HTTP/1.1 200 OK\r\n\r\nUser-agent: *\nDisallow: /no\n"
    client.canned.replies |= {"/robots.txt": endless(start, b"# more and more\n" * 50), "/yes": reply(b"here")}
    assert client.whole(client.visit("/yes", OBEDIENT))[0].outcome == Outcome.STORED
    assert client.once("/no", OBEDIENT).outcome == Outcome.DISALLOWED


def test_redirect_target_of_the_same_page_is_checked_too(client: Client) -> None:
    client.canned.replies |= {
        "/robots.txt": reply(b"User-agent: *\nDisallow: /index.html"),
        "/": redirect("/index.html"),
    }
    assert client.whole(client.visit("/", OBEDIENT))[0].outcome == Outcome.DISALLOWED
    assert client.canned.paths() == ["/robots.txt", "/"]


# Header values


@pytest.mark.parametrize(
    ("value", "kind", "encoding"),
    [
        ("", "", ""),
        ("text/html", "text/html", ""),
        (" TEXT/Html ;charset=UTF-8", "text/html", "UTF-8"),
        ('text/html; a=b; charset = "iso-8859-2" ; c', "text/html", "iso-8859-2"),
        ("text/html; charset='utf-8'", "text/html", "utf-8"),
        ("text/html; charset=", "text/html", ""),
        ("image/svg+xml", "image/svg+xml", ""),
        ("text", "", ""),
        ("a/b/c", "", ""),
        ("text/html; charset=" + "x" * 500, "text/html", "x" * 60),
    ],
)
def test_content_type(value: str, kind: str, encoding: str) -> None:
    assert (media_type(value), charset(value)) == (kind, encoding)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"<html>", True),
        (b"\xef\xbb\xbf\r\n\t <HTML lang=x>", True),
        (b"<!DOCTYPE HTML PUBLIC", True),
        (b"<!-- x --><p>", True),
        (b"<!--x", True),
        (b"<p>text", True),
        (b"<pre>", False),
        (b"<?xml version='1.0'?>\n<html xmlns='x'>", True),
        (b"<?xml version='1.0'?><svg>", False),
        (b"<base64>", False),
        (b"text <html>", False),
        (b"", False),
        (b"<html", False),
    ],
)
def test_sniffing(body: bytes, expected: bool) -> None:
    assert looks_like_html(body) is expected


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("5", 5.0),
        ("Thu, 01 Jan 1970 00:01:40 GMT", 0.0),
        ("Thu, 01 Jan 1970 00:03:00 -0000", 80.0),
        ("Thursday, 01-Jan-70 00:03:00 GMT", 80.0),
        ("-5", None),
        ("1.5", None),
        ("", None),
        ("٣", None),
        ("Thu, 99 Jan 1970 00:01:40 GMT", None),
        ("Thu, 01 Jan 99999 00:00:00 GMT", None),
    ],
)
def test_retry_after_values(value: str, seconds: float | None) -> None:
    assert retry_after_seconds(value, 100.0) == seconds


def test_who_we_are() -> None:
    assert user_agent("pavouk", "0.1.0", "https://example.org/bot") == "pavouk/0.1.0 (+https://example.org/bot)"
    assert user_agent("pavouk", "0.1.0", "") == "pavouk/0.1.0"
    assert "\n" not in user_agent("pavouk\r\nEvil: 1", "0.1.0", "x\ny")
    assert sender("bot@example.org") == "bot@example.org"
    assert sender("https://example.org/@bot") == ""
    assert sender("bot@example.org\r\nEvil: 1") == "bot@example.org  Evil: 1"


# --- sitemaps


@pytest.mark.parametrize("kind", [Kind.SITEMAP, Kind.GUESSED])
def test_a_sitemap_has_its_own_limit_and_any_type(client: Client, kind: Kind) -> None:
    body = b"x" * (SETTINGS.max_body_bytes + 1)
    client.canned.replies["/s"] = reply(body, Content_Type="application/xml; charset=latin-1")
    assert client.once("/s", HTML_ONLY).outcome is Outcome.UNWANTED
    assert client.once("/s").outcome is Outcome.TOO_LARGE
    result = client.once("/s", HTML_ONLY, kind=kind)
    assert (result.outcome, result.body, result.content_type, result.charset) == (
        Outcome.STORED, body, "application/xml", "latin-1"
    )  # fmt: skip


def test_an_endless_sitemap_is_cut_and_shows_that_there_is_more(client: Client) -> None:
    client.canned.replies["/s"] = endless(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n", b"x" * (1 << 20))
    result = client.once("/s", kind=Kind.SITEMAP)
    assert (result.outcome, len(result.body)) == (Outcome.STORED, MAX_BYTES + 1)


def test_a_sitemap_obeys_robots_txt_and_is_asked_for_only_if_it_has_changed(client: Client) -> None:
    client.canned.replies["/robots.txt"] = reply(b"User-agent: *\nDisallow: /closed")
    client.canned.replies["/s"] = reply(b"", "304 Not Modified")
    result, turns = client.whole(client.visit("/closed.xml", OBEDIENT, kind=Kind.SITEMAP))
    assert (result.outcome, turns) == (Outcome.DISALLOWED, 1)
    assert client.once("/s", OBEDIENT, kind=Kind.SITEMAP, etag='"1"').outcome is Outcome.UNCHANGED

"""RFC 9309: a table of rules written from its text, then the life of robots.txt of many hosts."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.robots import Robots, Verdict
from client.rules import MAX_BYTES, Rules
from client.transport import Headers, Response, TransportError
from common.clock import ManualClock
from common.wire import Outcome

HOST = "https://example.org"

# name, robots.txt (| is a line end), paths allowed, paths disallowed; the agent is Pavouk
RULES: list[tuple[str, str, str, str]] = [
    ("empty file", "", "/ /a", ""),
    ("no rule matches", "User-agent: *|Disallow: /a", "/ /b /robots.txt", "/a /ab /a/b /a?x"),
    ("everything", "User-agent: *|Disallow: /", "/robots.txt", "/ /a /robots.txt.bak /x/robots.txt"),
    ("empty disallow", "User-agent: *|Disallow:", "/ /a", ""),
    ("empty allow", "User-agent: *|Allow:|Disallow: /", "", "/a"),
    ("case of paths", "User-agent: *|Disallow: /Fish", "/fish /FISH", "/Fish /Fish/x"),
    ("case of fields", "uSeR-aGeNt: *|DISALLOW: /a", "/b", "/a"),
    # §2.2.1 the user-agent line
    ("own group", "User-agent: *|Disallow: /|User-agent: pavouk|Disallow: /a", "/ /b", "/a"),
    ("own group, first", "User-agent: pavouk|Disallow: /a|User-agent: *|Disallow: /", "/ /b", "/a"),
    ("any case", "User-agent: PAVOUK|Disallow: /a|User-agent: *|Disallow: /", "/b", "/a"),
    ("own group without rules", "User-agent: *|Disallow: /|User-agent: pavouk|Disallow:", "/ /a", ""),
    ("version", "User-agent: pavouk/2.0|Disallow: /a|User-agent: *|Disallow: /", "/b", "/a"),
    ("longer name", "User-agent: pavouk-news|Disallow: /", "/a", ""),
    ("longer name with digits", "User-agent: pavouk2|Disallow: /", "/a", ""),
    ("shorter name", "User-agent: pav|Disallow: /", "/a", ""),
    ("part of the name", "User-agent: ouk|Disallow: /", "/a", ""),
    ("another name", "User-agent: other|Disallow: /", "/a", ""),
    ("groups are combined",
     "User-agent: pavouk|Disallow: /a|User-agent: x|Disallow: /c|User-agent: Pavouk|Disallow: /b", "/c", "/a /b"),
    ("groups for all are combined", "User-agent: *|Disallow: /a|User-agent: *|Disallow: /b", "/c", "/a /b"),
    ("several agents, one group", "User-agent: x|User-agent: pavouk|User-agent: y|Disallow: /a", "/b", "/a"),
    ("agents with blank lines between", "User-agent: pavouk||# why|User-agent: y|Disallow: /a", "/b", "/a"),
    ("a rule ends the agents", "User-agent: x|Disallow: /a|User-agent: pavouk|Disallow: /b", "/a", "/b"),
    ("an empty rule ends the agents", "User-agent: x|Disallow:|User-agent: pavouk|Disallow: /b", "/a", "/b"),
    ("rules before any agent", "Disallow: /|User-agent: *|Disallow: /a", "/b", "/a"),
    ("agent without value", "User-agent:|Disallow: /", "/a", ""),
    # §2.2.2 the longest match counts; allow wins when equal
    ("longest match", "User-agent: *|Disallow: /a/|Allow: /a/b/|Disallow: /a/b/c", "/a/b/ /a/b/d", "/a/ /a/b/c"),
    ("order does not matter", "User-agent: *|Allow: /a/b|Disallow: /a|Allow: /", "/a/b /c", "/a/c"),
    ("equal rules", "User-agent: *|Disallow: /a|Allow: /a", "/a /ab", ""),
    ("equal octets", "User-agent: *|Disallow: /a/*|Allow: /a/b", "/a/b", "/a/c"),
    ("longest, with star", "User-agent: *|Allow: /page|Disallow: /*.html", "/page", "/page.html"),
    # §2.2.3 special characters
    ("star", "User-agent: *|Disallow: /a/*/c", "/a/c /a/b/d", "/a/b/c /a/b/x/c/d /a//c"),
    ("star at the end", "User-agent: *|Disallow: /a*", "/b", "/a /ab /a/b"),
    ("star at the beginning", "User-agent: *|Disallow: *.gif$", "/a.gifx /a.gif?x", "/a.gif /b/c.gif"),
    ("star matches nothing too", "User-agent: *|Disallow: /a*b", "/a", "/ab /axb"),
    ("several stars", "User-agent: *|Disallow: /*/x/*.php", "/x/a.php /a/x/b", "/a/x/b.php /a/b/x/c/d.php5"),
    ("end", "User-agent: *|Disallow: /a$", "/ab /a/ /a?x", "/a"),
    ("end, allowed", "User-agent: *|Disallow: /|Allow: /$", "/", "/a /?x"),
    ("end after star", "User-agent: *|Disallow: /*.php$", "/a.php5 /a.php?x /a.PHP", "/a.php /b/c.php"),
    ("end is no character", "User-agent: *|Disallow: /|Allow: /a$", "/a", "/a$ /a$b /a%24"),
    ("dollar inside", "User-agent: *|Disallow: /a$b", "/a /ab", "/a$b /a%24bc"),
    ("escaped dollar", "User-agent: *|Disallow: /a%24", "/a /ab", "/a$ /a%24b /a$b"),
    ("escaped star", "User-agent: *|Disallow: /file-with-a-%2A.html", "/file-with-a-x.html", "/file-with-a-*.html"),
    ("comment", "User-agent: * # all|Disallow: /a # this|#Disallow: /b", "/b", "/a"),
    ("escaped hash", "User-agent: *|Disallow: /a%23b", "/a /ab", "/a%23b"),
    # §2.2.2 encoding
    ("table, row 1", "User-agent: *|Disallow: /foo/bar?baz=quz", "/foo/bar", "/foo/bar?baz=quz"),
    ("table, row 2", "User-agent: *|Disallow: /foo/bar?baz=https://foo.bar", "/foo/bar?baz=https",
     "/foo/bar?baz=https://foo.bar /foo/bar?baz=https%3A%2F%2Ffoo.bar"),
    ("table, row 3", "User-agent: *|Disallow: /foo/bar/\u30c4", "/foo/bar/", "/foo/bar/%E3%83%84"),
    ("table, row 4", "User-agent: *|Disallow: /foo/bar/%E3%83%84", "/foo/bar/%E3", "/foo/bar/%e3%83%84x"),
    ("table, row 5", "User-agent: *|Disallow: /foo/bar/%62%61%7A", "/foo/bar/", "/foo/bar/baz /foo/bar/%62az"),
    ("escaped slash in the path", "User-agent: *|Disallow: /a%2Fb", "/a/b", "/a%2fb /a%2Fbc"),
    ("lower and upper case escapes", "User-agent: *|Disallow: /%c3%A9", "/%C3%A8", "/%C3%A9 /%c3%a9"),
    ("octets that are no UTF-8", "User-agent: *|Disallow: /caf%E9", "/caf%E8 /caf%C3%A9", "/caf%E9 /caf%e9x"),
    ("blank in a path", "User-agent: *|Disallow: /a b", "/a /ab", "/a%20b"),
    ("query", "User-agent: *|Disallow: /*?", "/a", "/a?b /?"),
    ("double slash", "User-agent: *|Disallow: //a", "/a", "//a //a/b"),
    # §2.2.4 other records
    ("sitemap ends no group", "User-agent: pavouk|Sitemap: /s.xml|User-agent: y|Disallow: /a", "/b", "/a"),
    ("sitemap between rules", "User-agent: *|Disallow: /a|Sitemap: /s.xml|Disallow: /b", "/c", "/a /b"),
    ("unknown record", "User-agent: pavouk|Noindex: /x|User-agent: y|Disallow: /a|Host: z|Disallow: /b", "/x",
     "/a /b"),
    ("crawl-delay ends no group", "User-agent: pavouk|Crawl-delay: 5|User-agent: y|Disallow: /a", "/b", "/a"),
    ("crawl-delay after rules", "User-agent: *|Disallow: /a|Crawl-delay: 5|User-agent: y|Disallow: /", "/b", "/a"),
    # §2.2, §2.3.1.5: parse what can be parsed
    ("junk lines", "hello|<html>|User-agent: *|:::|\x00\x01|Disallow: /a|=", "/b", "/a"),
    ("blanks around", "  User-agent :  *  |\tDisallow\t:\t/a\t", "/b", "/a"),
    ("no colon", "User-agent *|Disallow /a", "/b", "/a"),
    ("misspelt", "Useragent: *|Dissallow: /a|Disalow: /b|Diasllow: /c", "/d", "/a /b /c"),
    ("page instead of rules", "<!doctype html><title>User-agent: *</title>|<p>Disallow: /</p>", "/ /a", ""),
    ("index is not the folder", "User-agent: *|Disallow: /|Allow: /index.html", "/index.html", "/ /a/"),
    ("index in folders", "User-agent: *|Disallow: /a|Allow: /*/index.html", "/a/index.html /a/index.html/b/", "/a/"),
    ("no path", "User-agent: *|Disallow: a", "/a", ""),
    ("form feed is no line end", "User-agent: *|Disallow: /a\x0cDisallow: /b", "/b", "/a%0CDisallow:%20/b"),
]  # fmt: skip


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
@pytest.mark.parametrize(("text", "allowed", "disallowed"), [row[1:] for row in RULES], ids=[row[0] for row in RULES])
def test_rules(text: str, allowed: str, disallowed: str, line_end: str) -> None:
    rules = Rules(text.replace("|", line_end).encode(), "Pavouk")
    assert [path for path in allowed.split() if not rules.allows(HOST + path)] == []
    assert [path for path in disallowed.split() if rules.allows(HOST + path)] == []


# What editors and web pages leave at the edge of a line, and nobody sees.
UNSEEN = {
    "no-break space": "\u00a0", "en space": "\u2002", "ideographic space": "\u3000", "narrow space": "\u202f",
    "zero-width space": "\u200b", "zero-width joiner": "\u200d", "word joiner": "\u2060", "mark": "\ufeff",
    "left to right": "\u200e", "isolate": "\u2069", "soft hyphen": "\u00ad", "line separator": "\u2028",
    "next line": "\u0085", "form feed": "\x0c", "NUL": "\x00", "several": "\u00a0\t\u200b \ufeff",
}  # fmt: skip


@pytest.mark.parametrize("name", UNSEEN)
def test_what_nobody_sees_at_the_edges_does_not_count(name: str) -> None:
    edge = UNSEEN[name]
    lines = ("User-agent: other", "Disallow: /", "User-agent: *", "Disallow: /x", "User-agent: pavouk",
             "Crawl-delay: 5", "Disallow: /a", "Disallow: /b$", "Allow: /a/open", "Sitemap: /s.xml")  # fmt: skip
    for around in ("{edge}{key}:{value}", "{key}{edge}:{value}", "{key}:{edge}{value}", "{key}:{value}{edge}"):
        pairs = (line.partition(": ") for line in lines)
        file = "\n".join(around.format(edge=edge, key=key, value=value) for key, _, value in pairs)
        rules = Rules(file.encode(), "pavouk")
        asked = [path for path in ("/x", "/a", "/ab", "/b", "/bb", "/a/open") if rules.allows(HOST + path)]
        assert asked == ["/x", "/bb", "/a/open"], around
        assert rules.crawl_delay == 5.0
        assert rules.sitemaps == ("/s.xml",)
        everyone = f"User-agent:{edge}*{edge}# all\nDisallow: /a{edge}# this"
        assert not Rules(everyone.encode(), "pavouk").allows(HOST + "/a")


def test_no_break_space_of_another_encoding() -> None:
    rules = Rules(b"User-agent: *\xa0\r\nDisallow: /a\xa0\r\nDisallow: /caf\xc3\xa0\r\n", "pavouk")
    assert not rules.allows(HOST + "/a")
    assert rules.allows(HOST + "/caf%C3"), "the same octet as the end of a character"
    assert not rules.allows(HOST + "/caf%C3%A0")


def test_what_nobody_sees_counts_inside_of_a_value() -> None:
    rules = Rules("User-agent: *\nDisallow: /a\u00a0b\nDisallow: /c\u200bd\n".encode(), "pavouk")
    assert not rules.allows(HOST + "/a%C2%A0b")
    assert not rules.allows(HOST + "/c%E2%80%8Bd")
    assert rules.allows(HOST + "/a")
    assert rules.allows(HOST + "/ab")


def test_example_of_the_rfc() -> None:
    """RFC 9309 §5.1."""
    text = (
        b"User-Agent: *\nDisallow: *.gif$\nDisallow: /example/\nAllow: /publications/\n\n"
        b"User-Agent: foobot\nDisallow:/\nAllow:/example/page.html\nAllow:/example/allowed.gif\n\n"
        b"User-Agent: barbot\nUser-Agent: bazbot\nDisallow: /example/page.html\n\nUser-Agent: quxbot\n"
    )
    expected = {
        "foobot": ["/example/page.html", "/example/allowed.gif"],
        "barbot": ["/", "/a.gif", "/example/", "/example/allowed.gif", "/publications/x"],
        "quxbot": ["/", "/a.gif", "/example/", "/example/page.html", "/example/allowed.gif", "/publications/x"],
        "other": ["/", "/publications/x"],
    }
    paths = expected["quxbot"]
    found = {agent: [path for path in paths if Rules(text, agent).allows(HOST + path)] for agent in expected}
    assert found == expected


def test_longest_match_example() -> None:
    """RFC 9309 §5.2."""
    text = b"User-Agent: foobot\nAllow: /example/page/\nDisallow: /example/page/disallowed.gif\n"
    rules = Rules(text, "foobot")
    assert rules.allows(HOST + "/example/page/x")
    assert not rules.allows(HOST + "/example/page/disallowed.gif")


def test_bom_and_invalid_bytes() -> None:
    rules = Rules(b"\xef\xbb\xbfUser-agent: *\nDisallow: /\xff\nDisallow: /a\n\xfe\xff", "pavouk")
    assert not rules.allows(HOST + "/a")
    assert not rules.allows(HOST + "/%FF")
    assert rules.allows(HOST + "/%FE")


def test_size() -> None:
    filler = b"#" + b"x" * 98 + b"\n"
    head = b"User-agent: *\n" + filler * 5100  # 510,000 bytes
    assert not Rules(head + b"Disallow: /a\n", "pavouk").allows(HOST + "/a")
    cut = b"User-agent: *\nDisallow: /first\n"
    cut += b"#" * (MAX_BYTES - len(cut) - 12) + b"\nDisallow: /a-long-path\n"
    rules = Rules(cut, "pavouk")
    assert rules.allows(HOST + "/a")  # half a rule would disallow it
    assert not rules.allows(HOST + "/first")


@pytest.mark.parametrize(
    ("text", "delay"),
    [
        ("", None),
        ("User-agent: *\nCrawl-delay: 2.5", 2.5),
        ("User-agent: *\nCrawl-delay: 2\nUser-agent: pavouk\nDisallow:\nCrawl-delay: 7", 7.0),
        ("User-agent: *\nCrawl-delay: 2\nDisallow:\nUser-agent: pavouk\nDisallow:", None),
        ("User-agent: other\nCrawl-delay: 2", None),
        ("User-agent: *\nCrawl-delay: soon", None),
        ("User-agent: *\nCrawl-delay: -1", None),
        ("User-agent: *\nCrawl-delay: inf", None),
        ("User-agent: *\nCrawl-delay: nan", None),
    ],
)
def test_crawl_delay_of_rules(text: str, delay: float | None) -> None:
    assert Rules(text.encode(), "pavouk").crawl_delay == delay


# The cache


class Web:
    """Robots with a clock, and short ways to answer."""

    def __init__(self, **options: float) -> None:
        self.clock = ManualClock()
        self.robots = Robots("pavouk", self.clock, **options)  # type: ignore[arg-type]

    def verdict(self, path: str = "/a", origin: str = HOST) -> Verdict:
        return self.robots.verdict(origin + path)

    def answer(self, status: int, body: bytes = b"", location: str = "", origin: str = HOST) -> str:
        """Claim, answer, and return what was to be requested."""
        url = self.robots.claim(origin)
        assert url is not None
        headers = Headers([("Location", location)] if location else [])
        self.robots.answer(origin, Response(status, headers, body, "192.0.2.1", 0.1))
        return url

    def fail(self, outcome: Outcome = Outcome.TIMEOUT) -> None:
        assert self.robots.claim(HOST) is not None
        self.robots.answer(HOST, TransportError(outcome, "the reason"))


SOME = b"User-agent: *\nDisallow: /a\nCrawl-delay: 500\nSitemap: /s.xml\nSitemap: http://x y/\nSitemap: //h/s"


def test_from_unknown_to_known() -> None:
    web = Web(max_crawl_delay_seconds=30.0)
    assert web.verdict() == Verdict.UNKNOWN
    assert web.robots.crawl_delay(HOST) is None
    assert web.robots.sitemaps(HOST) is None
    assert web.robots.claim(HOST) == f"{HOST}/robots.txt"
    assert web.verdict() == Verdict.PENDING
    assert web.robots.claim(HOST) is None
    web.robots.answer(HOST, Response(200, Headers(), SOME, "192.0.2.1", 0.1))
    assert (web.verdict("/a"), web.verdict("/b")) == (Verdict.DISALLOWED, Verdict.ALLOWED)
    assert web.verdict("/robots.txt") == Verdict.ALLOWED
    assert web.robots.claim(HOST) is None
    assert web.robots.crawl_delay(HOST) == 30.0
    assert web.robots.sitemaps(HOST) == (f"{HOST}/s.xml", "https://h/s")


def test_origins_are_apart() -> None:
    web = Web()
    web.answer(200, SOME)
    assert web.verdict(origin="http://example.org") == Verdict.UNKNOWN
    assert web.verdict(origin="https://example.org:8443") == Verdict.UNKNOWN


def test_asked_again_after_a_day() -> None:
    web = Web()
    web.answer(200, SOME)
    web.clock.advance(86_399)
    assert web.verdict() == Verdict.DISALLOWED
    web.clock.advance(1)
    assert web.verdict() == Verdict.UNKNOWN
    web.answer(200, b"")
    assert web.verdict() == Verdict.ALLOWED


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 418, 451, 499])
def test_client_errors_allow_everything(status: int) -> None:
    web = Web()
    web.answer(status, b"User-agent: *\nDisallow: /")
    assert web.verdict() == Verdict.ALLOWED


@pytest.mark.parametrize("status", [500, 502, 503, 504, 599, 429, 999, 199])
def test_server_errors_disallow_everything(status: int) -> None:
    web = Web()
    web.answer(status, b"User-agent: *\nAllow: /")
    assert web.verdict() == Verdict.UNREACHABLE
    assert web.robots.trouble(HOST) == (Outcome.ROBOTS_UNREACHABLE, f"robots.txt: status {status}")


def test_unreachable() -> None:
    web = Web()
    web.fail(Outcome.DNS)
    assert web.verdict() == Verdict.UNREACHABLE
    assert web.robots.trouble(HOST) == (Outcome.DNS, "robots.txt: the reason")


def test_trouble_elsewhere_says_nothing_of_the_host() -> None:
    web = Web()
    web.answer(301, location="http://other.example/robots.txt")
    web.fail(Outcome.DNS)
    assert web.robots.trouble(HOST) == (Outcome.ROBOTS_UNREACHABLE, "robots.txt: the reason")


def test_unreachable_is_asked_again_after_growing_waits() -> None:
    web = Web()
    waits = []
    for _ in range(9):
        web.fail()
        waited = 0
        while web.verdict() == Verdict.UNREACHABLE:
            assert web.robots.claim(HOST) is None
            web.clock.advance(30)
            waited += 30
        waits.append(waited)
    assert waits == [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]
    web.answer(200, SOME)
    assert web.verdict("/b") == Verdict.ALLOWED
    web.clock.advance(86_400)
    web.fail()
    web.clock.advance(60)
    assert web.robots.claim(HOST) is not None  # the waits start anew


def test_last_good_copy_serves_while_unreachable() -> None:
    web = Web()
    web.answer(200, SOME)
    web.clock.advance(90_000)
    web.answer(503)
    assert (web.verdict("/a"), web.verdict("/b")) == (Verdict.DISALLOWED, Verdict.ALLOWED)
    web.clock.advance(200_000)
    web.fail()
    assert (web.verdict("/a"), web.verdict("/b")) == (Verdict.DISALLOWED, Verdict.ALLOWED)


def test_redirects_lead_anywhere_and_count_for_the_first_origin() -> None:
    web = Web()
    assert web.answer(301, location="https://www.example.org/robots.txt") == f"{HOST}/robots.txt"
    assert web.verdict() == Verdict.UNKNOWN
    assert web.answer(302, location="/other.txt") == "https://www.example.org/robots.txt"
    assert web.answer(200, SOME) == "https://www.example.org/other.txt"
    assert web.verdict("/a") == Verdict.DISALLOWED
    assert web.verdict("/a", "https://www.example.org") == Verdict.UNKNOWN


@pytest.mark.parametrize(("redirects", "verdict"), [(5, Verdict.DISALLOWED), (6, Verdict.ALLOWED)])
def test_five_redirects(redirects: int, verdict: Verdict) -> None:
    web = Web()
    for number in range(redirects):
        web.answer(307, location=f"/{number}")
    if redirects <= 5:
        web.answer(200, SOME)
    assert web.verdict("/a") == verdict
    assert web.robots.claim(HOST) is None


@pytest.mark.parametrize("location", ["", "file:///etc/passwd", "http://[", "mailto:a@b"])
def test_redirect_without_a_target(location: str) -> None:
    web = Web()
    web.answer(301, location=location)
    assert web.verdict() == Verdict.ALLOWED


def test_trouble_on_the_way_starts_over() -> None:
    web = Web()
    web.answer(301, location="/hop")
    web.fail()
    web.clock.advance(60)
    assert web.robots.claim(HOST) == f"{HOST}/robots.txt"


def test_claim_that_is_never_answered() -> None:
    web = Web()
    web.robots.claim(HOST)
    web.clock.advance(899)
    assert web.verdict() == Verdict.PENDING
    web.clock.advance(1)
    assert web.verdict() == Verdict.UNKNOWN
    assert web.robots.claim(HOST) == f"{HOST}/robots.txt"


def test_cache_is_bounded_and_drops_what_was_not_used() -> None:
    web = Web(max_hosts=3)
    for name in "abc":
        web.answer(200, SOME, origin=f"http://{name}")
    assert web.verdict(origin="http://a") == Verdict.DISALLOWED
    web.answer(200, SOME, origin="http://d")
    verdicts = {name: web.verdict(origin=f"http://{name}") for name in "abcd"}
    known = Verdict.DISALLOWED
    assert verdicts == {"a": known, "b": Verdict.UNKNOWN, "c": known, "d": known}


def test_cache_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("client.robots._MAX_WEIGHT", 80_000)
    web = Web()
    large = b"User-agent: *\n" + b"".join(b"Disallow: /a%d\n" % number for number in range(3000))
    for name in "abc":
        web.answer(200, large, origin=f"http://{name}")
    assert [web.verdict(origin=f"http://{name}") for name in "ab"] == [Verdict.UNKNOWN] * 2
    assert web.verdict("/a5", origin="http://c") == Verdict.DISALLOWED


def test_one_of_many_threads_gets_the_claim() -> None:
    web = Web()
    barrier = threading.Barrier(16)
    claims: list[str] = []

    def race() -> None:
        barrier.wait()
        if url := web.robots.claim(HOST):
            claims.append(url)

    threads = [threading.Thread(target=race) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert claims == [f"{HOST}/robots.txt"]


LINES = st.sampled_from([b"User-agent: *\n", b"Disallow: /", b"Allow: ", b"\r", b"$", b"*", b"%", b"%E9", b"?", b"#"])
PATHS = st.text("/abc%2fE9$*?&=.~\\'\"", max_size=30)


@given(st.lists(LINES | st.binary(max_size=8)).map(b"".join), PATHS)
def test_nothing_in_a_file_or_a_path_is_an_error(content: bytes, path: str) -> None:
    rules = Rules(content, "pavouk")
    assert rules.allows(f"{HOST}/{path}") in (True, False)


@given(PATHS)
def test_a_path_disallows_itself_and_what_it_begins(path: str) -> None:
    pattern = "/" + path.replace("*", "%2A").rstrip("$%")
    rules = Rules(f"User-agent: *\nDisallow: {pattern}".encode(), "pavouk")
    assert not rules.allows(f"{HOST}{pattern}")
    assert not rules.allows(f"{HOST}{pattern}/x")

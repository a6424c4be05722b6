"""Addresses and identities: their properties. The cases of the specifications are in test_url_cases."""

import re
import time
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from common import urls

IDENTITIES = [
    ("http://example.org/index.html", "http://example.org/"),
    ("http://example.org/a/index.htm?x=1", "http://example.org/a/?x=1"),
    ("http://example.org/default.aspx", "http://example.org/"),
    ("http://example.org/index.html/a", "http://example.org/index.html/a"),
    ("http://example.org/my-index.html", "http://example.org/my-index.html"),
    ("http://example.org/?x=/index.html", "http://example.org/?x=/index.html"),
    *((f"http://example.org/a/{name}", "http://example.org/a/") for name in (
        "Index.HTML", "INDEX.htm", "Default.aspx", "DEFAULT.ASP", "default.html", "Default.htm", "index.asp",
        "index.aspx", "index.jsp", "index.shtml", "index.shtm", "index.xhtml", "index.php3", "index.phtml", "index.cfm",
        "index.cgi", "index.pl", "index.jhtml", "index.do", "default.jsp", "Default.cfm", "%49ndex.html",
    )),
    ("http://example.org/A/Index.Html?X=Y", "http://example.org/A/?X=Y"),
    *((address, address) for address in (
        "http://example.org/A/INDEX", "http://example.org/index.xml", "http://example.org/index.json",
        "http://example.org/index.html.en", "http://example.org/index.php/a", "http://example.org/Index.html5",
        "http://example.org/indexXhtml", "http://example.org/default.css", "http://example.org/home.html",
        "http://example.org/Default.aspx.bak?x=/Default.aspx", "http://example.org/genindex.html",
    )),
    ("http://example.org/%7Ea", "http://example.org/~a"),
    ("http://example.org/a%2fb", "http://example.org/a%2Fb"),
    ("http://example.org/A", "http://example.org/A"),
]

_CRAWLABLE = re.compile(r"https?://[^\x00-\x20\x7f-\U0010ffff#/@?\\]+/[^\x00-\x20\x7f-\U0010ffff#]*")

_ODD_HOSTS = ["a.cz", "xn--bcher-kva.example", "127.0.0.1", "[::1]", "a_b.cz", "a.cz.", "x--y.cz", "-a.cz", "A.CZ"]
_hosts = st.sampled_from(_ODD_HOSTS) | st.text("abz09-._", min_size=1, max_size=12)
_ports = st.sampled_from(["", ":80", ":443", ":8080", ":1"])
_words = st.text("aZ0-._~%2e7EfF!$&'()*+,;=:@ /\\č<>\"|^[]{}", max_size=12)
_names = st.sampled_from(
    ["", "index.html", "index.htm", "index.php", "default.asp", "Index.html", "DEFAULT.HTM", "index.html.bak"]
)
_queries = st.just("") | st.builds("?{}".format, st.text("ab=&%2526+;?/č '\"[]", max_size=12))


@st.composite
def references(draw: st.DrawFn) -> str:
    """URLs that are nearly right, in the ways that matter to normalisation."""
    scheme = draw(st.sampled_from(["http://", "https://", "HTTP://", "//", ""]))
    path = "/".join(draw(st.lists(_words, max_size=4)))
    tail = f"{draw(_names)}{draw(_queries)}" + draw(st.sampled_from(["", "#x"]))
    return f"{scheme}{draw(_hosts)}{draw(_ports)}/{path}/{tail}"


# What the shortcut lets through, as far as browsers would leave it so.
canonical = st.from_regex(urls._CANONICAL, fullmatch=True).filter(lambda text: urls.resolve(text) == text)
addresses = references().map(lambda reference: urls.resolve(reference, "http://a.cz/b/c")).filter(bool)


def test_a_reference_without_base_must_be_absolute() -> None:
    assert urls.resolve("example.org/a") is None
    assert urls.resolve("http://example.org/a") == "http://example.org/a"
    assert urls.resolve("a", "not a base") is None


@given(references() | st.text(max_size=60), st.none() | references() | st.text(max_size=20))
@example("http://a\ud800b/", None)
@example("\x00", "http://a/")
def test_resolve_never_raises_and_gives_crawlable_addresses(reference: str, base: str | None) -> None:
    address = urls.resolve(reference, base)
    if address is not None:
        assert _CRAWLABLE.fullmatch(address)
        assert len(address) <= urls.MAX_URL_LENGTH


HAN = "".join(map(chr, range(0x4E00, 0x4E00 + 3_900)))
ESCAPED_HAN = "".join(f"%{octet:02x}" for octet in HAN[:1_000].encode())


@pytest.mark.parametrize("reference", [
    f"http://{HAN}/", f"//{HAN}", f"\\\\{HAN}", f"https:{HAN}", f"ht\ntp:/\t/{HAN[:2_000]}\n{HAN[2_000:]}?x#y", f" \0HTTP://u@{HAN}:80/",
    f"http://{ESCAPED_HAN}/", f"http://www.{HAN}.org/", f"file://{HAN}/", f"http://a.org@{HAN}", f"///{HAN}",
])  # fmt: skip
def test_a_name_of_any_length_is_refused_at_once(reference: str) -> None:
    """To look at one that is not ASCII takes the square of its length."""
    before = time.thread_time()
    for _ in range(10):
        assert urls.resolve(reference, "http://a.org/") is None
    assert time.thread_time() - before < 0.05


@pytest.mark.parametrize(("reference", "address"), [
    (f"#{HAN}", "http://a.org/"),
    (f"http://b.org/#{HAN}", "http://b.org/"),
    (f"http://{HAN[:1_000]}@b.org/", "http://b.org/"),
    (f"{HAN[:1_000]}/../x", "http://a.org/x"),
    (f"http:{'x' * 600}č", f"http://a.org/{'x' * 600}%C4%8D"),
    (f"http:/{'x' * 600}č", f"http://a.org/{'x' * 600}%C4%8D"),
    (f"/{'x' * 600}č", f"http://a.org/{'x' * 600}%C4%8D"),
])
def test_what_is_long_and_yet_an_address(reference: str, address: str) -> None:
    assert urls.resolve(reference, "http://a.org/") == address


def test_a_name_with_accents_apart_may_be_as_long_as_with_them() -> None:
    names = ".".join(["ệ" * 55] * 3)
    address = urls.resolve(f"http://{names}/")
    assert address is not None
    assert urls.resolve(f"http://{unicodedata.normalize('NFD', names)}/") == address


@given(addresses)
def test_resolve_is_idempotent(address: str) -> None:
    assert urls.resolve(address) == address
    assert urls.resolve(address, "https://other.example/x/y?z") == address


@given(addresses | canonical)
@example("http://a.cz/a//b/")
@example("http://a.cz/?a&b=&=c&&")
@example("http://a.cz/%7ea")
@example("http://xn--a.cz/")
@example(f"http://{'a' * 64}.cz/")
def test_the_short_way_to_an_identity_equals_the_long_way(address: str) -> None:
    assert urls.identity(address, drop_index=False) == urls.normalized(address)


plain = st.from_regex(urls._PLAIN, fullmatch=True)


@given(plain | addresses | canonical | references())
@example("http://a.cz/.")
@example("http://a.cz/x/..")
@example("http://a.cz/%2e/")
@example("http://0x7f.1/")
@example("http://a.0x1/")
@example("http://1.2.3.a/")
@example(f"http://{'a' * 64}.cz/")
@example(f"http://{'a.' * 140}cz/")
@example("http://xn--a.cz/")
@example("http://a.cz/" + "x" * 2000)
def test_what_is_taken_for_an_address_is_one(url: str) -> None:
    if urls.is_plain_address(url):
        assert urls.resolve(url) == url
        assert urls.identity(url, drop_index=False) == urls.normalized(url) == url


@pytest.mark.parametrize(
    "url", ["http://example.org/", "https://www.a-b.example.org/a/b.html?x=1&y=2", "http://1.2.example/~u/(1);v=2"]
)
def test_most_addresses_are_taken_for_one_at_once(url: str) -> None:
    assert urls.is_plain_address(url)


@given(addresses | canonical, st.booleans())
def test_identity_is_idempotent(address: str, drop_index: bool) -> None:
    once = urls.identity(address, drop_index)
    assert urls.identity(once, drop_index) == once
    assert re.fullmatch("[!-~]+", once), "a bundle may have no other"


@given(addresses)
def test_dropping_index_names_only_shortens(address: str) -> None:
    whole = urls.identity(address, drop_index=False)
    dropped = urls.identity(address)
    if dropped != whole:
        before, _, query = dropped.partition("?")
        assert before.endswith("/")
        assert whole.startswith(before)
        assert whole.endswith(query)


@pytest.mark.parametrize(("address", "expected"), IDENTITIES)
def test_identities(address: str, expected: str) -> None:
    assert urls.identity(address) == expected


def test_identities_of_older_crawls() -> None:
    for name in ("index.html", "index.htm", "index.php", "default.asp", "default.aspx"):
        assert urls.identity(f"http://example.org/{name}?x", few_index_names=True) == "http://example.org/?x"
    for name in ("Index.html", "default.html", "index.jsp", "index.shtml"):
        address = f"http://example.org/{name}"
        assert urls.identity(address, few_index_names=True) == address
        assert urls.identity(address, drop_index=False) == address


@pytest.mark.parametrize(
    "address",
    [
        "http://example.org/",
        "https://example.org:8080/a/b.html?x=1&y=2",
        "http://a.b.c/~user/(1)/x;y=z",
        "http://127.0.0.1:81/a",
    ],
)
def test_canonical_addresses_take_the_short_way(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(urls, "normalized", lambda _: pytest.fail("the long way"))
    assert urls.identity(address) == address


@pytest.mark.parametrize(
    ("address", "host", "origin", "path"),
    [
        ("http://example.org/", "example.org", "http://example.org", "/"),
        ("https://example.org:8443/a?b=/c", "example.org:8443", "https://example.org:8443", "/a?b=/c"),
        ("http://example.org./a", "example.org", "http://example.org.", "/a"),
        ("http://example.org.:81/a", "example.org:81", "http://example.org.:81", "/a"),
        ("http://[::1]:8080/x", "[::1]:8080", "http://[::1]:8080", "/x"),
    ],
)
def test_parts(address: str, host: str, origin: str, path: str) -> None:
    assert (urls.host_of(address), urls.origin_of(address), urls.path_of(address)) == (host, origin, path)


def test_digest_is_sha1() -> None:
    assert urls.digest("http://example.org/").hex() == "bbf5caaf2e8efeeaf919e0d84a683f4b4d8a2c15"


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("example.org", "http://example.org/"),
        ("example.org:8080/a", "http://example.org:8080/a"),
        ("[::1]/a", "http://[::1]/a"),
        ("[::1]:8080", "http://[::1]:8080/"),
        ("https://example.org", "https://example.org/"),
        ("htp:/x", None),
        ("http:example.org", None),
        ("mailto:me@example.org", None),
        ("me@example.org", None),
        ("ftp://example.org/", None),
        (" example.org/\u00a0\n", "http://example.org/"),
        ("http://example.org/\tlabel", None),
        ("http://example.org/\rhttp://example.net/", None),
        ("http://example.org/ http://example.net/", None),
        ("exam\x1fple.org", None),
        ("example.org/a\u3000b", None),
        ("example.org/%20%0a", "http://example.org/%20%0a"),
    ],
)
def test_typed(text: str, address: str | None) -> None:
    assert urls.typed(text) == address


HEX = "0123456789abcdef0123456789ABCDEF"
SESSIONS = [
    # address, the same page without a session
    (f"http://a.cz/x;jsessionid={HEX}", "http://a.cz/x"),
    (f"http://a.cz/x.jsp;JSESSIONID={HEX}.node1?y=1", "http://a.cz/x.jsp?y=1"),
    (f"http://a.cz/x;v=1;jsessionid={HEX}/y;w=2", "http://a.cz/x;v=1/y;w=2"),
    (f"http://a.cz/index.html;jsessionid={HEX}", "http://a.cz/"),
    (f"http://a.cz/a/;jsessionid={HEX}/b", "http://a.cz/a/b"),
    (f"http://a.cz/?PHPSESSID={HEX}", "http://a.cz/"),
    (f"http://a.cz/index.php?x=1&PHPSESSID={HEX}&y=2", "http://a.cz/?x=1&y=2"),
    ("http://a.cz/?phpsessid=short", "http://a.cz/"),
    (f"http://a.cz/?jsessionid={HEX}&x", "http://a.cz/?x"),
    ("http://a.cz/a.asp?ASPSESSIONIDABCDEFGH=ABCDEFGHIJKLMNOPQRSTUVWX", "http://a.cz/a.asp"),
    ("http://a.cz/(S(lit3py55t21z5v55vlm25s55))/a.aspx", "http://a.cz/a.aspx"),
    (f"http://a.cz/forum?s={HEX}&t=7", "http://a.cz/forum?t=7"),
    (f"http://a.cz/shop?osCsid={HEX}&id=3", "http://a.cz/shop?id=3"),
    (f"http://a.cz/?sid={HEX}", "http://a.cz/"),
    (f"http://a.cz/?session_id={HEX}&sessionId={HEX}", "http://a.cz/"),
]
NO_SESSIONS = [
    "http://a.cz/?sid=7", "http://a.cz/?sid=introduction-to-the-history-of-art", f"http://a.cz/?id={HEX}",
    "http://a.cz/?s=search+words", "http://a.cz/session/12", "http://a.cz/?session=day-2", f"http://a.cz/{HEX}",
    "http://a.cz/;x=jsessionid", "http://a.cz/(S(x))/", "http://a.cz/?sid=12345678901234567890123456789012",
    "http://a.cz/?sid=abcdefghijklmnopqrstuvwxyzabcdef", "http://a.cz/?q=PHPSESSID", f"http://a.cz/?aside={HEX}",
]  # fmt: skip


@pytest.mark.parametrize(("address", "expected"), SESSIONS)
def test_session_ids_are_no_part_of_an_identity(address: str, expected: str) -> None:
    assert urls.resolve(address) == address, "what is requested keeps it"
    assert urls.identity(address) == expected
    assert urls.identity(expected) == expected


@pytest.mark.parametrize("address", NO_SESSIONS)
def test_what_only_looks_like_a_session_id_is_kept(address: str) -> None:
    assert urls.identity(address) == address


PIECES = ["index.php", f";jsessionid={HEX}", "(S(lit3py55t21z5v55vlm25s55))", f"sid={HEX}", "PHPSESSID=", "x=1"]


@given(st.lists(st.sampled_from([*PIECES, *"/?&.;"]), max_size=12))
@example(["(S(lit3py55t21z5v55vlm25s55))", f";jsessionid={HEX}", "/"])
def test_identity_with_sessions_is_idempotent(pieces: list[str]) -> None:
    address = urls.resolve("http://a.cz/" + "".join(pieces))
    if address is not None:
        once = urls.identity(address)
        assert urls.identity(once) == once

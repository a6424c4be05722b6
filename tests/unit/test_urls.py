"""Addresses and identities: tables from RFC 3986 and the URL standard, and properties of both."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from common import urls

BASE = "http://a/b/c/d;p?q"

# RFC 3986 section 5.4.1 and 5.4.2, with the fragments dropped; http and https only.
RFC_3986 = [
    ("g:h", None),
    ("g", "http://a/b/c/g"),
    ("./g", "http://a/b/c/g"),
    ("g/", "http://a/b/c/g/"),
    ("/g", "http://a/g"),
    ("//g", "http://g/"),
    ("?y", "http://a/b/c/d;p?y"),
    ("g?y", "http://a/b/c/g?y"),
    ("#s", "http://a/b/c/d;p?q"),
    ("g#s", "http://a/b/c/g"),
    ("g?y#s", "http://a/b/c/g?y"),
    (";x", "http://a/b/c/;x"),
    ("g;x", "http://a/b/c/g;x"),
    ("g;x?y#s", "http://a/b/c/g;x?y"),
    ("", "http://a/b/c/d;p?q"),
    (".", "http://a/b/c/"),
    ("./", "http://a/b/c/"),
    ("..", "http://a/b/"),
    ("../", "http://a/b/"),
    ("../g", "http://a/b/g"),
    ("../..", "http://a/"),
    ("../../", "http://a/"),
    ("../../g", "http://a/g"),
    ("../../../g", "http://a/g"),
    ("../../../../g", "http://a/g"),
    ("/./g", "http://a/g"),
    ("/../g", "http://a/g"),
    ("g.", "http://a/b/c/g."),
    (".g", "http://a/b/c/.g"),
    ("g..", "http://a/b/c/g.."),
    ("..g", "http://a/b/c/..g"),
    ("./../g", "http://a/b/g"),
    ("./g/.", "http://a/b/c/g/"),
    ("g/./h", "http://a/b/c/g/h"),
    ("g/../h", "http://a/b/c/h"),
    ("g;x=1/./y", "http://a/b/c/g;x=1/y"),
    ("g;x=1/../y", "http://a/b/c/y"),
    ("g?y/./x", "http://a/b/c/g?y/./x"),
    ("g?y/../x", "http://a/b/c/g?y/../x"),
    ("g#s/./x", "http://a/b/c/g"),
    ("http:g", "http://a/b/c/g"),  # section 5.4.2 leaves both open; browsers resolve it as relative
]

# The URL standard: what browsers make of untidy input.
WHATWG = [
    ("  http://Example.ORG  ", "http://example.org/"),
    ("HTTP://EXAMPLE.ORG:80/A", "http://example.org/A"),
    ("https://example.org:443/", "https://example.org/"),
    ("https://example.org:80/", "https://example.org:80/"),
    ("http:\\\\example.org\\a\\b", "http://example.org/a/b"),
    ("http:example.org", "http://a/b/c/example.org"),
    ("https:example.org", "https://example.org/"),
    ("http:///example.org///a", "http://example.org///a"),
    ("//example.org\\@evil.org/", "http://example.org/@evil.org/"),
    ("http://user:secret@example.org/x", "http://example.org/x"),
    ("http://user@example.org:8080/x@y", "http://example.org:8080/x@y"),
    ("http://a@b@example.org/", "http://example.org/"),
    ("ex\nam\tple.ht\rml", "http://a/b/c/example.html"),
    ("/a b", "http://a/a%20b"),
    ('/a"<>`{}', "http://a/a%22%3C%3E%60%7B%7D"),
    ("/?a b'\"", "http://a/?a%20b%27%22"),
    ("/%7e%zz%", "http://a/%7e%zz%"),
    ("/%2e%2E/x/%2e/y", "http://a/x/y"),
    ("/č", "http://a/%C4%8D"),
    ("/?č", "http://a/?%C4%8D"),
    ("http://bücher.example/", "http://xn--bcher-kva.example/"),
    ("http://BÜCHER.example/", "http://xn--bcher-kva.example/"),
    ("http://ex%41mple.org/", "http://example.org/"),
    ("http://faß.example/", "http://xn--fa-hia.example/"),
    ("http://１２７.0.0.1/", "http://127.0.0.1/"),
    ("http://0x7f.1/", "http://127.0.0.1/"),
    ("http://2130706433/", "http://127.0.0.1/"),
    ("http://0177.0.0.1/", "http://127.0.0.1/"),
    ("http://256.1.1.1/", None),
    ("http://1.2.3.4.5/", None),
    ("http://[::1]:8080/", "http://[::1]:8080/"),
    ("http://[0:0:0:0:0:0:0:1]/", "http://[::1]/"),
    ("http://[::ffff:1.2.3.4]/", "http://[::ffff:102:304]/"),
    ("http://[::1", None),
    ("http://", None),
    ("http://:80/", None),
    ("http://a b/", None),
    ("http://a<b/", None),
    ("http://../", None),  # browsers accept these three; no name in DNS has an empty label
    ("http://%2e/", None),
    ("http://a..b/", None),
    (f"http://{'a.' * 127}/", f"http://{'a.' * 127}/"),
    (f"https://{'a.' * 127}:65535/", f"https://{'a.' * 127}:65535/"),
    (f"http://{'a.' * 135}/", None),
    ("http://example.org:99999/", None),
    ("http://example.org:x/", None),
    ("mailto:a@example.org", None),
    ("javascript:alert(1)", None),
    ("data:text/html,x", None),
    ("ftp://example.org/", None),
    ("file:///etc/passwd", None),
    ("about:blank", None),
    ("http://example.org/" + "a" * 1981, "http://example.org/" + "a" * 1981),
    ("http://example.org/" + "a" * 1982, None),
]

IDENTITIES = [
    ("http://example.org/index.html", "http://example.org/"),
    ("http://example.org/a/index.htm?x=1", "http://example.org/a/?x=1"),
    ("http://example.org/default.aspx", "http://example.org/"),
    ("http://example.org/index.html/a", "http://example.org/index.html/a"),
    ("http://example.org/my-index.html", "http://example.org/my-index.html"),
    ("http://example.org/?x=/index.html", "http://example.org/?x=/index.html"),
    ("http://example.org/%7Ea", "http://example.org/~a"),
    ("http://example.org/a%2fb", "http://example.org/a%2Fb"),
    ("http://example.org/A", "http://example.org/A"),
]

_CRAWLABLE = re.compile(r"https?://[^\x00-\x20\x7f-\U0010ffff#/@?\\]+/[^\x00-\x20\x7f-\U0010ffff#]*")

_ODD_HOSTS = ["a.cz", "xn--bcher-kva.example", "127.0.0.1", "[::1]", "a_b.cz", "a.cz.", "x--y.cz", "-a.cz", "A.CZ"]
_hosts = st.sampled_from(_ODD_HOSTS) | st.text("abz09-._", min_size=1, max_size=12)
_ports = st.sampled_from(["", ":80", ":443", ":8080", ":1"])
_words = st.text("aZ0-._~%2e7EfF!$&'()*+,;=:@ /\\č<>\"|^[]{}", max_size=12)
_names = st.sampled_from(["", "index.html", "index.htm", "index.php", "default.asp", "Index.html", "index.html.bak"])
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


@pytest.mark.parametrize(("reference", "expected"), RFC_3986)
def test_resolves_as_rfc_3986_says(reference: str, expected: str | None) -> None:
    assert urls.resolve(reference, BASE) == expected


@pytest.mark.parametrize(("reference", "expected"), WHATWG)
def test_resolves_as_browsers_do(reference: str, expected: str | None) -> None:
    assert urls.resolve(reference, BASE) == expected


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
    ],
)
def test_typed(text: str, address: str | None) -> None:
    assert urls.typed(text) == address

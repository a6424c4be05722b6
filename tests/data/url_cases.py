"""Base and reference, and the URL that comes out by the URL standard (WHATWG), with the section that says so.

`href` is what the standard gives, None where it gives failure. Where our address is another one, `ours` has it and
`why` is the reason. The reasons are few, and all are deliberate.
"""

from typing import NamedTuple

BASE = "http://a/b/c/d;p?q"

FRAGMENT = "a fragment is not sent"
SCHEME = "only http and https are crawled"
USER = "user names and passwords are dropped"
LABEL = "DNS has no empty labels"
LENGTH = "too long"
PUNYCODE = "a label that is no Punycode may be a name all the same: there are such hosts, and Chrome asks them"
SURROGATE = "half a character: no page in any encoding can contain one"


class Case(NamedTuple):
    """One reference on one page."""

    section: str
    reference: str
    href: str | None
    base: str | None = BASE
    why: str = ""
    ours: str | None = None

    @property
    def address(self) -> str | None:
        """What `common.urls.resolve` is to give."""
        return self.ours if self.why else self.href


def _same(section: str, *rows: tuple[str, str | None], base: str | None = BASE) -> list[Case]:
    """Cases in which we do what the standard says."""
    return [Case(section, reference, href, base) for reference, href in rows]


def _fails(section: str, *references: str, base: str | None = BASE) -> list[Case]:
    """References that are no URL."""
    return [Case(section, reference, None, base) for reference in references]


def _refused(section: str, why: str, *rows: tuple[str, str], base: str | None = BASE) -> list[Case]:
    """URLs by the standard that we do not crawl."""
    return [Case(section, reference, href, base, why) for reference, href in rows]


def _without_fragment(section: str, *rows: tuple[str, str]) -> list[Case]:
    return [Case(section, reference, href, BASE, FRAGMENT, href.partition("#")[0]) for reference, href in rows]


def _without_user(section: str, *rows: tuple[str, str, str], base: str | None = BASE) -> list[Case]:
    return [Case(section, reference, href, base, USER, ours) for reference, href, ours in rows]


REFERENCES = [
    *_same(
        "RFC 3986 §5.4.1",
        ("g", "http://a/b/c/g"),
        ("./g", "http://a/b/c/g"),
        ("g/", "http://a/b/c/g/"),
        ("/g", "http://a/g"),
        ("//g", "http://g/"),  # the RFC leaves the path empty; for http that is the same, §6.2.3
        ("?y", "http://a/b/c/d;p?y"),
        ("g?y", "http://a/b/c/g?y"),
        (";x", "http://a/b/c/;x"),
        ("g;x", "http://a/b/c/g;x"),
        ("", "http://a/b/c/d;p?q"),
        (".", "http://a/b/c/"),
        ("./", "http://a/b/c/"),
        ("..", "http://a/b/"),
        ("../", "http://a/b/"),
        ("../g", "http://a/b/g"),
        ("../..", "http://a/"),
        ("../../", "http://a/"),
        ("../../g", "http://a/g"),
    ),
    *_refused("RFC 3986 §5.4.1", SCHEME, ("g:h", "g:h")),
    *_without_fragment(
        "RFC 3986 §5.4.1",
        ("#s", "http://a/b/c/d;p?q#s"),
        ("g#s", "http://a/b/c/g#s"),
        ("g?y#s", "http://a/b/c/g?y#s"),
        ("g;x?y#s", "http://a/b/c/g;x?y#s"),
    ),
    *_same(
        "RFC 3986 §5.4.2",
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
        ("http:g", "http://a/b/c/g"),  # the RFC leaves both open; browsers take it as relative
    ),
    *_without_fragment(
        "RFC 3986 §5.4.2",
        ("g#s/./x", "http://a/b/c/g#s/./x"),
        ("g#s/../x", "http://a/b/c/g#s/../x"),
    ),
]

SCHEMES = [
    *_same(
        "URL §4.4 scheme state",
        ("HTTP://example.org/", "http://example.org/"),
        ("hTtPs://example.org", "https://example.org/"),
        ("http:/x", "http://a/x"),
        ("http:?x", "http://a/b/c/d;p?x"),
        ("https:/example.org/x", "https://example.org/x"),
        ("https:example.org", "https://example.org/"),
        ("https:////example.org/x", "https://example.org/x"),
        ("1http://x/", "http://a/b/c/1http://x/"),
        ("ht tp://x/", "http://a/b/c/ht%20tp://x/"),
        (":x", "http://a/b/c/:x"),
        ("ht%74p://x/", "http://a/b/c/ht%74p://x/"),
        ("./g:h", "http://a/b/c/g:h"),
    ),
    *_same(
        "URL §4.4 no scheme state",
        ("http:x", "http://x/"),
        ("http:/x", "http://x/"),
        ("http://x", "http://x/"),
        ("example.org/a", None),
        ("//example.org/a", None),
        ("/a", None),
        ("?a", None),
        ("#a", None),
        ("", None),
        ("http:", None),
        base=None,
    ),
    *_refused(
        "URL §4.4 scheme state",
        SCHEME,
        ("ftp://example.org:21/x", "ftp://example.org/x"),
        ("ftp:x", "ftp://x/"),
        ("ws://example.org:80/", "ws://example.org/"),
        ("wss://example.org:443/", "wss://example.org/"),
        ("gopher://example.org:70/", "gopher://example.org:70/"),
        ("web+demo:/x/../y", "web+demo:/y"),
        ("g.h+1-2:x", "g.h+1-2:x"),
        ("foo://EXAMPLE.org/x", "foo://EXAMPLE.org/x"),
        ("feed:http://example.org/", "feed:http://example.org/"),
    ),
    *_refused(
        "URL §4.4 opaque path state",
        SCHEME,
        ("mailto:a@example.org", "mailto:a@example.org"),
        ("mailto:a@example.org?subject=b c", "mailto:a@example.org?subject=b%20c"),
        ("JavaScript:void(0)", "javascript:void(0)"),
        ("javascript:alert('a b')", "javascript:alert('a b')"),
        (" \tjava\nscript:x", "javascript:x"),
        ("data:text/html,<b>x</b>", "data:text/html,<b>x</b>"),
        ("tel:+420 123", "tel:+420 123"),
        ("urn:isbn:0-00", "urn:isbn:0-00"),
        ("blob:http://example.org/1", "blob:http://example.org/1"),
        ("about:blank", "about:blank"),
        ("view-source:http://x/", "view-source:http://x/"),
    ),
    *_refused(
        "URL §4.4 file state",
        SCHEME,
        ("file:///etc/passwd", "file:///etc/passwd"),
        ("file:x", "file:///x"),
        ("file://localhost/x", "file:///x"),
        ("file:///C|/x", "file:///C:/x"),
        ("file:\\\\host\\x", "file://host/x"),
    ),
    *_refused("URL §4.4 file slash state", SCHEME, ("/x", "file:///x"), ("//h/x", "file://h/x"), base="file:///y/z"),
    *_same("URL §4.4 no scheme state", ("x", None), ("/x", None), ("?x", None), base="mailto:a@b"),
    *_refused("URL §4.4 no scheme state", SCHEME, ("#x", "mailto:a@b#x"), base="mailto:a@b"),
    *_same("URL §4.4 scheme state", ("http://x/y", "http://x/y"), ("https:x", "https://x/"), base="data:,x"),
    *_refused(
        "URL §4.4 relative state",
        SCHEME,
        ("../c", "foo://h/c"),
        ("\\x", "foo://h/a/\\x"),  # a backslash is a slash in special schemes only
        ("//i", "foo://i"),
        base="foo://h/a/b",
    ),
]

SLASHES = [
    *_same(
        "URL §4.4 special authority slashes state",
        ("http:\\\\example.org\\a\\b", "http://example.org/a/b"),
        ("http:/\\example.org/x", "http://example.org/x"),
        ("https:\\example.org/x", "https://example.org/x"),
        ("http:///example.org///a", "http://example.org///a"),
    ),
    *_same(
        "URL §4.4 relative slash state",
        ("\\x", "http://a/x"),
        ("\\\\example.org\\x", "http://example.org/x"),
        ("/\\example.org/x", "http://example.org/x"),
        ("\\/example.org", "http://example.org/"),
        ("///example.org/x", "http://example.org/x"),
        ("////x/y", "http://x/y"),
        ("//example.org\\@evil.org/", "http://example.org/@evil.org/"),
    ),
    *_same(
        "URL §4.4 path state",
        ("x\\y", "http://a/b/c/x/y"),
        ("..\\x", "http://a/b/x"),
        ("x\\", "http://a/b/c/x/"),
        ("/x%5Cy", "http://a/x%5Cy"),
        ("/a//b///", "http://a/a//b///"),
        (".//x", "http://a/b/c//x"),
    ),
    *_same("URL §4.4 query state", ("?x\\y", "http://a/b/c/d;p?x\\y")),
    *_same("URL §4.4 relative state", ("//other.org/x", "https://other.org/x"), base="https://example.org:8443/"),
    *_same("URL §4.4 relative state", ("/x", "https://example.org:8443/x"), base="https://example.org:8443/y?z#f"),
]

WHITE_SPACE = [
    *_same(
        "URL §4.4 step 1.2",  # leading and trailing C0 controls and spaces
        ("  http://Example.ORG  ", "http://example.org/"),
        ("\x00\x1f x \x00", "http://a/b/c/x"),
        ("\x0b/x\x0c", "http://a/x"),
        ("\r\n\t x\r\n", "http://a/b/c/x"),
        ("   ", "http://a/b/c/d;p?q"),
        ("\u00a0x", "http://a/b/c/%C2%A0x"),
        ("\ufeffx", "http://a/b/c/%EF%BB%BFx"),
        ("/x\u3000", "http://a/x%E3%80%80"),
        ("/x\u2028", "http://a/x%E2%80%A8"),
        ("/x\x7f", "http://a/x%7F"),
    ),
    *_same(
        "URL §4.4 step 3",  # tabs and line ends inside
        ("ht\ntp://exa\tmple.org/\r", "http://example.org/"),
        ("ex\nam\tple.ht\rml", "http://a/b/c/example.html"),
        ("/\n/example.org", "http://example.org/"),
        ("http://example.org:8\n0/", "http://example.org/"),
        (".\t./x", "http://a/b/x"),
        ("/a\x0bb", "http://a/a%0Bb"),
        ("/a%0Ab%09", "http://a/a%0Ab%09"),
    ),
]

DOT_SEGMENTS = _same(
    "URL §4.2 dot segments",
    ("/a/./b/../c", "http://a/a/c"),
    ("/a/%2e/b", "http://a/a/b"),
    ("/a/%2E%2e/b", "http://a/b"),
    ("/a/.%2e/b", "http://a/b"),
    ("/a/%2E./b", "http://a/b"),
    ("/a/%2e", "http://a/a/"),
    ("/a/%2e%2e", "http://a/"),
    ("/%2e%2E/x/%2e/y", "http://a/x/y"),
    ("/a/...", "http://a/a/..."),
    ("/a/%2e%2e%2e/b", "http://a/a/%2e%2e%2e/b"),
    ("/a/..;x/b", "http://a/a/..;x/b"),
    ("/a/..%2fb", "http://a/a/..%2fb"),
    ("/%252e%252e/x", "http://a/%252e%252e/x"),
    ("/a//../b", "http://a/a/b"),
    ("/..//../x", "http://a/x"),
    ("//h/..//x", "http://h//x"),
    ("/a/b/..", "http://a/a/"),
    ("/.", "http://a/"),
    ("/..", "http://a/"),
    ("/a/ ./b", "http://a/a/%20./b"),
    ("../../../../../../x/..", "http://a/"),
    ("..?x", "http://a/b/?x"),
)

EMPTY_HOSTS = _fails(
    "URL §4.4 host state",
    "http://",
    "http:///",
    "http://?x",
    "http://#x",
    "http://:80/",
    "http://@/x",
    "http://user@/x",
    "http://a:b@/",
    "http://user@:80/",
    "//",
    "///",
    "//?x",
    "\\\\",
    "https:",
)

PORTS = [
    *_same(
        "URL §4.4 port state",
        ("http://example.org:80/", "http://example.org/"),
        ("http://example.org:443/", "http://example.org:443/"),
        ("https://example.org:443/", "https://example.org/"),
        ("https://example.org:80/", "https://example.org:80/"),
        ("http://example.org:/", "http://example.org/"),
        ("http://example.org:00080/x", "http://example.org/x"),
        ("https://example.org:0443", "https://example.org/"),
        ("http://example.org:08080/", "http://example.org:8080/"),
        ("http://example.org:0/", "http://example.org:0/"),
        ("http://example.org:65535/", "http://example.org:65535/"),
        ("http://example.org:8080?x", "http://example.org:8080/?x"),
        ("http://example.org:8080\\x", "http://example.org:8080/x"),
        ("//example.org:80/", "http://example.org/"),
    ),
    *_fails(
        "URL §4.4 port state",
        "http://example.org:65536/",
        "http://example.org:99999999999999999999/",
        "http://example.org:+80/",
        "http://example.org:-1/",
        "http://example.org: 80/",
        "http://example.org:80 /",
        "http://example.org:80x/",
        "http://example.org:0x50/",
        "http://example.org:8%30/",
        "http://example.org:80:80/",
        "http://example.org:８０/",
        "http://example.org:x",
    ),
]

USERS = [
    *_without_user(
        "URL §4.4 authority state",
        ("http://user:secret@example.org/x", "http://user:secret@example.org/x", "http://example.org/x"),
        ("http://user@example.org:8080/x@y", "http://user@example.org:8080/x@y", "http://example.org:8080/x@y"),
        ("http://:secret@example.org/", "http://:secret@example.org/", "http://example.org/"),
        ("http://a@b@example.org/", "http://a%40b@example.org/", "http://example.org/"),
        ("http://a:b@c:d@example.org/", "http://a:b%40c%3Ad@example.org/", "http://example.org/"),
        ("http://us er:p^w@example.org/", "http://us%20er:p%5Ew@example.org/", "http://example.org/"),
        ("http://č:|@example.org/", "http://%C4%8D:%7C@example.org/", "http://example.org/"),
        ("https://u@example.org:443/?a@b", "https://u@example.org/?a@b", "https://example.org/?a@b"),
        ("//u:@h/", "http://u@h/", "http://h/"),
    ),
    *_same(
        "URL §4.4 authority state",
        ("http://@example.org/", "http://example.org/"),
        ("http://:@example.org/", "http://example.org/"),
        ("http://example.org/@x", "http://example.org/@x"),
        ("http://example.org?@x", "http://example.org/?@x"),
    ),
    *_without_user(
        "URL §4.4 relative state", ("c", "http://u:p@h/a/c", "http://h/a/c"), base="http://u:p@h/a/b"
    ),
]  # fmt: skip

IPV4 = [
    *_same(
        "URL §3.5 IPv4 parser",
        ("http://127.0.0.1/", "http://127.0.0.1/"),
        ("http://0x7f.0.0.1/", "http://127.0.0.1/"),
        ("http://0X7F.1/", "http://127.0.0.1/"),
        ("http://0177.0.0.1/", "http://127.0.0.1/"),
        ("http://127.1/", "http://127.0.0.1/"),
        ("http://127.0.258/", "http://127.0.1.2/"),
        ("http://2130706433/", "http://127.0.0.1/"),
        ("http://0x7f000001/", "http://127.0.0.1/"),
        ("http://017700000001/", "http://127.0.0.1/"),
        ("http://0/", "http://0.0.0.0/"),
        ("http://0x/", "http://0.0.0.0/"),
        ("http://1.2.3.4./", "http://1.2.3.4/"),
        ("http://1.256/", "http://1.0.1.0/"),
        ("http://4294967295/", "http://255.255.255.255/"),
        ("http://%31%32%37.0.0.1/", "http://127.0.0.1/"),
        ("http://１２７.0.0.1/", "http://127.0.0.1/"),
        ("http://127。0．0｡1/", "http://127.0.0.1/"),
        ("http://0x7f.1:8080/", "http://127.0.0.1:8080/"),
    ),
    *_fails(
        "URL §3.5 IPv4 parser",
        "http://256.1.1.1/",
        "http://1.2.3.256/",
        "http://1.2.65536/",
        "http://1.16777216/",
        "http://4294967296/",
        "http://0x100000000/",
        "http://1.2.3.4.5/",
        "http://1.2.3.08/",
        "http://1..2/",
        "http://.1/",
        "http://foo.0x4/",
        "http://foo.4/",
        "http://0b1.1/",
        "http://+1.2.3.4/",
        "http://1.2.3.4%20/",
    ),
    *_same(
        "URL §3.5 ends in a number",
        ("http://0x7f.foo/", "http://0x7f.foo/"),
        ("http://1.2.3.4.com/", "http://1.2.3.4.com/"),
        ("http://1e3/", "http://1e3/"),
        ("http://0xg/", "http://0xg/"),
        ("http://1.2.3.-4/", "http://1.2.3.-4/"),
    ),
]

IPV6 = [
    *_same(
        "URL §3.5 IPv6 parser",
        ("http://[::1]:8080/", "http://[::1]:8080/"),
        ("http://[::1]:80", "http://[::1]/"),
        ("http://[::]/", "http://[::]/"),
        ("http://[0:0:0:0:0:0:0:1]/", "http://[::1]/"),
        ("http://[2001:DB8::00A1]/", "http://[2001:db8::a1]/"),
        ("http://[1:2:3:4:5:6:7:8]/", "http://[1:2:3:4:5:6:7:8]/"),
        ("http://[::127.0.0.1]/", "http://[::7f00:1]/"),
        ("http://[::ffff:1.2.3.4]/", "http://[::ffff:102:304]/"),
        ("http://[64:ff9b::255.255.255.255]/", "http://[64:ff9b::ffff:ffff]/"),
    ),
    *_same(
        "URL §3.6 IPv6 serializer",
        ("http://[2001:db8:0:0:1:0:0:1]/", "http://[2001:db8::1:0:0:1]/"),
        ("http://[1:0:0:2::]/", "http://[1:0:0:2::]/"),
        ("http://[1:2:3:4:5:6:7::]/", "http://[1:2:3:4:5:6:7:0]/"),
        ("http://[1:0:2:0:3:0:4:0]/", "http://[1:0:2:0:3:0:4:0]/"),
        ("http://[0:0:1:0:0:0:1:0]/", "http://[0:0:1::1:0]/"),
    ),
    *_fails(
        "URL §3.5 IPv6 parser",
        "http://[::1",
        "http://[::1/",
        "http://[]/",
        "http://[::1%eth0]/",
        "http://[fe80::1%25en0]/",
        "http://[1::2::3]/",
        "http://[:1]/",
        "http://[1:]/",
        "http://[1:2:3]/",
        "http://[1:2:3:4:5:6:7:8:9]/",
        "http://[12345::]/",
        "http://[::g]/",
        "http://[::1.2.3]/",
        "http://[::1.2.3.256]/",
        "http://[::01.2.3.4]/",
        "http://[::1.2.3.4.5]/",
        "http://[v1.x]/",
        "http://[::1]x/",
        "http://x[::1]/",
        "http://::1/",
        "http://[127.0.0.1]/",
        "http://[ ::1]/",
    ),
]

DOMAINS = [
    *_same(
        "URL §3.3 domain to ASCII",
        ("http://EXAMPLE.ORG/", "http://example.org/"),
        ("http://bücher.example/", "http://xn--bcher-kva.example/"),
        ("http://BÜCHER.example/", "http://xn--bcher-kva.example/"),
        ("http://bu\u0308cher.example/", "http://xn--bcher-kva.example/"),
        ("http://b%C3%BCcher.example/", "http://xn--bcher-kva.example/"),
        ("http://xn--bcher-kva.example/", "http://xn--bcher-kva.example/"),
        ("http://XN--BCHER-KVA.example/", "http://xn--bcher-kva.example/"),
        ("http://faß.example/", "http://xn--fa-hia.example/"),
        ("http://FASS.example/", "http://fass.example/"),
        ("http://βόλος.com/", "http://xn--nxasmm1c.com/"),
        ("http://ΒΌΛΟΣ.com/", "http://xn--nxasmq6b.com/"),
        ("http://日本語.jp/", "http://xn--wgv71a119e.jp/"),
        ("http://пример.рф/", "http://xn--e1afmkfd.xn--p1ai/"),
        ("http://☃.example/", "http://xn--n3h.example/"),
        ("http://ＧＯ.ｅｘａｍｐｌｅ/", "http://go.example/"),
        ("http://example。org/", "http://example.org/"),
        ("http://example｡org．/", "http://example.org./"),
        ("http://ex\u00adam\u200bple.org/", "http://example.org/"),
        ("http://ex%41mple.org/", "http://example.org/"),
        ("http://a_b.example/", "http://a_b.example/"),
        ("http://-a-.example/", "http://-a-.example/"),
        ("http://ab--cd.example/", "http://ab--cd.example/"),
        ("http://a!b$c&d'e(f)g*h+i,j;k=l.example/", "http://a!b$c&d'e(f)g*h+i,j;k=l.example/"),
        ('http://a"b`c{d}e~f.example/', 'http://a"b`c{d}e~f.example/'),
        ("http://example.org./", "http://example.org./"),
        (f"http://{'a' * 64}.example/", f"http://{'a' * 64}.example/"),
        (f"http://{'a.' * 127}/", f"http://{'a.' * 127}/"),
        (f"https://{'a.' * 127}:65535/", f"https://{'a.' * 127}:65535/"),
    ),
    *_fails(
        "URL §3.3 domain to ASCII",
        "http://xn--a.β/",
        "http://xn--é.example/",
        "http://a\u200db.example/",  # a joiner that joins nothing
        "http://\u00ad/",
        "http://b%FCcher.example/",  # no UTF-8
        "http://\ufffd.example/",
    ),
    *_fails(
        "URL §3.2 forbidden domain code points",
        "http://a b/",
        "http://a%20b/",
        "http://a%00b/",
        "http://a%0Ab/",
        "http://a%2Fb/",
        "http://a%3Ab/",
        "http://a%40b/",
        "http://a%23b/",
        "http://a%25b/",
        "http://a%b/",
        "http://a%7Fb/",
        "http://a<b/",
        "http://a>b/",
        "http://a^b/",
        "http://a|b/",
        "http://a]b/",
        "http://a\x01b/",
        "http://a／b/",  # full width, and a slash after mapping
        "http://a％41b/",
    ),
    *_refused(
        "URL §3.5 host parser",
        LABEL,
        ("http://a..b/", "http://a..b/"),
        ("http://.example.org/", "http://.example.org/"),
        ("http://example.org../", "http://example.org../"),
        ("http://1.2.3.4../", "http://1.2.3.4../"),
        ("http://../", "http://../"),
        ("http://%2e/", "http://./"),
        ("http://。/", "http://./"),
    ),
    *[
        Case("URL §3.3 domain to ASCII", url, None, None, PUNYCODE, url)
        for url in ("http://xn--/", "http://xn--a.example/", "http://xn--99999999.example/")
    ],
    *_refused("URL §3.5 host parser", LENGTH, (f"http://{'a.' * 135}/", f"http://{'a.' * 135}/")),
]

CHARACTERS = [
    *_same(
        "URL §1.3 path percent-encode set",
        ('/ "<>`{}^', "http://a/%20%22%3C%3E%60%7B%7D%5E"),
        ("/!$&'()*+,-._~:;=@[]|", "http://a/!$&'()*+,-._~:;=@[]|"),
        ("/%7e%zz%", "http://a/%7e%zz%"),
        ("/%c3%A9%2f", "http://a/%c3%A9%2f"),
        ("/č", "http://a/%C4%8D"),
        ("/e\u0301", "http://a/e%CC%81"),
        ("/😀", "http://a/%F0%9F%98%80"),
        ("/\ufdd0", "http://a/%EF%B7%90"),
        ("/\x80", "http://a/%C2%80"),
        ("/a\x00b\x01c", "http://a/a%00b%01c"),
        ("č", "http://a/b/c/%C4%8D"),
    ),
    *_same(
        "URL §1.3 special-query percent-encode set",
        ("/?a \"<>'", "http://a/?a%20%22%3C%3E%27"),
        ("/?`{}|^[]!$&()*+,/:;=?@~", "http://a/?`{}|^[]!$&()*+,/:;=?@~"),
        ("/?%zz%2f%", "http://a/?%zz%2f%"),
        ("/?č=😀", "http://a/?%C4%8D=%F0%9F%98%80"),
        ("/?\x00\x7f", "http://a/?%00%7F"),
    ),
    *_same(
        "URL §4.4 query state",
        ("?", "http://a/b/c/d;p?"),
        ("x?", "http://a/b/c/x?"),
        ("??x", "http://a/b/c/d;p??x"),
        ("http://h?x", "http://h/?x"),
        ("?&&=&a", "http://a/b/c/d;p?&&=&a"),
        ("?../x", "http://a/b/c/d;p?../x"),
    ),
    *_without_fragment(
        "URL §1.3 fragment percent-encode set",
        ("#", "http://a/b/c/d;p?q#"),
        ("x#", "http://a/b/c/x#"),
        ("#a#b", "http://a/b/c/d;p?q#a#b"),
        ("#a \"<>`'{}", "http://a/b/c/d;p?q#a%20%22%3C%3E%60'{}"),
        ("#x\\y?z", "http://a/b/c/d;p?q#x\\y?z"),
        ("#!/č", "http://a/b/c/d;p?q#!/%C4%8D"),
        ("http://h#x", "http://h/#x"),
        ("?#", "http://a/b/c/d;p?#"),
    ),
    *_refused("URL §1.3 query percent-encode set", SCHEME, ("foo:/x?'\"", "foo:/x?'%22")),
    *_refused("URL §4.4 path state", SURROGATE, ("/a\ud800b", "http://a/a%EF%BF%BDb")),
    *_same("URL §4.4 path state", ("/" + "a" * 1991, "http://a/" + "a" * 1991)),
    *_refused("URL §4.4 path state", LENGTH, ("/" + "a" * 1992, "http://a/" + "a" * 1992)),
    *_same("URL §4.4 path state", ("/" + "č" * 331, "http://a/" + "%C4%8D" * 331)),
    *_refused("URL §4.4 path state", LENGTH, ("/" + "č" * 332, "http://a/" + "%C4%8D" * 332)),
    *_refused("URL §4.4 query state", LENGTH, ("/?" + "x" * 100_000, "http://a/?" + "x" * 100_000)),
    *_same("URL §4.4 path state", ("/" + "x/../" * 10_000, "http://a/")),
]

CASES = [
    *REFERENCES,
    *SCHEMES,
    *SLASHES,
    *WHITE_SPACE,
    *DOT_SEGMENTS,
    *EMPTY_HOSTS,
    *PORTS,
    *USERS,
    *IPV4,
    *IPV6,
    *DOMAINS,
    *CHARACTERS,
]

# Two addresses on one host, and whether their identity is the same: the section that says so.
SPELLINGS = [
    ("RFC 3986 §6.2.2.1", "/%c3%a9", "/%C3%A9", True),
    ("RFC 3986 §6.2.2.1", "/a%2fb", "/a%2Fb", True),
    ("RFC 3986 §6.2.2.1", "/?a=%c3%a9", "/?a=%C3%A9", True),
    ("RFC 3986 §6.2.2.1", "/a", "/A", False),
    ("RFC 3986 §6.2.2.2", "/%7Ea", "/~a", True),
    ("RFC 3986 §6.2.2.2", "/%41%2d%5F%2e", "/A-_.", True),
    ("RFC 3986 §6.2.2.2", "/?a=%41", "/?a=A", True),
    ("RFC 3986 §6.2.2.2", "/%2541", "/%41", False),
    ("RFC 3986 §6.2.2.2", "/%2541", "/A", False),
    ("RFC 3986 §6.2.2.2", "/caf%E9", "/caf%E8", False),
    ("RFC 3986 §6.2.2.2", "/caf%E9", "/caf%C3%A9", False),
    ("RFC 3986 §6.2.2.2", "/?caf%E9", "/?caf%EF%BF%BD", False),
    ("RFC 3986 §6.2.2.3", "/a/../b/./c", "/b/c", True),
    ("RFC 3986 §6.2.2.3", "/%2e%2e%2fa", "/a", False),
    ("RFC 3986 §6.2.3", "", "/", True),
    ("RFC 3986 §6.2.3", ":80/a", "/a", True),
    ("RFC 3986 §6.2.3", ":/a", "/a", True),
    ("RFC 3986 §6.2.3", ":8080/a", "/a", False),
    ("RFC 3986 §6.2.3", "/a", "/a/", False),
    ("RFC 3986 §2.2", "/a%2Fb", "/a/b", False),
    ("RFC 3986 §2.2", "/a%3Fb", "/a?b", False),
    ("RFC 3986 §2.2", "/a%23b", "/a", False),
    ("RFC 3986 §2.2", "/?a=b%26c", "/?a=b&c", False),
    ("RFC 3986 §2.2", "/?a=b%2Bc", "/?a=b+c", False),
    ("RFC 3986 §2.2", "/?a%3Db", "/?a=b", False),
    ("RFC 3986 §2.2", "/a;x", "/a", False),
    ("RFC 3986 §2.2", "/a+b", "/a%20b", False),
    ("RFC 3986 §2.2", "/a%5Cb", "/a/b", False),
    ("RFC 3986 §3.4", "/?a=1&b=2", "/?b=2&a=1", False),
    ("RFC 3986 §3.4", "/?a", "/?a=", False),
    ("RFC 3986 §3.4", "/a?", "/a", True),  # more than the RFC: it would keep them apart
    ("more than the RFC", "/a//b", "/a/b", True),
    ("more than the RFC", "/?a&&b&", "/?a&b", True),
    ("more than the RFC", "/?a=%2F", "/?a=/", True),
    ("more than the RFC", "/%", "/%25", True),
    ("RFC 3987 §5.3.2.2", "/e%CC%81", "/%C3%A9", True),
    ("a name's last dot", "./a", "/a", True),
]

# Queries on a page that is not in UTF-8: encoding, reference, what browsers request (URL §4.4 query state: in the
# page's encoding; a character that it lacks as a numeric reference; never in UTF-16). Paths are always in UTF-8.
QUERIES = [
    ("windows-1250", "/?q=žluť", "/?q=%9Elu%9D"),
    ("iso-8859-2", "/?q=žluť", "/?q=%BElu%BB"),
    ("windows-1251", "/?q=тест", "/?q=%F2%E5%F1%F2"),
    ("shift_jis", "/?q=日本", "/?q=%93%FA%96{"),
    ("euc-kr", "/?q=한국", "/?q=%C7%D1%B1%B9"),
    ("windows-1252", "/?q=č", "/?q=%26%23269%3B"),
    ("windows-1250", "/ž?ž<?ž", "/%C5%BE?%9E%3C?%9E"),
    ("gbk", "/?q=中文", "/?q=%D6%D0%CE%C4"),
    ("big5", "/?q=中文", "/?q=%A4%A4%A4%E5"),
    ("euc-jp", "/?q=日本", "/?q=%C6%FC%CB%DC"),
    ("iso-2022-jp", "/?q=日本", "/?q=%1B$BF|K\\%1B(B"),
    ("utf-8", "/?q=žluť", "/?q=%C5%BElu%C5%A5"),
    ("utf-16le", "/?q=č", "/?q=%C4%8D"),
    ("windows-1250", "/?q=zlut", "/?q=zlut"),
    ("windows-1250", "/?q=%9Elu%9D", "/?q=%9Elu%9D"),
    ("windows-1250", "/žluť", "/%C5%BElu%C5%A5"),
]

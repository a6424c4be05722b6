"""Sitemaps: every form that sites publish, damage of all kinds, and files that are made to hurt."""

import gzip
import subprocess
import sys
import zlib
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client import sitemaps
from client.sitemaps import Entry, Sitemap, read
from common.urls import resolve

URL = "http://example.org/maps/sitemap.xml"
NAMESPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
A, B, C = (f"http://example.org/{name}" for name in "abc")


def _urls(*addresses: str) -> str:
    return "".join(f"<url><loc>{address}</loc></url>" for address in addresses)


def _urlset(content: str, head: str = '<?xml version="1.0" encoding="UTF-8"?>', attributes: str = NAMESPACE) -> bytes:
    return f"{head}<urlset {attributes}>{content}</urlset>".encode()


def _addresses(body: bytes, content_type: str = "application/xml") -> list[str]:
    return [entry.url for entry in read(body, URL, content_type).entries]


def _time(*parts: int) -> int:
    return int(datetime(*parts, tzinfo=UTC).timestamp())  # type: ignore[misc,arg-type]


SOUND: dict[str, tuple[bytes, list[str]]] = {
    "as the standard has it": (_urlset(_urls(A, B)), [A, B]),
    "no namespace, no declaration": (f"<urlset>{_urls(A)}</urlset>".encode(), [A]),
    "a prefix": (f"<s:urlset xmlns:s='x'><s:url><s:loc>{A}</s:loc></s:url></s:urlset>".encode(), [A]),
    "a prefix that is not declared": (f"<s:urlset><s:url><s:loc>{A}</s:loc></s:url></s:urlset>".encode(), [A]),
    "in capitals": (f"<URLSET><URL><LOC>{A}</LOC></URL></URLSET>".encode(), [A]),
    "white space around addresses": (_urlset(f"<url>\n <loc>\n\t{A}\n </loc>\n</url>\n"), [A]),
    "white space and a mark at the beginning": (b"\xef\xbb\xbf \n\n" + _urlset(_urls(A)), [A]),
    "references": (_urlset(_urls(f"{A}?x=1&amp;y=2&#38;z")), [f"{A}?x=1&y=2&z"]),
    "open ampersands": (_urlset(_urls(f"{A}?x=1&y=2&amp;z&#38;&", B)), [f"{A}?x=1&y=2&z&&", B]),
    "ampersands in CDATA": (_urlset(_urls(f"<![CDATA[{A}?x&y]]>&z", f"{B}?x&y")), [f"{A}?x&y&z", f"{B}?x&y"]),
    "CDATA": (_urlset(_urls(f"<![CDATA[{A}?x=1&y=2]]>")), [f"{A}?x=1&y=2"]),
    "images and videos are no pages": (
        _urlset(
            f"<url><loc>{A}</loc><image:image><image:loc>{B}</image:loc></image:image><image:loc>{B}</image:loc>"
            f"<xhtml:link rel='alternate' href='{C}'/><video:video><loc>{B}</loc></video:video></url>"
        ),
        [A],
    ),
    "twice": (_urlset(_urls(A, B, A)), [A, B]),
    "fragments": (_urlset(_urls(f"{A}#x", f"{A}#y")), [A]),
    "relative addresses": (_urlset(_urls("/a", "b", "//example.org/c")), [A, "http://example.org/maps/b", C]),
    "what cannot be crawled": (_urlset(_urls("ftp://example.org/", "mailto:x", "http://", f"{A}{'x' * 2000}", B)), [B]),
    "no scheme, but the host": (
        _urlset(_urls("www.example.org/a", "example.org/b?x", "WWW.Example.ORG", "www.example.net:81/x", "a.net/y")),
        ["http://www.example.org/a", "http://example.org/b?x", "http://www.example.org/", "http://www.example.net:81/x",
         "http://example.org/maps/a.net/y"],
    ),
    "addresses without their element": (_urlset(f"<url>\n{A}\n</url><url><priority>1</priority>{B}</url>"), [A, B]),
    "nothing, and nothing else": (_urlset(""), []),
    "a feed without news": (b"<rss><channel><title>News</title><link>/</link></channel></rss>", []),
    "the first address of an entry": (_urlset(f"<url><loc>{A}</loc><loc>{B}</loc></url>"), [A]),
    "a document type": (_urlset(_urls(A), '<!DOCTYPE urlset SYSTEM "http://example.net/x.dtd">'), [A]),
    "entities of HTML": (_urlset(f"<x>&nbsp;&eacute;</x>{_urls(A, f'{B}&eacute;')}"), [A]),
    "comments and instructions": (_urlset(f"<!-- {_urls(B)} --><?x <url>?>{_urls(A)}", '<?xml-style href="x"?>'), [A]),
    "international": (_urlset(_urls("http://bücher.example/ž")), ["http://xn--bcher-kva.example/%C5%BE"]),
    "windows-1250": (_urlset(_urls(f"{A}/ž"), "<?xml version='1.0' encoding='cp1250'?>").decode().encode("cp1250"),
                     [f"{A}/%C5%BE"]),
    "Shift_JIS": (_urlset(_urls(f"{A}/日"), "<?xml version='1.0' encoding='Shift_JIS'?>").decode().encode("cp932"),
                  [f"{A}/%E6%97%A5"]),
    "UTF-16 with a mark": (_urlset(_urls(A), '<?xml version="1.0" encoding="UTF-16"?>').decode().encode("utf-16"), [A]),
    "says UTF-16 and is not": (_urlset(_urls(A), '<?xml version="1.0" encoding="UTF-16"?>'), [A]),
    "an encoding that nobody knows": (_urlset(_urls(A), '<?xml version="1.0" encoding="klingon"?>'), [A]),
    "control characters": (_urlset(f"<x>\x00\x0b\x1f\ufffe</x>{_urls(A)}"), [A]),
    "lines": (f"{A}\r\n\r\n  {B}\t\n{A}\n{C}".encode(), [A, B, C]),
    "lines with a mark": (f"\ufeff{A}\n".encode(), [A]),
    "lines in UTF-16": (f"{A}\n{B}".encode("utf-16"), [A, B]),
    "lines that are no addresses": (f"# a comment\n{A}\n/relative\nftp://example.org/\njust words {B}\n".encode(), [A]),
    "lines without a scheme": (
        "www.example.org/a\nexample.org/b\n\u200bWWW.EXAMPLE.ORG\u00a0\nwww.example.net:81/x\nexample.net/y\nindex.html\n"
        "www.\nwww.example.org is our site\nwwwexample.org\nexample.orgx/z\n".encode(),
        ["http://www.example.org/a", "http://example.org/b", "http://www.example.org/", "http://www.example.net:81/x"],
    ),
    "very long lines": (f"{A}{'x' * 10_000}\n{B}\n{'x' * 4000}{C}\n".encode(), [B]),
}  # fmt: skip


@pytest.mark.parametrize("name", SOUND)
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_addresses(name: str, packed: bool) -> None:
    body, expected = SOUND[name]
    sitemap = read(gzip.compress(body) if packed else body, URL, "application/octet-stream")
    assert sitemap == Sitemap(tuple(map(Entry, expected)))


@pytest.mark.parametrize("piece", [1, 2, 3, 7, 64])
def test_pieces_do_not_matter(monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    body = _urlset(_urls(f"{A}?x&y&amp;z", f"<![CDATA[{B}?x&y]]>", f"{C}?ž&#38;"))
    expected = read(body, URL)
    assert len(expected.entries) == 3
    monkeypatch.setattr(sitemaps, "_PIECE", piece)
    assert read(body, URL) == expected


def test_the_charset_of_the_header() -> None:
    body = _urlset(_urls(f"{A}/ž"), head="").decode().encode("cp1250")
    assert _addresses(body, "text/xml; charset=windows-1250") == [f"{A}/%C5%BE"]
    assert _addresses(body, "text/xml; charset=nonsense") == [], "what cannot be decoded is refused"


def test_an_index() -> None:
    body = (
        f"<sitemapindex {NAMESPACE}><sitemap><loc>{A}.gz</loc><lastmod>2004-10-01T18:23:17+00:00</lastmod></sitemap>"
        f"<sitemap><loc>{B}</loc></sitemap><url><loc>{C}</loc></url></sitemapindex>"
    )
    expected = (Entry(f"{A}.gz", _time(2004, 10, 1, 18, 23, 17)), Entry(B))
    assert read(body.encode(), URL) == Sitemap(sitemaps=expected)


RSS = f"""<?xml version="1.0"?>
<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom" xmlns:dc="http://purl.org/dc/elements/1.1/"><channel>
 <title>News</title><link>http://example.org/</link><atom:link rel="self" href="http://example.org/feed"/>
 <pubDate>Wed, 01 Oct 2003 00:00:00 GMT</pubDate>
 <item><title>1</title><link>{A}</link><pubDate>Wed, 02 Oct 2002 15:00:00 +0200</pubDate><guid>{C}</guid></item>
 <item><atom:link href="{C}"/><guid>{B}</guid><dc:date>2002-10-02</dc:date></item>
 <item><guid isPermaLink="false">{C}</guid></item><item><guid>17</guid></item>
</channel></rss>"""
RDF = f"""<rdf:RDF xmlns="http://purl.org/rss/1.0/" xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
 <channel><link>http://example.org/</link></channel>
 <item rdf:about="x"><link>{A}</link><dc:date>2002-10-02T13:00Z</dc:date></item></rdf:RDF>"""
ATOM = f"""<feed xmlns="http://www.w3.org/2005/Atom"><link href="http://example.org/"/><updated>2003-12-13</updated>
 <entry><link rel="edit" href="{C}"/><link href="/a"/><id>{C}</id><published>2001-01-01</published>
  <updated>2003-12-13T18:30:02.25Z</updated></entry>
 <entry><link rel="alternate" type="text/html" href="{B}"/><published>2003-12-13</published>
  <source><link href="{C}"/></source></entry></feed>"""


ITEMS = {
    "guid is no permalink": (f"<guid isPermaLink='false'>{C}</guid><link>{A}</link>", [A]),
    "behind the link": (f"<link>{A}</link><guid isPermaLink='false'>{C}</guid>", [A]),
    "in other letters": (f"<guid ispermalink=' False '>{C}</guid>", []),
    "link of Atom": (f"<atom:link href='{A}'/><guid isPermaLink='false'>{C}</guid>", [A]),
    "link of Atom and an own one": (f"<atom:link href='{C}'/><link>{A}</link>", [A]),
    "link of Atom to the feed": (f"<atom:link rel='self' href='{C}'/><link>{A}</link>", [A]),
    "link that is left open": (f"<link/>{A}<guid isPermaLink='false'>{C}</guid>", [A]),
    "link without an address": (f"<link/><guid isPermaLink='true'>{A}</guid>", [A]),
    "link that cannot be crawled": (f"<link>mailto:x@y.cz</link><guid>{A}</guid>", [A]),
    "link in CDATA": (f"<link>\n<![CDATA[ {A} ]]>\n</link><guid isPermaLink='false'>17</guid>", [A]),
    "link without a scheme": ("<link>www.example.org/a</link>", ["http://www.example.org/a"]),
    "words": (f"<title>{C}</title>words {C}<description>{C}</description>", []),
}


@pytest.mark.parametrize("name", ITEMS)
def test_addresses_of_items(name: str) -> None:
    item, expected = ITEMS[name]
    body = f"<rss xmlns:atom='x'><channel><item>{item}</item><item><link>{B}</link></item></channel></rss>"
    assert [entry.url for entry in read(body.encode(), URL).entries] == [*expected, B]


def test_feeds() -> None:
    assert read(RSS.encode(), URL) == Sitemap((Entry(A, _time(2002, 10, 2, 13)), Entry(B, _time(2002, 10, 2))))
    assert read(RDF.encode(), URL) == Sitemap((Entry(A, _time(2002, 10, 2, 13)),))
    expected = (Entry(A, _time(2003, 12, 13, 18, 30, 2)), Entry(B, _time(2003, 12, 13)))
    assert read(ATOM.encode(), URL) == Sitemap(expected)


TIMES = {
    "2005": _time(2005, 1, 1),
    "2005-06": _time(2005, 6, 1),
    "2005-06-07": _time(2005, 6, 7),
    "2005-6-7": _time(2005, 6, 7),
    " 2005-06-07T08:09Z\n": _time(2005, 6, 7, 8, 9),
    "2005-06-07T08:09:10Z": _time(2005, 6, 7, 8, 9, 10),
    "2005-06-07T08:09:10.123456789z": _time(2005, 6, 7, 8, 9, 10),
    "2005-06-07T08:09:10+02:00": _time(2005, 6, 7, 6, 9, 10),
    "2005-06-07T08:09:10-0130": _time(2005, 6, 7, 9, 39, 10),
    "2005-06-07T08:09:10+02": _time(2005, 6, 7, 6, 9, 10),
    "2005-06-07 08:09:10": _time(2005, 6, 7, 8, 9, 10),
    "Tue, 07 Jun 2005 08:09:10 GMT": _time(2005, 6, 7, 8, 9, 10),
    "7 Jun 2005 08:09 EST": _time(2005, 6, 7, 13, 9),
    "1969-12-31": 0,
    "0000-00-00": 0,
    "2005-02-30": 0,
    "2005-06-07T25:00Z": 0,
    "2005-06-07T08:09+99:00": 0,
    "0001-01-01T00:00+01:00": 0,
    "٢٠٠٥": 0,
    "yesterday": 0,
    "": 0,
    "9" * 5000: 0,
}


@pytest.mark.parametrize("text", TIMES, ids=lambda text: text[:30])
def test_times(text: str) -> None:
    body = _urlset(f"<url><lastmod>{text}</lastmod><loc>{A}</loc></url>")
    assert read(body, URL).entries == (Entry(A, TIMES[text]),)


def test_the_newest_time_of_an_address_counts() -> None:
    times = ("2001", "2003", "2002", "")
    body = _urlset("".join(f"<url><loc>{A}</loc><lastmod>{time}</lastmod></url>" for time in times))
    assert read(body, URL).entries == (Entry(A, _time(2003, 1, 1)),)


GOOD = _urlset(_urls(A, B, C))
DAMAGED: dict[str, tuple[bytes, list[str], str]] = {
    "breaks off": (GOOD[: GOOD.index(C.encode())], [A, B], "damaged"),
    "bad gzip": (b"\x1f\x8b\x08nonsense", [], "gzip"),
    "an open angle bracket": (_urlset(_urls(A, f"{B}?x<y=1", C)), [A], "damaged"),
    "tags that do not match": (_urlset(f"{_urls(A)}<url><loc>{B}</url>"), [A], "damaged"),
    "something behind": (_urlset(_urls(A)) + b"<p>", [A], "damaged"),
    "bytes that are no UTF-8": (_urlset(_urls(A, f"{B}/-")).replace(b"/-", b"/\xff"), [A], ""),
    "HTML": (b"<!DOCTYPE html><html><a href=/x>not found</a></html>", [], "no sitemap: <html>"),
    "another XML": (b"<opml><url><loc>http://example.org/</loc></url></opml>", [], "no sitemap: <opml>"),
    "no XML at all": (b"<<<<", [], "damaged"),
    "a picture": (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), [], "lists nothing: none of its 2 lines is an address"),
    "nothing at all": (b"", [], "is empty"),
    "blanks": (b"\xef\xbb\xbf \n\n", [], "is empty"),
    "entries without an address": (
        _urlset("<url></url><url><loc/></url><url><lastmod>2020</lastmod></url>"), [],
        "lists nothing: none of its 3 entries has an address that can be crawled"),
    "only what cannot be crawled": (_urlset(_urls("ftp://example.org/", "mailto:x")), [], "none of its 2 entries has"),
    "an index without loc": (b"<sitemapindex><sitemap><lastmod>2020</lastmod></sitemap></sitemapindex>", [],
                             "lists nothing: none of its 1 entries has an address that can be crawled"),
    "an index of pages": (b"<sitemapindex><url><loc>http://example.org/</loc></url></sitemapindex>", [],
                          "lists nothing: <sitemapindex> has other elements than <sitemap>"),
    "pages without an entry": (_urlset(f"<loc>{A}</loc>"), [], "lists nothing: <urlset> has other elements than <url>"),
    "text instead of entries": (_urlset("Not available"), [], "lists nothing: <urlset> has other elements than <url>"),
    "a feed without addresses": (b"<rss><item><guid isPermaLink='false'>http://example.org/</guid></item></rss>", [],
                                 "none of its 1 entries has an address"),
    "words": (b"Sorry\nNothing here\n", [], "lists nothing: none of its 2 lines is an address"),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGED)
def test_what_came_before_the_damage_counts(name: str) -> None:
    body, expected, problem = DAMAGED[name]
    sitemap = read(body, URL)
    assert [entry.url for entry in sitemap.entries] == expected
    assert problem in sitemap.problem
    assert bool(problem) == bool(sitemap.problem)


@pytest.mark.parametrize("damage", [b"", b"\0" * 100], ids=["breaks off", "bad bytes"])
def test_what_came_before_damage_in_gzip_counts(damage: bytes) -> None:
    every = [f"http://example.org/{number * 7919 % 10_007}" for number in range(5_000)]
    packed = gzip.compress(_urlset(_urls(*every)))
    half = len(packed) // 2
    sitemap = read(packed[:half] + damage + (packed[half:] if damage else b""), URL)
    found = [entry.url for entry in sitemap.entries]
    assert len(found) > 1000
    assert found[:1000] == every[:1000]
    assert "damaged" in sitemap.problem


def test_half_a_line_is_no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    body = f"{A}\n{B}\n{C}/123456789".encode()
    packed = zlib.compressobj(0, wbits=31)  # not packed really, so that we know where it breaks off
    cut = (packed.compress(body) + packed.flush())[:-12]
    assert read(cut, URL) == Sitemap((Entry(A), Entry(B)), problem="is damaged: the gzip data break off")
    assert _addresses(body) == _addresses(gzip.compress(body) + b"junk") == [A, B, f"{C}/123456789"]
    monkeypatch.setattr(sitemaps, "MAX_BYTES", len(body) - 3)
    assert _addresses(body) == _addresses(gzip.compress(body)) == [A, B]


LAUGHS = '<!DOCTYPE x [<!ENTITY a "ha">' + "".join(
    f'<!ENTITY {after} "{f"&{before};" * 10}">' for before, after in zip("abcdefgh", "bcdefghi", strict=True)
) + "]>"  # fmt: skip
HOSTILE = {
    "a billion laughs": (_urlset(_urls("http://example.org/&i;"), LAUGHS), "declares entities"),
    "a file": (_urlset(_urls("&x;"), '<!DOCTYPE x [<!ENTITY x SYSTEM "file:///etc/passwd">]>'), "declares entities"),
    "a parameter entity": (_urlset("", '<!DOCTYPE x [<!ENTITY % x SYSTEM "http://[::1]/"> %x;]>'), "declares entities"),
    "deep": (b"<urlset>" + b"<url>" * 5_000_000, "elements in each other"),
    "one long tag": (b"<urlset><url " + b"x" * 20_000_000, "has a tag of more than"),
    "one long attribute": (b"<urlset><url x='" + b"<" * 20_000_000, "damaged"),
    "one long comment": (b"<urlset><!--" + b"-x" * 10_000_000, "has a tag of more than"),
    "one long address": (b"<urlset><url><loc>http://example.org/" + b"x" * 20_000_000, "damaged"),
    "only ampersands": (b"<urlset>" + b"&" * 20_000_000, "too many open ampersands"),
    "one long line": (b"http://example.org/" + b"x" * 20_000_000, ""),
    "many members of gzip": (gzip.compress(b"") * 100_000, "gzip members"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_made_to_hurt(name: str) -> None:
    body, problem = HOSTILE[name]
    sitemap = read(body, URL)
    assert sitemap.entries == ()
    assert problem in sitemap.problem


def test_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    many = [f"http://example.org/{number}" for number in range(50_001)]
    assert _addresses("\n".join(many).encode()) == many[:50_000]
    sitemap = read(_urlset(_urls(*many)), URL)
    assert [entry.url for entry in sitemap.entries] == many[:50_000]
    assert "more than 50000 entries" in sitemap.problem
    monkeypatch.setattr(sitemaps, "MAX_BYTES", 1000)
    body = _urlset(_urls(*many[:100]))
    assert _addresses(body) == _addresses(gzip.compress(body)) == _addresses(body[:1000])
    assert 0 < len(_addresses(body)) < 100
    assert read(body, URL).problem == read(gzip.compress(body), URL).problem
    assert read(body, URL).problem.startswith("is longer than")


MEASURE = """
import resource, sys, zlib
from client.sitemaps import read
if sys.argv[1] == "large":
    entry = f"<url><loc>http://example.org/%06d/{'x' * 700}</loc><lastmod>2020-01-01</lastmod><n>{'y' * 280}</n></url>"
    body = b"".join([b"<urlset>", *((entry % number).encode() for number in range(49_000)), b"</urlset>"])
else:
    bomb, piece = zlib.compressobj(1, wbits=31), b"<urlset>" + b" " * (1 << 20)
    body = b"".join([*(bomb.compress(piece) for _ in range(300)), bomb.flush()])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
sitemap = read(body, "http://example.org/")
print(len(body) >> 20, len(sitemap.entries), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before >> 10)
"""


@pytest.mark.parametrize(
    ("kind", "size", "entries", "most"),
    [
        ("large", 49, 49_000, 70),  # the addresses alone are 36 MB
        ("bomb", 1, 0, 60),  # unpacked up to the limit of 50 MB
    ],
)
def test_memory(kind: str, size: int, entries: int, most: int) -> None:
    """MB of the body, entries, and by how many MB the peak of the memory rises while it is read."""
    done = subprocess.run([sys.executable, "-c", MEASURE, kind], capture_output=True, text=True, check=True, timeout=60)
    *told, grown = map(int, done.stdout.split())
    assert told == [size, entries]
    assert grown < most


@given(st.binary(max_size=300))
def test_any_bytes(body: bytes) -> None:
    for start in (b"", b"<urlset>", b"<?xml ", b"\x1f\x8b", b"http://"):
        _assert_sound(read(start + body, URL, "text/xml"))
    _assert_sound(read(gzip.compress(body), URL, "text/xml"))


_parts = st.sampled_from([
    "<urlset>", "</urlset>", "<sitemapindex>", "<url>", "</url>", "<loc>", "</loc>", "<lastmod>", "</lastmod>",
    "<rss>", "<channel>", "<item>", "</item>", "<link>", "</link>", "<link href='/x'/>", "<feed>", "<entry>",
    "</entry>", "<guid>", "</guid>", "<pubDate>", "</pubDate>", "2020-01-01", "http://example.org/", "/y", " ", "\n",
    "&amp;", "&x;", "&", "ž", "<!--", "-->", "<![CDATA[", "]]>", "<?xml version='1.0'?>", "<!DOCTYPE x>", "\0",
])  # fmt: skip


@given(st.lists(_parts, max_size=40), st.sampled_from(["utf-8", "utf-16", "latin-1"]), st.text(max_size=20))
def test_any_mixture(parts: list[str], encoding: str, content_type: str) -> None:
    body = "".join(parts).encode(encoding, "replace")
    _assert_sound(read(body, URL, content_type))
    _assert_sound(read(b"<urlset><url>" + body, URL, f"text/xml; charset={content_type}"))


def _assert_sound(sitemap: Sitemap) -> None:
    for entry in (*sitemap.entries, *sitemap.sitemaps):
        assert resolve(entry.url) == entry.url
        assert entry.modified >= 0

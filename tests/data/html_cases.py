"""Small pages, and the addresses that a browser could go to from them by the HTML standard, with the section.

The page is http://example.org/dir/page.html, and its host is left out of addresses. Where we find others on purpose,
`ours` has them and `why` is the reason; `mistake` says what is known to be wrong with us.
"""

from typing import NamedTuple

LENIENT = "found although browsers would not go there"
BLANKS = "other blanks than those of ASCII are taken away, too: they are mistakes that hide a page"
UNFRAMED = "for browsers without frames these are the links of an old site"
SAME_PAGE = "a mere fragment is no link, even where <base> makes it one"


class Case(NamedTuple):
    """One page."""

    section: str
    html: str
    addresses: tuple[str, ...]
    why: str = ""
    ours: tuple[str, ...] = ()
    mistake: str = ""

    @property
    def expected(self) -> list[str]:
        return list(self.ours if self.why else self.addresses)


def _refresh(content: str, *addresses: str, why: str = "", ours: tuple[str, ...] = (), mistake: str = "") -> Case:
    value = content.replace('"', "&quot;")
    return Case("refresh state", f'<meta http-equiv=refresh content="{value}">', addresses, why, ours, mistake)


def _case(section: str, html: str, *addresses: str, why: str = "", ours: tuple[str, ...] = (), bad: str = "") -> Case:
    return Case(section, html, addresses, why, ours, bad)


REFRESH = [
    _refresh("0;url=/x", "/x"),
    _refresh("0; url=/x", "/x"),
    _refresh("0 url=/x", "/x"),
    _refresh("0,url=/x", "/x"),
    _refresh("0;URL='/x'y", "/x"),
    _refresh('0;url="/x"y', "/x"),
    _refresh("0;url='/x", "/x"),
    _refresh("0;url=/x'y", "/x'y"),
    _refresh("0;/x", "/x"),
    _refresh("0;'/x'", "/x"),
    _refresh("0 /x y", "/x%20y"),
    _refresh("1.5.5;url=/x", "/x"),
    _refresh(".5;url=/x", "/x"),
    _refresh(" 5;url = /x", "/x"),
    _refresh(" 5 ; url = /x", "/x"),
    _refresh("0;\n\turl\n=\n/x", "/x"),
    _refresh("0;url=/x;y", "/x;y"),
    _refresh("0;ur=/x", "/dir/ur=/x"),
    _refresh("0;url/x", "/dir/url/x"),
    _refresh("0;url", "/dir/url"),
    _refresh("0;;url=/x", "/dir/;url=/x"),
    _refresh("0;url=url=/x", "/dir/url=/x"),
    _refresh("0;url="),
    _refresh("0;url= "),
    _refresh("0;"),
    _refresh("0"),
    _refresh(""),
    _refresh("url=/x"),
    _refresh(";url=/x", why=LENIENT, ours=("/x",)),
    _refresh("-1;url=/x"),
    _refresh("0x;url=/x"),
    _refresh("x;url=/x"),
    _refresh("0/x"),
    _refresh("0;url=javascript:x"),
]

LINKS = [
    _case("links created by a and area", "<a href=/x>", "/x"),
    _case("links created by a and area", "<a href=/x download rel=nofollow ping=/y>", "/x"),
    _case("links created by a and area", "<map name=m><area href=/x></map>", "/x"),
    _case("links created by a and area", "<form action=/x></form><blockquote cite=/y><body background=/z>"),
    _case("links created by a and area", "<svg><a href=/x>t</a></svg>", "/x"),
    _case("SVG 2, linking", "<svg><a xlink:href=/x>t</a></svg>", "/x"),
    _case("URL §4.4 step 1.2", "<a href=' \n\t/x\x0c '>", "/x"),
    _case("URL §4.4 step 1.2", "<a href='\x0b x \x1f'>", "/dir/x"),
    _case("URL §4.4 step 1.2", "<a href='\n'>"),
    _case("URL §4.4 step 1.2", "<a href='&nbsp;x'>", "/dir/%C2%A0x", why=BLANKS, ours=("/dir/x",)),
    _case("URL §4.4 step 1.2", "<a href='x&#x3000;'>", "/dir/x%E3%80%80", why=BLANKS, ours=("/dir/x",)),
    _case("URL §4.4 step 1.2", "<a href='&nbsp;'>", "/dir/%C2%A0", why=BLANKS),
    _case("the iframe element", "<iframe src=/x></iframe>", "/x"),
    _case("the iframe element", "<iframe src=''></iframe><iframe srcdoc='<a href=/x>'></iframe>"),
    _case("frames", "<frameset><frame src=/x></frameset><noframes><a href=/y></noframes>", "/x",
          why=UNFRAMED, ours=("/x", "/y")),
    _case("link types", "<link rel=next href=/x><link rel='PREV x' href=/y><link rel=nextx href=/z>", "/x", "/y"),
    _case("the base element", "<base href=/b/><base href=/c/><a href=x>", "/b/x"),
    _case("the base element", "<base><base href=/c/><a href=x>", "/c/x"),
    _case("the base element", "<base href='//h/'><a href=x>", "http://h/x"),
    _case("the base element", "<base href='b/?q'><a href=x>", "/dir/b/x"),
    _case("the base element", "<base href=/b/><a href='?y'>", "/b/?y"),
    _case("the base element", "<base href='&#32;/b/ '><a href=x>", "/b/x"),
    _case("the base element", "<base href=/b/><a href='#y'>", "/b/", why=SAME_PAGE),
    _case("the base element", "<svg><base href=/b/></svg><a href=x>", "/dir/x"),
]

SYNTAX = [
    _case("attribute value state", "<a href='/a&lt;b'>", "/a%3Cb"),
    _case("named character reference state", "<a href=/a&copy=1>", "/a&copy=1"),
    _case("named character reference state", "<a href='/a?b&copy;=1'>", "/a?b%C2%A9=1"),
    _case("named character reference state", "<a href='/a?b&copyx'>", "/a?b&copyx"),
    _case("named character reference state", "<a href='/a?b&amp;amp;c'>", "/a?b&amp;c"),
    _case("numeric character reference end state", "<a href='/&#0;'>", "/%EF%BF%BD"),
    _case("numeric character reference end state", "<a href='/&#xD800;'>", "/%EF%BF%BD"),
    _case("numeric character reference end state", "<a href='/&#x110000;'>", "/%EF%BF%BD"),
    _case("numeric character reference end state", "<a href='/&#128;'>", "/%E2%82%AC"),
    _case("attribute value state", "<a href='/\0'>", "/%EF%BF%BD"),
    _case("attribute name state", "<a href=/1 href=/2>", "/1"),
    _case("attribute name state", "<A HREF=/x>", "/x"),
    _case("before attribute name state", "<a/href=/x>", "/x"),
    _case("attribute value state", "<a title='>' href=/x>", "/x"),
    _case("attribute value state", "<a href=/x/>", "/x/"),
    _case("attribute value state", "<a href='/x"),
    _case("tag open state", "< a href=/x><a\nhref=/y>", "/y"),
    _case("plaintext", "<plaintext><a href=/x>"),
    _case("raw text", "<xmp><a href=/x></xmp><style><a href=/y></style><title><a href=/z></title>"),
    _case("raw text", "<script>'<a href=/x>'</script><textarea><a href=/y></textarea>"),
    _case("script data double escaped state", "<script><!--<script></script><a href=/x>--></script><a href=/y>", "/y"),
    _case("the template element", "<template><a href=/x></template>"),
    _case("the noscript element", "<noscript><a href=/x></noscript>", "/x"),
    _case("bogus comment state", "<?a <a href=/x>"),
    _case("bogus comment state", "<![CDATA[<a href=/x>]]>"),
    _case("CDATA section state", "<svg><![CDATA[<a href=/x>]]></svg>"),
    _case("comment start state", "<!--><a href=/x>-->", "/x"),
    _case("comment end bang state", "<!-- --!><a href=/x>", "/x"),
    _case("comment state", "<!-- <a href=/x> -- > <a href=/y>"),
    _case("adoption agency", "<a href=/1>one<p>two<a href=/2>three</p></a>", "/1", "/2"),
    _case("foster parenting", "<table><a href=/1>one<tr><td><a href=/2>two</table>", "/1", "/2"),
]

CASES = [*REFRESH, *LINKS, *SYNTAX]

# document.title: the first title element that is no part of a drawing.
TITLES = [
    ("<title>a</title><title>b</title>", "a"),
    ("<title></title><title>b</title>", ""),
    ("<title> a\n\tb </title>", "a b"),
    ("<title>a<b>c</b></title>", "a<b>c</b>"),
    ("<title><!-- a --></title>", "<!-- a -->"),
    ("<title>&amp;lt; &notit;</title>", "&lt; ¬it;"),
    ("<body><p>x<title>t</title>", "t"),
    ("<svg><title>s</title></svg><title>t</title>", "t"),
    ("<svg><title>s</title></svg>", ""),
    ("<template><title>s</title></template><title>t</title>", "t"),
    ("<textarea><title>s</title></textarea>", ""),
    ("<!-- <title>s</title> --><title>t</title>", "t"),
    ("<title>t", "t"),
    ("<title", ""),
    ("<TITLE lang=en>t</TITLE >", "t"),
    ("", ""),
]

"""robots.txt files, and what they let which agent request, with the section of RFC 9309 that says so.

In texts, | is a line end: each such case is tried with LF, CRLF and CR. Files in bytes are as they are.
Where the RFC leaves it open, the section is "open", and the case says what we do.
"""

from typing import NamedTuple

AGENT = "Pavouk"


class Case(NamedTuple):
    """One file for one agent."""

    section: str
    name: str
    file: str | bytes
    allowed: str
    disallowed: str
    agent: str = AGENT


EXAMPLE = (
    "User-Agent: *|Disallow: *.gif$|Disallow: /example/|Allow: /publications/||"
    "User-Agent: foobot|Disallow:/|Allow:/example/page.html|Allow:/example/allowed.gif||"
    "User-Agent: barbot|User-Agent: bazbot|Disallow: /example/page.html||"
    "User-Agent: quxbot|||"
)
# A file as large as the RFC wants it read, and larger than we read it; the rule of interest is the last.
_COMMENT = b"# " + b"x" * 97 + b"\n"
_AT_500_KIB = b"User-agent: *\n" + _COMMENT * 5118 + b"Disallow: /a\n"
_BEYOND = b"User-agent: *\nDisallow: /b\n" + _COMMENT * 5400 + b"Disallow: /a\n"
_ALL = "User-agent: *|"

EXAMPLES = [
    Case("5.1", "everyone",
         EXAMPLE, "/ /gif /publications/ /x.gif?x /example", "/x.gif /example/ /example/x", "any"),
    Case("5.1", "everyone, longest match", EXAMPLE, "/publications/x.gif", "", "any"),
    Case("5.1", "foobot",
         EXAMPLE, "/example/page.html /example/allowed.gif", "/ /publications/ /example/", "foobot"),
    Case("5.1", "barbot", EXAMPLE, "/ /x.gif /example/ /example/page", "/example/page.html", "barbot"),
    Case("5.1", "bazbot", EXAMPLE, "/ /x.gif /example/", "/example/page.html /example/page.html?x", "bazbot"),
    Case("5.1", "quxbot: an empty group at the end",
         EXAMPLE, "/ /x.gif /example/ /example/page.html", "", "quxbot"),
    Case("5.2", "longest match", "User-Agent: foobot|Allow: /example/page/|Disallow: /example/page/disallowed.gif",
         "/ /example/page/ /example/page/x.gif", "/example/page/disallowed.gif", "foobot"),
    Case("5.2", "not for others", "User-Agent: foobot|Disallow: /", "/ /example/page/disallowed.gif", "", "foo"),
]  # fmt: skip

AGENTS = [
    Case("2.2.1", "small letters in the file", "User-agent: pavouk|Disallow: /", "", "/a"),
    Case("2.2.1", "capitals in the file", "User-agent: PAVOUK|Disallow: /", "", "/a"),
    Case("2.2.1", "capitals in our name", "User-agent: pavouk|Disallow: /", "", "/a", "PAVOUK"),
    Case("2.2.1", "our own version does not matter", "User-agent: pavouk|Disallow: /", "", "/a", "Pavouk/2.1"),
    Case("2.2.1", "our whole name",
         "User-agent: pavouk|Disallow: /", "", "/a", "Pavouk/2.1 (+http://example.org/bot)"),
    Case("2.2.1", "a version in the file", "User-agent: pavouk/1.0|Disallow: /", "", "/a"),
    Case("2.2.1", "a whole name in the file", "User-agent: Pavouk/1.0 (http://x.example/)|Disallow: /", "", "/a"),
    Case("2.2.1", "our name inside another's",
         "User-agent: Mozilla/5.0 (compatible; Pavouk/1.0)|Disallow: /", "/a", ""),
    Case("2.2.1", "a longer token", "User-agent: pavouk-images|Disallow: /", "/a", ""),
    Case("2.2.1", "a longer token, underscore", "User-agent: pavouk_images|Disallow: /", "/a", ""),
    Case("2.2.1", "a shorter token", "User-agent: pavouk|Disallow: /", "/a", "", "Pavouk-images"),
    Case("2.2.1", "hyphens belong to the token",
         "User-agent: pavouk-images|Disallow: /", "", "/a", "Pavouk-Images/1"),
    Case("2.2.1", "no beginning", "User-agent: p|Disallow: /|User-agent: pavou|Disallow: /", "/a", ""),
    Case("2.2.1", "a star is no part of a name",
         "User-agent: pav*|Disallow: /|User-agent: *ouk|Disallow: /", "/a", ""),
    Case("2.2.1", "beyond ASCII", "User-agent: pávouk|Disallow: /", "/a", ""),
    Case("2.2.1", "own group, not everyone's",
         "User-agent: *|Disallow: /a|User-agent: pavouk|Disallow: /b", "/a", "/b"),
    Case("2.2.1", "everyone's comes last",
         "User-agent: pavouk|Disallow: /b|User-agent: *|Disallow: /a", "/a", "/b"),
    Case("2.2.1", "nobody's", "User-agent: one|Disallow: /|User-agent: two|Disallow: /", "/ /a", ""),
    Case("2.2.1", "everyone else", "User-agent: one|Disallow: /a|User-agent: *|Disallow: /b", "/a", "/b"),
    Case("2.2.1", "own groups are merged",
         "User-agent: pavouk|Disallow: /a|User-agent: one|Disallow: /c|User-agent: PAVOUK|Disallow: /b",
         "/c", "/a /b"),
    Case("2.2.1", "merged from groups of several agents",
         "User-agent: one|User-agent: pavouk|Disallow: /a|User-agent: pavouk|User-agent: two|Disallow: /b",
         "/c", "/a /b"),
    Case("2.2.1", "the longest match counts across merged groups",
         "User-agent: pavouk|Disallow: /a|User-agent: pavouk/2|Allow: /a/b", "/a/b", "/a /a/c"),
    Case("2.2.1", "everyone's groups are merged",
         "User-agent: *|Disallow: /a|User-agent: *|Disallow: /b", "/c", "/a /b"),
    Case("2.2.1", "own and everyone's in one group", "User-agent: *|User-agent: pavouk|Disallow: /a", "/b", "/a"),
    Case("2.2.1", "own group has no rules", "User-agent: pavouk||User-agent: *|Disallow: /", "", "/a"),
    Case("2.2.1", "own group has only an empty rule",
         "User-agent: *|Disallow: /|User-agent: pavouk|Allow:", "/ /a", ""),
    Case("2.2.1", "own group ends the file", "User-agent: *|Disallow: /|User-agent: pavouk", "/ /a", ""),
    Case("2.2.1", "named twice", "User-agent: pavouk|User-agent: pavouk|Disallow: /a", "/b", "/a"),
    Case("2.2.1", "many agents",
         "".join(f"User-agent: a{n}|" for n in range(300)) + "User-agent: pavouk|Disallow: /a",
         "/b", "/a"),
]  # fmt: skip

GROUPS = [
    Case("2.1", "no file content", "", "/ /a /a?b", ""),
    Case("2.1", "only comments", "# User-agent: *|# Disallow: /|", "/ /a", ""),
    Case("2.1", "rules without a group", "Disallow: /|Allow: /a", "/ /a /b", ""),
    Case("2.1", "rules before the first group", "Disallow: /a|User-agent: *|Disallow: /b", "/a", "/b"),
    Case("2.2", "no blank line between groups",
         "User-agent: one|Disallow: /|User-agent: pavouk|Disallow: /b", "/a", "/b"),
    Case("2.2", "blank lines end no group", "User-agent: pavouk||Disallow: /a|||Disallow: /b", "/c", "/a /b"),
    Case("2.2", "blank lines between agents", "User-agent: pavouk|||User-agent: one|Disallow: /a", "/b", "/a"),
    Case("2.2", "comments end no group", "User-agent: pavouk|# one|Disallow: /a|# two|Disallow: /b", "/c", "/a /b"),
    Case("2.2", "rules of another's group", "User-agent: one|Disallow: /||Disallow: /a", "/ /a", ""),
    Case("2.2", "only allow", "User-agent: *|Allow: /a", "/ /a /b", ""),
    Case("2.2", "an unknown agent line", "Robot: pavouk|Disallow: /", "/ /a", ""),
    Case("2.2.4", "sitemap before all", "Sitemap: /s.xml|User-agent: *|Disallow: /a", "/b", "/a"),
    Case("2.2.4", "sitemap between agent and rule", "User-agent: *|Sitemap: /s.xml|Disallow: /a", "/b", "/a"),
    Case("2.2.4", "sitemap between agents",
         "User-agent: pavouk|Sitemap: /s.xml|User-agent: b|Disallow: /a", "/b", "/a"),
    Case("2.2.4", "crawl-delay between agents",
         "User-agent: pavouk|Crawl-delay: 1|User-agent: b|Disallow: /a", "/b", "/a"),
    Case("2.2.4", "an unknown record between agents", "User-agent: pavouk|Visit-time: 1|User-agent: b|Disallow: /a",
         "/b", "/a"),
    Case("2.2.4", "an unknown record between rules", "User-agent: *|Disallow: /a|Clean-param: x /|Disallow: /b",
         "/c", "/a /b"),
]  # fmt: skip

LINES = [
    Case("2.2", "capitals in names of fields", "USER-AGENT: *|DISALLOW: /a|aLLoW: /a/b", "/a/b", "/a"),
    Case("2.2", "no blanks", "User-agent:*|Disallow:/a", "/b", "/a"),
    Case("2.2", "blanks everywhere", "  User-agent  :  *  |\t Disallow \t:\t /a \t", "/b", "/a"),
    Case("2.2", "comments behind values",
         "User-agent: pavouk# we|Disallow: /a# this|Allow: /a/b  # that", "/a/b", "/a"),
    Case("2.2", "a comment is no pattern", "User-agent: *|Disallow: # nothing", "/ /a", ""),
    Case("2.2", "a comment cuts a pattern", "User-agent: *|Disallow: /a#b", "/b", "/a /ac"),
    Case("2.2", "empty disallow", "User-agent: *|Disallow:", "/ /a", ""),
    Case("2.2", "empty disallow besides others", "User-agent: *|Disallow:|Disallow: /a", "/b", "/a"),
    Case("2.2", "empty allow besides others", "User-agent: *|Allow:|Disallow: /a", "/b", "/a"),
    Case("2.2", "an address is no pattern", "User-agent: *|Disallow: http://example.org/a", "/ /a", ""),
    Case("2.2", "a pattern begins with a slash", "User-agent: *|Disallow: a", "/a /b/a", ""),
    Case("2.2", "no line end at the end", b"User-agent: *\nDisallow: /a", "/b", "/a"),
    Case("2.2", "all line ends in one file",
         b"User-agent: *\r\nDisallow: /a\rDisallow: /b\nDisallow: /c\r\n\r", "/d",
         "/a /b /c"),
    Case("2.2", "CR CR LF", b"User-agent: *\r\r\nDisallow: /a\r\r\nDisallow: /b\r\r\n", "/d", "/a /b"),
    Case("2.2", "other line ends are none",
         "User-agent: *|Disallow: /a\x0bDisallow: /b|Disallow: /c\u2028Disallow: /d",
         "/b /d /c /a", "/a%0BDisallow:%20/b"),
    Case("2.2", "NEL is no line end",
         "User-agent: *|Disallow: /a\x85Disallow: /b", "/b /a", "/a%C2%85Disallow:%20/b"),
    Case("2.3.1.5", "junk lines", "<<<|User-agent: *|?|Disallow|Disallow: /a|: /b|Allow|===", "/b", "/a"),
    Case("2.3.1.5", "a page", "<!doctype html>|<html><body>|<p>Disallow: /</p>|</html>", "/ /a", ""),
    Case("2.3.1.5", "a page in front", "<html>|User-agent: *|Disallow: /a", "/b", "/a"),
    Case("2.3.1.5", "NUL", b"\0\0User-agent: one\nUser-agent: *\n\0\nDisallow: /a\n", "/b", "/a"),
    Case("2.3.1.5", "binary", bytes(range(256)) * 20, "/ /a", ""),
    Case("2.3", "UTF-16 is not UTF-8", "User-agent: *\nDisallow: /\n".encode("utf-16"), "/ /a", ""),
    Case("open", "a byte order mark", b"\xef\xbb\xbfUser-agent: *\nDisallow: /a", "/b", "/a"),
    Case("open", "a byte order mark and a comment", b"\xef\xbb\xbf# x\nUser-agent: *\nDisallow: /a", "/b", "/a"),
    Case("open", "no UTF-8 in a comment", b"# caf\xe9\nUser-agent: *\nDisallow: /a # \xff\xfe", "/b", "/a"),
    Case("open", "no UTF-8 in a pattern",
         b"User-agent: *\nDisallow: /caf\xe9", "/caf /caf%C3%A9 /caf%E8", "/caf%E9"),
    Case("open", "misspelt", "Useragent: *|Dissalow: /a|Disalow: /b", "/c", "/a /b"),
    Case("2.5", "the last line within 500 KiB", _AT_500_KIB, "/b", "/a"),
    Case("2.5", "beyond what we read", _BEYOND, "/a", "/b"),
    Case("2.5", "a huge line",
         b"User-agent: *\nDisallow: /a\nDisallow: /" + b"b" * 400_000 + b"\nDisallow: /c", "/b",
         "/a /c"),
    Case("2.5", "many rules",
         _ALL + "|".join(f"Disallow: /{number}/" for number in range(3000)), "/3000/", "/0/ /2999/"),
]  # fmt: skip

MATCHES = [
    Case("2.2.2", "no match: allowed", "User-agent: *|Disallow: /a", "/ /b /ba /A", "/a"),
    Case("2.2.2", "from the first octet on",
         "User-agent: *|Disallow: /a/b", "/x/a/b /b", "/a/b /a/bc /a/b/c /a/b?c"),
    Case("2.2.2", "case matters", "User-agent: *|Disallow: /Path", "/path /PATH", "/Path/x"),
    Case("2.2.2", "robots.txt itself",
         "User-agent: *|Disallow: /", "/robots.txt", "/ /robots.tx /robots.txt.gz /x/robots.txt"),
    Case("2.2.2", "robots.txt itself, named",
         "User-agent: *|Disallow: /robots.txt", "/robots.txt", "/robots.txt.gz"),
    Case("2.2.2", "most octets: allow", "User-agent: *|Disallow: /a|Allow: /a/b", "/a/b /a/bc", "/a /a/c"),
    Case("2.2.2", "most octets: disallow", "User-agent: *|Allow: /a|Disallow: /a/b", "/a /a/c", "/a/b /a/bc"),
    Case("2.2.2", "three deep",
         "User-agent: *|Disallow: /|Allow: /a|Disallow: /a/b|Allow: /a/b/c", "/a /a/b/c", "/ /b /a/b"),
    Case("2.2.2", "equal: allow, first", "User-agent: *|Allow: /a|Disallow: /a", "/a /ab", ""),
    Case("2.2.2", "equal: allow, last", "User-agent: *|Disallow: /a|Allow: /a", "/a /ab", ""),
    Case("2.2.2", "equal after encoding", "User-agent: *|Disallow: /ツ|Allow: /%E3%83%84", "/%E3%83%84", ""),
    Case("2.2.2", "equally long, different", "User-agent: *|Allow: /page|Disallow: /*.ph", "/page.php", "/x.php"),
    Case("2.2.2", "a longer one with a star",
         "User-agent: *|Allow: /page|Disallow: /*.htm", "/page", "/page.htm /x.html"),
    Case("2.2.2", "all but the root", "User-agent: *|Disallow: /|Allow: /$", "/", "/a /?a /index.html"),
    Case("2.2.2", "the query belongs to it", "User-agent: *|Disallow: /a?b=1", "/a /a?c /a?b", "/a?b=1 /a?b=1&c"),
    Case("2.2.2", "any query", "User-agent: *|Disallow: /*?", "/ /a", "/?a /a? /a/b?c"),
    Case("2.2.2", "any parameter of a name",
         "User-agent: *|Disallow: /*?*id=", "/a?x=1 /id=", "/a?id=1 /a?x=1&id=2"),
    # the table of percent-encoding: pattern and URL as found, and as compared
    Case("2.2.2", "table 1", "User-agent: *|Disallow: /foo/bar?baz=quz", "/foo/bar", "/foo/bar?baz=quz"),
    Case("2.2.2", "table 2", "User-agent: *|Disallow: /foo/bar?baz=https://foo.bar", "/foo/bar?baz=http",
         "/foo/bar?baz=https://foo.bar /foo/bar?baz=https%3A%2F%2Ffoo.bar"),
    Case("2.2.2", "table 2, the other way",
         "User-agent: *|Disallow: /foo/bar?baz=https%3A%2F%2Ffoo.bar", "/foo/bar?baz",
         "/foo/bar?baz=https://foo.bar /foo/bar?baz=https%3a%2f%2ffoo.bar"),
    Case("2.2.2", "table 3",
         "User-agent: *|Disallow: /foo/bar/ツ", "/foo/bar/ /foo/bar/%E3%83%83", "/foo/bar/%E3%83%84"),
    Case("2.2.2", "table 4", "User-agent: *|Disallow: /foo/bar/%E3%83%84", "/foo/bar/%E3", "/foo/bar/%e3%83%84"),
    Case("2.2.2", "table 5",
         "User-agent: *|Disallow: /foo/bar/%62%61%7A", "/foo/bar/ba", "/foo/bar/baz /foo/bar/b%61z"),
    Case("2.2.2", "unreserved, escaped in the URL", "User-agent: *|Disallow: /~a-b_c.d", "/~", "/%7Ea%2Db%5Fc%2Ed"),
    Case("2.2.2", "reserved: slash", "User-agent: *|Disallow: /a%2Fb", "/a/b", "/a%2Fb /a%2fb"),
    Case("2.2.2", "reserved: slash, the other way", "User-agent: *|Disallow: /a/b", "/a%2Fb", "/a/b"),
    Case("2.2.2", "reserved: question mark", "User-agent: *|Disallow: /a%3Fb", "/a?b", "/a%3Fb /a%3fb"),
    Case("2.2.2", "reserved: question mark, the other way",
         "User-agent: *|Disallow: /*?", "/a%3Fb /%3f", "/a?b /a?%3F"),
    Case("2.2.2", "reserved: question mark in the query",
         "User-agent: *|Disallow: /a?b=%3Fc", "/a?b=", "/a?b=%3fc"),
    Case("open", "reserved, but the same to all servers",
         "User-agent: *|Disallow: /a:b@c", "/a:b", "/a:b@c /a%3Ab%40c"),
    Case("2.2.2", "reserved: hash", "User-agent: *|Disallow: /a%23b", "/a /ab", "/a%23b"),
    Case("2.2.2", "a percent sign is not decoded twice", "User-agent: *|Disallow: /a%2541", "/aA /a%41", "/a%2541"),
    Case("2.2.2", "case of escapes", "User-agent: *|Disallow: /%c4%8D", "/%C4%8E", "/%C4%8D /%c4%8d"),
    Case("open", "broken escapes", "User-agent: *|Disallow: /a%zz|Disallow: /b%", "/a%z /b", "/a%zz /b%"),
    Case("open", "a blank in a pattern", "User-agent: *|Disallow: /a b", "/a /ab /a+b", "/a%20b"),
    Case("open", "two slashes", "User-agent: *|Disallow: /a//b", "/a/b", "/a//b"),
]  # fmt: skip

SPECIALS = [
    Case("2.2.3", "star: any number of octets",
         "User-agent: *|Disallow: /a*b", "/a /acd /b", "/ab /acb /a/c/b /abc"),
    Case("2.2.3", "star at the end changes nothing", "User-agent: *|Disallow: /a*", "/ /b", "/a /ab /a/b"),
    Case("2.2.3", "star alone", "User-agent: *|Disallow: *", "/robots.txt", "/ /a"),
    Case("2.2.3", "slash and star", "User-agent: *|Disallow: /*", "/robots.txt", "/ /a"),
    Case("2.2.3", "star in front", "User-agent: *|Disallow: *.gif$", "/a.gif? /a.gifs /gif", "/a.gif /b/c.gif"),
    Case("2.2.3", "two stars are one", "User-agent: *|Disallow: /a**b", "/a /b", "/ab /acb"),
    Case("2.2.3", "several stars", "User-agent: *|Disallow: /*/b/*/d", "/b/c/d /a/b/d", "/a/b/c/d /a/x/b/c/x/d/e"),
    Case("2.2.3", "star and query", "User-agent: *|Disallow: /a*b", "/a", "/a?b /a?x=b"),
    Case("2.2.3", "a folder anywhere",
         "User-agent: *|Disallow: /*/private/", "/private/ /a/private", "/a/private/ /a/b/private/c"),
    Case("2.2.3", "end", "User-agent: *|Disallow: /a$", "/ab /a/ /a?b", "/a"),
    Case("2.2.3", "end after a slash", "User-agent: *|Disallow: /a/$", "/a /a/b", "/a/"),
    Case("2.2.3", "star and end",
         "User-agent: *|Disallow: /a/*.php$", "/a.php /a/b.php? /a/b.php5", "/a/b.php /a/b/c.php"),
    Case("2.2.3", "star, end, and the ending twice", "User-agent: *|Disallow: /*.php$", "/a.php.txt", "/a.php.php"),
    Case("2.2.3", "star before the end", "User-agent: *|Disallow: /a*$", "/b", "/a /ab"),
    Case("2.2.3", "end, allowed", "User-agent: *|Disallow: /a|Allow: /a.html$", "/a.html /b", "/a /a.html5"),
    Case("2.2.3", "a dollar inside is a character", "User-agent: *|Disallow: /a$b", "/a /ab", "/a$b /a$bc"),
    Case("2.2.3", "an escaped star is a character", "User-agent: *|Disallow: /path/file-with-a-%2A.html",
         "/path/file-with-a-x.html", "/path/file-with-a-*.html /path/file-with-a-%2A.html"),
    Case("2.2.3", "an escaped dollar is a character",
         "User-agent: *|Disallow: /path/foo-%24", "/path/foo- /path/foo",
         "/path/foo-$ /path/foo-%24 /path/foo-$x"),
    Case("2.2.3", "a star in the URL is a character",
         "User-agent: *|Disallow: /a*b$|Allow: /c", "/c*b", "/a*b /a*xb"),
    Case("2.2.3", "letters that mean something elsewhere", "User-agent: *|Disallow: /a.b+(c)[d]", "/axb /a.bb",
         "/a.b+(c)[d]"),
    Case("2.2.3", "a hash begins a comment", "User-agent: *|Disallow: /a #$", "/b", "/a /ab"),
]  # fmt: skip

CASES = [*EXAMPLES, *AGENTS, *GROUPS, *LINES, *MATCHES, *SPECIALS]

# Crawl-delay is no part of the RFC ("other records", §2.2.4): it belongs to its group, as with those who read it.
DELAYS: list[tuple[str, float | None]] = [
    ("User-agent: *|Crawl-delay: 10", 10.0),
    ("User-agent: *|Crawl-delay: 0.5", 0.5),
    ("User-agent: *|crawl-DELAY:3 # seconds", 3.0),
    ("User-agent: *|Crawl-delay: 0", 0.0),
    ("User-agent: *|Disallow: /a|Crawl-delay: 2|Disallow: /b", 2.0),
    ("User-agent: *|Crawl-delay: 2|User-agent: pavouk|Crawl-delay: 4", 4.0),
    ("User-agent: pavouk|Crawl-delay: 4|User-agent: *|Crawl-delay: 2", 4.0),
    ("User-agent: *|Crawl-delay: 2|Disallow:|User-agent: pavouk|Disallow: /a", None),
    ("User-agent: one|Crawl-delay: 2|Disallow:", None),
    ("User-agent: pavouk|User-agent: one|Crawl-delay: 2", 2.0),
    ("Crawl-delay: 2|User-agent: *|Disallow: /a", None),
    ("User-agent: pavouk|Crawl-delay: 1|User-agent: *|Crawl-delay: 9|Disallow: /", 1.0),
    ("User-agent: *|Crawl-delay: 9|User-agent: one|Crawl-delay: 1|Disallow: /", 9.0),
    ("User-agent: *|Crawl-delay:", None),
    ("User-agent: *|Crawl-delay: ten", None),
    ("User-agent: *|Crawl-delay: -3", None),
    ("User-agent: *|Crawl-delay: nan", None),
    ("User-agent: *|Crawl-delay: 1e999", None),
    ("User-agent: *|#Crawl-delay: 5", None),
]

SITEMAPS: list[tuple[str, list[str]]] = [
    ("Sitemap: https://example.org/s.xml", ["https://example.org/s.xml"]),
    ("sitemap:https://example.org/s.xml", ["https://example.org/s.xml"]),
    ("SITEMAP : https://example.org/s.xml # map", ["https://example.org/s.xml"]),
    ("User-agent: one|Disallow: /|Sitemap: https://example.org/s.xml", ["https://example.org/s.xml"]),
    ("Sitemap: https://example.org/1|User-agent: *|Sitemap: http://other.example/2?a=b",
     ["https://example.org/1", "http://other.example/2?a=b"]),
    ("Sitemap: https://example.org/s|Sitemap: https://example.org/s", ["https://example.org/s"]),
    ("Sitemap: /s.xml", ["https://example.org/s.xml"]),
    ("Sitemap: //other.example/s.xml", ["https://other.example/s.xml"]),
    ("Sitemap: https://example.org/č", ["https://example.org/%C4%8D"]),
    ("Sitemap: https://user:secret@example.org/s", ["https://example.org/s"]),
    ("Sitemap:", []),
    ("Sitemap: ftp://example.org/s.xml", []),
    ("Sitemap: http://[/", []),
    ("# Sitemap: https://example.org/s.xml", []),
    ("Disallow: /|Site: x", []),
]  # fmt: skip

"""Which pages are harmless: the parser is given what is called so, and must survive it in little time and memory."""

import subprocess
import sys

import pytest

from client import bounds

N = 6_000

HARMLESS = {
    "nothing": b"",
    "text": b"x" * 900_000,
    "paragraphs": b"<div><p>x</p></div>" * 1_000,
    "breaks": b"x<br>" * 5_000,
    "formatting": b"<p><b>x</b> <font color=red>y</font></p>" * 900,
    "long attribute": b"<img src='data:" + b"ab" * 450 + b"'>",
    "text with blanks": b"a &lt; b <p>" + b"x y </p>" * 5_000,
    "apostrophes": b"<p>don't</p>" * 2_900,
    "script": b"<script>" + b"if (a > b) { c = 1; }" * 2_000 + b"</script>",
    "kinds, each often": b"<p><b class=a>x</b><i>y</i><code class='z'>c</code></p>" * 700,
}
FONTS = b"".join(b"<font size=%d>" % number for number in range(1_000))
# As bad as it can be within the limits, each in another way.
WORST = {
    "nested": "b'<div>' * 6_000",
    "nested, closed by nothing": "b'<div></x>' * 3_000",
    "nested formatting": "b'<b>' * 6_000",
    "ruby": "b'<rt>' * 6_000",
    "items": "b'<li><dd>' * 3_000",
    "drawing": "b'<svg>' + b'<g>' * 3_000 + b'</x>' * 2_999",
    "misnested": "b'<b><p>' * 1_500 + b'</b>' * 3_000",
    "merged attributes": "b''.join(b'<body a%d>' % n for n in range(4_900))",
    "few kinds": "b''.join(b'<b a=%d>' % n for n in range(15)) * 3 + b'<p>x' * 1_900",
    "attributes of formatting": "b'<p><b ' + attributes(300) + b'>' + b'<p>x' * 1_200",
    "attributes of anchors": "b'<p><a ' + attributes(300) + b'>' + b'<p>x' * 990",
    "attributes of many tags": "(b'<p ' + attributes(250) + b'>') * 190",
    "new attributes": "b''.join(b'<p ' + attributes(150, 150 * n) + b'>' for n in range(300))",
    "a long value": "b'<p><b a=' + b'x' * 900 + b'>' + b'<p>x' * 5_900",
    "a style": "b'<p><b style=\"' + b'url(a)' * 150 + b'\">' + b'<p>x' * 5_900",
    "relations": "b'<p><a rel=\"nofollow ' + b'ab ' * 300 + b'\" href=x>' + b'<p>x' * 5_900",
    "styles in styles": "b'<svg>' + b'<style>' * 5_990 + b'url(a)' * 150_000",
    "compared attributes": "b''.join(b'<b %b/x%d>' % (attributes(200), n) for n in range(40))",
}
NOT_HARMLESS = {
    "many bytes": b"x" * 1_000_001,
    "many tags": b"<i></i>" * N,
    "nested": b"<div>" * (N + 1),
    "open formatting": b"<p>" + FONTS + b"<p>x" * 1_000,
    "open formatting, closed in a comment only": b"<p>" + FONTS + b"<!--" + b"</font>" * 1_000 + b"--><p>x" * 1_000,
    "open formatting, closed in tables": FONTS.replace(b">", b"><table><td></font></table>") + b"<p>x" * 900,
    "open formatting, a > in quotes": b"<p>" + FONTS.replace(b"size=", b"a='\"' b=\">\" size=") + b"<p>x" * 1_000,
    "open formatting in capitals": b"<p>" + FONTS.replace(b"font", b"FONT") + b"<p>x" * 1_000,
    "few kinds left open in many paragraphs": b"<p>" + FONTS[:600] + b"<p>x" * 5_000,
    "copied attributes": b"<p><b " + b"/".join(b"%x" % number for number in range(900)) + b">" + b"<p>x" * 5_900,
    "copied attributes, few tags": b"<p><b " + b"/".join(b"%x" % n for n in range(6_000)) + b">" + b"<p>x" * 490,
    "copied attributes of an anchor": b"<p><a " + b"/".join(b"%x" % n for n in range(300)) + b">" + b"<p>x" * 5_900,
    "without blanks between": b"<p><a " + b"".join(b'a%d="x"' % n for n in range(80)) + b">" + b"<p>x" * 5_900,
    "copied value": b"<p><b a=" + b"x" * 900_000 + b">" + b"<p>x" * 490,
    "nobr in tables": b"<p>" + b"".join(b"<table><nobr a=%d></table>x" % n for n in range(1_000)) + b"<p>x" * 2_000,
    "white space of others": b"<p>" + b"".join(b'<b a=\x0b"x y=" >%d">' % n for n in range(600)) + b"<p>x" * 3_500,
    "merged attributes": b"".join(b"<body a%d>" % number for number in range(5_100)),
    "new attributes": b"".join(b"<p %b>" % b"/".join(b"%x" % (200 * n + m) for m in range(190)) for n in range(300)),
    "many attributes": b"<a " + b" ".join(b"a%d" % number for number in range(10_000)) + b">",
    "many attributes behind a > in quotes": b"<a b='>' " + b">' ".join(b"a%d='" % number for number in range(9_000)),
}


@pytest.mark.parametrize("name", HARMLESS)
def test_harmless_pages_are_known_as_such(name: str) -> None:
    assert bounds.is_harmless(HARMLESS[name])
    assert bounds.parsable(HARMLESS[name]) == HARMLESS[name]
    assert bounds.harmless_beginning(HARMLESS[name]) == HARMLESS[name]


@pytest.mark.parametrize("name", NOT_HARMLESS)
def test_of_others_a_beginning_is_harmless(name: str) -> None:
    html = NOT_HARMLESS[name]
    assert not bounds.is_harmless(html)
    part = bounds.harmless_beginning(html)
    assert bounds.is_harmless(part)
    assert html.startswith(part)
    good = b"<title>x</title><a href=x>y</a>"
    assert len(bounds.harmless_beginning(good * 50 + html)) >= len(good * 50) / 2, "what comes before the trouble"


_CHILD = """
import resource, sys
from client import bounds
from client.reading.seen import Wanted, see
def attributes(number, first=0):
    return b"/".join(b"%x" % each for each in range(first, first + number))
html = {html}
assert bounds.is_harmless(html)
before = resource.getrusage(resource.RUSAGE_SELF)
see(html, Wanted(True, True))
after = resource.getrusage(resource.RUSAGE_SELF)
print(after.ru_utime - before.ru_utime, after.ru_maxrss - before.ru_maxrss)
"""


@pytest.mark.parametrize("name", WORST)
def test_the_worst_that_is_called_harmless_costs_little(name: str) -> None:
    command = [sys.executable, "-c", _CHILD.replace("{html}", WORST[name])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    seconds, kilobytes = map(float, done.stdout.split())
    assert seconds < 3  # some tenths on a quiet machine
    assert kilobytes < 80_000


def test_no_more_than_the_limits_is_parsed() -> None:
    assert len(bounds.parsable(b"x" * (bounds.MAX_BYTES + 1))) == bounds.MAX_BYTES
    assert bounds.parsable(b"<i>" * (bounds.MAX_TAGS + 1)) == b"<i>" * bounds.MAX_TAGS


def test_a_tag_that_nearly_matches_takes_no_time() -> None:
    tag = b"<b " + b"a=/b=" * 160 + b'"'
    assert not bounds.is_harmless(tag * 1_000)  # a careless expression takes years to say so

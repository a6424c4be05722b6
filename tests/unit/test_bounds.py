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
    "long attribute": b"<img src='data:" + b"ab" * 100_000 + b"'>",
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
    "merged attributes": "b''.join(b'<body a%d>' % n for n in range(6_000))",
    "few tags": "b''.join(b'<font a=%d>' % n for n in range(250)) + b'<p>x' * 250",
    "few kinds": "b''.join(b'<b a=%d>' % n for n in range(25)) * 3 + b'<p>x' * 1_900",
    "attributes of one tag": "b'<a ' + b'/'.join(b'%x' % n for n in range(6_000)) + b'>'",
    "attributes of many tags": "(b'<a ' + b'/'.join(b'%x' % n for n in range(400)) + b'>') * 600",
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
    assert len(part) > 500


_CHILD = """
import resource, sys
from client import bounds
from client.reading.seen import Wanted, see
html = {html}
assert bounds.is_harmless(html)
before = resource.getrusage(resource.RUSAGE_SELF)
see(html, Wanted(True, True))
after = resource.getrusage(resource.RUSAGE_SELF)
print(after.ru_utime - before.ru_utime, after.ru_maxrss - before.ru_maxrss)
"""


@pytest.mark.parametrize("name", WORST)
def test_the_worst_that_is_called_harmless_costs_little(name: str) -> None:
    command = [sys.executable, "-c", _CHILD.format(html=WORST[name])]
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
    bounds.is_harmless(tag * 1_000)  # a careless expression takes years

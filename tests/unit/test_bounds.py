"""Pages built to hurt the parser are cut before they do; others are left whole."""

import pytest

from client import bounds

N = 100_000

HARMLESS = {
    "nothing": b"",
    "text": b"x" * 1_000_000,
    "closed": b"<div><p>x</p></div>" * 20_000,
    "unclosed paragraphs and items": b"<ul>" + b"<li>x<p>y" * 30_000,
    "breaks": b"x<br>" * 100_000,
    "formatting closed": b"<p><b>x</b> <font color=red>y</font></p>" * 20_000,
    "long attribute": b"<img src='data:" + b"a/b " * 100_000 + b"'>",
    "script full of tags": b"<script>" + b"'<div>'" * 50_000 + b"</script><a href=x>",
    "script that compares": b"<script>for (i=0; i<n; i++) {" + b" a = b / c;" * 10_000 + b"</script><a href=x>",
    "text with blanks": b"a < b " + b"x y " * 100_000,
    "comment full of tags": b"<!--" + b"<div>" * 50_000 + b"--><a href=x>",
    "deep": b"<div>" * 1_000 + b"x" + b"</div>" * 1_000,
}
FONTS = b"".join(b"<font size=%d>" % number for number in range(1_000))
HOSTILE = {
    "nested": b"<div>" * N,
    "nested and closed": b"<div>" * N + b"</div>" * N,
    "nested behind wrong end tags": b"<div></x>" * N,
    "many tags": b"<i></i>" * 200_000,
    "many links": b"".join(b"<a href=/%d>x</a>" % number for number in range(400_000)),
    "open formatting": b"".join(b"<font size=%d><p>" % number for number in range(5_000)),
    "open formatting, small": b"".join(b"<font size=%d><p>" % number for number in range(1_500)),
    "open formatting, closed in a comment only": b"<p>"
    + FONTS
    + b"<!--"
    + b"</font>" * 1_000
    + b"-->"
    + b"<p>x" * 5_000,
    "open formatting, closed in a script only": b"<p>"
    + FONTS
    + b"<script>"
    + b"</font>" * 1_000
    + b"</script>"
    + b"<p>x" * 5_000,
    "open formatting, other end tags": b"<p>" + FONTS.replace(b">", b"></b></zz>") + b"<p>x" * 5_000,
    "open formatting, a > in quotes": b"<p>" + FONTS.replace(b"size=", b'a=\'"\' b=">" size=') + b"<p>x" * 5_000,
    "open formatting in capitals": b"<p>" + FONTS.replace(b"font", b"FONT") + b"<p>x" * 5_000,
    "few kinds left open in many paragraphs": b"<p>" + FONTS[:600] + b"<p>x" * 15_000,
    "many attributes": b"<a " + b" ".join(b"a%d" % number for number in range(N)) + b">",
    "merged attributes": b"".join(b"<body a%d>" % number for number in range(N)),
    "merged attributes, fewer": b"".join(b"<BODY a%d>" % number for number in range(5_000)),
    "too large": b"x" * (bounds.MAX_BYTES + 1),
}


@pytest.mark.parametrize("name", HARMLESS)
def test_harmless_pages_are_left_whole(name: str) -> None:
    assert bounds.parsable(HARMLESS[name]) == HARMLESS[name]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pages_are_cut(name: str) -> None:
    part = bounds.parsable(HOSTILE[name])
    assert len(part) < len(HOSTILE[name])
    assert HOSTILE[name].startswith(part)
    assert bounds.parsable(part) == part


def test_what_comes_before_the_trouble_is_kept() -> None:
    good = b"<p>x</p><a href=y>z</a>" * 100
    assert bounds.parsable(good + b"<div>" * N) == good + b"<div>" * bounds.MAX_DEPTH
    assert bounds.parsable(good + HOSTILE["many attributes"]) == good


def test_a_tag_that_nearly_matches_takes_no_time() -> None:
    tag = b"<b " + b"a=/b=" * 600 + b'"'
    assert bounds.parsable(tag * 2_000) is not None  # a careless expression takes years

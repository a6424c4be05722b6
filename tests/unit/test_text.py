"""What a reader sees of a page, and what the page says about itself."""

import pytest
from selectolax.lexbor import LexborHTMLParser

from client import text, walk


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<p>one<p>two", "one two"),
        ("<p>H<sub>2</sub>O</p>", "H2O"),
        ("<b>w</b>ord", "word"),
        ("<ul><li>one<li>two</ul>three", "one two three"),
        ("<div>one</div><span>two</span>", "one two"),
        ("one<br>two<hr>three<img>four", "one two three four"),
        ("<table><tr><td>a<td>b<tr><td>c</table>d", "a b c d"),
        ("  one \n\t two&nbsp;three ", "one two three"),
        ("a<script>x</script><style>y</style><noscript><p>z<b>!</b></p></noscript><template>t</template>b", "ab"),
        ("a<iframe>x</iframe><!-- y -->b<title>z</title>c", "abc"),
        ("<body><noscript>a<noscript>b</noscript></noscript>c", "c"),
        ("<textarea>typed</textarea><select><option>a<option>b</select>", "typed a b"),
        ("<a><div>one</div></a>two <a><b>thr</b></a>ee", "one two three"),
        ("<p>one</p><script>x</script><!-- y --><i></i>two", "one two"),
        ("<b>o<!-- y --><script>x</script>n<i></i><i>e</i></b>", "one"),
        ("<div><b><p>one</p></b></div><b><i>two</i></b>", "one two"),
        ("<div>on<b>e</b><b><i>l</i></b>ine</div>", "oneline"),
        ("<div><p>x</p>y<b>z</b></div>", "x yz"),
        ("<xmp>one</xmp>two<listing>three</listing>four<plaintext>five", "one two three four five"),
        ("<frameset><frame></frameset>", ""),
        ("", ""),
        ("<head><title>not this</title></head>", ""),
    ],
)
def test_visible_text(html: str, expected: str) -> None:
    assert walk.walk(LexborHTMLParser(html)).text == expected


def test_visible_text_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk, "MAX_TEXT_LENGTH", 20)
    assert walk.walk(LexborHTMLParser("<p>" + "word " * 100)).text == "word word word word"


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<title> A \n title </title>", "A title"),
        ("<title>a &amp; <b>b</b></title>", "a & <b>b</b>"),
        ("<title></title><title>second</title>", ""),
        ("<svg><title>drawing</title></svg>", ""),
        ("<svg><title>drawing</title></svg><p><title>late</title>", "late"),
        ("<body><title>in the body</title>", "in the body"),
        ("<p>none", ""),
        ("<title>" + "x" * 5000, "x" * text.MAX_TITLE_LENGTH),
    ],
)
def test_title(html: str, expected: str) -> None:
    assert text.title(LexborHTMLParser(html)) == expected


def test_meta() -> None:
    html = (
        "<meta name=Description content=' What\nit is '><meta name=description content=second>"
        "<meta name=keywords><meta property=author content=x>"
    )
    metas = walk.walk(LexborHTMLParser(html)).metas
    assert text.meta(metas, ("description", "keywords", "author")) == ["What it is", "", ""]

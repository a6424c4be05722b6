"""Encodings: the order in which browsers look, the labels they know, and no exception for any input."""

import codecs
import threading
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from client import charset
from tests.packages import debian_pages

APACHE = debian_pages("apache2-doc")
NOISE_SECONDS = 0.4  # that a busy machine may add
CZECH = "Příliš žluťoučký kůň úpěl ďábelské ódy. "
RUSSIAN = "Съешь же ещё этих мягких французских булок, да выпей чаю. "
JAPANESE = "こんにちは世界。日本語のページです。"
KOREAN = "한국어 페이지입니다. 안녕하세요 여러분 "
CHINESE = "這是一個中文網頁，歡迎光臨我們的網站。"

LABELS = [
    ("UTF-8", "utf-8"),
    (" utf8\n", "utf-8"),
    ("'utf-8'", "utf-8"),
    ("latin1", "windows-1252"),
    ("ISO-8859-1", "windows-1252"),
    ("us-ascii", "windows-1252"),
    ("iso-8859-9", "windows-1254"),
    ("ISO-8859-2", "iso-8859-2"),
    ("x-sjis", "shift_jis"),
    ("Windows-31J", "shift_jis"),
    ("gb2312", "gbk"),
    ("ks_c_5601-1987", "euc-kr"),
    ("utf-16", "utf-16le"),
    ("unicodefffe", "utf-16be"),
    ("x-user-defined", "windows-1252"),
    ("", None),
    ("utf-7", None),
    ("rot13", None),
    ("base64", None),
    ("idna", None),
    ("hz-gb-2312", None),
    ("none", None),
    ("\u212aoi8-r", None),  # a Kelvin sign, whose small letter is k
    ("utf-8;", None),
]

# What the standard's prescan finds in the first bytes of a page.
DECLARATIONS = [
    (b"<meta charset=iso-8859-2>", "iso-8859-2"),
    (b'<META CHARSET = "ISO-8859-2" >', "iso-8859-2"),
    (b"<meta\tcharset='koi8-r'/>", "koi8-r"),
    (b"<meta/charset=koi8-r>", "koi8-r"),
    (b"<meta name=x charset=koi8-r>", "koi8-r"),
    (b'<meta http-equiv=Content-Type content="text/html; charset=windows-1250">', "windows-1250"),
    (b'<meta content="text/html; charset = \'windows-1250\'" http-equiv="content-type">', "windows-1250"),
    (b'<meta http-equiv=refresh content="text/html; charset=windows-1250">', None),
    (b'<meta content="text/html; charset=windows-1250">', None),
    (b"<meta charset=utf-16>", "utf-8"),
    (b"<meta charset=utf-16be>", "utf-8"),
    (b"<meta charset=nonsense><meta charset=koi8-u>", "koi8-u"),
    (b"<!-- <meta charset=koi8-r> --><meta charset=koi8-u>", "koi8-u"),
    (b"<!--><meta charset=koi8-u>-->", "koi8-u"),
    (b"<p title='<meta charset=koi8-r>'><meta charset=koi8-u>", "koi8-u"),
    (b"<!doctype html><?x ?></x><meta charset=koi8-u>", "koi8-u"),
    (b"<metadata charset=koi8-r>", None),
    (b"<meta charset=koi8-r charset=koi8-u>", "koi8-r"),
    (b" " * 1000 + b"<meta charset=koi8-r>", "koi8-r"),
    (b" " * 1030 + b"<meta charset=koi8-r>", "koi8-r"),
    (b" " * 1010 + b"<meta charset=koi8-r>", "koi8-r"),
    (b"<!--" + b" " * 1030 + b"<meta charset=koi8-u> <script>--><META CHARSET=koi8-r>", "koi8-r"),
    (b" " * 1030 + b"<script>'<meta charset=koi8-u>'</script><meta charset=koi8-r>", "koi8-r"),
    (b" " * 1030 + b"<style><meta charset=koi8-u><!--", None),
    (b" " * 1030 + b"<meta charset=utf-16>", "utf-8"),
    (b"<?xml version='1.0' encoding='iso-8859-2'?>" + b" " * 1030 + b"<meta charset=koi8-r>", "iso-8859-2"),
    (b" " * 40_000 + b"<meta charset=koi8-r>", None),
    (b"<meta charset=koi8-r", None),
    (b"<meta charset=koi8-r\">", None),
    (b"<meta http-equiv=Content-Type content='text/html; charset=koi8-r\"x'>", None),
    (b"<meta charset=''><meta charset=koi8-r>", "koi8-r"),
    (b"<?xml version='1.0' encoding='iso-8859-2'?><html>", "iso-8859-2"),
    (b"<?xml version='1.0' encoding='utf-16'?><html>", "utf-8"),
    (b"<?xml version='1.0' encoding='iso-8859-2'?><meta charset=koi8-r>", "koi8-r"),
]


# The Encoding standard's tables where Python's codec of the same name has another, or is easily confused.
TEXTS = [
    ("euc-kr", b"\xb0\xa1\x8c\x63", "가똠"),
    ("shift_jis", b"\x87\x40\x81\x60\x5c\x7e\xb1\xed\x40\xfa\x40", "①～\\~ｱ纊ⅰ"),
    ("euc-jp", b"\xc6\xfc\xcb\xdc\x8e\xb1\x8f\xb0\xa1", "日本ｱ丂"),
    ("euc-jp", b"\xad\xa1\xad\xea\xad\xb5\xad\xe2\xf9\xa1a", "①㈱Ⅰ№纊a"),
    ("euc-jp", b"a\xffb\xa1", "a\ufffdb\ufffd"),
    ("iso-2022-jp", b"\x1b$BF|\x1b(B a \x1b(I1\x1b(B", "日 a ｱ"),
    ("gb2312", b"\xd6\xd0\x81\x40\xa2\xe3", "中丂€"),
    ("gb18030", b"\x81\x30\x81\x30", "\x80"),
    ("big5", b"\xa4\xa4\x87\x40\xf9\xd6", "中䏰碁"),
    ("iso-8859-1", b"\x80\x93", "€“"),
    ("iso-8859-9", b"\x80\xfd", "€ı"),
    ("tis-620", b"\xa1\x80", "ก€"),
    ("macintosh", b"\xdb", "€"),
    ("x-mac-cyrillic", b"\xff\xa2", "€Ґ"),
    ("iso-8859-8-i", b"\xe0", "א"),
    ("windows-1253", b"\xaa", "\ufffd"),
    ("utf-8", b"\xed\xa0\x80 \xf0\x9f\x98x \xc0\x80", "\ufffd\ufffd\ufffd \ufffdx \ufffd\ufffd"),
]
AS_PYTHON_HAS_IT = pytest.mark.xfail(reason="as Python's codec has it")
# Known differences of Python's codecs that are left: rare characters, and some that look the same.
DIFFERENT_TEXTS = [
    ("euc-jp", b"\xa1\xc1\xa1\xdd", "～－"),
    ("iso-2022-jp", b"\x1b$B-!\x1b(B", "①"),
    ("gbk", b"\x80", "€"),
    ("big5", b"\xa3\xe1", "€"),
    ("koi8-u", b"\xae\xbe", "ўЎ"),
    ("windows-1255", b"\xca", "\u05ba"),
    ("windows-1252", b"\x81", "\x81"),
    ("x-user-defined", b"\x80", "\uf780"),
]


@pytest.mark.parametrize(
    ("label", "body", "text"),
    [*TEXTS, *(pytest.param(*row, marks=AS_PYTHON_HAS_IT) for row in DIFFERENT_TEXTS)],
)
def test_texts(label: str, body: bytes, text: str) -> None:
    assert charset.decode(body, label)[0] == text


@pytest.mark.parametrize(("label", "name"), LABELS)
def test_labels(label: str, name: str | None) -> None:
    assert charset.encoding_for(label) == name


def test_every_encoding_has_a_codec() -> None:
    for name in set(charset._NAME_OF_LABEL.values()):
        assert charset.text_of(b"<a>", name) or name.startswith("utf-16")


@pytest.mark.parametrize(("head", "name"), DECLARATIONS)
def test_declarations_in_the_page(head: bytes, name: str | None) -> None:
    assert charset.encoding_of(head, "") == (name or "utf-8")


@pytest.mark.parametrize(
    ("mark", "codec", "name"),
    [
        (codecs.BOM_UTF8, "utf-8", "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le", "utf-16le"),
        (codecs.BOM_UTF16_BE, "utf-16-be", "utf-16be"),
    ],
)
def test_a_byte_order_mark_beats_everything_and_is_no_text(mark: bytes, codec: str, name: str) -> None:
    text = "<meta charset=koi8-r>" + CZECH
    assert charset.decode(mark + text.encode(codec), "iso-8859-2") == (text, name)


def test_the_header_beats_the_page() -> None:
    body = b"<meta charset=koi8-r>" + CZECH.encode("iso-8859-2")
    assert charset.decode(body, "ISO-8859-2")[1] == "iso-8859-2"
    assert charset.decode(body, "nonsense")[1] == "koi8-r"


# Charset of the header, what the page says, in what it is, which one is taken.
WRONG_HEADERS = [
    ("utf-8", "euc-kr", KOREAN.encode("cp949"), "euc-kr"),
    ("utf-8", "windows-1251", RUSSIAN.encode("cp1251"), "windows-1251"),
    ("utf-8", "euc-jp", "①".join(JAPANESE).encode("cp932"), "utf-8"),  # neither
    ("utf-8", "euc-jp", JAPANESE.encode("euc-jp") + b"\xad\xa1", "euc-jp"),  # with a row that Python's codec lacks
    ("utf-8", "iso-8859-2", CZECH.encode("iso-8859-2"), "iso-8859-2"),
    ("utf-8", "iso-8859-2", CZECH.encode() + b"\xe1", "utf-8"),  # one damaged character
    ("utf-8", "gbk", CHINESE.encode() + b"\xa0", "utf-8"),
    ("utf-8", "iso-8859-2", CZECH.encode()[:-2], "utf-8"),
    ("utf-8", "nonsense", KOREAN.encode("cp949"), "utf-8"),
    ("utf-8", "utf-16", KOREAN.encode("cp949"), "utf-8"),
    ("iso-8859-1", "utf-8", CZECH.encode() + "Á".encode(), "utf-8"),  # 0x81 is no character
    ("iso-8859-1", "utf-8", "café".encode(), "windows-1252"),  # is a text, if a strange one
    ("iso-8859-1", "iso-8859-2", CZECH.encode("iso-8859-2") + b"\x81", "windows-1252"),
    ("euc-kr", "utf-8", KOREAN.encode(), "utf-8"),
    ("us-ascii", "koi8-r", b"plain", "windows-1252"),
]


@pytest.mark.parametrize(("header", "declared", "text", "name"), WRONG_HEADERS)
def test_a_header_in_which_the_bytes_are_no_text(header: str, declared: str, text: bytes, name: str) -> None:
    assert charset.encoding_of(f"<meta charset={declared}>".encode() + text, header) == name
    assert charset.encoding_of(f'<?xml version="1.0" encoding="{declared}"?><p>'.encode() + text, header) == name
    assert charset.encoding_of(text, header) == charset.encoding_for(header), "without a word of its own"


@pytest.mark.skipif(APACHE is None, reason="apache2-doc could not be had")
def test_real_pages_with_a_wrong_header() -> None:
    """As `AddDefaultCharset UTF-8` makes them: the manual of Apache in ten languages."""
    assert APACHE is not None
    found = {path: charset.encoding_of(path.read_bytes(), "utf-8") for path in APACHE.rglob("*.html")}
    assert {name for path, name in found.items() if path.relative_to(APACHE).parts[1] != "ko"} == {"utf-8"}
    korean = [path for path, name in found.items() if name == "euc-kr"]
    assert len(korean) > 100
    assert all("\ufffd" not in charset.decode(path.read_bytes(), "utf-8")[0] for path in korean)


def test_latin1_is_read_as_windows_1252() -> None:
    assert charset.decode(b"\x93quoted\x94 \x80", "iso-8859-1") == ("“quoted” €", "windows-1252")


def test_nothing_declared_and_valid_is_utf_8() -> None:
    assert charset.decode(CZECH.encode(), "") == (CZECH, "utf-8")
    assert charset.decode(b"plain", "") == ("plain", "utf-8")
    assert charset.decode(b"", "") == ("", "utf-8")


@pytest.mark.parametrize(
    ("text", "codec", "name"),
    [
        (CZECH * 5, "cp1250", "windows-1250"),
        (RUSSIAN * 5, "cp1251", "windows-1251"),
        (RUSSIAN * 5, "koi8-r", "koi8-r"),
        (JAPANESE * 8, "cp932", "shift_jis"),
        (JAPANESE * 8, "euc-jp", "euc-jp"),
        (KOREAN * 8, "cp949", "euc-kr"),
        (CHINESE * 8, "big5", "big5"),
    ],
)
def test_detection(text: str, codec: str, name: str) -> None:
    page = f"<html><body><p>{text}</p></body></html>"
    assert charset.decode(page.encode(codec), "") == (page, name)


def test_what_nobody_can_detect_is_windows_1252() -> None:
    assert charset.decode(b"caf\xe9", "") == ("café", "windows-1252")


def test_undecodable_bytes_are_replaced() -> None:
    assert charset.decode(b"a\xffb", "utf-8") == ("a\ufffdb", "utf-8")
    assert charset.decode(b"a\x81b", "windows-1252") == ("a\ufffdb", "windows-1252")
    assert charset.decode(b"a\x00\xd8", "utf-16") == ("a\ufffd", "utf-16le")


@given(st.sampled_from(sorted(set(charset._NAME_OF_LABEL.values()) - {"euc-jp"})), st.binary(max_size=300))
@example("utf-16le", b"a\0\0\xdc" * 20_000 + b"\0")
@example("utf-16be", b"\xfe\xff\0a" + b"\xd8\0\xdc\0" * 50_000 + b"\xd8\0\0a\xd8")
def test_text_is_what_the_codec_makes_of_it(name: str, body: bytes) -> None:
    expected = body.decode(charset._CODECS.get(name, name), "replace").removeprefix("\ufeff")
    assert charset.text_of(body, name) == expected


@pytest.mark.parametrize(("name", "octets"), [
    ("windows-1253", b"\xd2"), ("iso-8859-6", b"\xff"), ("euc-jp", b"\xff"), ("euc-jp", b"\xad\xa1"),
    ("gb18030", b"\xff"), ("iso-2022-jp", b"\x80"), ("utf-8", b"\xff"), ("utf-16le", b"\x00\xdc"),
    ("utf-16be", b"\xdc\x00"),
])  # fmt: skip
def test_what_is_no_text_holds_up_no_other_thread(name: str, octets: bytes) -> None:
    """Codecs that call a handler for each octet do so in one go, which nobody can interrupt."""
    body = octets * ((1_000_000 if name == "euc-jp" else 8_000_000) // len(octets))
    ended, gaps = threading.Event(), [0.0]

    def work_meanwhile() -> None:
        before = time.monotonic()
        while not ended.wait(0.001):
            gaps.append(time.monotonic() - before)
            before = time.monotonic()

    other = threading.Thread(target=work_meanwhile)
    other.start()
    began = time.thread_time()
    charset.text_of(body, name)
    seconds = time.thread_time() - began
    ended.set()
    other.join()
    assert seconds < 0.5 + NOISE_SECONDS
    assert max(gaps) < 0.1 + NOISE_SECONDS


def test_euc_jp_is_mended_unless_most_of_it_is_none() -> None:
    assert charset.text_of(b"\xad\xa1" * 20_000, "euc-jp") == "①" * 20_000
    assert charset.text_of(b"\xad\xa1" * 20_001, "euc-jp")[0] != "①"
    assert charset.text_of("漢字".encode("euc-jp") * 500_000 + b"\xad\xa1", "euc-jp").endswith("漢字①")


def test_detection_reads_a_sample_only(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    monkeypatch.setattr(charset, "_guessed", lambda sample: seen.append(len(sample)) or "koi8-r")
    assert charset.encoding_of(b"a" * 5_000_000 + b"\xff" * 5_000_000, "") == "koi8-r"
    assert seen == [charset._SAMPLE_BYTES]


@given(st.binary(max_size=200) | st.from_regex(rb"<meta [a-z\-=\"' ;/>]{0,60}"), st.text(max_size=20))
@example(b"<meta charset='", "")
@example(b"<!--", "")
@example(b"<meta http-equiv=content-type content=charset=", "\x00")
def test_never_an_exception(body: bytes, label: str) -> None:
    text, name = charset.decode(body, label)
    assert charset.encoding_for(name) == name
    text.encode()  # no lone surrogates: what follows works in UTF-8

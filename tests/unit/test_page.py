"""data.xml: valid against page.xsd whatever a page contains, and everything comes back."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lxml import etree

import common.page
from common.errors import BundleError
from common.page import PageMeta, PageText, iso_time, len_in_xml, page_xml, read_page_xml

SCHEMA = etree.XMLSchema(etree.parse(Path(common.page.__file__).with_name("page.xsd")))
META = PageMeta(
    url="http://example.org/",
    original_url="http://example.org/index.html",
    final_url="http://example.org/index.html?x=1&y='2'",
    title="A title",
    crawl_time=1_700_000_000.9,
    status=200,
    content_type="text/html",
    encoding="utf-8",
    etag='W/"x"',
    last_modified="Tue, 14 Nov 2023 22:13:20 GMT",
    server_date="Tue, 14 Nov 2023 22:13:20 GMT",
    sha1="a" * 40,
    digest="b" * 40,
)
HOSTILE = "<&>\"']]>\x00\x01\x08\t\n\r\x0b\x0c\x1f\x7f\x85\ud800\udfff\ufffe\uffff\U0001f577&amp;<!--<![CDATA["

_texts = st.text(max_size=50) | st.just(HOSTILE)
_urls = st.text("ac/?&='()%;|[]^{}\"<", max_size=20).map("http://example.org/".__add__)


def _as_stored(text: str) -> str:
    """What XML 1.0 can not carry is replaced; everything else must come back."""
    return "".join(character if _is_xml(ord(character)) else "\ufffd" for character in text)


def _is_xml(code: int) -> bool:
    """The production Char of XML 1.0."""
    return code in (9, 10, 13) or 32 <= code <= 0xD7FF or 0xE000 <= code <= 0xFFFD or code >= 0x10000


def _parsed(xml: bytes) -> etree._Element:
    root = etree.fromstring(xml)
    SCHEMA.assertValid(root)
    return root


def _value(root: etree._Element, path: str) -> str:
    return root.findtext(path) or ""


@given(_texts, _texts, _texts)
@example(HOSTILE, HOSTILE, HOSTILE)
def test_header_values_and_titles_come_back(title: str, etag: str, content_type: str) -> None:
    root = _parsed(page_xml(replace(META, title=title, etag=etag, content_type=content_type), PageText()))
    assert _value(root, "meta/title") == _as_stored(title)
    assert _value(root, "meta/etag") == _as_stored(etag)
    assert _value(root, "meta/contentType") == _as_stored(content_type)


@given(st.lists(st.tuples(_urls, _texts), max_size=5))
@example([("http://example.org/?a=1&b='2'\"<>", HOSTILE)])
def test_links_come_back_in_order(links: list[tuple[str, str]]) -> None:
    root = _parsed(page_xml(META, PageText(links=links)))
    found = [(link.get("url"), link.text or "") for link in root.iterfind("links/link")]
    assert found == [(url, _as_stored(text)) for url, text in links]


@pytest.mark.parametrize("number", [0, 1_999, 2_000, 2_001, 4_000, 5_000])
def test_any_number_of_links_comes_back(number: int) -> None:
    links = [(f"http://example.org/{link}", f"text {link}") for link in range(number)]
    meta, content = read_page_xml(page_xml(META, PageText(links=iter(links), text="all", http_encoding="koi8-r")))
    assert (list(content.links), content.text, meta.url) == (links, "all", META.url)


def test_what_a_text_takes_is_told_before() -> None:
    text = "a<b>&\"\r'"
    plain, more = (len(page_xml(META, PageText([("http://a.org/", anchor)]))) for anchor in ("", text))
    assert len_in_xml(text) == more - plain


@given(_texts, _texts, _texts)
def test_mined_text_comes_back(description: str, keywords: str, text: str) -> None:
    root = _parsed(page_xml(META, PageText(description=description, keywords=keywords, text=text)))
    found = [_value(root, f"data/{tag}") for tag in ("description", "keywords", "text")]
    assert found == [_as_stored(description), _as_stored(keywords), _as_stored(text)]


def test_metadata_are_in_the_order_of_the_design() -> None:
    root = _parsed(page_xml(META, PageText()))
    assert [(element.tag, element.text) for element in root[0]] == [
        ("url", META.url),
        ("originalUrl", META.original_url),
        ("finalUrl", META.final_url),
        ("title", META.title),
        ("crawlTime", "2023-11-14T22:13:20Z"),
        ("status", "200"),
        ("contentType", META.content_type),
        ("encoding", META.encoding),
        ("etag", META.etag),
        ("lastModified", META.last_modified),
        ("serverDate", META.server_date),
        ("sha1", META.sha1),
        ("digest", META.digest),
    ]


def test_what_was_not_mined_is_left_out() -> None:
    root = _parsed(page_xml(META, PageText(text="x")))
    assert [element.tag for element in root.find("data")] == ["text"]


@pytest.mark.parametrize(("seconds", "text"), [(0, "1970-01-01T00:00:00Z"), (1_700_000_000.99, "2023-11-14T22:13:20Z")])
def test_times_are_utc(seconds: float, text: str) -> None:
    assert iso_time(seconds) == text


@pytest.mark.parametrize("field", ["sha1", "digest"])
def test_the_schema_refuses_a_bad_digest(field: str) -> None:
    root = etree.fromstring(page_xml(replace(META, **{field: "x"}), PageText()))
    assert not SCHEMA.validate(root)


@given(_texts, _texts, st.lists(st.tuples(_urls, _texts), max_size=5))
@example(HOSTILE, HOSTILE, [("http://example.org/?a=1&b='2'\"<>", HOSTILE)])
def test_what_is_written_can_be_read(title: str, text: str, links: list[tuple[str, str]]) -> None:
    read_meta, read_text = read_page_xml(page_xml(replace(META, title=title), PageText(links, "d", "k", text)))
    assert read_meta == replace(META, title=_as_stored(title), crawl_time=int(META.crawl_time))
    assert read_text == PageText([(url, _as_stored(anchor)) for url, anchor in links], "d", "k", _as_stored(text))


def test_what_the_header_said_instead_can_be_read() -> None:
    xml = page_xml(replace(META, encoding="euc-kr"), PageText(http_encoding="utf-8"))
    encoding = _parsed(xml).find("meta/encoding")
    assert (encoding.text, dict(encoding.attrib)) == ("euc-kr", {"insteadOf": "utf-8"})
    assert read_page_xml(xml)[1] == PageText([], http_encoding="utf-8")
    assert dict(_parsed(page_xml(META, PageText())).find("meta/encoding").attrib) == {}


ENTITIES = '<!DOCTYPE page [<!ENTITY e "x">]><page/>'


@pytest.mark.parametrize(
    "xml",
    [b"", b"<page", b"<page/>", b"\xff<page/>", ENTITIES.encode(), ENTITIES.encode("utf-16"),
     page_xml(META, PageText()).replace(b"<status>200", b"<status>x"),
     page_xml(META, PageText()).replace(b"<crawlTime>2023", b"<crawlTime>x")],
)  # fmt: skip
def test_what_is_no_page_is_refused(xml: bytes) -> None:
    with pytest.raises(BundleError, match=r"data\.xml"):
        read_page_xml(xml)


@pytest.mark.parametrize(
    "xml",
    [
        "<data><text>{}</text></data>", "<data><{} /></data>", "<meta><title>{}</title></meta>",
        "<links><link url='/'>{}</link></links>", "<links><link url='{}'/></links>",
        "<meta><encoding insteadOf='{}'/></meta>", "<other><a b='{}'/></other>",
    ],
)  # fmt: skip
def test_what_is_kept_of_a_data_xml_is_bounded(xml: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(common.page, "_MAX_TEXT", 1_000)
    for whole in (xml.format("x" * 1_100), xml.format("x" * 400) * 3):
        with pytest.raises(BundleError, match="too much text"):
            read_page_xml(f"<page>{whole}</page>".encode())
    with pytest.raises(BundleError, match="cannot be read"):
        read_page_xml(f"<page>{xml.format('x' * 400) * 2}</page>".encode())

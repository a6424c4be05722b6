"""The index file: what is written can be read, whatever pages contain; what is told of a page."""

import hashlib
import io
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from common.bundle import PageEntry
from common.errors import BundleError
from common.page import PageText, page_xml
from export.accepted import LinkRules
from export.index import BadIndex, Record, read, write
from export.records import iso_date, page_type, record_of
from export.stored import Page
from tests.bundles import page_meta

HOSTILE = '"\\"\n\r\t\0\x0b\x0c\x1c\x85\u2028\u2029\ufeff\ud800 - @\t@\\u0041 é 🕷'
_texts = st.text(st.characters(), max_size=30) | st.sampled_from([HOSTILE, "-", '"', "", " ", "\\", "\n\t@x"])
_records = st.builds(
    Record, _texts, _texts, _texts, _texts, _texts, _texts, _texts, _texts,
    st.lists(st.tuples(_texts, _texts), max_size=3).map(tuple),
)  # fmt: skip


@given(st.lists(_records, max_size=4))
@example([Record(*[HOSTILE] * 8, ((HOSTILE, HOSTILE),))])
def test_round_trip(records: list[Record]) -> None:
    file = io.BytesIO()
    assert write(records, file) == len(records)
    data = file.getvalue()
    assert list(read(io.BytesIO(data))) == records
    lines = len(records) + sum(len(record.links) for record in records)
    assert len(data.decode().splitlines()) == lines, "no program sees more lines than there are"


def test_what_it_looks_like() -> None:
    link = ("http://example.org/b", 'An "anchor"\nof two lines')
    file = io.BytesIO()
    urls = "http://example.org/", "http://EXAMPLE.org/"
    write([Record("d4", *urls, "Häuser", "utf-8", "html", "", "", (link,))], file)
    assert file.getvalue().decode() == (
        'd4 http://example.org/ http://EXAMPLE.org/ "Häuser" utf-8 html - -\n'
        '\t@http://example.org/b "An \\"anchor\\"\\nof two lines"\n'
    )


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b'a b c "t" e f g h', 1),
        (b'\t@x "y"\n', 1),
        (b'a b c "t" e f g h\n\n', 2),
        (b'a b c "t" e f g h\n\t@x\n', 2),
        (b'a b c "t" e f g\n', 1),
        (b'a b c "t" e f g h i\n', 1),
        (b'a  b c "t" e f g h\n', 1),
        (b'a b c "t" e f g h \n', 1),
        (b'a b c "t"e f g h\n', 1),
        (b'a b c "t\\" e f g h\n', 1),
        (b'a b c "\\x" e f g h\n', 1),
        (b'a b c "\xff" e f g h\n', 1),
    ],
)
def test_a_damaged_line_is_told(data: bytes, line: int) -> None:
    with pytest.raises(BadIndex, match=f"^line {line} "):
        list(read(io.BytesIO(data)))


@pytest.mark.parametrize(
    ("header", "date"),
    [
        ("Sun, 06 Nov 1994 08:49:37 GMT", "1994-11-06T08:49:37Z"),
        ("Sunday, 06-Nov-94 08:49:37 GMT", "1994-11-06T08:49:37Z"),
        ("Sun Nov  6 08:49:37 1994", "1994-11-06T08:49:37Z"),
        ("Sun, 06 Nov 1994 08:49:37 +0200", "1994-11-06T06:49:37Z"),
        ("", ""),
        ("yesterday", ""),
        ("Sun, 06 Nov 99999 08:49:37 GMT", ""),
        ("Sun, 06 Nov 1994 99:49:37 GMT", ""),
        ("Sun, 06 Nov 1994 08:49:37 +999999", ""),
    ],
)
def test_dates(header: str, date: str) -> None:
    assert iso_date(header) == date


@given(st.text(max_size=40) | st.from_regex(r"\w{3}, \d\d Nov \d{1,6} \d\d:\d\d:\d\d [+-]\d{1,9}", fullmatch=True))
def test_no_header_breaks_the_line(header: str) -> None:
    assert " " not in iso_date(header)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("data.html", "html"), ("data.pdf", "pdf"), ("data.source.xml", "xml"), ("data.JPG", "jpg"), ("data.", "bin"),
     ("data.a b", "bin"), ("data.../x", "bin")],
)  # fmt: skip
def test_types(name: str, kind: str) -> None:
    assert page_type(name) == kind


def _page(data_name: str = "data.html", **meta: str) -> Page:
    known = replace(page_meta("http://example.org/a/", b"", 0.0), **meta)
    links = [("http://example.org/index.html", "Home"), ("http://EXAMPLE.org/x#y", ""), ("mailto:a@b.org", "Mail"),
             ("http://example.org/no", "No")]  # fmt: skip
    return Page(PageEntry("f", data_name, 0, "", known), b"", page_xml(known, PageText(links)))


def test_record_of_a_page() -> None:
    page = _page(original_url="http://example.org/a/index.htm", title='"T"', last_modified="Sun Nov  6 08:49:37 1994")
    record = record_of(page, LinkRules(lambda url: not url.endswith("/no")))
    checksum = hashlib.md5(b"http://example.org/a/").hexdigest()
    assert record == Record(
        checksum, "http://example.org/a/", "http://example.org/a/index.htm", '"T"', "utf-8", "html",
        "1994-11-06T08:49:37Z", "", (("http://example.org/", "Home"), ("http://example.org/x", "")),
    )  # fmt: skip


def test_links_are_normalized_as_the_crawl_did_it() -> None:
    record = record_of(_page(), LinkRules(identity=lambda url: url))
    assert record.links[0] == ("http://example.org/index.html", "Home")


def test_a_broken_data_xml_is_told() -> None:
    page = replace(_page(), xml=b"<page>")
    with pytest.raises(BundleError, match=r"data\.xml"):
        record_of(page, LinkRules())

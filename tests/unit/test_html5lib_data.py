"""html5lib's own test data: encodings that must be found, and 1,700 hostile inputs on which two parsers must agree.

The data comes with html5lib's source package (see setup/system.py) and is not part of this project.
"""

import itertools
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from bs4 import XMLParsedAsHTMLWarning
from webencodings.labels import LABELS

from client import charset
from tests.mining import Mined, mined
from tests.oracle import found_in
from tests.packages import html5lib_tests

URL = "http://example.org/dir/page.html"
DATA = html5lib_tests() or Path()

pytestmark = pytest.mark.skipif(html5lib_tests() is None, reason="needs html5lib's source: run ./test")

WRITTEN_BY_SCRIPT = re.compile(rb"document\.write\('<meta charset")

# Why the two differ in inputs that match. html5lib's last release lacks some rules, and knows some that are gone.
NO_TEMPLATES = "html5lib shows what is in <template>; it is not part of the page"
OLD_SELECT = "html5lib drops tags in <select>; since 2025 they are kept"
OLD_ISINDEX = "html5lib makes a form of <isindex>; that is no longer in the standard"
TABLE_IN_SVG = "html5lib takes </td> in an SVG cell for the end of the table's"
REASONS = {
    NO_TEMPLATES: r"<template",
    OLD_SELECT: r"<select",
    OLD_ISINDEX: r"<isindex",
    TABLE_IN_SVG: r"<td><svg><td>",
}


# The standard decodes the first three to nothing, and nobody reads pages in the last.
OTHER_LABELS = {"hz-gb-2312": None, "csiso2022kr": None, "iso-2022-kr": None, "x-user-defined": "windows-1252"}


def _sections(kind: str) -> Iterator[tuple[Path, bytes]]:
    """Each test of the files of a folder, from its data on."""
    for path in sorted((DATA / kind).rglob("*.dat")):
        for section in re.split(rb"(?:\A|\n)#data\n", path.read_bytes())[1:]:
            yield path, section


def test_labels_of_encodings() -> None:
    found = {label: charset.encoding_for(label) for label in LABELS}
    assert found == {**LABELS, **OTHER_LABELS}
    assert len(LABELS) > 200


def test_encodings(monkeypatch: pytest.MonkeyPatch) -> None:
    # Where nothing is declared we look at the bytes; html5lib's data has windows-1252 there.
    monkeypatch.setattr(charset, "_detected", lambda body: charset.FALLBACK)
    wrong, cases = [], 0
    for _, section in _sections("encoding"):
        body, _, rest = section.partition(b"\n#encoding\n")
        expected = charset.encoding_for(rest.partition(b"\n")[0].decode())
        found = charset.encoding_of(body, "")
        cases += 1
        if found != expected and not WRITTEN_BY_SCRIPT.search(body):
            wrong.append((body, expected, found))
    assert wrong == []
    assert cases > 80


def _inputs() -> list[str]:
    sections = (re.split(rb"(?:\A|\n)#errors", section)[0] for _, section in _sections("tree-construction"))
    return list(dict.fromkeys(section.decode() for section in sections))


def _with_links(html: str) -> str:
    """The same input, with addresses in its links, and a link behind it that must not get lost or change."""
    numbers = itertools.count()
    html = re.sub(r"<(a|area)(?=[\s>])", lambda match: f"<{match[1]} href=/{next(numbers)}", html)
    html = re.sub(r"<(i?frame)(?=[\s>])", lambda match: f"<{match[1]} src=/{next(numbers)}", html)
    return f"{html} <a href=/last>last <b>one</a>"


def _differences(inputs: list[str]) -> Iterator[tuple[str, Mined, Mined]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", XMLParsedAsHTMLWarning)
        for html in inputs:
            ours, theirs = mined(html.encode(), URL, "utf-8"), found_in(html.encode(), URL, "utf-8")
            if ours != theirs:
                yield html, ours, theirs


@pytest.mark.parametrize("with_links", [False, True])
def test_same_links_title_and_text_as_html5lib(with_links: bool) -> None:
    inputs = _inputs()
    assert len(inputs) > 1500
    unexplained = []
    explained: set[str] = set()
    for html, ours, theirs in _differences([_with_links(html) for html in inputs] if with_links else inputs):
        reasons = [reason for reason, pattern in REASONS.items() if re.search(pattern, html)]
        explained.update(reasons)
        if not reasons:
            unexplained.append((html, ours, theirs))
    assert unexplained == []
    if with_links:
        assert explained == set(REASONS), "a reason that explains nothing any more has to go"


@pytest.mark.parametrize("tag", ["listing", "xmp"])
def test_old_blocks_end_words(tag: str) -> None:
    assert mined(f"one<{tag}>two</{tag}>three".encode(), URL).text == "one two three"


@pytest.mark.parametrize(
    "html",
    ["<span><p>one</p></span>two", "<a href=x><div>one</div></a>two", "<b><i><ul><li>one</ul></i></b>two"],
)
def test_the_end_of_a_block_inside_others_ends_a_word(html: str) -> None:
    assert mined(html.encode(), URL).text == "one two"

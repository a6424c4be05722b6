"""Links and titles, case by case, against a table written from the HTML standard."""

import pytest

from tests.data.html_cases import CASES, TITLES, Case
from tests.mining import mined

URL = "http://example.org/dir/page.html"


def _cases() -> list[object]:
    marks = [[pytest.mark.xfail(reason=case.mistake)] if case.mistake else [] for case in CASES]
    return [
        pytest.param(case, id=f"{case.section}: {case.html!a}", marks=mark)
        for case, mark in zip(CASES, marks, strict=True)
    ]


@pytest.mark.parametrize("case", _cases())
def test_links(case: Case) -> None:
    page = mined(case.html.encode(), URL, "utf-8")
    assert [address.removeprefix("http://example.org") for address in page.addresses] == case.expected


@pytest.mark.parametrize(("html", "title"), TITLES)
def test_title(html: str, title: str) -> None:
    assert mined(html.encode(), URL, "utf-8").title == title


def test_each_difference_is_one() -> None:
    assert [case for case in CASES if case.why and case.ours == case.addresses] == []

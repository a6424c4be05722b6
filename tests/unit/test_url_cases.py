"""Addresses and identities, case by case, against a table written from the URL standard and RFC 3986."""

import ada_url
import pytest

from common import urls
from tests.data.url_cases import CASES, PUNYCODE, QUERIES, SPELLINGS, SURROGATE, Case
from tests.mining import mined

_NOT_AS_THE_LIBRARY = (PUNYCODE, SURROGATE)


def _names(cases: list[Case]) -> list[str]:
    return [f"{case.section}: {ascii(case.reference)[1:41]}" for case in cases]


@pytest.mark.parametrize("case", CASES, ids=_names(CASES))
def test_resolve(case: Case) -> None:
    assert urls.resolve(case.reference, case.base) == case.address


@pytest.mark.parametrize("case", [case for case in CASES if case.address])
def test_an_address_resolves_to_itself(case: Case) -> None:
    assert case.address is not None
    assert urls.resolve(case.address) == case.address
    assert not urls.is_plain_address(case.reference) or case.address == case.reference


def test_the_table_says_what_the_standard_says() -> None:
    """The column that we do not follow is checked, too: against the library alone."""
    wrong = [case for case in CASES if case.why not in _NOT_AS_THE_LIBRARY and _standard(case) != case.href]
    assert wrong == []


def test_each_difference_is_one() -> None:
    assert [case for case in CASES if case.why and case.ours == case.href] == []


def test_no_case_twice() -> None:
    keys = [(case.base, case.reference) for case in CASES]
    assert sorted(key for key in set(keys) if keys.count(key) > 1) == []


@pytest.mark.parametrize(("section", "one", "other", "same"), SPELLINGS)
def test_identity(section: str, one: str, other: str, same: bool) -> None:
    identities = [urls.identity(str(urls.resolve(f"http://example.org{rest}"))) for rest in (one, other)]
    assert (identities[0] == identities[1]) is same, section


@pytest.mark.parametrize(("encoding", "reference", "expected"), QUERIES)
def test_query_on_a_page_in_another_encoding(encoding: str, reference: str, expected: str) -> None:
    html = f"<a href='{reference.replace('č', '&#269;')}'>x</a>"
    page = mined(html.encode(encoding), "http://example.org/", charset=encoding)
    assert page.addresses == [f"http://example.org{expected}"]


def _standard(case: Case) -> str | None:
    try:
        href: str = ada_url.join_url(case.base, case.reference) if case.base else ada_url.normalize_url(case.reference)
    except ValueError:
        return None
    return href

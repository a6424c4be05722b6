"""Tables on the wire: every value class comes back as it was, and a bad line is named."""


import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.wire import (
    FoundUrl,
    HostFact,
    HostShare,
    Kind,
    ListedUrl,
    Outcome,
    Totals,
    UrlResult,
    UrlTask,
    clean_text,
    from_table,
    to_table,
)

_VALUES: dict[object, st.SearchStrategy[object]] = {
    str: st.text(max_size=30).map(clean_text).map(lambda text: text.strip(" ")),  # blanks at the ends do not count
    int: st.integers(-(2**70), 2**70),
    float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
    Outcome: st.sampled_from(Outcome),
    Kind: st.sampled_from(Kind),
}
KINDS = [UrlTask, HostShare, UrlResult, FoundUrl, ListedUrl, HostFact]


def _rows(kind: type) -> st.SearchStrategy[object]:
    # A URL or a host, which comes first, is never empty and has no blanks around it.
    first = st.text(min_size=1, max_size=30).map(clean_text).filter(lambda text: text == text.strip() != "")
    return st.builds(kind, first, *(_VALUES[kind.__annotations__[name]] for name in kind._fields[1:]))


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_rows_come_back(kind: type, data: st.DataObject) -> None:
    rows = data.draw(st.lists(_rows(kind), max_size=5))
    assert from_table(kind, to_table(rows)) == rows


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_windows_line_ends_and_empty_lines_do_not_matter(kind: type, data: st.DataObject) -> None:
    rows = data.draw(st.lists(_rows(kind), max_size=5))
    text = "\r\n" + to_table(rows).replace("\n", "\r\n\n") + "\n"
    assert from_table(kind, text) == rows


@given(st.text())
def test_dirty_text_stays_within_its_field(text: str) -> None:
    row = UrlResult("http://a/", Outcome.BROKEN, detail=text)
    (back,) = from_table(UrlResult, to_table([row]))
    assert back == UrlResult("http://a/", Outcome.BROKEN, detail=clean_text(text).rstrip(" "))


def test_defaults_at_the_end_are_left_out() -> None:
    assert to_table([UrlTask("http://a/"), UrlTask("http://b/", 2)]) == "http://a/\nhttp://b/\t2"
    assert to_table([UrlTask("http://a/", etag="x")]) == "http://a/\t0\t0\tx"
    assert to_table([HostShare("a", 0.5, 1, True)]) == "a\t0.5\t1\t1"


def test_an_empty_table_has_no_rows() -> None:
    assert to_table([]) == ""
    assert from_table(UrlTask, "") == []


@pytest.mark.parametrize(
    ("kind", "line", "reason"),
    [
        (UrlTask, "http://a/\tx", "invalid literal"),
        (UrlTask, "http://a/\t1\t2\te\tl\ts\tsitemap\tmore", "8 fields instead of at most 7"),
        (UrlTask, "http://a/\t1\t2\te\tl\ts\tmap", "not a valid Kind"),
        (UrlTask, "http://a/\t1.5", "invalid literal"),
        (UrlResult, "http://a/", "missing"),
        (UrlResult, "http://a/\tstolen", "not a valid Outcome"),
        (HostShare, "a\tnan", "finite"),
        (HostShare, "a\tinf", "finite"),
        (HostShare, "a\t1\t1\tyes", "invalid literal"),
        (FoundUrl, "http://a/\t" + "9" * 5000, "4300"),
    ],
)
def test_a_bad_line_is_named(kind: type, line: str, reason: str) -> None:
    good = {UrlTask: "http://g/", UrlResult: "http://g/\tdns", HostShare: "g\t1", FoundUrl: "http://g/\t1"}[kind]
    with pytest.raises(ValueError, match=rf"line 3 of the {kind.__name__} table: .*{reason}"):
        from_table(kind, f"{good}\n\n{line}\n{good}")


@pytest.mark.parametrize(("kind", "line", "reason"), [
    (UrlResult, "http://a/\t{}", "is not a valid Outcome"), (FoundUrl, "http://a/\t{}", "invalid literal"),
    (HostFact, "a\t\t{}", "could not convert"), (ListedUrl, "http://a/\t1\t1\t{}", "is not a valid Kind"),
])  # fmt: skip
def test_a_bad_line_is_not_quoted_at_any_length(kind: type, line: str, reason: str) -> None:
    with pytest.raises(ValueError, match=rf"line 1 of the {kind.__name__} table: .*{reason}") as caught:
        from_table(kind, line.format("\x85" * 100_000))
    assert len(str(caught.value)) < 300


def test_outcomes_are_the_words_of_the_manual() -> None:
    assert all(outcome.value == outcome.name.lower() for outcome in Outcome)


def test_known_must_be_the_sum_of_the_states() -> None:
    assert Totals(known=31, queued=1, leased=2, done=4, failed=8, excluded=16, stored=3, sent=100).is_sound
    assert not Totals(known=30, queued=1, leased=2, done=4, failed=8, excluded=16).is_sound

"""Names of page copies: safe, each page its own, none in the way of another, the same each time."""

import re
from pathlib import PurePosixPath

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from export.names import LONG, MAX_PATH_LENGTH, FileNames

_HOSTS = st.sampled_from(["a.org", "a.org.", "a.org:81", "www.a.org", "[::1]:81", "h" * 200 + ".org"])
_SEGMENTS = st.one_of(
    st.sampled_from(["", "a", "A", "a~", "a.b", "A.b", "a.B", ".", "..", ".a", "a.", "con", "CON.x", "index.html",
                     "Index.html", "index.html~1", "!", "!69ndex.html", "~long", "~", "a~.html", "a~1.b", "x" * 199,
                     "x" * 200, "x" * 201, "X" * 400, "x" * 200 + ".b", "x" * 201 + ".b", "a?b=c.d", "a?B", "%2E%2E",
                     "\\", "\0", "a b", 'a"b', "é"]),
    st.text("aA.~!?1", max_size=6).map(lambda text: text.replace("/", "")),
)  # fmt: skip
_URLS = st.builds(
    lambda scheme, host, segments: f"{scheme}://{host}/" + "/".join(segments),
    st.sampled_from(["http", "https"]), _HOSTS, st.lists(_SEGMENTS, min_size=1, max_size=4),
)  # fmt: skip
_NAMES = st.builds(FileNames, st.sampled_from(["http", "https"]), st.booleans())


@pytest.mark.parametrize(
    ("url", "extension", "path"),
    [
        ("http://www.ics.forth.gr/", "html", "www.ics.forth.gr/index.html"),
        ("http://www.ics.forth.gr/index.html", "html", "www.ics.forth.gr/!69ndex.html"),
        ("http://www.ics.forth.gr/a/b.php", "html", "www.ics.forth.gr/a/b.php"),
        ("http://example.org:8080/Team.HTM", "html", "example.org+8080/Team.HTM"),
        ("https://example.org/", "html", "example.org+https/index.html"),
        ("http://example.org/a", "html", "example.org/a~.html"),
        ("http://example.org/a", "pdf", "example.org/a~.pdf"),
        ("http://example.org/a/", "html", "example.org/a/index.html"),
        ("http://example.org/a/b", "html", "example.org/a/b~.html"),
        ("http://example.org/v1.2/b.html", "html", "example.org/v1.2~/b.html"),
        ("http://example.org/?q=1", "html", "example.org/!3fq=1~.html"),
        ("http://example.org/a.cgi?q=1", "html", "example.org/a.cgi!3fq=1"),
        ("http://example.org//a.html", "html", "example.org/!/a.html"),
        ("http://example.org/../x.html", "html", "example.org/!2e!2e/x.html"),
        ("http://example.org/nul.html", "html", "example.org/!6eul.html"),
    ],
)
def test_table(url: str, extension: str, path: str) -> None:
    assert FileNames("http").file_of(url, extension) == path


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("http://example.org/Team.html", "example.org/Team~1.html"),
        ("http://example.org/A/Team", "example.org/A~1/Team~1~.html"),
        ("http://example.org/V.2/team.html", "example.org/V.2~1~/team.html"),
    ],
)
def test_capitals_are_told_where_the_file_system_does_not(url: str, path: str) -> None:
    assert FileNames("http", masks=True).file_of(url, "html") == path


@pytest.mark.parametrize("url", ["", "x", "ftp://example.org/", "http:///", "http://example.org", "/etc/passwd"])
def test_what_is_no_url_has_no_file(url: str) -> None:
    assert FileNames("http").file_of(url, "html") is None


@given(_URLS, _NAMES)
@example("http://a.org/" + "?" * 1990, FileNames("http"))
@example("http://a.org" + "/x" * 990, FileNames("http"))
@example("http://" + "h" * 250 + "/" + "X" * 1700, FileNames("https", True))
def test_safe_on_every_file_system(url: str, names: FileNames) -> None:
    path = names.file_of(url, "html")
    assert path is not None
    assert len(path) <= MAX_PATH_LENGTH + 200
    for name in path.split("/"):
        assert re.fullmatch(r"[A-Za-z0-9_\-=,&+@%$'();!~][A-Za-z0-9._\-=,&+@%$'();!~]*", name)
        assert not name.endswith(".")
        assert len(name) <= 220
        assert not re.match(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\.|$)", name)
    assert names.file_of(url, "html") == path


@settings(max_examples=500)
@given(st.sets(_URLS, min_size=2, max_size=12), _NAMES)
def test_each_page_has_a_file_and_none_is_in_the_way(urls: set[str], names: FileNames) -> None:
    paths = {url: names.file_of(url, "html") or "" for url in urls}
    seen = {path.lower() if names.masks else path for path in paths.values()}
    assert len(seen) == len(urls)
    folders = {str(parent) for path in seen for parent in PurePosixPath(path).parents}
    assert not seen & folders


def test_long_paths_are_kept_apart() -> None:
    one, other = ("http://a.org/" + "/".join(["x" * 150] * 12) + end for end in ("/1", "/2"))
    paths = [FileNames("http").file_of(url, "pdf") or "" for url in (one, other)]
    assert paths[0] != paths[1]
    assert all(path.startswith(f"a.org/{LONG}/") and path.endswith(".pdf") for path in paths)

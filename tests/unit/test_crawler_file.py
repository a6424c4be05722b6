"""The classic crawler file: read as it is, every mistake told with its place, the command line counts more."""

import argparse
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.config import from_options
from common.errors import ConfigError
from onehost.crawler_file import parse
from onehost.crawler_options import CrawlerOptions, take_over
from onehost.main import parser
from tests.crawler_file import EXAMPLE


def _texts(text: str) -> list[str]:
    [statement] = parse(text, "f").values()
    return [item.text for item in statement.texts]


def test_the_example() -> None:
    found = parse(EXAMPLE, "f")
    values = {name: [item.text for item in each.texts] or each.number for name, each in found.items()}
    assert values == {
        "starting-points": ["http://www.csd.uoc.gr/", "http://www.ics.forth.gr/"],
        "accept-list": [r".*\.[hH][tT][mM][lL]?$", r".*\.[pP][hH][pP]$"],
        "reject-list": [r".*\.[tT][mM][pP]\.{0,4}$"],
        "max-page-number": 1_000_000,
        "scope": ["domain-scope"],
        "traversal-algorithm": ["bfs"],
        "repository": ["./testbedCSDICS"],
        "log-file": ["log"],
        "log-level": 1,
        "period": 72,
    }
    place = found["starting-points"].texts[1].place
    assert (place.line, place.column) == (4, 5)


@pytest.mark.parametrize(
    "text",
    [
        "", "# nothing", "\n\n", "<logging>", "<log-options>", "<multithreading-options> number-of-threads = 5;",
        "max-page-number = -1;", "< LOGGING >", "<crawler-options><logging>",
        'SCOPE="host-scope";', "period=72;", "Period\n=\n72\n;", "accept-list={};", 'accept-list={"a"};',
        'accept-list = { "a" , } ; # }', 'accept-list = { # "x"\n"a" # ;\n, };', 'period = 1; scope = "x";',
    ],
)  # fmt: skip
def test_ways_to_write_it(text: str) -> None:
    parse(text, "f")


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        ("<nonsense>", 1, 1, "unknown section <nonsense>, expected one of <crawler-options>, <logging>"),
        ("\n  <logging", 2, 3, "does not end with >"),
        ("colour = 3;", 1, 1, "unknown name colour, expected one of starting-points"),
        ("<logging>\n\tcolour = 3;", 2, 2, "unknown name colour"),
        ("period 72;", 1, 8, "expected = after period, found 72"),
        ("period = 72", 1, 12, "expected ; at the end of period, found the end of the file"),
        ("period = 72\nscope", 2, 1, "expected ; at the end of period, found scope"),
        ('period = "72";', 1, 10, 'expected a whole number without quotes, found "72"'),
        ("period = 72h;", 1, 10, "'72h' is no name, number or string"),
        ("period = -1;", 1, 10, "expected a whole number without quotes, found -1"),
        ("log-level = -1;", 1, 13, "expected a whole number without quotes, found -1"),
        ("max-page-number = --1;", 1, 19, "'--1' is no name, number or string"),
        ("threads = 2; number-of-threads = 2;", 1, 14, "number-of-threads is set twice; first in line 1"),
        ("period = 1.5;", 1, 10, "'1.5' is no name, number or string"),
        ("scope = host-scope;", 1, 9, "expected a string in double quotes, found host-scope"),
        ('scope = "host-scope;', 1, 9, "this string does not end on its line"),
        ('scope = "host\n-scope";', 1, 9, "this string does not end on its line"),
        ('accept-list = "a";', 1, 15, "expected strings in braces"),
        ('accept-list = { "a" "b" };', 1, 21, 'expected , or }, found "b"'),
        ('accept-list = { "a", , };', 1, 22, "expected , or }, found ,"),
        ("accept-list = { , };", 1, 17, "expected a string or }, found ,"),
        ('accept-list = { "a",\n\n', 3, 1, "found the end of the file"),
        ('scope = "x"; # ;\n  scope = "y";', 2, 3, "scope is set twice; first in line 1"),
        ("}", 1, 1, "expected a section or a name, found }"),
        ("period = 1;\n$", 2, 1, "'$' is no name"),
    ],
)
def test_mistakes_have_a_place(text: str, line: int, column: int, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(text, "my.conf")
    assert str(caught.value).startswith(f"my.conf, line {line}, column {column}: ")
    assert words in str(caught.value)


@given(st.lists(st.text(st.characters(exclude_characters='"\n'), max_size=20), min_size=1, max_size=4))
def test_strings_are_kept_as_they_are(strings: list[str]) -> None:
    listed = ", ".join(f'"{text}"' for text in strings)
    assert _texts(f"accept-list = {{ {listed} }};") == strings


@given(st.text(st.sampled_from('<>"{};=,#\\a1- \n') | st.characters(), max_size=60))
def test_nothing_but_a_mistake_comes_of_junk(text: str) -> None:
    with suppress(ConfigError):
        assert isinstance(parse(text, "f"), dict)


Take = Callable[..., tuple[argparse.Namespace, CrawlerOptions]]


@pytest.fixture
def take(tmp_path: Path) -> Take:
    def taken(text: str, *arguments: str) -> tuple[argparse.Namespace, CrawlerOptions]:
        file = tmp_path / "crawler.conf"
        file.write_text(text)
        options = parser().parse_args([*arguments, "--crawler-conf", str(file)])
        return options, take_over(options)

    return taken


def _settings(options: argparse.Namespace) -> Any:
    return from_options(options)


def test_the_example_as_settings(take: Take) -> None:
    options, more = take(EXAMPLE)
    server = _settings(options).url_server
    assert options.urls == ["http://www.csd.uoc.gr/", "http://www.ics.forth.gr/"]
    assert server.accept == (r".*\.[hH][tT][mM][lL]?$", r".*\.[pP][hH][pP]$")
    assert server.reject == (r".*\.[tT][mM][pP]\.{0,4}$",)
    assert (server.max_pages, server.scope, server.traversal) == (1_000_000, "domain", "bfs")
    assert server.log_level == "INFO"
    assert options.dir == more.repository == Path("testbedCSDICS")
    assert not more.logs_on_screen


def test_the_command_line_counts_more(take: Take) -> None:
    arguments = ("http://example.org/", "--max-pages", "5", "--scope", "host", "--accept", "a", "--reject", "b",
                 "--traversal", "dfs", "--log-level", "ERROR", "--dir", "work")  # fmt: skip
    options, more = take(EXAMPLE.replace("log-level = 1", "log-level = 2"), *arguments)
    server = _settings(options).url_server
    assert options.urls == ["http://example.org/", "http://www.csd.uoc.gr/", "http://www.ics.forth.gr/"]
    assert (server.max_pages, server.scope, server.accept, server.reject) == (5, "host", ("a",), ("b",))
    assert (server.traversal, server.log_level) == ("dfs", "ERROR")
    assert _settings(options).client.log_level == "INFO"
    assert options.dir == Path("work")
    assert more.repository == Path("testbedCSDICS")


def test_sitemap_on_the_command_line_is_a_scope_too(take: Take) -> None:
    options, _ = take('scope = "free-spanning";', "--sitemap", "1")
    assert _settings(options).url_server.effective_scope == "site"


@pytest.mark.parametrize(("word", "scope"), [("free-spanning", "free"), ("Host-Scope", "host"), ("path-scope", "path")])
def test_scopes(take: Take, word: str, scope: str) -> None:
    options, _ = take(f'scope = "{word}";')
    assert _settings(options).url_server.scope == scope


@pytest.mark.parametrize("word", ["BFS", "dfs", "random", "priority"])
def test_traversals(take: Take, word: str) -> None:
    options, _ = take(f'traversal-algorithm = "{word}";')
    assert _settings(options).url_server.traversal == word.lower()


@pytest.mark.parametrize(("number", "level"), [(0, "WARNING"), (1, "INFO"), (2, "DEBUG")])
def test_log_levels_are_for_all_parts(take: Take, number: int, level: str) -> None:
    options, more = take(f'log-level = {number}; log-file = "screen";')
    settings = _settings(options)
    assert {settings.url_server.log_level, settings.ftp_server.log_level, settings.client.log_level} == {level}
    assert more.logs_on_screen


@pytest.mark.parametrize("number", ["0", "-1", "-999999999999999999"])
def test_no_number_of_pages_is_no_limit(take: Take, number: str) -> None:
    assert _settings(take(f"max-page-number = {number};")[0]).url_server.max_pages == 0


@pytest.mark.parametrize("name", ["number-of-threads", "Number-of-Threads", "threads", "max-thread-number"])
def test_the_number_of_threads(take: Take, name: str) -> None:
    text = f"<multithreading-options>\n{name} = 7;"
    assert _settings(take(text)[0]).client.number_of_threads == 7
    assert _settings(take(text, "--number-of-threads", "3")[0]).client.number_of_threads == 3


@pytest.mark.parametrize(
    ("text", "file", "on_screen"),
    [
        ('log-file = "log";', Path("log"), False),
        ('<log-options> log-file = "logs/my crawl.log";', Path("logs/my crawl.log"), False),
        ('log-file = "/var/log/crawl";', Path("/var/log/crawl"), False),
        ('log-file = "Screen";', None, True),
        ("period = 0;", None, False),
    ],
)
def test_the_log_goes_where_the_file_says(take: Take, text: str, file: Path | None, on_screen: bool) -> None:
    _, more = take(text)
    assert (more.log_file, more.logs_on_screen) == (file, on_screen)


def test_the_period_is_in_hours(take: Take) -> None:
    assert _settings(take("period = 72;")[0]).url_server.period == 72
    assert _settings(take("period = 72;", "--period", "adaptive")[0]).url_server.period == "adaptive"
    with pytest.raises(ConfigError, match=r"line 1, column 10: .*expected a number from 0 to 87600, or adaptive"):
        take("period = 99999;")


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        ('Starting-points = {\n "http://a.org/",\n "ftp://b.org/" };', 3, 2, "'ftp://b.org/' is no http or https URL"),
        ('accept-list = { "a",\n  "(" };', 2, 3, "'(' is no regular expression"),
        ('reject-list = { "č" };', 1, 17, "can never match"),
        ("max-page-number = 99999999999999;", 1, 19, "expected a whole number from 0 to 1000000000000"),
        ('scope = "host";', 1, 9, "expected one of free-spanning, domain-scope, host-scope, path-scope, found 'host'"),
        ('traversal-algorithm = "up";', 1, 23, "expected one of bfs, dfs, random, priority, found 'up'"),
        ('repository = "";', 1, 14, "expected a folder"),
        ('log-file = "";', 1, 12, "expected a file, or screen"),
        ('log-file = "a\0b";', 1, 12, "expected a file, or screen"),
        ("number-of-threads = 0;", 1, 21, "expected a whole number from 1 to 1000, found '0'"),
        ("<multithreading-options>\nthreads = 9999;", 2, 11, "expected a whole number from 1 to 1000"),
        ("log-level = 3;", 1, 13, "expected 0 (quiet), 1 (verbose) or 2 (debug)"),
    ],
)
def test_values_that_cannot_be(take: Take, text: str, line: int, column: int, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        take(text)
    assert f"crawler.conf, line {line}, column {column}: " in str(caught.value)
    assert words in str(caught.value)


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00"])
def test_a_file_that_cannot_be_read_is_told(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "x.conf"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigError, match=r"x\.conf cannot be read"):
        take_over(parser().parse_args(["--crawler-conf", str(file)]))


def test_without_a_file_nothing_changes() -> None:
    options = parser().parse_args(["http://example.org/"])
    assert take_over(options) == CrawlerOptions()
    assert options.urls == ["http://example.org/"]

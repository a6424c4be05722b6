"""The classic crawler file: sections, statements, lists in braces. Text in, statements out; a mistake has its place.

    <crawler-options>
    Starting-points = { "http://example.org/", "http://example.net/", };   # a comment
    max-page-number = 1000;

A backslash in a string is a backslash, so that regular expressions stand there as they are; a string ends at the next
double quote, on the same line. What the statements mean for a crawl is in crawler_options.py.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from common.errors import ConfigError

SECTIONS = ("crawler-options", "logging", "log-options", "recrawling-options", "multithreading-options")
NAMES = {
    "starting-points": "list",
    "accept-list": "list",
    "reject-list": "list",
    "max-page-number": "signed",
    "scope": "string",
    "traversal-algorithm": "string",
    "repository": "string",
    "log-file": "string",
    "log-level": "number",
    "period": "number",
    "number-of-threads": "number",
}
_OTHER_NAMES = dict.fromkeys(
    ("threads", "thread-number", "threads-number", "max-thread-number", "max-threads-number"), "number-of-threads"
)
_EXPECTED = {
    "list": 'strings in braces, such as { "a", "b" }',
    "string": "a string in double quotes",
    "number": "a whole number without quotes",
    "signed": "a whole number without quotes",
}
_TOKEN = re.compile(
    r"""
    (?P<blank> \s+ | \#[^\n]* )
    | (?P<section> <[^<>\n]*> )
    | (?P<string> "[^"\n]*" )
    | (?P<number> -?[0-9]{1,18}(?![\w.-]) )
    | (?P<name> [A-Za-z][\w-]* )
    | (?P<sign> [={},;] )
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands in a file; lines and columns count from 1."""

    source: str
    line: int
    column: int

    def refuse(self, reason: str) -> NoReturn:
        """ConfigError about what stands here."""
        raise ConfigError(f"{self}: {reason}")

    def __str__(self) -> str:
        return f"{self.source}, line {self.line}, column {self.column}"


@dataclass(frozen=True, slots=True)
class Text:
    """A string, and where its first quote stands."""

    text: str
    place: Place


@dataclass(frozen=True, slots=True)
class Statement:
    """One setting. `texts` has the strings of a list, or the one string; a number is in `number`."""

    name: str  # in lower case
    place: Place  # of the value
    texts: tuple[Text, ...] = ()
    number: int = 0


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str  # a group of _TOKEN, or `end`
    text: str
    place: Place

    def __str__(self) -> str:
        return "the end of the file" if self.kind == "end" else self.text


def parse(text: str, source: str) -> dict[str, Statement]:
    """The statements of a file by name; ConfigError with line and column if it is not one."""
    return _Parser(text, source).file()


class _Parser:
    """Goes through the tokens of one file."""

    def __init__(self, text: str, source: str) -> None:
        self._tokens = _tokens(text, source)
        self._token = next(self._tokens)

    def file(self) -> dict[str, Statement]:
        found: dict[str, Statement] = {}
        while self._token.kind != "end":
            if self._token.kind == "section":
                self._section()
                continue
            place = self._token.place
            statement = self._statement()
            if statement.name in found:
                place.refuse(f"{statement.name} is set twice; first in line {found[statement.name].place.line}")
            found[statement.name] = statement
        return found

    def _section(self) -> None:
        token = self._take("section", "a section or a name")
        if token.text[1:-1].strip().lower() not in SECTIONS:
            known = ", ".join(f"<{name}>" for name in SECTIONS)
            token.place.refuse(f"unknown section {token.text}, expected one of {known}")

    def _statement(self) -> Statement:
        token = self._take("name", "a section or a name")
        name = _OTHER_NAMES.get(token.text.lower(), token.text.lower())
        if name not in NAMES:
            token.place.refuse(f"unknown name {token.text}, expected one of {', '.join(NAMES)}")
        self._sign("=", f"= after {token.text}")
        statement = self._value(name, NAMES[name])
        self._sign(";", f"; at the end of {token.text}")
        return statement

    def _value(self, name: str, kind: str) -> Statement:
        place, expected = self._token.place, _EXPECTED[kind]
        if kind in ("number", "signed"):
            if kind == "number" and self._token.text.startswith("-"):
                self._refuse(expected)
            return Statement(name, place, number=int(self._take("number", expected).text))
        if kind == "string":
            return Statement(name, place, (self._string(expected),))
        self._sign("{", expected)
        texts = tuple(self._strings())
        self._sign("}", "a string or }" if not texts else ", or }")
        return Statement(name, place, texts)

    def _strings(self) -> Iterator[Text]:
        while self._token.kind == "string":
            yield self._string("a string")
            if self._token.text != ",":
                return
            self._sign(",", ",")

    def _string(self, expected: str) -> Text:
        token = self._take("string", expected)
        return Text(token.text[1:-1], token.place)

    def _sign(self, sign: str, expected: str) -> None:
        if self._token.text != sign:
            self._refuse(expected)
        self._take("sign", expected)

    def _take(self, kind: str, expected: str) -> _Token:
        token = self._token
        if token.kind != kind:
            self._refuse(expected)
        self._token = next(self._tokens)
        return token

    def _refuse(self, expected: str) -> NoReturn:
        self._token.place.refuse(f"expected {expected}, found {self._token}")


def _tokens(text: str, source: str) -> Iterator[_Token]:
    position, line, start = 0, 1, 0  # `start`: where the line begins
    while position < len(text):
        place = Place(source, line, position - start + 1)
        match = _TOKEN.match(text, position)
        if match is None:
            place.refuse(_unreadable(text, position))
        if match.lastgroup != "blank":
            yield _Token(match.lastgroup or "", match[0], place)
        position = match.end()
        if breaks := match[0].count("\n"):
            line += breaks
            start = text.rindex("\n", 0, position) + 1
    yield _Token("end", "", Place(source, line, position - start + 1))


def _unreadable(text: str, position: int) -> str:
    if text[position] == '"':
        return "this string does not end on its line"
    if text[position] == "<":
        return "this section does not end with > on its line"
    word = re.match(r"[\w.-]+", text[position:])
    return f"{word[0] if word else text[position]!r} is no name, number or string"

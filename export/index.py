"""The index file: what is known of each page and where it links to, as text. `write` and `read` undo each other.

    d41d8… http://example.org/ http://example.org/ "Home" utf-8 html 2026-01-31T12:00:00Z -
    <TAB>@http://example.org/a "An \\"anchor\\""

A field is a bare word, or a JSON string in double quotes; `-` is a field that is empty. Fields are separated by one
blank. So each line can be taken apart whatever a page contains. The file is UTF-8; a line ends in a line feed only.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO

from common.errors import PavoukError

# What some program takes for the end of a line, does not show, or cannot encode; JSON escapes those below U+0020.
_INVISIBLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]")
_BARE = re.compile(r"[!#-~][!-~]*")  # ASCII without blanks; does not look like a string
_FIELD = re.compile(r'"(?:[^"\\]|\\.)*"|[!#-~][!-~]*')
_NOTHING = "-"
_LINK = "\t@"
_FIELDS = 8


class BadIndex(PavoukError):
    """An index file cannot be read; says in which line."""


@dataclass(frozen=True, slots=True)
class Record:
    """A page as the index tells it. Empty text: not known."""

    checksum: str  # MD5 of the URL, hexadecimal
    url: str  # normalized: the identity
    original_url: str  # the address that was asked for
    title: str
    encoding: str
    type: str  # html, pdf, …
    last_modified: str  # ISO 8601, UTC
    server_date: str
    links: tuple[tuple[str, str], ...] = ()  # normalized URL and anchor text, in the order of the page


def write(records: Iterable[Record], file: IO[bytes]) -> int:
    """Write all records; says how many there were."""
    number = 0
    for record in records:
        file.write(_lines(record).encode())
        number += 1
    return number


def read(file: IO[bytes]) -> Iterator[Record]:
    """The records of an index file, one at a time."""
    head: list[str] = []
    links: list[tuple[str, str]] = []
    for number, raw in enumerate(file, start=1):
        line = _decoded(raw, number)
        if line.startswith(_LINK):
            if not head:
                raise BadIndex(f"line {number} is a link without a page")
            url, anchor = _fields(line.removeprefix(_LINK), 2, number)
            links.append((url, anchor))
        else:
            if head:
                yield _record(head, links)
            head, links = _fields(line, _FIELDS, number), []
    if head:
        yield _record(head, links)


def _record(head: list[str], links: list[tuple[str, str]]) -> Record:
    checksum, url, original_url, title, encoding, type_, last_modified, server_date = head
    return Record(checksum, url, original_url, title, encoding, type_, last_modified, server_date, tuple(links))


def _lines(record: Record) -> str:
    urls = " ".join(map(_word, (record.checksum, record.url, record.original_url)))
    rest = " ".join(map(_word, (record.encoding, record.type, record.last_modified, record.server_date)))
    links = [f"{_LINK}{_word(url)} {_string(anchor)}\n" for url, anchor in record.links]
    return f"{urls} {_string(record.title)} {rest}\n" + "".join(links)


def _word(value: str) -> str:
    if not value:
        return _NOTHING
    return value if _BARE.fullmatch(value) and value != _NOTHING else _string(value)


def _string(value: str) -> str:
    return _INVISIBLE.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(value, ensure_ascii=False))


def _decoded(raw: bytes, number: int) -> str:
    if not raw.endswith(b"\n"):
        raise BadIndex(f"line {number} is cut off")
    try:
        return raw[:-1].decode()
    except UnicodeDecodeError as error:
        raise BadIndex(f"line {number} is not UTF-8") from error


def _fields(line: str, expected: int, number: int) -> list[str]:
    fields, position = [], 0
    while match := _FIELD.match(line, position):
        fields.append(_value(match[0], number))
        position = match.end() + 1
        if line[match.end() : position] != " ":
            break
    if position != len(line) + 1 or len(fields) != expected:
        raise BadIndex(f"line {number} does not have {expected} fields, or has something else between them")
    return fields


def _value(field: str, number: int) -> str:
    if field == _NOTHING:
        return ""
    if not field.startswith('"'):
        return field
    try:
        return str(json.loads(field))
    except ValueError as error:
        raise BadIndex(f"line {number} has a string that is none: {error}") from error

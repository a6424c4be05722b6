"""Start URLs as operators write them: on a command line, or one a line in a file of any length.

In a file, blank lines and lines that begin with # say nothing; a line that is no URL is told and passed over.
"""

import argparse
import codecs
import io
import os
import select
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from common.errors import ConfigError
from common.urls import typed

STANDARD_INPUT = "-"
_ENDINGS = (".txt", ".csv", ".tsv", ".lst", ".list", ".urls", ".seeds", ".json")  # none is a top-level domain
_MAX_LINE_BYTES = 16_384
_MAX_SHOWN = 200  # characters of a bad line
_MAX_TOLD = 20  # bad lines that are told one by one
_LOOK_MILLISECONDS = 100  # how often a wait for more looks whether it is over
_BUFFER_BYTES = 1 << 16


def add_seeds_option(parser: argparse.ArgumentParser) -> None:
    """--seeds, for the commands that take start URLs."""
    parser.add_argument(
        "--seeds", metavar="FILE",
        help="File with further start URLs, one a line; - for standard input. Blank lines and lines with # in front "
        "are passed over, and so are lines that are no URLs, which are told.",
    )  # fmt: skip


def start_addresses(urls: Iterable[str]) -> list[str]:
    """The addresses of start URLs as an operator types them: a missing scheme is http. ConfigError if one is none."""
    return [_start_address(url) for url in urls]


def _start_address(text: str) -> str:
    if _looks_like_file(text):
        is_host = text[0] not in "/.~-"
        or_host = f"; if it is a host, write http://{text}" if is_host else ""
        raise ConfigError(f"{text!r} looks like a file: with --seeds {text} start URLs are read from it{or_host}")
    address = typed(text)
    if address is None:
        raise ConfigError(f"start URL {text!r} is no http or https URL")
    return address


def _looks_like_file(text: str) -> bool:
    if "://" in text:
        return False
    if text == STANDARD_INPUT or text.startswith(("/", "./", "../", "~")):
        return True
    return _is_file(text) or ("/" not in text and text.lower().endswith(_ENDINGS))


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except (OSError, ValueError):
        return False


class Seeds:
    """The addresses in a file, read once and bit by bit. Opened at once, so that a file that is not there is told
    early. `tell` is given a sentence about each bad line (the first of them), and in the end about their number. When
    `is_over` says so there are no more of them, also while more is being waited for."""

    def __init__(
        self, name: str | None, tell: Callable[[str], None], is_over: Callable[[], bool] = lambda: False
    ) -> None:
        self._name = "standard input" if name == STANDARD_INPUT else str(name)
        self._tell = tell
        self._is_over = is_over
        self._file = _opened(name, is_over) if name else None
        self.good = self.bad = 0  # lines, so far

    def __iter__(self) -> Iterator[str]:
        if self._file is None:
            return
        number = 0
        with self._file as file:
            for number, line in enumerate(_lines(file, self._name), start=1):
                if self._is_over():  # the line may be half a line
                    return
                if address := self._address(number, line):
                    yield address
        if self.bad:
            self._tell(f"{self._name}: {self.bad} of {number} lines are no http or https URLs")

    def _address(self, number: int, line: bytes) -> str | None:
        text = line.decode("utf-8", "surrogateescape").strip()
        is_whole = len(line) <= _MAX_LINE_BYTES
        if text.startswith("#") or (not text and is_whole):
            return None
        address = typed(text) if is_whole else None
        if address is not None:
            self.good += 1
            return address
        self.bad += 1
        if self.bad <= _MAX_TOLD:
            shown = text.encode("utf-8", "replace").decode()[:_MAX_SHOWN]
            self._tell(f"{self._name}, line {number}: {shown!r} is no http or https URL")
        return None


def _opened(name: str, is_over: Callable[[], bool]) -> IO[bytes]:
    try:
        return io.BufferedReader(_Patient(_raw(name), is_over), _BUFFER_BYTES)
    except OSError as error:
        raise ConfigError(f"--seeds {name} cannot be read: {error.strerror}") from error


def _raw(name: str) -> IO[bytes]:
    if name != STANDARD_INPUT:
        # a named pipe that nobody writes to yet must not hold us up
        return open(name, "rb", buffering=0, opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK))
    if sys.stdin is None:
        raise ConfigError(f"--seeds {name} cannot be read: standard input is closed")
    return sys.stdin.buffer


class _Patient(io.RawIOBase):
    """Waits for more without being deaf meanwhile: a signal does not end a read that has begun."""

    def __init__(self, file: IO[bytes], is_over: Callable[[], bool]) -> None:
        self._file = file
        self._is_over = is_over
        self._poll = select.poll()
        self._poll.register(file, select.POLLIN)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Nothing if it is over, as at the end."""
        while not self._is_over():
            if self._poll.poll(_LOOK_MILLISECONDS):
                with suppress(BlockingIOError):
                    return os.readv(self._file.fileno(), [buffer])
        return 0

    def close(self) -> None:
        self._file.close()
        super().close()


def _lines(file: IO[bytes], name: str) -> Iterator[bytes]:
    """The lines; of one that is too long no more than shows that it is."""
    is_first = True
    while line := _line(file, name):
        if is_first:
            if line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                raise ConfigError(f"{name} is written in UTF-16: save it as UTF-8")
            line, is_first = line.removeprefix(codecs.BOM_UTF8), False
        yield line
        while len(line) > _MAX_LINE_BYTES and not line.endswith(b"\n"):
            line = _line(file, name) or b"\n"


def _line(file: IO[bytes], name: str) -> bytes:
    try:
        return file.readline(_MAX_LINE_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{name} cannot be read: {error.strerror}") from error

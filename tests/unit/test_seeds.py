"""Start URLs on a command line and in files: what is read, what is told, and that a large file costs no memory."""

import os
import tracemalloc
from pathlib import Path
from typing import IO

import pytest

from common.errors import ConfigError
from common.seeds import Seeds, start_addresses

A, B = "http://a.org/", "http://b.org/"
CONTENTS = [
    # bytes of a file, the addresses in it, the numbers of the lines that are told
    (b"", [], []),
    (b"\n \n\t\n", [], []),
    (b"http://a.org/\nhttp://b.org/\n", [A, B], []),
    (b"http://a.org/\r\nhttp://b.org/", [A, B], []),
    (b"a.org\n  b.org/  \n", [A, B], []),
    (b"# seeds\n#http://c.org/\n  # more\na.org", [A], []),
    (b"http://a.org/#part\n", [A], []),
    (b"\xef\xbb\xbfhttp://a.org/\n\xef\xbb\xbfb.org\n", [A, B], []),
    (b"\xef\xbb\xbf# seeds\na.org\n", [A], []),
    (b"a.org\nftp://b.org/\nb.org\n", [A, B], [2]),
    (b"a.org\n\x80\xff\n\nme@b.org\nb.org", [A, B], [2, 4]),
    (b"a\x00.org\n\x00\n", [], [1, 2]),
    (b"http://b\xc3\xbccher.example/\n", ["http://xn--bcher-kva.example/"], []),
    (b"a.org/" + b"x" * 1_980 + b"\nb.org/" + b"x" * 3_000 + b"\nb.org", [A + "x" * 1_980, B], [2]),
    (b"a.org\n" + b"x" * 100_000 + b"\nb.org\n", [A, B], [2]),
    (b"a.org\n" + b"x" * 16_384 + b"\nb.org\n", [A, B], [2]),
    (b"a.org\n" + b"x" * 16_385 + b"\nb.org\n", [A, B], [2]),
    (b"a.org\n# " + b"x" * 40_000 + b"\nb.org\n", [A, B], []),
    (b"a.org\n" + b" " * 40_000 + b"b.org\na.org/x", [A, A + "x"], [2]),
    (b"a.org\n" + b"x" * 16_385, [A], [2]),
    (b"http://a.org/\tlabel\nb.org\n", [B], [1]),
    (b"a.org\nb.org # mine\nhttp://a.org/ http://b.org/\n", [A], [2, 3]),
    (b"a.org\rb.org\r", [], [1]),  # as old as that no program writes it any more
    (b"a.org\r\r\nb.org/\xc2\xa0x\n\xc2\xa0b.org\xc2\xa0\n", [A, B], [2]),
]


def piped(content: bytes) -> IO[str]:
    reader, writer = os.pipe()
    os.write(writer, content)
    os.close(writer)
    return os.fdopen(reader)


def read(file: Path, content: bytes) -> tuple[list[str], list[str]]:
    file.write_bytes(content)
    told: list[str] = []
    return list(Seeds(str(file), told.append)), told


@pytest.mark.parametrize(("content", "addresses", "bad"), CONTENTS)
def test_lines(tmp_path: Path, content: bytes, addresses: list[str], bad: list[int]) -> None:
    found, told = read(tmp_path / "seeds", content)
    assert found == addresses
    assert [line.partition(": ")[0] for line in told[: len(bad)]] == [f"{tmp_path}/seeds, line {n}" for n in bad]
    assert all(len(line) < 400 and line.isprintable() for line in told)
    lines = content.count(b"\n") + (not content.endswith(b"\n"))
    assert told[len(bad) :] == (
        [f"{tmp_path}/seeds: {len(bad)} of {lines} lines are no http or https URLs"] if bad else []
    )


def test_only_the_first_bad_lines_are_told_one_by_one(tmp_path: Path) -> None:
    found, told = read(tmp_path / "seeds", b"ftp://a.org/\n" * 1_000 + b"a.org")
    assert found == [A]
    assert len(told) == 21
    assert told[-1].endswith("1000 of 1001 lines are no http or https URLs")


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", piped(b"a.org\nftp://x/\n"))
    told: list[str] = []
    assert list(Seeds("-", told.append)) == [A]
    assert told[0] == "standard input, line 2: 'ftp://x/' is no http or https URL"


def test_a_closed_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(ConfigError, match="standard input is closed"):
        Seeds("-", print)


def test_when_it_is_over_half_a_line_is_no_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    monkeypatch.setattr("sys.stdin", os.fdopen(reader))
    os.write(writer, b"a.org\nb.org/half")  # and more is to come
    found: list[str] = []
    for address in Seeds("-", print, lambda: bool(found)):
        found.append(address)
    assert found == [A]
    os.close(writer)


def test_a_named_pipe_that_nobody_writes_to_holds_up_nobody(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert list(Seeds(str(tmp_path / "pipe"), print, iter([False, False, True, True]).__next__)) == []


@pytest.mark.parametrize("text", ["a.org\n", ""])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_is_told(tmp_path: Path, text: str, encoding: str) -> None:
    with pytest.raises(ConfigError, match="UTF-16: save it as UTF-8"):
        read(tmp_path / "seeds", f"\ufeff{text}".encode(encoding))


@pytest.mark.parametrize("name", ["missing", "."])
def test_a_file_that_cannot_be_read_is_told_before_anything_is_done(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        Seeds(str(tmp_path / name), print)


def test_no_file_has_no_seeds() -> None:
    assert list(Seeds(None, print)) == []


def test_a_large_file_costs_no_memory(tmp_path: Path) -> None:
    with (tmp_path / "seeds").open("w") as file:
        for number in range(100_000):
            file.write(f"http://host{number}.example/{'x' * 50}\n")
    tracemalloc.start()
    number = sum(1 for _ in Seeds(str(tmp_path / "seeds"), print))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert number == 100_000
    assert peak < 1_000_000


def test_urls_on_a_command_line() -> None:
    assert start_addresses(["a.org", "https://b.org:81/x", "c.org/list.txt", "http://seeds.txt/"]) == [
        A, "https://b.org:81/x", "http://c.org/list.txt", "http://seeds.txt/",
    ]  # fmt: skip
    for text in ("ftp://a.org/", "me@a.org", ""):
        with pytest.raises(ConfigError, match="is no http or https URL"):
            start_addresses([text])


@pytest.mark.parametrize(
    "name", ["seeds.txt", "SEEDS.TXT", "all.csv", "./list", "../x", "/tmp/x.txt", "~/x", "-", "here"]
)
def test_what_looks_like_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").write_text("")
    with pytest.raises(ConfigError, match=f"{name!r} looks like a file: with --seeds {name} ") as caught:
        start_addresses([name])
    assert ("http://" in str(caught.value)) == (name[0] not in "./~-")


def test_a_folder_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.org").mkdir()
    assert start_addresses(["a.org"]) == [A]

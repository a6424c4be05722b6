"""What is for its owner only is so from its first moment, whatever the umask."""

import os
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from common.files import is_open_to_others, open_private, private_folder, publish, publish_new

UMASKS = (0o000, 0o022, 0o077, 0o777)


@pytest.fixture(params=UMASKS, ids=oct)
def umask(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_private_folder(umask: int, tmp_path: Path) -> None:
    private_folder(tmp_path / "memory")
    assert mode(tmp_path / "memory") == 0o700


def test_the_folders_above_are_as_the_umask_says(tmp_path: Path) -> None:
    before = os.umask(0o022)
    private_folder(tmp_path / "work" / "memory")
    os.umask(before)
    assert mode(tmp_path / "work") == 0o755


@pytest.mark.parametrize(("before", "after"), [(0o755, 0o700), (0o777, 0o700), (0o750, 0o700), (0o700, 0o700)])
def test_a_folder_of_an_earlier_run_is_closed_to_others(tmp_path: Path, before: int, after: int) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old").chmod(before)
    private_folder(tmp_path / "old")
    assert mode(tmp_path / "old") == after


def test_a_folder_of_somebody_else_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refused(path: Path, mode: int) -> None:
        raise PermissionError(1, "not yours")

    (tmp_path / "theirs").mkdir(0o755)
    monkeypatch.setattr(Path, "chmod", refused)
    private_folder(tmp_path / "theirs")
    assert f"chmod 700 {tmp_path / 'theirs'}" in caplog.text


def test_a_file_where_the_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "memory").write_text("")
    with pytest.raises(FileExistsError):
        private_folder(tmp_path / "memory")


def test_a_private_file(umask: int, tmp_path: Path) -> None:
    with open_private(tmp_path / "log", "ab") as file:
        file.write(b"1")
    assert mode(tmp_path / "log") == 0o600


def test_a_private_file_is_published(umask: int, tmp_path: Path) -> None:
    publish(tmp_path / "file", [b"se", b"cret"], is_private=True)
    assert mode(tmp_path / "file") == 0o600
    assert (tmp_path / "file").read_bytes() == b"secret"


def test_a_file_of_an_earlier_run_is_closed_to_others(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("old ")
    (tmp_path / "log").chmod(0o644)
    with open_private(tmp_path / "log", "ab") as file:
        file.write(b"new")
    assert (mode(tmp_path / "log"), (tmp_path / "log").read_text()) == (0o600, "old new")


def test_one_of_many_publishes(tmp_path: Path) -> None:
    names = [str(number).encode() * 1000 for number in range(8)]
    barrier = Barrier(len(names))

    def publish(content: bytes) -> tuple[bool, bytes]:
        barrier.wait()
        return publish_new(tmp_path / "secret", content), (tmp_path / "secret").read_bytes()

    with ThreadPoolExecutor(len(names)) as pool:
        done = list(pool.map(publish, names))
    assert sum(made for made, _ in done) == 1
    assert len({seen for _, seen in done}) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]
    assert mode(tmp_path / "secret") == 0o600


@pytest.mark.parametrize(
    ("bits", "expected"), [(0o600, False), (0o400, False), (0o640, True), (0o604, True), (0o622, False)]
)
def test_who_can_read(tmp_path: Path, bits: int, expected: bool) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "file").chmod(bits)
    assert is_open_to_others(tmp_path / "file") is expected


def test_what_is_not_there_and_what_is_no_file_is_open_to_nobody(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o644)
    assert not is_open_to_others(tmp_path / "pipe")
    assert not is_open_to_others(tmp_path / "missing")

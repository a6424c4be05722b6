"""Files that appear completely or not at all, and what is said when they cannot be written."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from common.errors import PavoukError
from common.files import TEMPORARY_SUFFIX
from common.handles import let_go


class OutputError(PavoukError):
    """What was exported cannot be written; says where and why."""


@contextmanager
def replacing(path: Path, *, sync: bool = False) -> Iterator[IO[bytes]]:
    """A file to write to, which takes the place of `path` at the end of the block; after an error it is gone.

    Its temporary name begins with a dot, as the name of no page copy does. `sync`: on disk before it takes the place.
    """
    temporary = path.with_name(f".{os.getpid()}{TEMPORARY_SUFFIX}")
    try:
        with temporary.open("wb") as file:
            yield file
            if sync:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


@contextmanager
def opened(path: Path | None) -> Iterator[IO[bytes]]:
    """Standard output for None; a device or a pipe as it is; anything else is replaced when all is written."""
    if path is None:
        with _standard_output() as file:
            yield file
        return
    with explained(path):
        if path.exists() and not path.is_file() and not path.is_dir():
            with path.open("wb") as file:
                yield file
        else:
            with replacing(path, sync=True) as file:
                yield file


@contextmanager
def _standard_output() -> Iterator[IO[bytes]]:
    try:
        with explained("standard output"):
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
    except (OutputError, BrokenPipeError):
        let_go(sys.stdout)
        raise


@contextmanager
def explained(place: Path | str) -> Iterator[None]:
    """Turns what the system says of a place into a sentence. A reader who has seen enough is no trouble."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"cannot write to {place}: {error.strerror or error}") from error

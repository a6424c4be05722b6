"""File numbers: how many files and connections a process may have open, and what becomes of those that nobody reads."""

import os
import resource
from typing import IO, Any


def allow_open_files(wanted: int) -> None:
    """As many as that, or as the system lets us. The usual limit of 1,024 is for programs with few connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


def let_go(stream: IO[Any]) -> None:
    """Nobody reads what we write there any more. What is still in its buffer would be tried once more at the end of
    the process, which would then complain."""
    handle = os.open(os.devnull, os.O_WRONLY)
    os.dup2(handle, stream.fileno())
    os.close(handle)

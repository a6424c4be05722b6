"""Page copies and their index after a crawl, by the program that also makes them at other times: crawlExport."""

import argparse
import functools
import os
import subprocess
import sys
from pathlib import Path

from common.ending import INTERRUPTED
from common.errors import ConfigError
from common.lifeline import end_with_parent

INDEX_NAME = "index.txt"  # beside the folders of the hosts
_WRITTEN = (0, 1)  # 1: something is left out


def prepare(folder: Path) -> None:
    """Make the folder. What cannot be written must be told before the crawl, not after days."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot write to the repository {folder}: {error.strerror}") from error


def lay_out(options: argparse.Namespace, folder: Path) -> tuple[int, list[str]]:
    """Copy the pages of the crawl below `folder`, and write their index. Returns crawl's exit code, and lines for its
    summary about what is there now."""
    worst = 0
    lines: list[str] = []
    for command, name, output in (("files", "page copies", folder), ("index", "index file", folder / INDEX_NAME)):
        code = _export(options, command, output)
        if code == INTERRUPTED:
            return code, lines
        if code in _WRITTEN:
            lines.append(f"{name:15}{output}")
        worst = max(worst, min(code, 1))
    return worst, lines


def _export(options: argparse.Namespace, command: str, output: Path) -> int:
    """What crawlExport says goes to the user. Returns its exit code."""
    arguments = ["--dir", options.dir]
    if options.config:
        arguments += ["--config", options.config]
    if directory := getattr(options, "ftp_server.directory"):
        arguments += ["--directory", directory]
    done = subprocess.run(
        # -P: a folder of the user's that is called like one of our packages must not get in the way
        [sys.executable, "-P", "-m", "export.main", command, *arguments, "--output", output],
        stdin=subprocess.DEVNULL,
        preexec_fn=functools.partial(end_with_parent, os.getpid()),
    )
    return done.returncode

"""Page copies after a crawl, by the program that also makes them at other times: crawlExport files."""

import argparse
import functools
import os
import subprocess
import sys
from pathlib import Path

from common.errors import ConfigError
from common.lifeline import end_with_parent

_INTERRUPTED = 130


def prepare(folder: Path) -> None:
    """Make the folder. What cannot be written must be told before the crawl, not after days."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot write to the repository {folder}: {error.strerror}") from error


def lay_out(options: argparse.Namespace, folder: Path) -> int:
    """Copy the pages of the crawl below `folder`; what crawlExport says goes to the user. Returns crawl's exit code."""
    arguments = ["--dir", options.dir]
    if options.config:
        arguments += ["--config", options.config]
    if directory := getattr(options, "ftp_server.directory"):
        arguments += ["--directory", directory]
    done = subprocess.run(
        # -P: a folder of the user's that is called like one of our packages must not get in the way
        [sys.executable, "-P", "-m", "export.main", "files", *arguments, "--output", folder],
        stdin=subprocess.DEVNULL,
        preexec_fn=functools.partial(end_with_parent, os.getpid()),
    )
    return done.returncode if done.returncode in (0, _INTERRUPTED) else 1

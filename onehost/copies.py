"""Page copies and their index after a crawl, by the program that also makes them at other times: crawlExport."""

import argparse
import functools
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from common.ending import INTERRUPTED, Ending
from common.errors import ConfigError
from common.files import refuse_strangers
from common.lifeline import end_with_parent

INDEX_NAME = "index.txt"  # beside the folders of the hosts
_WRITTEN = (0, 1)  # 1: something is left out
_LOOK_SECONDS = 0.1


def prepare(folder: Path) -> None:
    """Make the folder. What cannot be written must be told before the crawl, not after days."""
    refuse_strangers(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".a"):
            pass
    except OSError as error:
        raise ConfigError(f"cannot write to the repository {folder}: {error.strerror}") from error
    if (folder / INDEX_NAME).is_dir():
        raise ConfigError(f"cannot write to the repository {folder}: {INDEX_NAME} is a folder")


def folder_options(options: argparse.Namespace) -> list[str]:
    """Which work folder and which configuration, as another command line takes them."""
    # With = because a name may begin with a dash.
    return [f"--dir={options.dir}", *([f"--config={options.config}"] if options.config else [])]


def lay_out(options: argparse.Namespace, folder: Path, ending: Ending) -> tuple[int, list[str]]:
    """Copy the pages of the crawl below `folder`, and write their index. Returns crawl's exit code, and lines for its
    summary about what is there now."""
    worst = 0
    lines: list[str] = []
    for command, name, output in (("files", "page copies", folder), ("index", "index file", folder / INDEX_NAME)):
        code = _export(options, command, output, ending)
        if ending.is_told or code == INTERRUPTED:
            return INTERRUPTED, lines
        if code in _WRITTEN:
            lines.append(f"{name:15}{output}")
        worst = max(worst, int(code != 0))  # below 0: it was killed
    return worst, lines


def _export(options: argparse.Namespace, command: str, output: Path, ending: Ending) -> int:
    """What crawlExport says goes to the user. Returns its exit code."""
    arguments = [*folder_options(options), f"--output={output}"]
    if directory := getattr(options, "ftp_server.directory"):
        arguments.append(f"--directory={directory}")
    with subprocess.Popen(
        # -P: a folder of the user's that is called like one of our packages must not get in the way
        [sys.executable, "-P", "-m", "export.main", command, *arguments],
        stdin=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is for us
        preexec_fn=functools.partial(end_with_parent, os.getpid()),
    ) as program:
        if _is_over(program, ending):
            program.terminate()
    return program.returncode


def _is_over(program: "subprocess.Popen[bytes]", ending: Ending) -> bool:
    """Whether it is time to end before the program has done its work."""
    while program.poll() is None:
        if ending.wait(_LOOK_SECONDS):
            return True
    return False

"""Copies of the source tree as a user has them after `git clone`, with the environment that a first use would make."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.processes import ROOT

_LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv-*", ".benchmark-venv", ".setup", ".mem", ".client", "node_modules", "__pycache__", ".*_cache",
    ".hypothesis", "*.egg-info", "tests",
)  # fmt: skip
_PROGRAM = """\
#!{python}
import sys
sys.path.insert(0, {root!r})
from {module} import {function}
sys.exit({function}())
"""
COMMANDS: dict[str, str] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]


def clone(folder: Path) -> Path:
    """The tree in `folder`, which must not exist. What pip would have to fetch is taken from our own environment."""
    shutil.copytree(ROOT, folder, symlinks=True, ignore=_LEFT_OUT)
    programs = folder / f".venv-{sys.version_info.major}.{sys.version_info.minor}" / "bin"
    programs.mkdir(parents=True)
    (programs / "python").symlink_to(Path(sys.executable).resolve())
    for name, target in COMMANDS.items():
        module, _, function = target.partition(":")
        program = _PROGRAM.format(python=sys.executable, root=str(folder), module=module, function=function)
        (programs / name).write_text(program)
        (programs / name).chmod(0o755)
    asked = "import environment; print(environment.expected_stamp('run'), end='')"
    stamp = subprocess.run([sys.executable, "-c", asked], cwd=folder / "setup", capture_output=True, check=True).stdout
    (programs.parent / "stamp").write_bytes(stamp)
    return folder

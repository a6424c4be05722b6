"""Makes the private virtual environment of ./crawl and ./test, and prints where its programs are.

Called as `python setup/environment.py run|test` with the interpreter the environment is for; it needs the
standard library only. An environment is complete if and only if its stamp file holds the expected digest: the
stamp is removed before anything changes and written last, so what an interrupted set-up left is thrown away.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "requirements"
# "test" installs on top of "run", so a complete "test" environment serves "run" as well.
FILES = {
    "run": ("build.txt", "run.txt"),
    "test": ("build.txt", "run.txt", "test.txt"),
}


class SetupError(Exception):
    """The environment cannot be made; the message tells the user what to do."""


def say(text: str) -> None:
    print(f"setup: {text}", file=sys.stderr, flush=True)


def expected_stamp(level: str) -> str:
    """Where the environment belongs, and a digest of all that makes it out of date when it changes."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    installed = [project["build-system"], project["project"], project["tool"]["setuptools"]]
    digest = hashlib.sha256(json.dumps(installed, sort_keys=True).encode())
    for name in FILES[level]:
        digest.update(b"\0" + (REQUIREMENTS / name).read_bytes())
    return f"{ROOT}\n{level} {digest.hexdigest()}\n"


def read_stamp(venv: Path) -> str:
    try:
        return (venv / "stamp").read_text()
    except (OSError, UnicodeDecodeError):
        return ""


def is_complete(venv: Path, level: str) -> bool:
    accepted = [expected_stamp(name) for name in FILES if set(FILES[name]) >= set(FILES[level])]
    return read_stamp(venv) in accepted and is_sound(venv)


def is_sound(venv: Path) -> bool:
    """Whether it was complete once, even if out of date now, and its interpreter is there."""
    # Scripts inside an environment hold its absolute path: a moved or copied project needs a new one.
    if not read_stamp(venv).startswith(f"{ROOT}\n"):
        return False
    python = venv / "bin" / "python"  # a link, dangling when the interpreter has been removed
    # Which interpreter of one version made it does not matter, unless the user names one: two users with
    # different paths would remake each other's environment for ever.
    if os.environ.get("PAVOUK_PYTHON") and os.path.realpath(python) != os.path.realpath(sys.executable):
        return False
    return os.access(python, os.X_OK)


def make(venv: Path, level: str) -> None:
    """Makes the environment, or brings it up to date; the caller holds the lock."""
    # In place where possible: somebody may be running programs from it right now.
    in_place = is_sound(venv)
    (venv / "stamp").unlink(missing_ok=True)
    if in_place:
        say(f"bringing {venv.name} up to date")
    else:
        say(f"making {venv.name} (once; a minute or two)")
        if venv.exists():
            shutil.rmtree(venv)
        require_venv_module()
        run([sys.executable, "-m", "venv", str(venv)])
    # Nothing but the pinned versions may come in, not even to build a library that comes as source:
    # hence no build isolation (it would fetch the newest setuptools) and no dependency resolution.
    pip = [str(venv / "bin" / "python"), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
    run([*pip, "-r", str(REQUIREMENTS / "build.txt")])
    run([*pip, "--no-build-isolation", "--no-deps", "-r", str(REQUIREMENTS / f"{level}.txt")])
    # "compat" puts the project folder itself on the path, so a new top-level package is seen at once.
    compat = ["--config-settings", "editable_mode=compat"]
    run([*pip, "--no-build-isolation", "--no-deps", *compat, "--editable", str(ROOT)])
    # Where the environment forbids Python to keep what it compiles, every start would compile everything again.
    run([str(venv / "bin" / "python"), "-m", "compileall", "-q", *packages()])
    partial = venv / "stamp.part"
    partial.write_text(expected_stamp(level))
    partial.replace(venv / "stamp")


def packages() -> list[str]:
    """The folders of the program itself."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    names = project["tool"]["setuptools"]["packages"]["find"]["include"]
    return [str(ROOT / name.rstrip("*")) for name in names]


def require_venv_module() -> None:
    """Debian and Ubuntu keep ensurepip in a package of its own; gets it when that is possible."""
    if importlib.util.find_spec("ensurepip"):
        return
    package = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
    command = ["apt-get", "install", "-y", "--no-install-recommends", package]
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise SetupError(f"Python's venv module is incomplete; run as root: {' '.join(command)}")
    say(f"installing {package}")
    run(["apt-get", "update", "-qq"])
    run(command)


def run(command: list[str], cwd: Path | None = None) -> None:
    # stdout is for the path we print; PYTHONPATH and the like of the caller must not leak into pip.
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    env["DEBIAN_FRONTEND"] = "noninteractive"
    status = subprocess.run(command, stdout=sys.stderr.fileno(), env=env, cwd=cwd).returncode
    if status:
        raise SetupError(f"failed with status {status}: {' '.join(command)}")


@contextmanager
def locked() -> Iterator[None]:
    """Keeps other set-ups of this project out; one lock for all, as all write into the project folder."""
    path = ROOT / ".setup" / "lock"
    path.parent.mkdir(exist_ok=True)
    with path.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def ensure(level: str) -> Path:
    """Returns the bin folder of a complete environment, made or remade when needed."""
    venv = ROOT / f".venv-{sys.version_info.major}.{sys.version_info.minor}"
    if not is_complete(venv, level):
        with locked():
            if not is_complete(venv, level):  # somebody else may have made it while we waited
                make(venv, level)
    return venv / "bin"


def main() -> int:
    if len(sys.argv) != 2 or sys.argv[1] not in FILES:
        print("usage: environment.py run|test", file=sys.stderr)
        return 2
    try:
        print(ensure(sys.argv[1]))
    except (SetupError, OSError) as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        say("interrupted; the next start begins anew")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())

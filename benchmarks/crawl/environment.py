"""The private Python environment of Scrapy, made on first use; Pavouk itself never sees it."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.crawl.errors import BenchmarkError
from benchmarks.crawl.measuring import ROOT

REQUIREMENTS = Path(__file__).with_name("requirements.txt")
FOLDER = ROOT / ".benchmark-venv"


def scrapy_python() -> Path:
    """The interpreter that has Scrapy. An environment without a fitting stamp is made anew."""
    python, stamp = FOLDER / "bin" / "python", FOLDER / "stamp"
    expected = f"{sys.version}\n{hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()}\n"
    if not (stamp.is_file() and stamp.read_text() == expected and os.access(python, os.X_OK)):
        print(f"making {FOLDER.name} for Scrapy (once)", file=sys.stderr, flush=True)
        shutil.rmtree(FOLDER, ignore_errors=True)
        _run([sys.executable, "-m", "venv", str(FOLDER)])
        pip = [str(python), "-m", "pip", "install", "-qq", "--disable-pip-version-check", "--no-deps"]
        _run([*pip, "-r", str(REQUIREMENTS)])
        stamp.write_text(expected)
    return python


def checked(python: Path) -> Path:
    """The user's own interpreter, if it has Scrapy."""
    try:
        found = subprocess.run([str(python), "-c", "import scrapy"], stderr=subprocess.DEVNULL).returncode == 0
    except OSError as error:
        raise BenchmarkError(f"{python} cannot be run: {error.strerror}") from error
    if not found:
        raise BenchmarkError(f"{python} has no Scrapy")
    return python


def _run(command: list[str]) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    if status := subprocess.run(command, env=environment, stdout=sys.stderr).returncode:
        raise BenchmarkError(f"Scrapy cannot be installed (status {status}): {' '.join(command)}")

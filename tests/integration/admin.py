"""crawlAdmin as its user runs it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.processes import ROOT

TIMEOUT_SECONDS = 120


def run_admin(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The finished command; tracebacks are never what a user should see."""
    command, *rest = arguments
    line = [sys.executable, "-m", "server.admin.main", command, "--dir", str(folder), *rest]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def ask_admin(folder: Path, *arguments: str, code: int = 0) -> dict[str, Any]:
    """The answer as JSON; the exit code must be as told."""
    done = run_admin(folder, *arguments, "--json")
    assert done.returncode == code, done.stdout + done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer

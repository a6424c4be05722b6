"""A command whose libraries are not installed says in one line how to install them."""

import importlib.metadata
import os
import signal
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from common.extras import LIBRARIES
from tests.processes import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
HOST = {"urlServer", "ftpServer", "crawlAdmin", "crawlExport"}
SHARED = {"lxml", "cgi"}  # others bring them, too
Run = Callable[[set[str], str], subprocess.CompletedProcess[str]]


@cache
def modules_of(distribution: str) -> frozenset[str]:
    """The modules that an installed distribution brings."""
    found = importlib.metadata.packages_distributions()
    return frozenset(name for name, owners in found.items() if distribution in map(str.lower, owners))


@pytest.mark.parametrize("extra", LIBRARIES)
def test_the_table_names_a_module_of_each_requirement(extra: str) -> None:
    declared = PROJECT["optional-dependencies"][extra] if extra else PROJECT["dependencies"]
    for requirement in map(Requirement, declared):
        if requirement.marker is None or requirement.marker.evaluate():
            modules = modules_of(requirement.name.lower())
            assert modules & set(LIBRARIES[extra]), f"{requirement.name} brings {sorted(modules)}"
    assert len(LIBRARIES[extra]) == len(declared)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs an installed command where these libraries are not installed."""

    def run(hidden: set[str], command: str) -> subprocess.CompletedProcess[str]:
        installed = Path(sysconfig.get_path("purelib"))
        there = tmp_path / "without" / "-".join(sorted(hidden))
        if not there.exists():
            there.mkdir(parents=True)
            for path in installed.iterdir():
                if path.name.split(".")[0] not in hidden:
                    (there / path.name).symlink_to(path)
        module, _, function = PROJECT["scripts"][command].partition(":")
        program = f"import sys; from {module} import {function}; sys.exit({function}())"
        return subprocess.run(
            [sys.executable, "-S", "-W", "ignore", "-c", program, "--version"],
            cwd=tmp_path, env={**os.environ, "PYTHONPATH": f"{there}:{ROOT}"},
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip

    return run


@pytest.mark.parametrize("command", PROJECT["scripts"])
@pytest.mark.parametrize("missing", ["server", "client", "", "one"])
def test_a_missing_extra_is_named(run: Run, missing: str, command: str) -> None:
    hidden = {"spyne"} if missing == "one" else set(LIBRARIES[missing]) - SHARED
    needs = {"clientCrawler": {"client"}, "crawl": {"server", "client"}}.get(command, {"server"})
    done = run(hidden, command)
    if {"one": "server"}.get(missing, missing) in needs | {""}:
        extra = "all" if len(needs) > 1 else needs.pop()
        assert done.stderr.startswith(f"{command}: ")
        assert done.stderr.endswith(f"pip install 'pavouk[{extra}]'\n")
        assert (done.returncode, done.stderr.count("\n"), done.stdout) == (2, 1, "")
    else:
        assert (done.returncode, done.stdout[:7], done.stderr) == (0, "pavouk ", "")


_CTRL_C = """
import os, signal, sys
class Finder:
    def find_spec(self, name, path, target=None):
        if name.endswith(".main"):
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
from {module} import {function}
{function}()
"""


@pytest.mark.parametrize("command", PROJECT["scripts"])
def test_ctrl_c_while_a_command_is_loaded_ends_it_without_a_word(command: str) -> None:
    module, _, function = PROJECT["scripts"][command].partition(":")
    program = [sys.executable, "-c", _CTRL_C.format(module=module, function=function)]
    done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_every_command_is_known_to_these_tests() -> None:
    assert set(PROJECT["scripts"]) == HOST | {"clientCrawler", "crawl"}

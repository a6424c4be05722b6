"""The set-up behind ./crawl and ./test: which Python, when an environment is complete, what is pinned."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
THIS_VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"


def shell(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-c", f". '{ROOT}/setup/python.sh'; {script}"],
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_finds_a_working_python():
    found = shell("find_python").stdout.strip()
    program = "import sys; print(sys.version_info[:2])"
    out = subprocess.run([found, "-c", program], capture_output=True, text=True)
    assert out.stdout.strip() in ("(3, 11)", "(3, 12)", "(3, 13)")


@pytest.mark.parametrize("text", ["exit 127", "echo 'command not found' >&2; exit 1"])
def test_passes_over_a_program_that_fails(tmp_path, text):
    """A pyenv shim exists for versions that are not active, and fails when called."""
    shim = program(tmp_path / "python3", text)
    result = shell("find_python", PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert result.returncode == 0
    assert result.stdout.strip() != str(shim)


def test_looks_into_pyenv(tmp_path):
    python = program(tmp_path / "versions" / "3.11.99" / "bin" / "python3", "echo 3.11")
    program(tmp_path / "versions" / "3.10.1" / "bin" / "python3", "echo 3.10")
    lines = shell("python_candidates", PYENV_ROOT=str(tmp_path)).stdout.splitlines()
    assert str(python) in lines
    assert not any("3.10.1" in line for line in lines)


def test_the_user_decides():
    assert shell("find_python", PAVOUK_PYTHON=sys.executable).stdout.strip() == sys.executable


def test_says_when_the_users_choice_does_not_work(tmp_path):
    result = shell("find_python", PAVOUK_PYTHON=str(program(tmp_path / "old", "exit 1")))
    assert result.returncode != 0
    assert "PAVOUK_PYTHON" in result.stderr


def test_other_pythons_are_others_and_each_once():
    found = shell(f"find_other_pythons {THIS_VERSION}", HOME=str(Path.home())).stdout.split()
    versions = [shell(f"python_version '{path}'").stdout.strip() for path in found]
    assert THIS_VERSION not in versions
    assert len(versions) == len(set(versions))


@pytest.fixture
def environment(tmp_path, monkeypatch):
    """The set-up module, at work on a copy of what it reads."""
    monkeypatch.syspath_prepend(ROOT / "setup")
    monkeypatch.delenv("PAVOUK_PYTHON", raising=False)
    import environment

    (tmp_path / "requirements").mkdir()
    for name in ("build.txt", "run.txt", "test.txt"):
        (tmp_path / "requirements" / name).write_bytes((ROOT / "requirements" / name).read_bytes())
    (tmp_path / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    monkeypatch.setattr(environment, "REQUIREMENTS", tmp_path / "requirements")
    return environment


@pytest.fixture
def venv(environment, tmp_path):
    """A folder that looks like a complete environment for the tests."""
    venv = tmp_path / "venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "python").symlink_to(sys.executable)
    (venv / "stamp").write_text(environment.expected_stamp("test"))
    return venv


def test_an_environment_for_tests_serves_a_crawl_too(environment, venv):
    assert environment.is_complete(venv, "test")
    assert environment.is_complete(venv, "run")


def test_an_environment_for_a_crawl_does_not_serve_tests(environment, venv):
    (venv / "stamp").write_text(environment.expected_stamp("run"))
    assert environment.is_complete(venv, "run")
    assert not environment.is_complete(venv, "test")


DAMAGES = ("no stamp", "half a stamp", "no interpreter", "new pin", "new command", "moved")


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_makes_an_environment_incomplete(environment, venv, tmp_path, monkeypatch, damage):
    stamp = venv / "stamp"
    if damage == "no stamp":
        stamp.unlink()
    elif damage == "half a stamp":
        stamp.write_text(stamp.read_text()[:5])
    elif damage == "no interpreter":
        (venv / "bin" / "python").unlink()
        (venv / "bin" / "python").symlink_to(tmp_path / "removed")
    elif damage == "new pin":
        (tmp_path / "requirements" / "run.txt").write_text("lxml==0\n")
    elif damage == "new command":
        project = tmp_path / "pyproject.toml"
        project.write_text(project.read_text().replace("[project.scripts]", '[project.scripts]\nx = "x:x"'))
    else:
        (tmp_path / "elsewhere").mkdir()
        for name in ("requirements", "pyproject.toml"):
            (tmp_path / "elsewhere" / name).symlink_to(tmp_path / name)
        monkeypatch.setattr(environment, "ROOT", tmp_path / "elsewhere")
    assert not environment.is_complete(venv, "test")
    # what is only out of date is mended in place; the rest is made anew
    assert environment.is_sound(venv) == (damage in ("new pin", "new command"))


def test_settings_of_tools_do_not_make_it_incomplete(environment, venv, tmp_path):
    project = tmp_path / "pyproject.toml"
    project.write_text(project.read_text().replace("[tool.mypy]", "[tool.mypy]\nverbosity = 0"))
    assert environment.is_complete(venv, "test")


def pins() -> dict[str, Requirement]:
    files = [ROOT / "requirements" / name for name in ("run.txt", "test.txt")]
    lines = [line for file in files for line in file.read_text().splitlines()]
    requirements = [Requirement(line.split("#")[0]) for line in lines if re.match(r"\w", line)]
    return {canonicalize_name(requirement.name): requirement for requirement in requirements}


def test_everything_is_pinned_to_one_version():
    assert all(re.fullmatch(r"==[0-9.]+", str(requirement.specifier)) for requirement in pins().values())


def test_pins_are_within_what_the_project_declares():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    declared = project["dependencies"] + [line for extra in extras for line in extra]
    direct = [requirement for requirement in map(Requirement, declared) if requirement.name != "pavouk"]
    pinned = pins()
    for requirement in direct:
        (pin,) = pinned[canonicalize_name(requirement.name)].specifier
        assert requirement.specifier.contains(pin.version), requirement


def test_npm_lock_file_names_no_registry():
    lock = json.loads((ROOT / "tests/foreign/package-lock.json").read_text())
    assert len(lock["packages"]) > 1
    assert not [name for name, package in lock["packages"].items() if "resolved" in package]

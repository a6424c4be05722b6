"""The secret of a host without a token, what follows from secrets, and who needs one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from common.errors import ConfigError
from common.secrets import SECRET_NAME, check_exposure, ftp_password, host_secret, known_host_secret, same_secret
from tests.processes import ROOT

PROGRAM = "import sys, pathlib; from common.secrets import host_secret; print(host_secret(pathlib.Path(sys.argv[1])))"


def test_two_hosts_have_two_secrets(tmp_path: Path) -> None:
    one, other = host_secret(tmp_path / "one" / ".mem"), host_secret(tmp_path / "other" / ".mem")
    assert one != other
    assert len(one) == 64
    assert ftp_password(one) not in (ftp_password(""), ftp_password(other), one)


def test_the_secret_stays(tmp_path: Path) -> None:
    assert known_host_secret(tmp_path) is None
    assert host_secret(tmp_path) == host_secret(tmp_path) == known_host_secret(tmp_path)
    assert (tmp_path / SECRET_NAME).stat().st_mode & 0o777 == 0o600


def test_programs_that_start_together_have_one_secret(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, tmp_path / ".mem"]
    programs = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(6)]
    secrets = {program.communicate(timeout=60)[0] for program in programs}
    assert len(secrets) == 1
    assert len(secrets.pop().strip()) == 64


@pytest.mark.parametrize("damage", ["open to the group", "open to all", "a link", "empty", "a folder"])
def test_a_secret_that_others_could_know_is_refused(tmp_path: Path, damage: str) -> None:
    file = tmp_path / SECRET_NAME
    if damage == "a folder":
        file.mkdir()
    else:
        file.write_text("" if damage == "empty" else "known")
        file.chmod({"open to the group": 0o640, "open to all": 0o604}.get(damage, 0o600))
    if damage == "a link":
        file.rename(tmp_path / "elsewhere")
        file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match=SECRET_NAME):
        host_secret(tmp_path)


def test_a_secret_of_somebody_else_is_refused(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    host_secret(tmp_path)
    os.chown(tmp_path / SECRET_NAME, 65534, 65534)
    with pytest.raises(ConfigError, match="must be a file of yours"):
        host_secret(tmp_path)


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be used"):
        host_secret(tmp_path / "file" / ".mem")


@pytest.mark.parametrize(
    ("ip", "needs_one"),
    [("127.0.0.1", False), ("127.1.2.3", False), ("::1", False), ("localhost", False),
     ("0.0.0.0", True), ("::", True), ("192.0.2.1", True), ("host.example", True), ("", True)],
)  # fmt: skip
def test_who_can_be_reached_from_outside_needs_a_token(ip: str, needs_one: bool) -> None:
    check_exposure(ip, "a token")
    if needs_one:
        with pytest.raises(ConfigError, match="needs a token"):
            check_exposure(ip, "")
    else:
        check_exposure(ip, "")


@pytest.mark.parametrize(
    ("given", "expected", "same"), [("a", "a", True), ("a", "b", False), ("", "a", False), ("é", "e", False)]
)
def test_comparing(given: str, expected: str, same: bool) -> None:
    assert same_secret(given, expected) is same

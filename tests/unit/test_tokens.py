"""Where the token comes from, what counts more, and what is told about secrets that others can read."""

import argparse
import os
from pathlib import Path

import pytest

from common.config import add_common_options, add_options, from_options
from common.errors import ConfigError
from common.settings import Settings

CONFIG = "[url_Server]\ntoken = config\n"


def read(folder: Path, *arguments: str, section: str = "url_Server", **environment: str) -> Settings:
    parser = argparse.ArgumentParser()
    add_common_options(parser)
    add_options(parser, section)
    options = parser.parse_args(["--dir", str(folder), *arguments])
    return from_options(options, environment=environment)


def write(file: Path, text: str, mode: int = 0o600) -> Path:
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    file.chmod(mode)
    return file


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A work folder with a token in each place."""
    write(tmp_path / "config.cfg", CONFIG)
    write(tmp_path / "token", "file\n")
    write(tmp_path / "credentials" / "pavouk-token", "credential\n")
    return tmp_path


def test_what_counts_more(folder: Path) -> None:
    places = {"PAVOUK_TOKEN": "variable", "CREDENTIALS_DIRECTORY": str(folder / "credentials")}
    assert read(folder, "--token", "line", **places).url_server.token == "line"
    assert read(folder, "--token-file", "token", **places).url_server.token == "file"
    assert read(folder, **places).url_server.token == "variable"
    places["PAVOUK_TOKEN"] = ""
    assert read(folder, **places).url_server.token == "credential"
    (folder / "credentials" / "pavouk-token").unlink()
    assert read(folder, **places).url_server.token == "config"
    assert read(folder, "--token", "", **places).url_server.token == ""


def test_a_credential_that_cannot_be_looked_at_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"the token in .*/pavouk-token cannot be read: File name too long"):
        read(tmp_path, CREDENTIALS_DIRECTORY="x" * 5_000)
    assert read(tmp_path, CREDENTIALS_DIRECTORY=str(tmp_path / "missing")).url_server.token == ""


def test_the_environment_counts_for_all_sections(folder: Path) -> None:
    write(folder / "config.cfg", CONFIG + "[ftp_Server]\ntoken = other\n[settings]\ntoken_file = token\n")
    settings = read(folder)
    assert (settings.ftp_server.token, settings.client.token) == ("other", "file")
    settings = read(folder, PAVOUK_TOKEN="variable")
    assert (settings.ftp_server.token, settings.client.token) == ("variable", "variable")


def test_sections_inherit_a_token_file(folder: Path) -> None:
    write(folder / "config.cfg", "[url_Server]\ntoken_file = token\n[settings]\ntoken = own\n")
    settings = read(folder)
    assert (settings.url_server.token, settings.ftp_server.token, settings.client.token) == ("file", "file", "own")


def test_a_token_that_is_not_needed_is_not_read(tmp_path: Path) -> None:
    write(tmp_path / "config.cfg", "[url_Server]\ntoken_file = missing\n[settings]\ntoken = own\n")
    parser = argparse.ArgumentParser()
    add_common_options(parser)
    options = parser.parse_args(["--dir", str(tmp_path)])
    assert from_options(options, ("client",), {}).client.token == "own"
    settings = from_options(options, (), {"PAVOUK_TOKEN": "x"})
    assert {settings.url_server.token, settings.ftp_server.token, settings.client.token} == {""}
    with pytest.raises(ConfigError, match=r"missing cannot be read: No such file"):
        from_options(options, ("ftp_server",), {})


@pytest.mark.parametrize("content", ["", "\n", "two words", "öffentlich", "a\nb", "\0", "x" * 20_000 + " "])
def test_a_bad_token_file(tmp_path: Path, content: str) -> None:
    write(tmp_path / "token", content)
    with pytest.raises(ConfigError, match="expected a shared secret") as caught:
        read(tmp_path, "--token-file", "token")
    assert "words" not in str(caught.value)


@pytest.mark.parametrize("content", ["abc", "abc\n", "abc\r\n", " abc \n\n", "\ufeffabc"])
def test_blanks_around_a_token_in_a_file_do_not_count(tmp_path: Path, content: str) -> None:
    write(tmp_path / "token", content)
    assert read(tmp_path, "--token-file", "token").url_server.token == "abc"


def test_a_token_through_a_pipe(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.write(writer, b"piped\n")
    os.close(writer)
    assert read(tmp_path, "--token-file", f"/dev/fd/{reader}").url_server.token == "piped"
    os.close(reader)


def test_a_bad_variable_is_not_shown(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="PAVOUK_TOKEN: expected a shared secret") as caught:
        read(tmp_path, PAVOUK_TOKEN="hush hush")
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("where", ["line", "config"])
def test_a_bad_token_is_not_shown(tmp_path: Path, where: str) -> None:
    write(tmp_path / "config.cfg", "[url_Server]\ntoken = hush hush\n" if where == "config" else "")
    with pytest.raises(ConfigError, match=r"token.*: expected a shared secret") as caught:
        read(tmp_path, *(["--token", "hush hush"] if where == "line" else []))
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("arguments", [("--token", "a", "--token-file", "token"), ()])
def test_token_and_token_file_are_one_too_many(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    write(tmp_path / "token", "file")
    write(tmp_path / "config.cfg", "" if arguments else "[url_Server]\ntoken = a\ntoken_file = token\n")
    with pytest.raises(ConfigError, match=r"both set for \[url_Server\]"):
        read(tmp_path, *arguments)


def test_a_token_on_the_command_line_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    read(tmp_path, "--token", "abc")
    assert "--token-file FILE, or set PAVOUK_TOKEN" in caplog.text
    assert "abc" not in caplog.text


@pytest.mark.parametrize(("mode", "told"), [(0o600, False), (0o640, True), (0o644, True)])
@pytest.mark.parametrize("what", ["config.cfg", "token", "key.pem", "nothing"])
def test_secrets_that_others_can_read_are_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, what: str, mode: int, told: bool
) -> None:
    is_config = what in ("config.cfg", "nothing")
    write(tmp_path / "config.cfg", CONFIG if what == "config.cfg" else "", mode if is_config else 0o600)
    for name in ("token", "key.pem"):
        write(tmp_path / name, "abc", mode if name == what else 0o600)
    arguments = [] if is_config else ["--token-file", "token", "--tls-key", "key.pem"]
    read(tmp_path, *arguments)
    assert (f"chmod 600 {tmp_path / what}" in caplog.text) is (told and what != "nothing")
    assert len(caplog.records) == (told and what != "nothing")

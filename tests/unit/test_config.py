"""The configuration: file, command line, and the message for everything that is wrong."""

import argparse
import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from common.config import add_common_options, add_options, from_options, load, sample_file
from common.errors import ConfigError
from common.settings import SECTIONS, Settings, keys_of
from tests.processes import ROOT, running

CLASSIC = """\
[url_Server]
ip = 127.0.0.1
server_port = 50001
start_Urls = http://example.org/;http://example.com/a%20b;
urls_to_crawl = 300
robots_control = 1
page_parse = 1
sitemap = 1
document_save = 0

[ftp_Server]
ip = 127.0.0.1
ftp_port = 50003
directory = Pages

[settings]
server_ip = 127.0.0.1
server_port = 50001
number_of_threads = 10
"""


def read(folder: Path, text: str | bytes) -> Settings:
    (folder / "config.cfg").write_bytes(text.encode() if isinstance(text, str) else text)
    return load(folder)


def refused(folder: Path, text: str | bytes) -> str:
    with pytest.raises(ConfigError) as caught:
        read(folder, text)
    message = str(caught.value)
    assert str(folder / "config.cfg") in message
    assert "\n" not in message
    return message


def from_line(folder: Path, *arguments: str, section: str = "url_Server") -> Settings:
    parser = argparse.ArgumentParser()
    add_common_options(parser)
    add_options(parser, section)
    return from_options(parser.parse_args(["--dir", str(folder), *arguments]))


def test_a_missing_file_means_the_defaults(tmp_path: Path) -> None:
    assert load(tmp_path) == Settings(folder=tmp_path)
    assert load(tmp_path).url_server.server_port == 50001
    assert load(tmp_path).ftp_server.ftp_port == 50003
    assert load(tmp_path).url_server.effective_scope == "free"


def test_a_file_that_was_asked_for_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"missing\.cfg cannot be read"):
        load(tmp_path, tmp_path / "missing.cfg")


def test_the_classic_configuration(tmp_path: Path) -> None:
    settings = read(tmp_path, CLASSIC)
    assert settings.url_server.start_urls == ("http://example.org/", "http://example.com/a%20b")
    assert settings.url_server.effective_scope == "site"
    assert settings.url_server.document_save is False
    assert settings.pages == tmp_path / "Pages"
    assert settings.client.number_of_threads == 10


def test_it_is_also_found_in_the_config_folder(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.cfg").write_text("[settings]\nnumber_of_threads = 3\n")
    assert load(tmp_path).client.number_of_threads == 3


def test_the_sample_file_is_up_to_date() -> None:
    """After a change: python -c 'from common.config import *; print(sample_file(), end="")' > config/config.cfg"""
    assert (ROOT / "config" / "config.cfg").read_text() == sample_file()


def test_the_sample_file_has_every_key_and_only_defaults(tmp_path: Path) -> None:
    assert read(tmp_path, sample_file()) == Settings(folder=tmp_path)
    lines = sample_file().splitlines()
    for _, section_class in SECTIONS.values():
        for key in keys_of(section_class).values():
            assert any(line.startswith(f"{key.name} =") for line in lines), key.name


def test_an_unknown_key(tmp_path: Path) -> None:
    message = refused(tmp_path, "# one\n[url_Server]\nip = 127.0.0.1\nserver_prot = 1\n")
    assert "line 4" in message
    assert "'server_prot' in [url_Server]" in message
    assert "server_port" in message  # what was expected


@pytest.mark.parametrize("name", ["url_Servers", "DEFAULT"])
def test_an_unknown_section(tmp_path: Path, name: str) -> None:
    message = refused(tmp_path, f"[settings]\n\n[{name}]\nip = 127.0.0.1\n")
    assert f"line 3: unknown section [{name}], expected [url_Server], [ftp_Server], [settings]" in message


BAD_VALUES = [
    ("url_Server", "server_port", "65536", "a whole number from 0 to 65535"),
    ("url_Server", "server_port", "-1", "a whole number from 0 to 65535"),
    ("url_Server", "server_port", "http", "a whole number from 0 to 65535"),
    ("url_Server", "server_port", "50001 ; the port", "a whole number from 0 to 65535"),
    ("url_Server", "server_port", "", "a whole number from 0 to 65535"),
    ("url_Server", "server_port", "9" * 5000, "a whole number from 0 to 65535"),
    ("url_Server", "robots_control", "2", "1 or 0"),
    ("url_Server", "scope", "galaxy", "one of nothing, free, domain, site, host, path"),
    ("url_Server", "max_url_length", "2001", "a whole number from 20 to 2000"),
    ("url_Server", "max_path_repeats", "-1", "a whole number from 0 to 2000"),
    ("url_Server", "delay", "nan", "a number from 0 to 86400"),
    ("url_Server", "delay", "inf", "a number from 0 to 86400"),
    ("url_Server", "delay", "-1", "a number from 0 to 86400"),
    ("url_Server", "period", "-1", "a number from 0 to 87600, or adaptive"),
    ("url_Server", "period", "often", "a number from 0 to 87600, or adaptive"),
    ("url_Server", "bundle_format", "zip", "one of tar.bz2, tar.zst"),
    ("url_Server", "agent_name", "my crawler", "a word of letters, digits, _ and -"),
    ("url_Server", "agent_name", "pavouk/2", "a word of letters, digits, _ and -"),
    ("url_Server", "agent_name", "", "a word of letters, digits, _ and -"),
    ("url_Server", "contact", "a\tb", "a URL or a mail address"),
    ("url_Server", "contact", "x) evil (y", "a URL or a mail address"),
    ("url_Server", "token", "two words", "a shared secret"),
    ("url_Server", "ip", "127.0.0.1\n  server_port = 1", "an address of this machine"),
    ("ftp_Server", "passive_ports", "50010", "two port numbers"),
    ("ftp_Server", "passive_ports", "50050-50010", "two port numbers"),
    ("ftp_Server", "passive_ports", "0-70000", "two port numbers"),
    ("ftp_Server", "passive_ports", "1-2-3", "two port numbers"),
    ("ftp_Server", "directory", "", "a folder"),
    ("settings", "number_of_threads", "0", "a whole number from 1 to 1000"),
    ("settings", "name", "a b", "at most 100 letters, digits"),
]


@pytest.mark.parametrize(("section", "key", "value", "expected"), BAD_VALUES)
def test_a_bad_value(tmp_path: Path, section: str, key: str, value: str, expected: str) -> None:
    message = refused(tmp_path, f"[{section}]\n# why\n{key} = {value}\n")
    assert f"line 3: {key} = " in message
    assert f"in [{section}]: expected {expected}" in message


GOOD_VALUES = [
    ("url_Server", "period", "adaptive"),
    ("url_Server", "agent_name", "My-Crawler_2"),
    ("url_Server", "contact", "https://example.org/bot?a=1"),
    ("ftp_Server", "passive_ports", "50010-50050"),
    ("settings", "name", "worker-1.example.org:2"),
]


@pytest.mark.parametrize(("section", "key", "value"), GOOD_VALUES)
def test_a_good_value(tmp_path: Path, section: str, key: str, value: str) -> None:
    settings = read(tmp_path, f"[{section}]\n{key} = {value}\n")
    assert getattr(getattr(settings, SECTIONS[section][0]), key) == value


@pytest.mark.parametrize(("text", "period"), [("72", 72.0), ("0.0005", 0.0005), ("Adaptive", "adaptive"), ("0", 0.0)])
def test_periods(tmp_path: Path, text: str, period: float | str) -> None:
    assert read(tmp_path, f"[url_Server]\nperiod = {text}\n").url_server.period == period


def test_the_limits_of_a_period_are_in_order(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="period_min = 5 is longer than period_max = 2"):
        read(tmp_path, "[url_Server]\nperiod_min = 5\nperiod_max = 2\n")


def test_names_in_any_case_and_start_urls_over_several_lines(tmp_path: Path) -> None:
    settings = read(tmp_path, "[URL_SERVER]\nSTART_URLS = http://a/;\n  http://b/\n  http://c/\n")
    assert settings.url_server.start_urls == ("http://a/", "http://b/", "http://c/")


EXPRESSIONS = """\
[url_Server]
scope = domain
accept =
    .*\\.[hH][tT][mM][lL]?$
    # pictures of the archive
    [0-9]+/[a-z]+;v=[12]\\.(jpe?g|png)$

    /$
reject = logout
max_pages = 7
"""


def test_expressions_have_a_line_each(tmp_path: Path) -> None:
    server = read(tmp_path, EXPRESSIONS).url_server
    assert server.accept == (r".*\.[hH][tT][mM][lL]?$", r"[0-9]+/[a-z]+;v=[12]\.(jpe?g|png)$", "/$")
    assert server.reject == ("logout",)
    assert server.max_pages == 7
    assert "line 10: max_pages" in refused(tmp_path, EXPRESSIONS.replace("= 7", "= many"))


def test_list_options_can_be_repeated_and_emptied(tmp_path: Path) -> None:
    read(tmp_path, EXPRESSIONS)
    server = from_line(tmp_path, "--accept", "a;b", "--accept=-c", "--reject", "").url_server
    assert (server.accept, server.reject) == (("a;b", "-c"), ())
    server = from_line(tmp_path, "--start-urls", "http://a/;http://b/", "--start-urls", "http://c/").url_server
    assert server.start_urls == ("http://a/", "http://b/", "http://c/")


BAD_EXPRESSIONS = [
    ("(", "'(' is no regular expression (RE2): missing )"),
    ("[z-a]", "'[z-a]' is no regular expression (RE2): invalid character class range"),
    ("*.html", "'*.html' is no regular expression (RE2): no argument for repetition operator"),
    ("(?<=a)b", "'(?<=a)b' is no regular expression (RE2): invalid perl operator"),
    ("((a{100}){100}){100}", "is no regular expression (RE2): invalid repetition size"),
    ("(.{1,90}){11}" * 70, "is no regular expression (RE2): pattern too large"),
    ("x" * 1001, "has more than 1000 characters"),
    ("\n  ".join(["x" * 1000] * 101), "all expressions together have more than 100000 characters"),
    ("ž", "'ž' can never match: URLs are ASCII"),
]


@pytest.mark.parametrize(("value", "said"), BAD_EXPRESSIONS, ids=lambda text: text[:20])
def test_a_bad_expression_is_named(tmp_path: Path, value: str, said: str) -> None:
    message = refused(tmp_path, f"[url_Server]\nreject =\n  good\n  {value}\n")
    assert "line 2: reject = " in message
    assert said in message
    assert len(message) < 2000
    with pytest.raises(ConfigError, match=r"^--reject ") as caught:
        from_line(tmp_path.with_name("empty"), "--reject", "good", f"--reject={value}")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("[settings]\ntls = 1\ntls = 0\n", ("line 3", "'tls' is there twice in [settings]")),
        ("[settings]\ntls = 1\n[settings]\ntls = 0\n", ("line 3", "[settings] is there twice")),
        ("[settings]\ntls = 1\n[Settings]\ntls = 0\n", ("line 3", "[Settings] is there twice")),
        ("ip = 127.0.0.1\n", ("line 1", "expected one of [url_Server], [ftp_Server], [settings] above it")),
        ("[settings]\nthis is no setting\n", ("line 2", "expected key = value")),
        ("[settings]\n\n=\n: x\n", ("line 4", "'' is there twice")),
    ],
)
def test_a_file_that_is_out_of_shape(tmp_path: Path, text: str, parts: tuple[str, ...]) -> None:
    message = refused(tmp_path, text)
    assert all(part in message for part in parts), message


@pytest.mark.parametrize(
    "text",
    [
        "[url_Server]\ntoken hush\n",
        "[url_Server]\ntoken hush=\n",
        "[url_Server]\ntoken hush=\ntoken hush=\n",
        "token = hush\n",
        "token: hush\n[url_Server]\n",
        "[url_Server]\nserver_port = 1\n  token = hush\n",
        "[url_Server]\nip = 127.0.0.1\n  token = hush\n",
        "[ftp_Server]\npassword = hush\npassword = hush\n",
    ],
)
def test_a_secret_with_a_slip_is_not_shown(tmp_path: Path, text: str) -> None:
    assert "hush" not in refused(tmp_path, text)


def test_a_folder_whose_name_is_not_utf_8(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="w\ufffdrk is not UTF-8"):
        load(Path(os.fsdecode(os.fsencode(tmp_path) + b"/w\xe9rk")))


def test_an_unreadable_file(tmp_path: Path) -> None:
    (tmp_path / "config.cfg").mkdir()
    with pytest.raises(ConfigError, match=r"cannot be read: .*directory"):
        load(tmp_path)


def test_a_dangling_link_is_not_taken_for_a_missing_file(tmp_path: Path) -> None:
    (tmp_path / "config.cfg").symlink_to(tmp_path / "moved.cfg")
    with pytest.raises(ConfigError, match="cannot be read"):
        load(tmp_path)


def test_a_file_that_is_not_utf_8(tmp_path: Path) -> None:
    assert "cannot be read" in refused(tmp_path, b"[settings]\nname = \xe9\n")


def test_a_byte_order_mark_is_no_content(tmp_path: Path) -> None:
    assert read(tmp_path, b"\xef\xbb\xbf[settings]\nname = w1\n").client.name == "w1"


def test_the_command_line_overrides_the_file(tmp_path: Path) -> None:
    read(tmp_path, CLASSIC)
    settings = from_line(tmp_path, "--urls-to-crawl", "7", "--start-urls", "http://example.net/")
    assert settings.url_server.urls_to_crawl == 7
    assert settings.url_server.start_urls == ("http://example.net/",)
    assert settings.url_server.document_save is False  # still from the file


def test_a_bad_value_on_the_command_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--delay nan: expected a number from 0 to 86400"):
        from_line(tmp_path, "--delay", "nan")


def test_the_token_is_inherited(tmp_path: Path) -> None:
    settings = read(tmp_path, "[url_Server]\ntoken = a\n[settings]\ntoken = c\n")
    assert (settings.ftp_server.token, settings.client.token) == ("a", "c")


def test_what_is_inherited_follows_the_command_line(tmp_path: Path) -> None:
    read(tmp_path, "[url_Server]\ntoken = a\n[settings]\ntoken = c\n")
    settings = from_line(tmp_path, "--token", "b")
    assert (settings.ftp_server.token, settings.client.token) == ("b", "c")


@pytest.mark.parametrize("key", ["token", "tls_cert", "tls_key"])
def test_what_the_command_line_empties_is_not_inherited(tmp_path: Path, key: str) -> None:
    read(tmp_path, f"[url_Server]\n{key} = a\n")
    assert getattr(from_line(tmp_path, section="ftp_Server").ftp_server, key) == "a"
    option = f"--{key.replace('_', '-')}"
    assert getattr(from_line(tmp_path, option, "", section="ftp_Server").ftp_server, key) == ""


def test_a_token_file_that_the_command_line_empties_takes_no_other_token(tmp_path: Path) -> None:
    read(tmp_path, "[url_Server]\ntoken = a\n[ftp_Server]\ntoken = b\n")
    assert from_line(tmp_path, "--token-file", "", section="ftp_Server").ftp_server.token == ""


def test_help_shows_every_key() -> None:
    with running(["-m", "server.urlserver.main", "--help"], ready="usage: urlServer") as program:
        assert program.wait() == 0
    shown = program.output()
    for item in fields(SECTIONS["url_Server"][1]):
        key = item.metadata["key"]
        assert "--" + key.name.lower().replace("_", "-") in shown
        assert key.help.split()[0] in shown


def test_the_environment_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("config.cfg", 7), ("variable.cfg", 8), ("option.cfg", 9)):
        (tmp_path / name).write_text(f"[url_Server]\nurls_to_crawl = {value}\n")
    assert from_line(tmp_path).url_server.urls_to_crawl == 7
    monkeypatch.setenv("PAVOUK_CONFIG", "")
    assert from_line(tmp_path).url_server.urls_to_crawl == 7
    monkeypatch.setenv("PAVOUK_CONFIG", str(tmp_path / "variable.cfg"))
    assert from_line(tmp_path).url_server.urls_to_crawl == 8
    assert from_line(tmp_path, "--config", str(tmp_path / "option.cfg")).url_server.urls_to_crawl == 9
    assert load(tmp_path).url_server.urls_to_crawl == 7, "only a command line reads the environment"
    monkeypatch.setenv("PAVOUK_CONFIG", str(tmp_path / "missing.cfg"))
    with pytest.raises(ConfigError, match=r"missing\.cfg cannot be read"):
        from_line(tmp_path)


COMMANDS = {
    "server.urlserver.main": [], "server.ftpserver.main": [], "client.main": ["status"], "onehost.main": [],
    "server.admin.main": ["status"], "export.main": ["index"],
}  # fmt: skip


@pytest.mark.parametrize("module", COMMANDS)
def test_every_command_takes_the_file_that_the_environment_names(tmp_path: Path, module: str) -> None:
    (tmp_path / "odd.cfg").write_text("[url_Server]\nodd = 1\n")
    done = subprocess.run(
        [sys.executable, "-m", module, *COMMANDS[module], "--dir", tmp_path / "work"],
        cwd=ROOT, env={**os.environ, "PAVOUK_CONFIG": str(tmp_path / "odd.cfg")},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "odd.cfg, line 2: unknown key 'odd'" in done.stderr
    help = subprocess.run([sys.executable, "-m", module, *COMMANDS[module], "--help"], cwd=ROOT, capture_output=True)
    assert b"PAVOUK_CONFIG" in help.stdout

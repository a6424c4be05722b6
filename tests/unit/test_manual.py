"""README, manual, --help and code tell the same story."""

import argparse
import hashlib
import io
import re
from dataclasses import fields
from pathlib import Path

import pytest

from common import wire
from common.settings import SECTIONS, keys_of
from common.wire import Outcome
from export import index
from export.main import parser as export_parser
from onehost import crawler_file
from onehost.main import OWN_KEYS
from onehost.main import parser as crawl_parser
from server.admin import findings
from server.admin.main import parser
from server.frontier.retries import CONSEQUENCES
from server.policy.policy import Policy
from tests.crawler_file import EXAMPLE
from tests.manual_tables import configuration_tables

ROOT = Path(__file__).resolve().parents[2]
MANUAL = ROOT / "manual"
COMMON = ("--dir", "--config", "--help", "-h")  # told once for all commands
PAGES = sorted([ROOT / "README.md", *MANUAL.glob("*.md")])


def test_every_key_is_in_the_manual() -> None:
    assert (MANUAL / "configuration.md").read_text().endswith(configuration_tables())


@pytest.mark.parametrize("section", SECTIONS)
def test_the_keys_that_crawl_does_not_take_are_in_the_manual(section: str) -> None:
    [told] = re.findall(rf"^- `\[{section}\]`: (.*)$", (MANUAL / "configuration.md").read_text(), re.MULTILINE)
    attribute, section_class = SECTIONS[section]
    keys = keys_of(section_class)
    assert re.findall(r"`(\w+)`", told) == [keys[name].name for name in OWN_KEYS[section]]
    taken = vars(crawl_parser().parse_args([]))
    assert {name for name in keys if f"{attribute}.{name}" not in taken} == set(OWN_KEYS[section])


def test_crawl_shows_its_own_defaults() -> None:
    help = {option.dest: str(option.help) for option in crawl_parser()._actions}
    assert help["url_server.scope"].endswith("Default: host, or site with sitemap = 1.")
    assert help["url_server.retry_wait"].endswith("Default: 5.")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_page_of_the_manual_is_in_the_readme() -> None:
    readme = (ROOT / "README.md").read_text()
    assert [page.name for page in MANUAL.glob("*.md") if f"manual/{page.name}" not in readme] == []


@pytest.mark.parametrize("outcome", list(Outcome))
def test_outcomes_and_what_follows(outcome: Outcome) -> None:
    row = re.search(rf"^\| `{outcome}` \| .* \| (.*) \|$", (MANUAL / "commands.md").read_text(), re.MULTILINE)
    assert row is not None, f"{outcome} is not in the table of outcomes"
    consequence = CONSEQUENCES[outcome]
    expected = consequence.state.name.lower()
    if consequence.waits:
        expected = f"tried {len(consequence.waits) + 1} times"
    assert row[1].startswith(expected)


@pytest.mark.parametrize(
    "kind", [wire.UrlTask, wire.UrlResult, wire.FoundUrl, wire.ListedUrl, wire.HostShare, wire.HostFact]
)
def test_tables_of_the_contract(kind: type) -> None:
    names = list(kind._fields)  # type: ignore[attr-defined]
    rows = re.findall(r"^\| `\w+`.* \| (.*) \|$", (MANUAL / "soap.md").read_text(), re.MULTILINE)
    told = [[cell.split()[0] for cell in row.split(", ")] for row in rows]
    assert names in told


def test_every_operation_is_in_the_manual() -> None:
    soap = (ROOT / "server" / "urlserver" / "soap.py").read_text()
    operations = re.findall(r"^        def (\w+)\($|^        def (\w+)\(ctx", soap, re.MULTILINE)
    names = {first or second for first, second in operations}
    assert {"getJob", "sendAllData", "cExit", "renewJob"} <= names
    manual = (MANUAL / "soap.md").read_text()
    assert [name for name in names if f"| `{name}` |" not in manual] == []


def test_every_command_of_an_operator_is_in_the_manual() -> None:
    manual = (MANUAL / "commands.md").read_text()
    [commands] = (action.choices for action in parser()._actions if isinstance(action, argparse._SubParsersAction))
    assert {"status", "explain", "audit"} <= set(commands)
    assert [name for name in commands if not re.search(rf"^\| `{name}[` ]", manual, re.MULTILINE)] == []
    for name, command in commands.items():
        options = [option for action in command._actions for option in action.option_strings]
        assert [option for option in options if option not in COMMON and option not in manual] == [], name


def test_every_export_is_in_the_manual() -> None:
    manual = (MANUAL / "commands.md").read_text()
    [commands] = (a.choices for a in export_parser()._actions if isinstance(a, argparse._SubParsersAction))
    for name, command in commands.items():
        assert re.search(rf"^\| `{name}`", manual, re.MULTILINE)
        options = [option for action in command._actions for option in action.option_strings]
        assert [option for option in options if option not in COMMON and option not in manual] == [], name


def test_the_index_in_the_manual_can_be_read() -> None:
    [example] = re.findall(r"```\n([0-9a-f]{32} .*?)```", (MANUAL / "export.md").read_text(), re.DOTALL)
    home, team = index.read(io.BytesIO(example.encode()))
    assert (home.title, team.title) == ('Who "we" are', "")
    assert home.links[1] == ("http://www.example.org/a%20b.pdf", "Report\nof 2025")
    assert [record.checksum for record in (home, team)] == [
        hashlib.md5(record.url.encode()).hexdigest() for record in (home, team)
    ]


def test_the_classic_crawler_file_in_the_manual() -> None:
    manual = (MANUAL / "export.md").read_text()
    assert EXAMPLE in manual
    assert [name for name in crawler_file.NAMES if f"`{name}`" not in manual.lower()] == []


def test_every_rule_is_in_the_manual() -> None:
    manual = (MANUAL / "policy.md").read_text()
    rows = re.findall(r"^\| `([^`]+)` \| ((?:`\w+`(?:, )?)+) \| ", manual.partition("## scope")[0], re.MULTILINE)
    assert [rule for rule, _ in rows] == [
        "max_depth", "max_redirects", "max_url_length", "max_path_depth", "path_repetition", "max_query_parameters",
        "scope=…", "reject: …", "accept",
    ]  # fmt: skip
    told = {key for _, keys in rows for key in re.findall(r"\w+", keys)}
    assert told == {item.name for item in fields(Policy) if item.init} - {"starts"} | {"sitemap"}


def test_every_kind_of_finding_is_in_the_manual() -> None:
    manual = (MANUAL / "commands.md").read_text()
    kinds = [value for name, value in vars(findings).items() if name.isupper() and isinstance(value, str)]
    assert len(kinds) == 15
    assert [kind for kind in kinds if f"`{kind}`" not in manual] == []

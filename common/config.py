"""Reads the settings: config.cfg first, then the command line. Also writes the sample file.

The command line overrides the file, the file overrides the defaults; for the token see tokens.py. Anything unknown or
out of range raises ConfigError with file, line and what was expected.
"""

import argparse
import configparser
import os
import re
import textwrap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from common.errors import ConfigError
from common.expressions import BadExpression
from common.files import refuse_strangers
from common.settings import SECTIONS, Key, Settings, default_of, keys_of, written
from common.tokens import from_environment, warn_if_open, warn_of_line, with_tokens

FILE_NAME = "config.cfg"
FILE_VARIABLE = "PAVOUK_CONFIG"
OWNERS = tuple(attribute for attribute, _ in SECTIONS.values())
_SAMPLE_WIDTH = 100
_LONGEST_SHOWN = 100  # characters of a bad value
S = TypeVar("S")


def sample_file() -> str:
    """config/config.cfg: every key with its meaning, unit and default."""
    intro = (
        "# The configuration of Pavouk. Copy it into the work folder and change what you need; a key that is\n"
        "# left out has its default, and the command line overrides both. A comment has a line of its own.\n"
    )
    return intro + "".join(_sample_section(name, section) for name, (_, section) in SECTIONS.items())


def _sample_section(name: str, section_class: type) -> str:
    lines = [f"\n# {section_class.__doc__}", f"[{name}]"]
    for field_name, key in keys_of(section_class).items():
        default = written(default_of(section_class, field_name))
        help = f"{key.help} Expected: {key.expected}. Default: {default or 'empty'}."
        lines += ["", *textwrap.wrap(help, _SAMPLE_WIDTH, initial_indent="# ", subsequent_indent="# ")]
        lines.append(f"{key.name} = {default}".rstrip())
    return "\n".join(lines) + "\n"


def load(folder: Path, file: Path | None = None) -> Settings:
    """The settings of a work folder: those of `file`, or of config.cfg in the folder or in its config/ folder."""
    return _completed(with_tokens(_load(folder, file), OWNERS))


def _load(folder: Path, file: Path | None) -> Settings:
    refuse_strangers(folder)
    _refuse_odd_name(folder)
    if file is None:
        places = (folder / FILE_NAME, folder / "config" / FILE_NAME)
        file = next(filter(os.path.lexists, places), None)
        if file is None:
            return Settings(folder=folder)
        for path in (file.parent, file):  # nobody has named it
            refuse_strangers(path)
    settings = _read(file, folder)
    if any(getattr(settings, attribute).token for attribute in OWNERS):
        warn_if_open(file, "holds a token")
    elif settings.ftp_server.password:
        warn_if_open(file, "holds a password")
    return settings


def _refuse_odd_name(folder: Path) -> None:
    """The frontier is kept by a library that takes names in UTF-8 only."""
    try:
        str(folder).encode()
    except UnicodeError as error:
        shown = os.fsencode(folder).decode(errors="replace")
        raise ConfigError(f"the name of the work folder {shown} is not UTF-8: choose another one") from error


def _read(file: Path, folder: Path) -> Settings:
    # Values such as start_Urls contain ; and %, so neither comments within a line nor interpolation.
    # There is no [DEFAULT] either: it would be unknown keys in every section.
    parser = configparser.ConfigParser(interpolation=None, default_section="")
    try:
        text = file.read_text(encoding="utf-8-sig")
        parser.read_string(text, source=str(file))
    except (OSError, UnicodeError) as error:
        raise ConfigError(f"{file} cannot be read: {error}") from error
    except configparser.Error as error:
        raise ConfigError(f"{file}, {_out_of_shape(error)}") from None  # its own text has the line
    parts: dict[str, Any] = {}
    names = {name.lower(): name for name in SECTIONS}
    for section in parser.sections():
        if section.lower() not in names:
            line = _line_of(text, section, None)
            raise ConfigError(f"{file}, line {line}: unknown section [{section}], expected {_list_sections()}")
        attribute, section_class = SECTIONS[names[section.lower()]]
        if attribute in parts:
            line = _line_of(text, section, None)
            raise ConfigError(f"{file}, line {line}: section [{section}] is there twice, expected it once")
        parts[attribute] = _parse_section(file, text, section, section_class, dict(parser.items(section)))
    return Settings(folder=folder, **parts)


def _out_of_shape(error: configparser.Error) -> str:
    """Which line is no good, and why. Never what stands there: it may be a secret with a slip."""
    numbers = [number for number, _ in getattr(error, "errors", ())] or [getattr(error, "lineno", 0)]
    line = f"line {numbers[0]}: "
    match error:
        case configparser.DuplicateSectionError():
            return f"{line}section [{error.section}] is there twice, expected it once"
        case configparser.DuplicateOptionError():
            return f"{line}{_first_word(error.option)!r} is there twice in [{error.section}], expected it once"
        case configparser.MissingSectionHeaderError():
            return f"{line}expected one of {_list_sections()} above it"
        case _:
            return f"{line}expected key = value"


def _first_word(key: str) -> str:
    """No key has more; what follows is a value without its = perhaps, and not to be shown."""
    word, *more = key.split() or [""]
    return word + " …" * bool(more)


def _parse_section(file: Path, text: str, section: str, section_class: type[S], items: Mapping[str, str]) -> S:
    by_name = {key.name.lower(): (field_name, key) for field_name, key in keys_of(section_class).items()}
    values: dict[str, Any] = {}
    for name, value in items.items():
        place = f"{file}, line {_line_of(text, section, name)}: "
        if name not in by_name:
            known = ", ".join(key.name for _, key in by_name.values())
            raise ConfigError(f"{place}unknown key {_first_word(name)!r} in [{section}], expected one of {known}")
        field_name, key = by_name[name]
        shown = "…" if key.is_secret else _shortened(value.strip())
        values[field_name] = _parse_value(key, value, f"{place}{key.name} = {shown} in [{section}]")
    return section_class(**values)


def _parse_value(key: Key, value: str, place: str) -> Any:
    try:
        return key.parse(value.strip())
    except BadExpression as error:
        raise ConfigError(f"{place}: {error}") from error
    except (ValueError, KeyError, OverflowError) as error:
        raise ConfigError(f"{place}: expected {key.expected}") from error


def _shortened(value: str) -> str:
    """Its first line: an indented line below may be meant for another key, such as token."""
    line, *more = value.split("\n", 1)
    return f"{line[:_LONGEST_SHOWN]!r}…" if more or len(line) > _LONGEST_SHOWN else repr(line)


def _one_line(value: str) -> str:
    line = " ".join(value.split())
    return line if len(line) <= _LONGEST_SHOWN else f"{line[:_LONGEST_SHOWN]}…"


def _completed(settings: Settings, given: Collection[str] = ()) -> Settings:
    """With the values that keys inherit, unless the command line gave them, if only as empty; ConfigError if two keys
    contradict each other."""
    server = settings.url_server
    if server.period_min > server.period_max:
        raise ConfigError(f"period_min = {server.period_min:g} is longer than period_max = {server.period_max:g}")

    def filled(attribute: str) -> Any:
        section = getattr(settings, attribute)
        inherited = {
            name: getattr(settings.url_server, name)
            for name, key in keys_of(type(section)).items()
            if key.inherits and not getattr(section, name) and f"{attribute}.{name}" not in given
        }
        return replace(section, **inherited)

    return replace(settings, ftp_server=filled("ftp_server"), client=filled("client"))


def _list_sections() -> str:
    return ", ".join(f"[{name}]" for name in SECTIONS)


def _line_of(text: str, section: str, key: str | None) -> int:
    """Where a section, or a key in it, stands. configparser does not keep that."""
    inside, known = False, [name.lower() for name in SECTIONS]
    for number, line in enumerate(text.splitlines(), start=1):
        header = re.match(r"\s*\[(.+)\]", line)
        if header and (header[1] == section or header[1].lower() in known):  # else a regular expression, say
            inside = header[1] == section
            if inside and key is None:
                return number
        elif inside and key is not None and re.match(rf"\s*{re.escape(key)}\s*[=:]", line, re.IGNORECASE):
            return number
    return 0


def add_options(
    parser: argparse.ArgumentParser,
    section_name: str,
    skip: Sequence[str] = (),
    own_defaults: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Offer every key of a section on the command line. `own_defaults`: what a command takes instead of the default."""
    attribute, section_class = SECTIONS[section_name]
    group = parser.add_argument_group(f"keys of [{section_name}] (override config.cfg)")
    for field_name, key in keys_of(section_class).items():
        if field_name not in skip:
            default = default_of(section_class, field_name)
            is_list = isinstance(default, tuple)
            repeated = " The option can be repeated." if is_list else ""
            shown = own_defaults.get(field_name) or written(default) or "empty"
            group.add_argument(
                "--" + key.name.lower().replace("_", "-"),
                dest=f"{attribute}.{field_name}",
                metavar="VALUE",
                action="append" if is_list else "store",
                help=f"{key.help}{repeated} Default: {shown}.".replace("%", "%%"),
            )


def given_options(options: argparse.Namespace, attribute: str) -> list[str]:
    """Those of `add_options` for one section that were given, as another command line takes them."""
    arguments: list[str] = []
    for name, value in vars(options).items():
        owner, dot, field_name = name.partition(".")
        if dot and owner == attribute and value is not None:
            # With = because a value may begin with a dash.
            each = value if isinstance(value, list) else [value]
            arguments += [f"--{field_name.replace('_', '-')}={item}" for item in each]
    return arguments


def add_common_options(parser: argparse.ArgumentParser) -> None:
    """What every command takes."""
    parser.add_argument(
        "--dir", type=Path, default=Path(), metavar="FOLDER",
        help="Work folder with config.cfg (if any), .mem/ and Pages/. Default: the current folder.",
    )
    parser.add_argument(
        "--config", type=Path, metavar="FILE",
        help=f"Configuration file. Default: the one that the environment variable {FILE_VARIABLE} names, or config.cfg "
        "in the work folder, or in its config/ folder.",
    )


def from_options(
    options: argparse.Namespace, tokens: Sequence[str] = OWNERS, environment: Mapping[str, str] = os.environ
) -> Settings:
    """The settings for a command line: file first, then what the options of `add_options` say. With the tokens of
    those sections that the program needs."""
    named = environment.get(FILE_VARIABLE)
    settings = _load(options.dir, options.config or (Path(named) if named else None))
    given = {name: value for name, value in vars(options).items() if "." in name and value is not None}
    for name, value in given.items():
        attribute, _, field_name = name.partition(".")
        settings = _with_option(settings, attribute, field_name, value)
    settings = _without_other_token(settings, given)
    own = {name.removesuffix("_file") for name in given if name.endswith((".token", ".token_file"))}
    _warn(settings, given, tokens)
    settings = with_tokens(settings, tokens, "" if own or not tokens else from_environment(environment), own)
    return _completed(settings, own.union(given))


def _with_option(settings: Settings, attribute: str, field_name: str, value: Any) -> Settings:
    section = getattr(settings, attribute)
    key = keys_of(type(section))[field_name]
    option = "--" + key.name.lower().replace("_", "-")
    text = "\n".join(value) if isinstance(value, list) else value
    parsed = _parse_value(key, text, option if key.is_secret else f"{option} {_one_line(text)}")
    return replace(settings, **{attribute: replace(section, **{field_name: parsed})})


def _without_other_token(settings: Settings, given: Mapping[str, Any]) -> Settings:
    """token and token_file say one thing in two ways: the one on the command line replaces that in the file."""
    for attribute in OWNERS:
        told = {name for name in ("token", "token_file") if f"{attribute}.{name}" in given}
        if len(told) == 1:
            [other] = {"token", "token_file"} - told
            settings = replace(settings, **{attribute: replace(getattr(settings, attribute), **{other: ""})})
    return settings


def _warn(settings: Settings, given: Mapping[str, Any], tokens: Sequence[str]) -> None:
    """About secrets that are not kept."""
    if any(value for name, value in given.items() if name.endswith(".token")):
        warn_of_line()
    for attribute in tokens:
        if key := getattr(getattr(settings, attribute), "tls_key", ""):
            warn_if_open(settings.folder / key, "is a private key")

"""What a classic crawler file means for crawl: its statements as options. What the command line says counts more."""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from common.errors import ConfigError
from common.expressions import BadExpression
from common.settings import SECTIONS, keys_of
from common.urls import typed
from onehost.crawler_file import Place, Statement, Text, parse

_SCOPES = {"free-spanning": "free", "domain-scope": "domain", "host-scope": "host", "path-scope": "path"}
_LOG_LEVELS = ("WARNING", "INFO", "DEBUG")  # quiet, verbose, debug
_SCREEN = "screen"
_OWNERS = dict(SECTIONS.values())  # the sections of config.cfg; all have a log_level


@dataclass(frozen=True, slots=True)
class CrawlerOptions:
    """What the file says besides settings."""

    repository: Path | None = None  # where the page copies go
    logs_on_screen: bool = False
    log_file: Path | None = None  # where the logs of the parts go, unless they go to .mem/ or to the screen


def take_over(options: argparse.Namespace) -> CrawlerOptions:
    """Read the file that `options.crawler_conf` names, if any, and fill in the options that were not given."""
    statements = _read(options.crawler_conf) if options.crawler_conf else {}
    for name, statement in statements.items():
        _TAKEN[name](statement, options)
    options.dir = options.dir or Path()
    repository, log = _path(statements, "repository"), _path(statements, "log-file")
    if log is not None and str(log).lower() == _SCREEN:
        return CrawlerOptions(repository, logs_on_screen=True)
    return CrawlerOptions(repository, log_file=log)


def _path(statements: Mapping[str, Statement], name: str) -> Path | None:
    return Path(statements[name].texts[0].text) if name in statements else None


def _read(file: Path) -> Mapping[str, Statement]:
    try:
        return parse(file.read_text(encoding="utf-8-sig"), str(file))
    except (OSError, UnicodeError) as error:
        raise ConfigError(f"{file} cannot be read: {error}") from error


def _starting_points(statement: Statement, options: argparse.Namespace) -> None:
    for item in statement.texts:
        if typed(item.text) is None:
            item.place.refuse(f"start URL {item.text!r} is no http or https URL")
    options.urls = [*options.urls, *(item.text for item in statement.texts)]


def _expressions(field: str) -> Callable[[Statement, argparse.Namespace], None]:
    def take(statement: Statement, options: argparse.Namespace) -> None:
        for item in statement.texts:
            _check(field, item.text, item.place)
        _set(options, field, "\n".join(item.text for item in statement.texts), statement.place)

    return take


def _max_page_number(statement: Statement, options: argparse.Namespace) -> None:
    _set(options, "max_pages", str(max(0, statement.number)), statement.place)  # 0 or negative: no limit


def _scope(statement: Statement, options: argparse.Namespace) -> None:
    scope = _SCOPES[_word(statement, tuple(_SCOPES))]
    if getattr(options, "url_server.sitemap", None) is None:  # another way to give a scope
        _set(options, "scope", scope, statement.place)


def _traversal(statement: Statement, options: argparse.Namespace) -> None:
    _set(options, "traversal", statement.texts[0].text.lower(), statement.place)


def _repository(statement: Statement, options: argparse.Namespace) -> None:
    [item] = statement.texts
    _check_path(item, "a folder")
    if options.dir is None:
        options.dir = Path(item.text)


def _log_file(statement: Statement, options: argparse.Namespace) -> None:
    [item] = statement.texts
    _check_path(item, f"a file, or {_SCREEN}")


def _check_path(item: Text, expected: str) -> None:
    if not item.text or "\0" in item.text:
        item.place.refuse(f"expected {expected}")


def _log_level(statement: Statement, options: argparse.Namespace) -> None:
    if statement.number >= len(_LOG_LEVELS):
        statement.place.refuse("expected 0 (quiet), 1 (verbose) or 2 (debug)")
    if getattr(options, "url_server.log_level", None) is None:
        for owner in _OWNERS:
            setattr(options, f"{owner}.log_level", _LOG_LEVELS[statement.number])


def _period(statement: Statement, options: argparse.Namespace) -> None:
    _set(options, "period", str(statement.number), statement.place)


def _number_of_threads(statement: Statement, options: argparse.Namespace) -> None:
    _set(options, "number_of_threads", str(statement.number), statement.place, "client")


_TAKEN: Mapping[str, Callable[[Statement, argparse.Namespace], None]] = {
    "starting-points": _starting_points,
    "accept-list": _expressions("accept"),
    "reject-list": _expressions("reject"),
    "max-page-number": _max_page_number,
    "scope": _scope,
    "traversal-algorithm": _traversal,
    "repository": _repository,
    "log-file": _log_file,
    "log-level": _log_level,
    "period": _period,
    "number-of-threads": _number_of_threads,
}


def _word(statement: Statement, words: tuple[str, ...]) -> str:
    [item] = statement.texts
    if item.text.lower() not in words:
        item.place.refuse(f"expected one of {', '.join(words)}, found {item.text!r}")
    return item.text.lower()


def _set(options: argparse.Namespace, field: str, value: str, place: Place, owner: str = "url_server") -> None:
    _check(field, value, place, owner)
    if getattr(options, f"{owner}.{field}", None) is None:
        setattr(options, f"{owner}.{field}", value)


def _check(field: str, value: str, place: Place, owner: str = "url_server") -> None:
    """Refuse here what the setting would refuse later, when nobody knows where it came from."""
    key = keys_of(_OWNERS[owner])[field]
    try:
        key.parse(value)
    except (ValueError, KeyError, OverflowError) as error:
        place.refuse(str(error) if isinstance(error, BadExpression) else f"expected {key.expected}, found {value!r}")

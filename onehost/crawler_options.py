"""What a classic crawler file means for crawl: its statements as options. What the command line says counts more."""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from common.errors import ConfigError
from common.expressions import BadExpression
from common.settings import UrlServerSettings, keys_of
from common.urls import typed
from onehost.crawler_file import Place, Statement, parse

_SCOPES = {"free-spanning": "free", "domain-scope": "domain", "host-scope": "host", "path-scope": "path"}
_LOG_LEVELS = ("WARNING", "INFO", "DEBUG")  # quiet, verbose, debug
_LOG_FILES = ("log", "screen")
_OWNERS = ("url_server", "ftp_server", "client")  # the sections of config.cfg that have a log_level


@dataclass(frozen=True, slots=True)
class CrawlerOptions:
    """What the file says besides settings."""

    repository: Path | None = None  # where the page copies go
    logs_on_screen: bool = False


def take_over(options: argparse.Namespace) -> CrawlerOptions:
    """Read the file that `options.crawler_conf` names, if any, and fill in the options that were not given."""
    statements = _read(options.crawler_conf) if options.crawler_conf else {}
    for name, statement in statements.items():
        _TAKEN[name](statement, options)
    options.dir = options.dir or Path()
    screen = "log-file" in statements and _word(statements["log-file"], _LOG_FILES) == "screen"
    repository = Path(statements["repository"].texts[0].text) if "repository" in statements else None
    return CrawlerOptions(repository, screen)


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
    _set(options, "max_pages", str(statement.number), statement.place)


def _scope(statement: Statement, options: argparse.Namespace) -> None:
    scope = _SCOPES[_word(statement, tuple(_SCOPES))]
    if getattr(options, "url_server.sitemap", None) is None:  # another way to give a scope
        _set(options, "scope", scope, statement.place)


def _traversal(statement: Statement, options: argparse.Namespace) -> None:
    _set(options, "traversal", statement.texts[0].text.lower(), statement.place)


def _repository(statement: Statement, options: argparse.Namespace) -> None:
    [item] = statement.texts
    if not item.text or "\0" in item.text:
        item.place.refuse("expected a folder")
    if options.dir is None:
        options.dir = Path(item.text)


def _log_file(statement: Statement, options: argparse.Namespace) -> None:
    _word(statement, _LOG_FILES)


def _log_level(statement: Statement, options: argparse.Namespace) -> None:
    if statement.number >= len(_LOG_LEVELS):
        statement.place.refuse("expected 0 (quiet), 1 (verbose) or 2 (debug)")
    if getattr(options, "url_server.log_level", None) is None:
        for owner in _OWNERS:
            setattr(options, f"{owner}.log_level", _LOG_LEVELS[statement.number])


def _period(statement: Statement, options: argparse.Namespace) -> None:
    _set(options, "period", str(statement.number), statement.place)


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
}


def _word(statement: Statement, words: tuple[str, ...]) -> str:
    [item] = statement.texts
    if item.text.lower() not in words:
        item.place.refuse(f"expected one of {', '.join(words)}, found {item.text!r}")
    return item.text.lower()


def _set(options: argparse.Namespace, field: str, value: str, place: Place) -> None:
    _check(field, value, place)
    if getattr(options, f"url_server.{field}", None) is None:
        setattr(options, f"url_server.{field}", value)


def _check(field: str, value: str, place: Place) -> None:
    """Refuse here what the setting would refuse later, when nobody knows where it came from."""
    key = keys_of(UrlServerSettings)[field]
    try:
        key.parse(value)
    except (ValueError, KeyError, OverflowError) as error:
        place.refuse(str(error) if isinstance(error, BadExpression) else f"expected {key.expected}, found {value!r}")

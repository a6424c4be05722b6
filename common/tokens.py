"""Where the token comes from. The first of these that is there counts:

    1. --token, which every user of the machine can see in the list of processes, or --token-file
    2. the environment variable PAVOUK_TOKEN
    3. systemd's credential pavouk-token
    4. token or token_file in config.cfg
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from common.errors import ConfigError
from common.files import is_open_to_others, trusted
from common.settings import SECTIONS, Settings, UrlServerSettings, keys_of

VARIABLE = "PAVOUK_TOKEN"
CREDENTIAL = "pavouk-token"
_CREDENTIALS_FOLDER = "CREDENTIALS_DIRECTORY"  # where systemd puts them
_MAX_FILE_BYTES = 10_000
_log = logging.getLogger(__name__)


def with_tokens(
    settings: Settings, wanted: Sequence[str], told: str = "", own: Collection[str] = ()
) -> Settings:
    """The settings with the tokens of the sections that a program needs, and no others: what it does not need it does
    not read. `told` comes from the environment, and counts more than the file. `own`: tokens that the command line
    gave, if only as empty, which are not inherited."""
    files = _Files(settings.folder)
    changes: dict[str, Any] = {}
    for attribute in ("url_server", "ftp_server", "client"):
        section, token = getattr(settings, attribute), ""
        if attribute in wanted:
            token = told or files.token_of(section)
            if not token and f"{attribute}.token" not in own:
                token = files.token_of(settings.url_server)
        changes[attribute] = replace(section, token=token, token_file="")
    return replace(settings, **changes)


class _Files:
    """Reads each file once: it may be a pipe."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[str, str] = {}

    def token_of(self, section: Any) -> str:
        """What one section says."""
        name: str = section.token_file
        if section.token and name:
            [title] = (title for title, (_, section_class) in SECTIONS.items() if section_class is type(section))
            raise ConfigError(f"token and token_file are both set for [{title}]: keep one of them")
        if not name:
            return str(section.token)
        if name not in self._read:
            path = trusted(self._folder, name)
            warn_if_open(path, "is the token")
            self._read[name] = _checked(_content(path), f"token_file {path}")
        return self._read[name]


def from_environment(environment: Mapping[str, str]) -> str:
    """The token of the variable or of the credential; nothing if there is neither."""
    if value := environment.get(VARIABLE):
        return _checked(value, VARIABLE)
    folder = environment.get(_CREDENTIALS_FOLDER)
    if not folder:
        return ""
    path = Path(folder, CREDENTIAL)
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        raise ConfigError(f"the token in {path} cannot be read: {_reason(error)}") from error
    return _checked(_content(path), f"credential {path}")


def warn_if_open(path: Path, what: str) -> None:
    """Tell the operator about a secret that others can read."""
    if is_open_to_others(path):
        _log.warning("%s %s, and other users of this machine can read it: chmod 600 %s", path, what, path)


def warn_of_line() -> None:
    """Tell the operator about a secret on the command line."""
    _log.warning(
        "--token shows the token to every user of this machine (ps): give --token-file FILE, or set %s", VARIABLE
    )


def _content(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_FILE_BYTES + 1)
        return "" if len(content) > _MAX_FILE_BYTES else content.decode("utf-8-sig").strip()
    except (OSError, UnicodeError) as error:
        raise ConfigError(f"the token in {path} cannot be read: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else "it is no text"


def _checked(token: str, place: str) -> str:
    """Never shows what is wrong: it may be the secret with a slip."""
    key = keys_of(UrlServerSettings)["token"]
    try:
        if token:
            return str(key.parse(token))
    except ValueError:
        pass
    raise ConfigError(f"{place}: expected {key.expected}")

"""When two addresses are the same page. Written for the tests alone, on urllib.parse, so that a mistake in
the crawler's own rules cannot hide itself."""

import re
from urllib.parse import urlsplit

INDEX_NAMES = frozenset({"index.html", "index.htm", "index.php", "default.asp", "default.aspx"})
DEFAULT_PORTS = {"http": 80, "https": 443}
UNRESERVED = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~")


def identity(url: str) -> str:
    """The form shared by addresses that differ only in fragment, index name, host case or default port."""
    parts = urlsplit(url)
    path = _without_index(_tidy_percent(parts.path or "/"))
    query = f"?{_tidy_percent(parts.query)}" if parts.query else ""
    return f"{parts.scheme}://{authority(url)}{path}{query}"


def authority(url: str) -> str:
    """Host in lower case, with the port unless it is the default one."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.port in (None, DEFAULT_PORTS.get(parts.scheme)):
        return host
    return f"{host}:{parts.port}"


def _without_index(path: str) -> str:
    folder, slash, name = path.rpartition("/")
    return folder + slash if name in INDEX_NAMES else path


def _tidy_percent(text: str) -> str:
    # RFC 3986 §6.2.2: hex digits in upper case, and unreserved characters not encoded.
    return re.sub(r"%([0-9A-Fa-f]{2})", _tidy_triplet, text)


def _tidy_triplet(match: re.Match[str]) -> str:
    character = chr(int(match[1], 16))
    return character if character in UNRESERVED else match[0].upper()

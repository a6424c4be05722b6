"""Scopes: what belongs together with the start URLs. Each scope is a function that is made once for all of them."""

from collections.abc import Callable, Sequence

from common.urls import host_of, normalized, path_of
from server.policy.domains import common_domains

Inside = Callable[[str, str], bool]  # address, its host (with port)


def inside_of(scope: str, starts: Sequence[str]) -> Inside | None:
    """Whether a URL is inside a scope around these addresses. None: everything is."""
    return _SCOPES[scope](starts)


def _free(_: Sequence[str]) -> None:
    return None


def _domain(starts: Sequence[str]) -> Inside:
    domains, names = common_domains(_name(host_of(url)) for url in starts)

    def inside(_: str, host: str) -> bool:
        name = _name(host)
        if name in names:
            return True
        while name:
            if name in domains:
                return True
            name = name.partition(".")[2]
        return False

    return inside


def _host(starts: Sequence[str]) -> Inside:
    hosts = frozenset(map(host_of, starts))
    return lambda _, host: host in hosts


def _path(starts: Sequence[str]) -> Inside:
    hosts = frozenset(map(host_of, starts))
    # Both as it is written and in normal form, so that /~me/ and /%7Eme/ are the same folder.
    folders = frozenset(folder for url in starts for form in (url, normalized(url)) for folder in _folders(form)[:1])

    def inside(url: str, host: str) -> bool:
        if host not in hosts:
            return False
        return _is_below(url, folders) or ("%" in url and _is_below(normalized(url), folders))

    return inside


def _is_below(url: str, folders: frozenset[str]) -> bool:
    return not folders.isdisjoint(_folders(url))


def _folders(url: str) -> list[str]:
    """The folders that an address is in, each with its host, the innermost first."""
    host, path = host_of(url), path_of(url).partition("?")[0]
    ends = [position + 1 for position, character in enumerate(path) if character == "/"]
    return [host + path[:end] for end in reversed(ends)]


def _name(host: str) -> str:
    """The host without its port."""
    name, colon, port = host.rpartition(":")
    return name if colon and not port.endswith("]") else host


_SCOPES: dict[str, Callable[[Sequence[str]], Inside | None]] = {
    "free": _free,
    "domain": _domain,
    "host": _host,
    "path": _path,
}

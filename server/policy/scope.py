"""Scopes: what belongs together with the start URLs. Each scope is a function that is made once for all of them."""

from collections import defaultdict
from collections.abc import Callable, Container, Sequence

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
    folders: dict[str, set[str]] = defaultdict(set)  # by host
    for url in starts:
        # Both as it is written and in normal form, so that /~me/ and /%7Eme/ are the same folder.
        folders[host_of(url)] |= {_folder(url), _folder(normalized(url))}

    def inside(url: str, host: str) -> bool:
        below = folders.get(host)
        if below is None:
            return False
        return _is_below(url, below) or ("%" in url and _is_below(normalized(url), below))

    return inside


def _folder(url: str) -> str:
    path = _path_alone(url)
    return path[: path.rfind("/") + 1]


def _is_below(url: str, folders: Container[str]) -> bool:
    path = _path_alone(url)
    end = path.rfind("/")
    while end >= 0:
        if path[: end + 1] in folders:
            return True
        end = path.rfind("/", 0, end)
    return False


def _path_alone(url: str) -> str:
    return path_of(url).partition("?")[0]


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

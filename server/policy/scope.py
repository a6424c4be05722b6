"""Scopes: what belongs together with the start URLs. A scope grows with them, by what a million of them have in common:
hosts, domains or folders, not URLs.

One thread at a time adds; others may ask meanwhile, because nothing that is inside is ever outside again.
"""

from collections import defaultdict
from collections.abc import Callable, Container
from dataclasses import dataclass, field
from typing import Protocol

from common.urls import host_of, is_plain_address, normalized, path_of
from server.policy.domains import Domains

Inside = Callable[[str, str], bool]  # address, its host (with port)


class Scope(Protocol):
    """What belongs to the start URLs that were added."""

    def add(self, address: str) -> None:
        """A further start URL."""

    def has(self, url: str, host: str) -> bool:
        """Whether an address is inside; its host is with port."""


def scope_of(name: str) -> Scope | None:
    """A scope around nothing yet. None: everything is inside."""
    return _SCOPES[name]()


@dataclass(slots=True)
class _Domain:
    domains: Domains = field(default_factory=Domains)

    def add(self, address: str) -> None:
        self.domains.add(_name(host_of(address)))

    def has(self, _: str, host: str) -> bool:
        return self.domains.has(_name(host))


@dataclass(slots=True)
class _Host:
    hosts: set[str] = field(default_factory=set)

    def add(self, address: str) -> None:
        self.hosts.add(host_of(address))

    def has(self, _: str, host: str) -> bool:
        return host in self.hosts


@dataclass(slots=True)
class _Site:
    """A host with and without www.; other names of its domain are sites of their own."""

    names: set[str] = field(default_factory=set)  # without www.

    def add(self, address: str) -> None:
        self.names.add(host_of(address).removeprefix("www."))

    def has(self, _: str, host: str) -> bool:
        return host.removeprefix("www.") in self.names


@dataclass(slots=True)
class _Path:
    folders: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  # by host

    def add(self, address: str) -> None:
        # Both as it is written and in normal form, so that /~me/ and /%7Eme/ are the same folder.
        below = self.folders[host_of(address)]
        below.add(_folder(address))
        if not is_plain_address(address):  # most are, and are normal: one look instead of 50 µs
            below.add(_folder(normalized(address)))

    def has(self, url: str, host: str) -> bool:
        below = self.folders.get(host)
        if below is None:
            return False
        return _is_below(url, below) or ("%" in url and _is_below(normalized(url), below))


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


_SCOPES: dict[str, Callable[[], Scope | None]] = {
    "free": lambda: None,
    "domain": _Domain,
    "site": _Site,
    "host": _Host,
    "path": _Path,
}

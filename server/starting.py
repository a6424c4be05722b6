"""Start URLs, as an operator names them: whoever names a private host means the addresses that it has now.

Names are looked up here, and nowhere else on this side; the frontier keeps what was found.
"""

import logging
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from ipaddress import ip_address
from urllib.parse import urlsplit

from common.addresses import is_metadata, may_be_named, plain
from common.urls import host_of, resolve
from server.frontier.frontier import Frontier

_MAX_NAMES = 1_000  # looked up in one go; who has more private hosts than that sets allow_private
_THREADS = 16
_SECONDS = 10.0  # for all of them together
_MAX_ADDRESSES = 16  # of a host
_LOOPBACK = ("127.0.0.1", "::1")
_log = logging.getLogger(__name__)

LookUp = Callable[[str], Sequence[str]]  # a name -> its addresses; OSError if it has none


def begin_with(frontier: Frontier, urls: Iterable[str], again: bool = False) -> int:
    """Take in start URLs; returns how many were not known. `again`: hosts that were named before are looked up once
    more, because an operator names them now; at a restart nobody does."""
    addresses = [address for url in urls if (address := resolve(url))]
    hosts = list(dict.fromkeys(host_of(address) for address in addresses))
    private = private_addresses(hosts if again else frontier.unnamed(hosts))
    return frontier.begin_with(addresses, private)


def _look_up(name: str) -> Sequence[str]:
    if name == "localhost" or name.endswith(".localhost"):  # RFC 6761 §6.3; clients do not ask anybody either
        return _LOOPBACK
    return [str(found[4][0]) for found in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)]


def private_addresses(
    hosts: Sequence[str], look_up: LookUp = _look_up, seconds: float = _SECONDS
) -> dict[str, tuple[str, ...]]:
    """By host: the private addresses at which it is now, if any. Never those where machines keep their secrets."""
    names = {host: urlsplit(f"//{host}").hostname or "" for host in hosts}
    unknown = list(dict.fromkeys(name for name in names.values() if not _is_address(name)))
    if len(unknown) > _MAX_NAMES:
        _log.warning("of %d start hosts only %d are looked up: others may not be private", len(unknown), _MAX_NAMES)
    found = _looked_up(unknown[:_MAX_NAMES], look_up, seconds)
    private = {}
    for host, name in names.items():
        addresses = [plain(ip) for ip in ([name] if _is_address(name) else found.get(name, ()))]
        _warn_of_metadata(host, addresses)
        if named := tuple(dict.fromkeys(filter(may_be_named, addresses)))[:_MAX_ADDRESSES]:
            private[host] = named
    return private


def _is_address(name: str) -> bool:
    with suppress(ValueError):
        return bool(ip_address(name))
    return False


def _warn_of_metadata(host: str, addresses: Iterable[str]) -> None:
    for ip in filter(is_metadata, addresses):
        _log.warning("%s is at %s, which is not asked without allow_private = 1: it may hold secrets", host, ip)


def _looked_up(names: Sequence[str], look_up: LookUp, seconds: float) -> dict[str, Sequence[str]]:
    """What is known after that time. Threads that still wait for a silent name server are left to themselves."""
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
    answers: queue.SimpleQueue[tuple[str, Sequence[str]]] = queue.SimpleQueue()
    for name in names:
        waiting.put(name)
    for number in range(min(_THREADS, len(names))):
        arguments = (waiting, answers, look_up)
        threading.Thread(target=_answer, args=arguments, name=f"look-up-{number + 1}", daemon=True).start()
    found: dict[str, Sequence[str]] = {}
    until = time.monotonic() + seconds
    while len(found) < len(names):
        try:
            name, addresses = answers.get(timeout=max(0.0, until - time.monotonic()))
        except queue.Empty:
            missing = len(names) - len(found)
            _log.warning("%d of %d start hosts have no address so far: they may not be private", missing, len(names))
            break
        found[name] = addresses
    return found


def _answer(
    waiting: "queue.SimpleQueue[str]", answers: "queue.SimpleQueue[tuple[str, Sequence[str]]]", look_up: LookUp
) -> None:
    while True:
        try:
            name = waiting.get_nowait()
        except queue.Empty:
            return
        try:
            answers.put((name, look_up(name)))
        except (OSError, UnicodeError):  # no such name, or none that can be looked up
            answers.put((name, ()))

"""Start URLs, as an operator names them: whoever names a private host means the addresses that it has now.

Names are looked up here, and nowhere else on this side; the frontier keeps what was found.
"""

import logging
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from urllib.parse import urlsplit

from common.addresses import is_address, is_metadata, may_be_named, plain
from common.urls import host_of, resolve
from server.frontier.frontier import Frontier

_BATCH = 5_000  # start URLs in one change
_MAX_NAMES = 1_000  # looked up in one go; who has more private hosts than that sets allow_private
_THREADS = 16
_SECONDS = 10.0  # for all of them together
_MAX_ADDRESSES = 16  # of a host
_LOOPBACK = ("127.0.0.1", "::1")
_log = logging.getLogger(__name__)

LookUp = Callable[[str], Sequence[str]]  # a name -> its addresses; OSError if it has none


class LookUps:
    """How many names may still be looked up for an operator who waits, and for how long: who starts with a million
    hosts does not wait for a million name servers."""

    def __init__(self, names: int = _MAX_NAMES, seconds: float = _SECONDS) -> None:
        self._names = names
        self.seconds = seconds
        self._is_told = names == 0

    def chosen(self, names: Sequence[str]) -> Sequence[str]:
        """Those that may be looked up."""
        chosen = names[: self._names if self.seconds > 0 else 0]
        if len(chosen) < len(names) and not self._is_told:
            self._is_told = True
            _log.warning("only the first start hosts are looked up (%d): others may not be private", _MAX_NAMES)
        self._names -= len(chosen)
        return chosen


def take_in(
    frontier: Frontier,
    addresses: Iterable[str],
    on_progress: Callable[[int], None] = lambda number: None,
    is_over: Callable[[], bool] = lambda: False,
) -> None:
    """Start URLs at the start of a server, bit by bit, however many they are, until it is over. Tells how many there
    were so far."""
    rest, look_ups, number = iter(addresses), LookUps(), 0
    while not is_over() and (batch := list(islice(rest, _BATCH))):
        frontier.widen(batch)
        begin_with(frontier, batch, look_ups=look_ups)
        number += len(batch)
        on_progress(number)


def begin_with(
    frontier: Frontier, urls: Iterable[str], again: bool = False, look_ups: LookUps | None = None
) -> int:
    """Take in start URLs; returns how many were not known. `again`: hosts that were named before are looked up once
    more, because an operator names them now; at a restart nobody does."""
    addresses = [address for url in urls if (address := resolve(url))]
    hosts = list(dict.fromkeys(host_of(address) for address in addresses))
    private = private_addresses(hosts if again else frontier.unnamed(hosts), look_ups=look_ups)
    return frontier.begin_with(addresses, private)


def _look_up(name: str) -> Sequence[str]:
    if name == "localhost" or name.endswith(".localhost"):  # RFC 6761 §6.3; clients do not ask anybody either
        return _LOOPBACK
    return [str(found[4][0]) for found in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)]


def private_addresses(
    hosts: Sequence[str], look_up: LookUp = _look_up, seconds: float = _SECONDS, look_ups: LookUps | None = None
) -> dict[str, tuple[str, ...]]:
    """By host: the private addresses at which it is now, if any. Never those where machines keep their secrets."""
    names = {host: urlsplit(f"//{host}").hostname or "" for host in hosts}
    unknown = list(dict.fromkeys(name for name in names.values() if not is_address(name)))
    look_ups = look_ups or LookUps(seconds=seconds)
    began = time.monotonic()
    found = _looked_up(look_ups.chosen(unknown), look_up, look_ups.seconds)
    look_ups.seconds -= time.monotonic() - began
    private = {}
    for host, name in names.items():
        addresses = [plain(ip) for ip in ([name] if is_address(name) else found.get(name, ()))]
        _warn_of_metadata(host, addresses)
        if named := tuple(dict.fromkeys(filter(may_be_named, addresses)))[:_MAX_ADDRESSES]:
            private[host] = named
    return private


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

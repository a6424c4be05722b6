"""Where a connection is until it has logged in: it has no thread, little time, and no place that a session could miss.

Used by the main thread only.
"""

import ipaddress
import logging
from collections import Counter
from typing import Protocol

LOGIN_SECONDS = 10.0  # from the connection to the end of the login, whatever is sent meanwhile
MAX_BYTES = 1000  # sent before the end of the login: ours takes 200
MAX_LINES = 20  # ours takes 5
MAX_WAITING = 100
MAX_WAITING_PER_NETWORK = 20
_TOLD_OF = 1000  # one in so many that are sent away

log = logging.getLogger(__name__)


class Guest(Protocol):
    """A connection that has not logged in."""

    remote_ip: str

    def end(self, reply: str) -> None:
        """Say a last word, if it can be said at once, and close; calls `leave`."""


class Lobby:
    """Keeps the newest: somebody who means to log in does so in a moment, so the oldest is the one that has to go."""

    def __init__(self, in_all: int = MAX_WAITING, per_network: int = MAX_WAITING_PER_NETWORK) -> None:
        self._in_all = in_all
        self._per_network = per_network
        self._guests: dict[Guest, str] = {}  # each with its network; the oldest first
        self._sent_away = 0

    def enter(self, guest: Guest) -> None:
        """Take one in. When there are too many, one of the network that has most of them is sent away."""
        network = _network_of(guest.remote_ip)
        self._guests[guest] = network
        counts = Counter(self._guests.values())
        if counts[network] > self._per_network:
            self._send_away(network)
        elif len(self._guests) > self._in_all:
            self._send_away(max(counts, key=counts.__getitem__))

    def leave(self, guest: Guest) -> None:
        """It has logged in, or is gone. Can be repeated."""
        self._guests.pop(guest, None)

    def _send_away(self, network: str) -> None:
        guest = next(guest for guest, where in self._guests.items() if where == network)
        self._sent_away += 1
        if self._sent_away % _TOLD_OF == 1:  # an attacker must not fill the log
            log.warning(
                "%s: too many connections that do not log in; %d were closed so far", guest.remote_ip, self._sent_away
            )
        self.leave(guest)
        guest.end("421 Too many connections that do not log in.")


def _network_of(address: str) -> str:
    """Whoever has an IPv6 address has 2**64 of them."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if ip.version == 4:
        return str(ip)
    return str(ip.ipv4_mapped or ipaddress.ip_network((ip, 64), strict=False))

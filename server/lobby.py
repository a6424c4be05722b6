"""Where a connection is until it has said who it is: it has no thread, little time, and no place that
others could miss.

Used by one thread only: the one that reads from all such connections.
"""

import ipaddress
import logging
from collections import Counter
from typing import Protocol

STAY_SECONDS = 10.0  # from the connection to the end of the login, whatever is sent meanwhile
MAX_WAITING = 100
MAX_WAITING_PER_NETWORK = 20
_TOLD_OF = 1000  # one in so many that are sent away

log = logging.getLogger(__name__)


class Guest(Protocol):
    """A connection of which nothing is known but its address."""

    remote_ip: str

    def send_away(self) -> None:
        """Say a last word, if it can be said at once, and close."""


class Lobby:
    """Keeps the newest: who means to log in does so in a moment, so the oldest is the one that has to go."""

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
        guest.send_away()


def _network_of(address: str) -> str:
    """Whoever has an IPv6 address has 2**64 of them."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if ip.version == 4:
        return str(ip)
    return str(ip.ipv4_mapped or ipaddress.ip_network((ip, 64), strict=False))

"""Whose program is at the other end of a connection on this machine. Asks Linux' lists of sockets; no state."""

import socket
import sys
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

_LISTS = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_ESTABLISHED, _CLOSE_WAIT = "01", "08"  # proc(5): in all other states a program may have let go of its socket, which is
_HELD = (_ESTABLISHED, _CLOSE_WAIT)  # then said to be root's
_LOCAL, _REMOTE, _STATE, _USER = 1, 2, 3, 7  # columns
_WORD = 4  # bytes, which stand in the order of this machine

Address = tuple[str, int]


def user_at(other: Address, own: Address) -> int | None:
    """The user whose program holds the end `other` of the connection; None if none on this machine does."""
    forms = list(zip(_forms(other), _forms(own), strict=True))
    for path in _LISTS:
        with suppress(OSError):  # no IPv6, say
            for line in path.read_text().splitlines()[1:]:
                columns = line.split()
                if (columns[_LOCAL], columns[_REMOTE]) in forms and columns[_STATE] in _HELD:
                    return int(columns[_USER])
    return None


def addresses(connection: socket.socket) -> tuple[Address, Address] | None:
    """The other end and ours; None if it is broken already."""
    try:
        return connection.getpeername()[:2], connection.getsockname()[:2]
    except OSError:
        return None


def _forms(address: Address) -> tuple[str, str]:
    """How it stands in the lists: a socket for IPv6 can have an address of IPv4, mapped."""
    ip = ip_address(address[0].partition("%")[0])
    mapped = ip.ipv4_mapped if isinstance(ip, IPv6Address) else ip
    six = IPv6Address(f"::ffff:{mapped}") if isinstance(mapped, IPv4Address) else ip
    return _listed(mapped or ip, address[1]), _listed(six, address[1])


def _listed(ip: IPv4Address | IPv6Address, port: int) -> str:
    words = (ip.packed[start : start + _WORD] for start in range(0, len(ip.packed), _WORD))
    return "".join(f"{int.from_bytes(word, sys.byteorder):08X}" for word in words) + f":{port:04X}"

"""Which IP addresses a crawler must not connect to. Pure: no look-ups, no sockets.

The check is for the address really connected to (transport calls it for each socket), never for a name.
"""

from collections.abc import Iterator
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

_NAT64 = IPv6Network("64:ff9b::/96")  # RFC 6052: a gateway connects to the IPv4 address in the last 32 bits
_LOW_32_BITS = 0xFFFF_FFFF

# What the tables of ipaddress (they differ between Pythons) hold for public and a crawler must not touch.
_CLOSED_BESIDES = (
    IPv4Network("168.63.129.16/32"),  # Azure's wire server: metadata and keys of the machine
    IPv4Network("192.0.0.0/24"),  # protocol assignments; Oracle's metadata are at .192
)


@lru_cache(maxsize=4096)  # ipaddress needs 15 µs; a crawl meets the same servers again and again
def is_closed(ip: str) -> bool:
    """True for all that is not a public unicast address, also when it hides inside an IPv6 address."""
    try:
        address = ip_address(ip)
    except ValueError:
        return True
    return _is_closed(address) or any(_is_closed(inner) for inner in _embedded(address))


def _is_closed(address: IPv4Address | IPv6Address) -> bool:
    if isinstance(address, IPv6Address) and address in _NAT64:
        return False  # as open as the address inside, whatever this Python's tables say of the prefix
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        return False  # likewise; Pythons differ on ::ffff:0:0/96
    return (
        not address.is_global  # loopback, private, link-local, CGNAT, unique local, unspecified, examples
        or address.is_multicast
        or address.is_reserved
        or (isinstance(address, IPv6Address) and address.is_site_local)
        or any(address in network for network in _CLOSED_BESIDES)
    )


def _embedded(address: IPv4Address | IPv6Address) -> Iterator[IPv4Address]:
    """IPv4 addresses where a packet to this IPv6 address may end."""
    if isinstance(address, IPv4Address):
        return
    if address.ipv4_mapped:
        yield address.ipv4_mapped
    if address.sixtofour:
        yield address.sixtofour
    if address.teredo:
        yield from address.teredo
    if address in _NAT64:
        yield IPv4Address(int(address) & _LOW_32_BITS)

"""Which IP addresses a crawler must not connect to. Pure: no look-ups, no sockets.

The check is for the address really connected to (transport calls it for each socket), never for a name.
"""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

_NAT64 = IPv6Network("64:ff9b::/96")  # RFC 6052: a gateway connects to the IPv4 address in the last 32 bits
_LOW_32_BITS = 0xFFFF_FFFF

# What the tables of ipaddress (they differ between Pythons) hold for public and a crawler must not touch.
_CLOSED_BESIDES = (
    IPv4Network("168.63.129.16/32"),  # Azure's wire server: metadata and keys of the machine
    IPv4Network("192.0.0.0/24"),  # protocol assignments; Oracle's metadata are at .192
    IPv6Network("2002::/16"),  # 6to4, which can lead to any IPv4 address; out of use (RFC 7526)
    IPv6Network("2001::/32"),  # Teredo, likewise
)


def is_closed(ip: str) -> bool:
    """True for all that is not a public unicast address, also when it hides inside an IPv6 address."""
    try:
        address = ip_address(ip)
    except ValueError:
        return True
    inner = _embedded(address)
    return _is_closed(address if inner is None else inner)


def _is_closed(address: IPv4Address | IPv6Address) -> bool:
    return (
        not address.is_global  # loopback, private, link-local, CGNAT, unique local, unspecified, examples
        or address.is_multicast
        or address.is_reserved
        or (isinstance(address, IPv6Address) and address.is_site_local)
        or any(address in network for network in _CLOSED_BESIDES)
    )


def _embedded(address: IPv4Address | IPv6Address) -> IPv4Address | None:
    """The IPv4 address where packets to this IPv6 address end; it alone counts then."""
    if isinstance(address, IPv4Address):
        return None
    if address in _NAT64:
        return IPv4Address(int(address) & _LOW_32_BITS)
    return address.ipv4_mapped

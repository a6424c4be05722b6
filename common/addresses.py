"""Which IP addresses a crawler must not connect to. Pure: no look-ups, no sockets.

The check is for the address really connected to (the client's transport asks for each socket), never for a name.
"""

from collections.abc import Collection
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

# Where clouds keep the secrets of their machines. Naming a host never opens these.
_METADATA = (
    IPv4Network("169.254.0.0/16"),
    IPv4Network("168.63.129.16/32"),
    IPv4Network("192.0.0.192/32"),
    IPv4Network("100.100.100.200/32"),
    IPv6Network("fe80::/10"),
    IPv6Network("fd00:ec2::/32"),
    IPv6Network("fd20:ce::254/128"),
    IPv6Network("fd00:c1::a9fe:a9fe/128"),
    IPv6Network("fd00:a9fe:a9fe::1/128"),
    IPv6Network("fd00:42::42/128"),
    IPv6Network("fd00:100::100:200/128"),
)


def is_closed(ip: str) -> bool:
    """True for all that is not a public unicast address, also when it hides inside an IPv6 address."""
    address = _parsed(ip)
    return address is None or _is_closed(address)


def is_metadata(ip: str) -> bool:
    """True for link-local addresses and the others at which machines are told their secrets."""
    address = _parsed(ip)
    if address is None:
        return False
    return any(end in network for end in (address, *_possible_ends(address)) for network in _METADATA)


def may_be_named(ip: str) -> bool:
    """Whether an operator opens this closed address by naming a host that has it."""
    return is_closed(ip) and _parsed(ip) is not None and not is_metadata(ip)


def is_open_to(ip: str, named: Collection[str]) -> bool:
    """Whether a client may connect there that was told these closed addresses of the host."""
    return not is_closed(ip) or (bool(named) and may_be_named(ip) and plain(ip) in {plain(other) for other in named})


def is_address(name: str) -> bool:
    """Whether a name is an IP address itself."""
    return _parsed(name) is not None


def plain(ip: str) -> str:
    """One spelling for each address."""
    address = _parsed(ip)
    return ip if address is None else str(address)


def _parsed(ip: str) -> IPv4Address | IPv6Address | None:
    """The address where packets end; None for what is no address."""
    try:
        address = ip_address(ip)
    except ValueError:
        return None
    inner = _embedded(address)
    return address if inner is None else inner


def _is_closed(address: IPv4Address | IPv6Address) -> bool:
    return (
        not address.is_global  # loopback, private, link-local, CGNAT, unique local, unspecified, examples
        or address.is_multicast
        or address.is_reserved
        or (isinstance(address, IPv6Address) and address.is_site_local)
        or any(address in network for network in _CLOSED_BESIDES)
    )


def _possible_ends(address: IPv4Address | IPv6Address) -> tuple[IPv4Address, ...]:
    """IPv4 addresses to which a gateway of this network may lead: whoever owns a name can choose such an address."""
    if isinstance(address, IPv4Address) or not _is_closed(address):
        return ()
    last = IPv4Address(int(address) & _LOW_32_BITS)  # also of a translator with a prefix of its own
    return (last, *filter(None, (address.sixtofour, *(address.teredo or ()))))


def _embedded(address: IPv4Address | IPv6Address) -> IPv4Address | None:
    """The IPv4 address where packets to this IPv6 address end; it alone counts then."""
    if isinstance(address, IPv4Address):
        return None
    if address in _NAT64:
        return IPv4Address(int(address) & _LOW_32_BITS)
    return address.ipv4_mapped

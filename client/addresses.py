"""Which IP addresses a crawler must not connect to. Pure: no look-ups, no sockets.

The check is for the address really connected to (transport calls it for each socket), never for a name.
"""


def is_closed(ip: str) -> bool:
    """True for everything that is not a public unicast address, also when it hides inside an IPv6 address."""
    raise NotImplementedError

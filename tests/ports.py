"""Ports for programs that are started by a test."""

from onehost.parts import held_port


def free_port() -> int:
    """A port on loopback that nobody uses now and that outgoing connections will not take."""
    with held_port() as held:
        return int(held.getsockname()[1])

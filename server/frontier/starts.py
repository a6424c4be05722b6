"""The start URLs that a crawl ever had: a row each in the table META, because there can be a million of them."""

import json
from collections.abc import Iterable, Iterator

from server.frontier.store import Store, Table, Write

_PREFIX, _END = b"start url ", b"start url!"
_OLD_KEY = b"start urls"  # where all of them stood together, as JSON


def known_starts(store: Store) -> Iterator[str]:
    """All of them, in no order that means anything."""
    yield from _together(store)
    for key, _ in store.scan(Table.META, _PREFIX, _END):
        yield key[len(_PREFIX) :].decode()


def noted(addresses: Iterable[str]) -> list[Write]:
    """The writes that keep further ones."""
    return [(Table.META, _PREFIX + address.encode(), b"") for address in addresses]


def separate(store: Store) -> None:
    """Give those that stand together a row each."""
    if store.get(Table.META, _OLD_KEY) is not None:
        store.write([*noted(_together(store)), (Table.META, _OLD_KEY, None)])


def _together(store: Store) -> list[str]:
    packed = store.get(Table.META, _OLD_KEY)
    return [] if packed is None else json.loads(packed)

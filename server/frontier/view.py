"""What is known without the frontier's lock: what the store says, and rules that do not change.

Whatever is decided with it alone is decided once more under the lock, when that matters.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from common.urls import digest, identity
from server.frontier.records import KEY_LENGTH
from server.frontier.store import Table
from server.frontier.visits import Period
from server.policy.policy import Policy


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings that the frontier follows."""

    delay_seconds: float = 1.0
    max_crawl_delay_seconds: float = 60.0
    connections_per_host: int = 1
    lease_seconds: float = 300.0
    retry_wait_seconds: float = 30.0
    traversal: str = "bfs"
    max_pages: int = 0
    max_pages_per_host: int = 0
    max_bytes: int = 0
    max_time_seconds: float = 0.0
    drop_index_names: bool = True
    few_index_names: bool = False
    allow_private: bool = False
    durability: str = "full"
    period: Period = field(default_factory=Period)
    one_round: bool = False  # only what was due at the start is visited again, so that there is an end
    sitemaps: bool = False  # what clients say about sitemaps is heard

    def identity(self, address: str) -> str:
        """The key under which an address and its other spellings are one page of this crawl."""
        return identity(address, self.drop_index_names, self.few_index_names)


class Reader(Protocol):
    """A store, as far as anybody may use it at any time."""

    def get(self, table: Table, key: bytes) -> bytes | None: ...

    def get_many(self, table: Table, keys: Sequence[bytes]) -> Sequence[bytes | None]: ...


@dataclass(frozen=True, slots=True)
class View:
    """Any thread may have one, and it stays as it is, but that the scope of the policy can grow."""

    store: Reader
    policy: Policy
    rules: Rules
    moves: Callable[[bytes, int], bool]  # of the order: whether being found again moves a queued URL

    def key(self, address: str) -> bytes:
        """The key of an address, by way of its identity."""
        return digest(self.rules.identity(address))[:KEY_LENGTH]

    def is_host(self, number: int, name: str) -> bool:
        """Whether the host of this number has that name. Asks the store: what is in memory is not known here."""
        found = self.store.get(Table.NAMES, name.encode())
        return found is not None and int.from_bytes(found, "big") == number

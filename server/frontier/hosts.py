"""Hosts: what is known of each, and which of them are in memory. Those with nothing queued or leased need not be."""

import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from struct import Struct

from server.frontier.records import host_key
from server.frontier.retries import PARK_WAITS
from server.frontier.store import Store, Table, Write

_NUMBERS = Struct(">QQ13I6dHhB")
_NEXT_HOST_KEY = b"next host"
_SET_PREFIX, _SET_END = b"set host ", b"set host!"  # in the table META: the hosts for which an operator set something
_START, _BLOCKED = 1, 2
_MAX_IDLE = 5_000  # hosts without work that stay in memory, a kilobyte each; links to them come again and again


class Host:
    """One host. Changed by the frontier only, under its lock, and written with the change that brought it about."""

    __slots__ = (
        "address", "again", "again_head", "again_leased", "again_waiting", "backoff", "client", "crawl_delay", "done",
        "excluded", "failed", "failures", "head", "id", "is_blocked", "is_fresh", "is_listed", "is_new", "is_start",
        "known", "latency", "leased", "name", "not_before", "own_delay", "parks", "priority", "private", "queued",
        "retry_at", "sitemaps", "stored", "tail", "waiting",
    )  # fmt: skip

    def __init__(self, id: int, name: str) -> None:
        self.id = id
        self.name = name
        self.head = 0  # no entry stands before this number
        self.tail = 0  # so many URLs have come to its queue: the place of the next in the order of arrival
        self.known = 0
        self.queued = 0
        self.waiting = 0  # those of `queued` whose next try is not due yet
        self.leased = 0
        self.done = 0
        self.stored = 0  # those that have a page in Pages/: done, or about to be visited again
        self.again = 0  # those of `queued` that bring no new page: it is stored, or they are sitemaps
        self.again_waiting = 0  # those of `waiting`
        self.again_leased = 0  # those of `leased`
        self.again_head = 0  # as `head`, in the table AGAIN; not on disk
        self.failed = 0
        self.excluded = 0
        self.sitemaps = 0  # those of `known`
        self.parks = 0  # how many times it was set aside as dead, in a row
        self.not_before = 0.0  # UTC; no request before
        self.crawl_delay = -1.0  # from robots.txt; below zero: none
        self.own_delay = -1.0  # set by an operator; below zero: none
        self.priority = 0  # set by an operator: its turn comes before that of hosts with a lower one
        self.backoff = 0.0  # further seconds, because it asked us to slow down
        self.latency = 0.0  # seconds that it takes to answer, on average
        self.retry_at = 0.0  # UTC; what it asked for with Retry-After
        self.failures = 0  # in a row
        self.is_start = False  # named by an operator in a start URL
        self.private: tuple[str, ...] = ()  # the private addresses that it had then: it may be at these
        self.is_blocked = False
        self.address = ""  # the IP address that answered last
        self.client = ""  # who had it last
        self.is_fresh = False  # asked since it was read from disk
        self.is_listed = False  # in the table of active hosts
        self.is_new = True  # not on disk yet

    @property
    def is_active(self) -> bool:
        return self.queued > 0 or self.leased > 0

    @property
    def is_set(self) -> bool:
        """An operator has said something about it."""
        return self.is_blocked or self.own_delay >= 0 or self.priority != 0

    @property
    def is_given_up(self) -> bool:
        """It was set aside as often as a host can be, and did not answer after that either."""
        return self.parks > len(PARK_WAITS)

    @property
    def ready(self) -> int:
        """URLs that could be leased now."""
        return self.queued - self.waiting

    @property
    def ready_again(self) -> int:
        """Those of `ready` that bring no new page."""
        return self.again - self.again_waiting

    def is_sound(self) -> bool:
        """The invariant: every known URL is in exactly one state."""
        return self.known == self.queued + self.leased + self.done + self.failed + self.excluded

    def packed(self) -> bytes:
        flags = self.is_start * _START + self.is_blocked * _BLOCKED
        numbers = _NUMBERS.pack(
            self.head, self.tail, self.known, self.queued, self.waiting, self.leased, self.done, self.stored,
            self.failed, self.excluded, self.again, self.again_waiting, self.again_leased, self.sitemaps, self.parks,
            self.not_before, self.crawl_delay, self.own_delay, self.backoff, self.latency, self.retry_at,
            min(self.failures, 65535), self.priority, flags,
        )  # fmt: skip
        return numbers + f"{self.name}\n{self.address}\n{self.client}\n{' '.join(self.private)}".encode()

    @classmethod
    def unpacked(cls, key: bytes, data: bytes) -> "Host":
        name, address, client, *private = data[_NUMBERS.size :].decode().split("\n")
        host = cls(int.from_bytes(key, "big"), name)
        (
            host.head, host.tail, host.known, host.queued, host.waiting, host.leased, host.done, host.stored,
            host.failed, host.excluded, host.again, host.again_waiting, host.again_leased, host.sitemaps, host.parks,
            host.not_before, host.crawl_delay, host.own_delay, host.backoff, host.latency, host.retry_at, host.failures,
            host.priority, flags,
        ) = _NUMBERS.unpack_from(data)  # fmt: skip
        # An older record does not say which addresses it had: it is named anew at the next start.
        host.is_start, host.is_blocked = bool(flags & _START) and bool(private), bool(flags & _BLOCKED)
        host.private = tuple(private[0].split()) if private else ()
        host.address, host.client = address, sys.intern(client)  # few clients had all hosts
        host.is_listed = host.is_active
        host.is_new = False
        return host


class Hosts:
    """All hosts: the active ones in memory, the others on disk. The frontier calls it under its lock."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._by_name: dict[str, Host] = {}
        self._by_id: dict[int, Host] = {}
        self._idle: dict[int, None] = {}  # those without work, who was changed last at the end
        self._next = int(store.get(Table.META, _NEXT_HOST_KEY) or b"1")
        self._load(key for key, _ in store.scan(Table.ACTIVE))

    def __iter__(self) -> Iterator[Host]:
        """Those in memory: all active ones, and some others."""
        return iter(list(self._by_id.values()))

    def by_id(self, host: int) -> Host:
        if host not in self._by_id:
            self._load([host_key(host)])
        return self._by_id[host]

    def in_memory(self, host: int) -> Host | None:
        """The host, if it is in memory: every active one is."""
        return self._by_id.get(host)

    def find(self, name: str) -> Host | None:
        """The host of this name, if there is one."""
        if name not in self._by_name:
            self._load_named([name])
        return self._by_name.get(name)

    def get_or_make(self, names: Iterable[str]) -> dict[str, Host]:
        """The hosts of these names; those that do not exist are made, and written with the current change."""
        found = {}
        missing = [name for name in dict.fromkeys(names) if name not in self._by_name]
        if missing:
            self._load_named(missing)
        for name in missing:
            if name not in self._by_name:
                self._keep(Host(self._next, name))
                self._next += 1
        for name in names:
            found[name] = self._by_name[name]
        return found

    def set_by_operator(self) -> list[Host]:
        """The hosts that an operator has blocked, or given a delay or a priority, also those without work."""
        rows = self._store.scan(Table.META, _SET_PREFIX, _SET_END)
        return [self.by_id(int.from_bytes(key[len(_SET_PREFIX) :], "big")) for key, _ in rows]

    def note_setting(self, host: Host) -> Write:
        """The write that lets `set_by_operator` find it, or no longer."""
        return Table.META, _SET_PREFIX + host_key(host.id), b"" if host.is_set else None

    def writes(self, changed: Iterable[Host]) -> list[Write]:
        """What has to be written for these hosts."""
        writes: list[Write] = []
        for host in changed:
            key = host_key(host.id)
            writes.append((Table.HOSTS, key, host.packed()))
            if host.is_active != host.is_listed:
                writes.append((Table.ACTIVE, key, b"" if host.is_active else None))
            if host.is_new:
                writes.append((Table.NAMES, host.name.encode(), key))
        writes.append((Table.META, _NEXT_HOST_KEY, str(self._next).encode()))
        return writes

    def written(self, changed: Iterable[Host]) -> None:
        """The writes have succeeded."""
        for host in changed:
            host.is_listed = host.is_active
            host.is_new = False
            self._file(host)
        self._trim()

    def restore(self, changed: Iterable[Host]) -> None:
        """The writes have failed: forget what memory says, the store is right. Numbers of new hosts are not reused."""
        keys = []
        for host in changed:
            self._by_id.pop(host.id, None)
            self._by_name.pop(host.name, None)
            self._idle.pop(host.id, None)
            keys.append(host_key(host.id))
        self._load(keys)

    def _load_named(self, names: list[str]) -> None:
        keys = self._store.get_many(Table.NAMES, [name.encode() for name in names])
        self._load(key for key in keys if key is not None)

    def _load(self, keys: Iterable[bytes]) -> None:
        wanted = list(keys)
        for key, value in zip(wanted, self._store.get_many(Table.HOSTS, wanted), strict=True):
            if value is not None:
                self._keep(Host.unpacked(key, value))

    def _keep(self, host: Host) -> None:
        self._by_id[host.id] = host
        self._by_name[host.name] = host
        self._file(host)

    def _file(self, host: Host) -> None:
        """With the others that have work, or that have none."""
        self._idle.pop(host.id, None)
        if not host.is_active:
            self._idle[host.id] = None

    def _trim(self) -> None:
        """Drop hosts without work, beyond some, whose last change was longest ago."""
        for number in list(islice(self._idle, max(0, len(self._idle) - _MAX_IDLE))):
            del self._idle[number]
            del self._by_name[self._by_id.pop(number).name]

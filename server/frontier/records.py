"""What the frontier's records look like on disk: fixed binary layouts, no pickle. Pure functions and values."""

import json
from dataclasses import dataclass
from enum import IntEnum
from struct import Struct

from common.wire import Outcome, Totals

KEY_LENGTH = 16  # bytes of a URL's digest that tell URLs apart: 2^-64 for a clash among 2^32 URLs

_ENTRY = Struct(">16sHBB")
_STATE = Struct(">BQ")
_PLACE = Struct(">IQ")
_HOST = Struct(">QQIIIIIIdd?")
_OUTCOMES = tuple(Outcome)  # stored by position: append new outcomes at the end of the enumeration


class State(IntEnum):
    """Where a URL is. Exactly one of these."""

    QUEUED = 1
    LEASED = 2
    DONE = 3
    FAILED = 4
    EXCLUDED = 5
    WAITING = 6  # queued, for a later try; counts as queued


@dataclass(frozen=True, slots=True)
class Entry:
    """A URL that is to be crawled."""

    key: bytes  # the first bytes of the identity's digest
    url: str  # the address found first
    depth: int
    hops: int
    tries: int

    def packed(self) -> bytes:
        numbers = min(self.depth, 65535), min(self.hops, 255), min(self.tries, 255)
        return _ENTRY.pack(self.key, *numbers) + self.url.encode()

    @classmethod
    def unpacked(cls, data: bytes) -> "Entry":
        key, depth, hops, tries = _ENTRY.unpack_from(data)
        return cls(key, data[_ENTRY.size :].decode(), depth, hops, tries)


@dataclass(frozen=True, slots=True)
class Place:
    """Where an entry stands: in which host's queue, at which number."""

    host: int
    number: int

    def packed(self) -> bytes:
        return _PLACE.pack(self.host, self.number)

    @classmethod
    def unpacked(cls, data: bytes) -> "Place":
        return cls(*_PLACE.unpack_from(data))


def pack_placed(place: Place, entry: bytes) -> bytes:
    """An entry outside its queue, with the way back."""
    return place.packed() + entry


def unpack_placed(data: bytes) -> tuple[Place, bytes]:
    """Undo `pack_placed`; the entry stays packed."""
    return Place.unpacked(data), data[_PLACE.size :]


@dataclass(frozen=True, slots=True)
class UrlState:
    """What is known of a URL: its state, and one number that depends on it.

    QUEUED: the job that gave it back, or 0; `place` says where. WAITING: due time in milliseconds. LEASED: the job.
    DONE, FAILED: position of the outcome. EXCLUDED: the host if the policy did it, or 0; `rule` says why.
    """

    state: State
    number: int = 0
    extra: bytes = b""

    def packed(self) -> bytes:
        return _STATE.pack(self.state, self.number) + self.extra

    @classmethod
    def unpacked(cls, data: bytes) -> "UrlState":
        state, number = _STATE.unpack_from(data)
        return cls(State(state), number, data[_STATE.size :])

    @classmethod
    def queued(cls, place: Place, job: int = 0) -> "UrlState":
        return cls(State.QUEUED, job, place.packed())

    @classmethod
    def ended(cls, state: State, outcome: Outcome) -> "UrlState":
        return cls(state, _OUTCOMES.index(outcome))

    @property
    def place(self) -> Place:
        return Place.unpacked(self.extra)

    @property
    def outcome(self) -> Outcome:
        return _OUTCOMES[self.number]

    @property
    def rule(self) -> str:
        return self.extra.decode()


@dataclass(frozen=True, slots=True)
class HostRecord:
    """One host: its counters, its queue's ends, and what it asked of us."""

    id: int
    name: str
    head: int = 0  # no entry stands before this number
    tail: int = 0  # the next entry gets this number
    queued: int = 0
    waiting: int = 0  # those of `queued` whose next try is not due yet
    leased: int = 0
    done: int = 0
    failed: int = 0
    excluded: int = 0
    not_before: float = 0.0  # UTC; no request before
    crawl_delay: float = -1.0  # from robots.txt; below zero: none
    allow_private: bool = False  # named by an operator as a start URL

    def packed(self) -> bytes:
        return (
            _HOST.pack(
                self.head, self.tail, self.queued, self.waiting, self.leased, self.done, self.failed,
                self.excluded, self.not_before, self.crawl_delay, self.allow_private,
            )
            + self.name.encode()
        )  # fmt: skip

    @classmethod
    def unpacked(cls, key: bytes, data: bytes) -> "HostRecord":
        return cls(int.from_bytes(key, "big"), data[_HOST.size :].decode(), *_HOST.unpack_from(data))

    @property
    def known(self) -> int:
        return self.queued + self.leased + self.done + self.failed + self.excluded


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A lease: who has it and until when. Its URLs are in the table of leased ones."""

    job: int
    client: str
    request: str  # the client's own number of the request, so that a repeated request gets the same job
    deadline: float  # UTC

    def packed(self) -> bytes:
        return json.dumps([self.client, self.request, self.deadline]).encode()

    @classmethod
    def unpacked(cls, key: bytes, data: bytes) -> "JobRecord":
        return cls(int.from_bytes(key, "big"), *json.loads(data))


@dataclass(frozen=True, slots=True)
class FailedRecord:
    """A URL that was given up: a line of the blacklist."""

    url: str
    outcome: Outcome
    detail: str
    tries: int
    time: float

    def packed(self) -> bytes:
        return json.dumps([self.url, self.outcome, self.detail, self.tries, self.time]).encode()

    @classmethod
    def unpacked(cls, data: bytes) -> "FailedRecord":
        url, outcome, detail, tries, time = json.loads(data)
        return cls(url, Outcome(outcome), detail, tries, time)


def host_key(host: int) -> bytes:
    return host.to_bytes(4, "big")


def job_key(job: int) -> bytes:
    return job.to_bytes(8, "big")


def waiting_key(due: float, key: bytes) -> bytes:
    """Ordered by the time when it is due, in milliseconds."""
    return int(due * 1000).to_bytes(8, "big") + key


def pack_totals(totals: Totals) -> bytes:
    return json.dumps([getattr(totals, name) for name in Totals.__dataclass_fields__]).encode()


def unpack_totals(data: bytes) -> Totals:
    return Totals(*json.loads(data))

"""What the frontier's records look like on disk: fixed binary layouts, no pickle. Pure functions and values.

The layouts are small on purpose: at a hundred million URLs each byte counts. A URL's text stands only where it is
still needed: in the queue, in a job, or with a page that will be visited again.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from struct import Struct
from typing import NamedTuple

from common.wire import Kind, Outcome

KEY_LENGTH = 16  # bytes of a URL's digest that tell URLs apart: 2^-64 for a clash among 2^32 URLs

_ENTRY = Struct(">HBBB")
_PLACE = Struct(">IQ")
_QUEUED = Struct(">BIQ")
_WAITING = Struct(">BQIQ")
_ENDED = Struct(">BBII")
_EXCLUDED = Struct(">BI")
_TASK = Struct(">HIQ")
_JOB_NUMBER = Struct(">Q")
_VISIT = Struct(">QdIIHBBHB")
# In the first byte of a UrlState, and in the tries of an Entry:
_STORED = 0x80  # the page was stored before
_SITEMAP = 0x40
_GUESSED = 0x20  # only in an Entry
_LINKED = 0x10  # only in an Entry
_NO_SITEMAP = 0x20  # only in a UrlState
_STATE = 0x0F  # the rest of that byte
_MAX_TRIES = 0x0F
_OUTCOMES = tuple(Outcome)  # stored by position: new outcomes come at the end of the enumeration
_OUTCOME_RULES = frozenset(outcome.value for outcome in _OUTCOMES)
_POSITIONS = {outcome: position for position, outcome in enumerate(_OUTCOMES)}


class State(IntEnum):
    """Where a URL is. Exactly one of these."""

    QUEUED = 1  # on disk also for a leased one: whether its place in the queue is empty tells them apart
    LEASED = 2
    DONE = 3
    FAILED = 4
    EXCLUDED = 5
    WAITING = 6  # queued, for a later try; counts as queued


class Entry(NamedTuple):
    """A URL that is to be crawled."""

    url: str  # the address found first
    depth: int
    hops: int
    tries: int
    own_key: bytes = b""  # only if it does not follow from the address alone
    is_again: bool = False  # its page is stored: this is another visit
    is_sitemap: bool = False
    is_guessed: bool = False  # a sitemap that nobody names, or that was read before: its failure is no news
    is_linked: bool = False  # a sitemap to which a page links: if it is none, it is a page

    @property
    def key(self) -> bytes:
        return self.own_key or key_of_identity(self.url)

    @property
    def is_apart(self) -> bool:
        """It brings no new page, so limits in pages are not about it, and it is queued apart from the others."""
        return self.is_again or self.is_sitemap

    def packed(self) -> bytes:
        marks = self.is_again * _STORED | self.is_sitemap * _SITEMAP | self.is_guessed * _GUESSED
        marks |= self.is_linked * _LINKED
        return pack_entry(self.url, self.depth, self.hops, min(self.tries, _MAX_TRIES) | marks, self.own_key)


def key_of_identity(identity: str) -> bytes:
    """The key of a URL: the first bytes of its identity's digest (see common.urls.digest)."""
    return hashlib.sha1(identity.encode(), usedforsecurity=False).digest()[:KEY_LENGTH]


def pack_entry(url: str, depth: int, hops: int, tries: int, own_key: bytes) -> bytes:
    head = _ENTRY.pack(min(depth, 65535), min(hops, 255), min(tries, 255), len(own_key))
    return head + own_key + url.encode()


def unpack_entry(data: bytes) -> Entry:
    depth, hops, tries, key_length = _ENTRY.unpack_from(data)
    start = 5 + key_length
    marks = tries >= _STORED, tries & _SITEMAP > 0, tries & _GUESSED > 0, tries & _LINKED > 0
    return Entry(data[start:].decode(), depth, hops, tries & _MAX_TRIES, data[5:start], *marks)


# Parts of an entry, for where each microsecond counts.


def url_of_entry(data: bytes) -> str:
    return data[5 + data[4] :].decode()


def is_apart(data: bytes) -> bool:
    return data[3] >= _SITEMAP


def kind_of_entry(data: bytes) -> Kind:
    if not data[3] & _SITEMAP:
        return Kind.PAGE
    return Kind.GUESSED if data[3] & _GUESSED else Kind.SITEMAP


def is_taken_over(data: bytes) -> bool:
    """A stored page that is asked for as a sitemap for the first time."""
    return data[3] & (_STORED | _SITEMAP | _GUESSED) == _STORED | _SITEMAP


def depth_and_hops(data: bytes) -> tuple[int, int]:
    return data[0] << 8 | data[1], data[2]


def key_of_entry(data: bytes, url: str) -> bytes:
    return data[5 : 5 + data[4]] or key_of_identity(url)


class Place(NamedTuple):
    """Where an entry stands or stood: in which host's queue, at which number."""

    host: int
    number: int

    def packed(self) -> bytes:
        return _PLACE.pack(self.host, self.number)


def unpack_place(data: bytes) -> Place:
    return Place(*_PLACE.unpack_from(data))


pack_place = _PLACE.pack  # the same as Place(…).packed(), without making the tuple


_NOWHERE = Place(0, 0)


@dataclass(frozen=True, slots=True)
class UrlState:
    """What the store knows of a URL. Which fields count depends on the state."""

    state: State
    place: Place = _NOWHERE  # QUEUED, WAITING; of the others only the host
    lost_by: int = 0  # QUEUED: the job whose lease ended before this URL was reported
    due: int = 0  # WAITING: milliseconds since 1970
    outcome: Outcome = Outcome.STORED  # DONE, FAILED
    time: int = 0  # DONE, FAILED: seconds since 1970
    rule: str = ""  # EXCLUDED
    was_stored: bool = False  # QUEUED, WAITING, DONE: by an earlier visit; this is or was another one
    is_sitemap: bool = False  # all but EXCLUDED
    is_no_sitemap: bool = False  # DONE: asked for as one since the last visit of the page, and proved to be none

    @property
    def has_page(self) -> bool:
        """Whether there is a page in Pages/."""
        return self.was_stored or (self.state is State.DONE and self.outcome is Outcome.STORED)

    @property
    def is_visited(self) -> bool:
        """Done, or waits for another visit."""
        return self.was_stored or self.state is State.DONE

    @property
    def is_apart(self) -> bool:
        """Its entry, if it has one, is queued apart from those of new pages."""
        return self.was_stored or self.is_sitemap

    @property
    def rule_name(self) -> str:
        """The rule without what it has found."""
        return self.rule.partition(":")[0]

    @property
    def is_outside(self) -> bool:
        """Excluded by scope or limits, so without having been asked for; not by robots.txt or its type."""
        return self.state is State.EXCLUDED and self.rule_name not in _OUTCOME_RULES

    def packed(self) -> bytes:
        mark = self.state | self.was_stored * _STORED | self.is_sitemap * _SITEMAP | self.is_no_sitemap * _NO_SITEMAP
        if self.state is State.QUEUED:
            tail = _JOB_NUMBER.pack(self.lost_by) if self.lost_by else b""
            return _QUEUED.pack(mark, *self.place) + tail
        if self.state is State.WAITING:
            return _WAITING.pack(mark, self.due, *self.place)
        if self.state is State.EXCLUDED:
            return _EXCLUDED.pack(self.state, self.place.host) + self.rule.encode()
        return pack_ended(mark, self.outcome, self.time, self.place.host)

    @classmethod
    def unpacked(cls, data: bytes) -> "UrlState":
        state, was_stored = State(data[0] & _STATE), data[0] >= _STORED
        is_sitemap = data[0] & _SITEMAP > 0
        if state is State.QUEUED:
            lost_by = _JOB_NUMBER.unpack_from(data, _QUEUED.size)[0] if len(data) > _QUEUED.size else 0
            return cls(state, unpack_place(data[1:]), lost_by, was_stored=was_stored, is_sitemap=is_sitemap)
        if state is State.WAITING:
            _, due, host, number = _WAITING.unpack(data)
            return cls(state, Place(host, number), due=due, was_stored=was_stored, is_sitemap=is_sitemap)
        if state is State.EXCLUDED:
            return cls(state, Place(_EXCLUDED.unpack_from(data)[1], 0), rule=data[_EXCLUDED.size :].decode())
        _, outcome, time, host = _ENDED.unpack(data)
        return cls(
            state, Place(host, 0), outcome=_OUTCOMES[outcome], time=time, was_stored=was_stored, is_sitemap=is_sitemap,
            is_no_sitemap=data[0] & _NO_SITEMAP > 0,
        )  # fmt: skip


def may_be_page(packed: bytes) -> bool:
    """Whether it is the state of a sitemap that may prove to be none, or has proved so."""
    state = packed[0] & ~_SITEMAP
    is_none = state == State.DONE and packed[1] == _POSITIONS[Outcome.UNWANTED]
    return packed[0] & _SITEMAP > 0 and (is_none or state in (State.QUEUED, State.WAITING))


def pack_queued(host: int, number: int) -> bytes:
    return _QUEUED.pack(State.QUEUED, host, number)


def with_number(queued: bytes, number: int) -> bytes:
    """The packed state of a queued URL that stands at another number of its host's queue."""
    return queued[:5] + number.to_bytes(8, "big") + queued[_QUEUED.size :]


def pack_ended(state: int, outcome: Outcome, time: int, host: int) -> bytes:
    return _ENDED.pack(state, _POSITIONS[outcome], time, host)


class Task(NamedTuple):
    """An entry that is leased: where it stood, and the entry itself, still packed."""

    host: int
    number: int
    entry: bytes


def pack_tasks(tasks: Iterable[Task]) -> bytes:
    """All tasks of a job as one record."""
    pack = _TASK.pack
    return b"".join([pack(len(entry), host, number) + entry for host, number, entry in tasks])


def unpack_tasks(data: bytes) -> Iterator[Task]:
    position = 0
    while position < len(data):
        length, host, number = _TASK.unpack_from(data, position)
        position += _TASK.size
        yield Task(host, number, data[position : position + length])
        position += length


@dataclass(frozen=True, slots=True)
class Visit:
    """What the next visit of a stored page needs, and what the last one has brought."""

    url: str  # the address
    depth: int
    hops: int
    interval: float  # seconds from the last visit to the next
    visited: int  # seconds since 1970
    due: int = 0  # milliseconds since 1970; 0 while it is queued or leased
    absent_since: int = 0  # seconds since 1970; it was gone or moved at the last visits
    etag: str = ""
    last_modified: str = ""
    sha1: bytes = b""  # of the body

    def packed(self) -> bytes:
        etag, modified = self.etag.encode(), self.last_modified.encode()
        head = _VISIT.pack(
            self.due, self.interval, self.visited, self.absent_since, min(self.depth, 65535), min(self.hops, 255),
            len(self.sha1), len(etag), len(modified),
        )  # fmt: skip
        return b"".join([head, self.sha1, etag, modified, self.url.encode()])

    @classmethod
    def unpacked(cls, data: bytes) -> "Visit":
        due, interval, visited, absent, depth, hops, *lengths = _VISIT.unpack_from(data)
        parts, position = [], _VISIT.size
        for length in lengths:
            parts.append(data[position : position + length])
            position += length
        sha1, etag, modified = parts
        url = data[position:].decode()
        return cls(url, depth, hops, interval, visited, due, absent, etag.decode(), modified.decode(), sha1)


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A lease: who has it and until when. Its tasks are in a table of their own."""

    job: int
    client: str
    request: str  # the client's own mark of the request, so that a repeated request gets the same job
    deadline: float  # UTC

    def packed(self) -> bytes:
        return json.dumps([self.client, self.request, self.deadline]).encode()

    @classmethod
    def unpacked(cls, key: bytes, data: bytes) -> "JobRecord":
        return cls(int.from_bytes(key, "big"), *json.loads(data))


@dataclass(frozen=True, slots=True)
class FailedRecord:
    """A URL that was given up: a line of the blacklist. Has what is needed to try it again."""

    url: str
    outcome: Outcome
    detail: str
    tries: int
    time: float
    host: int
    depth: int
    hops: int
    is_sitemap: bool = False

    def packed(self) -> bytes:
        values = [
            self.url, self.outcome, self.detail, self.tries, self.time, self.host, self.depth, self.hops,
            self.is_sitemap,
        ]  # fmt: skip
        return json.dumps(values).encode()

    @classmethod
    def unpacked(cls, data: bytes) -> "FailedRecord":
        url, outcome, *rest = json.loads(data)
        return cls(url, Outcome(outcome), *rest)


def host_key(host: int) -> bytes:
    return host.to_bytes(4, "big")


def job_key(job: int) -> bytes:
    return job.to_bytes(8, "big")


def waiting_key(due: int, place: Place) -> bytes:
    """Ordered by the time when it is due, in milliseconds."""
    return due.to_bytes(8, "big") + place.packed()


def due_key(due: int, key: bytes) -> bytes:
    """The same for a page that is visited again."""
    return due.to_bytes(8, "big") + key

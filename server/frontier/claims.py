"""Which pages in Pages/ count: those whose job had their URL, and has reported them as stored.

Whoever can upload names any job and any URL. So each settlement notes, in its own atomic write, what its job has stored
and what it gave back without a word. Reading needs no lock, and no more than a store that can be read.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from server.frontier.jobnames import JobNames, next_job
from server.frontier.records import KEY_LENGTH, UrlState, job_key, key_of_entry, unpack_tasks, url_of_entry
from server.frontier.store import Store, Table, Write

BODY_LENGTH = 12  # bytes of a body's SHA-1: whoever looks for another body with one of 2^27 marks needs 2^69 tries
_BODY_DIGITS = 2 * BODY_LENGTH
UNKNOWN_BODY = bytes(BODY_LENGTH)  # an older client does not say it
SINCE_KEY = b"claims since"  # in META: the first job of which all is noted here
# Kinds of rows: what the job did with the URLs in it.
STORED = b"s"
GIVEN_BACK = b"g"  # its lease has ended before it said anything of them
UNSURE = b"u"  # it says that packing or uploading failed, and that may have been after the upload
_KIND_AT, _ENTRY_AT = 8, 9  # in the key of a row, after the job
_ENTRY_LENGTH = KEY_LENGTH + BODY_LENGTH
_MOST_JOBS = 256  # in memory; the bundles of a job mostly stand together


class Claim(IntEnum):
    """What is to be thought of a page that a bundle says its job has stored."""

    CONFIRMED = 0  # the job has reported it
    HELD = 1  # the job has the URL, or had it: uploaded, and not reported
    FALSE = 2  # the job never had the URL, or has reported something else of it


def entry(key: bytes, sha1: str = "") -> bytes:
    """A URL as a row names it, with what the report says of its body."""
    try:
        body = bytes.fromhex(sha1[:_BODY_DIGITS])
    except ValueError:
        return key + UNKNOWN_BODY
    return key + (body if len(body) == BODY_LENGTH else UNKNOWN_BODY)


def row(job: int, kind: bytes, entries: Sequence[bytes]) -> Write:
    """The note of one settlement. Its first entry is in the key: no job stores or loses the same page twice, so no row
    ever takes the place of another."""
    return Table.CLAIMS, job_key(job) + kind + entries[0], b"".join(entries[1:])


def beginning(store: Store) -> Write:
    """From the next job on all is noted. Of those before it was not: what is known of their URLs judges their pages."""
    return Table.META, SINCE_KEY, str(next_job(store)).encode()


def is_row(key: bytes, value: bytes) -> bool:
    """Whether it can be one, for an audit."""
    shape = len(key) == _ENTRY_AT + _ENTRY_LENGTH and len(value) % _ENTRY_LENGTH == 0
    return shape and key[_KIND_AT:_ENTRY_AT] in (STORED, GIVEN_BACK, UNSURE)


@dataclass(slots=True)
class _Job:
    """What one job may say of pages."""

    stored: dict[bytes, set[bytes]] = field(default_factory=dict)  # key of the URL -> bodies
    held: set[bytes] = field(default_factory=set)  # keys

    def judge(self, key: bytes, body: bytes) -> Claim:
        bodies = self.stored.get(key)
        if bodies is not None:
            return Claim.CONFIRMED if body in bodies or UNKNOWN_BODY in bodies else Claim.FALSE
        return Claim.HELD if key in self.held else Claim.FALSE


class Claims:
    """Judges pages by the records of their jobs. Reads each job once, so it is made anew for each walk over pages, and
    after those were found: what was uploaded before had been leased before. Belongs to one thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        since = store.get(Table.META, SINCE_KEY)
        self._since = int(since) if since else next_job(store)
        self._names = JobNames.of(store)
        self._jobs: dict[int, _Job] = {}

    def judge(self, job: str, pages: Sequence[tuple[bytes, bytes]]) -> list[Claim]:
        """Of pages (digests of URL and body) in a bundle that names this job."""
        number = self._names.row_number(job)
        known = self._job(number)
        named = [(digest[:KEY_LENGTH], sha1[:BODY_LENGTH]) for digest, sha1 in pages]
        claims = [known.judge(*page) for page in named]
        return self._by_state(known, named, claims) if number < self._since else claims

    def noted(self, job: str, pages: Iterable[tuple[bytes, bytes]]) -> list[Write]:
        """Notes that pages (digests of URL and body) count as reported by the job that their bundle names."""
        entries = [digest[:KEY_LENGTH] + sha1[:BODY_LENGTH] for digest, sha1 in pages]
        return [row(self._names.row_number(job), STORED, entries)] if entries else []

    def _by_state(self, known: _Job, named: Sequence[tuple[bytes, bytes]], claims: list[Claim]) -> list[Claim]:
        """Of a job of which not all is noted: a page of which nothing is noted counts if its URL has a page."""
        open_keys = [key for key, _ in named if key not in known.stored]
        states = dict(zip(open_keys, self._store.get_many(Table.URLS, open_keys), strict=True))
        return [
            (Claim.CONFIRMED if _has_page(states[key]) else Claim.HELD) if key in states else claim
            for (key, _), claim in zip(named, claims, strict=True)
        ]

    def _job(self, number: int) -> _Job:
        if number not in self._jobs:
            if len(self._jobs) >= _MOST_JOBS:
                self._jobs.clear()
            self._jobs[number] = self._read(number)
        return self._jobs[number]

    def _read(self, number: int) -> _Job:
        """First what is out: what is reported meanwhile is in the rows then, as both are one write."""
        tasks = unpack_tasks(self._store.get(Table.TASKS, job_key(number)) or b"")
        job = _Job(held={key_of_entry(task.entry, url_of_entry(task.entry)) for task in tasks})
        for key, value in self._store.scan(Table.CLAIMS, job_key(number), job_key(number + 1)):
            entries = _entries(key[_ENTRY_AT:] + value)
            if key[_KIND_AT:_ENTRY_AT] == STORED:
                for each in entries:
                    job.stored.setdefault(each[:KEY_LENGTH], set()).add(each[KEY_LENGTH:])
            else:
                job.held.update(each[:KEY_LENGTH] for each in entries)
        return job


def _entries(packed: bytes) -> list[bytes]:
    return [packed[start : start + _ENTRY_LENGTH] for start in range(0, len(packed), _ENTRY_LENGTH)]


def _has_page(packed: bytes | None) -> bool:
    return packed is not None and UrlState.unpacked(packed).has_page

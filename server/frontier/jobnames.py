"""What jobs are called outside the frontier: their number, and digits that only this frontier can make. Whoever can
upload names any job, so the name of one must not be known before it is handed out, and then to nobody else.

Inside, a job is its number.
"""

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, field
from typing import Self

from server.frontier.store import Store, Table, Write

NEXT_JOB_KEY = b"next job"  # in META
NAMES_KEY = b"job names"  # in META: the first job whose name has digits, whether others had some, and the key
_KEY_BYTES = 32
_DIGITS = 16  # each try is an upload
_NAME = re.compile(rf"(?P<number>[1-9][0-9]{{0,17}})(?:-(?P<digits>[0-9a-f]{{{_DIGITS}}}))?")
_NO_JOB = 1 << 62  # and more: beyond all numbers of jobs


def next_job(store: Store) -> int:
    return int(store.get(Table.META, NEXT_JOB_KEY) or b"1")


def beginning(store: Store) -> Write:
    """From the next job on names have digits, made with a new key. Older ones stay as they are."""
    return _begun(next_job(store), had_others=False)


def after_loss(store: Store, first: int) -> list[Write]:
    """The same from a later job on, if the key is lost: what it had made cannot be told from what is invented."""
    return [] if store.get(Table.META, NAMES_KEY) else [_begun(first, had_others=True)]


def _begun(first: int, *, had_others: bool) -> Write:
    key = secrets.token_hex(_KEY_BYTES)
    return Table.META, NAMES_KEY, f"{first} {had_others:d} {key}".encode()


@dataclass(frozen=True, slots=True)
class JobNames:
    """Makes names and checks them. Any thread may have it."""

    first: int  # whose name has digits
    had_others: bool  # earlier ones may have some, too, made with a key that is lost
    key: bytes = field(repr=False)

    @classmethod
    def of(cls, store: Store) -> Self:
        """Those of a frontier; one that only older versions had open has no names with digits yet."""
        packed = store.get(Table.META, NAMES_KEY)
        if packed is None:
            return cls(next_job(store), had_others=False, key=b"")
        first, had_others, key = packed.decode().split()
        return cls(int(first), had_others == "1", bytes.fromhex(key))

    def name(self, number: int) -> str:
        return str(number) if number < self.first else f"{number}-{self._digits(number)}"

    def number(self, name: str) -> int | None:
        """The number of the job of this name; None if there can be none."""
        match = _NAME.fullmatch(name)
        if match is None:
            return None
        number, digits = int(match["number"]), match["digits"] or ""
        if number < self.first:
            return number if self.had_others or not digits else None
        return number if self.key and hmac.compare_digest(self._digits(number), digits) else None

    def row_number(self, name: str) -> int:
        """Under which number claims of this name are noted. What is no job of this frontier has one, too, so that an
        operator can believe the pages of another crawl."""
        number = self.number(name)
        if number is not None:
            return number
        return _NO_JOB | int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") >> 2

    def _digits(self, number: int) -> str:
        return hmac.digest(self.key, str(number).encode(), "sha256").hex()[:_DIGITS]

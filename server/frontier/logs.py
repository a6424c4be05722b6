"""Whether RocksDB's logs are without a gap. RocksDB takes a block of zeros for one that was never written, and goes on
behind it without a word: so the last number that it has read says nothing of those before it.

Reads only where records begin, not what is in them: that their checksums are right is RocksDB's business.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from typing import IO

_BLOCK = 32_768  # no record crosses the end of one
_HEADER = Struct("<IHB")  # checksum, length, type
_BATCH = Struct("<QI")  # the number of its first change, how many there are
_NOTHING, _WHOLE, _FIRST, _MIDDLE, _LAST = range(5)  # types of records: a batch, or a piece of one


@dataclass(frozen=True, slots=True)
class Gap:
    """Behind this place are changes that do not follow on those before it."""

    log: Path
    place: int
    reach: int  # up to this number all changes are before it
    what: str


def gap_in(logs: Iterable[Path]) -> Gap | None:
    """The first one. `logs` are those that are needed, in their order."""
    reach, hole = 0, None
    for log in logs:
        for place, number, count in _batches(log):
            if not number and hole is None:
                hole = Gap(log, place, reach, f"{log.name} has nothing at byte {place}, and there is more behind that")
            if hole is not None and count:
                return hole
            if 0 < number <= reach:  # further on is no gap: a write that has failed may have used up numbers
                return Gap(log, place, number - 1, f"{log.name} goes on with change {number} after change {reach}")
            reach = max(reach, number + count - 1)
    return None


def _batches(log: Path) -> Iterator[tuple[int, int, int]]:
    """Those that are whole: place, number of the first change, and how many there are. Where there is nothing the
    number is 0; then they are 1 if there is anything behind that."""
    begun = (0, 0, 0)
    with log.open("rb") as file:
        for place, kind, content in _records(file):
            if kind == _NOTHING:
                yield place, 0, len(content)
            elif kind in (_WHOLE, _FIRST):
                begun = (place, *_BATCH.unpack(content)) if len(content) == _BATCH.size else (0, 0, 0)
            if kind in (_WHOLE, _LAST) and begun[2]:
                yield begun
                begun = (0, 0, 0)


def _records(file: IO[bytes]) -> Iterator[tuple[int, int, bytes]]:
    """Place, type and how it begins; up to what is none, or is damaged: RocksDB sees that, too."""
    start, hole = 0, -1
    while block := file.read(_BLOCK):
        at = 0
        while hole < 0 and at + _HEADER.size <= len(block):
            _, length, kind = _HEADER.unpack_from(block, at)
            begin, end = at + _HEADER.size, at + _HEADER.size + length
            if kind == length == 0:
                hole = start + at
            elif kind not in (_WHOLE, _FIRST, _MIDDLE, _LAST) or end > len(block):
                return
            else:
                yield start + at, kind, block[begin : min(begin + _BATCH.size, end)]
                at = end
        if hole >= 0 and block[at:].strip(b"\0"):
            yield hole, _NOTHING, b"?"
            return
        start += len(block)
    if hole >= 0:
        yield hole, _NOTHING, b""

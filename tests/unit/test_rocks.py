"""The store on RocksDB, as far as it differs from any other store."""

import os
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from server.frontier import promise
from server.frontier.logs import gap_in
from server.frontier.promise import Notes, promise_in
from server.frontier.rocks import RocksStore
from server.frontier.store import StoreError, Table


def test_a_damaged_block_does_not_look_like_the_end_of_the_table(tmp_path: Path) -> None:
    store = RocksStore(tmp_path / "store")
    keys = [number.to_bytes(16, "big") for number in range(5_000)]
    store.write([(Table.URLS, key, key * 3) for key in keys])
    store.copy_to(tmp_path / "copy")  # in whole files, without a log
    store.close()
    file = max((tmp_path / "copy").glob("*.sst"), key=lambda path: path.stat().st_size)
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0xFF
    file.write_bytes(bytes(data))
    damaged = RocksStore(tmp_path / "copy")
    with pytest.raises(StoreError, match="cannot be read"):
        list(damaged.scan(Table.URLS))
    assert list(damaged.scan(Table.QUEUE)) == []
    damaged.close()


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_scans_end_where_they_should(tmp_path: Path, rows: int) -> None:
    store = RocksStore(tmp_path)
    keys = [bytes([number]) for number in range(1, rows + 1)]
    store.write([(Table.URLS, key, b"") for key in keys])
    assert [key for key, _ in store.scan(Table.URLS)] == keys
    assert [key for key, _ in store.scan(Table.URLS, b"\x02")] == keys[1:]
    assert [key for key, _ in store.scan(Table.URLS, b"\x01", b"\x02")] == keys[:1]
    assert list(store.scan(Table.URLS, b"\xff")) == []
    store.close()


CALLS: dict[str, Callable[[RocksStore], object]] = {
    "get": lambda store: store.get(Table.URLS, b"1"),
    "get_many": lambda store: store.get_many(Table.URLS, [b"1"]),
    "scan": lambda store: list(store.scan(Table.URLS)),
    "write": lambda store: store.write([(Table.URLS, b"1", b"")]),
    "sync": lambda store: store.sync(),
    "copy_to": lambda store: store.copy_to(Path("/nowhere")),
    "close": lambda store: store.close(),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_who_comes_while_it_is_opened_again_gets_a_store_error(
    tmp_path: Path, call: Callable[[RocksStore], object]
) -> None:
    store = RocksStore(tmp_path)
    store.close()
    with pytest.raises(StoreError, match="already closed"):
        call(store)


def test_a_scan_that_is_under_way_while_it_is_closed_ends_with_a_store_error(tmp_path: Path) -> None:
    store = RocksStore(tmp_path)
    store.write([(Table.URLS, bytes([number]), b"") for number in range(9)])
    rows = store.scan(Table.URLS)
    next(rows)
    store.close()
    with pytest.raises(StoreError, match="already closed"):
        list(rows)


# --- gaps in its logs -------------------------------------------------------------------------------------------


def written(*batches: tuple[int, int], size: int = 100, at: int = 0) -> bytes:
    """A log as RocksDB writes it: batches (number of the first change, how many), in blocks of 32 KB."""
    log = b""
    for number, count in batches:
        content, kinds = struct.pack("<QI", number, count) + b"x" * size, (1, 2)
        while content:
            room = 32_768 - (at + len(log)) % 32_768
            if room < 7:
                log += bytes(room)
                continue
            piece, content = content[: room - 7], content[room - 7 :]
            log += struct.pack("<IHB", 0xC5C5C5C5, len(piece), kinds[bool(content)]) + piece
            kinds = (4, 3)
    return log


ONE = written((1, 2), (3, 1))
BLOCK = written(*((number, 1) for number in range(1, 400)))  # of 119 bytes each, and so more than one block
PADDED = written(*((number, 1) for number in range(1, 400)), size=109)  # 128 bytes: a block is full at its end
LOGS: dict[str, tuple[list[bytes], int, str]] = {
    "none": ([], -1, ""),
    "nothing in it": ([b""], -1, ""),
    "two": ([ONE, written((4, 9))], -1, ""),
    "blocks": ([BLOCK, written((400, 1))], -1, ""),
    "full blocks": ([PADDED, written((400, 1))], -1, ""),
    "blocks whose ends have no room for a record": ([written(*((n, 1) for n in range(1, 800)), size=108)], -1, ""),
    "a batch of three blocks": ([written((1, 1), (2, 5), size=70_000)], -1, ""),
    "a write that failed has used up numbers": ([ONE, written((9, 1))], -1, ""),
    "a batch that was not written to its end": ([ONE + written((4, 1), size=40_000)[:32_000], written((4, 1))], -1, ""),
    "a torn end": ([ONE + b"\x17\x17\x17"], -1, ""),
    "rubbish behind it": ([ONE + b"\x17" * 300], -1, ""),
    "zeros behind it": ([ONE + bytes(70_000)], -1, ""),
    "zeros only": ([bytes(512)], -1, ""),
    "its begin": ([bytes(512) + BLOCK[512:]], 0, "0.log has nothing at byte 0"),
    "the begin of the second": ([ONE, bytes(10) + written((4, 1))[10:]], 3, "1.log has nothing at byte 0"),
    "a block": ([PADDED[:32_768] + bytes(4_096) + PADDED[36_864:]], 256, "0.log has nothing at byte 32768"),
    "to the end of the block, and on": ([ONE + bytes(32_768 - len(ONE)) + ONE], 3, "0.log has nothing at byte 238"),
    "one of three": ([ONE, bytes(200), written((6, 1))], 3, "1.log has nothing at byte 0"),
    "the end of the first": ([ONE + bytes(300), written((6, 1))], 3, "0.log has nothing at byte 238"),
    "exchanged": ([written((4, 1)), ONE], 0, "1.log goes on with change 1 after change 4"),
    "an older one": ([ONE, ONE], 0, "1.log goes on with change 1 after change 3"),
}  # fmt: skip


@pytest.mark.parametrize(("logs", "reach", "told"), LOGS.values(), ids=LOGS)
def test_gaps_in_logs(tmp_path: Path, logs: list[bytes], reach: int, told: str) -> None:
    paths = [tmp_path / f"{number}.log" for number in range(len(logs))]
    for path, data in zip(paths, logs, strict=True):
        path.write_bytes(data)
    gap = gap_in(paths)
    assert (gap is None) == (not told)
    assert gap is None or (gap.reach == reach and gap.what.startswith(told))


# --- notes of what was promised ---------------------------------------------------------------------------------


def test_a_note_that_comes_after_the_end_is_not_written_into_another_file(tmp_path: Path) -> None:
    """One thread waits for the disk while another opens the store again: RocksDB gets the number of the closed file."""
    notes = Notes(tmp_path)
    notes.close()
    with (tmp_path / "000012.log").open("w+b") as log:
        notes.written(1)
        notes.synced(1)
        notes.logs(1, {1: 0})
        assert os.fstat(log.fileno()).st_size == 0


def test_who_has_waited_longer_for_the_disk_takes_nothing_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = Notes(tmp_path)
    for reach in (2, 1):
        notes.synced(reach)
        notes.logs(1, {reach: 0})
    notes.close()
    monkeypatch.setattr(promise, "_run", lambda: b"another".ljust(16))  # the power failed
    promised = promise_in(tmp_path)
    assert promised is not None
    assert (promised.surely, promised.logs) == (2, {2: 0})

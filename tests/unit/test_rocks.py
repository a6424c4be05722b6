"""The store on RocksDB, as far as it differs from any other store."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from server.frontier import promise
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

"""The store on RocksDB, as far as it differs from any other store."""

from pathlib import Path

import pytest

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

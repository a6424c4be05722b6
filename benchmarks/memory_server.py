"""A urlServer that tells what its memory is made of: for each line on its standard input a line of JSON on
standard error. It is the real program, with a thread more. Started by `benchmarks.memory`; with PYTHONTRACEMALLOC set
it also tells who holds what."""

import ctypes
import gc
import json
import os
import sys
import threading
import tracemalloc
from collections.abc import Callable
from typing import Any

from server.frontier.frontier import Frontier
from server.urlserver import main as program

_IN_ROCKS = ("estimate-table-readers-mem", "cur-size-all-mem-tables")
_TOP = 15
MARK = "memory "


def tell(frontier: Frontier) -> dict[str, Any]:
    """Numbers of entries, and bytes."""
    with frontier._decide() as memory:
        core, leasing, turns = memory.core, memory.leasing, memory.core.turns
        told: dict[str, Any] = {
            "known": core.books.totals.known,
            "hosts": core.books.totals.hosts,
            "in_memory": len(core.hosts._by_id),
            "active": sum(host.is_active for host in core.hosts),
            "leases": len(core.leases),
            "tasks": sum(len(lease.tasks) for lease in core.leases),
            "offers": len(turns._offers),
            "entries": turns.entries,
            "parked": sum(map(len, turns._parked.values())),
            "clients": len(leasing._callers.keys() | leasing._misses.keys() | turns._lines.keys()),
        }
    store: Any = frontier._store
    for name in _IN_ROCKS:
        told[name] = sum(table.property_int_value(f"rocksdb.{name}") for table in store._tables)
    told["block-cache-usage"] = store._tables[0].property_int_value("rocksdb.block-cache-usage")
    told["objects"] = len(gc.get_objects()) + gc.get_freeze_count()
    if tracemalloc.is_tracing():
        told["traced"] = tracemalloc.get_traced_memory()[0]
        top = tracemalloc.take_snapshot().statistics("lineno")[:_TOP]
        told["top"] = [f"{each.size / 1e6:7.1f} MB {each.count:9,} {each.traceback[0]}" for each in top]
    return told


def _answer(frontier: Callable[[], Frontier]) -> None:
    for line in sys.stdin:
        if line.startswith("trim"):
            gc.collect()
            ctypes.CDLL(None).malloc_trim(0)
        os.write(sys.stderr.fileno(), f"{MARK}{json.dumps(tell(frontier()))}\n".encode())  # in one piece


def main() -> int:
    opened: list[Frontier] = []
    open_frontier = program.open_frontier

    def open_and_keep(*arguments: Any) -> Frontier:
        opened.append(open_frontier(*arguments))
        return opened[0]

    program.open_frontier = open_and_keep  # type: ignore[assignment]
    threading.Thread(target=_answer, args=(lambda: opened[0],), daemon=True).start()
    return program.main()


if __name__ == "__main__":
    sys.exit(main())

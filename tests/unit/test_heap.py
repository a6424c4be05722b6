"""What is let go leaves the process."""

import re
import subprocess
import sys

import pytest

from tests.processes import ROOT

# Blocks of 10 MB with small ones between: in a heap, the small ones keep the room of the large ones.
_CHILD = """
from pathlib import Path
from common import heap
def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
if {kept_small}:
    heap.keep_small()
first = bytearray(30_000_000)  # glibc learns from it what is large
del first
before = resident()
large, small = [], []
for number in range(10):
    large.append(b"x" * 10_000_000)
    small.append(b"x" * 100_000)
large.clear()
print(resident() - before)
"""


@pytest.mark.parametrize("kept_small", [True, False])
def test_large_blocks_leave_the_process(kept_small: bool) -> None:
    command = [sys.executable, "-c", _CHILD.format(kept_small=kept_small)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert (int(done.stdout) < 30_000_000) == kept_small


# All at once, so that each thread wants a heap while the others have theirs.
_THREADS = """
import ctypes, sys, threading
from common import heap
if {kept_small}:
    heap.keep_small()
together = threading.Barrier(16)
def work():
    together.wait()
    mine = [bytearray(5_000) for _ in range(1_000)]
    together.wait()
threads = [threading.Thread(target=work) for _ in range(16)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
ctypes.CDLL(None).malloc_stats()
"""


@pytest.mark.parametrize("kept_small", [True, False])
def test_threads_share_two_heaps(kept_small: bool) -> None:
    command = [sys.executable, "-c", _THREADS.format(kept_small=kept_small)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    heaps = len(re.findall(r"^Arena \d+:", done.stderr, re.MULTILINE))
    assert heaps == 2 if kept_small else heaps > 2

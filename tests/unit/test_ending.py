"""The wish to end: told by signals at any moment, also while it is being told or waited for."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from common.ending import Ending


@pytest.fixture
def ending():
    before = signal.getsignal(signal.SIGUSR1)
    yield Ending(signal.SIGUSR1)
    signal.signal(signal.SIGUSR1, before)


def test_it_is_told_by_a_signal(ending: Ending) -> None:
    assert not ending.is_told
    assert not ending.wait(0.01)
    os.kill(os.getpid(), signal.SIGUSR1)
    assert ending.wait(60)
    assert ending.is_told
    assert ending.wait(), "and stays so"


def test_a_thread_can_wait_for_it(ending: Ending) -> None:
    ended = threading.Event()
    threading.Thread(target=lambda: ending.wait() and ended.set(), daemon=True).start()
    assert not ended.wait(0.05)
    ending.tell()
    assert ended.wait(60)


_STORM = """
import os, signal
from common.ending import Ending
ending = Ending(signal.SIGUSR1)
child = os.fork()
if child == 0:
    for _ in range(20_000):
        os.kill(os.getppid(), signal.SIGUSR1)
    os._exit(0)
while os.waitpid(child, os.WNOHANG) == (0, 0):
    ending.is_told = False
    ending.wait(0.001)
print("ended")
"""


def test_no_storm_of_signals_can_stop_it() -> None:
    """An event in its place does not come to an end here."""
    done = subprocess.run([sys.executable, "-c", _STORM], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "ended\n"

"""Room for pages: who brings one waits while there is none."""

import threading

from client.room import LARGE_BYTES, Room
from tests.waiting import wait_until


def test_waits_until_there_is_room() -> None:
    room = Room(100)
    assert room.take(60)
    assert not room.take(60, timeout_seconds=0.01)
    taken = threading.Event()

    def take() -> None:
        room.take(60)
        taken.set()

    threading.Thread(target=take, daemon=True).start()
    assert not taken.wait(0.05)
    room.grow(-30)
    wait_until(taken.is_set, 10)
    assert room.used == 90


def test_what_is_larger_than_everything_gets_all_of_it() -> None:
    room = Room(100)
    assert room.take(500)
    assert not room.take(1, timeout_seconds=0.01)
    room.grow(-500)
    assert room.take(1, timeout_seconds=0.01)


def test_large_ones_leave_a_quarter_to_others() -> None:
    room = Room(8 * LARGE_BYTES)
    assert room.take(4 * LARGE_BYTES)
    assert not room.take(3 * LARGE_BYTES, timeout_seconds=0.01)
    assert room.take(2 * LARGE_BYTES)
    for _ in range(2):
        assert room.take(LARGE_BYTES, timeout_seconds=0.01)
    assert not room.take(1, timeout_seconds=0.01)


def test_says_when_it_becomes_narrow() -> None:
    room = Room(100)
    room.take(75)
    assert not room.is_crowded
    room.grow(1)
    assert room.is_crowded

"""The line of pages to be mined: in order, so many at once, and others in the place of those that wait."""

import queue
import threading

from client.line import Line

SECONDS = 20.0


def started(target: object) -> threading.Thread:
    thread = threading.Thread(target=target, daemon=True)  # type: ignore[arg-type]
    thread.start()
    return thread


def line_of(numbers: int, at_once: int) -> Line[int]:
    items: queue.Queue[int | None] = queue.Queue()
    for number in range(1, numbers + 1):
        items.put(number)
    return Line(items, at_once)


def test_with_one_at_work_everything_is_done_in_order_by_however_many_threads() -> None:
    items: queue.Queue[int | None] = queue.Queue()
    line, done = Line(items, 1), list[int]()

    def work() -> None:
        while (number := line.take()) is not None:
            done.append(number)

    threads = [started(work) for _ in range(9)]
    for number in range(1, 2_001):
        items.put(number)
    for _ in threads:
        items.put(None)
    for thread in threads:
        thread.join(SECONDS)
    assert done == list(range(1, 2_001))


def test_no_more_work_at_once_than_may() -> None:
    line, begun = line_of(3, at_once=2), threading.Semaphore(0)
    third = threading.Event()

    def work() -> None:
        if line.take() == 3:
            third.set()
        begun.release()
        go_on.wait(SECONDS)
        line.take()

    go_on = threading.Event()
    for _ in range(3):
        started(work)
    assert begun.acquire(timeout=SECONDS)
    assert begun.acquire(timeout=SECONDS)
    assert not third.wait(0.1)
    go_on.set()  # one takes again, so it is done with its own
    assert third.wait(SECONDS)


def test_who_is_aside_makes_room_for_another_and_comes_back() -> None:
    line, second_is_done, waits = line_of(2, at_once=1), threading.Event(), threading.Event()
    order: list[str] = []

    def first() -> None:
        assert line.take() == 1
        with line.aside():
            waits.set()
            assert second_is_done.wait(SECONDS)
        order.append("first")
        line.take()

    def second() -> None:
        assert waits.wait(SECONDS)
        assert line.take() == 2
        order.append("second")
        second_is_done.set()
        line.take()

    threads = [started(first), started(second)]
    waits.wait(SECONDS)
    second_is_done.wait(SECONDS)
    assert order[0] == "second"
    for _ in threads:
        line._items.put(None)
    for thread in threads:
        thread.join(SECONDS)
    assert order == ["second", "first"]


def test_aside_is_nothing_for_who_does_not_work() -> None:
    line = line_of(1, at_once=1)
    with line.aside():
        pass
    assert line.take() == 1

"""A queue with more threads than may work at once: while some wait for what takes long, others work in their place."""

import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

_T = TypeVar("_T")


class Line(Generic[_T]):
    """What is in `items` is begun with in its order, `at_once` at the same time. Each thread that takes works until it
    takes again. Thread-safe."""

    def __init__(self, items: "queue.Queue[_T | None]", at_once: int) -> None:
        self._items = items
        self._turn = threading.Lock()  # of the thread that takes next; who has it does not work
        self._free = threading.Semaphore(at_once)
        self._own = threading.local()  # .works: whether this thread is one of those at work

    def take(self) -> _T | None:
        """The next one, when this thread may begin with it; None is passed on."""
        self._let_go()
        with self._turn:
            item = self._items.get()
            if item is not None:
                self._begin()
        return item

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Another thread may work meanwhile. Nothing if this one does not."""
        if not self._let_go():
            yield
            return
        try:
            yield
        finally:
            self._begin()

    def _begin(self) -> None:
        self._free.acquire()
        self._own.works = True

    def _let_go(self) -> bool:
        if not getattr(self._own, "works", False):
            return False
        self._own.works = False
        self._free.release()
        return True

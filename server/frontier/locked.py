"""A lock that is a type: what it guards is reached only by taking it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

T = TypeVar("T")


class Locked(Generic[T]):
    """Holds one value. Call it to have that value for as long as the `with` block lasts, and let no thread else in."""

    __slots__ = ("__lock", "__value")

    def __init__(self, value: T) -> None:
        self.__lock = threading.Lock()
        self.__value = value

    @contextmanager
    def __call__(self) -> Iterator[T]:
        with self.__lock:
            yield self.__value

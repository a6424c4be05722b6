"""What an export asks the frontier of the crawl, running or not: opened once, read, and closed."""

import time
from collections.abc import Callable
from typing import TypeVar

from common.errors import PavoukError
from common.settings import Settings
from server.frontier.store import Store, StoreError
from server.opening import reading_store

Answer = TypeVar("Answer")

_TRIES = 5  # a file of the frontier that we are about to open may just have been merged into another
_WAIT_SECONDS = 0.2


def asked(settings: Settings, question: Callable[[Store], Answer]) -> Answer | None:
    """The answer of its tables; None if there is no frontier in the work folder. May have to ask again."""
    for _ in range(_TRIES - 1):
        try:
            return _asked(settings, question)
        except StoreError:
            time.sleep(_WAIT_SECONDS)
    try:
        return _asked(settings, question)
    except StoreError as error:
        told = f"{error}. It tells which pages count; in a work folder without one all do"
        raise PavoukError(told) from error


def _asked(settings: Settings, question: Callable[[Store], Answer]) -> Answer | None:
    with reading_store(settings) as store:
        return None if store is None else question(store)

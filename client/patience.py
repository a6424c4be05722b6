"""Trying again: waits that grow, are bounded, and differ from client to client, so that they do not come in waves."""

import logging
import random
import threading
from collections.abc import Callable
from typing import TypeVar

from common.errors import RemoteUnavailable

_FIRST_SECONDS = 0.05  # a server that was started together with its clients is there in a moment
_FAILURES_OF_A_SECOND = 5  # with these waits
_T = TypeVar("_T")
_log = logging.getLogger(__name__)


class Stopped(Exception):
    """The client is being stopped, and the call has not succeeded."""


def wait_seconds(failures: int, longest: float) -> float:
    """How long to wait after so many failures in a row: between half and all of a doubling limit."""
    limit = min(longest, _FIRST_SECONDS * 2 ** min(failures, 30))
    return random.uniform(limit / 2, limit)


def level_of(failures: int) -> int:
    """How loudly to tell of so many failures in a row: after about a second of trouble, then once in a while, because a
    server can be away for days."""
    return logging.WARNING if failures == _FAILURES_OF_A_SECOND or failures % 50 == 0 else logging.DEBUG


def persist(call: Callable[[], _T], what: str, stopped: threading.Event, longest: float) -> _T:
    """Call until the server answers. RemoteRefused and our own mistakes pass through; Stopped ends the waiting."""
    failures = 0
    while True:
        try:
            result = call()
        except RemoteUnavailable as error:
            failures += 1
            wait = wait_seconds(failures, longest)
            _log.log(level_of(failures), "%s failed (%s); trying again in %.1f s", what, error, wait)
            if stopped.wait(wait):
                raise Stopped from error
        else:
            if failures:
                _log.info("%s succeeded after %d failures", what, failures)
            return result

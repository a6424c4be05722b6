"""Waiting for a condition with a limit, for what other processes do and cannot tell us about."""

import time
from collections.abc import Callable

_POLL_SECONDS = 0.05


def wait_until(condition: Callable[[], object], seconds: float, message: Callable[[], str] | str = "") -> None:
    """Return as soon as `condition` holds; fail with the message after `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(message() if callable(message) else message or "the condition never held")
        time.sleep(_POLL_SECONDS)

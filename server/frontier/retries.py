"""What follows from an outcome: for the URL its state and further tries, for the host whether it is well. A table."""

from dataclasses import dataclass
from enum import Enum

from common.wire import Outcome
from server.frontier.records import State


class Sign(Enum):
    """What an outcome says about the host."""

    NOTHING = "nothing"  # it was not asked
    WELL = "well"  # it answered
    BUSY = "busy"  # it asked us to slow down
    DEAD = "dead"  # it did not answer


@dataclass(frozen=True, slots=True)
class Consequence:
    """`waits` has the factor of `retry_wait` before each further try; when they are used up, `state` is final.

    A URL with the state QUEUED goes back to its place, and that was no try.
    """

    state: State
    sign: Sign
    waits: tuple[float, ...] = ()


_SOON = (1, 10)  # it may be over in a moment, or in some minutes
_PATIENTLY = (2, 10, 60, 120)

CONSEQUENCES = {
    Outcome.STORED: Consequence(State.DONE, Sign.WELL),
    Outcome.UNCHANGED: Consequence(State.DONE, Sign.WELL),
    Outcome.REDIRECTED: Consequence(State.DONE, Sign.WELL),
    Outcome.LISTED: Consequence(State.DONE, Sign.WELL),
    Outcome.DISALLOWED: Consequence(State.EXCLUDED, Sign.NOTHING),
    Outcome.UNWANTED: Consequence(State.EXCLUDED, Sign.WELL),
    Outcome.NOT_FOUND: Consequence(State.FAILED, Sign.WELL),
    Outcome.CLIENT_ERROR: Consequence(State.FAILED, Sign.WELL),
    Outcome.TOO_LARGE: Consequence(State.FAILED, Sign.WELL),
    Outcome.BAD_CONTENT: Consequence(State.FAILED, Sign.WELL),
    Outcome.BAD_REDIRECT: Consequence(State.FAILED, Sign.WELL),
    Outcome.FORBIDDEN_ADDRESS: Consequence(State.FAILED, Sign.NOTHING),
    Outcome.TLS: Consequence(State.FAILED, Sign.DEAD, _SOON),
    Outcome.SERVER_ERROR: Consequence(State.FAILED, Sign.WELL, _SOON),
    Outcome.DNS: Consequence(State.FAILED, Sign.DEAD, _SOON),
    Outcome.REFUSED: Consequence(State.FAILED, Sign.DEAD, _SOON),
    Outcome.TIMEOUT: Consequence(State.FAILED, Sign.DEAD, _SOON),
    Outcome.BROKEN: Consequence(State.FAILED, Sign.WELL, _SOON),
    Outcome.INTERNAL: Consequence(State.FAILED, Sign.NOTHING, _SOON),
    Outcome.BUSY: Consequence(State.FAILED, Sign.BUSY, _PATIENTLY),
    Outcome.ROBOTS_UNREACHABLE: Consequence(State.FAILED, Sign.NOTHING, _PATIENTLY),
    Outcome.SKIPPED: Consequence(State.QUEUED, Sign.NOTHING),
}

DEAD_AFTER = 3  # failures of a host in a row; then it is set aside
PROBE_URLS = 3  # that a host gets after it was set aside, until it answers
PARK_WAITS = (4, 20, 60, 240, 960)  # factors of `retry_wait`; a host still dead after the last is given up


def wait_factor(outcome: Outcome, tries: int) -> float | None:
    """How long to wait after the `tries`-th try, in units of `retry_wait`; None: that was the last one."""
    waits = CONSEQUENCES[outcome].waits
    return waits[tries - 1] if tries <= len(waits) else None

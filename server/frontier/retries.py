"""What follows from an outcome: the state a URL gets, and whether and when it is tried again. A table, no code."""

from dataclasses import dataclass

from common.wire import Outcome
from server.frontier.records import State


@dataclass(frozen=True, slots=True)
class Consequence:
    """`waits` has the factor of `retry_wait` before each further try; when they are used up, `state` is final."""

    state: State
    waits: tuple[float, ...] = ()


_DONE = Consequence(State.DONE)
_EXCLUDED = Consequence(State.EXCLUDED)
_FAILED = Consequence(State.FAILED)
_PASSING = Consequence(State.FAILED, (1, 10))  # may be over in a moment, or in some minutes
_PATIENT = Consequence(State.FAILED, (2, 10, 60, 120))  # the host asked for patience

CONSEQUENCES = {
    Outcome.STORED: _DONE,
    Outcome.UNCHANGED: _DONE,
    Outcome.REDIRECTED: _DONE,
    Outcome.DISALLOWED: _EXCLUDED,
    Outcome.UNWANTED: _EXCLUDED,
    Outcome.NOT_FOUND: _FAILED,
    Outcome.CLIENT_ERROR: _FAILED,
    Outcome.TOO_LARGE: _FAILED,
    Outcome.BAD_CONTENT: _FAILED,
    Outcome.BAD_REDIRECT: _FAILED,
    Outcome.FORBIDDEN_ADDRESS: _FAILED,
    Outcome.TLS: _FAILED,
    Outcome.SERVER_ERROR: _PASSING,
    Outcome.DNS: _PASSING,
    Outcome.REFUSED: _PASSING,
    Outcome.TIMEOUT: _PASSING,
    Outcome.BROKEN: _PASSING,
    Outcome.INTERNAL: _PASSING,
    Outcome.BUSY: _PATIENT,
    Outcome.ROBOTS_UNREACHABLE: _PATIENT,
}


def wait_factor(outcome: Outcome, tries: int) -> float | None:
    """How long to wait after the `tries`-th try, in units of `retry_wait`; None: that was the last one."""
    waits = CONSEQUENCES[outcome].waits
    return waits[tries - 1] if tries <= len(waits) else None

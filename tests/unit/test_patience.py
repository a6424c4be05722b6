"""Waits that grow, are bounded and differ; and calls that are repeated until they succeed."""

import logging
import threading
from itertools import pairwise

import pytest

from client.patience import Stopped, persist, wait_seconds
from common.errors import RemoteRefused, RemoteUnavailable


class Server:
    """Is away for so many calls."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.calls = 0

    def __call__(self) -> str:
        self.calls += 1
        if self.calls <= self.failures:
            raise RemoteUnavailable("nobody answers")
        return "done"


def test_waits_grow_up_to_a_bound() -> None:
    longest = [max(wait_seconds(failures, 60.0) for _ in range(200)) for failures in range(1, 12)]
    assert longest[0] <= 1.0
    assert all(later > earlier for earlier, later in pairwise(longest[:6])), "each limit is twice the one before"
    assert 30.0 < longest[-1] <= 60.0


@pytest.mark.parametrize("failures", [1, 5, 100, 10_000_000])
def test_no_wait_is_longer_than_allowed_or_less_than_half(failures: int) -> None:
    for _ in range(100):
        assert 0.05 <= wait_seconds(failures, 0.1) <= 0.1


def test_waits_differ_from_client_to_client() -> None:
    assert len({wait_seconds(3, 60.0) for _ in range(20)}) == 20


def test_persist_goes_on_until_it_is_answered(caplog: pytest.LogCaptureFixture) -> None:
    server = Server(failures=70)
    with caplog.at_level(logging.INFO):
        assert persist(server, "greeting", threading.Event(), 0.001) == "done"
    assert server.calls == 71
    warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == 2, "once in a while is enough"
    assert "greeting failed (nobody answers)" in warnings[0].getMessage()
    assert "succeeded after 70 failures" in caplog.text


@pytest.mark.parametrize("error", [RemoteRefused("no"), ValueError("our mistake")])
def test_other_exceptions_pass_through(error: Exception) -> None:
    calls = []

    def call() -> None:
        calls.append(1)
        raise error

    with pytest.raises(type(error)):
        persist(call, "trying", threading.Event(), 0.001)
    assert len(calls) == 1


def test_stopped_before_the_first_wait() -> None:
    stopped = threading.Event()
    stopped.set()
    with pytest.raises(Stopped):
        persist(Server(failures=1), "trying", stopped, 3600.0)
    assert persist(Server(failures=0), "trying", stopped, 3600.0) == "done", "what succeeds is not lost"


def test_stopped_in_the_middle_of_a_long_wait() -> None:
    stopped = threading.Event()
    ended: list[str] = []
    server = Server(failures=10**9)

    def work() -> None:
        with pytest.raises(Stopped):
            persist(server, "trying", stopped, 3600.0)
        ended.append("stopped")

    thread = threading.Thread(target=work)
    thread.start()
    stopped.set()
    thread.join(20)
    assert ended == ["stopped"]

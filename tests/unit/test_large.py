"""Bodies on their way share memory: who is large waits, somebody always gets on, and nobody waits for ever."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from client.large import FREE_BYTES, LargeBodies
from client.transport import Limits, Response, Transport, TransportError
from common.wire import Outcome
from tests.unit.canned import reply, serving

BODY = b"x" * (5 * FREE_BYTES)
LIMITS = Limits(5.0, 30.0, 30.0, max_body_bytes=20_000_000, max_header_bytes=20_000)
HASTY = Limits(5.0, 30.0, 1.0, max_body_bytes=20_000_000, max_header_bytes=20_000)


def test_oldest_always_gets_on() -> None:
    large = LargeBodies(100)
    assert large.hold("old", 90, 0.0)
    assert not large.hold("young", 20, 0.0)
    assert large.hold("old", 500, 0.0)
    large.let_go("old")
    assert large.hold("young", 500, 0.0)


def test_room_is_shared_until_it_is_full() -> None:
    large = LargeBodies(100)
    assert [large.hold(number, 30, 0.0) for number in range(4)] == [True, True, True, False]
    assert large.hold(1, 40, 0.0)
    assert not large.hold(2, 40, 0.0)
    large.let_go(0)
    assert large.hold(2, 40, 0.0)


def test_who_waits_is_woken() -> None:
    large = LargeBodies(100)
    assert large.hold("old", 100, 0.0)
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(large.hold, "young", 50, 60.0)
        large.let_go("old")
        assert waiting.result(timeout=60)


def request(transport: Transport, url: str, limits: Limits = LIMITS) -> Response:
    try:
        return transport.request(url, limits, allow_private=True)
    finally:
        transport.close()


def test_large_body_waits_and_small_ones_do_not() -> None:
    large = LargeBodies(2 * FREE_BYTES)
    assert large.hold("another", 2 * FREE_BYTES, 0.0)
    with serving() as canned:
        canned.replies |= {"/large": reply(BODY), "/small": reply(b"small")}
        with pytest.raises(TransportError) as caught:
            request(Transport("pavouk", large=large), canned.url("/large"), HASTY)
        assert (caught.value.outcome, caught.value.status) == (Outcome.TIMEOUT, 200)
        assert request(Transport("pavouk", large=large), canned.url("/small")).body == b"small"
        large.let_go("another")
        assert request(Transport("pavouk", large=large), canned.url("/large")).body == BODY


def test_many_large_bodies_at_once_all_arrive() -> None:
    large = LargeBodies(2 * FREE_BYTES)
    begun = threading.Barrier(8)

    def fetch(url: str) -> bytes:
        begun.wait(30)
        return request(Transport("pavouk", large=large), url).body

    with serving() as canned, ThreadPoolExecutor(8) as pool:
        canned.replies[None] = reply(BODY)
        bodies = list(pool.map(fetch, [canned.url(f"/{number}") for number in range(8)]))
    assert bodies == [BODY] * 8
    assert large.hold("all", 10**9, 0.0), "everything was let go"


def test_body_counts_until_somebody_else_has_it() -> None:
    large = LargeBodies(2 * FREE_BYTES)
    with serving() as canned:
        canned.replies |= {"/large": reply(BODY)}
        first, second = Transport("pavouk", large=large), Transport("pavouk", large=large)
        assert first.request(canned.url("/large"), LIMITS, allow_private=True).body == BODY
        with pytest.raises(TransportError):
            request(second, canned.url("/large"), HASTY)
        first.let_go()
        assert request(second, canned.url("/large")).body == BODY
        first.close()

"""Names that fail, lie and change, in a network of its own: what counts is the address that is connected to."""

import time

import pytest

from common.wire import Outcome
from tests.islands import Island, net
from tests.web.nameserver import PUBLIC, PUBLIC_6

__all__ = ["net"]

NOISE_SECONDS = 30.0


@pytest.mark.parametrize("name", ["missing", "failing", "refused", "empty", "circle"])
def test_name_without_an_address(net: Island, name: str) -> None:
    assert net.fetch(f"http://{name}.example/").outcome == Outcome.DNS


@pytest.mark.parametrize("name", ["silent", "junk"])
def test_name_server_that_does_not_answer(net: Island, name: str) -> None:
    before = time.monotonic()
    assert net.fetch(f"http://{name}.example/", connect_timeout_seconds=0.5).outcome == Outcome.DNS
    assert time.monotonic() - before < NOISE_SECONDS


@pytest.mark.parametrize(("name", "address"), [("public", PUBLIC), ("public6", PUBLIC_6)])
def test_public_address(net: Island, name: str, address: str) -> None:
    fetched = net.fetch(f"http://{name}.example/")
    assert (fetched.outcome, fetched.body) == (Outcome.STORED, address), fetched.detail


@pytest.mark.parametrize(
    "name", ["private", "loopback", "metadata", "zero", "loopback6", "local6", "mapped", "alias"]
)
def test_closed_address(net: Island, name: str) -> None:
    fetched = net.fetch(f"http://{name}.example/")
    assert fetched.outcome == Outcome.FORBIDDEN_ADDRESS
    assert "is not a public address" in fetched.detail
    assert set(fetched.served) <= {PUBLIC, PUBLIC_6}, "nobody else was asked anything"


def test_closed_address_that_is_allowed(net: Island) -> None:
    assert net.fetch("http://loopback6.example/", allow_private=True).body == "::1"


def test_closed_addresses_before_a_public_one(net: Island) -> None:
    fetched = net.fetch("http://mixed.example/")
    assert (fetched.outcome, fetched.body) == (Outcome.STORED, PUBLIC)


def test_name_that_changes_between_check_and_connect(net: Island) -> None:
    fetched = net.fetch("http://changing.example/", check=True)
    assert fetched.checked == [PUBLIC], "whoever looked before was content"
    assert fetched.outcome == Outcome.FORBIDDEN_ADDRESS
    assert "10.0.0.1" in fetched.detail
    assert "10.0.0.1" not in fetched.served

"""Start hosts whose owners lead us elsewhere: what an operator opens by naming a host are the addresses it has then."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from common.addresses import is_metadata, is_open_to, may_be_named
from common.wire import Outcome
from server.policy.policy import Policy
from server.starting import begin_with, private_addresses
from tests.frontier import Case, Make
from tests.islands import Island, net
from tests.web.nameserver import PUBLIC

__all__ = ["net"]

NAMED = ("10.0.0.5", "fd00::5", "127.0.0.1", "169.254.169.254", "100.100.100.200")

# address -> whether a client may connect to it that was told these addresses
# fmt: off
CONNECTIONS = {
    "93.184.216.34": True, "2606:2800:220:1::1": True,  # public
    "10.0.0.5": True, "fd00::5": True, "127.0.0.1": True, "fd00:0::0005": True, "::ffff:10.0.0.5": True,
    "64:ff9b::a00:5": True,  # the same by way of a gateway
    "10.0.0.6": False, "127.0.0.2": False, "::1": False, "fd00::6": False, "0.0.0.0": False,
    "169.254.169.254": False, "100.100.100.200": False, "::ffff:169.254.169.254": False,  # though it was told
    "fe80::1": False, "fe80::1%eth0": False, "168.63.129.16": False, "fd00:ec2::254": False, "192.0.0.192": False,
    "::127.0.0.1": False, "::ffff:0:10.0.0.5": False, "64:ff9b:1::a00:5": False, "2002:a00:5::1": False,
    "2001:0:a00:5::1": False, "2001:0:808:808:8000::f5ff:fffa": False, "::": False, "::ffff:0:0": False,
    "240.0.0.1": False, "255.255.255.255": False, "100.64.0.1": False, "0.1.2.3": False, "fec0::1": False,
    "ff02::1": False, "224.0.0.1": False, "64:ff9b::8.8.8.8": True, "::ffff:8.8.8.8": True,
    "127.1": False, "0177.0.0.1": False, "0x7f000001": False, "2130706433": False,  # no address is written so
    "": False, "junk": False,
}
METADATA = (
    "169.254.169.254", "169.254.170.2", "169.254.0.1", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "fe80::1",
    "fe80::a9fe:a9fe%2", "168.63.129.16", "192.0.0.192", "100.100.100.200", "fd00:ec2::254", "fd20:ce::254",
    "fd00:c1::a9fe:a9fe", "fd00:a9fe:a9fe::1", "fd00:42::42", "fd00:100::100:200",
    # by way of what this network may have: IPv4-compatible, SIIT, NAT64 with a prefix of its own, 6to4, Teredo, ISATAP
    "::169.254.169.254", "::ffff:0:169.254.169.254", "64:ff9b:1::a9fe:a9fe", "fd64::6464:64c8", "2002:a9fe:a9fe::1",
    "2001:0:a9fe:a9fe::1", "2001:0:808:808:8000::5601:5601", "fd00::5efe:a83f:8110",
)
# fmt: on


@pytest.mark.parametrize("ip", CONNECTIONS)
def test_connections(ip: str) -> None:
    assert is_open_to(ip, NAMED) is CONNECTIONS[ip]


@pytest.mark.parametrize("ip", METADATA)
def test_nobody_opens_metadata_by_naming_them(ip: str, caplog: pytest.LogCaptureFixture) -> None:
    assert is_metadata(ip)
    assert not may_be_named(ip)
    assert private_addresses([f"[{ip}]" if ":" in ip else ip]) == {}
    assert "is not asked without allow_private = 1" in caplog.text


def test_addresses_of_named_hosts() -> None:
    names = {
        "wiki.example": ["10.0.0.5", "10.0.0.5", "93.184.216.34"],
        "public.example": ["93.184.216.34"],
        "bad.example": ["169.254.169.254", "10.0.0.9"],
        "many.example": [f"10.1.0.{number}" for number in range(100)],
    }

    def look_up(name: str) -> Sequence[str]:
        if name not in names:
            raise OSError("no such name")
        return names[name]

    hosts = ["wiki.example", "wiki.example:8080", "public.example", "bad.example", "gone.example", "many.example"]
    found = private_addresses([*hosts, "192.168.1.1:81", "[::1]:80", "8.8.8.8"], look_up)
    many = found.pop("many.example")
    assert len(many) == 16
    assert found == {
        "wiki.example": ("10.0.0.5",), "wiki.example:8080": ("10.0.0.5",), "bad.example": ("10.0.0.9",),
        "192.168.1.1:81": ("192.168.1.1",), "[::1]:80": ("::1",),
    }  # fmt: skip


def test_localhost_is_this_machine_whatever_a_name_server_says() -> None:
    assert private_addresses(["localhost:8080", "a.localhost"]) == dict.fromkeys(
        ["localhost:8080", "a.localhost"], ("127.0.0.1", "::1")
    )


def test_a_silent_name_server_does_not_hold_the_start_up() -> None:
    def look_up(name: str) -> Sequence[str]:
        if name.startswith("silent"):
            time.sleep(60)
        return ["10.0.0.5"]

    hosts = ["wiki.example", *(f"silent{number}.example" for number in range(5))]
    before = time.monotonic()
    assert private_addresses(hosts, look_up, seconds=1.0) == {"wiki.example": ("10.0.0.5",)}
    assert time.monotonic() - before < 30


def allowed(case: Case, host: str) -> str:
    """What the next job says about the host."""
    return next(share for share in case.lease(client=host, wanted=100).hosts if share.host == host).private


def test_a_restart_is_no_naming(frontiers: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    addresses = ["10.0.0.5"]
    monkeypatch.setattr(
        "server.starting.private_addresses", lambda hosts, look_ups: dict.fromkeys(hosts, tuple(addresses))
    )
    case = frontiers(Policy("host", ("http://a/",)), delay_seconds=0.0)
    begin_with(case.frontier, ["http://a/"])
    addresses[:] = ["10.6.6.6"]  # its owner moves the name
    case.reopen()
    begin_with(case.frontier, ["http://a/", "http://b/"])
    leased = case.lease()
    assert {share.host: share.private for share in leased.hosts} == {"a": "10.0.0.5", "b": "10.6.6.6"}
    assert not any(share.allow_private for share in leased.hosts)
    case.finish("a", leased)
    begin_with(case.frontier, ["http://a/more"], again=True)  # the operator names it once more
    assert allowed(case, "a") == "10.6.6.6"


def test_what_is_only_found_has_no_permission(frontiers: Make) -> None:
    case = frontiers()
    case.add("http://127.0.0.1/")
    assert allowed(case, "127.0.0.1") == ""


def test_a_client_keeps_to_the_addresses(net: Island) -> None:
    assert net.fetch("http://intranet.example/", private=("10.0.0.5",)).body == "10.0.0.5"
    elsewhere = net.fetch("http://intranet.example/", private=("10.0.0.4",))
    assert elsewhere.outcome == Outcome.FORBIDDEN_ADDRESS
    assert "10.0.0.5" in elsewhere.detail


def test_a_crawl_of_hosts_whose_names_move(net: Island, tmp_path: Path) -> None:
    """The whole system: urlServer gets the first answer about a name, at the start, and the client the next ones."""
    good = ["http://intranet.example/", "http://192.168.7.7/"]
    bad = ["http://moving.example/", "http://to-metadata.example/", "http://from-public.example/",
           "http://169.254.169.254/latest/meta-data/"]  # fmt: skip
    crawl = [sys.executable, "-m", "onehost.main", *good, *bad]
    code, printed, served = net.run([*crawl, "--dir", str(tmp_path), "--delay", "0", "--processes", "1"])
    assert code == 0, printed
    failed = {line.split("\t")[0]: line.split("\t")[1:3] for line in (tmp_path / ".mem/blacklist.txt").open()}
    assert failed.keys() == set(bad)
    assert {outcome for outcome, _ in failed.values()} == {Outcome.FORBIDDEN_ADDRESS}, failed
    assert "169.254.169.254" in failed["http://to-metadata.example/"][1]
    assert set(served) <= {"10.0.0.5", "192.168.7.7", PUBLIC}, "nobody else was asked anything"

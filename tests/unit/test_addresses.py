"""Which addresses are closed."""

import pytest

from common.addresses import is_closed
from common.contact import missing_contact

# fmt: off
CLOSED = [
    "127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "172.31.255.255",
    "192.168.1.1", "169.254.169.254", "169.254.0.1", "100.64.0.1", "100.127.255.255", "100.100.100.200",
    "192.0.0.192", "192.0.2.1", "198.51.100.7", "203.0.113.9", "198.18.0.1", "198.19.255.255", "224.0.0.1",
    "239.255.255.255", "240.0.0.1", "255.255.255.255", "168.63.129.16", "::", "::1", "::7f00:1", "fe80::1",
    "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "fec0::1", "ff02::1", "2001:db8::1", "100::1",
    "::ffff:127.0.0.1", "::ffff:10.1.2.3", "::ffff:169.254.169.254", "::ffff:0:0", "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "2002:7f00:1::", "2002:a00:1::1", "2002:c0a8:101::1",
    "2001:0:7f00:1::1", "2002:808:808::1",
]
# fmt: on

# fmt: off
OPEN = [
    "1.1.1.1", "8.8.8.8", "93.184.216.34", "172.15.255.255", "172.32.0.1", "100.63.255.255", "100.128.0.1",
    "192.167.255.255", "169.253.1.1", "223.255.255.255", "2606:4700::1111", "2a00:1450:4001:80b::200e",
    "::ffff:8.8.8.8", "64:ff9b::808:808",
]
# fmt: on


@pytest.mark.parametrize("ip", CLOSED)
def test_closed(ip: str) -> None:
    assert is_closed(ip)


@pytest.mark.parametrize("ip", OPEN)
def test_open(ip: str) -> None:
    assert not is_closed(ip)


@pytest.mark.parametrize("text", ["", "localhost", "127.1", "0x7f000001", "1.2.3.4.5", "[::1]"])
def test_what_is_no_address_is_closed(text: str) -> None:
    assert is_closed(text)


@pytest.mark.parametrize(
    ("hosts", "named"),
    [
        ("", ""), ("127.0.0.1:80 [::1]:80 [fe80::1] 10.0.0.7 localhost:81 x.localhost intranet", ""),
        ("127.0.0.1 8.8.8.8:80 example.org", "8.8.8.8:80"), ("wiki.corp.example", "wiki.corp.example"),
        ("[2606:4700::1111]:443", "[2606:4700::1111]:443"), ("notlocalhost.org", "notlocalhost.org"),
    ],
)  # fmt: skip
def test_who_asks_hosts_of_others_needs_a_contact(hosts: str, named: str) -> None:
    warning = missing_contact(hosts.split())
    assert (f"contact is empty, and {named} may" in warning) if named else warning == ""

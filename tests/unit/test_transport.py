"""The transport against a real server that answers well and badly."""

import datetime
import gzip
import ipaddress
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from client.transport import Headers, Limits, Transport, TransportError, _local_ipv4_names
from common.wire import Outcome
from tests.unit.canned import Canned, Reply, broken_off, dribble, endless, hang, reply, serving

LIMITS = Limits(2.0, 5.0, 10.0, max_body_bytes=100_000, max_header_bytes=20_000)
HASTY = Limits(0.5, 5.0, 0.6, max_body_bytes=100_000, max_header_bytes=20_000)
START = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"


@pytest.fixture
def canned() -> Iterator[Canned]:
    with serving() as server:
        yield server


@pytest.fixture
def transport() -> Iterator[Transport]:
    made = Transport("pavouk/0.1.0 (+https://example.org/bot)", "bot@example.org")
    yield made
    made.close()


def failure(transport: Transport, url: str, limits: Limits = LIMITS, private: bool = True) -> TransportError:
    with pytest.raises(TransportError) as caught:
        transport.request(url, limits, allow_private=private)
    return caught.value


def test_answer(canned: Canned, transport: Transport) -> None:
    canned.replies["/a?b=c"] = reply(b"hello", "203 Fine", ETag='"1"', X_Two="1\r\nx-two: 2")
    response = transport.request(canned.url("/a?b=c"), LIMITS, allow_private=True)
    assert (response.status, response.body, response.address) == (203, b"hello", "127.0.0.1")
    assert response.headers.get("etag") == '"1"'
    assert (response.headers.get("X-TWO"), response.headers.joined("x-two")) == ("1", "1, 2")
    assert response.headers.get("missing") == ""
    assert 0 < response.seconds < 5
    assert not response.cut


def test_what_is_sent(canned: Canned, transport: Transport) -> None:
    canned.replies[None] = reply(b"hello")
    extra = [("If-None-Match", '"1"\r\nEvil: yes'), ("If-Modified-Since", "now")]
    transport.request(canned.url("/%7Ea/../b"), LIMITS, extra, allow_private=True)
    (asked,) = canned.asked
    assert asked.path == "/%7Ea/../b"
    assert asked.headers["user-agent"] == "pavouk/0.1.0 (+https://example.org/bot)"
    assert asked.headers["from"] == "bot@example.org"
    assert asked.headers["accept-encoding"] == "gzip, deflate, br, zstd"
    assert asked.headers["if-none-match"] == '"1"  Evil: yes'
    assert "evil" not in asked.headers
    assert "cookie" not in asked.headers


def test_connection_is_reused_and_extra_headers_are_not(canned: Canned, transport: Transport) -> None:
    canned.replies[None] = reply(b"hello", Set_Cookie="a=b")
    transport.request(canned.url("/1"), LIMITS, [("If-None-Match", "x")], allow_private=True)
    transport.request(canned.url("/2"), LIMITS, allow_private=True)
    assert [asked.connection for asked in canned.asked] == [1, 1]
    assert "if-none-match" not in canned.asked[1].headers
    assert "cookie" not in canned.asked[1].headers


def test_kept_connection_that_the_server_closed(canned: Canned, transport: Transport) -> None:
    canned.replies |= {"/1": broken_off(reply(b"one")), "/2": reply(b"two")}
    for path, body in (("/1", b"one"), ("/2", b"two")):
        assert transport.request(canned.url(path), LIMITS, allow_private=True).body == body


def test_proxies_of_the_environment_are_not_used(canned: Canned, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    canned.replies["/"] = reply(b"hello")
    transport = Transport("pavouk")
    assert transport.request(canned.url("/"), LIMITS, allow_private=True).body == b"hello"
    transport.close()


def test_redirects_are_not_followed(canned: Canned, transport: Transport) -> None:
    canned.replies["/"] = reply(b"", "302 Found", Location="/next")
    response = transport.request(canned.url("/"), LIMITS, allow_private=True)
    assert (response.status, response.headers.get("Location")) == (302, "/next")
    assert canned.paths() == ["/"]


def test_interim_answers_and_trailers_are_not_the_headers(canned: Canned, transport: Transport) -> None:
    canned.replies["/"] = (
        b"HTTP/1.1 103 Early Hints\r\nLink: early\r\n\r\n"
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-Folded: one\r\n  two\r\n\r\n"
        b"5\r\nhello\r\n0\r\nX-Trailer: late\r\n\r\n"
    )
    response = transport.request(canned.url("/"), LIMITS, allow_private=True)
    assert response.body == b"hello"
    assert response.headers.pairs == (("Transfer-Encoding", "chunked"), ("X-Folded", "one two"))


@pytest.mark.parametrize("status", ["204 No Content", "304 Not Modified"])
def test_statuses_without_a_body(canned: Canned, transport: Transport, status: str) -> None:
    canned.replies["/"] = f"HTTP/1.1 {status}\r\nContent-Length: 500000\r\n\r\n".encode()
    response = transport.request(canned.url("/"), LIMITS, allow_private=True)
    assert (response.status, response.body) == (int(status[:3]), b"")


def test_body_without_length(canned: Canned, transport: Transport) -> None:
    canned.replies["/"] = START + b"\r\nto the end"
    assert transport.request(canned.url("/"), LIMITS, allow_private=True).body == b"to the end"


def test_encoded_body(canned: Canned, transport: Transport) -> None:
    canned.replies["/"] = reply(gzip.compress(b"hello"), Content_Encoding="gzip")
    assert transport.request(canned.url("/"), LIMITS, allow_private=True).body == b"hello"


OFFERED = gzip.compress(bytes(5_000_000))
BAD: list[tuple[str, Reply, Outcome]] = [
    ("nothing at all", b"", Outcome.BROKEN),
    ("no HTTP", b"hello, this is not HTTP\r\n\r\n", Outcome.BROKEN),
    ("body breaks off", broken_off(START + b"Content-Length: 100\r\n\r\nshort"), Outcome.BROKEN),
    ("chunks break off", broken_off(START + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhel"), Outcome.BROKEN),
    ("bad chunk size", START + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n", Outcome.BROKEN),
    ("headers break off", broken_off(START + b"X-Half: "), Outcome.BROKEN),
    ("negative length", START + b"Content-Length: -5\r\n\r\nhello", Outcome.BROKEN),
    ("length is no number", START + b"Content-Length: five\r\n\r\nhello", Outcome.BROKEN),
    ("announced too long", START + b"Content-Length: 100001\r\n\r\nhello", Outcome.TOO_LARGE),
    ("absurd length", START + b"Content-Length: 1" + b"0" * 5000 + b"\r\n\r\nhello", Outcome.TOO_LARGE),
    ("endless body", endless(START + b"\r\n", b"x" * 5000), Outcome.TOO_LARGE),
    ("endless headers", endless(START, b"X-More: more\r\n"), Outcome.TOO_LARGE),
    ("one endless header", endless(START, b"x" * 5000), Outcome.TOO_LARGE),
    ("endless interim", endless(b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"), Outcome.TOO_LARGE),
    ("bomb", reply(OFFERED, Content_Encoding="gzip"), Outcome.TOO_LARGE),
    ("no gzip", reply(b"hello", Content_Encoding="gzip"), Outcome.BAD_CONTENT),
    ("unknown encoding", reply(b"hello", Content_Encoding="sdch"), Outcome.BAD_CONTENT),
    ("cut gzip", reply(gzip.compress(b"hello")[:-4], Content_Encoding="gzip"), Outcome.BAD_CONTENT),
]


@pytest.mark.parametrize(("answer", "outcome"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_bad_answers(canned: Canned, transport: Transport, answer: Reply, outcome: Outcome) -> None:
    canned.replies["/"] = answer
    canned.replies["/after"] = reply(b"fine")
    error = failure(transport, canned.url("/"))
    assert error.outcome == outcome
    assert error.detail
    assert transport.request(canned.url("/after"), LIMITS, allow_private=True).body == b"fine"


SLOW: dict[str, Reply] = {"mute": hang, "headers": dribble(START), "body": dribble(START + b"\r\n")}


@pytest.mark.parametrize("answer", SLOW.values(), ids=SLOW)
def test_deadline(canned: Canned, transport: Transport, answer: Reply) -> None:
    canned.replies["/"] = answer
    assert failure(transport, canned.url("/"), HASTY).outcome == Outcome.TIMEOUT


def test_refused_and_unknown(transport: Transport) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/"
        assert failure(transport, url).outcome == Outcome.REFUSED
    assert failure(transport, "http://no-such-host.invalid/").outcome == Outcome.DNS
    assert failure(transport, "http://a!b/").outcome == Outcome.DNS


@pytest.mark.parametrize("url", ["file:///etc/hostname", "ftp://127.0.0.1/", "gopher://127.0.0.1/", "dict://x/"])
def test_other_schemes(transport: Transport, url: str) -> None:
    assert failure(transport, url).outcome == Outcome.BROKEN


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433", "0"])
def test_closed_addresses(canned: Canned, transport: Transport, host: str) -> None:
    canned.replies["/"] = reply(b"secret")
    error = failure(transport, f"http://{host}:{canned.port}/", private=False)
    assert error.outcome == Outcome.FORBIDDEN_ADDRESS
    assert canned.connections == 0


def test_open_private_connection_serves_no_other(canned: Canned, transport: Transport) -> None:
    canned.replies["/"] = reply(b"secret")
    transport.request(canned.url("/"), LIMITS, allow_private=True)
    assert failure(transport, canned.url("/"), private=False).outcome == Outcome.FORBIDDEN_ADDRESS
    assert canned.paths() == ["/"]


def test_ipv6(transport: Transport) -> None:
    with socket.socket(socket.AF_INET6) as listener:
        try:
            listener.bind(("::1", 0))
        except OSError:
            pytest.skip("this machine has no IPv6 loopback")
        url = f"http://[::1]:{listener.getsockname()[1]}/"
        assert failure(transport, url, private=False).outcome == Outcome.FORBIDDEN_ADDRESS
        assert failure(transport, url).outcome == Outcome.REFUSED


def test_names_of_the_hosts_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """AAAA is not asked for names that are known with IPv4 only; IPv6 keeps working for others."""
    hosts = tmp_path / "hosts"
    hosts.write_bytes(b"127.0.0.1 Four both # x\n\n::1 both six\n# 1.2.3.4 none\n\xff\n")
    monkeypatch.setattr("client.transport._HOSTS_FILE", hosts)
    _local_ipv4_names.cache_clear()
    try:
        assert _local_ipv4_names() == {"four"}
        monkeypatch.setattr("client.transport._HOSTS_FILE", tmp_path / "missing")
        _local_ipv4_names.cache_clear()
        assert _local_ipv4_names() == frozenset()
    finally:
        _local_ipv4_names.cache_clear()


def test_unwanted_body_is_left_off(canned: Canned, transport: Transport) -> None:
    seen = []

    def wanted(status: int, headers: Headers) -> bool:
        seen.append((status, headers.get("Content-Type")))
        return False

    canned.replies["/small"] = reply(b"x" * 1000, Content_Type="image/png")
    canned.replies["/large"] = endless(START + b"\r\n", b"x" * 5000)
    canned.replies["/announced"] = START + b"Content-Length: 90000\r\n\r\n" + b"x" * 90000
    for path in ("/small", "/large", "/announced"):
        response = transport.request(canned.url(path), LIMITS, allow_private=True, wanted=wanted)
        assert (response.status, response.body, response.cut) == (200, b"", True)
    assert seen == [(200, "image/png"), (200, "text/html"), (200, "text/html")]
    assert canned.asked[0].connection == canned.asked[1].connection  # the small one was read to its end


def test_trouble_in_an_unwanted_body_does_not_matter(canned: Canned, transport: Transport) -> None:
    canned.replies["/"] = dribble(b"HTTP/1.1 404 Not Found\r\nContent-Length: 900\r\n\r\n")
    response = transport.request(canned.url("/"), HASTY, allow_private=True, wanted=lambda *_: False)
    assert response.status == 404


@pytest.mark.parametrize("start", [START + b"\r\n", START + b"Content-Length: 99999999\r\n\r\n"])
def test_cut_body(canned: Canned, transport: Transport, start: bytes) -> None:
    canned.replies["/"] = endless(start, b"line\n" * 100)
    response = transport.request(canned.url("/"), LIMITS, allow_private=True, cut=True)
    assert response.cut
    assert len(response.body) == LIMITS.max_body_bytes
    assert response.body.startswith(b"line\nline\n")


def test_cut_bomb(canned: Canned, transport: Transport) -> None:
    canned.replies["/"] = reply(OFFERED, Content_Encoding="gzip")
    response = transport.request(canned.url("/"), LIMITS, allow_private=True, cut=True)
    assert response.body == bytes(LIMITS.max_body_bytes)


@pytest.fixture(scope="module")
def self_signed(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(names, critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file: Path = tmp_path_factory.mktemp("tls") / "both.pem"
    file.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


def test_tls_is_verified_unless_told_otherwise(transport: Transport, self_signed: ssl.SSLContext) -> None:
    with serving(self_signed) as secure:
        secure.replies["/"] = reply(b"hello")
        assert failure(transport, secure.url("/")).outcome == Outcome.TLS
        trusting = Transport("pavouk", verify_tls=False)
        assert trusting.request(secure.url("/"), LIMITS, allow_private=True).body == b"hello"
        trusting.close()


def test_tls_with_a_server_that_speaks_none(canned: Canned, transport: Transport) -> None:
    url = canned.url("/").replace("http:", "https:")
    assert failure(transport, url).outcome == Outcome.TLS

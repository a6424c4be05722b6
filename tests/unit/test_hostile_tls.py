"""Servers with bad TLS are refused for the right reason, and taken when `verify_tls` is off."""

from collections.abc import Iterator
from pathlib import Path

import certifi
import pytest

from client.transport import Limits, Transport, TransportError, _ca_file
from common.wire import Outcome
from tests.web.call import PAGE
from tests.web.running import RunningTls, run_hostile_tls

LIMITS = Limits(20.0, 20.0, 20.0, max_body_bytes=100_000, max_header_bytes=20_000)
HASTY = Limits(0.5, 20.0, 20.0, max_body_bytes=100_000, max_header_bytes=20_000)

# What is wrong with the certificate only, and what OpenSSL says about it.
CERTIFICATES = [
    ("expired", "certificate has expired"),
    ("not-yet", "certificate is not yet valid"),
    ("wrong-host", "no alternative certificate subject name matches"),
    ("self-signed", "self-signed certificate"),
    ("unknown-authority", "unable to get local issuer certificate"),
]
HANDSHAKES = ["old-protocol", "plain", "reset"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningTls]:
    with run_hostile_tls(tmp_path_factory.mktemp("tls")) as running:
        yield running


def transport(verify_tls: bool) -> Transport:
    return Transport("pavouk", verify_tls=verify_tls)


@pytest.fixture(params=[True, False], ids=["verified", "not verified"])
def either(request: pytest.FixtureRequest, server: RunningTls, monkeypatch: pytest.MonkeyPatch) -> Iterator[Transport]:
    monkeypatch.setenv("SSL_CERT_FILE", str(server.authority))
    made = transport(request.param)
    yield made
    made.close()


@pytest.fixture
def careful(server: RunningTls, monkeypatch: pytest.MonkeyPatch) -> Iterator[Transport]:
    monkeypatch.setenv("SSL_CERT_FILE", str(server.authority))
    made = transport(verify_tls=True)
    yield made
    made.close()


@pytest.fixture
def careless() -> Iterator[Transport]:
    made = transport(verify_tls=False)
    yield made
    made.close()


def failure(transport: Transport, url: str, limits: Limits = LIMITS) -> TransportError:
    with pytest.raises(TransportError) as caught:
        transport.request(url, limits, allow_private=True)
    return caught.value


def test_good_certificate(server: RunningTls, careful: Transport) -> None:
    assert careful.request(server.url("good"), LIMITS, allow_private=True).body == PAGE


@pytest.mark.parametrize(("kind", "reason"), CERTIFICATES)
def test_bad_certificate(server: RunningTls, careful: Transport, kind: str, reason: str) -> None:
    error = failure(careful, server.url(kind))
    assert error.outcome == Outcome.TLS
    assert reason in error.detail
    assert careful.request(server.url("good"), LIMITS, allow_private=True).body == PAGE


@pytest.mark.parametrize("kind", [kind for kind, _ in CERTIFICATES])
def test_bad_certificate_that_is_not_looked_at(server: RunningTls, careless: Transport, kind: str) -> None:
    assert careless.request(server.url(kind), LIMITS, allow_private=True).body == PAGE


@pytest.mark.parametrize("kind", HANDSHAKES)
def test_bad_handshake(server: RunningTls, either: Transport, kind: str) -> None:
    assert failure(either, server.url(kind)).outcome == Outcome.TLS


def test_handshake_that_never_ends(server: RunningTls, either: Transport) -> None:
    assert failure(either, server.url("mute"), HASTY).outcome == Outcome.TIMEOUT


def test_closed_address_comes_before_tls(server: RunningTls, careful: Transport) -> None:
    with pytest.raises(TransportError) as caught:
        careful.request(server.url("good"), LIMITS)
    assert caught.value.outcome == Outcome.FORBIDDEN_ADDRESS


def test_machine_without_certificates(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A bare container has none: https works all the same."""
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setattr("client.transport._CA_FILES", (str(tmp_path / "missing"),))
    monkeypatch.setattr("ssl.get_default_verify_paths", lambda: type("Paths", (), {"cafile": None}))
    assert _ca_file() == certifi.where()
    (tmp_path / "missing").touch()
    assert _ca_file() == str(tmp_path / "missing")

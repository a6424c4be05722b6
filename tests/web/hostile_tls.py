"""Servers whose TLS is not as it should be: `python -m tests.web.hostile_tls --folder F`. One address for each kind.

Certificates are made at the start. The one of the authority that signs them is left in the folder, to be trusted.
"""

import argparse
import asyncio
import socket
import ssl
import struct
import warnings
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.web.call import PAGE, Call
from tests.web.serving import RequestLog, read_head, run_server

KINDS = (
    "good",
    "expired",
    "not-yet",  # valid from tomorrow on
    "wrong-host",  # a certificate for another address
    "self-signed",
    "unknown-authority",
    "old-protocol",  # TLS 1.1 and nothing newer
    "plain",  # HTTP where TLS is expected
    "mute",  # takes the connection and never says a word
    "reset",  # in the middle of the handshake
)
TLS_HOSTS = {kind: f"127.0.3.{number}" for number, kind in enumerate(KINDS, start=1)}
AUTHORITY_NAME = "authority.pem"

_KIND_OF_ADDRESS = {address: kind for kind, address in TLS_HOSTS.items()}
_WITHOUT_TLS = ("plain", "mute", "reset")


class Authority:
    """Signs certificates. Its own is signed by itself."""

    def __init__(self, name: str) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = _name(name)
        unsigned = _unsigned(self.name, self.name, self.key, timedelta(days=-1), timedelta(days=1))
        constraints = x509.BasicConstraints(ca=True, path_length=None)
        self.certificate = unsigned.add_extension(constraints, critical=True).sign(self.key, hashes.SHA256())

    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def issue(
        self, address: str, since: timedelta = timedelta(days=-1), until: timedelta = timedelta(days=1)
    ) -> bytes:
        """Key and certificate of one server, as PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))])
        unsigned = _unsigned(_name(address), self.name, key, since, until)
        certificate = unsigned.add_extension(names, critical=False).sign(self.key, hashes.SHA256())
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return private + certificate.public_bytes(serialization.Encoding.PEM)


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _unsigned(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, since: timedelta, until: timedelta
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number())
    return builder.not_valid_before(now + since).not_valid_after(now + until)


def contexts(folder: Path) -> dict[str, ssl.SSLContext]:
    """What each address says in its handshake. Writes the authority's certificate."""
    authority = Authority("test authority")
    (folder / AUTHORITY_NAME).write_bytes(authority.pem())
    day = timedelta(days=1)
    pems = {kind: authority.issue(address) for kind, address in TLS_HOSTS.items() if kind not in _WITHOUT_TLS}
    pems["expired"] = authority.issue(TLS_HOSTS["expired"], -2 * day, -day)
    pems["not-yet"] = authority.issue(TLS_HOSTS["not-yet"], day, 2 * day)
    pems["wrong-host"] = authority.issue("127.0.3.99")
    pems["self-signed"] = _self_signed(TLS_HOSTS["self-signed"])
    pems["unknown-authority"] = Authority("nobody").issue(TLS_HOSTS["unknown-authority"])
    made = {TLS_HOSTS[kind]: _context(folder / f"{kind}.pem", pem) for kind, pem in pems.items()}
    old = made[TLS_HOSTS["old-protocol"]]
    old.set_ciphers("DEFAULT:@SECLEVEL=0")  # OpenSSL 3 has no older protocols at its usual level
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        old.minimum_version = ssl.TLSVersion.TLSv1
        old.maximum_version = ssl.TLSVersion.TLSv1_1
    return made


def _self_signed(address: str) -> bytes:
    signer = Authority(address)
    private = signer.key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return private + signer.pem()


def _context(file: Path, pem: bytes) -> ssl.SSLContext:
    file.write_bytes(pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


class TlsServer:
    """One request per connection, answered by a page; or not, where there is no TLS."""

    def __init__(self, log: RequestLog) -> None:
        self._log = log

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """The one request of a connection."""
        kind = _KIND_OF_ADDRESS[writer.get_extra_info("sockname")[0]]
        if kind == "mute":
            await reader.read()
        elif kind == "reset":
            await reader.read(1)
            linger = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            writer.transport.abort()
        elif kind == "plain":
            await Call(writer, "", {}, 0).page()
        elif head := await read_head(reader):
            self._log.add(head, writer, await Call(writer, "", {}, 0).page(PAGE), finished=True)


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--log", type=Path, help="one JSON line per request")
    options = parser.parse_args()
    run_server(
        TlsServer(RequestLog(options.log)).serve, list(TLS_HOSTS.values()), 0, contexts(options.folder)
    )


if __name__ == "__main__":
    main()

"""Sends bundles to the FTP server: the manifest, the bundle, then the rename that makes the server verify and store it.

The only module that knows ftplib. It never waits and tries again: what a failure means is in the exception, and the
pipeline decides when the next try is.

    RemoteUnavailable  try the same bundle again later: no connection, no login, a time-out, or a 4xx reply, among
                       them 451, with which the server says that the bundle arrived broken
    RemoteRefused      a 5xx reply with the server's words: the same will happen next time
    BundleError        the bundle on this machine is damaged, so sending it is of no use
"""

import contextlib
import ftplib
import hashlib
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from common.bundle import MANIFEST_SUFFIX, manifest_path, parse_bundle_name, parse_manifest
from common.errors import BundleError, ConfigError, RemoteRefused, RemoteUnavailable
from common.files import TEMPORARY_SUFFIX

TIMEOUT_SECONDS = 30.0  # for each single step: connecting, a reply, a block of data
BLOCK_BYTES = 1 << 16


class _Connection(ftplib.FTP):
    """Sends the end of a file at once: over TLS it waits 80 ms for an acknowledgement otherwise."""

    def ntransfercmd(self, cmd: str, rest: int | str | None = None) -> tuple[socket.socket, int | None]:
        connection, size = super().ntransfercmd(cmd, rest)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection, size


class _TlsConnection(ftplib.FTP_TLS, _Connection):
    """The same with TLS."""


class Uploader:
    """One connection to the FTP server, made when it is needed. Used by one thread at a time."""

    def __init__(self, host: str, port: int, user: str, password: str, tls: bool = False, tls_ca: str = "") -> None:
        self._address = (host, port)
        self._login = (user, password)
        self._context = _tls_context(tls_ca) if tls else None
        self._connection: ftplib.FTP | None = None

    def upload(self, bundle: Path) -> None:
        """Send one bundle and its manifest; when this returns, the server has them on disk."""
        digest = _digest_of(bundle)
        target = f"/{_domain_of(bundle)}/{bundle.name}"
        hasher = hashlib.sha256()
        with self._mapped():
            connection = self._connected()
            _send(connection, manifest_path(bundle), target + MANIFEST_SUFFIX + TEMPORARY_SUFFIX)
            _send(connection, bundle, target + TEMPORARY_SUFFIX, hasher.update)
            if hasher.hexdigest() != digest:
                raise BundleError(f"{bundle.name} does not match its manifest: it was changed on this machine")
            connection.rename(target + TEMPORARY_SUFFIX, target)

    def close(self) -> None:
        """Say goodbye if there is somebody to say it to. Can be repeated; the next upload connects again."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(*ftplib.all_errors):
                connection.quit()
            connection.close()

    def _connected(self) -> ftplib.FTP:
        """The connection, if the server still holds it, or a new one."""
        if self._connection is not None:
            try:
                self._connection.voidcmd("NOOP")
            except ftplib.all_errors:
                self._drop()
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def _connect(self) -> ftplib.FTP:
        connection = self._new_connection()
        try:
            connection.connect(*self._address)
            connection.login(*self._login)
            if isinstance(connection, ftplib.FTP_TLS):
                connection.prot_p()
        except ftplib.error_perm as error:  # about us, not about a bundle: a wrong token can be mended
            connection.close()
            place = "{}:{}".format(*self._address)
            raise RemoteUnavailable(f"the FTP server at {place} does not let us in: {error}") from error
        except ftplib.all_errors:
            connection.close()
            raise
        return connection

    def _new_connection(self) -> ftplib.FTP:
        # Our own names are ASCII, and whatever the server says can be read as latin-1.
        if self._context is None:
            return _Connection(timeout=TIMEOUT_SECONDS, encoding="latin-1")
        return _TlsConnection(context=self._context, timeout=TIMEOUT_SECONDS, encoding="latin-1")

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @contextmanager
    def _mapped(self) -> Iterator[None]:
        """Turns what ftplib raises into our exceptions, and forgets a connection that cannot be trusted any more."""
        place = "the FTP server at {}:{}".format(*self._address)
        try:
            yield
        except ftplib.error_perm as error:
            raise RemoteRefused(f"{place} refuses: {error}") from error
        except ssl.SSLCertVerificationError as error:
            self._drop()
            raise RemoteUnavailable(f"{place} has a certificate that is not trusted: {error.verify_message}") from error
        except ftplib.error_temp as error:
            self._drop_if_leaving(error)
            raise RemoteUnavailable(f"{place}: {error}") from error
        except (ftplib.Error, OSError, EOFError) as error:
            self._drop()
            raise RemoteUnavailable(f"{place} cannot be reached: {error or type(error).__name__}") from error
        except BundleError:
            self._drop()  # what was sent is dropped by the server with the session
            raise

    def _drop_if_leaving(self, error: ftplib.error_temp) -> None:
        if str(error).startswith("421"):  # RFC 959: the server closes the connection
            self._drop()


def _tls_context(tls_ca: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=tls_ca or None)
    except OSError as error:  # also what ssl raises when there is no certificate in it
        raise ConfigError(f"tls_ca = {tls_ca} cannot be used: {error.strerror or error}") from error


def _digest_of(bundle: Path) -> str:
    with _readable(manifest_path(bundle)) as file:
        return parse_manifest(file.read()).bundle_sha256


def _domain_of(bundle: Path) -> str:
    parsed = parse_bundle_name(bundle.name)
    if parsed is None:
        raise BundleError(f"{bundle.name} is not the name of a bundle")
    return parsed[0]


def _readable(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except OSError as error:
        raise BundleError(f"{path.name} cannot be read: {error.strerror}") from error


def _send(
    connection: ftplib.FTP, path: Path, target: str, each_block: Callable[[bytes], object] | None = None
) -> None:
    with _readable(path) as file:
        try:
            connection.storbinary(f"STOR {target}", file, BLOCK_BYTES, each_block)
        except (ConnectionError, ssl.SSLError):
            connection.voidresp()  # a server that cuts an upload off says why on the control connection
            raise

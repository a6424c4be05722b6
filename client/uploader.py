"""Sends bundles to the FTP server: the manifest, the bundle, then the rename that makes the server verify and store it.

Another FTP server than ours only stores. There the manifest is renamed before the bundle, so that a bundle with its
final name has one, sizes are compared, and what stands there already, because an answer was lost, is not sent again.

The only module that knows ftplib. It never waits and tries again: what a failure means is in the exception, and the
pipeline decides when the next try is.

    RemoteUnavailable  try the same bundle again later: no connection, no login, a time-out, or a 4xx reply, among
                       them 451, with which the server says that the bundle arrived broken; or a 5xx reply of another
                       server, which says something about that server and nothing about the bundle
    RemoteRefused      a 5xx reply of our server with its words: the same will happen next time
    BundleError        the bundle on this machine is damaged, so sending it is of no use
"""

import contextlib
import ftplib
import hashlib
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from client.spool import unreadable
from common.bundle import MANIFEST_SUFFIX, manifest_path, parse_bundle_name, parse_head
from common.errors import BundleError, ConfigError, RemoteRefused, RemoteUnavailable
from common.files import TEMPORARY_SUFFIX
from common.ftp import VERIFIES

TIMEOUT_SECONDS = 30.0  # for each single step: connecting, a reply, a block of data
BLOCK_BYTES = 1 << 16

_NOT_WRITTEN = ("550", "553")  # before a byte was sent: no such folder, or not permitted


class _Connection(ftplib.FTP):
    """Sends the end of a file at once: over TLS it waits 80 ms for an acknowledgement otherwise."""

    def ntransfercmd(self, cmd: str, rest: int | str | None = None) -> tuple[socket.socket, int | None]:
        connection, size = super().ntransfercmd(cmd, rest)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection, size


class _TlsConnection(ftplib.FTP_TLS, _Connection):
    """The same with TLS. Data connections go on with the session of the first: some servers take no others."""

    def ntransfercmd(self, cmd: str, rest: int | str | None = None) -> tuple[socket.socket, int | None]:
        connection, size = _Connection.ntransfercmd(self, cmd, rest)
        assert isinstance(self.sock, ssl.SSLSocket)
        session = self.sock.session
        return self.context.wrap_socket(connection, server_hostname=self.host, session=session), size


class Uploader:
    """One connection to the FTP server, made when it is needed. Used by one thread at a time."""

    def __init__(self, host: str, port: int, user: str, password: str, tls: bool = False, tls_ca: str = "") -> None:
        self._address = (host, port)
        self._login = (user, password)
        self._context = _tls_context(tls_ca) if tls else None
        self._connection: ftplib.FTP | None = None
        self._verifies = False  # the server: it is ours. Known when there is a connection, as is the next one
        self._home = ""  # the folder of the account, in which the folders of the domains are

    def upload(self, bundle: Path) -> None:
        """Send one bundle and its manifest; when this returns, the server has them on disk."""
        digest = _digest_of(bundle)
        domain = _domain_of(bundle)
        with self._mapped():
            connection = self._connected()
            folder = f"{self._home}/{domain}"
            if self._verifies:
                _hand_in(connection, bundle, digest, folder)
            else:
                _put_there(connection, manifest_path(bundle), folder)
                _put_there(connection, bundle, folder, digest)

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
            self._verifies = VERIFIES in _features(connection)
            self._home = "" if self._verifies else connection.pwd().rstrip("/")
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
            if not self._verifies:
                raise RemoteUnavailable(f"{place}, which only stores, does not take it: {error}") from error
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
        return parse_head(file.read()).bundle_sha256


def _domain_of(bundle: Path) -> str:
    parsed = parse_bundle_name(bundle.name)
    if parsed is None:
        raise BundleError(f"{bundle.name} is not the name of a bundle")
    return parsed[0]


def _readable(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except OSError as error:
        raise unreadable(path, error) from error


def _features(connection: ftplib.FTP) -> set[str]:
    """What the server says that it can do beyond the commands that every server knows (RFC 2389)."""
    try:
        lines = connection.sendcmd("FEAT").splitlines()
    except ftplib.error_perm:
        return set()
    return {line.strip() for line in lines}


def _hand_in(connection: ftplib.FTP, bundle: Path, digest: str, folder: str) -> None:
    """To our server: it verifies the bundle at the rename, and stores the manifest with it."""
    target = f"{folder}/{bundle.name}"
    _send(connection, manifest_path(bundle), target + MANIFEST_SUFFIX + TEMPORARY_SUFFIX)
    _send(connection, bundle, target + TEMPORARY_SUFFIX, digest)
    connection.rename(target + TEMPORARY_SUFFIX, target)


def _put_there(connection: ftplib.FTP, path: Path, folder: str, digest: str = "") -> None:
    """To another server: one file, complete or not at all. Nobody verifies it there, so its size is asked for."""
    target = f"{folder}/{path.name}"
    size = path.stat().st_size
    connection.voidcmd("TYPE I")  # of a text nobody knows the size
    stored = _size_of(connection, target)
    if stored is None:
        _send_into(connection, path, folder, digest)
        _check_arrived(connection, target + TEMPORARY_SUFFIX, size)
        connection.rename(target + TEMPORARY_SUFFIX, target)
    elif stored != size:
        raise RemoteRefused(f"a different {path.name} is stored there already, with {stored} bytes instead of {size}")


def _send_into(connection: ftplib.FTP, path: Path, folder: str, digest: str) -> None:
    part = f"{folder}/{path.name}{TEMPORARY_SUFFIX}"
    try:
        _send(connection, path, part, digest)
    except ftplib.error_perm as error:
        if not str(error).startswith(_NOT_WRITTEN):
            raise
        for command in (f"MKD {folder}", f"DELE {part}"):  # its first bundle; or nothing is overwritten there
            with contextlib.suppress(ftplib.error_perm):
                connection.voidcmd(command)
        _send(connection, path, part, digest)


def _size_of(connection: ftplib.FTP, target: str) -> int | None:
    """Of a file on the server; None if there is none, or if the server does not tell (RFC 3659 §4)."""
    try:
        return connection.size(target)
    except ftplib.error_perm:
        return None


def _check_arrived(connection: ftplib.FTP, target: str, size: int) -> None:
    arrived = _size_of(connection, target)
    if arrived not in (None, size):
        raise RemoteUnavailable(f"{target} has {arrived} bytes there instead of {size}")


def _send(connection: ftplib.FTP, path: Path, target: str, digest: str = "") -> None:
    """BundleError if what was sent has another digest than it must have."""
    hasher = hashlib.sha256() if digest else None
    with _readable(path) as file:
        try:
            connection.storbinary(f"STOR {target}", file, BLOCK_BYTES, hasher.update if hasher else None)
        except (ConnectionError, ssl.SSLError):
            connection.voidresp()  # a server that cuts an upload off says why on the control connection
            raise
    if hasher is not None and hasher.hexdigest() != digest:
        raise BundleError(f"{path.name} does not match its manifest: it was changed on this machine")

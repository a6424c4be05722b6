"""Listens, and gives each session that has logged in a thread: one that waits for the disk holds up nobody but itself.

Before the login all connections share the main thread, in the lobby. There are at most max_connections threads, and
max_connections_per_address for one address; who logs in beyond that gets a 421.
"""

import logging
import socket
import sys
import threading
from pathlib import Path
from typing import Any

from pyftpdlib.servers import FTPServer, ThreadedFTPServer

from common.errors import ConfigError
from common.files import trusted
from common.handles import allow_open_files
from common.settings import FtpServerSettings
from server.ftpserver.accounts import Account
from server.ftpserver.inbox import Inbox
from server.ftpserver.session import DataChannel, Session, offered
from server.lobby import MAX_WAITING, Lobby
from server.places import Places

WAKE_SECONDS = 0.2  # how often a waiting thread looks whether the server ends
_BACKLOG = 1000  # connections that the system keeps until they are accepted
_OTHER_FILES = 100
_FILES_PER_CONNECTION = 6  # control, poll, listening and data sockets, the upload, one to spare

log = logging.getLogger(__name__)


class FtpServer(ThreadedFTPServer):
    """The listening socket and the threads of the sessions. Everything here runs in the main thread."""

    poll_timeout = WAKE_SECONDS
    join_timeout = 60.0  # at the end, for a session that is just storing a bundle
    max_cons = 0  # pyftpdlib's own counting lets one too many in, and then refuses that one its data connection

    def __init__(
        self, address: tuple[str, int] | socket.socket, handler: type[Session], settings: FtpServerSettings
    ) -> None:
        self._lobby = Lobby()
        self._places = Places(settings.max_connections, settings.max_connections_per_address)
        super().__init__(address, handler, backlog=_BACKLOG)

    def serve_once(self) -> None:
        """Accept what is waiting; returns after WAKE_SECONDS at the latest."""
        self.serve_forever(timeout=WAKE_SECONDS, blocking=False, handle_exit=False)

    def handle_accepted(self, sock: socket.socket, addr: tuple[Any, ...]) -> None:
        session = FTPServer.handle_accepted(self, sock, addr)  # not the one that begins a thread
        if session is not None and session.connected:
            self._lobby.enter(session)

    def admit(self, session: Session) -> str:
        """It knows the password, and gets a thread in the next round of the loop. Returns why it cannot, or nothing."""
        reason = self._places.take(session)
        if not reason:
            self._lobby.leave(session)
            self.ioloop.call_later(0, self._begin_thread, session, _errback=session.handle_error)
        return reason

    def forget(self, session: Session) -> None:
        """It is closed. Any thread may say so, but only this one about a session that has no thread yet."""
        self._lobby.leave(session)
        self._places.leave(session)

    def _begin_thread(self, session: Session) -> None:
        if not session.connected:
            return
        session.leave_main_loop()
        thread = threading.Thread(target=self._loop, args=(session,), name="session")
        try:
            thread.start()
        except RuntimeError:  # the system has no more of them
            log.error("a session got no thread", exc_info=True)
            session.close()
            return
        with self._lock:
            self._active_tasks.append(thread)

    def handle_error(self) -> None:
        # pyftpdlib would close the listening socket, for good, when accepting fails once
        log.error("a connection could not be accepted", exc_info=sys.exception())


def make_server(settings: FtpServerSettings, folder: Path, inbox: Inbox, shared_port: bool = False) -> FtpServer:
    """A server that listens already; ConfigError if it cannot. Relative names of files count from `folder`."""
    handler = _handler_class(settings, folder, inbox)
    allow_open_files(_OTHER_FILES + MAX_WAITING + _FILES_PER_CONNECTION * settings.max_connections)
    address = (settings.ip, settings.ftp_port)
    try:
        shared = socket.create_server(address, backlog=_BACKLOG, reuse_port=True) if shared_port else None
        return FtpServer(shared or address, handler, settings)
    except OSError as error:
        raise ConfigError(f"cannot listen on {settings.ip}:{settings.ftp_port}: {error.strerror or error}") from error


def _handler_class(settings: FtpServerSettings, folder: Path, inbox: Inbox) -> type[Session]:
    """pyftpdlib takes what sessions share from their class."""
    shared: dict[str, Any] = {
        "inbox": inbox,
        "authorizer": Account(settings.token, settings.user, settings.password),
        "passive_ports": _ports(settings.passive_ports),
    }
    if not settings.tls_cert:
        return type("PlainSession", (Session,), shared)
    certificate, key = settings.tls_cert, settings.tls_key or settings.tls_cert
    return _tls_handler_class(trusted(folder, certificate), trusted(folder, key), shared)


def _tls_handler_class(certificate: Path, key: Path, shared: dict[str, Any]) -> type[Session]:
    from OpenSSL import SSL
    from pyftpdlib.handlers import TLS_DTPHandler, TLS_FTPHandler

    context = SSL.Context(SSL.TLS_SERVER_METHOD)
    context.set_min_proto_version(SSL.TLS1_2_VERSION)
    # TLS 1.3 sends tickets after the handshake. A client that only writes (curl) closes without having read them,
    # which resets the connection and loses the end of the upload; pyOpenSSL has no way to turn tickets off.
    context.set_max_proto_version(SSL.TLS1_2_VERSION)
    names = f"tls_cert = {certificate} and tls_key = {key}"
    try:
        for file in (certificate, key):
            file.open("rb").close()  # OpenSSL has no word for what is missing
        context.use_certificate_chain_file(str(certificate))
        context.use_privatekey_file(str(key))
        context.check_privatekey()
    except SSL.Error as error:
        raise ConfigError(f"{names} cannot be used: {_words(error)}") from error
    except OSError as error:
        raise ConfigError(f"{names} cannot be used: {error.filename}: {error.strerror}") from error
    shared |= {
        "ssl_context": context,
        "tls_control_required": True,
        "tls_data_required": True,
        "dtp_handler": type("TlsDataChannel", (DataChannel, TLS_DTPHandler), {}),
        "proto_cmds": offered(TLS_FTPHandler.proto_cmds),
    }
    return type("TlsSession", (Session, TLS_FTPHandler), shared)


def _words(error: Exception) -> str:
    """OpenSSL reports a list of triples, of which the last part says what is wrong."""
    return "; ".join(str(part[-1]) for part in error.args[0]) if error.args and error.args[0] else str(error)


def _ports(text: str) -> list[int] | None:
    """A range that the configuration has checked already."""
    first, dash, last = text.partition("-")
    return list(range(int(first), int(last) + 1)) if dash else None

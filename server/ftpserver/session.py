"""One FTP connection: which commands there are and what they do. The names it shows are made up, not the disk's.

After the login it runs in a thread of its own (see server), so a command may wait for the disk; before, it may not.
"""

import contextlib
import logging
import posixpath
import socket
import sys
import time
from typing import Any, ClassVar

from pyftpdlib.exceptions import FilesystemError
from pyftpdlib.handlers import DTPHandler, FTPHandler

from common.ftp import VERIFIES
from server.ftpserver.inbox import Inbox, Refused, SendAgain
from server.ftpserver.login import Newcomer
from server.ftpserver.uploads import NotNow, Place, TooLong, Upload, Uploads, is_domain_folder, place_of

# Everything else is refused as unknown, and does not show in FEAT or HELP: no reading, listing, deleting,
# appending, restarting, and no PORT, with which a server can be made to connect to somebody else.
COMMANDS = (
    "USER", "PASS", "QUIT", "TYPE", "PWD", "CWD", "CDUP", "MKD", "STOR", "RNFR", "RNTO", "PASV", "EPSV",
    "NOOP", "FEAT", "HELP", "SYST", "OPTS", "AUTH", "PBSZ", "PROT",
)  # fmt: skip
IDLE_SECONDS = 120.0  # a control connection without a command; the client simply connects anew
STALL_SECONDS = 60.0  # after which a data connection must have brought enough
LEAST_BYTES_PER_SECOND = 1000

_OUTSIDE = "\0"  # what is no valid path

log = logging.getLogger(__name__)


def offered(commands: dict[str, Any]) -> dict[str, Any]:
    """Those of pyftpdlib's commands that a session knows."""
    return {name: entry for name, entry in commands.items() if name in COMMANDS}


class Names:
    """What pyftpdlib takes for the file system: the root, the folders of all domains, and nothing in them."""

    def __init__(self, root: str, cmd_channel: "Session") -> None:
        self.root = "/"
        self.cwd = "/"
        self.cmd_channel = cmd_channel

    def ftp2fs(self, path: str) -> str:
        names: list[str] = []
        for name in posixpath.join(self.cwd, path).split("/"):
            if name == ".." and not names:
                return _OUTSIDE
            if name == "..":
                names.pop()
            elif name not in ("", "."):
                names.append(name)
        return "/" + "/".join(names)

    def fs2ftp(self, path: str) -> str:
        return "/.." if path == _OUTSIDE else path

    def validpath(self, path: str) -> bool:
        return path.isprintable()

    def chdir(self, path: str) -> None:
        # Whether a folder exists is not told: STOR makes it.
        if path != "/" and not is_domain_folder(path):
            raise FilesystemError("There are only folders of domains here")
        self.cwd = path

    def mkdir(self, path: str) -> None:
        if not is_domain_folder(path):
            raise FilesystemError("Only folders of domains can be made")
        try:
            # Nothing is made: a folder comes with its first bundle, so that nobody can litter.
            self.cmd_channel.inbox.check_folder(path.removeprefix("/"))
        except Refused as error:
            raise FilesystemError(str(error)) from error

    def open(self, path: str, mode: str) -> Upload:
        place = place_of(path)
        if place is None:
            raise FilesystemError("Only /DOMAIN/BUNDLE.part and /DOMAIN/BUNDLE.manifest.part can be sent")
        try:
            return self.cmd_channel.uploads.begin(place)
        except OSError as error:  # pyftpdlib would refuse for good
            raise NotNow("it cannot be written") from error


class DataChannel(DTPHandler):
    """A data connection; tells the client on the control connection why an upload was cut off."""

    timeout = STALL_SECONDS
    _resp: tuple[Any, ...]
    _error: bool
    _lastdata: int

    def __init__(self, sock: socket.socket, cmd_channel: Any) -> None:
        # Otherwise a TLS handshake waits for a delayed acknowledgement: 40 ms for each file.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().__init__(sock, cmd_channel)

    def handle_timeout(self) -> None:
        """Called after each STALL_SECONDS."""
        received = self.get_transmitted_bytes()
        if received - self._lastdata >= self.timeout * LEAST_BYTES_PER_SECOND:
            self._lastdata = received
        else:
            session = self.cmd_channel
            self._cut_off("421 Data connection timed out.")
            session.end("")

    def close(self) -> None:
        upload = self.file_obj
        if not self._closed and self.transfer_finished and upload is not None and upload.place.is_manifest:
            self.cmd_channel.inbox.keep(upload)  # before the client hears that it has arrived
        super().close()

    def handle_error(self) -> None:
        error = sys.exception()
        if isinstance(error, TooLong):
            self._cut_off(f"552 {error}: refused.")
        elif isinstance(error, OSError):
            self._cut_off("452 It cannot be written now.")
        else:
            super().handle_error()

    def _cut_off(self, reply: str) -> None:
        self._error = True  # over TLS: no goodbye to somebody who is still sending
        self._resp = (reply, log.warning)
        self.close()


class Session(Newcomer):
    """One control connection. Used by the main thread until it has logged in, then by its own; owns its uploads."""

    inbox: Inbox  # set in the subclass that the server makes
    abstracted_fs = Names
    dtp_handler = DataChannel
    proto_cmds: ClassVar[dict[str, Any]] = offered(FTPHandler.proto_cmds)
    banner = "Pavouk takes bundles."
    timeout = IDLE_SECONDS
    permit_foreign_addresses = False

    def __init__(self, conn: Any, server: Any, ioloop: Any = None) -> None:
        self.uploads: Uploads = self.inbox.uploads()
        self._renaming: Place | None = None
        self._storing = False
        self._worked_at = time.monotonic()
        super().__init__(conn, server, ioloop)
        self._extra_feats: list[str] = [*self._extra_feats, VERIFIES]

    def idle_seconds(self) -> float:
        """Since when nothing was uploaded or stored; 0 while something is. Any thread may ask."""
        channel = getattr(self, "data_channel", None)
        works = self._storing or (channel is not None and channel.file_obj is not None)
        return 0.0 if works else time.monotonic() - self._worked_at

    def hang_up(self) -> None:
        """Its own thread sees the end of what is sent, and closes. Any thread may call it."""
        shut_down = getattr(self.socket, "sock_shutdown", self.socket.shutdown)  # over TLS, the first
        with contextlib.suppress(OSError):
            shut_down(socket.SHUT_RD)

    def _on_dtp_close(self) -> None:
        self._worked_at = time.monotonic()
        super()._on_dtp_close()

    def pre_process_command(self, line: str, cmd: str, arg: str) -> None:
        if cmd in self.proto_cmds:
            super().pre_process_command(line, cmd, arg)
        else:
            self.respond("502 Not offered here.")

    def ftp_STOR(self, file: str, mode: str = "w") -> str | None:
        if self._current_type != "i":
            self.respond("550 A bundle is no text: send TYPE I first.")
            return None
        try:
            return super().ftp_STOR(file, mode)
        except NotNow as error:
            self.respond(f"452 Not now: {error}.")
            return None

    def ftp_RNFR(self, path: str) -> None:
        self._renaming = None
        place = place_of(path)
        if place is None or place.is_manifest:
            self.respond("550 Only BUNDLE.part can be renamed.")
        elif self.uploads.complete(place) is None:
            self.respond("450 It was not received in this session: send it again.")
        else:
            self._renaming = place
            self.respond("350 Ready for destination name.")

    def ftp_RNTO(self, path: str) -> None:
        place, self._renaming = self._renaming, None
        if place is None:
            self.respond("503 RNFR comes first.")
        elif path != place.final_path:
            self.respond("553 It can only be renamed to its name without .part.")
        else:
            self._accept(place)

    def _accept(self, place: Place) -> None:
        beside = Place(place.domain, place.name, is_manifest=True)
        bundle, manifest = self.uploads.complete(place), self.uploads.complete(beside)
        if bundle is None:
            self.respond("450 It was not received in this session: send it again.")
            return
        self._storing = True
        try:
            self.inbox.accept(place, bundle, manifest)
        except Refused as error:
            self.respond(f"550 {_printable(error)}.")
        except SendAgain as error:
            self.respond(f"451 Send it again: {_printable(error)}.")
        except OSError as error:
            log.error("%s cannot be stored: %s", place.name, error)
            self.respond("452 It cannot be stored now.")
        else:
            self.respond("250 Stored.")
        finally:
            self.uploads.drop(place, beside)
            self._storing, self._worked_at = False, time.monotonic()

    def close(self) -> None:
        super().close()
        self.uploads.drop_all()
        self.server.forget(self)


def _printable(error: Exception) -> str:
    """One line for a reply: the words can contain what a stranger wrote into a manifest."""
    return "".join(character if character.isprintable() else "?" for character in str(error))[:200]

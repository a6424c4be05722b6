"""One FTP connection: which commands there are and what they do. The names it shows are made up, not the disk's.

pyftpdlib runs each session in a thread of its own (see server), so a command may wait for the disk.
"""

import logging
import posixpath
import socket
import sys
from typing import Any, ClassVar

from pyftpdlib.exceptions import FilesystemError
from pyftpdlib.handlers import DTPHandler, FTPHandler

from common.ftp import VERIFIES
from server.ftpserver.inbox import Inbox, Refused, SendAgain
from server.ftpserver.uploads import NotNow, Place, TooLong, Upload, Uploads, is_domain_folder, place_of

# Everything else is refused as unknown, and does not show in FEAT or HELP: no reading, listing, deleting,
# appending, restarting, and no PORT, with which a server can be made to connect to somebody else.
COMMANDS = (
    "USER", "PASS", "QUIT", "TYPE", "PWD", "CWD", "CDUP", "MKD", "STOR", "RNFR", "RNTO", "PASV", "EPSV",
    "NOOP", "FEAT", "HELP", "SYST", "OPTS", "AUTH", "PBSZ", "PROT",
)  # fmt: skip
IDLE_SECONDS = 120.0  # a control connection without a command; the client simply connects anew
STALL_SECONDS = 60.0  # a data connection without a byte

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
            self.cmd_channel.inbox.make_folder(path.removeprefix("/"))
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

    def __init__(self, sock: socket.socket, cmd_channel: Any) -> None:
        # Otherwise a TLS handshake waits for a delayed acknowledgement: 40 ms for each file.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().__init__(sock, cmd_channel)

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


class Session(FTPHandler):
    """One control connection. Created by the main thread, from then on used by its own; owns its uploads."""

    inbox: Inbox  # set in the subclass that the server makes
    abstracted_fs = Names
    dtp_handler = DataChannel
    proto_cmds: ClassVar[dict[str, Any]] = offered(FTPHandler.proto_cmds)
    banner = "Pavouk takes bundles."
    timeout = IDLE_SECONDS
    permit_foreign_addresses = False
    _idler: Any

    def __init__(self, conn: Any, server: Any, ioloop: Any = None) -> None:
        self.uploads: Uploads = self.inbox.uploads()
        self._renaming: Place | None = None
        super().__init__(conn, server, ioloop)
        self._extra_feats: list[str] = [*self._extra_feats, VERIFIES]

    def add_channel(self, map: Any = None, events: Any = None) -> None:
        super().add_channel(map, events)
        if self.ioloop is not self.server.ioloop:
            self._move_idle_timer()

    def _move_idle_timer(self) -> None:
        # It was started in the loop of the main thread, which must not touch a session that runs elsewhere.
        if self._idler is not None and not self._idler.cancelled:
            self._idler.cancel()
        self._idler = self.ioloop.call_later(self.timeout, self.handle_timeout, _errback=self.handle_error)

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

    def close(self) -> None:
        super().close()
        self.uploads.drop_all()


def _printable(error: Exception) -> str:
    """One line for a reply: the words can contain what a stranger wrote into a manifest."""
    return "".join(character if character.isprintable() else "?" for character in str(error))[:200]

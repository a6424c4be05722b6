"""FTP servers that are not ours, vsftpd and proftpd, as child processes. They store what they are sent, that is all.

Both are started by root and work as `daemon`, in a folder that this user can reach.
"""

import grp
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from client.uploader import Uploader
from common.secrets import FTP_USER, ftp_password
from tests.certificates import make_certificate
from tests.ftp import TOKEN
from tests.ports import free_port
from tests.processes import ROOT
from tests.waiting import wait_until

KINDS = ("vsftpd", "proftpd")
_WORKER = "daemon"  # its home exists, which vsftpd insists on

# vsftpd lets PAM decide who may log in, and PAM reads its rules only from this folder.
_PAM = Path("/etc/pam.d")
_VSFTPD = """
listen=YES
listen_address=127.0.0.1
listen_port={port}
background=NO
seccomp_sandbox=NO
secure_chroot_dir={empty}
nopriv_user={worker}
anonymous_enable=NO
local_enable=YES
pam_service_name={pam}
session_support=NO
local_root={pages}
chroot_local_user=YES
allow_writeable_chroot=YES
write_enable=YES
local_umask=022
xferlog_enable=NO
"""
_VSFTPD_TLS = """
ssl_enable=YES
force_local_logins_ssl=YES
force_local_data_ssl=YES
rsa_cert_file={certificate}
rsa_private_key_file={key}
"""

_PROFTPD = """
ServerType standalone
DefaultAddress 127.0.0.1
Port {port}
UseIPv6 off
UseReverseDNS off
WtmpLog off
User {worker}
Group {group}
PidFile {folder}/pid
ScoreboardFile {folder}/scoreboard
DelayEngine off
AuthOrder mod_auth_file.c
AuthUserFile {folder}/passwd
RequireValidShell off
DefaultRoot ~
{more}
"""


@dataclass(frozen=True)
class ForeignServer:
    """A running server, its account, and the folder that the account writes to."""

    port: int
    pages: Path
    user: str
    password: str

    def uploader(self, **options: object) -> Uploader:
        return Uploader("127.0.0.1", self.port, self.user, self.password, **options)  # type: ignore[arg-type]


class Foreign:
    """One server in a folder of its own; it can be stopped and started again on the same port."""

    def __init__(self, kind: str, folder: Path, more: str, certificate: tuple[Path, Path] | None) -> None:
        program = shutil.which(kind, path=f"{os.environ['PATH']}:/usr/sbin:{ROOT / '.setup' / 'bin'}")
        if program is None or os.geteuid() != 0:
            pytest.skip(f"{kind} is not installed, or this is not root")
        self._command = program
        self._kind = kind
        self.certificate = certificate[0] if certificate else None
        self._folder = folder
        worker = pwd.getpwnam(_WORKER)
        self.pages = folder / "Pages"
        for path in (folder, self.pages, folder / "empty"):
            path.mkdir(exist_ok=True)
            path.chmod(0o755)
        os.chown(self.pages, worker.pw_uid, worker.pw_gid)
        user, password = (_WORKER, "anything") if kind == "vsftpd" else (FTP_USER, ftp_password(TOKEN))
        self.server = ForeignServer(free_port(), self.pages, user, password)
        self._pam = _PAM / f"pavouk-tests-{self.server.port}"
        self._process: subprocess.Popen[bytes] | None = None
        self._write_configuration(worker, more, certificate)

    def _write_configuration(
        self, worker: pwd.struct_passwd, more: str, certificate: tuple[Path, Path] | None
    ) -> None:
        template = _PROFTPD if self._kind == "proftpd" else _VSFTPD + (_VSFTPD_TLS if certificate else "") + "{more}"
        values = {
            "port": self.server.port, "pages": self.pages, "folder": self._folder, "empty": self._folder / "empty",
            "worker": _WORKER, "group": _group_of(worker), "more": more,
            "pam": self._pam.name,
        }  # fmt: skip
        if certificate:
            values |= {"certificate": certificate[0], "key": certificate[1]}
        (self._folder / "server.conf").write_text(template.format(**values).lstrip())
        if self._kind == "vsftpd":
            self._pam.write_text("auth required pam_permit.so\naccount required pam_permit.so\n")
        else:
            made = ["openssl", "passwd", "-6", self.server.password]
            hashed = subprocess.run(made, capture_output=True, text=True, check=True).stdout.strip()
            accounts = self._folder / "passwd"
            accounts.write_text(f"{FTP_USER}:{hashed}:{worker.pw_uid}:{worker.pw_gid}::{self.pages}:/bin/false\n")
            accounts.chmod(0o600)

    def start(self) -> None:
        configuration = str(self._folder / "server.conf")
        options = [configuration] if self._kind == "vsftpd" else ["--nodaemon", "--quiet", "--config", configuration]
        command = [self._command, *options]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_until(self._answers, 30, lambda: (self._folder / "log").read_text())

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.server.port), timeout=5) as connection:
                return connection.recv(3) == b"220"
        except OSError:
            return False

    def stop(self) -> None:
        """The sessions end with it: both keep a process for each, in the group of the first."""
        if self._process is not None:
            for child in _children_of(self._process.pid):
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
            self._process.kill()
            self._process.wait()
            self._process = None


    def allow_writing(self, allowed: bool) -> None:
        """Whether the account may make anything in its folder."""
        self.pages.chmod(0o755 if allowed else 0o555)

    def close(self) -> None:
        self.stop()
        self._pam.unlink(missing_ok=True)


def _group_of(worker: pwd.struct_passwd) -> str:
    return grp.getgrgid(worker.pw_gid).gr_name


def _children_of(pid: int) -> list[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except FileNotFoundError:  # it has ended
        return []
    return [number for child in map(int, children) for number in (*_children_of(child), child)]


@contextmanager
def foreign_server(kind: str, more: str = "", tls: bool = False) -> Iterator[Foreign]:
    """Runs one until the end of the block. `more` is added to its configuration."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="foreign-ftp-")))
        foreign = Foreign(kind, folder, more, make_certificate(folder) if tls else None)
        stack.callback(foreign.close)
        foreign.start()
        yield foreign

"""Attacks on ftpServer's door: whoever cannot log in, and whoever does not do what a worker does, locks nobody out.

In each, a normal worker uploads a bundle meanwhile, from an address of its own and from that of the attackers.
"""

import contextlib
import ftplib
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

import pytest

from client.uploader import Uploader
from common.errors import RemoteUnavailable
from common.secrets import FTP_USER, ftp_password
from common.settings import FtpServerSettings
from server import lobby
from server.ftpserver import login
from server.ftpserver.folder import PagesFolder
from server.ftpserver.inbox import Inbox
from server.lobby import Lobby
from server.places import IDLE_SECONDS, Places
from tests.bundles import make_bundle
from tests.certificates import make_certificate
from tests.ftp import TOKEN, FtpServer, run_ftp_server, stored_bundles
from tests.waiting import wait_until

pytestmark = pytest.mark.filterwarnings("ignore:The asyn:DeprecationWarning")  # pyftpdlib is told

SOON_SECONDS = 8.0  # far below any of the time-outs, and far above what it takes on a busy machine

Attack = Callable[[socket.socket], socket.socket | None]  # returns what takes the place of the connection, if anything


def silent(connection: socket.socket) -> None:
    """Not even the greeting is read."""


def half_a_command(connection: socket.socket) -> None:
    connection.sendall(b"USE")


def only_a_name(connection: socket.socket) -> None:
    connection.sendall(f"USER {FTP_USER}\r\n".encode())


def wrong_password(connection: socket.socket) -> None:
    """Three attempts at once, of which none is answered before its time."""
    connection.sendall(f"USER {FTP_USER}\r\nPASS wrong\r\n".encode() * 3)


def many_commands(connection: socket.socket) -> None:
    with contextlib.suppress(ConnectionError):
        connection.sendall(b"NOOP\r\n" * 20_000)


def empty_lines(connection: socket.socket) -> None:
    with contextlib.suppress(ConnectionError):
        connection.sendall(b"\r\n" * 50_000)


def endless_line(connection: socket.socket) -> None:
    with contextlib.suppress(ConnectionError):
        connection.sendall(b"a" * 1_000_000)


def silent_in_the_handshake(connection: socket.socket) -> None:
    """To a server without TLS an unknown command."""
    connection.sendall(b"AUTH TLS\r\n")


def half_a_handshake(connection: socket.socket) -> None:
    connection.sendall(b"AUTH TLS\r\n")
    connection.recv(100)
    connection.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")  # a ClientHello of 512 bytes that ends here


def silent_after_the_handshake(connection: socket.socket) -> socket.socket:
    """To a server without TLS an unknown command."""
    connection.recv(100)
    connection.sendall(b"AUTH TLS\r\n")
    return handshaken(connection) if connection.recv(100).startswith(b"234") else connection


ATTACKS: tuple[Attack, ...] = (
    silent, half_a_command, only_a_name, wrong_password, many_commands, empty_lines, endless_line,
    silent_in_the_handshake, half_a_handshake, silent_after_the_handshake,
)  # fmt: skip


class Door:
    """A running server with or without TLS, and its normal worker."""

    def __init__(self, server: FtpServer, certificate: Path | None) -> None:
        self.server = server
        self._certificate = certificate

    def uploader(self) -> Uploader:
        if self._certificate is None:
            return self.server.uploader()
        return self.server.uploader(tls=True, tls_ca=str(self._certificate))

    def attack(self, attack: Attack, source: str) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.server.port), timeout=20, source_address=(source, 0))
        with contextlib.suppress(ConnectionError):  # closed already: there are others after it
            return attack(connection) or connection
        return connection

    def upload_seconds(self, folder: Path, job: str) -> float:
        """How long a normal worker takes from connecting to 250."""
        bundle = make_bundle(folder, "normal.org", job)
        began = time.monotonic()
        uploader = self.uploader()
        uploader.upload(bundle)
        took = time.monotonic() - began
        uploader.close()
        assert bundle.name in stored_bundles(self.server.pages)
        return took


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "tls"])
def door(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    folder = tmp_path_factory.mktemp("door")
    certificate, key = make_certificate(folder) if request.param else (None, None)
    options = ("--tls-cert", str(certificate), "--tls-key", str(key)) if certificate else ()
    with run_ftp_server(folder, *options) as server:
        yield Door(server, certificate)
        assert "Traceback" not in server.program.errors()


@pytest.mark.parametrize("number", [25, 200])
@pytest.mark.parametrize("attack", ATTACKS)
def test_connections_that_do_not_log_in_keep_nobody_out(
    door: Door, attack: Attack, number: int, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        for count in range(number):  # eight addresses; the first is that of the normal worker
            stack.enter_context(door.attack(attack, f"127.0.0.{1 + count % 8}"))
        assert door.upload_seconds(tmp_path, f"{attack.__name__}{number}") < SOON_SECONDS


def test_connections_from_the_workers_own_address_keep_it_out_for_no_longer(door: Door, tmp_path: Path) -> None:
    with ExitStack() as stack:
        for _ in range(200):
            stack.enter_context(door.attack(silent, "127.0.0.1"))
        assert door.upload_seconds(tmp_path, "same") < SOON_SECONDS


def test_attackers_that_come_again_and_again_keep_nobody_out(door: Door, tmp_path: Path) -> None:
    """About a thousand connections, each of which stays until it is closed."""
    ended = threading.Event()

    def attack(source: str) -> None:
        with ExitStack() as stack:
            for _ in range(250):
                if not ended.wait(0.01):
                    stack.enter_context(door.attack(silent, source))

    threads = [threading.Thread(target=attack, args=(f"127.0.0.{number}",)) for number in range(2, 6)]
    for thread in threads:
        thread.start()
    try:
        assert door.upload_seconds(tmp_path, "again") < SOON_SECONDS
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def test_who_connects_has_no_thread_before_the_login(door: Door) -> None:
    tasks = Path(f"/proc/{door.server.program.process.pid}/task")

    def threads() -> int:
        return len(list(tasks.iterdir()))

    before = threads()
    with ExitStack() as stack:
        for count in range(50):
            connection = stack.enter_context(door.attack(only_a_name, f"127.0.0.{1 + count % 8}"))
            assert connection.recv(3) == b"220"
        assert threads() <= before


def test_a_byte_now_and_then_buys_no_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time counts from the connection, not from the last byte."""
    monkeypatch.setattr("server.ftpserver.login.STAY_SECONDS", 1.0)
    with served_here(tmp_path) as address, socket.create_connection(address, timeout=20) as connection:
        connection.settimeout(0.05)
        heard, began = b"", time.monotonic()
        while not heard.endswith(b"421 That took too long.\r\n"):
            assert time.monotonic() - began < SOON_SECONDS
            with contextlib.suppress(TimeoutError):
                connection.sendall(b"N")
                heard += connection.recv(1000)


@contextlib.contextmanager
def served_here(folder: Path, **settings: str) -> Iterator[tuple[str, int]]:
    """The server in a thread of this process, so that its times can be changed."""
    from server.ftpserver.server import make_server

    inbox = Inbox(folder, PagesFolder(folder).incoming, 10**9, 10**7, lambda path, manifest: None)
    server = make_server(FtpServerSettings(ftp_port=0, **settings), folder, inbox)  # type: ignore[arg-type]
    ended = threading.Event()

    def serve() -> None:
        while not ended.is_set():
            server.serve_once()
        server.close_all()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield server.address
    finally:
        ended.set()
        thread.join()


def test_a_login_that_comes_in_one_piece_with_what_follows_works(door: Door) -> None:
    """A client that does not wait for answers is no attacker. After a wrong password it goes on in turn."""
    with door.attack(silent, "127.0.0.1") as plain:
        connection = secured(plain) if door.uploader()._context else plain
        lines = ("USER x", "PASS y", f"USER {FTP_USER}", f"PASS {ftp_password(TOKEN)}", "PWD", "TYPE I", "NOOP", "QUIT")
        connection.sendall("".join(f"{line}\r\n" for line in lines).encode())
        replies = connection.makefile("rb").read().split(b"\r\n")
        codes = [reply[:3] for reply in replies if not reply.startswith((b"220", b"234"))]
        assert codes == [b"331", b"530", b"331", b"230", b"257", b"200", b"200", b"221", b""]


@pytest.mark.parametrize("behind", ["NOOP\r\n", "USER x\r\nPASS y\r\n", "US"])
def test_what_comes_behind_auth_is_not_heard_within_tls(door: Door, behind: str) -> None:
    """Whoever is between a worker and the server can put it there; the answers would pass for those to the worker."""
    with door.attack(silent, "127.0.0.1") as connection:
        connection.sendall(b"AUTH TLS\r\n" + behind.encode())
        greeting, answer = islice(connection.makefile("rb"), 2)
    assert greeting.startswith(b"220")
    assert answer.startswith(b"421 Nothing may follow AUTH" if door.uploader()._context else b"502")


def secured(connection: socket.socket) -> ssl.SSLSocket:
    assert connection.recv(100).startswith(b"220")
    connection.sendall(b"AUTH TLS\r\n")
    assert connection.recv(100).startswith(b"234")
    return handshaken(connection)


def handshaken(connection: socket.socket) -> ssl.SSLSocket:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(connection)


class Guest:
    """A connection in the lobby; says when it was sent away."""

    def __init__(self, address: str, gone: list[str]) -> None:
        self.remote_ip = address
        self._gone = gone

    def send_away(self) -> None:
        self._gone.append(self.remote_ip)


@pytest.mark.parametrize(
    ("come", "go"),
    [
        (["10.0.0.1"] * 4, ["10.0.0.1"]),
        (["10.0.0.1", "10.0.0.1", "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"], ["10.0.0.1"]),
        (["10.0.0.9", "10.0.0.1", "10.0.0.1", "10.0.0.2", "10.0.0.2", "10.0.0.9"], ["10.0.0.9"]),
        (["2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8::4"], ["2001:db8::1"]),
        (["2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8:0:1::4"], []),
        (["::ffff:10.0.0.1", "10.0.0.1", "10.0.0.1", "::ffff:10.0.0.1"], ["::ffff:10.0.0.1"]),
        (["fe80::1%eth0"] * 4, ["fe80::1%eth0"]),
    ],
)
def test_the_oldest_of_the_network_with_most_connections_goes(come: list[str], go: list[str]) -> None:
    gone: list[str] = []
    room = Lobby(in_all=5, per_network=3)
    for address in come:
        room.enter(Guest(address, gone))
    assert gone == go


class Sitter:
    """A session that has logged in."""

    def __init__(self, address: str, idle: float) -> None:
        self.remote_ip = address
        self.idle = idle
        self.hung_up = False

    def idle_seconds(self) -> float:
        return self.idle

    def hang_up(self) -> None:
        self.hung_up = True


@pytest.mark.parametrize(
    ("sitting", "comes", "reason", "hung_up"),
    [
        ([("a", 100.0)], "a", "", []),
        ([("a", 0.0), ("a", 0.0)], "a", "Too many connections from your address", []),
        ([("a", 0.0), ("a", IDLE_SECONDS - 1)], "a", "Too many connections from your address", []),
        ([("a", 50.0), ("a", 60.0)], "a", "", [1]),
        ([("a", 0.0), ("a", 0.0), ("b", 99.0)], "a", "Too many connections from your address", []),
        ([("a", 0.0), ("b", 0.0), ("c", 0.0)], "d", "Too many connections", []),
        ([("a", 0.0), ("b", 70.0), ("c", 60.0)], "d", "", [1]),
    ],
)
def test_sessions_that_do_nothing_make_room_for_those_that_work(
    sitting: list[tuple[str, float]], comes: str, reason: str, hung_up: list[int]
) -> None:
    places = Places(3, 2)
    sitters = [Sitter(*each) for each in sitting]
    assert [places.take(sitter) for sitter in sitters] == [""] * len(sitters)
    assert places.take(Sitter(comes, 0.0)) == reason
    assert [number for number, sitter in enumerate(sitters) if sitter.hung_up] == hung_up


IDLE_COMMANDS = ((), ("PASV",), ("NOOP",), ("TYPE I", "PASV", "STOR /a.org/a.org.17.1.tar.bz2.part"))


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("then", IDLE_COMMANDS)
def test_logged_in_and_idle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then: tuple[str, ...], tls: bool
) -> None:
    """All places of an address are held, with a data connection that is never used or without: one makes room."""
    monkeypatch.setattr("server.places.IDLE_SECONDS", 0.2)
    certificate, key = make_certificate(tmp_path) if tls else (Path(), Path())
    paths = {"tls_cert": str(certificate), "tls_key": str(key)} if tls else {}
    context = ssl.create_default_context(cafile=certificate) if tls else None
    with served_here(tmp_path, **paths) as (host, port), ExitStack() as stack:
        for _ in range(4):
            session = stack.enter_context(ftplib.FTP_TLS(context=context) if tls else ftplib.FTP())
            session.connect(host, port)
            session.login(FTP_USER, ftp_password(""))
            for command in ("PBSZ 0", "PROT P", *then) if tls else then:
                session.sendcmd(command)
        uploader = Uploader(host, port, FTP_USER, ftp_password(""), tls, str(certificate) if tls else "")
        bundle = make_bundle(tmp_path / "spool")

        def uploaded() -> bool:
            with contextlib.suppress(RemoteUnavailable):
                uploader.upload(bundle)
                return True
            return False

        wait_until(uploaded, SOON_SECONDS)
        uploader.close()


@pytest.mark.parametrize("command", ["HELP", "FEAT", "CWD /" + "x" * 1_000])
def test_answers_that_nobody_reads_are_not_kept(door: Door, command: str) -> None:
    """Each is a hundred times as long as what was sent for it, some of them."""
    lines = f"{command}\r\n".encode() * (1 + 20_000 // len(command))
    with silent_client(door) as connection, pytest.raises((ConnectionError, ssl.SSLError)):
        send_on(connection, lines)
    with door.attack(only_a_name, "127.0.0.1") as another:
        assert another.recv(3) == b"220"


def send_on(connection: socket.socket, lines: bytes) -> None:
    began = time.monotonic()
    while time.monotonic() - began < SOON_SECONDS:
        connection.sendall(lines)


@contextlib.contextmanager
def silent_client(door: Door) -> Iterator[socket.socket]:
    """One that has logged in, for which the system keeps few answers."""
    with socket.socket() as plain:
        plain.settimeout(20)
        for buffer in (socket.SO_RCVBUF, socket.SO_SNDBUF):
            plain.setsockopt(socket.SOL_SOCKET, buffer, 4_096)
        plain.connect(("127.0.0.1", door.server.port))
        with secured(plain) if door.uploader()._context else plain as connection:
            connection.sendall(f"USER {FTP_USER}\r\nPASS {ftp_password(TOKEN)}\r\n".encode())
            heard = b""
            while b"\r\n230 " not in heard:
                heard += connection.recv(1_000)
            yield connection


def test_a_transfer_that_crawls_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte now and then keeps no data connection open."""
    monkeypatch.setattr("server.ftpserver.session.DataChannel.timeout", 0.5)
    with served_here(tmp_path) as (host, port), ftplib.FTP(timeout=20) as session:
        session.connect(host, port)
        session.login(FTP_USER, ftp_password(""))
        session.voidcmd("TYPE I")
        data = session.transfercmd("STOR /a.org/a.org.17.1.tar.bz2.part")
        began = time.monotonic()
        with contextlib.suppress(ConnectionError):
            while time.monotonic() - began < SOON_SECONDS:
                data.sendall(b"x")
                threading.Event().wait(0.02)
        assert time.monotonic() - began < SOON_SECONDS
        with pytest.raises(ftplib.error_temp, match="421 Data connection timed out"):
            session.voidresp()


def test_the_limits_are_those_of_the_manual() -> None:
    manual = (Path(__file__).parents[2] / "manual" / "ftp.md").read_text()
    for words in (
        f"{lobby.STAY_SECONDS:g} seconds", f"{lobby.MAX_WAITING} connections",
        f"{lobby.MAX_WAITING_PER_NETWORK} from one", f"{login.MAX_BYTES:,} bytes",
        f"{login.MAX_LINES} lines", f"{login.MAX_ANSWERS} answers", f"{IDLE_SECONDS:g} seconds",
        "1,000 bytes a second",
    ):  # fmt: skip
        assert words in manual, words

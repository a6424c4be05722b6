"""An FTP connection until it has logged in, and how it moves from the main thread to its own then.

The main thread serves all of them in turn, so nothing here may wait, and nobody gets more than a little of anything.
"""

import logging
from typing import Any

from pyftpdlib.handlers import FTPHandler

from server.lobby import STAY_SECONDS

MAX_BYTES = 1000  # sent before the end of the login: ours takes 200
MAX_LINES = 20  # ours takes 5
MAX_ANSWERS = 100  # that the system does not take, because the client reads none; ours waits for each
_BUFFER_BYTES = 1 << 16

log = logging.getLogger(__name__)


class Newcomer(FTPHandler):
    """A control connection. Used by the main thread, from `leave_main_loop` on by another one."""

    server: Any
    _idler: Any
    _in_buffer: list[bytes]

    def __init__(self, conn: Any, server: Any, ioloop: Any = None) -> None:
        self._bytes_left, self._lines_left = MAX_BYTES, MAX_LINES  # until it must have logged in
        self.ac_in_buffer_size = MAX_BYTES  # asynchat takes time that grows with the square of what it reads at once
        self._waiting_lines: list[bytes] | None = None  # while there is a list, nothing is answered
        super().__init__(conn, server, ioloop)
        if self.connected:
            self.call_later(STAY_SECONDS, self.end, "421 That took too long.")

    def leave_main_loop(self) -> None:
        """The last that the main thread does for it."""
        self._idler.cancel()
        for task in self._tasks:
            task.cancel()
        self._tasks.clear()
        self.ioloop.unregister(self._fileno)

    def add_channel(self, map: Any = None, events: Any = None) -> None:
        if self.producer_fifo:  # the answer to the login has not gone out yet
            events = self.ioloop.READ | self.ioloop.WRITE
        super().add_channel(map, events)
        if self.ioloop is not self.server.ioloop:  # the first that its own thread does
            self._idler = self.ioloop.call_later(self.timeout, self.handle_timeout, _errback=self.handle_error)
            self.call_later(0, self._go_on)

    def push(self, data: bytes) -> None:
        """Every answer goes out here. What the client does not read stays in memory, and it may send without end."""
        if len(self.producer_fifo) < MAX_ANSWERS:
            super().push(data)
        elif not self._closed:
            log.warning("%s: does not read its answers", self.remote_ip)
            self.end("")

    def collect_incoming_data(self, data: bytes) -> None:
        self._bytes_left -= len(data)
        self._end_if_it_only_talks()
        if not self._closed:
            super().collect_incoming_data(data)

    def _end_if_it_only_talks(self) -> None:
        if min(self._bytes_left, self._lines_left) < 0 and not self.authenticated and not self._closed:
            self.end("421 Log in first.")

    def found_terminator(self) -> None:
        self._lines_left -= 1
        self._end_if_it_only_talks()
        if self._closed:
            return
        if self._waiting_lines is None:
            super().found_terminator()
        else:
            self._waiting_lines.append(b"".join(self._in_buffer))
            self._in_buffer, self._in_buffer_len = [], 0

    def _go_on(self) -> None:
        """Answer what has come while nothing was answered. It may begin to wait again meanwhile."""
        lines, self._waiting_lines = self._waiting_lines or [], None
        beginning = self._in_buffer
        for line in lines:
            self._in_buffer = [line]
            self.found_terminator()
        self._in_buffer, self._in_buffer_len = beginning, sum(map(len, beginning))

    def handle_auth_success(self, home: str, password: str, msg_login: str) -> None:
        reason = self.server.admit(self)
        if reason:
            log.warning("%s: a session was turned away: %s", self.remote_ip, reason)
            self.end(f"421 {reason}, come back later.")
            return
        super().handle_auth_success(home, password, msg_login)
        self._waiting_lines = []
        self.ac_in_buffer_size = _BUFFER_BYTES

    def handle_auth_failed(self, msg: str, password: str) -> None:
        # pyftpdlib takes the connection out of the loop meanwhile, and puts it back after it was closed.
        log.warning("%s: wrong user or password", self.remote_ip)
        self.username = ""
        self.attempted_logins += 1
        self._waiting_lines = []
        self.call_later(self.auth_failed_timeout, self._refuse_login, msg)

    def _refuse_login(self, reason: str) -> None:
        if self.attempted_logins >= self.max_login_attempts:
            self.end(f"530 {reason}")
        else:
            self.respond(f"530 {reason}")
            self._go_on()

    def ftp_USER(self, line: str) -> None:
        if self.authenticated:
            self.respond("530 There is only this account.")
        else:
            super().ftp_USER(line)

    def ftp_AUTH(self, line: str) -> None:
        # Whoever is between us and the client could put commands behind it. Their answers, sent within TLS, would pass
        # for those to the client's own.
        if self.ac_in_buffer:
            log.warning("%s: commands came behind AUTH, before TLS", self.remote_ip)
            self.end("421 Nothing may follow AUTH before the handshake.")
        else:
            super().ftp_AUTH(line)

    def send_away(self) -> None:
        self.end("421 Too many connections that do not log in.")

    def end(self, reply: str) -> None:
        """Close, with a last word if it can be said at once: nobody waits for a client that does not read."""
        if reply and not getattr(self, "_ssl_accepting", False):
            self.respond(reply)
        self._error = True  # over TLS: no goodbye
        self.close()
        self.ac_in_buffer = b""  # asynchat would go on with it

    def handle_timeout(self) -> None:
        self.end("421 Control connection timed out.")

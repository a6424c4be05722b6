"""One connection: its requests one after another, each with a time for its head, its body and its answer.

h11 reads and writes the messages; here is when how much of them is read. A thread of the pool gets a request when it
is complete and the guard has let it in, never before: whoever sends little by little holds up nobody.
"""

import asyncio
import logging
import math
import socket
import ssl
from concurrent.futures import Executor
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass, field, replace
from email.utils import formatdate
from functools import partial
from http import HTTPStatus
from pathlib import Path

import h11

from server.lobby import STAY_SECONDS, Lobby
from server.places import Places
from server.urlserver.body import Body
from server.urlserver.budget import Budget
from server.urlserver.guard import Answer, Guard, Head, Wsgi
from server.urlserver.peers import addresses, user_at
from server.urlserver.unsent import Unsent
from server.urlserver.wsgi import called

IDLE_SECONDS = 20.0  # without a byte, between requests or within one
HEAD_SECONDS = 10.0  # from the first byte of a head to its end
LEAST_BYTES_A_SECOND = 10_000  # of bodies and answers, beyond the first IDLE_SECONDS
MAX_HEAD_BYTES = 32_000
LARGE_BYTES = 256_000  # larger messages share a budget, and wait on the disk until they have their part of it
PARSED_AT_ONCE_BYTES = 12_000_000
UNSENT_BYTES = 64_000_000  # of answers
LAST_SECONDS = 3.0  # for an answer, once the server is to end
MAX_DISCARDED_BYTES = 256 << 20  # of a request that is refused
_MAX_DISCARDED_JUNK_BYTES = 1 << 20  # of what is no request
_LINGER_SECONDS = 2.0  # with it
_SHUTDOWN_SECONDS = 2.0  # for the goodbye of TLS
_CHUNK_BYTES = 1 << 16
_PIECE_BYTES = 1 << 18  # of an answer
_LOOK_UPS = 4  # at the same time

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Hall:
    """What the connections of a server share. For one event loop."""

    guard: Guard
    pool: Executor
    own: tuple[str, int]  # where it listens
    spool: Path  # a folder for large messages that wait
    tls: ssl.SSLContext | None
    places: Places  # for those that have shown that they belong here
    lobby: Lobby = field(default_factory=Lobby)  # for all others
    look_ups: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_LOOK_UPS))  # of who asks; fair
    budget: Budget = field(default_factory=lambda: Budget(PARSED_AT_ONCE_BYTES))
    unsent: Unsent = field(default_factory=lambda: Unsent(UNSENT_BYTES))
    connections: set["Connection"] = field(default_factory=set)
    is_ending: bool = False


class Connection:
    """Begins with a socket and ends with it. Used by the thread of the loop only."""

    def __init__(self, sock: socket.socket, address: str, hall: Hall) -> None:
        self.remote_ip = address
        self._socket = sock
        self._ends = addresses(sock)
        self._user: int | None = None
        self._hall = hall
        self._loop = asyncio.get_running_loop()
        self._began = self._last_used = self._loop.time()
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD_BYTES)
        self._is_known = False  # it has sent a head that the guard has let in
        self._is_busy = False  # with a body or an answer
        self._is_answering = False
        self._writing: asyncio.Timeout | None = None  # an answer
        self._transport: asyncio.Transport | None = None
        hall.connections.add(self)
        self._task = self._loop.create_task(self._run())
        self._task.add_done_callback(self._clean_up)

    # --- ending ------------------------------------------------------------------------------------------------

    def send_away(self) -> None:
        self._task.cancel()

    def idle_seconds(self) -> float:
        return 0.0 if self._is_busy else self._loop.time() - self._last_used

    hang_up = send_away

    def finish(self) -> asyncio.Task[None]:
        """End it as soon as the request that is being answered has its answer. Who does not take it soon, loses it."""
        if not self._is_answering:
            self._task.cancel()
        elif self._writing and not self._writing.expired():
            self._writing.reschedule(min(self._writing.when() or math.inf, self._loop.time() + LAST_SECONDS))
        return self._task

    # --- a life ------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        try:
            self._transport = await self._opened()
            await self._serve_all()
            self._transport.close()
        except (OSError, TimeoutError) as error:  # strangers come and go; broken TLS is among them
            _log.debug("%s: %s", self.remote_ip, error)
            error.__traceback__ = None  # the reader keeps the error, and that would keep the answer
        except asyncio.CancelledError:  # sent away; the task would keep it in the same way
            pass
        except Exception:  # one for each connection: the others go on
            _log.exception("%s: a connection broke off", self.remote_ip)

    def _clean_up(self, _: asyncio.Task[None]) -> None:
        """Not by `finally` in the task: one that is cancelled before its first step runs nothing of it."""
        self._leave()
        if self._transport is None:
            self._socket.close()
        elif not self._transport.is_closing():
            self._transport.abort()

    async def _serve_all(self) -> None:
        try:
            while await self._serve_one() and not self._hall.is_ending:
                self._http.start_next_cycle()
        except h11.RemoteProtocolError as error:
            await self._complain(error)

    def _leave(self) -> None:
        self._hall.connections.discard(self)
        self._hall.lobby.leave(self)
        self._hall.places.leave(self)

    async def _opened(self) -> asyncio.Transport:
        self._reader = asyncio.StreamReader(_CHUNK_BYTES)
        protocol = asyncio.StreamReaderProtocol(self._reader)
        times = {"ssl_handshake_timeout": STAY_SECONDS, "ssl_shutdown_timeout": _SHUTDOWN_SECONDS}
        transport, _ = await self._loop.connect_accepted_socket(
            lambda: protocol, self._socket, ssl=self._hall.tls, **(times if self._hall.tls else {})
        )
        transport.set_write_buffer_limits(1, 0)  # so that `drain` waits until all is gone; TLS never wakes up with 0, 0
        self._writer = asyncio.StreamWriter(transport, protocol, self._reader, self._loop)
        return transport

    async def _serve_one(self) -> bool:
        """A request and its answer; says whether there may be another one."""
        request = await self._next_request()
        if request is None:
            return False
        head = _head_of(request, self.remote_ip)
        if self._hall.guard.asks_who:
            head = replace(head, user=await self._asking_user())
        judged = self._hall.guard.judged(head)
        if not isinstance(judged, Answer):
            judged = self._turned_away() or judged
        if isinstance(judged, Answer):
            await self._say(judged, is_last=True)
            await self._discard_body(head)
            return False
        await self._serve_with(judged, head)
        return self._http.our_state is h11.DONE and self._http.their_state is h11.DONE

    async def _asking_user(self) -> int | None:
        """Whose program it is that asks. To whom that one hands its socket on is its own affair."""
        if self._user is None and self._ends:
            self._hall.lobby.leave(self)  # it has said what it has to say
            async with self._hall.look_ups:
                self._user = await asyncio.to_thread(user_at, *self._ends)
            if not self._is_known:
                self._hall.lobby.enter(self)
        return self._user

    def _turned_away(self) -> Answer | None:
        """It belongs here, and is no stranger from now on; unless there are too many."""
        if not self._is_known:
            if reason := self._hall.places.take(self):
                status = HTTPStatus.SERVICE_UNAVAILABLE
                return Answer(status.value, status.phrase, [("Content-Type", "text/plain")], f"{reason}\n".encode())
            self._is_known = True
            self._hall.lobby.leave(self)
        return None

    async def _serve_with(self, app: Wsgi, head: Head) -> None:
        hall, length = self._hall, head.length or 0
        self._is_busy = True
        try:
            with closing(Body(LARGE_BYTES, hall.spool)) as body:
                await self._read_body(body, length)
                self._is_answering = True
                answer = await self._answer_to(app, head, body)
            await self._say(answer, is_last=hall.is_ending)
        finally:
            self._is_busy = self._is_answering = False
            self._writing = None
            self._last_used = self._loop.time()

    async def _answer_to(self, app: Wsgi, head: Head, body: Body) -> Answer:
        hall, file, length = self._hall, body.complete(), head.length or 0
        if body.trouble is not None:
            _log.error("a message of %d bytes cannot be kept while it waits: %s", length, body.trouble)
            return hall.guard.not_kept(head, body.trouble)
        async with hall.budget.share(length) if length > LARGE_BYTES else nullcontext():
            work = partial(called, app, head, file, "https" if hall.tls else "http", hall.own)
            return await self._loop.run_in_executor(hall.pool, work)

    # --- reading -----------------------------------------------------------------------------------------------

    async def _next_request(self) -> h11.Request | None:
        """None if the peer has no more."""
        end = self._loop.time() + IDLE_SECONDS if self._is_known else self._began + STAY_SECONDS
        is_begun = False
        while (event := self._http.next_event()) is h11.NEED_DATA:
            await self._receive(end)
            if self._is_known and not is_begun:
                end, is_begun = self._loop.time() + HEAD_SECONDS, True
        return event if isinstance(event, h11.Request) else None

    async def _read_body(self, body: Body, length: int) -> None:
        if self._http.they_are_waiting_for_100_continue:
            self._writer.write(self._sent(h11.InformationalResponse(status_code=100, headers=[])))
        end = self._end_of(length)
        while not isinstance(event := self._http.next_event(), h11.EndOfMessage):
            if isinstance(event, h11.Data):
                body.take(event.data)
            else:
                await self._receive(min(end, self._loop.time() + IDLE_SECONDS))

    async def _discard_body(self, head: Head) -> None:
        """What a client still sends of a request that is refused."""
        if head.has_body:
            left = MAX_DISCARDED_BYTES if head.length is None else head.length - len(self._http.trailing_data[0])
            end = (self._loop.time() if self._is_known else self._began) + STAY_SECONDS
            await self._discard(left if left <= MAX_DISCARDED_BYTES else 0, end)

    async def _discard(self, left: int, end: float) -> None:
        """Closing with unread data would also throw away our answer."""
        async with asyncio.timeout_at(end):
            while left > 0 and (data := await self._reader.read(_CHUNK_BYTES)):
                left -= len(data)

    async def _receive(self, end: float) -> None:
        async with asyncio.timeout_at(end):
            self._http.receive_data(await self._reader.read(_CHUNK_BYTES))

    def _end_of(self, number: int) -> float:
        """Until when so many bytes must have gone through."""
        return self._loop.time() + IDLE_SECONDS + number / LEAST_BYTES_A_SECOND

    # --- answering ---------------------------------------------------------------------------------------------

    async def _say(self, answer: Answer, is_last: bool) -> None:
        headers = [*answer.headers, ("Date", formatdate(usegmt=True)), ("Content-Length", str(len(answer.body)))]
        if is_last:
            headers.append(("Connection", "close"))
        head = self._sent(h11.Response(status_code=answer.status, headers=headers, reason=answer.phrase))
        body = self._sent(h11.Data(answer.body)) if answer.body else b""
        first, rest = body[:_PIECE_BYTES], memoryview(body)[_PIECE_BYTES:]
        end = self._loop.time() + LAST_SECONDS if self._hall.is_ending else self._end_of(len(body))
        with self._hall.unsent.sending(self, len(body)):
            async with asyncio.timeout_at(end) as self._writing:
                await self._write(b"".join((head, first, self._sent(h11.EndOfMessage()))))
                while rest:
                    await self._write(rest[:_PIECE_BYTES])
                    rest = rest[_PIECE_BYTES:]

    async def _write(self, data: bytes | memoryview) -> None:
        """A piece: what the system does not take at once is kept a second time."""
        self._writer.write(data)
        await self._writer.drain()

    def _sent(self, event: h11.Event) -> bytes:
        return self._http.send(event) or b""

    async def _complain(self, error: h11.RemoteProtocolError) -> None:
        """The peer does not speak HTTP as it should: tell it, if there is something to be answered."""
        _log.debug("%s: %s", self.remote_ip, error)
        if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            status = HTTPStatus(error.error_status_hint)
            text = Answer(status.value, status.phrase, [("Content-Type", "text/plain")], f"{error}\n".encode())
            with suppress(OSError, TimeoutError):
                await self._say(text, is_last=True)
                if self._writer.can_write_eof():  # not with TLS
                    self._writer.write_eof()
                await self._discard(_MAX_DISCARDED_JUNK_BYTES, self._loop.time() + _LINGER_SECONDS)


def _head_of(request: h11.Request, peer: str) -> Head:
    headers: dict[str, str] = {}
    for name, value in request.headers:
        text = value.decode("latin-1")
        key = name.decode("ascii")
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    return Head(request.method.decode("ascii"), request.target.decode("latin-1"), headers, peer)

"""A server that misbehaves: `python -m tests.web.hostile`. The path chooses how, `/` links to all the ways.

Each way is one function in BEHAVIOURS. How robots.txt is answered depends on the address that is asked,
see hostile_robots. The log counts what was asked; its status is 0 when no whole answer was sent.
"""

import argparse
import asyncio
import gzip
import socket
import struct
import zlib
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from tests.web.hostile_robots import KIND_OF_ADDRESS, ROBOTS_HOSTS, is_robots_path, robots_answer
from tests.web.pages import Answer
from tests.web.serving import Head, RequestLog, read_head, run_server

HTML = (("Content-Type", "text/html; charset=utf-8"),)
HTML_START = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"
PAGE = b"<!DOCTYPE html><title>Hostile</title><p>some text</p>\n"
CLOSED_LINK = b'<a href="/closed/page.html">closed</a>\n'
BOMB_BLOCK_BYTES = 16 << 20
BOMB_BLOCKS = 64
HUGE_HEADER_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Call:
    """A request to misbehave at. `argument` is the rest of the path, `times` how often it came before."""

    writer: asyncio.StreamWriter
    argument: str
    query: dict[str, list[str]]
    times: int

    def option(self, name: str, default: str) -> str:
        """A value from the query string."""
        return self.query.get(name, [default])[0]

    async def send(self, data: bytes) -> None:
        """Writes, and waits while the client is slow to read."""
        self.writer.write(data)
        await self.writer.drain()

    async def reply(self, answer: Answer) -> int:
        """A whole answer; returns its status. The connection is closed after it."""
        await self.send(_bytes(answer))
        return answer.status


Behaviour = Callable[[Call], Awaitable[int]]


async def ok(call: Call) -> int:
    """Nothing wrong."""
    return await call.reply(Answer(200, HTML, PAGE))


async def reset(call: Call) -> int:
    """The connection is reset instead of an answer."""
    # Closing with a linger time of 0 sends RST.
    linger = struct.pack("ii", 1, 0)
    call.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    call.writer.transport.abort()
    return 0


async def empty(call: Call) -> int:
    """The connection is closed instead of an answer."""
    return 0


async def hang(call: Call) -> int:
    """No answer, ever; ends with the connection."""
    await call.writer.wait_closed()
    return 0


async def slow_bytes(call: Call) -> int:
    """A body that comes one byte each `seconds`, without end: never idle for long."""
    await call.send(HTML_START + b"Content-Length: 1000000000\r\n\r\n")
    while True:
        await call.send(b"a")
        await asyncio.sleep(float(call.option("seconds", "0.2")))


async def truncated(call: Call) -> int:
    """Less than the promised length."""
    await call.send(HTML_START + b"Content-Length: 100000\r\n\r\n" + PAGE)
    return 0


async def endless(call: Call) -> int:
    """A body without length or end, as fast as the client reads."""
    await call.send(HTML_START + b"Connection: close\r\n\r\n")
    while True:
        await call.send(PAGE * 1000)


async def no_content_length(call: Call) -> int:
    """A good body that ends with the connection."""
    await call.send(HTML_START + b"Connection: close\r\n\r\n" + PAGE)
    return 200


async def bad_gzip(call: Call) -> int:
    """A gzip stream that breaks off into nonsense."""
    packed = gzip.compress(PAGE * 100)
    body = packed[: len(packed) // 2] + b"nonsense" * 20
    return await call.reply(Answer(200, (*HTML, ("Content-Encoding", "gzip")), body))


async def gzip_bomb(call: Call) -> int:
    """1 GiB in 1 MB."""
    return await call.reply(Answer(200, (*HTML, ("Content-Encoding", "gzip")), _bomb()))


async def bad_chunk(call: Call) -> int:
    """A chunk whose size is no number, after a good one."""
    await call.send(HTML_START + b"Transfer-Encoding: chunked\r\n\r\n")
    await call.send(b"%x\r\n%b\r\nzz\r\nmore\r\n" % (len(PAGE), PAGE))
    return 0


async def huge_headers(call: Call) -> int:
    """Megabytes of headers before the body."""
    line = b"X-Filler: " + b"a" * 1000 + b"\r\n"
    await call.send(HTML_START + line * (HUGE_HEADER_BYTES // len(line)))
    await call.send(b"Content-Length: %d\r\n\r\n%b" % (len(PAGE), PAGE))
    return 200


async def redirect_loop(call: Call) -> int:
    """/redirect-loop-N: a circle of N addresses."""
    length, at = int(call.argument), int(call.option("at", "0"))
    return await _redirect(call, f"/redirect-loop-{length}?at={(at + 1) % length}")


async def redirect_to(call: Call) -> int:
    """/redirect-to?u=URL"""
    return await _redirect(call, call.option("u", "/ok"))


async def status(call: Call) -> int:
    """/status/NNN, with a small page."""
    return await call.reply(Answer(int(call.argument), HTML, PAGE))


async def retry_after(call: Call) -> int:
    """429 (or `status`) with Retry-After: `seconds` for the first `times` requests, then a page."""
    if call.times >= int(call.option("times", "1")):
        return await ok(call)
    wait = ("Retry-After", call.option("seconds", "1"))
    return await call.reply(Answer(int(call.option("status", "429")), (*HTML, wait), PAGE))


# The start of the path; what follows it is the argument.
BEHAVIOURS: dict[str, Behaviour] = {
    "/ok": ok,
    "/reset": reset,
    "/empty": empty,
    "/hang": hang,
    "/slow-bytes": slow_bytes,
    "/truncated": truncated,
    "/endless": endless,
    "/no-content-length": no_content_length,
    "/bad-gzip": bad_gzip,
    "/gzip-bomb": gzip_bomb,
    "/bad-chunk": bad_chunk,
    "/huge-headers": huge_headers,
    "/redirect-loop-": redirect_loop,
    "/redirect-to": redirect_to,
    "/status/": status,
    "/retry-after": retry_after,
}
# Arguments that make the links on the home page complete.
EXAMPLES = {"/redirect-loop-": "3", "/status/": "500", "/redirect-to": "?u=/ok"}


class HostileServer:
    """One request per connection. Remembers how often each address was asked."""

    def __init__(self, log: RequestLog) -> None:
        self._log = log
        self._asked: Counter[tuple[str, str]] = Counter()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """The one request of a connection."""
        head = await read_head(reader)
        if head is None:
            return
        status, finished = 0, False
        watch = asyncio.ensure_future(_close_with_client(reader, writer))
        try:
            status = await self._misbehave(head, writer)
            finished = True
        finally:
            watch.cancel()
            self._log.add(head, writer, status, finished=finished and status != 0)

    async def _misbehave(self, head: Head, writer: asyncio.StreamWriter) -> int:
        parts = urlsplit(head.target)
        key = (head.host, head.target)
        times, self._asked[key] = self._asked[key], self._asked[key] + 1
        name = next((name for name in BEHAVIOURS if parts.path.startswith(name)), "")
        call = Call(writer, parts.path.removeprefix(name), parse_qs(parts.query), times)
        if is_robots_path(parts.path):
            return await _robots(call)
        if name:
            return await BEHAVIOURS[name](call)
        return await _home(call)


async def _close_with_client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    # Who only waits would not notice that the client has gone.
    while await reader.read(1024):
        pass
    writer.close()


async def _robots(call: Call) -> int:
    kind = KIND_OF_ADDRESS[call.writer.get_extra_info("sockname")[0]]
    answer = robots_answer(kind, call.argument)
    return await hang(call) if answer is None else await call.reply(answer)


async def _home(call: Call) -> int:
    if call.argument.startswith("/closed/"):
        return await ok(call)
    if call.argument != "/":
        return await call.reply(Answer(404, HTML, PAGE))
    links = "".join(f'<a href="{name}{EXAMPLES.get(name, "")}">{name}</a>\n' for name in BEHAVIOURS)
    return await call.reply(Answer(200, HTML, PAGE + CLOSED_LINK + links.encode()))


async def _redirect(call: Call, location: str) -> int:
    return await call.reply(Answer(302, (*HTML, ("Location", location)), PAGE))


def _bytes(answer: Answer) -> bytes:
    phrases = {int(each): each.phrase for each in HTTPStatus}
    lines = [f"HTTP/1.1 {answer.status} {phrases.get(answer.status, 'Odd')}"]
    lines += [f"{name}: {value}" for name, value in answer.headers]
    lines += [f"Content-Length: {len(answer.body)}", "Connection: close", "", ""]
    return "\r\n".join(lines).encode("latin-1") + answer.body


@cache
def _bomb() -> bytes:
    # After a full flush the packer starts anew, so that the same packed block can be repeated. There is no
    # checksum: whoever gets that far has unpacked it all.
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    start = packer.compress(b"\0" * 1024) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(b"\0" * BOMB_BLOCK_BYTES) + packer.flush(zlib.Z_FULL_FLUSH)
    return start + block * BOMB_BLOCKS


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--log", type=Path, help="one JSON line per request")
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    run_server(HostileServer(RequestLog(options.log)).serve, list(ROBOTS_HOSTS.values()), options.port)


if __name__ == "__main__":
    main()

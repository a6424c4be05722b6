"""Ways to break off, to be slow, to never end, and to lie about lengths: everything below the meaning of an answer."""

import asyncio
import socket
import struct
from itertools import repeat

from tests.web.call import HTML_START, PAGE, Behaviour, Call

HUGE_HEADER_BYTES = 10_000_000
CHUNKED = HTML_START + b"Transfer-Encoding: chunked\r\n\r\n"
FORGED = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\nforged"
_FILLER = b"X-Filler: " + b"a" * 1000 + b"\r\n"


async def reset(call: Call) -> int:
    """The connection is reset instead of an answer; /reset-in-headers and /reset-in-body: in the middle of one."""
    await call.send({"-in-headers": HTML_START, "-in-body": _promising(100_000) + PAGE}.get(call.argument, b""))
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
    return await _dribble(call, _promising(1_000_000))


async def slow_headers(call: Call) -> int:
    """Headers that come one byte each `seconds`, without end."""
    return await _dribble(call, HTML_START + b"X-Slow: ")


async def headers_without_end(call: Call) -> int:
    """The connection is closed where the empty line should come."""
    await call.send(HTML_START)
    return 0


async def huge_headers(call: Call) -> int:
    """Megabytes of headers before the body."""
    await call.stream(HTML_START, repeat(_FILLER, HUGE_HEADER_BYTES // len(_FILLER)))
    await call.send(b"Content-Length: %d\r\n\r\n%b" % (len(PAGE), PAGE))
    return 200


async def huge_header_line(call: Call) -> int:
    """One header without end."""
    return await call.stream(HTML_START + b"X-Long: ", repeat(b"a" * 10_000))


async def endless_interim(call: Call) -> int:
    """103 again and again, and never an answer."""
    return await call.stream(b"", repeat(b"HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n"))


async def truncated(call: Call) -> int:
    """Less than the promised length."""
    await call.send(_promising(100_000) + PAGE)
    return 0


async def endless(call: Call) -> int:
    """A body without length or end, as fast as the client reads."""
    return await call.stream(HTML_START + b"Connection: close\r\n\r\n", repeat(PAGE * 1000))


async def endless_chunks(call: Call) -> int:
    """The same in chunks."""
    return await call.stream(CHUNKED, repeat(_chunk(PAGE * 1000)))


async def no_content_length(call: Call) -> int:
    """A good body that ends with the connection."""
    await call.send(HTML_START + b"Connection: close\r\n\r\n" + PAGE)
    return 200


async def length(call: Call) -> int:
    """Content-Length as `is` says, once or (with commas between) several times, before a page."""
    lines = b"".join(b"Content-Length: %b\r\n" % value.encode() for value in call.option("is", "5").split(","))
    await call.send(HTML_START + lines + b"Connection: close\r\n\r\n" + PAGE)
    return 200


async def length_and_chunks(call: Call) -> int:
    """A wrong length, and chunks, which count (RFC 9112 §6.3)."""
    start = HTML_START + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
    await call.send(start + _chunk(PAGE) + _chunk(b""))
    return 200


async def forged(call: Call) -> int:
    """Behind the body comes an answer to a question that was not asked; the connection stays open."""
    await call.send(_promising(len(PAGE)) + PAGE + FORGED)
    await call.writer.wait_closed()
    return 200


async def bad_chunk(call: Call) -> int:
    """After a good chunk one whose size is no number; or what `then` says."""
    await call.send(CHUNKED + _chunk(PAGE) + call.option("then", "zz\r\nmore\r\n").encode())
    return 0


async def raw(call: Call) -> int:
    """Whatever `hex` says instead of an answer."""
    await call.send(bytes.fromhex(call.option("hex", "")))
    return 0


BEHAVIOURS: dict[str, Behaviour] = {
    "/reset": reset,
    "/empty": empty,
    "/hang": hang,
    "/slow-bytes": slow_bytes,
    "/slow-headers": slow_headers,
    "/headers-without-end": headers_without_end,
    "/huge-headers": huge_headers,
    "/huge-header-line": huge_header_line,
    "/endless-interim": endless_interim,
    "/truncated": truncated,
    "/endless": endless,
    "/endless-chunks": endless_chunks,
    "/no-content-length": no_content_length,
    "/length": length,
    "/length-and-chunks": length_and_chunks,
    "/forged": forged,
    "/bad-chunk": bad_chunk,
    "/raw": raw,
}


def _promising(size: int) -> bytes:
    return HTML_START + b"Content-Length: %d\r\n\r\n" % size


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


async def _dribble(call: Call, start: bytes) -> int:
    await call.send(start)
    while True:
        await call.send(b"a")
        await asyncio.sleep(float(call.option("seconds", "0.2")))

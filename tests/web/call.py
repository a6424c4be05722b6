"""A request to misbehave at, and what the hostile behaviours answer with when they answer well."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from http import HTTPStatus

from tests.web.pages import Answer

HTML = (("Content-Type", "text/html; charset=utf-8"),)
HTML_START = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"
PAGE = b"<!DOCTYPE html><title>Hostile</title><p>some text</p>\n"

_PHRASES = {int(each): each.phrase for each in HTTPStatus}


@dataclass(frozen=True, slots=True)
class Call:
    """`argument` is the rest of the path, `times` how often the same was asked before."""

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

    async def stream(self, start: bytes, blocks: Iterable[bytes]) -> int:
        """Sends blocks one by one, so that nothing large is ever in memory; they may be endless."""
        await self.send(start)
        for block in blocks:
            await self.send(block)
        return 200

    async def reply(self, answer: Answer) -> int:
        """A whole answer; returns its status. The connection is closed after it."""
        await self.send(answer_bytes(answer))
        return answer.status

    async def page(self, body: bytes = PAGE, content_type: str = HTML[0][1]) -> int:
        """A good answer."""
        return await self.reply(Answer(200, (("Content-Type", content_type),) if content_type else (), body))

    async def missing(self) -> int:
        """For what a behaviour does not know: odd links lead anywhere."""
        return await self.reply(Answer(404, HTML, PAGE))


Behaviour = Callable[[Call], Awaitable[int]]


def answer_bytes(answer: Answer) -> bytes:
    """An answer as it goes over the wire."""
    lines = [f"HTTP/1.1 {answer.status} {_PHRASES.get(answer.status, 'Odd')}"]
    lines += [f"{name}: {value}" for name, value in answer.headers]
    lines += [f"Content-Length: {len(answer.body)}", "Connection: close", "", ""]
    return "\r\n".join(lines).encode("latin-1") + answer.body

"""A server that misbehaves: `python -m tests.web.hostile`. The path chooses how, `/` links to all the ways.

Each way is one function in BEHAVIOURS of a module hostile_*. How robots.txt is answered depends on the address that
is asked, see hostile_robots. The log counts what was asked; its status is 0 when no whole answer was sent.
"""

import argparse
import asyncio
from collections import Counter
from collections.abc import Sequence
from ipaddress import IPv4Address
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from tests.web import hostile_answers, hostile_encodings, hostile_pages, hostile_transfers
from tests.web.call import HTML, PAGE, Behaviour, Call
from tests.web.hostile_answers import ok
from tests.web.hostile_robots import KIND_OF_ADDRESS, ROBOTS_HOSTS, is_robots_path, robots_answer
from tests.web.hostile_transfers import hang
from tests.web.pages import Answer
from tests.web.serving import Head, RequestLog, read_head, run_server

CLOSED_LINK = b'<a href="/closed/page.html">closed</a>\n'
FIRST_PLAIN_HOST = IPv4Address("127.0.2.1")

# The start of the path; what follows it is the argument. The longest that fits counts.
BEHAVIOURS: dict[str, Behaviour] = {
    **hostile_answers.BEHAVIOURS,
    **hostile_encodings.BEHAVIOURS,
    **hostile_pages.BEHAVIOURS,
    **hostile_transfers.BEHAVIOURS,
}
# Arguments that make the links on the home page complete.
EXAMPLES = {
    "/redirect-loop-": "3", "/redirects/": "3", "/redirect-to": "?u=/ok", "/status/": "500", "/type/": "html",
    "/bomb/": "gzip", "/cut/": "gzip", "/encoding/": "sdch", "/pages/": "nested", "/charset/": "wrong",
    "/raw": "?hex=00",
}  # fmt: skip


def plain_hosts(count: int) -> list[str]:
    """Addresses besides those of hostile_robots, without a robots.txt: as many hosts as a test wants to keep apart."""
    return [str(FIRST_PLAIN_HOST + number) for number in range(count)]


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
        name = max((name for name in BEHAVIOURS if parts.path.startswith(name)), key=len, default="")
        query = parse_qs(parts.query, keep_blank_values=True)
        call = Call(writer, unquote(parts.path.removeprefix(name)), query, times)
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
    kind = KIND_OF_ADDRESS.get(call.writer.get_extra_info("sockname")[0], "none")
    answer = robots_answer(kind, call.argument, call.times)
    if answer is None:
        return await hang(call)
    if isinstance(answer, Answer):
        return await call.reply(answer)
    return await call.stream(*answer)


async def _home(call: Call) -> int:
    if call.argument.startswith("/closed/"):
        return await ok(call)
    if call.argument != "/":
        return await call.missing()
    if call.writer.get_extra_info("sockname")[0] not in KIND_OF_ADDRESS:
        return await ok(call)  # where each host has one way, a link home must not lead to the others
    links = "".join(f'<a href="{name}{EXAMPLES.get(name, "")}">{name}</a>\n' for name in BEHAVIOURS)
    return await call.reply(Answer(200, HTML, PAGE + CLOSED_LINK + links.encode()))


def addresses(hosts: int, ipv6: bool) -> Sequence[str]:
    """Where the server listens. 127.0.0.1 is localhost, which is a name that needs no name server."""
    return ["127.0.0.1", *ROBOTS_HOSTS.values(), *plain_hosts(hosts), *["::1"] * ipv6]


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--log", type=Path, help="one JSON line per request")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--hosts", type=int, default=0, help="further addresses, without a robots.txt")
    parser.add_argument("--ipv6", action="store_true", help="listen on ::1 as well")
    options = parser.parse_args()
    run_server(HostileServer(RequestLog(options.log)).serve, addresses(options.hosts, options.ipv6), options.port)


if __name__ == "__main__":
    main()

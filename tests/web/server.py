"""Serves a computed web: `python -m tests.web.server --hosts 3 --pages 30`.

All hosts share one port. They are the loopback addresses 127.0.0.2, 127.0.0.3, ... (no DNS needed), or with
`--names` h0.localhost, h1.localhost, ... on 127.0.0.1. The Host header says which one is meant.
"""

import argparse
import asyncio
from dataclasses import dataclass, field
from http import HTTPStatus
from ipaddress import IPv4Address
from pathlib import Path

from tests.web.changes import VALIDATORS, read_changes, unless_known, with_validators
from tests.web.graph import Web
from tests.web.pages import Answer, answer
from tests.web.resources import Resource
from tests.web.serving import CONTROL_HOST, Head, RequestLog, read_head, run_server

TEXT = (("Content-Type", "text/plain; charset=utf-8"),)
CHUNK_BYTES = 700
FIRST_ADDRESS = IPv4Address("127.0.0.2")


def host_names(count: int, *, names: bool) -> tuple[str, ...]:
    """The hosts of a web without their port."""
    if names:
        return tuple(f"h{number}.localhost" for number in range(count))
    return tuple(str(FIRST_ADDRESS + number) for number in range(count))


@dataclass(slots=True)
class WebServer:
    """Answers for a web. The web is made at the first request, when the port is known."""

    options: argparse.Namespace
    log: RequestLog
    webs: dict[int, Web] = field(default_factory=dict)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """All requests of one connection, one after the other."""
        while (head := await read_head(reader)) is not None:
            await self._serve_one(head, writer)
            if not head.keeps_alive:
                return

    async def _serve_one(self, head: Head, writer: asyncio.StreamWriter) -> None:
        reply, finished = self._answer(head, writer.get_extra_info("sockname")[1]), False
        try:
            if self.options.latency:
                await asyncio.sleep(self.options.latency)
            writer.write(_bytes(reply, head))
            await writer.drain()
            finished = True
        finally:
            self.log.add(head, writer, reply.status, finished=finished)

    def _answer(self, head: Head, port: int) -> Answer:
        web = self._web(port)
        if head.host == CONTROL_HOST:
            return Answer(204, (), b"")
        if head.method not in ("GET", "HEAD"):
            return Answer(405, (*TEXT, ("Allow", "GET, HEAD")), b"only GET and HEAD\n")
        if head.host not in web.hosts:
            return Answer(421, TEXT, b"no such host here\n")
        url = f"http://{head.host}{head.target}"
        changed = read_changes(self.options.changes).get(url) if self.options.changes else None
        if head.target == "/robots.txt" and changed is None:
            return _robots(web.robots_text(head.host))
        return unless_known(self._page(web, url, changed), head.headers)

    def _page(self, web: Web, url: str, changed: Resource | None) -> Answer:
        reply = answer(web.resource(url) if changed is None else changed)
        return with_validators(reply, self.options.validators, changed is not None)

    def _web(self, port: int) -> Web:
        if port not in self.webs:
            options = self.options
            names = options.called or host_names(options.hosts, names=options.names)
            hosts = tuple(f"{name}:{port}" for name in names)
            self.webs[port] = Web(hosts, options.pages, options.links, options.seed, options.odd)
        return self.webs[port]


def _robots(text: str | None) -> Answer:
    return Answer(404, TEXT, b"no robots.txt\n") if text is None else Answer(200, TEXT, text.encode())


def _bytes(reply: Answer, head: Head) -> bytes:
    lines = [f"HTTP/1.1 {reply.status} {HTTPStatus(reply.status).phrase}"]
    lines += [f"{name}: {value}" for name, value in reply.headers]
    chunked = reply.chunked and head.version == "HTTP/1.1"
    if chunked:
        lines.append("Transfer-Encoding: chunked")
    elif reply.status not in (204, 304):
        lines.append(f"Content-Length: {len(reply.body)}")
    if not head.keeps_alive:
        lines.append("Connection: close")
    start = "\r\n".join([*lines, "", ""]).encode("latin-1")
    if head.method == "HEAD":
        return start
    return start + (_in_chunks(reply.body) if chunked else reply.body)


def _in_chunks(body: bytes) -> bytes:
    parts = [body[at : at + CHUNK_BYTES] for at in range(0, len(body), CHUNK_BYTES)]
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in [*parts, b""])


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=3)
    parser.add_argument("--pages", type=int, default=30, help="plain pages per host")
    parser.add_argument("--links", type=int, default=5, help="random links per plain page")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--odd", type=int, default=1, choices=(0, 1), help="with the odd resources")
    parser.add_argument("--names", action="store_true", help="h0.localhost, ... instead of addresses")
    parser.add_argument("--called", action="append", help="the name of a host, with --names; repeated for each")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--changes", type=Path, help="what has changed: a file that is read at each request")
    parser.add_argument("--validators", default="etag", choices=VALIDATORS, help="what a conditional request can ask")
    parser.add_argument("--log", type=Path, help="one JSON line per request")
    parser.add_argument("--port", type=int, default=0)
    return parser.parse_args()


def main() -> None:
    """The program."""
    options = _options()
    addresses = ("127.0.0.1",) if options.names else host_names(options.hosts, names=False)
    run_server(WebServer(options, RequestLog(options.log)).serve, addresses, options.port)


if __name__ == "__main__":
    main()

"""The process of the filters, from outside: started, asked with a time limit, and killed when it does not answer."""

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from client.children import Child, ChildTrouble
from client.filtering.page import Page, send_page

_START_SECONDS = 60.0  # for all filters together; libraries with models take a while to load
_MAX_LINE_BYTES = 1 << 16
_RUBBISH = "wrote to a connection that is not its own"


class FilterProcess(Child):
    """One process with the filters of a folder. Used by one thread at a time; `kill` it when it is in trouble."""

    def __init__(self, folder: Path, max_seconds: float) -> None:
        self._max_seconds = max_seconds
        self._received = b""
        super().__init__("client.filtering.child", str(folder))
        try:
            self._wait_until_ready()
        except ChildTrouble:
            self.kill()
            raise

    def answers(self, page: Page, filters: Sequence[str]) -> Iterator[dict[str, Any]]:
        """What each of the filters says of the page, up to the first that discards it. ChildTrouble ends it."""
        self.link.settimeout(self._max_seconds)
        try:
            send_page(page, filters, self.link.sendall)
        except OSError as error:
            raise self.trouble(error) from error
        for _ in filters:
            yield self._message(self._max_seconds)

    def _wait_until_ready(self) -> None:
        deadline, loading = time.monotonic() + _START_SECONDS, "the filters"
        while True:
            try:
                message = self._message(deadline - time.monotonic())
            except ChildTrouble as error:
                raise ChildTrouble(f"{loading}: {error}") from error
            if "error" in message:
                raise ChildTrouble(message["error"])
            if "ready" in message:
                return
            loading = message.get("loading", loading)

    def _message(self, seconds: float) -> dict[str, Any]:
        deadline = time.monotonic() + seconds
        while b"\n" not in self._received:
            self.link.settimeout(max(0.001, deadline - time.monotonic()))
            try:
                piece = self.link.recv(1 << 14)
            except OSError as error:
                raise self.trouble(error) from error
            if not piece:
                raise self.trouble()
            if len(self._received) > _MAX_LINE_BYTES:
                raise ChildTrouble(_RUBBISH)
            self._received += piece
        line, _, self._received = self._received.partition(b"\n")
        try:
            return dict(json.loads(line))
        except (ValueError, TypeError) as error:
            raise ChildTrouble(_RUBBISH) from error

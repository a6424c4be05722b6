"""The process that reads pages which may do harm, from outside: asked with a time limit, killed when in trouble."""

import json
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, TypeVar

from client.children import Child, ChildTrouble
from client.reading.seen import Seen, Wanted
from client.sitemaps import Sitemap

_MAX_LINE_BYTES = 1 << 12
_T = TypeVar("_T")


class ReadingProcess(Child):
    """One process. Used by one thread at a time; `kill` it when it is in trouble."""

    def __init__(self) -> None:
        super().__init__("client.reading.child")
        self._stream = self.link.makefile("rb")

    def read(self, html: bytes, wanted: Wanted, max_seconds: float) -> Seen:
        """ChildTrouble if there is no answer. Of a page that is far too much, the beginning is read."""
        return self._ask({"wanted": asdict(wanted)}, html, max_seconds, Seen.unpacked)

    def read_sitemap(self, body: bytes, url: str, content_type: str, max_seconds: float) -> Sitemap:
        """As client.sitemaps reads it. ChildTrouble if there is no answer."""
        return self._ask({"sitemap": [url, content_type]}, body, max_seconds, Sitemap.unpacked)

    def _ask(self, head: dict[str, Any], body: bytes, max_seconds: float, unpacked: Callable[[bytes], _T]) -> _T:
        deadline = time.monotonic() + max_seconds
        try:
            for part in (json.dumps(head | {"size": len(body)}).encode() + b"\n", body):
                self._limit(deadline)
                self.link.sendall(part)
            answer = self._answer(deadline)
            self._limit(deadline)
            packed = self._stream.read(answer["size"])
        except OSError as error:
            raise self.trouble(error) from error
        if len(packed) < answer["size"]:
            raise self.trouble()
        try:
            return unpacked(packed)
        except (ValueError, TypeError, LookupError) as error:
            raise ChildTrouble(f"answered nonsense: {error}") from error

    def _limit(self, deadline: float) -> None:
        self.link.settimeout(max(0.001, deadline - time.monotonic()))

    def _answer(self, deadline: float) -> dict[str, Any]:
        self._limit(deadline)
        line = self._stream.readline(_MAX_LINE_BYTES)
        if not line.endswith(b"\n"):
            raise self.trouble()
        answer = json.loads(line)  # a line of ours: it ends with its \n
        if "trouble" in answer:
            raise ChildTrouble(answer["trouble"])
        return dict(answer)

    def kill(self) -> None:
        self._stream.close()
        super().kill()

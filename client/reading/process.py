"""The process that reads pages which may do harm, from outside: asked with a time limit, killed when in trouble."""

import json
from typing import Any

from client.children import Child, ChildTrouble
from client.reading.seen import Seen, Wanted

_MAX_LINE_BYTES = 1 << 12


class ReadingProcess(Child):
    """One process. Used by one thread at a time; `kill` it when it is in trouble."""

    def __init__(self) -> None:
        super().__init__("client.reading.child")
        self._stream = self.link.makefile("rb")

    def read(self, html: bytes, wanted: Wanted, max_seconds: float) -> Seen:
        """ChildTrouble if there is no answer. Of a page that is far too much, the beginning is read."""
        self.link.settimeout(max_seconds)
        head = {"size": len(html), "unfollowed": wanted.unfollowed, "shown": wanted.shown}
        try:
            self.link.sendall(json.dumps(head).encode() + b"\n")
            self.link.sendall(html)
            answer = self._answer()
            packed = self._stream.read(answer["size"])
        except OSError as error:
            raise self.trouble(error) from error
        if len(packed) < answer["size"]:
            raise self.trouble()
        try:
            return Seen.unpacked(packed)
        except (ValueError, TypeError, LookupError) as error:
            raise ChildTrouble(f"answered nonsense: {error}") from error

    def _answer(self) -> dict[str, Any]:
        line = self._stream.readline(_MAX_LINE_BYTES)
        if not line.endswith(b"\n"):
            raise self.trouble()
        try:
            answer: dict[str, Any] = json.loads(line)
        except ValueError as error:
            raise ChildTrouble(f"answered nonsense: {error}") from error
        if "trouble" in answer:
            raise ChildTrouble(answer["trouble"])
        return answer

    def kill(self) -> None:
        self._stream.close()
        super().kill()

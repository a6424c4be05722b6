"""A name server that lies, fails and changes its mind. Pure but for `serve`: a question in, an answer out.

Knows A and AAAA only, over UDP. A name is asked for each kind apart, so the kinds are counted apart.
"""

import socket
import struct
from collections import Counter
from dataclasses import dataclass
from ipaddress import ip_address

PUBLIC = "93.184.216.34"
PUBLIC_6 = "2606:2800:220:1::1"

_A, _CNAME, _AAAA = 1, 5, 28
_TTL_SECONDS = 0  # an honest resolver would ask again at once
_HEADER = struct.Struct("!6H")


@dataclass(frozen=True, slots=True)
class Name:
    """What is answered for one name. With several lists of addresses, each question gets the next one."""

    addresses: tuple[tuple[str, ...], ...] = ((),)
    code: int = 0  # 2: failure, 3: no such name, 5: refused
    alias: str = ""
    junk: bool = False  # bytes that are no answer
    silent: bool = False


ZONE = {
    "public.example": Name(((PUBLIC,),)),
    "public6.example": Name(((PUBLIC_6,),)),
    "missing.example": Name(code=3),
    "failing.example": Name(code=2),
    "refused.example": Name(code=5),
    "empty.example": Name(),
    "junk.example": Name(junk=True),
    "silent.example": Name(silent=True),
    "circle.example": Name(alias="circle.example"),
    "private.example": Name((("10.0.0.1",),)),
    "loopback.example": Name((("127.0.0.1",),)),
    "metadata.example": Name((("169.254.169.254",),)),
    "zero.example": Name((("0.0.0.0",),)),
    "loopback6.example": Name((("::1",),)),
    "local6.example": Name((("fd00::1",),)),
    "mapped.example": Name((("::ffff:127.0.0.1",),)),
    "alias.example": Name(alias="loopback.example"),
    "mixed.example": Name((("10.0.0.1", "127.0.0.1", PUBLIC),)),
    "intranet.example": Name((("10.0.0.5",),)),
    "moving.example": Name((("10.0.0.6",), ("10.0.0.7",))),
    "to-metadata.example": Name((("10.0.0.8",), ("169.254.169.254",))),
    "from-public.example": Name(((PUBLIC,), ("10.0.0.9",))),
    "changing.example": Name(((PUBLIC,), ("10.0.0.1",))),
}


class Zone:
    """The names, and how often each was asked for."""

    def __init__(self, names: dict[str, Name]) -> None:
        self._names = names
        self._asked: Counter[tuple[str, int]] = Counter()

    def answer(self, question: bytes) -> bytes | None:
        """The answer to one question; None: never."""
        name, kind, end = _read_question(question)
        entry = self._names.get(name, Name(code=3))
        if entry.silent:
            return None
        if entry.junk:
            return b"\xff" * 40
        number = self._asked[name, kind]
        self._asked[name, kind] += 1
        records = self._records(name, entry, kind, number)
        flags = 0x8180 | entry.code  # an answer, from a server that looks further itself
        head = _HEADER.pack(_id(question), flags, 1, len(records), 0, 0)
        return head + question[_HEADER.size : end] + b"".join(records)

    def _records(self, owner: str, entry: Name, kind: int, number: int) -> list[bytes]:
        if entry.alias:
            target = self._names[entry.alias]
            own = _record(owner, _CNAME, _encoded(entry.alias))
            return [own, *(self._records(entry.alias, target, kind, number) if not target.alias else [])]
        addresses = map(ip_address, entry.addresses[min(number, len(entry.addresses) - 1)])
        return [
            _record(owner, kind, address.packed)
            for address in addresses
            if kind == (_A if address.version == 4 else _AAAA)
        ]


def _read_question(message: bytes) -> tuple[str, int, int]:
    labels, position = [], _HEADER.size
    while length := message[position]:
        labels.append(message[position + 1 : position + 1 + length].decode("ascii", "replace"))
        position += 1 + length
    kind = int.from_bytes(message[position + 1 : position + 3], "big")
    return ".".join(labels).lower(), kind, position + 5


def _id(message: bytes) -> int:
    return int.from_bytes(message[:2], "big")


def _encoded(name: str) -> bytes:
    return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"


def _record(owner: str, kind: int, data: bytes) -> bytes:
    return _encoded(owner) + struct.pack("!HHIH", kind, 1, _TTL_SECONDS, len(data)) + data


def serve(zone: Zone, listening: socket.socket) -> None:
    """Answers for ever."""
    while True:
        question, asker = listening.recvfrom(4096)
        if (answer := zone.answer(question)) is not None:
            listening.sendto(answer, asker)

"""What is seen in a page, and how it gets from one process to another. References are as written, not resolved."""

import json
from dataclasses import asdict, dataclass, field

from client import embedded, links, text
from client.walk import parsed, walk


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be looked for besides links and text."""

    unfollowed: bool = False
    shown: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """What a page says. `length` is how much of it was read, in bytes."""

    length: int
    title: str
    base: str  # of the first <base>
    metas: list[tuple[str, str]]  # name in lower case, and content
    references: dict[str, str]  # each with its first text that is not empty
    text: str  # each run of white space as one blank
    unfollowed: list[str] = field(default_factory=list)  # references that are only made with rel=nofollow
    shown: list[str] = field(default_factory=list)  # references to images, style sheets and the like

    def packed(self) -> bytes:
        return json.dumps(asdict(self), ensure_ascii=False).encode()

    @classmethod
    def unpacked(cls, data: bytes) -> "Seen":
        seen = json.loads(data)
        return cls(**seen | {"metas": [(name, content) for name, content in seen["metas"]]})


def see(html: bytes, wanted: Wanted) -> Seen:
    """Read HTML in UTF-8. How long that takes, and how much memory, is up to the page: see bounds.py."""
    page = parsed(html)
    walked = walk(page)
    return Seen(
        len(html),
        text.title(page),
        walked.base,
        walked.metas,
        walked.references,
        walked.text,
        list(links.unfollowed([page, *walked.unframed])) if wanted.unfollowed else [],
        list(embedded.references(page)) if wanted.shown else [],
    )

"""What a page asks of robots: <meta name=robots>, <meta> with our own name, and X-Robots-Tag headers.

Pure. Directives for all robots and those for us add up, as search engines have it. Known are noindex, noarchive,
nofollow and none; all others, unavailable_after among them, are about showing a page and mean nothing to a crawler.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from client.blanks import BLANKS

_EVERYBODY = frozenset(["", "*", "robots"])
_SEPARATORS = re.compile(f"[,;{re.escape(BLANKS)}]+")
_ADDRESSEE = re.compile(r"\s*([A-Za-z0-9_.*-]+)\s*:")
_WITH_VALUE = frozenset(["unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"])


@dataclass(frozen=True, slots=True)
class Directives:
    """What we may do with a page."""

    follow: bool = True
    refusal: str = ""  # the directive by which it may not be kept


FREE = Directives()


def directives(headers: Iterable[str], metas: Iterable[tuple[str, str]], agent: str) -> Directives:
    """What X-Robots-Tag `headers` and `metas`, pairs of name and content, mean for `agent`."""
    words = {word for header in headers for word in _header_words(header, agent)}
    names = {"robots", agent.lower()}
    for name, content in metas:
        if name in names:
            words.update(_SEPARATORS.split(content.lower()))
    if not words:
        return FREE
    if "none" in words:
        words |= {"noindex", "nofollow"}
    refusal = next((word for word in ("noindex", "noarchive") if word in words), "")
    return Directives("nofollow" not in words, refusal)


def _header_words(header: str, agent: str) -> Iterable[str]:
    """The words of one header line that are for us: `name:` begins those for the robot of that name."""
    names = _EVERYBODY | {agent.lower()}
    is_ours = True
    for part in header.lower().split(","):
        addressee = _ADDRESSEE.match(part)
        if addressee and addressee[1] not in _WITH_VALUE:
            is_ours = addressee[1] in names
            part = part[addressee.end() :]
        if is_ours:
            yield from _SEPARATORS.split(part)

"""The rules of one robots.txt for one agent, by RFC 9309. Pure: bytes in, object out, then questions.

Which lines count for us is decided here; patterns, their precedence and Crawl-delay are protego's. It differs from
the RFC in some points, and is given rules and URLs in a form where these do not show:
- it takes a group for a longer or shorter agent name too, and lets other records end a group: we pick the lines;
- it reads a `$` at the end also as the character: the character has another form here, on both sides;
- it takes all octets that are no UTF-8 for the same: they are escaped once more;
- it holds `/` and `%2F` for different in the query (§2.2.2 has them equal): there, %2F is undone;
- it holds `?` and `%3F` for the same, which moves the end of the path: the escape has another form here;
- `Allow: /index.html` makes it allow `/` too: for URLs that end in a slash such lines are left out.
"""

import re
from collections.abc import Iterable, Iterator
from urllib.parse import unquote, unquote_to_bytes

from protego import Protego

from client.blanks import BLANKS, trimmed
from common.urls import path_of, resolve

MAX_BYTES = 512 << 10  # RFC 9309 §2.5 wants at least 500 KiB
_MAX_SITEMAPS = 1000

# Misspellings that protego and the large crawlers accept. The colon may be missing, too.
_BLANK = f"[{re.escape(BLANKS)}]"
_LINE = re.compile(
    rf"{_BLANK}*(?:(?P<agent>user[- ]?agent)|(?P<disallow>dis?sall?[ao]w|diasllow)|(?P<allow>allow)"
    rf"|(?P<delay>crawl[- ]delay)|(?P<sitemap>site-?maps?)){_BLANK}*(?::|{_BLANK})(?P<value>[^#]*)",
    re.IGNORECASE | re.ASCII,
)
_LINE_END = re.compile(rb"\r\n?|\n")
_NOT_PRINTABLE = re.compile(rb"[^\x20-\x7e]")
_TOKEN = re.compile(r"[A-Za-z0-9_-]+")
_HIGH_ESCAPES = re.compile(r"(?:%[89A-Fa-f][0-9A-Fa-f])+")
_SLASH_ESCAPE = re.compile(r"%2F", re.IGNORECASE)
_QUESTION_ESCAPE = re.compile(r"%3F", re.IGNORECASE)
_DOLLAR = "%01"  # stands for the character; as long as %24, and in no sane URL
_QUESTION = "%02"  # the same for %3F
_INDEX = "index.html"
_ANYONE = "*"


class Rules:
    """What one robots.txt says to one agent. Immutable, so that all threads may ask."""

    __slots__ = ("_main", "_without_index", "crawl_delay", "sitemaps", "weight")

    def __init__(self, content: bytes, agent_name: str) -> None:
        lines, sitemaps = _select(_fields(content), _token(agent_name))
        lines = list(dict.fromkeys(lines))
        self.weight = sum(map(len, lines)) + sum(map(len, sitemaps))
        self.sitemaps = sitemaps
        self._main = _parse(lines)
        without = [line for line in lines if not _allows_index(line)]
        self._without_index = _parse(without) if len(without) < len(lines) else self._main
        self.crawl_delay: float | None = self._main.crawl_delay(_ANYONE) if self._main else None

    def allows(self, url: str) -> bool:
        """Whether these rules let the agent request `url`, an address of the origin they came from."""
        parser = self._main
        if parser is not self._without_index and url.endswith("/") and _INDEX not in unquote(url):
            parser = self._without_index
        if parser is None:
            return True
        # The host is a constant: protego would take a path that begins with // for one.
        return parser.can_fetch("http://h" + _canonical(path_of(url)), _ANYONE)


def _parse(lines: list[str]) -> Protego | None:
    return Protego.parse("\n".join([f"User-agent: {_ANYONE}", *lines])) if lines else None


def _allows_index(line: str) -> bool:
    return line.startswith("Allow:") and unquote(line).endswith(f"/{_INDEX}")


def _token(agent: str) -> str:
    """The product token of a User-agent value: `Pavouk/2.0 (beta)` is about pavouk."""
    match = _TOKEN.match(agent)
    return (match[0] if match else agent).lower()


def _fields(content: bytes) -> Iterator[tuple[str, str]]:
    """Kind and value of each line that means something. Octets beyond ASCII are escaped (§2.2.2).

    Blanks around a value do not count, whichever they are: `/a` with a no-break space behind it would disallow nothing.
    """
    for line in _LINE_END.split(_beginning(content)):
        if match := _LINE.match(line.decode("utf-8", "surrogateescape")):
            value = trimmed(match["value"]).encode("utf-8", "surrogateescape")
            yield _kind(match), _NOT_PRINTABLE.sub(lambda octet: b"%%%02X" % octet[0][0], value).decode("ascii")


def _kind(match: re.Match[str]) -> str:
    return next(name for name in ("agent", "disallow", "allow", "delay", "sitemap") if match[name])


def _beginning(content: bytes) -> bytes:
    """At most MAX_BYTES, and no line in halves: half a pattern is another pattern."""
    if len(content) <= MAX_BYTES:
        return content
    head = content[:MAX_BYTES]
    return head[: max(head.rfind(b"\n"), head.rfind(b"\r")) + 1]


def _select(fields: Iterable[tuple[str, str]], token: str) -> tuple[list[str], tuple[str, ...]]:
    """The lines for our agent: of all groups that name it, else of those for everyone (§2.2.1); and sitemaps.

    Only allow and disallow end the list of a group's agents. Other records must not (§2.2.4), not even
    Crawl-delay: agents before and behind it share the rules that follow. A second Crawl-delay is for those behind
    the first only.
    """
    chosen: dict[str, list[str]] = {}
    delayed: set[str] = set()
    current: set[str] = set()
    naming = False
    sitemaps: dict[str, None] = {}
    for kind, value in fields:
        if kind == "agent":
            current = current if naming else set()
            naming = True
            if (name := _ANYONE if value.split()[:1] == [_ANYONE] else _token(value)) in (token, _ANYONE):
                current.add(name)
                chosen.setdefault(name, [])
        elif kind == "sitemap":
            sitemaps[value] = None
        elif kind == "delay":
            for name in current - delayed:
                chosen[name].append(f"Crawl-delay: {value}")
            delayed |= current
        else:
            naming = False
            for name in current:
                chosen[name].append(_rule(kind, value))
    sitemaps.pop("", None)
    return chosen.get(token, chosen.get(_ANYONE, [])), tuple(sitemaps)[:_MAX_SITEMAPS]


def _rule(kind: str, value: str) -> str:
    pattern, end = (value[:-1], "$") if value.endswith("$") else (value, "")
    return f"{kind.capitalize()}: {_canonical(pattern)}{end}"


def _canonical(path: str) -> str:
    """Path and query in the form in which rules and URLs are handed to protego."""
    if "$" in path:
        path = path.replace("$", _DOLLAR)
    if "%" not in path:
        return path
    path = _QUESTION_ESCAPE.sub(_QUESTION, path.replace("%24", _DOLLAR))
    path = _HIGH_ESCAPES.sub(_escape_junk, path)
    before, mark, query = path.partition("?")
    return before + mark + _SLASH_ESCAPE.sub("/", query) if query else path


def _escape_junk(run: re.Match[str]) -> str:
    """Escapes of octets that are no UTF-8, escaped once more."""
    text = unquote_to_bytes(run[0]).decode("utf-8", "surrogateescape")
    return "".join(f"%25{ord(char) - 0xDC00:02X}" if "\udc80" <= char <= "\udcff" else _escaped(char) for char in text)


def _escaped(char: str) -> str:
    return "".join(f"%{octet:02X}" for octet in char.encode())


def sitemap_addresses(origin: str, sitemaps: Iterable[str]) -> tuple[str, ...]:
    """Sitemap lines as addresses, without those that are none."""
    return tuple(url for value in sitemaps if (url := resolve(value, f"{origin}/robots.txt")))

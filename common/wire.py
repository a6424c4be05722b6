"""The values that cross the network between URL server and client, and how an outcome is named.

Immutable values without behaviour. Tables travel as text, a row per line and a tab between fields: plain SOAP for any
tool kit, and far cheaper than an element per URL for both ends. Rows of tables are named tuples, because they are made
by the hundred thousand, and a frozen dataclass costs four times as much to make.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from math import isfinite
from typing import Any, NamedTuple, TypeVar

from common import urls

Row = TypeVar("Row")

MAX_ROWS = 10_000  # of a table in one report: as many as a job can have URLs

_NO_DEFAULT = object()
_SHOWN = 100  # characters of an error at either end


class Outcome(StrEnum):
    """What became of one URL. The value is the word used on the wire, in the blacklist and in the manual."""

    STORED = "stored"  # the page is in Pages/
    UNCHANGED = "unchanged"  # a conditional request found nothing new
    REDIRECTED = "redirected"  # the target is among the found URLs
    DISALLOWED = "disallowed"  # robots.txt says no
    UNWANTED = "unwanted"  # not HTML, and document_save is off; or it asks not to be kept; or a filter discards it
    NOT_FOUND = "not_found"  # 404, 410
    CLIENT_ERROR = "client_error"  # any other 4xx
    SERVER_ERROR = "server_error"  # 5xx
    BUSY = "busy"  # 429, or 503 with Retry-After
    ROBOTS_UNREACHABLE = "robots_unreachable"  # RFC 9309: disallowed until robots.txt answers
    DNS = "dns"  # the name does not resolve
    REFUSED = "refused"  # nobody listens, or no route
    TIMEOUT = "timeout"  # connecting, waiting or the whole fetch took too long
    TLS = "tls"  # certificate or handshake
    BROKEN = "broken"  # the answer broke off or is no HTTP
    TOO_LARGE = "too_large"  # body or headers beyond the limits
    BAD_CONTENT = "bad_content"  # the content encoding cannot be undone, or nothing of a sitemap can be read
    BAD_REDIRECT = "bad_redirect"  # no usable target, or too many hops
    FORBIDDEN_ADDRESS = "forbidden_address"  # a loopback, private or otherwise closed address
    INTERNAL = "internal"  # our own mistake; the log of the client has it
    SKIPPED = "skipped"  # not asked for: its host does not answer, or was asked back; no try
    LISTED = "listed"  # a sitemap, not stored: what it says is among the listed

    __hash__ = str.__hash__  # Enum's own is Python code: this is looked up for every URL of every report


class Kind(StrEnum):
    """What a URL is asked for."""

    PAGE = "page"
    SITEMAP = "sitemap"  # to be read and not stored; somebody names it
    GUESSED = "guessed"  # the same; nobody names it, so that its failure is no news

    __hash__ = str.__hash__


class UrlTask(NamedTuple):
    """One URL of a job, with what a conditional request needs."""

    url: str  # the address
    depth: int = 0  # links from a start URL
    hops: int = 0  # redirects that led here
    etag: str = ""
    last_modified: str = ""
    sha1: str = ""  # of the body that is stored, as hexadecimal digits
    kind: Kind = Kind.PAGE


class HostShare(NamedTuple):
    """How a client may use one host of its job."""

    host: str
    delay_seconds: float
    connections: int = 1
    allow_private: bool = False  # it may be at any address
    slot: str = ""  # hosts with the same one share their delay and connections; empty: only with itself
    private: str = ""  # the private addresses, a blank between them, at which it may be beside all public ones


@dataclass(frozen=True, slots=True)
class JobSettings:
    """What the client must follow while it works on a job. Names as in config.cfg where they are keys there."""

    ftp_host: str  # empty: the host of the URL server
    ftp_port: int
    ftp_user: str
    ftp_password: str
    ftp_tls: bool
    agent_name: str
    contact: str
    robots_control: bool
    page_parse: bool
    document_save: bool
    drop_index_names: bool
    bundle_format: str
    max_body_bytes: int
    max_header_bytes: int
    max_redirects: int
    connect_timeout_seconds: float
    idle_timeout_seconds: float
    fetch_timeout_seconds: float
    max_crawl_delay_seconds: float
    report_seconds: float
    verify_tls: bool
    page_directives: bool
    rel_nofollow: bool
    repeat_links: bool = False  # links that were reported before are wanted again: they change whose turn it is
    recrawl: bool = False  # pages are visited again: results are to say what a conditional request will need
    sitemaps: bool = False  # sitemaps of the hosts are wanted
    few_index_names: bool = False  # the crawl began when fewer default index names were known

    def identity(self, address: str) -> str:
        """The key under which an address and its other spellings are one page of this crawl."""
        return urls.identity(address, self.drop_index_names, self.few_index_names)


@dataclass(frozen=True, slots=True)
class Job:
    """Work for one client. Without tasks: come back after `wait_seconds`."""

    job: str
    lease_seconds: float
    wait_seconds: float
    tasks: Sequence[UrlTask]
    hosts: Sequence[HostShare]
    settings: JobSettings
    finished: bool = False  # nothing is queued or leased any more, or a limit is reached
    give_back: Sequence[str] = ()  # hosts: what has not been begun with of these is to be reported as skipped


class UrlResult(NamedTuple):
    """The outcome of one URL of a job."""

    url: str
    outcome: Outcome
    status: int = 0
    size: int = 0  # bytes of the body
    detail: str = ""  # for a person
    etag: str = ""  # these two only with `recrawl`
    last_modified: str = ""
    sha1: str = ""  # of the body, as hexadecimal digits: of what is stored, and with `recrawl` of what was read


class FoundUrl(NamedTuple):
    """A link or a redirect target."""

    url: str
    depth: int
    hops: int = 0


class ListedUrl(NamedTuple):
    """What a sitemap lists, or a sitemap that is named somewhere."""

    url: str
    depth: int
    modified: int = 0  # when it changed last, in seconds since 1970; 0: not known
    kind: Kind = Kind.PAGE
    hops: int = 0  # of a sitemap: indexes and redirects between robots.txt and it
    host: str = ""  # that says so; empty: its own, or one whose sitemap its own robots.txt names


class HostFact(NamedTuple):
    """What a client learned about a host and the server should know."""

    host: str
    address: str = ""  # the IP address that answered
    crawl_delay_seconds: float = -1.0  # from robots.txt; below zero: none given
    retry_after_seconds: float = 0.0
    latency_seconds: float = 0.0  # from request to answer, on average; 0: not measured


@dataclass(frozen=True, slots=True)
class Report:
    """What a client did; may cover a part of a job. `size` is the number of bytes uploaded."""

    job: str
    results: Sequence[UrlResult]
    found: Sequence[FoundUrl]
    hosts: Sequence[HostFact] = ()
    size: int = 0
    listed: Sequence[ListedUrl] = ()


@dataclass(frozen=True, slots=True)
class Receipt:
    """The server's answer to a report: what counted, what somebody else has, what was not known before."""

    accepted: int
    refused: int
    new_urls: int


@dataclass(frozen=True, slots=True)
class Totals:
    """The frontier in numbers. `known` is counted by itself, so that the sum of the states can be checked."""

    known: int = 0
    queued: int = 0
    leased: int = 0
    done: int = 0
    failed: int = 0
    excluded: int = 0
    stored: int = 0  # those that have a page in Pages/
    sent: int = 0  # URLs handed out, again counted each time
    size: int = 0  # bytes uploaded
    hosts: int = 0
    again: int = 0  # those of `queued` that bring no new page: stored ones to be visited again, and sitemaps
    again_leased: int = 0  # those of `leased`
    revisits: int = 0  # further visits of stored pages that have ended
    revisions: int = 0  # those of `revisits` that stored another version of the page
    unchanged: int = 0  # those of `revisits` that found nothing new
    processed: int = 0  # those of `sent` that went well: stored, unchanged, redirected or listed

    @property
    def is_sound(self) -> bool:
        return self.known == self.queued + self.leased + self.done + self.failed + self.excluded


# What XML 1.0 cannot carry, and what separates our fields. Header values come from strangers.
_NOT_TEXT = re.compile("[\x00-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


def clean_text(text: str) -> str:
    """`text` with everything that could break a row or an XML document replaced by a blank."""
    return _NOT_TEXT.sub(" ", text)


def to_table(rows: Iterable[tuple[Any, ...]]) -> str:
    """Rows of one of the named tuples above as text. Fields at the end that have their default are left out."""
    return "\n".join([_to_row(row) for row in rows])


def from_table(kind: type[Row], text: str) -> list[Row]:
    """Undo `to_table`; a line that does not fit raises ValueError with its number, and not with all that is in it."""
    parsers = _parsers(kind)  # type: ignore[arg-type]
    rows = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line or line.isspace():
            continue
        cells = line.strip("\r ").split("\t")
        try:
            if len(cells) > len(parsers):
                raise ValueError(f"{len(cells)} fields instead of at most {len(parsers)}")
            rows.append(kind(*[parse(cell) for parse, cell in zip(parsers, cells, strict=False)]))
        except (ValueError, TypeError) as error:
            raise ValueError(f"line {number} of the {kind.__name__} table: {_shortened(str(error))}") from error
    return rows


def _shortened(text: str) -> str:
    """What is wrong stands before the cell that is quoted, or behind it."""
    if len(text) <= 2 * _SHOWN:
        return text
    return f"{text[:_SHOWN]} … {text[-_SHOWN:]}"


def _to_row(row: tuple[Any, ...]) -> str:
    defaults = _defaults(type(row))
    length = len(row)
    while length > 1 and row[length - 1] == defaults[length - 1]:
        length -= 1
    return "\t".join([clean_text(cell) if isinstance(cell, str) else _number(cell) for cell in row[:length]])


@cache
def _defaults(kind: Any) -> tuple[Any, ...]:
    return tuple(kind._field_defaults.get(name, _NO_DEFAULT) for name in kind._fields)


@cache
def _parsers(kind: Any) -> tuple[Callable[[str], Any], ...]:
    return tuple(_PARSERS[kind.__annotations__[name]] for name in kind._fields)


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def _finite(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise ValueError(f"{text!r} is not a finite number")
    return value


_PARSERS: dict[type, Callable[[str], Any]] = {
    str: str,
    int: int,
    float: _finite,
    bool: lambda text: bool(int(text)),
    Outcome: Outcome,
    Kind: Kind,
}

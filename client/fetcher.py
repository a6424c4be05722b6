"""One request of one URL per turn: robots.txt first, then the page, then each redirect to another spelling of it.

So the schedule can put the host's delay between any two requests. Parses nothing and waits for nothing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from client.fields import HTML_TYPES, charset, looks_like_html, media_type, retry_after_seconds
from client.results import FetchResult
from client.robots import Robots, Verdict
from client.rules import MAX_BYTES as MAX_ROBOTS_BYTES
from client.sitemaps import MAX_BYTES as MAX_SITEMAP_BYTES
from client.transport import Headers, Limits, Response, Transport, TransportError
from common.clock import Clock
from common.urls import host_of, origin_of, resolve
from common.wire import HostShare, JobSettings, Kind, Outcome, UrlTask, clean_text

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_MAX_DETAIL = 200
_MAX_ETAG = 500  # longer ones are not kept: they would travel with each job
_MAX_DATE = 60


class Turn(Enum):
    """The visit is not over."""

    AGAIN = "again"  # a request was made: another turn after the host's delay
    PENDING = "pending"  # another thread is asking for robots.txt: try a bit later, no delay is due


@dataclass(slots=True)
class Visit:
    """One URL on its way. Used by one thread at a time."""

    task: UrlTask
    share: HostShare
    settings: JobSettings
    url: str = ""  # the address to request next; the task's at first
    seen: list[str] = field(default_factory=list)  # addresses that redirected within the same identity

    def __post_init__(self) -> None:
        self.url = self.url or self.task.url


class Fetcher:
    """Takes visits a step further. One for each download thread; `robots` is shared by all."""

    def __init__(self, transport: Transport, robots: Robots, clock: Clock) -> None:
        self._transport = transport
        self._robots = robots
        self._clock = clock

    def turn(self, visit: Visit) -> FetchResult | Turn:
        """Make at most one request for `visit`; its result if that settles it. Trouble is a result too."""
        if visit.settings.robots_control:
            decided = self._ask_robots(visit)
            if decided is not None:
                return decided
        return self._ask_page(visit)

    def let_go(self) -> None:
        """The last result is in other hands: its body is not ours to count any more."""
        self._transport.let_go()

    def close(self) -> None:
        """Close its connections."""
        self._transport.close()

    def _ask_robots(self, visit: Visit) -> FetchResult | Turn | None:
        """None if the page may be requested."""
        verdict = self._robots.verdict(visit.url)
        if verdict is Verdict.ALLOWED:
            return None
        if verdict is Verdict.UNKNOWN:
            return self._fetch_robots(visit)
        if verdict is Verdict.PENDING:
            return Turn.PENDING
        outcome, detail = Outcome.DISALLOWED, "robots.txt"
        if verdict is Verdict.UNREACHABLE:
            outcome, detail = self._robots.trouble(origin_of(visit.url))
        return self._refusal(visit, outcome, detail)

    def _fetch_robots(self, visit: Visit) -> Turn:
        origin = origin_of(visit.url)
        url = self._robots.claim(origin)
        if url is None:
            return Turn.PENDING
        try:
            self._robots.answer(origin, self._robots_answer(visit, url))
        except BaseException:  # a mistake of ours: the others must not wait for an answer that never comes
            self._robots.release(origin)
            raise
        self._transport.let_go()
        return Turn.AGAIN

    def _robots_answer(self, visit: Visit, url: str) -> Response | TransportError:
        limits = _limits(visit.settings, MAX_ROBOTS_BYTES + 1)  # the byte too many shows that there is more
        try:
            return self._transport.request(url, limits, (), *_permission(visit, url), _is_success, cut=True)
        except TransportError as error:
            return error

    def _ask_page(self, visit: Visit) -> FetchResult | Turn:
        is_sitemap = visit.task.kind is not Kind.PAGE

        def wanted(status: int, headers: Headers) -> bool:
            return _is_page(status) and (visit.settings.document_save or is_sitemap or _may_be_html(headers))

        # The byte too many of a sitemap shows that there is more; what comes before it counts.
        limits = _limits(visit.settings, MAX_SITEMAP_BYTES + 1 if is_sitemap else visit.settings.max_body_bytes)
        conditions = tuple(_conditions(visit.task))
        try:
            permission = _permission(visit, visit.url)
            response = self._transport.request(visit.url, limits, conditions, *permission, wanted, cut=is_sitemap)
        except TransportError as error:
            return self._failure(visit, error)
        return self._judge(visit, response)

    def _judge(self, visit: Visit, response: Response) -> FetchResult | Turn:
        status = response.status
        if _is_page(status):
            return self._page(visit, response)
        if status in _REDIRECTS:
            return self._redirect(visit, response)
        if status == 304 and any(_conditions(visit.task)):
            return _with_validators(self._result(visit, response, Outcome.UNCHANGED), response)
        return self._result(visit, response, self._refused_by_status(response), f"status {status}")

    def _refused_by_status(self, response: Response) -> Outcome:
        status = response.status
        if status < 300 or status == 304:  # 206 and 304, which nobody asked for
            return Outcome.BROKEN
        if status < 400:
            return Outcome.BAD_REDIRECT
        if status in (404, 410):
            return Outcome.NOT_FOUND
        if status == 429 or (status == 503 and self._wait(response) is not None):
            return Outcome.BUSY
        return Outcome.CLIENT_ERROR if status < 500 else Outcome.SERVER_ERROR

    def _page(self, visit: Visit, response: Response) -> FetchResult:
        """A page with or without content. 204 and 205 are stored as empty pages: that is what the URL has."""
        value = response.headers.get("Content-Type")
        kind = media_type(value)
        if not kind and looks_like_html(response.body):
            kind = "text/html"
        if not visit.settings.document_save and visit.task.kind is Kind.PAGE and kind not in HTML_TYPES:
            unwanted = self._result(visit, response, Outcome.UNWANTED, kind or "no content type")
            return replace(unwanted, content_type=kind)
        return replace(
            _with_validators(self._result(visit, response, Outcome.STORED), response),
            content_type=kind,
            charset=clean_text(charset(value)),
            robots_tags=response.headers.every("X-Robots-Tag"),
            body=response.body,
        )

    def _redirect(self, visit: Visit, response: Response) -> FetchResult | Turn:
        """Another spelling of the same page is the next turn: the frontier would hold it for known. Anything else
        is a found URL like others, and the frontier decides.
        """
        location = response.headers.location
        target = resolve(location, visit.url) if location else None
        if target is None:
            return self._bad_redirect(visit, response, f"no usable target: {location!r}")
        if visit.task.hops + len(visit.seen) >= visit.settings.max_redirects:
            return self._bad_redirect(visit, response, f"more than {visit.settings.max_redirects} redirects")
        if visit.settings.identity(target) != visit.settings.identity(visit.url):
            return replace(self._result(visit, response, Outcome.REDIRECTED), redirect_url=target)
        if target == visit.url or target in visit.seen:
            return self._bad_redirect(visit, response, "redirects in a circle")
        visit.seen.append(visit.url)
        visit.url = target
        return Turn.AGAIN

    def _bad_redirect(self, visit: Visit, response: Response, detail: str) -> FetchResult:
        return self._result(visit, response, Outcome.BAD_REDIRECT, detail)

    def _wait(self, response: Response) -> float | None:
        return retry_after_seconds(response.headers.get("Retry-After"), self._clock.now())

    def _result(self, visit: Visit, response: Response, outcome: Outcome, detail: str = "") -> FetchResult:
        return FetchResult(
            visit.task,
            outcome,
            _kept_detail(detail),
            response.status,
            visit.url,
            server_date=_kept(response.headers.get("Date"), _MAX_DATE),
            fetched_at=self._clock.now(),
            address=response.address,
            seconds=response.seconds,
            retry_after_seconds=(self._wait(response) or 0.0) if response.status >= 400 else 0.0,
        )

    def _failure(self, visit: Visit, error: TransportError) -> FetchResult:
        return FetchResult(
            visit.task,
            error.outcome,
            _kept_detail(error.detail),
            error.status,
            visit.url,
            fetched_at=self._clock.now(),
            address=error.address,
        )

    def _refusal(self, visit: Visit, outcome: Outcome, detail: str) -> FetchResult:
        now = self._clock.now()
        return FetchResult(visit.task, outcome, _kept_detail(detail), fetched_at=now, requested=False)


def user_agent(agent_name: str, version: str, contact: str) -> str:
    """The User-Agent: `pavouk/0.1.0 (+https://example.org/bot)`."""
    product = f"{agent_name}/{version}"
    return clean_text(f"{product} (+{contact})" if contact else product)


def sender(contact: str) -> str:
    """The From header: the contact if it is a mail address, else nothing."""
    return clean_text(contact) if "@" in contact and "/" not in contact else ""


def _limits(settings: JobSettings, max_body_bytes: int) -> Limits:
    return Limits(
        settings.connect_timeout_seconds,
        settings.idle_timeout_seconds,
        settings.fetch_timeout_seconds,
        max_body_bytes,
        settings.max_header_bytes,
    )


def _permission(visit: Visit, url: str) -> tuple[bool, Sequence[str]]:
    """Whether all private addresses are allowed, and which are. That is for the host of the share: a robots.txt that
    redirects elsewhere does not take it along."""
    share = visit.share
    return (share.allow_private, share.private.split()) if host_of(url) == share.host else (False, ())


def _is_success(status: int, headers: Headers) -> bool:
    return 200 <= status < 300


def _is_page(status: int) -> bool:
    """All 2xx are like 200 to somebody who asked with GET (RFC 9110 §15), but for a part of something."""
    return 200 <= status < 300 and status != 206


def _may_be_html(headers: Headers) -> bool:
    return media_type(headers.get("Content-Type")) in ("", *HTML_TYPES)


def _conditions(task: UrlTask) -> Iterator[tuple[str, str]]:
    if task.etag:
        yield "If-None-Match", task.etag
    if task.last_modified:
        yield "If-Modified-Since", task.last_modified


def _with_validators(result: FetchResult, response: Response) -> FetchResult:
    """What the next conditional request needs."""
    return replace(
        result,
        etag=_kept(response.headers.get("ETag"), _MAX_ETAG),
        last_modified=_kept(response.headers.get("Last-Modified"), _MAX_DATE),
    )


def _kept(value: str, max_length: int) -> str:
    """A header value as it is recorded. Half of a value would be another value."""
    return clean_text(value) if len(value) <= max_length else ""


def _kept_detail(detail: str) -> str:
    return clean_text(detail[:_MAX_DETAIL])

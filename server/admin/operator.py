"""What an operator can ask and set, in plain Python: no sockets, no console. Verbs answer with what JSON can carry."""

import math
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from common.errors import PavoukError
from common.loop import Caught
from common.page import iso_time
from common.settings import Settings
from common.urls import host_of, typed
from common.wire import Outcome
from server.admin.doubts import doubt
from server.catalogue import FILE_NAME, Catalogue, CatalogueError
from server.catalogue.apart import COUNTS, Apart
from server.frontier.explaining import HostState, JobState
from server.frontier.frontier import Frontier
from server.frontier.order import BEST_SCORE, WORST_SCORE
from server.frontier.records import FailedRecord
from server.starting import LookUps, begin_with

Answer = dict[str, Any]
Arguments = Mapping[str, Any]

COPY_PREFIX = "audit-copy-"
_SHOWN = 100  # jobs and hosts in one answer; their number is always told
_DEFAULT_LIMIT = 100
MAX_LIMIT = 100_000  # URLs in one answer, which is put together in memory
MAX_QUEUE_PIECE = 1_000  # queued URLs in one answer
_RETRY_BATCH = 5_000  # URLs in one change
_OLD_COPY_SECONDS = 86_400.0  # what an audit that was killed has left
_MAX_COPIES = 4  # each keeps files on disk that the frontier itself needs no more
_MAX_DELAY_SECONDS = 86_400.0


class OperatorError(PavoukError):
    """A request that makes no sense; the message says why."""


class Operator:
    """The verbs on one frontier. As thread-safe as the frontier; owns nothing. `caught`: by the loops of the server."""

    def __init__(self, frontier: Frontier, settings: Settings, caught: Caught | None = None) -> None:
        self._frontier = frontier
        self._settings = settings
        self._caught = caught or Caught()
        self._verbs: dict[str, tuple[Callable[[Arguments], Answer], frozenset[str]]] = {
            "ping": (lambda _: {"folder": str(self._settings.folder.resolve())}, frozenset()),
            "status": (self._status, frozenset()),
            "explain": (self._explain, frozenset({"url"})),
            "pause": (lambda _: self._pause(True), frozenset()),
            "resume": (lambda _: self._pause(False), frozenset()),
            "block": (lambda given: self._block(given, True), frozenset({"hosts"})),
            "unblock": (lambda given: self._block(given, False), frozenset({"hosts"})),
            "delay": (self._delay, frozenset({"host", "seconds"})),
            "priority": (self._priority, frozenset({"target", "priority"})),
            "add": (self._add, frozenset({"urls", "look_up"})),
            "blacklist": (self._blacklist, frozenset({"outcome", "host", "limit"})),
            "queue": (self._queue, frozenset({"host", "limit", "after"})),
            "retry": (self._retry, frozenset({"urls", "outcome", "host", "all"})),
            "copy": (self._copy, frozenset()),
        }

    def run(self, command: str, arguments: Arguments) -> Answer:
        """Do what the operator asks; OperatorError says what is wrong with the request."""
        if command not in self._verbs:
            raise OperatorError(f"there is no command {command[:40]!r}; there are {', '.join(self._verbs)}")
        verb, allowed = self._verbs[command]
        if unknown := sorted(set(arguments) - allowed):
            raise OperatorError(f"{command} does not know {unknown[0][:40]!r}")
        return verb(arguments)

    # --- asking ------------------------------------------------------------------------------------------------

    def _status(self, _: Arguments) -> Answer:
        seen = self._frontier.overview()
        return {
            "folder": str(self._settings.folder.resolve()),
            "totals": asdict(seen.totals),
            "paused": seen.is_paused,
            "finished": seen.is_finished,
            "ended_by": seen.ended_by,
            "running_seconds": round(seen.running_seconds, 3),
            "next_due": _time(seen.next_due),
            "clients": len({job.client for job in seen.jobs}),
            "jobs": _some([self._job(job) for job in seen.jobs]),
            "blocked": _some([_host(host) for host in seen.blocked]),
            "delays": _some([_host(host) for host in seen.delayed]),
            "priorities": _some([_host(host) for host in seen.prioritised]),
            "full": _some([_host(host) for host in seen.full]),
            "parked": _some([_host(host) for host in seen.parked]),
            "unsound": self._frontier.unsound()[:_SHOWN],
            "caught": {name: asdict(trouble) for name, trouble in self._caught.all().items()},
            "disk_free_bytes": {
                "frontier": _free_bytes(self._settings.memory), "pages": _free_bytes(self._settings.pages),
            },
        }  # fmt: skip

    def _job(self, job: JobState) -> Answer:
        return {**asdict(job), "job": self._frontier.job_name(job.job), "deadline": _time(job.deadline)}

    def _explain(self, given: Arguments) -> Answer:
        address = _address(_text(given, "url"))
        known = self._frontier.explain(address)
        answer: Answer = {
            "url": known.url, "identity": known.identity, "digest": known.digest, "state": known.state,
            "is_sitemap": known.is_sitemap, "reason": known.reason, "requested": known.requested,
            "depth": known.depth, "score": known.score, "tries": known.tries,
            "due": _time(known.due), "ended": _time(known.ended), "interval_seconds": known.interval_seconds,
            "absent_since": _time(known.absent_since), "lease": None, "host": _host(known.host),
            **self._stored(bytes.fromhex(known.digest)),
        }  # fmt: skip
        if known.job:
            name = self._frontier.job_name(known.job)
            answer["lease"] = {"client": known.client, "job": name, "deadline": _time(known.deadline)}
        return answer

    def _stored(self, digest: bytes) -> Answer:
        """Where the page is, as far as the catalogue is on this machine, and whether that page counts."""
        if not (self._settings.pages / FILE_NAME).exists():
            return {"stored": [], "stored_number": 0, "catalogue": "there is no catalogue here"}
        try:
            with Catalogue.open(self._settings.pages, read_only=True) as catalogue:
                claims = cache(self._frontier.claims)  # made when the pages have been found
                found, number = catalogue.told(digest, lambda *pages: claims().judge(*pages))
        except CatalogueError as error:
            return {"stored": [], "stored_number": 0, "catalogue": str(error)}
        return {"catalogue": "", "stored": [_page(each) for each in found], "stored_number": number}

    def _blacklist(self, given: Arguments) -> Answer:
        chosen = self._failed(_outcome(given), _wanted_host(given))
        urls = [_failed(record) for record in islice(chosen, _limit(given))]
        return {"number": len(urls) + sum(1 for _ in chosen), "urls": urls}

    def _failed(self, outcome: Outcome | None, host: str | None) -> Iterator[FailedRecord]:
        for record in self._frontier.failed():
            if outcome in (None, record.outcome) and host in (None, host_of(record.url)):
                yield record

    def _queue(self, given: Arguments) -> Answer:
        """A piece: with more to come, `rest` says where to go on, in `after`."""
        after = given.get("after", "")
        if not isinstance(after, str):
            raise OperatorError("after must be a text")
        piece = self._frontier.queued(_wanted_host(given), after, min(_limit(given), MAX_QUEUE_PIECE))
        urls = [{**asdict(each), "due": _time(each.due)} for each in piece.urls]
        return {"number": piece.number, "urls": urls, "rest": piece.rest}

    # --- setting -----------------------------------------------------------------------------------------------

    def _pause(self, paused: bool) -> Answer:
        self._frontier.pause(paused)
        return {"paused": paused}

    def _block(self, given: Arguments, blocked: bool) -> Answer:
        names = [_host_name(text) for text in _texts(given, "hosts")]
        for name in names:
            self._frontier.block(name, blocked)
        return {"blocked" if blocked else "unblocked": names}

    def _delay(self, given: Arguments) -> Answer:
        name, seconds = _host_name(_text(given, "host")), given.get("seconds")
        if seconds is not None:
            seconds = _seconds(seconds)
        self._frontier.set_delay(name, seconds)
        return {"host": name, "seconds": seconds}

    def _priority(self, given: Arguments) -> Answer:
        """Of a host, or the score of a URL: what has a slash is a URL."""
        target, number = _text(given, "target"), given.get("priority")
        if type(number) is not int or not WORST_SCORE <= number <= BEST_SCORE:
            raise OperatorError(f"the priority must be a whole number from {WORST_SCORE} to {BEST_SCORE}")
        if "/" in target:
            address = _address(target)
            return {"url": address, "priority": number, "before": self._frontier.set_score(address, number)}
        name = _host_name(target)
        self._frontier.set_priority(name, number)
        return {"host": name, "priority": number}

    def _add(self, given: Arguments) -> Answer:
        addresses = [_address(text) for text in _texts(given, "urls")]
        self._frontier.widen(addresses)
        # Who adds a file of them names no hosts one by one, and would wait for their name servers.
        look_ups = LookUps(0) if given.get("look_up") is False else None
        new = begin_with(self._frontier, addresses, again=True, look_ups=look_ups)
        return {"added": new, "known": len(set(addresses)) - new}

    def _retry(self, given: Arguments) -> Answer:
        outcome, host = _outcome(given), _wanted_host(given)
        if "urls" in given:
            if outcome or host or given.get("all"):
                raise OperatorError("retry takes URLs, or a choice of them, not both")
            return {"retried": self._frontier.retry([_address(text) for text in _texts(given, "urls")])}
        if outcome is None and host is None and given.get("all") is not True:
            raise OperatorError("retry what? Name URLs, an outcome, a host, or all")
        urls = (record.url for record in self._failed(outcome, host))
        return {"retried": sum(self._frontier.retry(batch) for batch in _batches(urls))}

    def _copy(self, _: Arguments) -> Answer:
        """A copy of the frontier for an audit, which removes it afterwards. Costs hard links, not space."""
        memory, now = self._settings.memory, time.time()
        for old in memory.glob(f"{COPY_PREFIX}*"):
            if old.stat().st_mtime < now - _OLD_COPY_SECONDS:
                shutil.rmtree(old, ignore_errors=True)
        if len(list(memory.glob(f"{COPY_PREFIX}*"))) >= _MAX_COPIES:
            raise OperatorError(f"{_MAX_COPIES} audits run already; if not, delete {memory / COPY_PREFIX}*")
        folder = memory / f"{COPY_PREFIX}{time.time_ns()}"
        self._frontier.copy_to(folder)
        return {"folder": folder.name, "time": now}


# --- what is asked for -----------------------------------------------------------------------------------------


def _text(given: Arguments, name: str) -> str:
    value = given.get(name)
    if not isinstance(value, str) or not value:
        raise OperatorError(f"{name} is missing")
    return value


def _texts(given: Arguments, name: str) -> list[str]:
    values = given.get(name)
    if not isinstance(values, list) or not values or not all(isinstance(value, str) for value in values):
        raise OperatorError(f"{name} must be a list of texts with at least one")
    return values


def _address(text: str) -> str:
    address = typed(text)
    if address is None:
        raise OperatorError(f"{text[:200]!r} is no http or https URL")
    return address


def _host_name(text: str) -> str:
    """A host as the frontier calls it; also taken from a URL."""
    address = typed(text)
    if address is None:
        raise OperatorError(f"{text[:200]!r} is no host")
    return host_of(address)


def _wanted_host(given: Arguments) -> str | None:
    return _host_name(_text(given, "host")) if given.get("host") is not None else None


def _outcome(given: Arguments) -> Outcome | None:
    text = given.get("outcome")
    if text is None:
        return None
    if text not in list(Outcome):
        raise OperatorError(f"{str(text)[:40]!r} is no outcome; there are {', '.join(Outcome)}")
    return Outcome(text)


def _limit(given: Arguments) -> int:
    limit = given.get("limit", _DEFAULT_LIMIT)
    if type(limit) is not int or not 0 <= limit <= MAX_LIMIT:
        raise OperatorError(f"limit must be a whole number from 0 to {MAX_LIMIT:,}")
    return limit


def _seconds(value: object) -> float:
    if type(value) not in (int, float) or not 0 <= value <= _MAX_DELAY_SECONDS:  # type: ignore[operator]
        raise OperatorError(f"the delay must be a number of seconds from 0 to {_MAX_DELAY_SECONDS:g}, or default")
    return float(value)  # type: ignore[arg-type]


# --- what is answered ------------------------------------------------------------------------------------------


def _some(rows: list[Answer]) -> Answer:
    return {"number": len(rows), "first": rows[:_SHOWN]}


def _host(host: HostState) -> Answer:
    return {**asdict(host), "not_before": _time(host.not_before)}


def _page(stored: Apart) -> Answer:
    page = stored.page
    return {
        "bundle": str(page.bundle), "member": page.data_member, "size": page.size, "status": page.status,
        "content_type": page.content_type, "crawled": _time(page.crawl_time),
        "confirmed": stored.why == COUNTS, "doubt": doubt(stored),
    }  # fmt: skip


def _failed(record: FailedRecord) -> Answer:
    return {
        "url": record.url, "outcome": record.outcome.value, "detail": record.detail, "tries": record.tries,
        "time": _time(record.time),
    }  # fmt: skip


def _time(seconds: float) -> str | None:
    return iso_time(seconds) if seconds > 0 and math.isfinite(seconds) else None


def _free_bytes(folder: Path) -> int | None:
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None


def _batches(urls: Iterable[str]) -> Iterator[list[str]]:
    rest = iter(urls)
    while batch := list(islice(rest, _RETRY_BATCH)):
        yield batch

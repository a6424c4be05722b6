"""The URL server as the client sees it, over SOAP. The only importer of zeep; maps its exceptions to ours, once."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from typing import Any, TypeVar

import requests
import zeep
from lxml import etree
from zeep.exceptions import Error as ZeepError
from zeep.exceptions import Fault, TransportError

from common.errors import RemoteRefused, RemoteUnavailable
from common.wire import (
    MAX_ROWS,
    HostShare,
    Job,
    JobSettings,
    Receipt,
    Report,
    Totals,
    UrlTask,
    from_table,
    to_table,
)

_TIMEOUT_SECONDS = 60
_ROWS_PER_CALL = MAX_ROWS // 2  # in one table
_CHARACTERS_PER_CALL = 4_000_000  # in one table; libxml2 takes no text beyond 10 MB
_Row = TypeVar("_Row", bound=tuple[Any, ...])
_REFUSALS = (400, 404, 405, 411, 413)  # a wrong token (401) can be mended without losing anything


class Coordinator:
    """A connection to the URL server. Used by one thread. Connects with the first call, and again when that failed."""

    def __init__(self, url: str, ident: str, token: str = "", ca_file: str = "") -> None:
        self._url = url
        self._ident = ident
        self._session = requests.Session()
        self._session.trust_env = False  # no proxies for our own servers
        if token:
            self._session.headers["Authorization"] = f"Bearer {token}"
        if ca_file:
            self._session.verify = ca_file
        self._service: Any = None

    def get_job(self, request: str, wanted: int) -> Job:
        """Ask for a job of at most `wanted` URLs. Repeat with the same `request` until it is answered."""
        answer = self._call("getJob", ident=self._ident, request=request, wanted=wanted)
        with _translated():
            return Job(
                job=answer.job or "",
                lease_seconds=answer.lease_seconds,
                wait_seconds=answer.wait_seconds,
                tasks=from_table(UrlTask, answer.urls or ""),
                hosts=from_table(HostShare, answer.hosts or ""),
                settings=_values(JobSettings, answer.settings),
                finished=answer.finished,
                give_back=(answer.give_back or "").split(),
            )

    def send(self, report: Report) -> Receipt:
        """Send a report, in several calls if it is long: a URL is settled after what was found there."""
        *first_listed, last_listed = _slices(report.listed) or [[]]
        *first_found, last_found = _slices(report.found) or [[]]
        *first_hosts, last_hosts = _slices(report.hosts) or [[]]
        results, *more_results = _slices(report.results) or [[]]
        # What is a sitemap comes first, so that a link to it does not make it a page.
        parts = [Report(report.job, (), (), listed=part) for part in first_listed]
        parts += [Report(report.job, (), part) for part in first_found]
        parts += [Report(report.job, (), (), part) for part in first_hosts]
        parts.append(Report(report.job, results, last_found, last_hosts, report.size, last_listed))
        parts += [Report(report.job, part, ()) for part in more_results]
        receipts = [self._send(part) for part in parts]
        return Receipt(
            sum(each.accepted for each in receipts),
            sum(each.refused for each in receipts),
            sum(each.new_urls for each in receipts),
        )

    def exit(self, job: str) -> int:
        """Give the unfinished URLs of a job back."""
        with _translated():
            return int(self._call("cExit", ident=self._ident, job=job))

    def renew(self, job: str) -> float:
        """Extend the lease of a job."""
        with _translated():
            return float(self._call("renewJob", ident=self._ident, job=job))

    def totals(self, at_start: bool = False) -> tuple[Totals, bool]:
        """The frontier in numbers, now or when the server started, and whether the crawl is finished."""
        answer = self._call("getTotals", at_start=at_start)
        with _translated():
            return _values(Totals, answer), bool(answer.finished)

    def ended_by(self) -> str:
        """The limit that has ended the crawl or is about to; empty if there is none."""
        with _translated():
            return str(self._call("getTotals").ended_by or "")

    def next_due(self) -> float:
        """When the next page is to be visited again, UTC; 0 if none is."""
        with _translated():
            return float(self._call("getTotals").next_due)

    def close(self) -> None:
        self._session.close()

    def _send(self, report: Report) -> Receipt:
        answer = self._call(
            "sendAllData",
            ident=self._ident,
            job=report.job,
            results=to_table(report.results),
            found=to_table(report.found),
            hosts=to_table(report.hosts),
            size=report.size,
            listed=to_table(report.listed),
        )
        with _translated():
            return _values(Receipt, answer)

    def _call(self, operation: str, **arguments: Any) -> Any:
        with _translated():
            if self._service is None:
                self._service = self._connect()
            return self._service[operation](**arguments)

    def _connect(self) -> Any:
        transport = zeep.Transport(  # type: ignore[no-untyped-call]
            session=self._session, timeout=_TIMEOUT_SECONDS, operation_timeout=_TIMEOUT_SECONDS
        )
        # Jobs come from our own server and may be longer than libxml2 takes by default.
        settings = zeep.Settings(xml_huge_tree=True)
        client = zeep.Client(f"{self._url}?wsdl", transport=transport, settings=settings)  # type: ignore[no-untyped-call]
        (binding,) = client.wsdl.bindings
        # The address we were told by our operator counts, not the one in the WSDL.
        return client.create_service(binding, self._url)  # type: ignore[no-untyped-call]


def _slices(rows: Sequence[_Row]) -> list[list[_Row]]:
    slices: list[list[_Row]] = []
    room = 0
    for row in rows:
        length = sum([len(cell) for cell in row if isinstance(cell, str)])
        room -= length
        if room < 0 or len(slices[-1]) >= _ROWS_PER_CALL:
            slices.append([])
            room = _CHARACTERS_PER_CALL - length
        slices[-1].append(row)
    return slices


def _values(kind: Any, answer: Any) -> Any:
    """One of our values from a SOAP answer; empty texts arrive as None."""
    given = {field.name: getattr(answer, field.name) for field in fields(kind)}
    return kind(**{name: "" if value is None else value for name, value in given.items()})


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except Fault as error:
        code = (error.code or "").rpartition(":")[2]
        # Only our own server says so on purpose; zeep makes a fault without a code of a gateway's error page.
        if code.startswith("Client") and code != "Client.Token":
            raise RemoteRefused(error.message) from error
        raise RemoteUnavailable(error.message) from error
    except TransportError as error:
        if error.status_code in _REFUSALS:
            raise RemoteRefused(f"HTTP {error.status_code}: {error.message}") from error
        raise RemoteUnavailable(f"HTTP {error.status_code}") from error
    except requests.HTTPError as error:
        raise RemoteUnavailable(str(error)) from error
    except (requests.RequestException, OSError) as error:
        raise RemoteUnavailable(_short(error)) from error
    # What zeep raises when a WSDL or an answer is not what it seems to be knows no bounds.
    except (ZeepError, etree.LxmlError, ValueError, AttributeError, TypeError, LookupError) as error:
        raise RemoteUnavailable(f"the answer cannot be understood: {error}") from error


def _short(error: Exception) -> str:
    """requests wraps the reason several times; the innermost is what a person wants to read."""
    inner: BaseException = error
    while inner.__context__ is not None:
        inner = inner.__context__
    return str(inner) or type(error).__name__

"""A real urlServer in its own process, and a zeep client for it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import requests
import zeep

from common.wire import FoundUrl, HostFact, HostShare, Outcome, UrlResult, UrlTask, from_table, to_table
from tests.processes import Running, running

NAMESPACE = "urn:pavouk:urlserver:1"
READY = r"^urlServer listens on (https?://\S+:\d+/)\?wsdl$"


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[Running]:
    """urlServer on a free port with `folder` as its work folder."""
    arguments = ["-m", "server.urlserver.main", "--server-port", "0", "--dir", folder, *options]
    with running(arguments, READY) as program:
        yield program


def address_of(program: Running) -> str:
    return program.match[1]


class Soap:
    """The contract as zeep sees it, with tables as values. For one thread."""

    def __init__(self, url: str, token: str = "", verify: str | bool = True) -> None:
        self.session = requests.Session()
        self.session.trust_env = False  # REQUESTS_CA_BUNDLE would beat `verify`
        self.session.verify = verify
        if token:
            self.session.headers["Authorization"] = f"Bearer {token}"
        self.service: Any = zeep.Client(f"{url}?wsdl", transport=zeep.Transport(session=self.session)).service

    def job(self, ident: str = "w1", request: str = "", wanted: int = 100) -> Any:
        return self.service.getJob(ident=ident, request=request, wanted=wanted)

    def report(
        self, ident: str, job: str, outcomes: dict[str, Outcome], found: list[str] | None = None,
        hosts: list[HostFact] | None = None, size: int = 0,
    ) -> Any:  # fmt: skip
        return self.service.sendAllData(
            ident=ident, job=job, size=size, hosts=to_table(hosts or []),
            results=to_table(UrlResult(url, outcome) for url, outcome in outcomes.items()),
            found=to_table(FoundUrl(url, 1) for url in found or []),
        )  # fmt: skip

    def totals(self) -> dict[str, Any]:
        return dict(zeep.helpers.serialize_object(self.service.getTotals()))


def urls_of(job: Any) -> list[str]:
    return [task.url for task in from_table(UrlTask, job.urls or "")]


def hosts_of(job: Any) -> list[HostShare]:
    return from_table(HostShare, job.hosts or "")


def envelope(body: str) -> bytes:
    """A SOAP message by hand, to say what no tool kit would."""
    return (
        f'<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/" xmlns="{NAMESPACE}">'
        f"<e:Body>{body}</e:Body></e:Envelope>"
    ).encode()


GET_TOTALS = envelope("<getTotals/>")

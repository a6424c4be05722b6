"""The SOAP contract: SOAP 1.1, document/literal. Translates between messages and the service, nothing else."""

import html
import logging
import re
from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar

import server.urlserver.spyne_compat  # noqa: F401

# isort: split
from spyne import (
    Application,
    Boolean,
    ComplexModel,
    Double,
    Fault,
    Integer,
    Integer32,
    Integer64,
    ServiceBase,
    Unicode,
    rpc,
)
from spyne.interface.wsdl import Wsdl11
from spyne.model.complex import ComplexModelMeta
from spyne.protocol.soap import Soap11
from spyne.server.wsgi import WsgiApplication

from common.wire import (
    MAX_ROWS,
    FoundUrl,
    HostFact,
    JobSettings,
    ListedUrl,
    Receipt,
    Report,
    Totals,
    UrlResult,
    clean_text,
    from_table,
    to_table,
)
from server.frontier.frontier import FrontierError
from server.frontier.store import StoreError
from server.urlserver.markup import MarkupError, checked
from server.urlserver.service import BadRequest, UrlService

NAMESPACE = "urn:pavouk:urlserver:1"
_MAX_FAULT_LENGTH = 500
_INTEGER = re.compile(r"[ \t\r\n]*([+-]?)0*([0-9]{1,19})[ \t\r\n]*")

_log = logging.getLogger(__name__)
# A caller's mistake is answered with a fault, and so is a full disk, which is logged below; spyne would log each with a
# traceback as a mistake of ours. Those are at a higher level.
for _name in ("spyne.application", "spyne.application.client", "spyne.protocol"):
    logging.getLogger(_name).setLevel(logging.CRITICAL)
_TYPES = {str: Unicode, int: Integer, float: Double, bool: Boolean}
_T = TypeVar("_T")


def _message(value_class: type, **further: Any) -> Any:
    """A SOAP type with the fields of one of our values."""
    members = {field.name: _TYPES[field.type](min_occurs=1, nillable=False) for field in fields(value_class)}  # type: ignore[index]
    return ComplexModelMeta(value_class.__name__, (ComplexModel,), {"__namespace__": NAMESPACE, **members, **further})


_Settings = _message(JobSettings)
_Receipt = _message(Receipt)
_Totals = _message(
    Totals, finished=Boolean(min_occurs=1), ended_by=Unicode(min_occurs=1), next_due=Double(min_occurs=1)
)


class Job(ComplexModel):
    """A job on the wire. `urls` and `hosts` are tables: a row per line, a tab between fields."""

    __namespace__ = NAMESPACE

    job = Unicode(min_occurs=1)
    lease_seconds = Double(min_occurs=1)
    wait_seconds = Double(min_occurs=1)
    finished = Boolean(min_occurs=1)
    urls = Unicode(min_occurs=1)
    hosts = Unicode(min_occurs=1)
    settings = _Settings.customize(min_occurs=1)
    give_back = Unicode(min_occurs=0)


class _Soap(Soap11):
    """SOAP 1.1 that answers whatever is wrong with a message by a short fault; spyne lets some errors through."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        # Both were valid for the schema, which takes blanks and zeros away first. spyne does not.
        self._from_unicode_handlers[Integer] = lambda _, text: _integer(text)
        self._from_unicode_handlers[Boolean] = lambda _, text: text.strip() in ("true", "1")

    def create_in_document(self, ctx: Any, charset: str | None = None) -> None:
        try:
            ctx.in_string = [checked(b"".join(ctx.in_string), charset or "")]
        except MarkupError as error:
            raise _fault("Client.BadMessage", str(error)) from error
        try:
            super().create_in_document(ctx)
        except Fault as fault:
            if "Text node too long" in fault.faultstring:  # libxml2's limit, kept because it also stops bombs
                raise _fault("Client.TooLong", "a table has more than 10,000,000 bytes: split it") from fault
            raise _shortened(fault) from fault
        # Without its names of elements spyne follows no `href` (SOAP 1.1 §5, which is not for document/literal): each
        # would get a copy of all that it refers to, and one to what is around it has no end.
        ctx.in_document = ctx.in_document[0], {}

    def decompose_incoming_envelope(self, ctx: Any, message: Any = Soap11.REQUEST) -> None:
        envelope, _ = ctx.in_document
        if not envelope.xpath("*[local-name() = 'Body']/*"):
            raise _fault("Client.BadMessage", "the envelope has no body with an operation in it")
        try:
            super().decompose_incoming_envelope(ctx, message)
        except Fault as fault:
            raise _shortened(fault) from fault


def _shortened(fault: Fault) -> Fault:
    """The same fault. It quotes what was wrong, however long that is, some as bytes with references for characters."""
    text = fault.faultstring
    return _fault(fault.faultcode, html.unescape(text.decode()) if isinstance(text, bytes) else text)


def _fault(code: str, text: str) -> Fault:
    """Every fault is made here: none is longer than a few lines, whatever it quotes."""
    return Fault(code, clean_text(text)[:_MAX_FAULT_LENGTH])


def _integer(text: str) -> int:
    found = _INTEGER.fullmatch(text)
    if not found:
        raise _fault("Client.BadRequest", "a number is none, or too large")
    return int(found[1] + found[2])


def soap_service(service: UrlService) -> type:
    """The operations, bound to one service."""

    class UrlServer(ServiceBase):
        """The name of this class is the name of the service in the WSDL."""

        @rpc(Unicode(min_occurs=1), Unicode, Integer32, _returns=Job)
        def getJob(ctx: Any, ident: str, request: str, wanted: int) -> Any:
            """A job for the client `ident`: URLs, hosts and settings. Repeating a `request` repeats its answer."""
            job = _answered(lambda: service.get_job(ident or "", request or "", wanted or 0))
            return Job(
                job=job.job,
                lease_seconds=job.lease_seconds,
                wait_seconds=job.wait_seconds,
                finished=job.finished,
                urls=to_table(job.tasks),
                hosts=to_table(job.hosts),
                give_back="\n".join(job.give_back) or None,
                settings=_Settings(**{f.name: getattr(job.settings, f.name) for f in fields(JobSettings)}),
            )

        @rpc(
            Unicode(min_occurs=1), Unicode(min_occurs=1), Unicode, Unicode, Unicode, Integer64, Unicode,
            _returns=_Receipt,
        )  # fmt: skip
        def sendAllData(
            ctx: Any, ident: str, job: str, results: str, found: str, hosts: str, size: int, listed: str
        ) -> Any:
            """Report on URLs of a job: outcome of each, found URLs, facts about hosts, bytes uploaded, and what
            sitemaps say."""

            def answer() -> Receipt:
                report = _report(job, results, found, hosts, size, listed)
                return service.send_all_data(ident or "", _address(ctx), report)

            receipt = _answered(answer)
            return _Receipt(accepted=receipt.accepted, refused=receipt.refused, new_urls=receipt.new_urls)

        @rpc(Unicode(min_occurs=1), Unicode(min_occurs=1), _returns=Integer)
        def cExit(ctx: Any, ident: str, job: str) -> int:
            """Give all unfinished URLs of the job back; answers how many there were."""
            return _answered(lambda: service.c_exit(ident or "", job or ""))

        @rpc(Unicode(min_occurs=1), Unicode(min_occurs=1), _returns=Double)
        def renewJob(ctx: Any, ident: str, job: str) -> float:
            """Extend the lease of a job; answers for how many seconds."""
            return _answered(lambda: service.renew_job(ident or "", job or ""))

        @rpc(Boolean, _returns=_Totals)
        def getTotals(ctx: Any, at_start: bool) -> Any:
            """The frontier in numbers (with at_start: those before the server took in start URLs), whether the crawl
            is finished, the limit that has ended it, if any, and when the next page is to be visited again (seconds
            since 1970; 0: none is)."""
            totals, finished, ended_by, next_due = _answered(lambda: service.get_totals(bool(at_start)))
            numbers = {f.name: getattr(totals, f.name) for f in fields(Totals)}
            return _Totals(finished=finished, ended_by=ended_by, next_due=next_due, **numbers)

    return UrlServer


def application(service: UrlService, max_message_bytes: int) -> WsgiApplication:
    """The WSGI application of the contract."""
    app = Application(
        [soap_service(service)],
        NAMESPACE,
        name="Pavouk",
        # Entities are never resolved and depth is limited: messages come from the network. The encoding is what
        # `checked` has made, whatever the message says of itself.
        in_protocol=_Soap(validator="lxml", resolve_entities=False, huge_tree=False, encoding="UTF-8"),
        out_protocol=Soap11(),
    )
    return WsgiApplication(app, max_content_length=max_message_bytes)


def wsdl(app: WsgiApplication, url: str) -> bytes:
    """The WSDL with `url` as the service's address. spyne itself would take it from the first caller's Host header."""
    document = Wsdl11(app.app.interface)
    document.build_interface_document(url)
    text: bytes = document.get_interface_document()
    return text


def _report(job: str, results: str, found: str, hosts: str, size: int, listed: str) -> Report:
    try:
        return Report(
            job=job or "",
            results=_rows(UrlResult, "results", results),
            found=_rows(FoundUrl, "found", found),
            hosts=_rows(HostFact, "hosts", hosts),
            size=max(0, size or 0),
            listed=_rows(ListedUrl, "listed", listed),
        )
    except ValueError as error:
        raise _fault("Client.BadTable", str(error)) from error


def _rows(kind: type[_T], name: str, table: str | None) -> list[_T]:
    text = (table or "").strip("\r\n ")
    if text.count("\n") >= MAX_ROWS:
        raise _fault("Client.TooMany", f"the table {name} has more than {MAX_ROWS:,} rows: split it")
    return from_table(kind, text)


def _answered(call: Callable[[], _T]) -> _T:
    """Call the service; its exceptions become faults, here and nowhere else."""
    try:
        return call()
    except BadRequest as error:
        raise _fault("Client.BadRequest", str(error)) from error
    except FrontierError as error:
        raise _fault("Client.BadJob", str(error)) from error
    except StoreError as error:
        _log.error("%s", error)
        raise _fault("Server.Store", f"{error}; nothing of this call was recorded, try again later") from error


def _address(ctx: Any) -> str:
    return str(ctx.transport.req_env.get("REMOTE_ADDR", "?"))

"""What strangers may send to urlServer: each is answered with a sentence, and costs nobody else anything."""

import re
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
import zeep.exceptions

from common.wire import Outcome
from tests.processes import Running
from tests.urlserver import GET_TOTALS, NAMESPACE, Soap, address_of, envelope, serving, urls_of

THREADS = 4  # of the server: few, so that one that is stuck would be noticed


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("urlserver")
    options = ("--start-urls", "http://example.org/;http://example.com/", "--server-threads", str(THREADS))
    with serving(folder, *options) as program:
        Soap(address_of(program)).job(request="1")  # job 1, so that there is something to spoil
        yield program
        assert program.stop() == 0
        assert "Traceback" not in program.errors()


@pytest.fixture
def url(server: Running) -> Iterator[str]:
    """The server's address; at the end it must live, and know what it knew."""
    before = Soap(address_of(server)).totals()
    yield address_of(server)
    assert Soap(address_of(server)).totals() == before


def post(url: str, body: bytes, **headers: str) -> requests.Response:
    return requests.post(url, data=body, headers={"Content-Type": "text/xml; charset=utf-8", **headers}, timeout=30)


def fault_of(answer: requests.Response) -> str:
    """The sentence of a fault."""
    assert answer.status_code >= 400
    found = re.search(r"<faultstring>([^<]+)</faultstring>", answer.text)
    assert found is not None, answer.text
    assert re.search(r"<faultcode>\S+:(Client|Server)\S*</faultcode>", answer.text), answer.text
    return found[1]


BOMB = "".join(f'<!ENTITY b{i} "{f"&b{i - 1};" * 10}">' for i in range(1, 10))
BILLION_LAUGHS = f'<!DOCTYPE x [<!ENTITY b0 "ha">{BOMB}]>'


def with_doctype(doctype: str, ident: str) -> bytes:
    return doctype.encode() + envelope(f"<getJob><ident>{ident}</ident></getJob>")


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"ident=w1&job=1", id="a form"),
        pytest.param(GET_TOTALS[:-20], id="cut off"),
        pytest.param(b"\xff\xfe\x00" * 100, id="binary"),
        pytest.param(b"<getTotals/>", id="no envelope"),
        pytest.param(envelope(""), id="empty body"),
        pytest.param(envelope("<dropTables/>"), id="unknown operation"),
        pytest.param(envelope('<getTotals xmlns="urn:other"/>'), id="other namespace"),
        pytest.param(envelope("<getJob/>"), id="missing argument"),
        pytest.param(envelope("<getJob><ident>w1</ident><wanted>many</wanted></getJob>"), id="wrong type"),
        pytest.param(envelope(f"<getJob><ident>w1</ident><wanted>{'9' * 5000}</wanted></getJob>"), id="huge number"),
        pytest.param(envelope("<getJob><ident>w1</ident><more>1</more></getJob>"), id="extra argument"),
        pytest.param(envelope("<getJob><ident>w&#1;</ident></getJob>"), id="control character"),
        pytest.param(envelope("<getJob><ident>w 1</ident></getJob>"), id="bad name"),
        pytest.param(envelope("<getJob><ident>" + "w" * 101 + "</ident></getJob>"), id="long name"),
        pytest.param(envelope("<a>" * 100_000 + "</a>" * 100_000), id="deep nesting"),
        pytest.param(envelope("<renewJob><ident>w1</ident><job>2</job></renewJob>"), id="unknown job"),
        pytest.param(envelope("<cExit><ident>w1</ident><job>one</job></cExit>"), id="no job"),
        pytest.param(with_doctype(BILLION_LAUGHS, "&b9;"), id="entity bomb"),
        pytest.param(with_doctype('<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]>', "&f;"), id="local file"),
        pytest.param(with_doctype("<!DOCTYPE x [<!ENTITY w 'w1'>]>", "&w;"), id="harmless entity"),
    ],
)
def test_messages_that_are_refused(url: str, body: bytes) -> None:
    answer = post(url, body)
    assert len(fault_of(answer)) > 10
    assert "root:" not in answer.text
    assert len(answer.text) < 5000


TABLES = [
    ("results", "http://example.org/", "line 1 of the UrlResult table"),
    ("results", "http://example.org/\tvanished", "line 1 of the UrlResult table: 'vanished' is not a valid Outcome"),
    ("results", "http://example.org/\tstored\tOK", "line 1 of the UrlResult table"),
    ("found", "http://example.org/a\t1\nhttp://example.org/b", "line 2 of the FoundUrl table"),
    ("found", "http://example.org/a\t1\t0\tmore", "line 1 of the FoundUrl table: 4 fields instead of at most 3"),
    ("hosts", "example.org\t\tnan", "line 1 of the HostFact table: 'nan' is not a finite number"),
]


@pytest.mark.parametrize(("name", "table", "message"), TABLES)
def test_tables_that_are_none(url: str, name: str, table: str, message: str) -> None:
    with pytest.raises(zeep.exceptions.Fault, match=message) as caught:
        Soap(url).service.sendAllData(ident="w1", job="1", **{name: table})
    assert caught.value.code.endswith("Client.BadTable")


@pytest.mark.parametrize("job", ["1", "2", f"1-{0:016}", "0", "-1", "", "1" * 30, "x"])
def test_jobs_that_never_were_or_are_called_otherwise(url: str, job: str) -> None:
    """Job 1 is out; who does not know its name has nothing to do with it."""
    soap = Soap(url)
    calls: list[Callable[[], object]] = [
        lambda: soap.report("w1", job, {"http://example.org/": Outcome.STORED}, ["http://example.org/more"]),
        lambda: soap.service.renewJob(ident="w1", job=job),
        lambda: soap.service.cExit(ident="w1", job=job),
    ]
    for call in calls:
        with pytest.raises(zeep.exceptions.Fault, match="is no job of this crawl") as caught:
            call()
        assert caught.value.code.endswith("Client.BadJob")


def test_the_job_of_somebody_else(url: str) -> None:
    soap = Soap(url)
    job = soap.job(request="1").job
    for call in (soap.service.renewJob, soap.service.cExit, soap.service.sendAllData):
        with pytest.raises(zeep.exceptions.Fault, match="job 1 belongs to another client") as caught:
            call(ident="w2", job=job)
        assert caught.value.code.endswith("Client.BadJob")


def test_negative_numbers_and_odd_urls_do_no_harm(tmp_path: Path) -> None:
    odd = "\n".join(
        ["http://example.org/a\t-5\t-5", "http://example.org/b\t99999999999999999999", "javascript:x\t1", "\t1",
         "http://example.org/\u200b\u202e\t1", "http://[::1\t1", "x" * 3000 + "\t1"]
    )  # fmt: skip
    with serving(tmp_path, "--start-urls", "http://example.org/", "--delay", "0") as program:
        soap = Soap(address_of(program))
        soap.service.sendAllData(ident="w1", job=soap.job().job, found=odd, size=-7, results=" \n\n", hosts="")
        totals = soap.totals()
        assert (totals["queued"], totals["size"]) == (3, 0)
        assert len(urls_of(soap.job())) == 3
        assert program.stop() == 0
    assert "Traceback" not in program.errors()


def test_a_table_that_is_too_long_can_be_split(url: str) -> None:
    with pytest.raises(zeep.exceptions.Fault, match="a table has more than 10,000,000 bytes: split it"):
        Soap(url).report("w1", "1", {}, [f"http://example.org/{i}/{'x' * 1970}" for i in range(6000)])


# --- HTTP


class Raw:
    """A connection on which anything can be said."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname
        assert parts.port
        self.socket = socket.create_connection((parts.hostname, parts.port), timeout=30)

    def __enter__(self) -> "Raw":
        return self

    def __exit__(self, *_: Any) -> None:
        self.socket.close()

    def send(self, *parts: bytes) -> None:
        for part in parts:
            self.socket.sendall(part)

    def answer(self) -> str:
        """Everything until the server closes."""
        return b"".join(iter(lambda: self.socket.recv(65536), b"")).decode("latin-1")


def head(*lines: str) -> bytes:
    return "\r\n".join(["POST / HTTP/1.1", "Host: localhost", "Content-Type: text/xml", *lines, "", ""]).encode()


def test_a_message_of_100_mb_is_refused_before_it_is_kept(url: str) -> None:
    answer = post(url, b"x" * 100_000_000)
    assert answer.status_code == 413
    assert fault_of(answer) == "the message has more than 32000000 bytes: split it"


def test_more_bytes_than_announced_are_not_read_as_part_of_the_message(url: str) -> None:
    with Raw(url) as raw:
        raw.send(head(f"Content-Length: {len(GET_TOTALS)}"), GET_TOTALS, b"x" * 1000 + b"\r\n\r\n")
        answer = raw.answer()
    assert re.findall(r"HTTP/1\.1 (\d+)", answer) == ["200", "400"]


def test_chunks_without_a_length_are_refused(url: str) -> None:
    answer = requests.post(url, data=iter([GET_TOTALS]), headers={"Content-Type": "text/xml"}, timeout=30)
    assert answer.status_code == 411
    assert fault_of(answer) == "the message needs a Content-Length"


@pytest.mark.parametrize("length", ["-1", "many", "²", "9" * 5000, "99999999999999999999"])
def test_lengths_that_are_none(url: str, length: str) -> None:
    with Raw(url) as raw:
        raw.send(head(f"Content-Length: {length}", "Connection: close"))
        assert re.match(r"HTTP/1\.1 (400|411|413) ", raw.answer())


def test_headers_are_limited(url: str) -> None:
    with Raw(url) as raw:
        raw.send(head(f"X-Huge: {'x' * 200_000}"))
        assert raw.answer().startswith("HTTP/1.1 431 ")


@pytest.mark.parametrize("path", ["", "../../etc/passwd", "%00", "?WSDL=1", "a" * 3000, "?xsd=../x"])
def test_odd_paths(url: str, path: str) -> None:
    answer = requests.get(url + path, timeout=30)
    assert answer.status_code == 405
    assert fault_of(answer) == "send SOAP by POST, or get the WSDL at ?wsdl"


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "HEAD", "TRACE"])
def test_other_methods(url: str, method: str) -> None:
    assert requests.request(method, url, timeout=30).status_code == 405


def test_half_requests_do_not_keep_others_out(url: str) -> None:
    with ExitStack() as stack:
        halves = [b"POST / HTTP/1.1\r\nHost: x\r\nX-Slow: ", head("Content-Length: 1000") + b"<e:Env", b""]
        for half in halves[: THREADS - 1]:
            stack.enter_context(Raw(url)).send(half)
        assert Soap(url).totals()["leased"] == 2


def test_a_message_in_another_encoding_is_understood(url: str) -> None:
    body = '<?xml version="1.0" encoding="utf-16"?>' + envelope("<getTotals/>").decode()
    answer = post(url, body.encode("utf-16"), **{"Content-Type": "text/xml; charset=utf-16"})
    assert answer.status_code in (200, 500)
    assert NAMESPACE in answer.text or fault_of(answer)


@pytest.mark.parametrize("kind", ["", "application/json", 'multipart/related; boundary="x"', "application/soap+xml"])
def test_other_content_types(url: str, kind: str) -> None:
    answer = requests.post(url, data=GET_TOTALS, headers={"Content-Type": kind}, timeout=30)
    assert answer.status_code == 415
    assert fault_of(answer) == "send SOAP 1.1 with the Content-Type text/xml"

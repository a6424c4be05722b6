"""Attacks on urlServer's door: messages that cost more than they should, and connections that give nothing.

Each is answered with a sentence or closed, while a normal client is served at once.
"""

import json
import re
import signal
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import cast

import pytest
import requests
from lxml import etree

from common.wire import Outcome
from server import lobby
from server.admin.main import MAX_BATCH_CHARACTERS
from server.admin.operator import MAX_LIMIT
from server.urlserver import connection, web
from server.urlserver.guard import Answer, Guard, Head
from server.urlserver.service import UrlService
from server.urlserver.soap import application
from tests.certificates import make_certificate
from tests.processes import Running
from tests.urlserver import GET_TOTALS, NAMESPACE, Soap, address_of, envelope, serving
from tests.waiting import wait_until

SOON_SECONDS = 1.0  # what a normal call may take, whatever strangers do
SOAP = "http://schemas.xmlsoap.org/soap/envelope/"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(tmp_path_factory.mktemp("urlserver"), "--start-urls", "http://example.org/") as program:
        first_job(address_of(program))
        yield address_of(program)
        assert program.stop() == 0
        assert "Traceback" not in program.errors()


def first_job(url: str) -> str:
    """The same one each time."""
    return str(Soap(url).job(request="first").job)


def post(url: str, body: bytes, **headers: str) -> requests.Response:
    return requests.post(url, data=body, headers={"Content-Type": "text/xml; charset=utf-8", **headers}, timeout=60)


def fault(answer: requests.Response) -> tuple[str, str]:
    """Code and sentence of a fault."""
    found = re.search(r"<faultcode>[^:<]+:([^<]+)</faultcode>\s*<faultstring>([^<]*)</faultstring>", answer.text)
    assert found, (answer.status_code, answer.text[:1000])
    return found[1], found[2]


# --- what is dear to parse

DECLARATION = "xmlns:a{0}='u{0}'"
ATTRIBUTE = "a{0}='1'"


def many(template: str, number: int) -> str:
    return " ".join(template.format(count) for count in range(number))


def around(start: str, number: int) -> bytes:
    return envelope(start * number + "</a>" * number)


BEHIND, UTF_7 = b"<?xml version='1.0'?>", b"<?xml version='1.0' encoding='utf-7'?>"


def in_utf_7(body: str) -> bytes:
    """An envelope in which no mark is seen."""
    return envelope(body).replace(b"<", b"+ADw-")


EXPENSIVE = {
    "60,000 name spaces": (envelope(f"<getTotals {many(DECLARATION, 60_000)}/>"), "tag of more than"),
    "300,000 name spaces": (envelope(f"<getTotals {many(DECLARATION, 300_000)}/>"), "tag of more than"),
    "one name space for each of many tags": (
        envelope("".join(f"<a xmlns:a{i}='u{i}'>" for i in range(40_000))), "nested deeper than 50"),
    "name spaces beside each other": (
        envelope("".join(f"<a xmlns:a{i}='u{i}'/>" for i in range(400))), "more than 200 name spaces"),
    "many attributes": (envelope(f"<getTotals {many(ATTRIBUTE, 500)}/>"), "more than 100 attributes"),
    "very many attributes": (envelope(f"<getTotals {many(ATTRIBUTE, 500_000)}/>"), "tag of more than"),
    "an attribute of 20 MB": (envelope(f"<getTotals a='{'x' * 20_000_000}'/>"), "tag of more than"),
    "a name of 20 MB": (envelope(f"<{'x' * 20_000_000}/>"), "tag of more than"),
    "depth": (around("<a>", 100_000), "nested deeper than 50"),
    "many empty elements": (envelope("<a/>" * 1_000_000), "more than 1,000 tags"),
    "many comments": (envelope("<!---->" * 1_000_000), "more than 1,000 tags"),
    "a long comment": (envelope(f"<!--{'-x' * 5_000_000}-->"), "a long comment"),
    "many instructions": (envelope("<?a?>" * 1_000_000), "more than 1,000 tags"),
    "name spaces in UTF-7, behind a second declaration": (
        BEHIND + UTF_7 + in_utf_7(f"<getTotals {many(DECLARATION, 60_000)}/>"), "instruction that begins with xml"),
    "UTF-7 behind a comment": (b"<!-- -->" + UTF_7 + in_utf_7("<a/>"), "instruction that begins with xml"),
    "UTF-7 behind a blank": (b"\n" + UTF_7 + in_utf_7("<a/>"), "instruction that begins with xml"),
    "a declaration in capitals": (BEHIND + UTF_7.replace(b"xml", b"XmL") + GET_TOTALS, "begins with xml"),
    "a declaration within": (envelope(UTF_7.decode()), "instruction that begins with xml"),
    "many CDATA sections": (envelope("<![CDATA[]]>" * 1_000_000), "more than 1,000 tags"),
    "a CDATA section without an end": (envelope("<![CDATA[" * 1_000_000), "not well-formed"),
    "a doctype": (b"<!DOCTYPE a [<!ENTITY b 'c'>]>" + GET_TOTALS, "document type declaration"),
    "a doctype behind a comment": (b"<!-- --><!DOCTYPE a>" + GET_TOTALS, "document type declaration"),
    "a doctype in a name": (b"<!doctype a>" + GET_TOTALS, "not well-formed"),
    "a mark inside of a value": (envelope("<getTotals a='<a>'/>"), "not well-formed"),
    "a value without an end": (envelope("<getTotals a='" + "x" * 5_000_000), "tag of more than"),
    "nothing but marks": (b"<" * 5_000_000, "not well-formed"),
    "name spaces in UTF-16": (
        (f"<?xml version='1.0' encoding='utf-16'?><a {many(DECLARATION, 60_000)}/>").encode("utf-16"),
        "tag of more than"),
    "UTF-16 that is none": (b"\xff\xfe\x00\xd8a", "not in the encoding that it claims"),
    "EBCDIC": (b"\x4c\x6f\xa7\x94\x93" * 100, "empty, or no XML"),
    "UTF-32": ("<a/>".encode("utf-32-be"), "empty, or no XML"),
    "text before it": (b"x" + GET_TOTALS, "empty, or no XML"),
}  # fmt: skip


@pytest.mark.parametrize("name", EXPENSIVE)
def test_messages_that_would_cost_much_cost_little(url: str, name: str) -> None:
    message, words = EXPENSIVE[name]
    began = time.monotonic()
    code, text = fault(post(url, message, **{"Content-Type": "text/xml"}))
    assert time.monotonic() - began < SOON_SECONDS
    assert code == "Client.BadMessage"
    assert words in text


@pytest.mark.parametrize("charset", ["utf-7", "utf-32", "cp037", "idna", "zip", "x" * 1000, "\0", "rot13"])
def test_encodings_in_which_marks_could_hide_are_not_taken(url: str, charset: str) -> None:
    for answer in (
        post(url, f"<?xml version='1.0' encoding='{charset}'?>".encode() + GET_TOTALS, **{"Content-Type": "text/xml"}),
        post(url, GET_TOTALS, **{"Content-Type": f'text/xml; charset="{charset}"'.replace("\0", "?")}),
    ):
        assert fault(answer)[0] == "Client.BadMessage"


def test_the_parser_takes_no_word_for_an_encoding() -> None:
    """Should a declaration ever come as far."""
    options = application(cast(UrlService, None), 1000).app.in_protocol.parser_kwargs
    root = etree.fromstring(UTF_7 + b"<a>+ADw-b/+AD4-</a>", etree.XMLParser(**options))
    assert (root.text, len(root)) == ("+ADw-b/+AD4-", 0)


def in_header(blocks: str) -> bytes:
    return GET_TOTALS.replace(b"<e:Body>", f"<e:Header>{blocks}</e:Header><e:Body>".encode())


ORDINARY = {
    "plain": GET_TOTALS,
    "declared": b"<?xml version='1.0' encoding='UTF-8' standalone='yes'?>\n" + GET_TOTALS,
    "marked": b"\xef\xbb\xbf<?xml version='1.0'?>" + GET_TOTALS,
    "UTF-16": f"<?xml version='1.0' encoding='UTF-16'?>{GET_TOTALS.decode()}".encode("utf-16"),
    "Latin": b"<?xml version='1.0' encoding='iso-8859-1'?><!-- caf\xe9 -->" + GET_TOTALS,
    "a header and 40 name spaces": (
        f"<e:Envelope xmlns:e='{SOAP}' {many(DECLARATION, 40)}><e:Header><s xmlns='urn:s' a='x>y' b=\"'\"><t/></s>"
        f"</e:Header><e:Body><!-- > --><getTotals xmlns='{NAMESPACE}'><at_start><![CDATA[1]]></at_start></getTotals>"
        "</e:Body></e:Envelope>"
    ).encode(),
    "references to nothing": in_header("<a id='a'/><b href='#b'/>"),
    "a reference to what is around it": in_header("<a id='a'><b href='#a'/></a><c href='#a'/>"),
    "references to much": in_header(f"<a id='a'>{'x' * 5_000_000}</a>" + "<b href='#a'/>" * 500),
    "references that double": in_header(
        "".join(f"<a id='i{i}'><b href='#i{i + 1}'/><b href='#i{i + 1}'/></a>" for i in range(25)) + "<a href='#i0'/>"),
}  # fmt: skip


@pytest.mark.parametrize("name", ORDINARY)
def test_what_tool_kits_send_is_taken(url: str, name: str) -> None:
    began = time.monotonic()
    answer = post(url, ORDINARY[name], **{"Content-Type": "text/xml"})
    assert time.monotonic() - began < SOON_SECONDS
    assert answer.status_code == 200, answer.text


# --- values

ARABIC_THREE = "\u0663"


@pytest.mark.parametrize(
    "value",
    [
        ARABIC_THREE,
        ARABIC_THREE * 60,
        ARABIC_THREE * 5_000,
        "\U0001f600" * 400,
        "&amp;#1632" * 200,
        "9" * 5_000,
        "5\n6",
    ],
)
def test_a_number_that_is_none_is_named_in_a_short_fault(url: str, value: str) -> None:
    answer = post(url, envelope(f"<getJob><ident>w1</ident><wanted>{value}</wanted></getJob>"))
    code, text = fault(answer)
    assert code == "Client.SchemaValidationError"
    assert "wanted" in text
    assert "\n" not in text
    assert len(text) < 3_000


@pytest.mark.parametrize("value", ["\n" * 2_000 + "5", "5" + "\n" * 2_000, "0" * 5_000 + "5", "\t+5 ", "\r\n5"])
def test_a_number_with_blanks_and_zeros_is_a_number(url: str, value: str) -> None:
    job = post(
        url, envelope(f"<getJob><ident>w1</ident><request>{len(value)}</request><wanted>{value}</wanted></getJob>")
    )
    assert job.status_code == 200
    report = envelope(f"<sendAllData><ident>w1</ident><job>{first_job(url)}</job><size>{value}</size></sendAllData>")
    assert post(url, report).status_code == 200


def test_a_switch_with_blanks_is_what_it_says(tmp_path: Path) -> None:
    with serving(tmp_path, "--start-urls", "http://example.org/") as program:
        address = address_of(program)
        Soap(address).job()
        answers = {
            value: re.search(
                r"leased>(\d)<", post(address, envelope(f"<getTotals><at_start>{value}</at_start></getTotals>")).text
            )
            for value in ("1", "\n1\n", " true ", "0", "false")
        }
    assert {value: found and found[1] for value, found in answers.items()} == {
        "1": "0", "\n1\n": "0", " true ": "0", "0": "1", "false": "1",
    }  # fmt: skip


# --- tables

ROWS = {
    "found": "http://example.org/{}\t1\n",
    "listed": "http://example.org/{}\t1\n",
    "results": "http://example.org/{}\tstored\n",
    "hosts": "h{}.example\n",
}


@pytest.mark.parametrize("table", ROWS)
@pytest.mark.parametrize("number", [10_001, 110_000])
def test_a_table_has_no_more_rows_than_the_manual_says(url: str, table: str, number: int) -> None:
    before = Soap(url).totals()
    rows = "".join(ROWS[table].format(count) for count in range(number))
    answer = post(url, envelope(f"<sendAllData><ident>w1</ident><job>1</job><{table}>{rows}</{table}></sendAllData>"))
    assert fault(answer) == ("Client.TooMany", f"the table {table} has more than 10,000 rows: split it")
    assert Soap(url).totals() == before


@pytest.mark.parametrize(("table", "row"), [
    ("results", "http://a/\t{}"), ("hosts", "h\t\t{}"), ("found", "http://a/\t{}"), ("listed", "http://a/\t1\t1\t{}"),
])  # fmt: skip
def test_a_fault_does_not_give_back_what_was_sent(url: str, table: str, row: str) -> None:
    rows = row.format("\x85" * 4_900_000)
    answer = post(url, envelope(f"<sendAllData><ident>w1</ident><job>1</job><{table}>{rows}</{table}></sendAllData>"))
    assert fault(answer)[0] == "Client.BadTable"
    assert len(answer.content) < 3_000


def test_empty_rows_count(url: str) -> None:
    rows = "http://example.org/\t1" + "\n" * 9_000_000 + "http://example.org/\t1"
    answer = post(url, envelope(f"<sendAllData><ident>w1</ident><job>1</job><found>{rows}</found></sendAllData>"))
    assert fault(answer)[0] == "Client.TooMany"


def test_the_number_of_rows_is_in_the_manual() -> None:
    assert "at most 10,000 rows" in (Path(__file__).parents[2] / "manual" / "soap.md").read_text()


# --- commands


@pytest.mark.parametrize("command", ["[" + "{}," * 10_000_000 + "1]", " " * 1_000_001])
def test_commands_are_short(url: str, command: str) -> None:
    began = time.monotonic()
    answer = post(f"{url}admin", command.encode(), **{"Content-Type": "application/json"})
    assert time.monotonic() - began < SOON_SECONDS
    assert (answer.status_code, answer.json()) == (413, {"error": "the message has more than 1000000 bytes: split it"})


def test_a_batch_of_urls_is_a_short_command() -> None:
    """crawlAdmin adds as many at once, whatever their characters."""
    assert len(json.dumps("\U0001f600" * MAX_BATCH_CHARACTERS)) < web.MAX_BYTES


def test_the_limits_of_commands_are_those_of_the_manual() -> None:
    manual = (Path(__file__).parents[2] / "manual" / "commands.md").read_text()
    for words in (f"{web.MAX_BYTES:,} bytes", f"at most {MAX_LIMIT:,}"):
        assert words in manual, words


# --- connections that give nothing

TOKEN = "a-token-for-tests"
SLOW = {
    "nothing": b"",
    "half a line": b"POST / HT",
    "half a head": b"POST / HTTP/1.1\r\nHost: localhost\r\n",
    "a body, without a token": b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000000\r\n\r\n<",
    "a body in pieces, without a token": (
        b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n<"),
    "a body, with a token": (
        f"POST / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: text/xml\r\n"
        "Content-Length: 9000000\r\n\r\n<").encode(),
    "the answer to a large message, not read": (
        f"GET /?wsdl HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n" * 50).encode(),
    "a handshake": b"\x16\x03\x01\x02\x00\x01\x00",
}  # fmt: skip

HEAD_OF_CALL = f"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/xml\r\nAuthorization: Bearer {TOKEN}\r\n"


def call(message: bytes, *further: str) -> bytes:
    """A whole request with a good token."""
    lines = "".join(f"{line}\r\n" for line in further)
    return f"{HEAD_OF_CALL}Content-Length: {len(message)}\r\n{lines}\r\n".encode() + message


ONE, LAST = call(GET_TOTALS), call(GET_TOTALS, "Connection: close")


def port_of(url: str) -> int:
    return int(url.rsplit(":", 1)[1].strip("/"))


def connected(url: str, tls: bool) -> socket.socket:
    plain = socket.create_connection(("127.0.0.1", port_of(url)), timeout=10)
    if not tls:
        return plain
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(plain)


def seconds_of(call: Callable[[], object]) -> float:
    began = time.monotonic()
    call()
    return time.monotonic() - began


@pytest.fixture(scope="module", params=["http", "https"])
def guarded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, str | bool]]:
    """A server with a token: where it is, and how its certificate is verified."""
    folder, options, verify = tmp_path_factory.mktemp("urlserver"), ["--token", TOKEN], True
    if request.param == "https":
        certificate, key = make_certificate(folder)
        options, verify = [*options, "--tls-cert", certificate.name, "--tls-key", key.name], str(certificate)
    with serving(folder, "--start-urls", "http://example.org/", *options) as program:
        yield address_of(program), verify
        assert seconds_of(program.stop) < 20
        assert "Traceback" not in program.errors()


# Of those over TLS only some: 200 handshakes take seconds, and behind them it is the same.
SLOW_OVER_TLS = ("half a head", "a body, with a token", "a handshake")
EACH_SLOW = [("http", name) for name in SLOW] + [("https", name) for name in SLOW_OVER_TLS]


@pytest.mark.parametrize(("guarded", "name"), EACH_SLOW, indirect=["guarded"])
def test_200_connections_that_give_nothing_hold_up_nobody(guarded: tuple[str, str | bool], name: str) -> None:
    url, verify = guarded
    is_tls = url.startswith("https")
    with ExitStack() as opened:
        for _ in range(200):
            try:
                each = opened.enter_context(connected(url, is_tls and name != "a handshake"))
                each.sendall(SLOW[name])
            except OSError:  # sent away while we were at it
                continue
        for _ in range(3):
            seconds = seconds_of(lambda: Soap(url, TOKEN, verify).service.getTotals())  # with all that a tool kit asks
            assert seconds < SOON_SECONDS
        kept = Soap(url, TOKEN, verify)
        for _ in range(10):
            assert seconds_of(lambda: kept.service.getTotals()) < SOON_SECONDS


def answer_of(peer: socket.socket, seconds: float = 30) -> bytes:
    """Everything until the server closes."""
    peer.settimeout(seconds)
    parts = []
    try:
        while part := peer.recv(1 << 16):
            parts.append(part)
    except ConnectionError:
        pass
    return b"".join(parts)


@contextmanager
def paused(program: Running) -> Iterator[None]:
    """What is done within, it finds all at once."""
    program.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        program.process.send_signal(signal.SIGCONT)


def open_files(program: Running) -> int:
    return len(list(Path(f"/proc/{program.process.pid}/fd").iterdir()))


def test_strangers_that_come_and_go_at_once_leave_nothing_open(tmp_path: Path) -> None:
    with serving(tmp_path, "--start-urls", "http://example.org/", "--token", TOKEN) as program:
        url = address_of(program)
        Soap(url, TOKEN).totals()
        before = open_files(program)
        for _ in range(3):
            with paused(program), ExitStack() as opened:
                for _ in range(150):
                    opened.enter_context(connected(url, tls=False))
            Soap(url, TOKEN).totals()
        wait_until(lambda: open_files(program) <= before + 3, 10, lambda: f"{before} before, {open_files(program)} now")


@pytest.mark.parametrize("options", [["--token", TOKEN], []], ids=["with a token", "without"])
def test_a_burst_of_those_who_belong_here_is_answered(tmp_path: Path, options: list[str]) -> None:
    """60 workers behind one address, while the server was busy for a moment: more than the lobby has room for."""
    with serving(tmp_path, "--start-urls", "http://example.org/", *options) as program, ExitStack() as opened:
        url = address_of(program)
        with paused(program):
            peers = [opened.enter_context(connected(url, tls=False)) for _ in range(60)]
            for peer in peers:
                peer.sendall(LAST)
        assert [answer_of(peer, 20)[:15] for peer in peers] == [b"HTTP/1.1 200 OK"] * 60


def test_strangers_are_closed_after_their_time(guarded: tuple[str, str | bool]) -> None:
    url, _ = guarded
    with ExitStack() as opened:
        began = time.monotonic()
        peers = []
        for name in ("nothing", "half a line", "half a head", "a handshake"):
            is_tls = url.startswith("https") and name != "a handshake"
            peers.append(opened.enter_context(connected(url, is_tls)))
            peers[-1].sendall(SLOW[name])
        for peer in peers:
            answer_of(peer)
            assert time.monotonic() - began < lobby.STAY_SECONDS + 3


def test_a_byte_now_and_then_buys_no_time(guarded: tuple[str, str | bool]) -> None:
    url, _ = guarded
    ended = threading.Event()

    def drip(peer: socket.socket) -> None:
        for _ in range(200):
            try:
                peer.sendall(b"X")
            except OSError:
                break
            if ended.wait(0.1):
                break

    with connected(url, url.startswith("https")) as peer:
        peer.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\nX-A: ")
        dripping = threading.Thread(target=drip, args=(peer,))
        seconds = seconds_of(lambda: (dripping.start(), answer_of(peer)))
        ended.set()
        dripping.join()
    assert seconds < lobby.STAY_SECONDS + 3


def test_who_has_no_token_is_told_so_before_the_body_is_there(guarded: tuple[str, str | bool]) -> None:
    url, _ = guarded
    with connected(url, url.startswith("https")) as peer:
        peer.sendall(SLOW["a body, without a token"])
        peer.settimeout(SOON_SECONDS)
        assert peer.recv(20).startswith(b"HTTP/1.1 401 ")


def test_who_asks_first_is_told_whether_to_send(guarded: tuple[str, str | bool]) -> None:
    url, _ = guarded
    head = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/xml\r\nExpect: 100-continue\r\n"
    head += f"Connection: close\r\nContent-Length: {len(GET_TOTALS)}\r\n"
    for token, said in (("wrong", b"HTTP/1.1 401 "), (TOKEN, b"HTTP/1.1 100 ")):
        with connected(url, url.startswith("https")) as peer:
            peer.sendall(f"{head}Authorization: Bearer {token}\r\n\r\n".encode())
            peer.settimeout(SOON_SECONDS)
            assert peer.recv(20).startswith(said)
            if token == TOKEN:
                peer.sendall(GET_TOTALS)
                assert b"getTotalsResponse" in answer_of(peer)


BROKEN = {
    "no HTTP": b"hello\r\n\r\n",
    "FTP": b"USER pavouk\r\nPASS secret\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "no Host": b"POST / HTTP/1.1\r\n\r\n",
    "two Hosts": b"POST / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    "two lengths": b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    "a length below zero": b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
    "a head without an end": b"POST / HTTP/1.1\r\nX: " + b"x" * 40_000,
    "many fields": b"POST / HTTP/1.1\r\n" + b"a: b\r\n" * 10_000,
    "a folded field": b"POST / HTTP/1.1\r\nHost: localhost\r\n" + b" x\r\n" * 100 + b"\r\n",
    "a proxy's request": b"GET http://example.org/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a tunnel": b"CONNECT example.org:443 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "an empty request": b"\r\n\r\n",
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_no_request_gets_a_400_or_is_closed(guarded: tuple[str, str | bool], name: str) -> None:
    url, verify = guarded
    with connected(url, url.startswith("https")) as peer:
        began = time.monotonic()
        with suppress(ConnectionError):
            peer.sendall(BROKEN[name])
        answer = answer_of(peer)
        assert time.monotonic() - began < lobby.STAY_SECONDS + 3
    assert not answer or answer.startswith((b"HTTP/1.1 4", b"HTTP/1.1 501"))
    assert Soap(url, TOKEN, verify).totals()["known"] == 1


def test_messages_one_behind_another_are_all_answered(guarded: tuple[str, str | bool]) -> None:
    url, _ = guarded
    with connected(url, url.startswith("https")) as peer:
        peer.sendall(ONE * 20 + LAST)
        assert answer_of(peer).count(b"</soap11env:Envelope>") == 21


def test_the_limits_of_connections_are_those_of_the_manual() -> None:
    manual = (Path(__file__).parents[2] / "manual" / "soap.md").read_text()
    for words in (
        f"{lobby.STAY_SECONDS:g} seconds", f"{lobby.MAX_WAITING} connections",
        f"{lobby.MAX_WAITING_PER_NETWORK} of one", f"{connection.MAX_HEAD_BYTES:,} bytes",
        f"{connection.IDLE_SECONDS:g} seconds", f"{connection.LEAST_BYTES_A_SECOND:,} bytes a second",
        f"{connection.PARSED_AT_ONCE_BYTES // 1_000_000} MB", f"{connection.UNSENT_BYTES // 1_000_000} MB together",
        f"within {connection.LAST_SECONDS:g} seconds",
    ):  # fmt: skip
        assert words in manual, words


# --- answers that nobody takes


@contextmanager
def with_a_large_job(tmp_path: Path) -> Iterator[tuple[Running, bytes]]:
    """A server, and a call for the same job again and again: some 7.5 MB."""
    options = ("--urls-to-crawl", "10000", "--delay", "0", "--token", TOKEN)
    with serving(tmp_path, "--start-urls", "http://example.org/", *options) as program:
        soap = Soap(address_of(program), TOKEN)
        first = soap.job().job
        soap.report("w1", first, {}, [f"http://example.org/{n}/{'x' * 1_900}" for n in range(4_000)])
        soap.report("w1", first, {"http://example.org/": Outcome.STORED})
        ask = envelope("<getJob><ident>w1</ident><request>large</request><wanted>10000</wanted></getJob>")
        yield program, call(ask, "Connection: close")


def deaf(program: Running, message: bytes) -> socket.socket:
    """A connection that has its answer, and has taken the beginning of it."""
    peer = socket.socket()
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    peer.settimeout(30)
    peer.connect(("127.0.0.1", port_of(address_of(program))))
    peer.sendall(message)
    assert peer.recv(15) == b"HTTP/1.1 200 OK"
    return peer


def test_answers_that_nobody_takes_are_bounded_and_do_not_keep_the_server_from_ending(tmp_path: Path) -> None:
    with with_a_large_job(tmp_path) as (program, message), ExitStack() as opened:
        peers = [opened.enter_context(deaf(program, message))]
        before, size = resident_mb(program.process.pid), connection.UNSENT_BYTES // 1_000_000
        peers += [opened.enter_context(deaf(program, message)) for _ in range(15)]
        assert resident_mb(program.process.pid) < before + size + 30
        with connected(address_of(program), tls=False) as peer:
            peer.sendall(message)
            whole = len(answer_of(peer))
        assert whole > 7_000_000
        assert len(answer_of(peers[0])) < whole / 2, "the oldest was cut off"
        assert seconds_of(program.stop) < connection.LAST_SECONDS + 3
        assert "Traceback" not in program.errors()


# --- who asks


def nobody(environ: object, start_response: object) -> list[bytes]:
    raise AssertionError("the guard must not call it")


MESSAGE = {"host": "127.0.0.1:50001", "content-type": "text/xml", "content-length": "5"}
FROM_PAGES = {
    "another page": {"origin": "http://example.net"},
    "a page of no origin": {"origin": "null"},
    "a page of a bent name": {"host": "rebound.example:50001", "origin": "http://rebound.example:50001"},
    "a bent name": {"host": "rebound.example:50001"},
    "a bent name without a port": {"host": "rebound.example"},
    "a bent name that looks like an address": {"host": "127.0.0.1.rebound.example:50001"},
    "a bent name that begins like ours": {"host": "localhost.rebound.example"},
    "an element of a page": {"sec-fetch-site": "cross-site"},
    "a script of the same site": {"sec-fetch-site": "same-origin"},
}
OWN = ("127.0.0.1:50001", "127.0.0.1", "[::1]:50001", "[::1]", "localhost", "LocalHost:50001", "own.example:50001", "")


@pytest.mark.parametrize("name", FROM_PAGES)
@pytest.mark.parametrize("head", [
    Head("POST", "/", MESSAGE), Head("POST", "/admin", MESSAGE | {"content-type": "application/json"}),
    Head("GET", "/?wsdl", {"host": "127.0.0.1"}), Head("GET", "/anything", {"host": "127.0.0.1"}),
])  # fmt: skip
def test_nothing_is_said_to_web_pages(head: Head, name: str) -> None:
    judged = Guard(nobody, b"<wsdl/>", "", 100, nobody).judged(
        Head(head.method, head.target, {**head.headers, **FROM_PAGES[name]})
    )
    assert isinstance(judged, Answer)
    assert judged.status == 403
    assert b"<wsdl/>" not in judged.body


@pytest.mark.parametrize("host", OWN)
def test_own_names_are_taken(host: str) -> None:
    guard = Guard(nobody, b"<wsdl/>", "", 100, nobody, "own.example")
    headers = {**MESSAGE, "host": host} if host else {"content-type": "text/xml", "content-length": "5"}
    assert guard.judged(Head("POST", "/", headers)) is nobody


def test_with_a_token_any_name_will_do_but_no_page() -> None:
    guard = Guard(nobody, b"<wsdl/>", TOKEN, 100, nobody)
    headers = {**MESSAGE, "host": "crawl.example.org", "authorization": f"Bearer {TOKEN}"}
    assert guard.judged(Head("POST", "/", headers)) is nobody
    judged = guard.judged(Head("POST", "/", {**headers, "origin": "http://crawl.example.org"}))
    assert isinstance(judged, Answer)
    assert judged.status == 403


def test_a_real_server_refuses_pages_and_bent_names(url: str) -> None:
    for headers in ({"Origin": "http://rebound.example"}, {"Host": "rebound.example"}):
        assert post(url, GET_TOTALS, **headers).status_code == 403
        answer = requests.get(f"{url}?wsdl", headers=headers, timeout=20)
        assert answer.status_code == 403
        assert "definitions" not in answer.text
    assert requests.get(f"{url}?wsdl", headers={"Sec-Fetch-Site": "none"}, timeout=20).status_code == 200


# --- memory

LARGE_ROWS = "".join(f"http://example.org/{n:05}/{'x' * 860}\t1\n" for n in range(10_000))


def resident_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024  # type: ignore[index]


def heaps(pid: int) -> int:
    """glibc's for threads, beside the first one: their addresses are multiples of 64 MiB."""
    maps = Path(f"/proc/{pid}/maps").read_text()
    starts = re.findall(r"^([0-9a-f]+)-[0-9a-f]+ rw-p 00000000 00:00 0\s*$", maps, re.MULTILINE)
    return sum(int(start, 16) % (64 << 20) == 0 for start in starts)


def test_large_reports_at_the_same_time_share_the_memory_and_give_it_back(tmp_path: Path) -> None:
    """One alone is the measure: sixteen must not need much more, neither while they are parsed nor afterwards."""
    with serving(tmp_path, "--start-urls", "http://example.org/", "--max-pages", "1") as program:
        url, peaks, ended = address_of(program), [0.0], threading.Event()
        job = first_job(url)
        message = envelope(f"<sendAllData><ident>w1</ident><job>{job}</job><found>{LARGE_ROWS}</found></sendAllData>")
        assert 8_500_000 < len(message) < 10_000_000
        assert post(url, message).status_code == 200
        one = resident_mb(program.process.pid)

        def watch() -> None:
            while not ended.wait(0.02):
                peaks.append(resident_mb(program.process.pid))

        watching = threading.Thread(target=watch)
        watching.start()
        answers: list[int] = []
        senders = [threading.Thread(target=lambda: answers.append(post(url, message).status_code)) for _ in range(16)]
        for sender in senders:
            sender.start()
        slowest = 0.0
        while any(sender.is_alive() for sender in senders):
            slowest = max(slowest, seconds_of(lambda: Soap(url).totals()))
        ended.set()
        watching.join()
        assert answers == [200] * 16
        after = resident_mb(program.process.pid)
        assert heaps(program.process.pid) <= 3, "one for all threads, and what may lie there by chance"
    print(
        f"one report: {one:.0f} MB; sixteen: {max(peaks):.0f} MB at most, {after:.0f} MB after; slowest {slowest:.2f}"
    )
    assert max(peaks) < one + 100
    assert after < one + 40

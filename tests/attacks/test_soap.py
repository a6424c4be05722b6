"""Attacks on urlServer's door: messages that cost more than they should, and connections that give nothing.

Each is answered with a sentence or closed, while a normal client is served at once.
"""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from tests.urlserver import GET_TOTALS, NAMESPACE, Soap, address_of, envelope, serving

SOON_SECONDS = 1.0  # what a normal call may take, whatever strangers do
SOAP = "http://schemas.xmlsoap.org/soap/envelope/"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(tmp_path_factory.mktemp("urlserver"), "--start-urls", "http://example.org/") as program:
        Soap(address_of(program)).job()
        yield address_of(program)
        assert program.stop() == 0
        assert "Traceback" not in program.errors()


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
}  # fmt: skip


@pytest.mark.parametrize("name", ORDINARY)
def test_what_tool_kits_send_is_taken(url: str, name: str) -> None:
    answer = post(url, ORDINARY[name], **{"Content-Type": "text/xml"})
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
    report = envelope(f"<sendAllData><ident>w1</ident><job>1</job><size>{value}</size></sendAllData>")
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


def test_empty_rows_count(url: str) -> None:
    rows = "http://example.org/\t1" + "\n" * 9_000_000 + "http://example.org/\t1"
    answer = post(url, envelope(f"<sendAllData><ident>w1</ident><job>1</job><found>{rows}</found></sendAllData>"))
    assert fault(answer)[0] == "Client.TooMany"


def test_the_number_of_rows_is_in_the_manual() -> None:
    assert "at most 10,000 rows" in (Path(__file__).parents[2] / "manual" / "soap.md").read_text()

"""Attacks on whoever reads pages: what one host sends delays no page of another.

The table is of pages that cost, or once did, far more than their size: the square of it, or gigabytes.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from client.miner import mine
from client.reading.reader import MAX_LAID_ASIDE, Reader
from client.reading.seen import Wanted, see
from client.results import FetchResult, MinedPage
from common.wire import Outcome, UrlTask
from tests.tickets import job_settings
from tests.waiting import wait_until

NOISE_SECONDS = 4.0  # that a busy machine may add to a second
ALL_KEPT = job_settings(document_save=True)
ALL = Wanted(unfollowed=True, shown=True)
# Honest, and not certainly harmless: read in a process of its own.
HONEST = b"<title>Honest</title>" + b"".join(b"<p>One <a href=%d>two</a>" % number for number in range(5_000))
LARGE = HONEST + b"".join(b"<li><a href=x%d>three</a>" % number for number in range(60_000))
START = b"<title>Hostile</title><a href=x>first</a>"
N = 200_000


def _many(piece: bytes, times: int = N) -> Callable[[], bytes]:
    return lambda: piece * times


def _numbered(piece: bytes, times: int = N, end: bytes = b"") -> Callable[[], bytes]:
    return lambda: b"".join(piece % number for number in range(times)) + end


PAGES: dict[str, Callable[[], bytes]] = {
    "150,000 attributes": lambda: b"<a" + b"".join(b" a%d=1" % number for number in range(150_000)) + b">x</a>",
    "attributes without values": lambda: b"<a" + b"".join(b"/%x" % number for number in range(700_000)) + b">",
    "the same attribute": lambda: b"<a" + b" a=1" * 1_500_000 + b">x</a>",
    "a thousand attributes, a thousand times": lambda: (
        b"<p" + b"".join(b" a%d=1" % number for number in range(1_000)) + b">"
    ) * 1_000,
    "new attributes in each tag": lambda: b"".join(
        b"<p %b>" % b"/".join(b"%x" % (100 * tag + number) for number in range(100)) for tag in range(8_000)
    ),
    "attributes of body": _numbered(b"<body a%d>"),
    "attributes of html": _numbered(b"<html a%d>"),
    "nested": _many(b"<div>"),
    "nested, closed by what is not open": _many(b"<div></x>"),
    "nested blocks and paragraphs": _many(b"<div><p>", N // 2),
    "nested formatting": _many(b"<b>"),
    "nested anchors": _numbered(b"<a href=%d><div>", N // 2),
    "anchors that were never closed": lambda: b"<a><div>" * 100_000 + b"</a>" * 50_000,
    "formatting that was never closed": lambda: (
        b"".join(b"<font size=%d>" % number for number in range(3_000)) + b"<p>x" * 30_000
    ),
    "misnested formatting": lambda: b"<b><p>" * 50_000 + b"</b>" * 50_000,
    "formatting and paragraphs": _many(b"<i><p>", N // 2),
    "a huge tag name": lambda: b"<" + b"a" * 7_000_000 + b">x",
    "many tag names": _numbered(b"<x%d>"),
    "tables": _many(b"<table>"),
    "tables in cells": _many(b"<table><tr><td>", N // 3),
    "text in tables": lambda: b"<table>" + b"x<tr>y" * N,
    "formatting in tables": lambda: b"<table>" + b"x<b>" * N,
    "a comment": lambda: b"<!--" + b"--!" * 2_000_000,
    "comments": _many(b"<!---->"),
    "entities": _many(b"&CounterClockwiseContourIntegral;"),
    "ampersands": _many(b"&", 7_000_000),
    "selects": _many(b"<select><optgroup><option>", N // 3),
    "drawings": _many(b"<svg>"),
    "nested in a drawing": lambda: b"<svg>" + b"<g></x>" * N,
    "drawings in pages in drawings": _many(b"<svg><foreignObject>", N // 2),
    "bases in a deep drawing": lambda: b"<svg>" + b"<g>" * 1_000 + b"<base href=x>" * N,
    "formulas": _many(b"<math><mi>", N // 2),
    "noframes": _many(b"<noframes>"),
    "nested in noscript": _many(b"<noscript><div>", N // 2),
    "templates": _many(b"<template>"),
    "frame sets": _many(b"<frameset>"),
    "forms": _many(b"<form><div></form>", N // 3),
    "lists in lists": _many(b"<li><ul>", N // 2),
    "definitions": _many(b"<li><dd>", N // 2),
    "buttons": _many(b"<button>"),
    "objects": _many(b"<object><p></object>", N // 3),
    "plain text": lambda: b"<plaintext>" + b"<p>" * 2_000_000,
    "scripts in comments in a script": lambda: b"<script>" + b"<!--<script>" * 600_000,
    "a style": lambda: b"<style>" + b"url(a)" * 1_200_000,
    "NUL": _many(b"\0", 7_000_000),
    "texts between closed tags": lambda: b"<span>" * (N // 2) + b"x</span>y" * (N // 2),
    "titles of drawings": _many(b"<svg><title>x", N // 2),
}


class Crowd:
    """Threads that share a reader, and what they have done."""

    def __init__(self, threads: int) -> None:
        self.reader = Reader()
        self._hosts: list[str] = []
        self._pool = ThreadPoolExecutor(threads)
        self._lock = threading.Lock()  # guards what is below
        self.begun = self.ended = 0
        self.lengths: dict[str, int] = {}  # by host, how much was read of its page

    def give(self, html: bytes, host: str) -> None:
        self._hosts.append(host)
        self._pool.submit(self._read, html, host)

    def _read(self, html: bytes, host: str) -> None:
        with self._lock:
            self.begun += 1
        seen = self.reader.read(html, ALL, host)
        with self._lock:
            self.ended += 1
            self.lengths[host] = seen.length

    def __enter__(self) -> "Crowd":
        assert self.reader.read(HONEST, ALL, "first.example") == see(HONEST, ALL)
        return self

    def __exit__(self, *_: object) -> None:
        """Without waiting for what is still read."""
        for host in self._hosts:
            self.reader._avoided.add(host)
        if self.reader._maker is not None:
            self.reader._maker.kill()
        self._pool.shutdown()
        self.reader.close()


@pytest.mark.parametrize("name", PAGES)
def test_hostile_pages_of_other_hosts_delay_no_page(name: str) -> None:
    html, hosts = START + PAGES[name](), 6
    with Crowd(hosts) as crowd:
        for number in range(hosts):
            crowd.give(html, f"hostile{number}.example")
        wait_until(lambda: crowd.begun == hosts, 30)
        before = time.monotonic()
        assert crowd.reader.read(HONEST, ALL, "honest.example") == see(HONEST, ALL)
        assert time.monotonic() - before < 1.0 + NOISE_SECONDS or crowd.ended < hosts / 2


BASE = b'<base href="http://h.example/%b/">'
LINKS = b"".join(b"<a href=%d>" % number for number in range(50_000))
HAN = "".join(map(chr, range(0x4E00, 0x4E00 + 3_800))).encode()
# Those that cost it not when they are read, but before or behind that: charset, content type, and the page.
MINED: dict[str, tuple[str, str, Callable[[], bytes]]] = {
    "no windows-1253": ("windows-1253", "text/html", _many(b"\xd2", 19_000_000)),
    "no UTF-16": ("utf-16", "text/html", _many(b"\0\xdc", 9_500_000)),
    "no EUC-JP": ("euc-jp", "text/html", _many(b"\xff\xad\xa1", 1_000_000)),
    "UTF-8 by the header, another by itself": (
        "utf-8", "text/html", lambda: b"<meta charset=windows-1251>" + b"ab\xe9" * 6_300_000
    ),
    "plain text that is none": ("windows-1253", "text/plain", _many(b"\xd2", 19_000_000)),
    "many long addresses": ("", "text/html", lambda: BASE % (b"a" * 1_900) + LINKS),
    "many long addresses that XML escapes": ("", "text/html", lambda: BASE % (b"&" * 1_900) + LINKS),
    "one text in many anchors": ("", "text/html", lambda: LINKS.replace(b">", b"><object>") + b'"' * 500),
    "hosts of 3,800 characters": ("", "text/html", _numbered(b"<a href='http://%d" + HAN + b"/'>x</a>", 600)),
}  # fmt: skip


@pytest.mark.parametrize("name", MINED)
def test_what_is_made_of_hostile_pages_delays_no_page(name: str) -> None:
    charset, content_type, make = MINED[name]
    reader = Reader()

    def mined(host: str, body: bytes, **more: str) -> MinedPage:
        url = f"http://{host}.example/"
        result = FetchResult(UrlTask(url), Outcome.STORED, status=200, final_url=url, body=body, **more)
        return mine(result, ALL_KEPT, reader)

    body, honest = make(), b"<title>Honest</title><a href=x>one</a>"
    mined("first", HONEST, content_type="text/html")
    with ThreadPoolExecutor(2) as pool:
        pages = [pool.submit(mined, f"hostile{n}", body, charset=charset, content_type=content_type) for n in range(2)]
        longest = 0.0
        while not all(page.done() for page in pages):
            before = time.monotonic()
            assert mined("honest", honest, content_type="text/html").links == ["http://honest.example/x"]
            longest = max(longest, time.monotonic() - before)
        assert longest < 0.5 + NOISE_SECONDS
        assert all(len(page.result().xml) < 20_000_000 for page in pages)
    reader.close()


def test_more_hostile_hosts_than_places() -> None:
    """Pages that take long hold a thread each. There are so many more threads, and the rest is read in part."""
    html = START + PAGES["150,000 attributes"]()
    with Crowd(1 + MAX_LAID_ASIDE) as crowd:
        for number in range(3 * MAX_LAID_ASIDE):
            crowd.give(html, f"hostile{number}.example")
        crowd.give(HONEST, "honest.example")
        wait_until(lambda: crowd.lengths.get("honest.example"), 60)
        assert crowd.lengths["honest.example"] == len(HONEST)
        assert crowd.ended < 3 * MAX_LAID_ASIDE, "hostile ones are still read"


def test_honest_pages_that_take_long_are_read_to_their_end_meanwhile() -> None:
    html = START + PAGES["150,000 attributes"]()
    with Crowd(4) as crowd:
        for number in range(4):
            crowd.give(html, f"hostile{number}.example")
        wait_until(lambda: crowd.begun == 4, 30)
        assert crowd.reader.read(LARGE, ALL, "honest.example") == see(LARGE, ALL)


def test_a_host_gets_the_time_once(caplog: pytest.LogCaptureFixture) -> None:
    html = START + PAGES["nested"]()
    with Crowd(3) as crowd:
        for _ in range(12):
            crowd.give(html, "hostile.example")
        wait_until(lambda: crowd.ended == 12, 60)
        assert caplog.text.count("from hostile.example are read in part") == 1

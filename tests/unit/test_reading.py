"""Reading pages: here or in another process, the same is seen; what goes wrong there costs the rest of a page."""

import gc
import gzip
import logging
import os
import queue
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from client.children import ChildTrouble
from client.line import Line
from client.reading.process import Limits, OutOfTime, ProcessMaker, ReadingProcess
from client.reading.reader import MAX_PAGE_MEMORY, Reader
from client.reading.seen import Seen, Wanted, see
from client.sitemaps import Sitemap, read
from tests.waiting import wait_until

ALL = Wanted(unfollowed=True, shown=True)
PLENTY = Limits(60.0, MAX_PAGE_MEMORY)
HTML = (
    "<title>T \N{SNOWMAN}</title><base href=/b/><meta name=Keywords content='a, b'><p>One<a href=x>two</a>"
    "<a rel=nofollow href=y>three</a><img src=z><p>four"
).encode()
RISKY = HTML + b"<i>x</i>" * 4_000
BOMB = b"<!-->" + b"<div>" * 100_000


@pytest.fixture
def reader():
    made = Reader(max_seconds=60.0)
    yield made
    made.close()


def test_what_is_seen() -> None:
    seen = see(HTML, ALL)
    assert seen == Seen(
        len(HTML), "T ☃", "/b/", [("keywords", "a, b")], {"x": "two", "y": "three"}, "Onetwothree four", ["y"], ["z"]
    )
    assert see(HTML, Wanted()).unfollowed == see(HTML, Wanted()).shown == []


def test_what_is_seen_without_frames() -> None:
    html = b"<title>T</title><frameset><frame src=w><noframes><title>U</title><meta name=a content=b><base href=/b/>"
    html += b"one <a rel=nofollow href=x>two</a><a rel=nofollow href=w>three</a><img src=z></noframes></frameset>"
    seen = see(html, ALL)
    assert seen == Seen(len(html), "T", "", [], {"w": "three", "x": "two"}, "", ["x"], [])


def test_it_can_cross_a_border() -> None:
    assert Seen.unpacked(see(HTML, ALL).packed()) == see(HTML, ALL)


def test_another_process_sees_the_same() -> None:
    maker = ProcessMaker()
    process = maker.make()
    for html in (HTML, b"", RISKY, "\ud800".encode("utf-8", "surrogatepass") + b"\x00\xff"):
        assert Seen.unpacked(process.read(html, ALL, PLENTY)) == see(html, ALL)
    maker.end()
    wait_until(lambda: not process.is_alive, 10)
    assert not maker.is_alive


def test_harmless_pages_start_no_process(reader: Reader) -> None:
    assert reader.read(HTML, ALL, "a") == see(HTML, ALL)
    assert reader._maker is None


def test_other_pages_are_read_outside(reader: Reader) -> None:
    for _ in range(2):
        assert reader.read(RISKY, ALL, "a") == see(RISKY, ALL)
    first = reader._page_lanes[0]._process
    assert first is not None
    assert first.is_alive


def test_a_page_that_takes_too_long_is_read_in_part_and_its_host_gets_no_more_time(
    caplog: pytest.LogCaptureFixture,
) -> None:
    reader = Reader(max_seconds=0.5)
    seen = reader.read(HTML + BOMB, ALL, "hostile.example")
    assert seen.references == {"x": "two", "y": "three"}
    assert 0 < seen.length < len(HTML + BOMB)
    assert "did not answer in time" in caplog.text
    assert reader.read(RISKY, ALL, "hostile.example").length < len(RISKY)
    assert [lane._process for lane in reader._page_lanes] == [None] * 3, "nobody was asked"
    reader.close()


def test_who_wants_its_lock_back_lets_others_work() -> None:
    """Else the one who has the lock waits for its turn to work, and the one at work for the lock."""
    items: queue.Queue[int | None] = queue.Queue()
    line, lock, done = Line(items, 1), threading.Lock(), []
    reader = Reader(aside=line.aside)

    def wait_for_the_lock() -> None:
        assert line.take() == 1
        lock.acquire()
        with reader._released(lock):
            other.start()
            wait_until(lock.locked, 10)
        lock.release()

    def have_the_lock() -> None:
        with lock:
            items.put(2)
            done.append(line.take())
        line.take()

    other = threading.Thread(target=have_the_lock, daemon=True)
    first = threading.Thread(target=wait_for_the_lock, daemon=True)
    items.put(1)
    first.start()
    wait_until(lambda: done == [2], 10)
    items.put(None)
    for thread in (first, other):
        thread.join(10)
        assert not thread.is_alive()


@pytest.mark.parametrize("max_seconds", [0.1, 60.0], ids=["never read", "read in another lane"])
def test_a_page_that_took_long_is_not_kept(max_seconds: float) -> None:
    """An error that is remembered leads to all that was there when it was raised: 20 MB, until garbage is searched."""
    reader = Reader(max_seconds=max_seconds)
    page = HTML + b"<div>" * 30_000
    before = sys.getrefcount(page)
    gc.disable()
    try:
        reader.read(page, ALL, "hostile.example")
        assert sys.getrefcount(page) == before
    finally:
        gc.enable()
        reader.close()


def test_too_much_memory_ends_the_process_of_the_page_only(reader: Reader, caplog: pytest.LogCaptureFixture) -> None:
    fonts = b"".join(b"<font size=%d>" % number for number in range(3_000))
    html = HTML + fonts + b"<p>x" * 3_000  # nine million elements
    seen = reader.read(html, ALL, "hostile.example")
    assert (seen.title, list(seen.references)) == ("T ☃", ["x", "y"])
    assert seen.length < len(html)
    assert "are read in part" in caplog.text
    assert reader.read(RISKY, ALL, "a") == see(RISKY, ALL)


def test_all_of_them_killed_are_started_again(reader: Reader) -> None:
    reader.read(RISKY, ALL, "a")
    maker, process = reader._maker, reader._page_lanes[0]._process
    assert maker is not None
    assert process is not None
    os.kill(maker._process.pid, signal.SIGKILL)
    wait_until(lambda: not process.is_alive, 10)
    assert reader.read(RISKY, ALL, "a") == see(RISKY, ALL)
    assert reader._maker is not maker


def test_time_is_that_of_the_processor() -> None:
    """Whatever else the machine does."""
    maker = ProcessMaker()
    with pytest.raises(OutOfTime):
        maker.make().read(BOMB, ALL, Limits(0.2, MAX_PAGE_MEMORY))
    process = maker.make()
    os.kill(process._pid, signal.SIGSTOP)
    with pytest.raises(OutOfTime):
        process.read(HTML, ALL, Limits(0.1, MAX_PAGE_MEMORY))
    process.kill()
    maker.end()


def test_a_lock_of_the_caller_is_let_go_while_a_page_is_read_outside(reader: Reader) -> None:
    held = threading.Lock()
    process = reader._page_lanes[0].running(reader._made)
    os.kill(process._pid, signal.SIGSTOP)
    with held, ThreadPoolExecutor(1) as pool:
        other = pool.submit(held.acquire, timeout=30)
        wait = pool.submit(os.kill, process._pid, signal.SIGCONT)
        wait.add_done_callback(lambda _: held.release())
        assert reader.read(RISKY, ALL, "a", held) == see(RISKY, ALL)
        assert other.result()
        assert held.locked(), "it has it again"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_a_process_that_was_killed_is_started_again(reader: Reader, number: int) -> None:
    reader.read(RISKY, ALL, "a")
    process = reader._page_lanes[0]._process
    assert process is not None
    os.kill(process._pid, number)
    wait_until(lambda: not process.is_alive, 10)
    assert reader.read(RISKY, ALL, "a") == see(RISKY, ALL)


def test_without_a_process_pages_are_read_in_part(
    reader: Reader, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object) -> None:
        raise BlockingIOError("no more processes")

    with monkeypatch.context() as patch:
        patch.setattr("client.reading.reader.ProcessMaker", refuse)
        with caplog.at_level(logging.WARNING):
            assert reader.read(RISKY, ALL, "a").title == "T ☃"
    assert "no more processes" in caplog.text
    assert reader.read(RISKY, ALL, "a") == see(RISKY, ALL), "which is not the fault of the host"


def test_it_ends_when_nobody_talks_to_it_any_more() -> None:
    maker = ProcessMaker()
    process = maker.make()
    process.read(HTML, ALL, PLENTY)
    process._link.shutdown(2)
    wait_until(lambda: not process.is_alive, 10)
    with pytest.raises(ChildTrouble, match="ended its process"):
        process.read(HTML, ALL, PLENTY)
    maker.link.shutdown(2)
    wait_until(lambda: not maker.is_alive, 10)
    with pytest.raises((ChildTrouble, OSError)):
        maker.make()
    maker.kill()


def test_an_answer_that_nobody_took_is_not_given_for_the_next_page(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(ReadingProcess, "_answer", fail)
        with pytest.raises(MemoryError):
            reader.read(RISKY, ALL, "a")
    other = RISKY.replace(b"href=x", b"href=other")
    assert reader.read(other, ALL, "b") == see(other, ALL)


# --- sitemaps

SITEMAP = "http://example.org/sitemap.xml"
URLS = "".join(f"<url><loc>/{number}</loc><lastmod>2026-01-01</lastmod></url>" for number in range(1_000))
XML = f"<urlset>{URLS}</urlset>".encode()


BODIES = {
    "small": XML,
    "packed": gzip.compress(XML),
    "large": XML + b" " * 2_000_000,
    "damaged": gzip.compress(XML)[:-20],
    "a page": b"<html>",
}


@pytest.mark.parametrize("name", BODIES)
def test_sitemaps_say_the_same_everywhere(reader: Reader, name: str) -> None:
    body = BODIES[name]
    expected = read(body, SITEMAP, "text/xml")
    assert reader.read_sitemap(body, SITEMAP, "text/xml") == expected
    assert Sitemap.unpacked(expected.packed()) == expected


def test_small_sitemaps_start_no_process(reader: Reader) -> None:
    assert len(reader.read_sitemap(XML, SITEMAP, "").entries) == 1_000
    assert reader._maker is None


def test_large_ones_are_read_outside(reader: Reader) -> None:
    bomb = gzip.compress(b"<urlset>" + b" " * 60_000_000)
    assert "longer than" in reader.read_sitemap(bomb, SITEMAP, "").problem
    assert reader._maker is not None


def test_a_sitemap_that_cannot_be_read_says_so(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OutOfTime("did not answer in time")

    monkeypatch.setattr(ReadingProcess, "_answer", fail)
    assert reader.read_sitemap(gzip.compress(XML), SITEMAP, "").problem == "takes too long to read, or too much memory"

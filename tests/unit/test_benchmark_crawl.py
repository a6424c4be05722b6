"""The benchmark beside other crawlers: its site is what it claims, its sums are right, and no process is missed."""

import socket
import sys
import urllib.error
import urllib.request
from dataclasses import replace

import pytest

from benchmarks.crawl import soak
from benchmarks.crawl.contenders import CLIENT, contenders
from benchmarks.crawl.errors import BenchmarkError
from benchmarks.crawl.measuring import Order, Sample, Usage, measured
from benchmarks.crawl.pages import MEAN_BYTES, NEXT_ROUND, Author, Place
from benchmarks.crawl.processes import Memory
from benchmarks.crawl.report import Run, line, ratio, record, table
from benchmarks.crawl.serving import listening, served
from benchmarks.crawl.several import client_options
from benchmarks.crawl.site import from_folder, generated, origins_of, reachable
from tests.web.nginx import nginx_program

USAGE = Usage(
    status=0,
    reached_limit=False,
    wall_seconds=10.0,
    ended_at=1010.0,
    cpu_seconds=4.0,
    peak_bytes=300_000_000,
    largest_bytes={CLIENT: 100_000_000, "server.urlserver.main": 150_000_000},
)
RUN = Run("ours-zst", 1, 1000, 1000, 1000, 1002.0, 1006.0, True, USAGE)


# --- the site ----------------------------------------------------------------------------------------------------


def test_every_generated_page_is_reachable_also_within_its_host(tmp_path):
    site = generated(tmp_path, origins_of(3, 80), 200, seed=1)
    assert len(list(tmp_path.rglob("*.html"))) == site.pages == 200
    folders = dict(zip(site.origins, site.folders, strict=True))
    assert len(reachable(folders, site.starts)) == 200
    alone = [len(reachable({origin: folders[origin]}, [f"{origin}/index.html"])) for origin in site.origins]
    assert alone == [67, 67, 66]


def test_sizes_and_numbers_of_links_are_realistic(tmp_path):
    site = generated(tmp_path, origins_of(2, 80), 400, seed=2)
    assert site.mean_bytes == pytest.approx(MEAN_BYTES, rel=0.12)
    pages = [path.read_bytes() for path in tmp_path.rglob("*.html")]
    assert max(map(len, pages)) > 3 * MEAN_BYTES
    links = sorted(page.count(b"<a ") for page in pages)
    assert links[0] >= 30
    assert 80 <= links[200] <= 150
    assert links[-1] <= 230


def test_the_same_seed_gives_the_same_bytes():
    def page(seed):
        return Author(seed, [20, 20], ["http://a", "http://b"]).page(Place(1, 7))

    assert page(1) == page(1)
    assert page(1) != page(2)


def test_an_endless_site_goes_on_from_its_start_pages_only():
    author = Author(1, [20], ["http://a"], is_endless=True)
    assert NEXT_ROUND.encode() in author.page(Place(0, 0))
    assert NEXT_ROUND.encode() not in author.page(Place(0, 1))


def test_a_folder_counts_what_its_links_lead_to(tmp_path):
    (tmp_path / "sub").mkdir()
    links = '<a href="sub/">1</a> <a href="b.html#x">2</a> <a href="gone.html">3</a> <a href="notes.txt">4</a>'
    (tmp_path / "index.html").write_text(f'{links} <a href="http://[">5</a> <link href="unseen.html">')
    (tmp_path / "b.html").write_text('<a href="./index.html?a=b">back</a>')
    (tmp_path / "sub" / "index.html").write_text('<area href="../c%20c.html">')
    for name in ("c c.html", "unseen.html", "notes.txt"):
        (tmp_path / name).write_text("")
    site = from_folder(tmp_path, origins_of(2, 80))
    assert site.pages == 2 * 4
    assert site.starts == ("http://127.0.0.2:80/index.html", "http://127.0.0.3:80/index.html")


def test_a_folder_without_pages_is_refused(tmp_path):
    with pytest.raises(BenchmarkError, match=r"no index\.html"):
        from_folder(tmp_path, origins_of(1, 80))


def test_each_host_needs_a_page(tmp_path):
    with pytest.raises(BenchmarkError, match="too few"):
        generated(tmp_path, origins_of(3, 80), 2, seed=1)


# --- serving -----------------------------------------------------------------------------------------------------


def test_a_port_that_is_taken_is_said():
    with socket.create_server(("127.0.0.3", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(BenchmarkError, match=rf"127\.0\.0\.3 port {port}.*--port"), listening(2, port):
            pass


@pytest.mark.skipif(nginx_program() is None, reason="nginx is not installed")
def test_serves_all_hosts_and_notes_pages_only(tmp_path):
    with listening(2) as sockets:
        site = generated(tmp_path / "site", origins_of(2, sockets.port), 4, seed=1, is_endless=True)
        with served(site, sockets, tmp_path, is_endless=True) as log:
            first, again = (urllib.request.urlopen(site.starts[1]).read() for _ in range(2))
            other_round = urllib.request.urlopen(f"{site.origins[0]}/rabc/part1/page-1.html")
            assert other_round.status == 200
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(f"{site.origins[0]}/robots.txt")
            assert len(log.since(0)) == 3
    assert NEXT_ROUND.encode() not in first
    assert first != again


# --- measuring ---------------------------------------------------------------------------------------------------

BURN = "import time\nwhile time.process_time() < 0.5: pass"


def order(tmp_path, *command, **values):
    files = {"output": str(tmp_path / "output"), "result": str(tmp_path / "usage.json")}
    return Order(command=command, **files, **{"limit_seconds": 60.0, **values})


def test_an_orphaned_grandchild_is_counted(tmp_path):
    """Its parent ends at once, in a session of its own, as daemons do; the command ends before it."""
    middle = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {BURN!r}], start_new_session=True)"
    command = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {middle!r}])"
    usage = measured(order(tmp_path, sys.executable, "-c", command))
    assert usage.status == 0
    assert 0.5 <= usage.cpu_seconds < 2.0


def test_memory_of_a_child_is_seen(tmp_path):
    child = "import time; data = b'x' * 80_000_000; time.sleep(0.5)"
    command = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    usage = measured(order(tmp_path, sys.executable, "-c", command, sample_seconds=0.05, keeps_samples=True))
    assert 80e6 < usage.peak_bytes < 130e6
    assert 80e6 < max(usage.largest_bytes.values()) < 120e6
    assert max(len(sample.processes) for sample in usage.samples) == 2


def test_a_command_that_does_not_end_is_ended(tmp_path):
    usage = measured(order(tmp_path, "sleep", "60", limit_seconds=0.2))
    assert usage.reached_limit
    assert usage.status == -15
    assert usage.wall_seconds < 10


# --- report ------------------------------------------------------------------------------------------------------


def test_rates_of_a_run():
    assert (RUN.whole_rate, RUN.started_rate, RUN.fetching_rate) == (100.0, 125.0, 250.0)
    assert RUN.cpu_milliseconds == 4.0
    assert RUN.cores == 0.4
    assert RUN.client_bytes == 100_000_000  # the servers are no clients


def test_a_run_without_a_page_has_no_rates():
    run = replace(RUN, pages=0, requests=0, first_at=0.0, last_at=0.0)
    assert (run.whole_rate, run.fetching_rate, run.cpu_milliseconds) == (0.0, 0.0, 0.0)


def test_ratios_are_of_medians():
    def runs(*seconds):
        return [replace(RUN, usage=replace(USAGE, wall_seconds=each)) for each in seconds]

    assert ratio(runs(10, 11, 99), runs(22, 5, 44), lambda run: run.usage.wall_seconds) == 0.5
    assert ratio(runs(10), [], lambda run: run.whole_rate) is None


def test_the_table_marks_who_has_not_got_all():
    scrapy = replace(RUN, crawler="scrapy", pages=999, usage=replace(USAGE, cpu_seconds=7.992))
    head, ours, other, *_ = table([RUN, scrapy]).splitlines()
    assert head.split()[:2] == ["pages", "pages/s"]
    assert ours.startswith("ours-zst  ")
    assert ours.endswith(" 50")  # 4 ms a page against 8
    assert other.startswith("scrapy !")
    assert "! the site has 1,000 pages" in line(scrapy)
    assert record(scrapy)["is_complete"] is False


def test_without_scrapy_there_are_no_ratios():
    assert "×" not in table([RUN])


def test_an_unknown_crawler_is_refused():
    with pytest.raises(BenchmarkError, match="'curl'"):
        contenders(["curl"])


def test_each_number_of_clients_is_a_crawler_of_its_own(tmp_path):
    made = contenders(["ours-zst"], clients=(1, 2), options=["--processes", "1"])
    assert [crawler.name for crawler in made] == ["ours-zst", "ours-zst-2"]
    commands = [crawler.command(["http://127.0.0.2/"], tmp_path) for crawler in made]
    assert [("benchmarks.crawl.several" in command) for command in commands] == [False, True]


def test_options_for_a_client_hold_for_the_others_too():
    given = ["--delay", "0", "--processes", "1", "--number-of-threads=4", "http://127.0.0.2/"]
    assert sorted(client_options(given)) == ["--number-of-threads=4", "--processes=1"]


# --- soak --------------------------------------------------------------------------------------------------------


def test_growth_is_counted_after_the_warm_up():
    """30 MB are there at once, then it grows by 1 MB a minute; another process does not grow."""

    def sample(minute):
        size = 30_000_000 + 1_000_000 * minute if minute > 10 else 40_000_000
        return Sample(60.0 * minute, [Memory(8, "server", 5_000_000, 0), Memory(7, CLIENT, size, 0)])

    client, server = soak.curves([sample(minute) for minute in range(103)])
    assert (client.pid, server.pid) == (7, 8)
    assert client.level(0) == 40_000_000
    assert client.level(0.5) == 80_000_000
    assert client.growth_per_hour == pytest.approx(60e6, rel=0.05)
    assert client.growth == pytest.approx(128 / 50 - 1, rel=0.02)
    assert server.growth == 0

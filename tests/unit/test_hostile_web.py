"""Every way in which a server can misbehave, fetched and mined by the real client: the right outcome, in time."""

import tarfile
import threading
import time
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from lxml import etree

from client.fetcher import Fetcher, Turn, Visit
from client.results import FetchResult, MinedPage
from client.robots import Robots
from client.transport import Transport
from common.bundle import MANIFEST_NAME, BundleWriter, read_pages
from common.clock import ManualClock
from common.names import domain_name
from common.urls import MAX_URL_LENGTH, host_of
from common.wire import HostShare, JobSettings, Outcome, UrlTask
from tests.mining import mine
from tests.tickets import job_settings
from tests.web.call import PAGE
from tests.web.hostile_cases import ENCODINGS, HTML, NAMES, REDIRECTS, SLOW, STATUSES, TRANSFERS, TYPES, Case
from tests.web.running import RunningHostile, run_hostile

QUICK = [*TRANSFERS, *ENCODINGS, *REDIRECTS, *STATUSES, *TYPES, *HTML, *NAMES]
# As the settings have it by default; quick ways must be over long before the deadline.
SETTINGS = job_settings(
    robots_control=False, max_body_bytes=20_000_000, max_header_bytes=256_000, max_redirects=10,
    fetch_timeout_seconds=60.0,
)  # fmt: skip
OBEDIENT = replace(SETTINGS, robots_control=True)
QUICK_SECONDS = 30.0
DEADLINE_SECONDS = 2.5
NOISE_SECONDS = 15.0  # that a busy machine may add to a deadline


class Client:
    """A fetcher with its clock, and the server that it is set upon."""

    def __init__(self, server: RunningHostile) -> None:
        self.server = server
        self.clock = ManualClock(time.time())
        self.transport = Transport("pavouk/0.1.0")
        self.robots = Robots("pavouk", self.clock)
        self._fetcher = Fetcher(self.transport, self.robots, self.clock)

    def fetch(self, url: str, settings: JobSettings = SETTINGS, private: bool = True) -> FetchResult:
        """All turns of one URL."""
        visit = Visit(UrlTask(url), HostShare(host_of(url), 0.0, allow_private=private), settings)
        for _ in range(20):
            result = self._fetcher.turn(visit)
            if isinstance(result, FetchResult):
                return result
            assert result is Turn.AGAIN
        raise AssertionError(f"the visit of {url} does not end")

    def page(self, path: str) -> MinedPage:
        return mine(self.fetch(self.server.url(path)), SETTINGS)


@pytest.fixture(scope="module")
def server() -> Iterator[RunningHostile]:
    with run_hostile(ipv6=True) as running:
        yield running


@pytest.fixture
def client(server: RunningHostile) -> Iterator[Client]:
    made = Client(server)
    yield made
    made.transport.close()


def name_of(case: Case) -> str:
    return case.name


@pytest.mark.parametrize("case", QUICK, ids=name_of)
def test_outcome(client: Client, case: Case) -> None:
    before = time.monotonic()
    result = client.fetch(client.server.url(case.path))
    assert (result.outcome, result.status) == (case.outcome, case.status), result.detail
    assert (result.detail == "") == (case.outcome in (Outcome.STORED, Outcome.REDIRECTED))
    if case.body is not None:
        assert result.body == case.body
    assert client.fetch(client.server.url("/ok")).body == PAGE, "the next answer is its own"
    assert time.monotonic() - before < QUICK_SECONDS


@pytest.mark.parametrize("case", SLOW, ids=name_of)
def test_deadline(client: Client, case: Case) -> None:
    before = time.monotonic()
    settings = replace(SETTINGS, fetch_timeout_seconds=DEADLINE_SECONDS, idle_timeout_seconds=30.0)
    result = client.fetch(client.server.url(case.path), settings)
    assert (result.outcome, result.status) == (case.outcome, case.status)
    assert DEADLINE_SECONDS - 0.1 < time.monotonic() - before < DEADLINE_SECONDS + NOISE_SECONDS


def test_idle_ends_before_the_deadline(client: Client) -> None:
    before = time.monotonic()
    settings = replace(SETTINGS, idle_timeout_seconds=1.0, fetch_timeout_seconds=120.0)
    assert client.fetch(client.server.url("/hang"), settings).outcome == Outcome.TIMEOUT
    assert time.monotonic() - before < 60.0


def test_slow_answers_do_not_stop_other_threads(client: Client) -> None:
    """libcurl waits without the interpreter lock: another thread fetches on while this one hangs."""
    slow: list[FetchResult] = []

    def wait_for_nothing(hanging: RunningHostile) -> None:
        other = Client(hanging)
        slow.append(other.fetch(hanging.url("/hang")))
        other.transport.close()

    with run_hostile() as hanging:
        thread = threading.Thread(target=wait_for_nothing, args=[hanging])
        thread.start()
        good = [client.fetch(client.server.url(f"/ok?{number}")).outcome for number in range(20)]
        assert not slow
        assert set(good) == {Outcome.STORED}
    thread.join()
    assert slow[0].outcome == Outcome.BROKEN, "its server has gone"


def test_body_at_the_limit(client: Client) -> None:
    settings = replace(SETTINGS, max_body_bytes=len(PAGE))
    for path in ("/ok", "/no-content-length", "/length-and-chunks"):
        assert client.fetch(client.server.url(path), settings).outcome == Outcome.STORED
        less = replace(settings, max_body_bytes=len(PAGE) - 1)
        assert client.fetch(client.server.url(path), less).outcome == Outcome.TOO_LARGE


@pytest.mark.parametrize(
    ("query", "low", "high"),
    [
        ("seconds=7", 7, 7),
        ("seconds=99999999999999999999", 86_400, 86_400),
        ("seconds=nonsense", 0, 0),
        ("seconds=-7", 0, 0),
        ("date=-100", 0, 0),
        ("date=1000", 900, 1000),
    ],
)
def test_retry_after(client: Client, query: str, low: float, high: float) -> None:
    result = client.fetch(client.server.url(f"/retry-after?{query}&{time.monotonic_ns()}"))
    assert result.outcome == Outcome.BUSY
    assert low <= result.retry_after_seconds <= high


# Pages


@pytest.mark.parametrize("case", [case for case in HTML if case.outcome == Outcome.STORED], ids=name_of)
def test_page_is_mined(client: Client, case: Case) -> None:
    before = time.monotonic()
    page = client.page(case.path)
    assert page.outcome == Outcome.STORED
    assert not page.detail.startswith("not mined"), page.detail
    assert etree.fromstring(page.xml, etree.XMLParser(huge_tree=True)).tag == "page"
    assert all(link.startswith(("http://", "https://")) and len(link) <= MAX_URL_LENGTH for link in page.links)
    assert time.monotonic() - before < QUICK_SECONDS


BASES = {"/pages/base-elsewhere": "http://elsewhere.invalid/ok", "/pages/million-links": "http://links.invalid/ok"}


@pytest.mark.parametrize("case", [case for case in HTML if case.path.startswith(("/pages", "/charset"))], ids=name_of)
def test_link_is_found_in_spite_of_all(client: Client, case: Case) -> None:
    if case.outcome == Outcome.STORED:
        assert BASES.get(case.path, client.server.url("/ok")) in client.page(case.path).links


def test_title_of_broken_text(client: Client) -> None:
    titles = {path: client.page(path).meta for path in ("/charset/none", "/charset/utf-16", "/charset/utf-16-unmarked")}
    assert {meta.title for meta in titles.values() if meta} == {"Grün"}
    wrong = client.page("/charset/wrong").meta
    assert wrong is not None
    assert wrong.title == "Gr\N{REPLACEMENT CHARACTER}n"


def test_trap_always_has_new_links(client: Client) -> None:
    seen = {client.server.url("/trap/")}
    for _ in range(5):
        (url, *_) = [url for url in sorted(seen) if url.count("/") == max(known.count("/") for known in seen)]
        links = set(mine(client.fetch(url), SETTINGS).links)
        assert len(links) == 2
        assert not links & seen
        seen |= links


# Names


def folded(name: str) -> str:
    """What the least careful file systems take for the same: without case, composed, no dots or blanks at the end."""
    return "/".join(part.rstrip(". ") for part in unicodedata.normalize("NFKC", name).casefold().split("/"))


def _without_repeats(pages: Sequence[MinedPage]) -> list[list[MinedPage]]:
    """As jobs have them: a page once, in whatever form its address is."""
    jobs: list[dict[str, MinedPage]] = [{}]
    for page in pages:
        assert page.meta is not None
        free = next((job for job in jobs if page.meta.digest not in job), None)
        if free is None:
            jobs.append(free := {})
        free[page.meta.digest] = page
    return [list(job.values()) for job in jobs]


def test_names_do_not_collide_and_stay_inside(client: Client, tmp_path: Path) -> None:
    pages = [client.page(case.path) for case in NAMES]
    folder, names = tmp_path / "unpacked", list[str]()
    for job, same in enumerate(_without_repeats(pages), start=1):
        writer = BundleWriter(domain_name(host_of(pages[0].task.url)), str(job), "tar.bz2")
        for page in same:
            assert page.meta is not None
            writer.add(page.meta, page.data_name, page.body, page.xml)
        bundle = writer.write(tmp_path, int(time.time()))
        stored = [(entry.meta.original_url, body) for entry, body, _ in read_pages(bundle)]
        assert stored == [(page.task.url, page.body) for page in same]
        with tarfile.open(bundle) as tar:
            names += [name for name in tar.getnames() if name != MANIFEST_NAME]
            tar.extractall(folder, filter="data")  # raises for whatever would leave the folder
    assert len({folded(name) for name in names}) == len(names) == 2 * len(pages)
    assert len([path for path in folder.rglob("*") if path.is_file()]) == len(names) + 1
    assert all(len(part) <= 255 for name in names for part in name.split("/"))


# robots.txt


@pytest.mark.parametrize(
    ("kind", "open_page", "closed_page"),
    [
        ("none", Outcome.STORED, Outcome.STORED),
        ("forbidden", Outcome.STORED, Outcome.STORED),
        ("broken", Outcome.ROBOTS_UNREACHABLE, Outcome.ROBOTS_UNREACHABLE),
        ("rules", Outcome.STORED, Outcome.DISALLOWED),
        ("redirects-5", Outcome.STORED, Outcome.DISALLOWED),
        ("redirects-6", Outcome.STORED, Outcome.STORED),
        ("huge", Outcome.STORED, Outcome.DISALLOWED),
        ("endless", Outcome.STORED, Outcome.DISALLOWED),
        ("binary", Outcome.STORED, Outcome.DISALLOWED),
        ("bom", Outcome.STORED, Outcome.DISALLOWED),
        ("redirects-away", Outcome.ROBOTS_UNREACHABLE, Outcome.ROBOTS_UNREACHABLE),
        ("redirects-to-file", Outcome.STORED, Outcome.STORED),
    ],
)
def test_robots(client: Client, kind: str, open_page: Outcome, closed_page: Outcome) -> None:
    before = time.monotonic()
    assert client.fetch(client.server.url("/ok", kind), OBEDIENT).outcome == open_page
    assert client.fetch(client.server.url("/closed/page.html", kind), OBEDIENT).outcome == closed_page
    assert time.monotonic() - before < QUICK_SECONDS


def test_robots_hangs(client: Client) -> None:
    settings = replace(OBEDIENT, fetch_timeout_seconds=1.0)
    assert client.fetch(client.server.url("/ok", "hangs"), settings).outcome == Outcome.ROBOTS_UNREACHABLE


def test_robots_broken_once(client: Client) -> None:
    open_page, closed_page = (client.server.url(path, "broken-once") for path in ("/ok", "/closed/page.html"))
    assert client.fetch(open_page, OBEDIENT).outcome == Outcome.ROBOTS_UNREACHABLE
    client.clock.advance(60)
    assert client.fetch(open_page, OBEDIENT).outcome == Outcome.STORED
    assert client.fetch(closed_page, OBEDIENT).outcome == Outcome.DISALLOWED


# Addresses


def test_private_targets_of_redirects(client: Client) -> None:
    """A redirect is a found URL: its host is allowed for itself, or not at all."""
    target = client.fetch(client.server.url("/redirect-to?u=http://127.0.0.1:1/")).redirect_url
    assert target == "http://127.0.0.1:1/"
    assert client.fetch(target, private=False).outcome == Outcome.FORBIDDEN_ADDRESS
    assert client.fetch(target).outcome == Outcome.REFUSED


def test_ipv6(client: Client) -> None:
    url = f"http://[::1]:{client.server.port}/pages/odd-links"
    assert client.fetch(url, private=False).outcome == Outcome.FORBIDDEN_ADDRESS
    result = client.fetch(url)
    assert (result.outcome, result.address) == (Outcome.STORED, "::1")
    page = mine(result, SETTINGS)
    assert f"http://[::1]:{client.server.port}/ok" in page.links
    assert client.fetch(f"http://[::1]:{client.server.port}/trap/", OBEDIENT).outcome == Outcome.STORED

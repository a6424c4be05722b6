"""The URL server as the client sees it: the real one, and servers that answer nonsense, errors or nothing."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import requests

from client.coordinator import Coordinator
from common.errors import RemoteRefused, RemoteUnavailable
from common.wire import FoundUrl, HostFact, Kind, ListedUrl, Outcome, Report, UrlResult
from tests.ports import free_port
from tests.processes import Running
from tests.urlserver import address_of, serving

START = "http://start.test/"
TOKEN = "a-secret"
Answer = tuple[int, bytes]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(tmp_path_factory.mktemp("host"), "--token", TOKEN, "--delay", "0", START) as program:
        yield program


@pytest.fixture
def coordinator(server: Running) -> Iterator[Coordinator]:
    it = Coordinator(address_of(server), "one", TOKEN)
    yield it
    it.close()


@contextmanager
def _fake(answer: Callable[[str, int], Answer | None]) -> Iterator[Coordinator]:
    """A server whose n-th answer to GET or POST is `answer(method, n)`; None closes the connection."""
    counts = {"GET": 0, "POST": 0}

    class Handler(BaseHTTPRequestHandler):
        def handle_one(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            counts[self.command] += 1
            given = answer(self.command, counts[self.command])
            self.close_connection = True
            if given is not None:
                self.send_response(given[0])
                self.send_header("Content-Type", "text/xml")
                self.send_header("Content-Length", str(len(given[1])))
                self.end_headers()
                self.wfile.write(given[1])

        do_GET = do_POST = handle_one

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        coordinator = Coordinator(f"http://127.0.0.1:{http.server_port}/", "one")
        try:
            yield coordinator
        finally:
            coordinator.close()
            http.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def wsdl(server: Running) -> bytes:
    return requests.get(address_of(server) + "?wsdl", timeout=10).content


def _envelope(body: str) -> bytes:
    return (
        '<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/" xmlns="urn:pavouk:urlserver:1">'
        f"<e:Body>{body}</e:Body></e:Envelope>"
    ).encode()


def _fault(code: str, text: str) -> bytes:
    return _envelope(f"<e:Fault><faultcode>e:{code}</faultcode><faultstring>{text}</faultstring></e:Fault>")


def _calls(coordinator: Coordinator) -> list[Callable[[], object]]:
    return [
        lambda: coordinator.get_job("request", 10),
        lambda: coordinator.send(Report("1", [], [])),
        lambda: coordinator.exit("1"),
        lambda: coordinator.renew("1"),
        coordinator.totals,
    ]


def test_a_job_from_the_first_call_to_the_last(tmp_path: Path) -> None:
    with serving(tmp_path, "--delay", "0", "--agent-name", "tester", START) as program:
        coordinator = Coordinator(address_of(program), "one")
        job = coordinator.get_job("r1", 10)
        assert [task.url for task in job.tasks] == [START]
        assert job.settings.agent_name == "tester"
        assert job.settings.contact == "", "empty texts stay texts"
        assert coordinator.get_job("r1", 10).job == job.job, "a repeated request"
        assert coordinator.renew(job.job) == job.lease_seconds
        assert coordinator.exit(job.job) == 1
        job = coordinator.get_job("r2", 10)
        results, found = [UrlResult(START, Outcome.STORED, 200, 5)], [FoundUrl(START + "x", 1)]
        receipt = coordinator.send(Report(job.job, results, found, [HostFact("start.test")], 99))
        assert (receipt.accepted, receipt.refused, receipt.new_urls) == (1, 0, 1)
        totals, finished = coordinator.totals()
        assert (totals.stored, totals.queued, totals.size, finished) == (1, 1, 99, False)
        coordinator.close()


@pytest.mark.parametrize("count", [0, 1, 5_000, 12_000])
def test_any_number_of_found_urls_arrives(tmp_path: Path, count: int) -> None:
    with serving(tmp_path, "--delay", "0", START) as program:
        coordinator = Coordinator(address_of(program), "one")
        job = coordinator.get_job("r1", 10)
        found = [FoundUrl(f"{START}{number}/{'long' * 50}", 1) for number in range(count)]
        report = Report(job.job, [UrlResult(START, Outcome.STORED, 200)], found)
        receipt = coordinator.send(report)
        assert (receipt.accepted, receipt.new_urls) == (1, count)
        assert coordinator.totals()[0].queued == count
        again = coordinator.send(report)
        assert again.new_urls == 0
        assert coordinator.totals()[0].queued == count
        coordinator.close()


def test_the_largest_job_is_reported_whatever_there_is_to_say(tmp_path: Path) -> None:
    with serving(tmp_path, "--delay", "0", "--urls-to-crawl", "10000", START) as program:
        coordinator = Coordinator(address_of(program), "one")
        job = coordinator.get_job("r1", 1)
        found = [FoundUrl(f"{START}{number}/{'long' * 400}", 1) for number in range(10_000)]
        coordinator.send(Report(job.job, [UrlResult(START, Outcome.STORED, 200)], found))
        job = coordinator.get_job("r2", 10_000)
        results = [UrlResult(task.url, Outcome.NOT_FOUND, 404, detail="why " * 50) for task in job.tasks]
        hosts = [HostFact(f"h{number}.test") for number in range(12_000)]
        receipt = coordinator.send(Report(job.job, results, (), hosts, 99))
        assert (receipt.accepted, receipt.refused) == (len(results), 0)
        assert len(results) > 5_000
        assert coordinator.totals()[0].failed == len(results)
        coordinator.close()


@pytest.mark.parametrize("count", [1, 12_000])
def test_any_number_of_listed_urls_arrives_and_sitemaps_come_back_as_such(tmp_path: Path, count: int) -> None:
    with serving(tmp_path, "--delay", "0", "--sitemaps", "1", START) as program:
        coordinator = Coordinator(address_of(program), "one")
        job = coordinator.get_job("r1", 10)
        assert job.settings.sitemaps
        listed = [ListedUrl(f"{START}{number}/{'long' * 50}", 1, 1_700_000_000) for number in range(count)]
        sitemap = ListedUrl(f"{START}sitemap.xml", 0, kind=Kind.GUESSED)
        links = [FoundUrl(sitemap.url, 1), FoundUrl(listed[0].url, 1)]
        report = Report(job.job, [UrlResult(START, Outcome.STORED, 200)], links, listed=[sitemap, *listed])
        receipt = coordinator.send(report)
        assert (receipt.accepted, receipt.new_urls) == (1, count + 1)
        assert coordinator.send(report).new_urls == 0
        tasks = coordinator.get_job("r2", 10).tasks
        assert [task.url for task in tasks if task.kind is Kind.GUESSED] == [sitemap.url]
        coordinator.close()


def test_wrong_token_is_told_clearly_and_can_be_mended(server: Running) -> None:
    for token in ("", "wrong"):
        coordinator = Coordinator(address_of(server), "one", token)
        for call in _calls(coordinator):
            with pytest.raises(RemoteUnavailable, match="token is missing or wrong"):
                call()
        coordinator.close()


def test_refusals_carry_the_words_of_the_server(coordinator: Coordinator) -> None:
    with pytest.raises(RemoteRefused, match="'999' is no job of this crawl"):
        coordinator.send(Report("999", [], []))
    with pytest.raises(RemoteRefused, match="is no job of this crawl"):
        coordinator.exit("seven")
    with pytest.raises(RemoteRefused):
        coordinator.renew("999")


def test_nobody_listens() -> None:
    coordinator = Coordinator(f"http://127.0.0.1:{free_port()}/", "one")
    for call in _calls(coordinator):
        with pytest.raises(RemoteUnavailable, match="Connection refused"):
            call()


@pytest.mark.parametrize(
    "page",
    [
        b"",
        b"not xml at all",
        b"<html><body>A router's login page</body></html>",
        b"<definitions xmlns='http://schemas.xmlsoap.org/wsdl/'/>",
        b"<definitions xmlns='http://schemas.xmlsoap.org/wsdl/'><service name='x'/></definitions>",
        b"\x00\xff\xfe",
    ],
)
def test_something_else_lives_at_the_address(page: bytes) -> None:
    with _fake(lambda method, number: (200, page)) as coordinator:
        for call in _calls(coordinator):
            with pytest.raises(RemoteUnavailable):
                call()


@pytest.mark.parametrize("status", [401, 404, 500, 503])
def test_no_wsdl_is_no_refusal(status: int) -> None:
    """A server that is being set up must not cost us anything."""
    with _fake(lambda method, number: (status, b"sorry")) as coordinator, pytest.raises(RemoteUnavailable):
        coordinator.exit("1")


NONSENSE = {
    "closed": None,
    "empty": (200, b""),
    "text": (200, b"hello"),
    "html": (200, b"<html/>"),
    "no body": (200, _envelope("")),
    "wrong element": (200, _envelope("<somethingElse/>")),
    "empty answer": (200, _envelope("<{op}Response/>")),
    "wrong type": (200, _envelope("<{op}Response><{op}Result>x</{op}Result></{op}Response>")),
    "busy": (503, b"come back later"),
    "gateway": (502, b"<html>Bad gateway</html>"),
    "server fault": (500, _fault("Server.Store", "the disk is full")),
}
OPERATIONS = ("getJob", "sendAllData", "cExit", "renewJob", "getTotals")


@pytest.mark.parametrize("kind", NONSENSE)
def test_nonsense_means_try_again(wsdl: bytes, kind: str) -> None:
    for number, operation in enumerate(OPERATIONS):
        given = NONSENSE[kind]
        answer = given and (given[0], given[1].replace(b"{op}", operation.encode()))
        with (
            _fake(lambda method, _, answer=answer: (200, wsdl) if method == "GET" else answer) as coordinator,
            pytest.raises(RemoteUnavailable),
        ):
            _calls(coordinator)[number]()


@pytest.mark.parametrize(
    "answer",
    [(500, _fault("Client.BadJob", "not yours")), (413, b"too large"), (400, b"bad")],
    ids=["fault", "too large", "bad"],
)
def test_refusal_means_do_not_try_again(wsdl: bytes, answer: Answer) -> None:
    with (
        _fake(lambda method, _: (200, wsdl) if method == "GET" else answer) as coordinator,
        pytest.raises(RemoteRefused),
    ):
        coordinator.exit("1")


def test_connects_when_the_server_has_come_back(wsdl: bytes) -> None:
    answers = {1: None, 2: (503, b""), 3: (200, b"<html/>")}

    def answer(method: str, number: int) -> Answer | None:
        if method == "POST":
            return 200, _envelope("<renewJobResponse><renewJobResult>12.5</renewJobResult></renewJobResponse>")
        return answers.get(number, (200, wsdl))

    with _fake(answer) as coordinator:
        for _ in answers:
            with pytest.raises(RemoteUnavailable):
                coordinator.renew("1")
        assert coordinator.renew("1") == 12.5

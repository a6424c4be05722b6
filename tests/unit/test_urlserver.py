"""urlServer as its users meet it: the SOAP contract, the console, the files, signals and restarts."""

import re
import signal
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
import zeep.exceptions

from common.secrets import ftp_password
from common.wire import HostFact, Outcome, UrlTask, from_table
from tests.certificates import make_certificate
from tests.processes import ROOT
from tests.urlserver import GET_TOTALS, READY, Soap, address_of, hosts_of, serving, urls_of

START = ("--start-urls", "http://example.org/;http://example.com/index.html", "--delay", "0")


@pytest.fixture
def soap(tmp_path: Path) -> Iterator[Soap]:
    with serving(tmp_path, *START) as program:
        yield Soap(address_of(program))
        assert program.stop() == 0
        assert "Traceback" not in program.errors()


# --- the contract


@pytest.mark.smoke
def test_a_job_from_beginning_to_end(soap: Soap) -> None:
    job = soap.job()
    assert urls_of(job) == ["http://example.org/", "http://example.com/index.html"]
    assert job.lease_seconds == 300
    assert [(share.host, share.connections, share.private) for share in hosts_of(job)] == [
        ("example.org", 1, ""), ("example.com", 1, ""),
    ]  # fmt: skip
    assert soap.service.renewJob(ident="w1", job=job.job) == 300
    receipt = soap.report("w1", job.job, {"http://example.org/": Outcome.STORED}, ["http://example.org/2"], size=5000)
    assert (receipt.accepted, receipt.refused, receipt.new_urls) == (1, 0, 1)
    assert soap.service.cExit(ident="w1", job=job.job) == 1
    totals = soap.totals()
    assert (totals["queued"], totals["leased"], totals["done"], totals["stored"]) == (2, 0, 1, 1)
    assert (totals["sent"], totals["size"], totals["hosts"], totals["finished"]) == (2, 5000, 2, False)


def test_a_job_carries_the_settings(tmp_path: Path) -> None:
    options = ("--token", "secret", "--robots-control", "0", "--agent-name", "bot", "--ftp-port", "2121")
    with serving(tmp_path, *START, *options, "--fetch-timeout", "7.5") as program:
        settings = Soap(address_of(program), "secret").job().settings
    assert (settings.ftp_host, settings.ftp_port, settings.ftp_tls) == ("127.0.0.1", 2121, False)
    assert settings.ftp_password == ftp_password("secret")
    assert (settings.robots_control, settings.page_parse, settings.agent_name) == (False, True, "bot")
    assert settings.fetch_timeout_seconds == 7.5


def test_what_sitemaps_say_is_optional_and_a_bad_row_is_named(tmp_path: Path) -> None:
    with serving(tmp_path, *START, "--sitemaps", "1") as program:
        soap = Soap(address_of(program))
        job = soap.job().job
        assert soap.report("w1", job, {}).new_urls == 0, "without the argument"
        listed = "http://example.org/1\t1\t1700000000\nhttp://example.org/sitemap.xml\t0\t0\tguessed"
        call = soap.service.sendAllData
        assert call(ident="w1", job=job, listed=listed).new_urls == 2
        soap.service.cExit(ident="w1", job=job)
        kinds = {task.url: task.kind for task in from_table(UrlTask, soap.job("w1", "next").urls)}
        assert kinds["http://example.org/sitemap.xml"] == "guessed"
        assert kinds["http://example.org/1"] == "page"
        with pytest.raises(zeep.exceptions.Fault, match=r"line 1 of the ListedUrl table: .*map"):
            call(ident="w1", job=job, listed="http://example.org/1\t1\t0\tmap")


def test_the_same_request_and_an_empty_job(soap: Soap) -> None:
    job = soap.job("w1", "1")
    assert soap.job("w1", "1").job == job.job
    empty = soap.job("w2", "1")
    assert (empty.job or "", urls_of(empty), empty.finished) == ("", [], False)
    assert empty.wait_seconds > 0


def test_facts_about_hosts_are_followed(soap: Soap) -> None:
    job = soap.job(wanted=1)
    url, (share,) = urls_of(job)[0], hosts_of(job)
    facts = [HostFact(share.host, "192.0.2.1", crawl_delay_seconds=0.5, retry_after_seconds=3600)]
    soap.report("w1", job.job, {url: Outcome.STORED}, [f"{url}next"], facts)
    assert share.host not in [share.host for share in hosts_of(soap.job("w2"))]


def test_ten_thousand_found_urls_in_one_call(soap: Soap) -> None:
    job = soap.job()
    found = [f"http://h{i % 100}.example/{'x' * (i % 300)}?{i}" for i in range(10_000)]
    assert soap.report("w1", job.job, {}, found).new_urls == 10_000
    assert soap.totals()["queued"] == 10_000
    assert len(urls_of(soap.job("w2", wanted=10_000))) == 300  # urls_to_crawl bounds a job


def test_the_longest_urls_arrive(soap: Soap) -> None:
    longest = "http://example.net/" + "x" * (2000 - len("http://example.net/"))
    job = soap.job()
    assert soap.report("w1", job.job, {}, [longest, longest + "y"]).new_urls == 1
    assert urls_of(soap.job("w2")) == [longest]


def test_many_clients_never_get_the_same_url(tmp_path: Path) -> None:
    hosts = [f"http://h{i}.example/" for i in range(60)]
    taken: list[str] = []
    lock = threading.Lock()

    def crawl(name: str) -> None:
        soap = Soap(address_of(program))
        while not (job := soap.job(name, wanted=7)).finished:
            urls = urls_of(job)
            with lock:
                taken.extend(urls)
            if urls:
                found = [f"{url}x" for url in urls if len(url) < 24]
                soap.report(name, job.job, dict.fromkeys(urls, Outcome.STORED), found)

    with serving(tmp_path, "--start-urls", ";".join(hosts), "--delay", "0") as program:
        threads = [threading.Thread(target=crawl, args=(f"w{i}",)) for i in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert Soap(address_of(program)).totals()["done"] == len(taken)
    assert len(taken) > 200
    assert set(Counter(taken).values()) == {1}


# --- what a person sees


def test_console_lines_blacklist_and_progress(tmp_path: Path) -> None:
    with serving(tmp_path, *START) as program:
        soap = Soap(address_of(program))
        job = soap.job("worker-7")
        outcomes = {"http://example.org/": Outcome.STORED, "http://example.com/": Outcome.NOT_FOUND}
        soap.report("worker-7", job.job, outcomes, ["http://example.org/a", "http://example.org/b"], size=20_000)
    lines = program.output().splitlines()
    index = lines.index("(1 2 1 19) from worker-7 [127.0.0.1]")
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\(send: 2;processed: 1; found: 4;effectivity: 50\.0 %; Q: 2;"
        r"data size: 20000b\)/\d+ s",
        lines[index + 1],
    )
    head, row = (tmp_path / ".mem" / "progress.csv").read_text().splitlines()
    assert head == "time,sent,processed,found,queued,bytes"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ,2,1,4,2,20000", row)
    check_blacklist(tmp_path)
    with serving(tmp_path):  # made again from the frontier
        check_blacklist(tmp_path)


def test_the_start_says_whether_the_crawl_goes_on(tmp_path: Path) -> None:
    with serving(tmp_path, *START) as program:
        soap = Soap(address_of(program))
        soap.report("w1", soap.job("w1", wanted=1).job, {"http://example.org/": Outcome.STORED}, ["http://example.net/"])
    assert f"urlServer begins anew: there was nothing in {tmp_path / '.mem'}" in program.output().splitlines()
    with serving(tmp_path, *START, "http://further.example/") as program:
        pass
    line = f"urlServer goes on with what is in {tmp_path / '.mem'}: 3 URLs known, 2 queued, 1 processed"
    assert line in program.output().splitlines()


@pytest.mark.parametrize(
    ("start", "options", "is_warned"),
    [
        ("http://example.org/", (), True),
        ("http://93.184.215.14/", (), True),
        ("http://example.org/", ("--contact", "http://example.net/bot"), False),
        ("http://127.0.0.1:8080/", (), False),
        ("http://[::1]/", (), False),
        ("http://a.localhost/", (), False),
        ("http://intranet/", (), False),
    ],
)
def test_who_asks_others_without_a_contact_is_warned(
    tmp_path: Path, start: str, options: tuple[str, ...], is_warned: bool
) -> None:
    with serving(tmp_path, start, "--delay", "0", *options) as program:
        soap = Soap(address_of(program))
        assert "contact" not in program.errors()
        for client in ("w1", "w2"):
            job = soap.job(client)
            soap.report(client, job.job, {start: Outcome.STORED}, [f"{start}{client}"])
    assert program.errors().count("contact is empty") == is_warned


def test_a_crawl_that_leaves_private_hosts_is_warned_then(tmp_path: Path) -> None:
    with serving(tmp_path, "http://127.0.0.1:8080/", "--delay", "0") as program:
        soap = Soap(address_of(program))
        soap.report("w1", soap.job().job, {"http://127.0.0.1:8080/": Outcome.STORED}, ["http://example.org/x"])
        assert "contact" not in program.errors()
        assert urls_of(soap.job()) == ["http://example.org/x"]
    assert "contact is empty, and example.org" in program.errors()


def check_blacklist(folder: Path) -> None:
    (line,) = (folder / ".mem" / "blacklist.txt").read_text().splitlines()
    assert re.fullmatch(r"http://example\.com/index\.html\tnot_found\t\t1\t\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", line)


# --- ends and restarts


@pytest.mark.smoke
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_what_was_answered_outlives_any_end(tmp_path: Path, number: signal.Signals) -> None:
    with serving(tmp_path, *START) as program:
        soap = Soap(address_of(program))
        job = soap.job("w1", "7", wanted=1)
        soap.report("w1", job.job, {}, ["http://example.net/"], size=77)
        before = soap.totals()
        code = program.stop(number)
    assert code == (-9 if number == signal.SIGKILL else 0)
    assert "Traceback" not in program.errors()
    with serving(tmp_path, *START) as program:
        soap = Soap(address_of(program))
        assert soap.totals() == before
        again = soap.job("w1", "7", wanted=1)
        assert (again.job, urls_of(again)) == (job.job, urls_of(job))
        assert soap.report("w1", job.job, dict.fromkeys(urls_of(job), Outcome.STORED)).accepted == 1


def test_a_continued_crawl_keeps_its_scope(tmp_path: Path) -> None:
    with serving(tmp_path, *START, "--scope", "host") as program:
        assert Soap(address_of(program)).totals()["queued"] == 2
    with serving(tmp_path, "http://example.net/", "--scope", "host") as program:
        soap = Soap(address_of(program))
        soap.report("w1", soap.job().job, {}, ["http://example.org/new", "http://elsewhere.example/"])
        assert soap.totals()["excluded"] == 1


# --- trust


@pytest.mark.parametrize("token", ["", "wrong", "secret2", "sécret"])
def test_without_the_token_nothing_happens(tmp_path: Path, token: str) -> None:
    with serving(tmp_path, *START, "--token", "secret") as program:
        headers: dict[str, str | bytes] = {"Authorization": f"Bearer {token}".encode()} if token else {}
        headers["Content-Type"] = "text/xml"
        answer = requests.post(address_of(program), data=GET_TOTALS, headers=headers, timeout=20)
        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert "<faultstring>the token is missing or wrong: send it as " in answer.text
        with pytest.raises(zeep.exceptions.Fault, match="the token is missing or wrong"):
            Soap(address_of(program), token.encode("ascii", "ignore").decode()).job()
        assert Soap(address_of(program), "secret").totals()["sent"] == 0


def test_tls(tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path)
    with serving(tmp_path, *START, "--tls-cert", certificate.name, "--tls-key", key.name) as program:
        url = address_of(program)
        assert url.startswith("https://")
        port = int(url.rsplit(":", 1)[1].strip("/"))
        with socket.create_connection(("127.0.0.1", port)):  # a silent peer must not keep others out
            assert len(urls_of(Soap(url, verify=str(certificate)).job())) == 2
        with pytest.raises(requests.exceptions.SSLError):
            requests.get(f"{url}?wsdl", timeout=20)
        with pytest.raises(requests.exceptions.ConnectionError):
            requests.get(url.replace("https", "http"), timeout=20)
        assert Soap(url, verify=str(certificate)).totals()["leased"] == 2
        assert program.stop() == 0
    assert "Traceback" not in program.errors()


# --- what stops the start


def refused_start(*arguments: str | Path) -> str:
    """The message of a urlServer that does not start."""
    command = [sys.executable, "-m", "server.urlserver.main", *arguments]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30)
    assert ended.returncode == 2
    assert ended.stderr.startswith("urlServer: ")
    assert ended.stderr.count("\n") == 1, ended.stderr
    return ended.stderr


def test_a_second_urlserver_on_the_same_folder(tmp_path: Path) -> None:
    with serving(tmp_path):
        message = refused_start("--dir", tmp_path, "--server-port", "0")
    assert "is in use by another urlServer; stop that one first" in message


def test_a_port_in_use(tmp_path: Path) -> None:
    with serving(tmp_path / "one") as program:
        port = address_of(program).rsplit(":", 1)[1].strip("/")
        message = refused_start("--dir", tmp_path / "two", "--server-port", port)
    assert f"cannot listen on 127.0.0.1 port {port}" in message
    assert "choose another ip or server_port" in message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--ip", "0.0.0.0"], "0.0.0.0 is reachable from outside and needs a token"),
        (["--ip", "192.0.2.1", "--token-file", "token"], "cannot listen on 192.0.2.1"),
        (["--start-urls", "ftp://example.org/"], "start URL 'ftp://example.org/' is no http or https URL"),
        (["--server-port", "70000"], "--server-port 70000: expected a whole number from 0 to 65535"),
        (["--tls-cert", "missing.pem", "--tls-key", "missing.key"], "missing.pem"),
        (["--config", "missing.cfg"], "missing.cfg cannot be read"),
    ],
)
def test_bad_settings(tmp_path: Path, options: list[str], message: str) -> None:
    (tmp_path / "token").touch(0o600)
    (tmp_path / "token").write_text("t")
    assert message in refused_start("--dir", tmp_path, "--server-port", "0", *options)


@pytest.mark.parametrize("name", [".mem", ".mem/frontier", ".mem/blacklist.txt"])
def test_a_folder_that_cannot_be_written(tmp_path: Path, name: str) -> None:
    """Something else stands in the way: root can write where permissions say no."""
    place = tmp_path / name
    place.parent.mkdir(exist_ok=True)
    if name.endswith(".txt"):
        (place / "full").mkdir(parents=True)
    else:
        place.write_text("")
    assert str(tmp_path) in refused_start("--dir", tmp_path, "--server-port", "0")


def test_the_ready_line_says_where_the_wsdl_is(tmp_path: Path) -> None:
    with serving(tmp_path) as program:
        line = next(line for line in program.output().splitlines() if re.match(READY, line))
        wsdl = requests.get(line.split()[-1], timeout=20)
    assert wsdl.status_code == 200
    assert f'location="{address_of(program)}"' in wsdl.text

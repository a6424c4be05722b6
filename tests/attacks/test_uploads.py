"""What an uploader could send: fields that are forged or odd, and bombs. ftpServer refuses each with a reason; where
another FTP server has taken it, every program that reads it names it, goes on with the others, and says so with its
exit code."""

import bz2
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from common.bundle import manifest_path, read_manifest
from common.clock import SystemClock
from common.settings import Settings, UrlServerSettings
from common.urls import digest
from common.wire import FoundUrl, Outcome, Report, UrlResult
from export import main as export_main
from export.index import read
from server.admin import main as admin_main
from server.catalogue import Catalogue
from server.frontier.frontier import Frontier
from server.ftpserver import main as ftp_main
from server.ftpserver.folder import PagesFolder
from server.ftpserver.inbox import Inbox, Refused, SendAgain
from server.ftpserver.uploads import Place
from server.opening import open_frontier
from tests.bundles import CREATED, page_meta, page_url
from tests.forged import ZEROS, Forgery, honest, zstd_of_many
from tests.jobs import job_name
from tests.processes import ROOT

# --- each field of a manifest's line: what it says, and what the refusal names ------------------------------------

SHA1 = "0" * 40
OTHER = page_url("victim.example", 0)
NOT_OF_ANOTHER_TYPE = [None, True, [], {}]
ON_THE_TERMINAL = [
    "https://a.example/\x1b[2J\x1b[1;1Hall is well", "https://a.example/\ndifferences  0", "https://a.example/ x",
    "https://a.example/\x7f", "https://a.example/\x9b2J", "https://a.example/\u202eknalb", "https://a.example/\xe4",
]  # fmt: skip
FIELDS: dict[str, list[Any]] = {
    "url": [
        OTHER, "https://a.example", "/etc/x", "", "javascript:x", "https://a.example/\ud800", "x" * 30_000, 7,
        *ON_THE_TERMINAL,
    ],
    "original_url": [
        OTHER, "https://a.example/../x", "https://a.example/a b", "ftp://a.example/page0.html", "", 7,
        *ON_THE_TERMINAL,
    ],
    "final_url": [OTHER, "", "file:///etc/passwd", 7, *ON_THE_TERMINAL],
    "title": ["\udc00", "x" * 30_000, 7],
    "crawl_time": [9e11, -1, "now", CREATED + 1_000_000, float("nan"), float("inf"), 10**400],
    "status": ["200", 200.0, -1, 0, 10**30],
    "content_type": ["text/html\r\nX: y", "é", "\ud800", "x" * 300, 7],
    "encoding": ["\ud800", "utf 8", 7],
    "etag": ["\ud800", 7],
    "last_modified": ["\ud800", 7],
    "server_date": ["\ud800", 7],
    "sha1": [SHA1[:-1], "Z" * 40, SHA1 + "\n", 7],
    "digest": [SHA1, SHA1[:-1], 7],
    "folder": ["..", "../../etc", "/etc", "a.example/..", "victim.example/page0.html", "a.example/page1.html", "", 7],
    "data_name": ["..", "../x", "data.xml", "data.html/../x", "index.html", "data.HTML", "", "data.\ud800", 7],
    "size": ["5", -1, 5.0, 10**30, 3_000_000_000],
    "xml_sha1": [SHA1[:-1], 7],
}  # fmt: skip
FORGED_FIELDS = [(name, value) for name, values in FIELDS.items() for value in (*values, *NOT_OF_ANOTHER_TYPE)]
HEADS: dict[str, list[Any]] = {
    "domain": ["b.example", "..", "", None, 7, "\ud800"],
    "job": ["2", "../x", None, 7],
    "created": [1, "1700000000", float(CREATED), None, 9 * 10**11],
    "bundle_size": ["5", -1, None],
    "bundle_sha256": ["x", None],
}
FORGED_HEADS = [(name, value) for name, values in HEADS.items() for value in values]


@pytest.fixture
def send(tmp_path: Path) -> Callable[[Path], None]:
    """Hands a bundle to the code of ftpServer that decides."""
    folder = PagesFolder(tmp_path / "received")
    inbox = Inbox(folder.directory, folder.incoming, 10**9, 20_000_000, lambda path, manifest: None)

    def send(bundle: Path) -> None:
        uploads, place = inbox.uploads(), Place(bundle.parent.name, bundle.name)
        beside = replace(place, is_manifest=True)
        for where, path in ((place, bundle), (beside, manifest_path(bundle))):
            upload = uploads.begin(where)
            upload.write(path.read_bytes())
            upload.close()
        try:
            inbox.accept(place, uploads.complete(place), uploads.complete(beside))  # type: ignore[arg-type]
        finally:
            uploads.drop_all()

    return send


def _label(value: Any) -> str:
    return f"{value!r:.30}".encode("ascii", "backslashreplace").decode()


def test_an_honest_bundle_is_taken(send: Callable[[Path], None], tmp_path: Path) -> None:
    send(honest(tmp_path))
    for container in ("tar.bz2", "tar.zst"):
        send(Forgery(container=container).write(tmp_path))


@pytest.mark.parametrize(("field", "value"), FORGED_FIELDS, ids=_label)
def test_a_forged_field_is_refused_by_name(
    send: Callable[[Path], None], tmp_path: Path, field: str, value: Any
) -> None:
    with pytest.raises(Refused, match=rf"line 2: the manifest has a bad {field}|more than max_body_bytes"):
        send(Forgery(row={field: value}).write(tmp_path))


@pytest.mark.parametrize(("field", "value"), FORGED_HEADS, ids=_label)
def test_a_forged_first_line_is_refused(send: Callable[[Path], None], tmp_path: Path, field: str, value: Any) -> None:
    wrong_size = field in ("bundle_size", "bundle_sha256") and value is not None
    with pytest.raises((Refused, SendAgain) if wrong_size else Refused, match="the manifest"):
        send(Forgery(head={field: value}).write(tmp_path))


@pytest.mark.parametrize(
    "line",
    [
        b"{}\n", b"[]\n", b"null\n", b'"x"\n', b"[" * 50_000 + b"\n", b'{"size": ' + b"9" * 50_000 + b"}\n", b"{\n",
        b"\xff\n", b'{"more": 1}\n', b"\x00\n", b"NaN\n",
    ],
    ids=_label,
)  # fmt: skip
def test_a_line_that_is_none_is_no_traceback(send: Callable[[Path], None], tmp_path: Path, line: bytes) -> None:
    with pytest.raises((Refused, SendAgain), match="line 2 of the manifest is damaged"):
        send(Forgery(line=line).write(tmp_path))


def test_a_page_twice_is_refused(send: Callable[[Path], None], tmp_path: Path) -> None:
    """A job has each URL once; of one URL 100,000 times all that is stored is looked at for each of them."""
    with pytest.raises(Refused, match=r"line 3: the manifest has a bad digest \(of an earlier page\)"):
        send(Forgery(rows=2).write(tmp_path))


def test_a_bundle_from_the_future_is_refused(send: Callable[[Path], None], tmp_path: Path) -> None:
    """It would be the newest revision of its pages for years."""
    with pytest.raises(Refused, match="from the future"):
        send(Forgery(created=int(time.time()) + 1_000_000).write(tmp_path))


# --- the same, where another FTP server has taken it ----------------------------------------------------------------


@pytest.fixture
def crawl(tmp_path: Path) -> Iterator[Path]:
    """A work folder with one honest page, which was crawled and reported, and room for another bundle."""
    settings = Settings(tmp_path)
    frontier = open_frontier(settings, SystemClock())
    frontier.add([FoundUrl(page_url(domain, 0), 0) for domain in ("a.example", "b.example")])
    leased = frontier.lease("w", "", 100)
    results = [UrlResult(task.url, Outcome.STORED) for task in leased.tasks]
    frontier.report("w", leased.job, Report(str(leased.job), results, []))
    frontier.close()
    honest(settings.pages, job=job_name(tmp_path))
    return tmp_path


def run(main: Callable[[list[str]], int], folder: Path, *arguments: str) -> int:
    return main([*arguments, "--dir", str(folder)])


@pytest.mark.parametrize(("field", "value"), [
    ("size", "5"), ("url", None), ("url", "https://a.example/\ud800"), ("crawl_time", 9e11), ("folder", "../.."),
    ("data_name", ".."), ("digest", SHA1), ("sha1", SHA1), ("url", OTHER),
], ids=_label)  # fmt: skip
def test_every_reader_names_it_and_goes_on(
    crawl: Path, capsys: pytest.CaptureFixture[str], field: str, value: Any
) -> None:
    bundle = Forgery(job=job_name(crawl), row={field: value}).write(crawl / "Pages")
    is_seen_beside = field != "sha1"  # this one only when the page is read
    assert run(ftp_main.main, crawl, "--rebuild-catalogue") == is_seen_beside
    told = capsys.readouterr().out
    assert (f"broken: a.example/{bundle.name}" in told) == is_seen_beside
    assert "2 bundles" in told or "1 bundles, 1 pages" in told
    for command in (["index", "--output", str(crawl / "index.txt")], ["files", "--output", str(crawl / "tree")]):
        assert run(export_main.main, crawl, *command) == 1
        told = capsys.readouterr().err
        assert bundle.name in told
        assert "1 pages in" in told
    assert (crawl / "tree" / "b.example" / "page0.html").read_bytes() == b"honest"
    assert sum(path.is_file() for path in (crawl / "tree").rglob("*")) == 1
    assert run(admin_main.main, crawl, "audit") == 1
    assert bundle.name in capsys.readouterr().out
    assert run(admin_main.main, crawl, "explain", page_url("a.example", 0)) == 0
    assert run(admin_main.main, crawl, "explain", OTHER) == 0
    told = capsys.readouterr().out
    assert is_seen_beside == (bundle.name not in told)
    assert run(admin_main.main, crawl, "audit", "--repair") == 0
    assert bundle.name in capsys.readouterr().out
    assert not bundle.exists(), "in quarantine"
    assert run(admin_main.main, crawl, "audit") == 0
    assert run(export_main.main, crawl, "index", "--output", str(crawl / "index.txt")) == 0


@pytest.mark.parametrize(
    ("module", "command"), [("server.admin.main", ["audit"]), ("server.ftpserver.main", ["--rebuild-catalogue"])]
)
def test_words_that_the_terminal_has_no_characters_for(crawl: Path, module: str, command: list[str]) -> None:
    assert run(ftp_main.main, crawl, "--rebuild-catalogue") == 0
    Forgery(row={"content_type": "\u0100"}).write(crawl / "Pages")
    done = subprocess.run(
        [sys.executable, "-m", module, *command, "--dir", str(crawl)], cwd=ROOT, capture_output=True, timeout=60,
        env={**os.environ, "PYTHONIOENCODING": "latin-1"},
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert rb"a bad content_type: '\u0100'" in done.stdout


XML = b"""<?xml version="1.0" encoding="x-nope"?>\n<page/>"""
META = page_meta(page_url("a.example", 0), Forgery().body, CREATED)
OTHER_XML = Forgery(domain="victim.example")._xml()


@pytest.mark.parametrize("xml", [
    XML, b"", b"\xff\xfe<\x00p\x00", b"<page>", b"<!DOCTYPE page><page/>", b"<page>" + b"<a>" * 100_000,
    b"<page>" + b"<a/>" * 1_000_000 + b"</page>", b"<page " + b"a" * 3_000_000 + b"='1'/>", OTHER_XML,
    Forgery()._xml().replace(b"<status>200", b"<status>" + b"9" * 5_000),
    Forgery()._xml().replace(b"<crawlTime>2", b"<crawlTime>9999999999"),
], ids=_label)  # fmt: skip
def test_a_data_xml_that_cannot_be_read_is_named_and_the_rest_exported(
    crawl: Path, capsys: pytest.CaptureFixture[str], xml: bytes
) -> None:
    """It has the digest that the manifest says, so the bundle is as it was sent."""
    Forgery(job=job_name(crawl), xml=xml).write(crawl / "Pages")
    assert run(ftp_main.main, crawl, "--rebuild-catalogue") == 0
    assert run(export_main.main, crawl, "index", "--output", str(crawl / "index.txt")) == 1
    told = capsys.readouterr().err
    assert page_url("a.example", 0) in told
    assert "data.xml" in told
    assert "1 pages in" in told
    assert run(export_main.main, crawl, "files", "--output", str(crawl / "tree")) == 0
    assert run(admin_main.main, crawl, "audit") == 0
    assert run(admin_main.main, crawl, "audit", "--repair") == 0


def test_the_links_of_a_page_that_nobody_reported_are_read_as_carefully(
    crawl: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = page_url("c.example", 0)
    frontier = open_frontier(Settings(crawl), SystemClock())
    frontier.add([FoundUrl(url, 0)])
    frontier.release("w", frontier.lease("w", "", 100).job)
    frontier.close()
    Forgery(job=job_name(crawl)).write(crawl / "Pages")
    xml = XML.replace(b"<page/>", b'<page><links><link url="/"/></links></page>')
    Forgery(domain="c.example", job=job_name(crawl, 2), xml=xml).write(crawl / "Pages")
    assert run(ftp_main.main, crawl, "--rebuild-catalogue") == 0
    assert run(admin_main.main, crawl, "audit", "--repair") == 0


def test_what_is_inside_must_be_what_was_received(crawl: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The manifest beside is sound, and that is all that ftpServer looks at."""
    other = Forgery(job=job_name(crawl), row={"title": "another"})
    bundle = Forgery(job=other.job, inside=other.lines()).write(crawl / "Pages")
    assert run(ftp_main.main, crawl, "--rebuild-catalogue") == 0
    assert run(export_main.main, crawl, "files", "--output", str(crawl / "tree")) == 1
    assert "lists other pages than the one inside" in capsys.readouterr().err
    assert run(admin_main.main, crawl, "audit") == 1
    assert bundle.name in capsys.readouterr().out


# --- pages that no job had, or that no job has reported -------------------------------------------------------------


@dataclass(frozen=True)
class Claimed:
    """A bundle that is sound in itself and claims what is not so. Job 1 has stored b.example, 2 is out with c.example,
    3 had d.example and lost it to 4, which has stored it; e.example is queued, and f.example is not known."""

    domain: str
    job: int | str  # by its number: under its true name
    verdict: str  # what explain says of it
    finding: str  # difference of the audit; empty for a note
    state: str = ""  # of its URL after a repair, if that changes it
    can_be_believed: bool = True  # a job stores one page of a URL, whoever says what


NEVER, UNREPORTED = "never had this URL, or has reported something else of it", "has not reported it"
CLAIMED = {
    "an unknown URL": Claimed("f.example", 1, NEVER, "not confirmed"),
    "an unknown URL under a job that is out": Claimed("f.example", 2, NEVER, "not confirmed"),
    "a queued URL": Claimed("e.example", 1, NEVER, "not confirmed"),
    "a queued URL under what is no job": Claimed("e.example", "x-1", NEVER, "not confirmed"),
    "a done URL under its own job, another body": Claimed(
        "b.example", 1, NEVER, "not confirmed", can_be_believed=False
    ),
    "a done URL under another job": Claimed("b.example", 4, NEVER, "not confirmed"),
    "a done URL under a job that is out": Claimed("b.example", 2, NEVER, "not confirmed"),
    "a done URL under a job that never was": Claimed("b.example", 99, NEVER, "not confirmed"),
    "a done URL under what is no job": Claimed("b.example", "x-1", NEVER, "not confirmed"),
    "a done URL under its job with a zero": Claimed("b.example", "01", NEVER, "not confirmed"),
    "a leased URL under the job of another client": Claimed("c.example", 1, NEVER, "not confirmed"),
    "a leased URL under its own job": Claimed("c.example", 2, UNREPORTED, "not reported", "done"),
    "a done URL under a job that has lost it": Claimed("d.example", 3, UNREPORTED, ""),
    "a queued URL under the next job": Claimed("e.example", 5, NEVER, "not confirmed"),
    "a queued URL under the number of the next job": Claimed("e.example", "5", NEVER, "not confirmed"),
    "a done URL under the number of its job": Claimed("b.example", "1", NEVER, "not confirmed"),
    "a leased URL under the number of its job": Claimed("c.example", "2", NEVER, "not confirmed"),
    "a leased URL under digits that are invented": Claimed("c.example", f"2-{0:016}", NEVER, "not confirmed"),
    "a done URL under the number of a job that has lost it": Claimed("d.example", "3", NEVER, "not confirmed"),
}


@pytest.fixture
def busy_crawl(tmp_path: Path) -> Path:
    """A crawl in the middle of its work, which `Claimed` describes."""
    settings = Settings(tmp_path, UrlServerSettings(delay=0.0))
    frontier = open_frontier(settings, SystemClock())
    _lease_and_store(frontier, settings, "b.example")
    _leased(frontier, "c.example", "w2")
    frontier.release("w3", _leased(frontier, "d.example", "w3"))
    _lease_and_store(frontier, settings)
    frontier.add([FoundUrl(page_url("e.example", 0), 0)])
    frontier.close()
    return tmp_path


def _leased(frontier: Frontier, domain: str, client: str) -> int:
    if domain:
        frontier.add([FoundUrl(page_url(domain, 0), 0)])
    leased = frontier.lease(client, "", 100)
    assert len(leased.tasks) == 1
    return leased.job


def _lease_and_store(frontier: Frontier, settings: Settings, domain: str = "") -> None:
    number = _leased(frontier, domain, "w")
    job = frontier.job_name(number)
    path = honest(settings.pages, domain or "d.example", job)
    [page] = read_manifest(path).pages
    result = UrlResult(page.meta.url, Outcome.STORED, sha1=page.meta.sha1)
    frontier.report("w", number, Report(job, [result], []))


@pytest.fixture(params=CLAIMED)
def claimed(busy_crawl: Path, request: pytest.FixtureRequest) -> Claimed:
    """It is there, newer than all others of its URL, and catalogued."""
    claimed = CLAIMED[request.param]
    name = job_name(busy_crawl, claimed.job) if isinstance(claimed.job, int) else claimed.job
    Forgery(domain=claimed.domain, job=name, created=CREATED + 1_000).write(busy_crawl / "Pages")
    assert run(ftp_main.main, busy_crawl, "--rebuild-catalogue") == 0
    return replace(claimed, job=name)


def test_explain_says_that_it_is_not_confirmed(
    busy_crawl: Path, claimed: Claimed, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(admin_main.main, busy_crawl, "explain", page_url(claimed.domain, 0)) == 0
    told = capsys.readouterr().out.splitlines()
    assert [line.split(None, 2)[2] for line in told if "not confirmed" in line] == [
        f"job {claimed.job} {claimed.verdict}"
    ]


def test_no_export_has_it_and_none_loses_the_true_one(
    busy_crawl: Path, claimed: Claimed, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(export_main.main, busy_crawl, "files", "--output", str(busy_crawl / "tree")) == 0
    assert "1 pages are not confirmed by a report, and left out" in capsys.readouterr().err
    files = {path.parent.name: path.read_bytes() for path in (busy_crawl / "tree").rglob("*") if path.is_file()}
    assert files == {"b.example": b"honest", "d.example": b"honest"}
    for options in ([], ["--all-links"]):
        index = busy_crawl / "index.txt"
        assert run(export_main.main, busy_crawl, "index", *options, "--output", str(index)) == 0
        with index.open("rb") as file:
            assert [record.url for record in read(file)] == [page_url("b.example", 0), page_url("d.example", 0)]


def test_the_audit_names_it_and_a_repair_believes_only_what_a_job_had(
    busy_crawl: Path, claimed: Claimed, capsys: pytest.CaptureFixture[str]
) -> None:
    url = page_url(claimed.domain, 0)
    before = _state(busy_crawl, url, capsys)
    assert _differences(busy_crawl, capsys) == ({claimed.finding: 1} if claimed.finding else {})
    is_left = claimed.finding == "not confirmed"
    assert run(admin_main.main, busy_crawl, "audit", "--repair") == is_left
    assert _state(busy_crawl, url, capsys) == (claimed.state or before)
    assert _differences(busy_crawl, capsys) == ({"not confirmed": 1} if is_left else {})


def _state(folder: Path, url: str, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    run(admin_main.main, folder, "explain", url, "--json")
    return str(json.loads(capsys.readouterr().out)["state"])


def _differences(folder: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, int]:
    capsys.readouterr()
    run(admin_main.main, folder, "audit", "--json")
    kinds: dict[str, int] = json.loads(capsys.readouterr().out)["differences"]["kinds"]
    return kinds


def test_what_is_believed_all_the_same_counts(
    busy_crawl: Path, claimed: Claimed, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also of jobs that this frontier does not know: they may be those of another."""
    can_be = claimed.can_be_believed
    assert run(admin_main.main, busy_crawl, "audit", "--believe") == 2, "only a repair can"
    assert run(admin_main.main, busy_crawl, "audit", "--repair", "--believe") == (not can_be)
    assert run(admin_main.main, busy_crawl, "audit") == (not can_be)


def test_the_same_body_under_the_same_job_counts_once(busy_crawl: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its links would be others, and its title."""
    job = job_name(busy_crawl)
    Forgery(domain="b.example", job=job, created=CREATED + 1_000, body=b"honest").write(busy_crawl / "Pages")
    assert run(ftp_main.main, busy_crawl, "--rebuild-catalogue") == 0
    assert _differences(busy_crawl, capsys) == {"stored twice": 1}
    assert run(export_main.main, busy_crawl, "index", "--output", str(busy_crawl / "index.txt")) == 0
    with (busy_crawl / "index.txt").open("rb") as file:
        assert [record.links for record in read(file)] == [(), ()]
    assert run(admin_main.main, busy_crawl, "explain", page_url("b.example", 0)) == 0
    assert f"job {job} has stored another page of this URL before" in capsys.readouterr().out


def test_what_was_sent_before_its_job_existed_neither_counts_nor_is_in_the_way(
    tmp_path: Path, send: Callable[[Path], None], capsys: pytest.CaptureFixture[str]
) -> None:
    """Numbers of jobs, the time and the body of a page can be guessed; the names of jobs cannot."""
    settings = Settings(tmp_path / "work", UrlServerSettings(delay=0.0))
    for job in ("1", "2", f"1-{0:016}"):
        for created in range(CREATED, CREATED + 3):
            send(Forgery("b.example", job, created=created, body=b"honest").write(tmp_path / "forged"))
    frontier = open_frontier(settings, SystemClock())
    _leased(frontier, "b.example", "w")
    own = honest(tmp_path / "spool", "b.example", frontier.job_name(1))
    send(own)
    [page] = read_manifest(own).pages
    frontier.report("w", 1, Report("", [UrlResult(page.meta.url, Outcome.STORED, sha1=page.meta.sha1)], []))
    frontier.close()
    (tmp_path / "received").rename(settings.pages)
    with Catalogue.open(settings.pages) as catalogue:
        catalogue.reconcile()
    assert _differences(settings.folder, capsys) == {"not confirmed": 9}
    index = tmp_path / "index.txt"
    assert run(export_main.main, settings.folder, "index", "--output", str(index)) == 0
    with index.open("rb") as file:
        assert [(record.url, record.links) for record in read(file)] == [(page.meta.url, ())], "no link"


# --- bombs ----------------------------------------------------------------------------------------------------------

MOST_MEMORY = 420_000_000  # of a whole program; what it needs for itself is 60 to 100 MB
GB = 1_000_000_000
MANIFEST_BOMBS: dict[str, Callable[[], bytes]] = {
    "blanks": lambda: zstd_of_many([(b" " * 1_000_000, 1_000)]),
    "ends of lines": lambda: zstd_of_many([(b"\n" * 1_000_000, 1_000)]),
    "lines that are none": lambda: zstd_of_many([(Forgery(rows=0).lines(), 1), (b"{}\n" * 100_000, 500)]),
    "one line of many": lambda: zstd_of_many([(Forgery().lines()[:-1] + b"[", 1), (b"{}," * 100_000, 500)]),
    "sound lines": lambda: zstd_of_many([(Forgery(rows=0).lines(), 1), (_sound_line() * 1_000, 300)]),
    "sound lines within the limit": lambda: zstd_of_many([(Forgery(rows=0).lines() + _many_lines(2_900), 1)]),
    "no size": lambda: zstd_of_many([(b"\n" * 1_000_000, 1_000)], tells_size=False),
    "a large window": lambda: _with_window(27),
}


def _sound_line() -> bytes:
    return Forgery().lines().split(b"\n")[1] + b"\n"


def _line_of_page(number: int) -> bytes:
    """A sound line, of one of many pages."""
    url, folder = page_url("a.example", number), f"a.example/page{number}.html"
    own = {"url": url, "original_url": url, "final_url": url, "digest": digest(url).hex(), "folder": folder}
    return json.dumps(json.loads(_sound_line()) | own).encode() + b"\n"


def _many_lines(number: int) -> bytes:
    return b"".join(map(_line_of_page, range(number)))


def _with_window(log: int) -> bytes:
    import zstandard

    parameters = zstandard.ZstdCompressionParameters.from_level(1, window_log=log)
    maker = zstandard.ZstdCompressor(compression_params=parameters).compressobj(size=300_000_000)
    return b"".join([*(maker.compress(bytes(1_000_000)) for _ in range(300)), maker.flush()])


RECEIVE = """
import sys, time, resource
from pathlib import Path
from server.ftpserver.folder import PagesFolder
from server.ftpserver.inbox import Inbox, Refused, SendAgain
from server.ftpserver.uploads import Place
from dataclasses import dataclass, replace
bundle = Path(sys.argv[1])
folder = PagesFolder(Path(sys.argv[2]))
inbox = Inbox(folder.directory, folder.incoming, 10**9, 20_000_000, lambda path, manifest: None)
uploads, place = inbox.uploads(), Place(bundle.parent.name, bundle.name)
beside = replace(place, is_manifest=True)
for where, path in ((place, bundle), (beside, bundle.with_name(bundle.name + ".manifest"))):
    upload = uploads.begin(where)
    upload.write(path.read_bytes())
    upload.close()
begun = time.monotonic()
try:
    inbox.accept(place, uploads.complete(place), uploads.complete(beside))
    print("taken")
except (Refused, SendAgain) as error:
    print("refused:", error)
print("seconds:", time.monotonic() - begun)
"""
PEAK = "\nprint('peak:', [line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')][0])\n"


def measured(code: str, *arguments: str) -> tuple[str, int, float]:
    """What a Python program printed, the most memory it had, and how long it took."""
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", code + PEAK, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=120,
        env={**os.environ, "MALLOC_ARENA_MAX": "2"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    peak = int(done.stdout.rpartition("peak: ")[2]) * 1024
    return done.stdout + done.stderr, peak, time.monotonic() - begun


def program(module: str, *arguments: str) -> str:
    return f"from {module} import main\nprint('code:', main({list(arguments)!r}))"


@pytest.mark.parametrize("name", MANIFEST_BOMBS)
def test_a_bomb_of_a_manifest_costs_neither_memory_nor_time(tmp_path: Path, name: str) -> None:
    bomb = MANIFEST_BOMBS[name]()
    bundle = Forgery(beside=bomb).write(tmp_path)
    told, peak, _ = measured(RECEIVE, str(bundle), str(tmp_path / "received"))
    assert "refused: " in told
    assert float(told.rpartition("seconds: ")[2].split()[0]) < 5
    assert peak < MOST_MEMORY / 2


def _repeated(member: bytes, times: int) -> bytes:
    return bz2.compress(member) * times


def _zeros() -> str:
    import hashlib

    hasher = hashlib.sha1()
    for _ in range(22):
        hasher.update(ZEROS)
    return hasher.hexdigest()


_LONG = b"x" * 950 + "\U0001f600".encode()
BUNDLE_BOMBS: dict[str, Callable[[], Forgery]] = {
    "a body of 1 GB, as the manifest says": lambda: Forgery(
        container="tar.bz2", body=b"", member_size=22 * len(ZEROS), packed_tail=_repeated(ZEROS, 22),
        row={"size": 22 * len(ZEROS), "sha1": _zeros()},
    ),
    "a body of 1 GB, and the manifest says 10 bytes": lambda: Forgery(
        container="tar.bz2", body=b"", member_size=22 * len(ZEROS), packed_tail=_repeated(ZEROS, 22), row={"size": 10},
    ),
    "a body of 200 GB that ends too soon": lambda: Forgery(
        container="tar.bz2", body=b"", member_size=8**11 - 1, packed_tail=_repeated(ZEROS, 22),
    ),
    "a data.xml of 180 MB": lambda: Forgery(xml=b"<page>" + b" " * 180_000_000 + b"</page>"),
    "a data.xml with 50 million elements": lambda: Forgery(xml=b"<page>" + b"<a/>" * 45_000_000 + b"</page>"),
    "a data.xml of addresses": lambda: Forgery(
        xml=b"<page><links>%s</links></page>" % b"".join(b"<link url='/%d%s'/>" % (n, _LONG) for n in range(190_000))
    ),
    "a data.xml of wide characters": lambda: Forgery(
        xml=b"<page><data><text>" + (b"a" * 60_000 + "\U0001f600".encode()) * 3_200 + b"</text></data></page>"
    ),
    "a data.xml with one tag": lambda: Forgery(xml=b"<page><a " + b"a='' " * 30_000_000 + b"/></page>"),
    "a manifest of 1 GB": lambda: Forgery(container="tar.bz2", inside=bytes(1_000_000_000)),
    "a manifest of empty lines": lambda: Forgery(inside=b"\n" * 1_000_000_000),
    "a header of 1 GB": lambda: Forgery(tail=_header(b"x", 1_000_000_000) + bytes(1_000_000_000)),
    "headers without end": lambda: Forgery(tail=_header(b"x", 0) * 500_000),
    "a long name of 1 GB": lambda: Forgery(tail=_header(b"L", 1_000_000_000) + b"x" * 1_000_000_000),
    "streams of nothing": lambda: Forgery(container="tar.bz2", tail=b" ", packed_tail=bz2.compress(b"") * 300_000),
}  # fmt: skip


def _header(kind: bytes, size: int) -> bytes:
    import tarfile

    info = tarfile.TarInfo("x")
    info.type, info.size = kind, size
    return info.tobuf(tarfile.USTAR_FORMAT)


@pytest.mark.parametrize("name", BUNDLE_BOMBS)
def test_a_bomb_of_a_bundle_is_named_by_every_reader(crawl: Path, name: str) -> None:
    bundle = replace(BUNDLE_BOMBS[name](), job=job_name(crawl)).write(crawl / "Pages")
    assert bundle.stat().st_size < 5_000_000
    folder = ["--dir", str(crawl)]
    commands = {
        "rebuild": program("server.ftpserver.main", "--rebuild-catalogue", *folder),
        "index": program("export.main", "index", "--output", str(crawl / "index.txt"), *folder),
        "files": program("export.main", "files", "--output", str(crawl / "tree"), *folder),
        "audit": program("server.admin.main", "audit", *folder),
        "explain": program("server.admin.main", "explain", page_url("a.example", 0), *folder),
        "repair": program("server.admin.main", "audit", "--repair", *folder),
    }
    told = {}
    for command, code in commands.items():
        told[command], peak, seconds = measured(code)
        assert "Traceback" not in told[command]
        assert peak < MOST_MEMORY, command
        assert seconds < 30, command
    is_only_odd_xml = "data.xml" in name
    assert bundle.name in told["index"] or page_url("a.example", 0) in told["index"]
    assert "code: 1" in told["index"]
    assert ("code: 0" if is_only_odd_xml else "code: 1") in told["audit"]
    assert (bundle.name in told["audit"]) != is_only_odd_xml
    assert (crawl / "tree" / "b.example" / "page0.html").read_bytes() == b"honest"


def test_all_bodies_together_are_bounded(tmp_path: Path, send: Callable[[Path], None]) -> None:
    """None is larger than it may be; in 99 KB there cannot be 3 GB all the same."""
    lines = _many_lines(150).replace(b'"size": 21,', b'"size": 20000000,')
    assert lines.count(b"20000000,") == 150
    with pytest.raises(Refused, match="more than can be in a bundle"):
        send(Forgery(line=lines).write(tmp_path))

"""crawlAdmin on a running and on a stopped urlServer: the same verbs, the same answers; what was set stays."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests

from common.wire import Outcome
from tests.certificates import make_certificate
from tests.integration.admin import ask_admin, run_admin
from tests.processes import ROOT
from tests.urlserver import Soap, address_of, serving, urls_of
from tests.web.running import run_web

pytestmark = pytest.mark.integration

STARTS = ("--start-urls", "http://a.example/1;http://a.example/2;http://b.example/", "--delay", "0", "--scope", "host")
Ask = Callable[..., dict[str, Any]]


@pytest.fixture(params=["running", "stopped"])
def ask(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ask]:
    """Asks crawlAdmin about a crawl with one job out and one failed URL."""
    with serving(tmp_path, *STARTS) as server:
        soap = Soap(address_of(server))
        first, *_ = urls_of(job := soap.job("w1"))
        assert first == "http://a.example/1"
        soap.report("w1", job.job, {first: Outcome.NOT_FOUND})
        if request.param == "stopped":
            assert server.stop() == 0
        yield lambda *arguments, code=0: ask_admin(tmp_path, *arguments, code=code)


def test_every_verb(ask: Ask) -> None:
    answer = ask("status")
    assert (answer["totals"]["known"], answer["totals"]["leased"], answer["totals"]["failed"]) == (3, 2, 1)
    assert [(job["client"], job["urls"]) for job in answer["jobs"]["first"]] == [("w1", 2)]
    assert ask("pause") == {"paused": True}
    assert ask("status")["paused"]
    assert ask("resume") == {"paused": False}
    assert ask("explain", "http://a.example/2")["lease"]["client"] == "w1"
    assert ask("explain", "http://nowhere.example/")["state"] == "unknown"
    assert ask("block", "b.example", "C.example") == {"blocked": ["b.example", "c.example"]}
    assert ask("explain", "b.example")["host"]["is_blocked"]
    assert ask("unblock", "b.example") == {"unblocked": ["b.example"]}
    assert ask("delay", "a.example", "2.5") == {"host": "a.example", "seconds": 2.5}
    assert ask("explain", "a.example/2")["host"]["delay_seconds"] == 2.5
    assert ask("delay", "a.example", "default")["seconds"] is None
    assert ask("add", "new.example", "http://a.example/2") == {"added": 1, "known": 1}
    [failed] = ask("blacklist", "--outcome", "not_found", "--host", "a.example", "--limit", "5")["urls"]
    assert failed["url"] == "http://a.example/1"
    assert ask("blacklist", "--outcome", "dns", code=1)["number"] == 0
    assert ask("queue", "--host", "new.example", "--limit", "1") == {
        "number": 1, "urls": [{"url": "http://new.example/", "depth": 0, "tries": 0, "kind": "page", "due": None}],
    }  # fmt: skip
    assert ask("queue", "--host", "nobody.example", code=1) == {"number": 0, "urls": []}
    assert ask("retry", "--outcome", "not_found") == {"retried": 1}
    assert ask("retry", "http://a.example/1", code=1) == {"retried": 0}
    assert ask("status")["totals"]["queued"] == 2


def test_what_was_set_survives_kill_9(tmp_path: Path) -> None:
    with serving(tmp_path, *STARTS) as server:
        for command in (["pause"], ["block", "b.example"], ["delay", "a.example", "9"], ["add", "http://c.example/"]):
            ask_admin(tmp_path, *command)
        server.kill()
    with serving(tmp_path, *STARTS) as server:
        assert not urls_of(Soap(address_of(server)).job())
        answer = ask_admin(tmp_path, "status")
        assert answer["paused"]
        assert [host["name"] for host in answer["blocked"]["first"]] == ["b.example"]
        assert [host["own_delay_seconds"] for host in answer["delays"]["first"]] == [9.0]
        ask_admin(tmp_path, "resume")
        urls = urls_of(Soap(address_of(server)).job())
        assert "http://c.example/" in urls
        assert "http://b.example/" not in urls


def test_a_long_queue_is_read_in_pieces(tmp_path: Path) -> None:
    (tmp_path / "seeds").write_text("".join(f"http://a.example/{number}\n" for number in range(2_345)))
    with serving(tmp_path, "--seeds", tmp_path / "seeds"):
        urls = ask_admin(tmp_path, "queue", "--limit", "99999")["urls"]
        lines = run_admin(tmp_path, "queue", "--host", "a.example", "--limit", "1002").stdout.splitlines()
    assert [item["url"] for item in urls] == [f"http://a.example/{number}" for number in range(2_345)]
    assert lines[1_001:] == ["page     http://a.example/1001  (depth 0)", "in all   2345"]
    command = [sys.executable, "-m", "server.admin.main", "queue", "--limit", "99999", "--dir", tmp_path]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as admin:
        assert admin.stdout is not None
        assert admin.stderr is not None
        assert admin.stdout.readline() == b"page     http://a.example/0  (depth 0)\n"
        admin.stdout.close()  # as `head` does that has seen enough
        assert admin.wait(60) == 1
        assert admin.stderr.read() == b"urlServer is not running: read from disk\n"


def test_lines_for_a_person(tmp_path: Path) -> None:
    with serving(tmp_path, *STARTS):
        running = run_admin(tmp_path, "status")
    assert "queued      3\n" in running.stdout
    assert running.stderr == ""
    stopped = run_admin(tmp_path, "explain", "http://a.example/1")
    assert stopped.stderr == "urlServer is not running: read from disk\n"
    assert "state      queued\n" in stopped.stdout


def test_index_names_are_treated_as_the_server_did(tmp_path: Path) -> None:
    with serving(tmp_path, "--drop-index-names", "0", "http://a.example/index.html"):
        pass
    assert ask_admin(tmp_path, "explain", "http://a.example/index.html")["state"] == "queued"
    assert ask_admin(tmp_path, "explain", "http://a.example/")["state"] == "unknown"


def trouble(folder: Path, *arguments: str) -> str:
    done = run_admin(folder, *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    return done.stderr


def test_token_and_tls(tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path)
    config = f"[url_Server]\nserver_port = 0\ntls_cert = {certificate.name}\ntls_key = {key.name}\n"
    (tmp_path / "config.cfg").write_text(config)
    with serving(tmp_path, "--token", "secret"):
        assert "token" in trouble(tmp_path, "status")
        assert "token" in trouble(tmp_path, "status", "--token", "wrong")
        assert ask_admin(tmp_path, "status", "--token", "secret")["totals"]["known"] == 0


def test_troubles_are_sentences(tmp_path: Path) -> None:
    assert "there is no crawl in" in trouble(tmp_path, "status", "--server-port", "1")
    assert not (tmp_path / ".mem").exists(), "asking must not make a crawl"
    with serving(tmp_path, *STARTS) as server:
        port = address_of(server).rstrip("/").rpartition(":")[2]
        assert "no http or https URL" in trouble(tmp_path, "explain", "mailto:x@example.org")
        assert "no number of seconds" in trouble(tmp_path, "delay", "a.example", "soon")
        assert "retry what?" in trouble(tmp_path, "retry")
        (tmp_path / ".mem" / "urlServer.address").unlink()
        assert "in use by another urlServer" in trouble(tmp_path, "status", "--server-port", "1")
        other = tmp_path / "other"
        with serving(other):
            pass
        assert ask_admin(other, "status")["totals"]["known"] == 0
        assert ask_admin(other, "status", "--server-port", port)["totals"]["known"] == 3


def test_a_port_of_somebody_else(tmp_path: Path) -> None:
    with serving(tmp_path, *STARTS):
        pass
    with run_web(hosts=1, pages=2) as web:
        place = urlsplit(web.start_urls[0])
        where = ("--ip", str(place.hostname), "--server-port", str(place.port))
        assert "is no urlServer" in trouble(tmp_path, "status", *where)


def test_web_pages_cannot_command(tmp_path: Path) -> None:
    with serving(tmp_path, *STARTS) as server:
        url, body = address_of(server) + "admin", b'{"command": "pause"}'

        def post(message: bytes, **headers: str) -> requests.Response:
            return requests.post(url, data=message, headers=headers, timeout=30)

        json_type = {"Content-Type": "application/json"}
        assert post(body, **{"Content-Type": "text/plain"}).status_code == 415
        assert post(body, **{"Content-Type": "text/xml"}).status_code == 415
        assert post(body, **json_type, Origin="http://evil.example").status_code == 403
        assert requests.get(url, timeout=30).status_code == 405
        for wrong in (b"", b"{", b"[]", b'{"command": 1}', b'{"command": "x"}', b"[" * 100_000,
                      b'{"command": "status", "arguments": []}'):  # fmt: skip
            answer = post(wrong, **json_type)
            assert answer.status_code == 400
            assert answer.json()["error"]
        assert not ask_admin(tmp_path, "status")["paused"]
        assert post(body, **json_type).json() == {"paused": True}
        assert "Traceback" not in server.errors()

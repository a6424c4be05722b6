"""The SOAP contract from a foreign tool kit, npm's `soap`."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.processes import Running
from tests.urlserver import address_of, serving

FOLDER = Path(__file__).parent


@pytest.fixture(autouse=True)
def _node() -> None:
    if shutil.which("node") is None or not (FOLDER / "node_modules" / "soap").is_dir():
        message = "needs node and npm's soap: ./test installs them"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(message)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    with serving(tmp_path, "http://example.org/", "http://example.com/", "--token", "t0ken", "--delay", "0") as it:
        yield it


def node(program: Running, token: str) -> subprocess.CompletedProcess[str]:
    wsdl = f"{address_of(program)}?wsdl"
    return subprocess.run(
        ["node", FOLDER / "soap_client.js", wsdl, token], capture_output=True, text=True, timeout=60
    )


def test_a_foreign_worker(server: Running) -> None:
    ended = node(server, "t0ken")
    assert ended.returncode == 0, ended.stderr
    told: dict[str, Any] = json.loads(ended.stdout)
    assert told["urls"] == ["http://example.org/", "http://example.com/"]
    assert told["again"] == told["job"]
    assert told["job"]["job"].startswith("1-")
    assert (told["job"]["lease_seconds"], told["job"]["finished"]) == (300, False)
    assert told["job"]["hosts"].split("\n")[0].split("\t") == ["example.org", "0", "1", "0", "example.org"]
    assert told["job"]["settings"]["robots_control"] is True
    assert told["job"]["settings"]["max_body_bytes"] == 20_000_000
    assert told["renewed"] == 300
    assert told["receipt"] == {"accepted": 1, "refused": 0, "new_urls": 2}
    assert told["returned"] == 1
    assert {key: told["totals"][key] for key in ("queued", "leased", "done", "size", "finished")} == {
        "queued": 3, "leased": 0, "done": 1, "size": 4321, "finished": False,
    }  # fmt: skip
    assert told["fault"]["code"].endswith("Client.BadJob")
    assert told["fault"]["text"] == "'999' is no job of this crawl"
    assert "(1 2 0 4) from node-1 [127.0.0.1]" in server.output()


def test_a_foreign_worker_without_the_token_hears_why(server: Running) -> None:
    ended = node(server, "")
    assert ended.returncode == 1
    assert "the token is missing or wrong" in ended.stderr

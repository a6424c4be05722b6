"""A crawl by the real commands over everything that is hostile at once, beside a good host: nothing stops it, nothing
is lost, every URL comes to the end that it has to come to.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from common.clock import SystemClock
from common.names import domain_name
from common.settings import Settings
from common.urls import host_of
from common.wire import Outcome
from server.opening import open_store, reopened
from tests.integration.admin import ask_admin
from tests.integration.cluster import run_cluster
from tests.processes import Running, running
from tests.web.hostile_answers import TRAP_LINKS
from tests.web.hostile_cases import ENCODINGS, HTML, NAMES, REDIRECTS, SLOW, STATUSES, TRANSFERS, TYPES
from tests.web.requestlog import Request
from tests.web.running import RunningHostile, RunningTls, run_hostile, run_hostile_tls, run_web

pytestmark = pytest.mark.integration

MAX_DEPTH = 7  # where the trap ends; the good host needs less
MAX_PEAK_KB = 200_000
OPTIONS = (
    "--delay", "0.01", "--retry-wait", "0.05", "--report-seconds", "0.5", "--scope", "domain",
    "--max-depth", str(MAX_DEPTH), "--connect-timeout", "3", "--idle-timeout", "60", "--fetch-timeout", "7",
)  # fmt: skip

ROBOTS = {
    "forbidden": (Outcome.STORED, Outcome.STORED),
    "broken": (Outcome.ROBOTS_UNREACHABLE, Outcome.ROBOTS_UNREACHABLE),
    "hangs": (Outcome.ROBOTS_UNREACHABLE, Outcome.ROBOTS_UNREACHABLE),
    "rules": (Outcome.STORED, Outcome.DISALLOWED),
    "redirects-5": (Outcome.STORED, Outcome.DISALLOWED),
    "redirects-6": (Outcome.STORED, Outcome.STORED),
    "huge": (Outcome.STORED, Outcome.DISALLOWED),
    "endless": (Outcome.STORED, Outcome.DISALLOWED),
    "binary": (Outcome.STORED, Outcome.DISALLOWED),
    "bom": (Outcome.STORED, Outcome.DISALLOWED),
    "redirects-away": (Outcome.ROBOTS_UNREACHABLE, Outcome.ROBOTS_UNREACHABLE),
    "redirects-to-file": (Outcome.STORED, Outcome.STORED),
}
CERTIFICATES = {
    "good": Outcome.STORED, "expired": Outcome.TLS, "wrong-host": Outcome.TLS, "self-signed": Outcome.TLS,
    "old-protocol": Outcome.TLS, "plain": Outcome.TLS, "mute": Outcome.ROBOTS_UNREACHABLE,
}  # fmt: skip
MILLION = "/pages/million-links"
EACH_ALONE = [*SLOW, *TRANSFERS, *ENCODINGS, *REDIRECTS, *STATUSES, *TYPES, *HTML]  # on a host of its own
APART = [case for case in EACH_ALONE if case.path != MILLION]


@dataclass
class Plan:
    """Where the crawl begins, and what has to become of which URL."""

    starts: list[str] = field(default_factory=list)
    expected: dict[str, Outcome] = field(default_factory=dict)

    def start(self, url: str, outcome: Outcome) -> None:
        self.starts.append(url)
        self.expected[url] = outcome


def plan_of(hostile: RunningHostile, tls: RunningTls) -> Plan:
    plan = Plan()
    for number, case in enumerate(APART):
        plan.start(hostile.plain_url(number, case.path), case.outcome)
    for case in NAMES:
        plan.start(hostile.plain_url(len(APART), case.path), case.outcome)
    for kind, (open_page, closed_page) in ROBOTS.items():
        plan.start(hostile.url("/ok", kind), open_page)
        plan.start(hostile.url("/closed/page.html", kind), closed_page)
    for kind, outcome in CERTIFICATES.items():
        plan.start(tls.url(kind), outcome)
    plan.start(f"http://127.0.4.1:{hostile.port}/", Outcome.REFUSED)
    plan.start("http://nobody.invalid/", Outcome.DNS)
    plan.start(f"http://[::1]:{hostile.port}/ok", Outcome.STORED)
    add_followed(plan, hostile)
    return plan


def add_followed(plan: Plan, hostile: RunningHostile) -> None:
    """Redirects that are found, and where they end."""
    inside = "http://localhost:1/ok"  # in scope, and no start host, which has another port: it may not be private
    plan.start(f"http://localhost:{hostile.port}/redirect-to?u={inside}", Outcome.REDIRECTED)
    plan.expected[inside] = Outcome.FORBIDDEN_ADDRESS
    number = next(number for number, case in enumerate(APART) if case.path == "/redirects/1000")
    for hops in range(10):
        plan.expected[hostile.plain_url(number, f"/redirects/{1000 - hops}")] = Outcome.REDIRECTED
    plan.expected[hostile.plain_url(number, "/redirects/990")] = Outcome.BAD_REDIRECT
    number = next(number for number, case in enumerate(APART) if case.path == "/redirect-loop-1")
    plan.expected[hostile.plain_url(number, "/redirect-loop-1?at=0")] = Outcome.BAD_REDIRECT


@contextmanager
def run_client(folder: Path, server_port: int, authority: Path) -> Iterator[Running]:
    """A client with as many threads as the settings have it, and with folders of its own wherever it might write."""
    places = {name: folder / name for name in ("work", "current", "home", "temporary")}
    for place in places.values():
        place.mkdir(parents=True)
    arguments = ("-m", "client.main", "foreground", "--dir", places["work"], "--server-port", str(server_port))
    more = ("--processes", "1", "--max-wait", "0.5")
    environment = {
        "HOME": str(places["home"]), "TMPDIR": str(places["temporary"]), "SSL_CERT_FILE": str(authority)
    }  # fmt: skip
    with running([*arguments, *more], "works for", folder=places["current"], environment=environment) as client:
        yield client


def peaks_kb(pid: int) -> list[int]:
    """The most memory that a process and its children have had."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    status = Path(f"/proc/{pid}/status").read_text()
    own = int(status.split("VmHWM:")[1].split()[0])
    return [own, *(peak for child in children for peak in peaks_kb(int(child)))]


def outcomes(host: Path, urls: list[str]) -> dict[str, str]:
    """What the frontier says became of each URL."""
    settings = Settings(folder=host)
    frontier = reopened(open_store(settings), settings, SystemClock())
    try:
        explained = {url: frontier.explain(url) for url in urls}
    finally:
        frontier.close()
    return {url: found.reason.partition(":")[0] or found.state for url, found in explained.items()}


def last_asked(log: list[Request], *paths: str) -> float:
    return max(request.monotonic for request in log if request.target.startswith(paths))


def test_hostile_web(tmp_path: Path) -> None:
    with (
        run_web(hosts=1, pages=300, odd=False) as good,
        run_hostile(len(APART) + 1, ipv6=True) as hostile,
        run_hostile_tls(tmp_path) as tls,
    ):
        plan = plan_of(hostile, tls)
        folder = tmp_path / "cluster"
        with run_cluster(folder, [*plan.starts, *good.start_urls], *OPTIONS) as cluster:
            with run_client(tmp_path / "client", cluster.server_port, tls.authority) as client:
                cluster.wait_until_finished()
                peaks = peaks_kb(client.process.pid)
                assert client.stop() == 0
            assert "Traceback" not in client.errors()
            assert cluster.stop("url") == 0

            expected = {url: str(outcome) for url, outcome in plan.expected.items()}
            assert outcomes(cluster.host, list(expected)) == expected
            stored = cluster.stored_urls()
            assert good.truth.stored <= set(stored)
            assert set(stored.values()) == {1}
            in_trap = [url for url in stored if "/trap/" in url]
            assert len(in_trap) == sum(TRAP_LINKS**depth for depth in range(MAX_DEPTH + 1))
            assert (cluster.host / "Pages" / domain_name(host_of(f"http://[::1]:{hostile.port}/"))).is_dir()
            assert ask_admin(cluster.host, "audit")["differences"]["number"] == 0

            assert last_asked(good.log(), "/") < last_asked(hostile.log(), "/hang", "/slow"), "good hosts had to wait"
            assert max(peaks) < MAX_PEAK_KB, peaks
            for name in ("current", "home", "temporary"):
                assert not list((tmp_path / "client" / name).rglob("*")), f"something was written to {name}"
            assert {path.name for path in folder.iterdir()} == {"host"}
            assert {path.name for path in (tmp_path / "client" / "work").iterdir()} == {".client"}


def test_a_million_links_in_little_memory(tmp_path: Path) -> None:
    with run_hostile(1) as hostile, run_hostile_tls(tmp_path) as tls:
        start = hostile.plain_url(0, MILLION)
        with (
            run_cluster(tmp_path / "cluster", [start], *OPTIONS) as cluster,
            run_client(tmp_path / "client", cluster.server_port, tls.authority) as client,
        ):
            assert cluster.wait_until_finished().stored == 1
            assert max(peaks_kb(client.process.pid)) < MAX_PEAK_KB


def test_certificates_do_not_matter_when_the_operator_says_so(tmp_path: Path) -> None:
    with run_hostile_tls(tmp_path) as tls:
        starts = [tls.url(kind) for kind in ("self-signed", "expired", "wrong-host", "old-protocol")]
        with (
            run_cluster(tmp_path / "cluster", starts, *OPTIONS, "--verify-tls", "0") as cluster,
            run_client(tmp_path / "client", cluster.server_port, tls.authority),
        ):
            totals = cluster.wait_until_finished()
            assert (totals.stored, totals.failed) == (3, 1)

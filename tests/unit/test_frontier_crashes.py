"""The frontier when its process is killed within any write, and when its disk is really full."""

import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import zeep.exceptions

from common.wire import Outcome
from server.frontier.frontier import Rules
from server.frontier.records import State
from server.frontier.store import StoreError
from tests.frontier import Case, pages, urls_of
from tests.frontier_faults import KillingStore
from tests.processes import ROOT
from tests.urlserver import Soap, address_of, serving
from tests.waiting import wait_until

pytestmark = pytest.mark.faults

RULES = Rules(delay_seconds=0, lease_seconds=100, retry_wait_seconds=1)
CALLS = 100  # of write and sync, in one random run: it is killed in each of them
RUNS = 2 * CALLS  # before the call is done, and after

# --- kill -9 within a write: this file is also the program that is killed


def random_crawl(folder: Path, number: int) -> None:
    """The same random crawl each time; notes in a file what was answered, until it is killed."""
    chance = random.Random(1)
    case = Case(folder / "frontier", RULES, make=KillingStore)
    assert isinstance(case.store, KillingStore)
    case.store.left, case.store.too_late = number // 2 + 1, number % 2 == 1
    jobs: dict[int, list[str]] = {}
    with (folder / "answers").open("a", buffering=1) as answers:
        while True:
            urls = pages(f"h{chance.randrange(9)}", chance.randint(1, 9))
            case.add(*urls)
            print("known", *urls, file=answers)
            leased = case.lease("a", "", chance.randint(1, 12))
            jobs[leased.job] = urls_of(leased)
            job = chance.choice(list(jobs))
            some = chance.sample(jobs[job], chance.randint(0, len(jobs[job])))
            verb = chance.choice(["report", "report", "report", "release", "fail", "wait"])
            if verb == "wait":
                case.clock.advance(chance.choice([1, 150]))
            elif verb == "release":
                case.frontier.release("a", job)
            elif job:
                outcome = Outcome.STORED if verb == "report" else Outcome.TIMEOUT
                settled = case.report("a", job, dict.fromkeys(some, outcome), pages("found", chance.randint(0, 9)))
                if verb == "report" and settled.accepted == len(some):
                    print("done", *some, file=answers)


def fork_and_crawl(folder: Path) -> None:
    """One child after the other: the parent never opens a frontier, so that it can be forked."""
    for seed in range(RUNS):
        (folder / str(seed)).mkdir()
        child = os.fork()
        if child == 0:
            random_crawl(folder / str(seed), seed)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status) or os.WTERMSIG(status) != signal.SIGKILL:
            sys.exit(f"run {seed} ended by itself: {status}")


def test_a_kill_within_any_write_loses_and_doubles_nothing(tmp_path: Path) -> None:
    program = [sys.executable, "-m", "tests.unit.test_frontier_crashes", str(tmp_path)]
    ended = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stderr
    for seed in range(RUNS):
        folder = tmp_path / str(seed)
        answered: dict[str, set[str]] = {"known": set(), "done": set()}
        for line in (folder / "answers").read_text().splitlines():
            word, *urls = line.split()
            answered[word] |= set(urls)
        case = Case(folder / "frontier", RULES)
        case.audit()
        assert all(case.state(url) is not None for url in answered["known"]), seed
        assert all(case.state(url) is State.DONE for url in answered["done"]), seed
        case.clock.advance(1000)
        handed_out = case.drain()
        assert len(handed_out) == len(set(handed_out)), seed
        assert not answered["done"] & set(handed_out), seed
        totals = case.audit()
        assert totals.known == totals.done + totals.failed >= len(answered["known"]), seed
        case.close()
        shutil.rmtree(folder)


# --- a disk that is full


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 24 MiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(disk)]
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root can mount a small disk")
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine does not permit to mount a small disk")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)  # lazy: a test that failed may have files open


def fill(disk: Path, leave: int) -> Path:
    ballast = disk / "ballast"
    with ballast.open("wb") as file, suppress(OSError):
        file.write(b"\0" * (shutil.disk_usage(disk).free - leave))
    return ballast


@pytest.mark.parametrize("leave", [0, 10_000, 300_000])
def test_a_full_disk_costs_nothing_but_time(small_disk: Path, leave: int) -> None:
    case = Case(small_disk / "frontier", RULES)
    case.add(*pages("start", 100))
    answered = set(pages("start", 100))
    first = case.lease("a", "1", 50)
    ballast = fill(small_disk, leave)
    failures = 0
    for number in range(400):
        urls = [f"http://h{number % 7}/{number}/{page}" for page in range(50)]
        try:
            case.add(*urls)
            answered.update(urls)
        except StoreError:
            failures += 1
            with suppress(StoreError):  # reports fail as well, and are sent again
                case.finish("a", first)
            if failures == 20:
                break
    assert failures == 20, "the disk never became full"
    ballast.unlink()
    case.finish("a", first)  # once more; if it went through before, it changes nothing
    case.add("http://after/")
    totals = case.audit()
    assert totals.done == 50
    assert all(case.state(url) is not None for url in answered)
    handed_out = case.drain()
    assert len(handed_out) == len(set(handed_out)) == totals.known - 50
    case.reopen()
    assert case.audit().done == totals.known
    case.close()


@pytest.mark.parametrize(("number", "reason"), [
    (2_000, r"the message cannot be written to the disk \(No space left on device\); nothing of it was recorded"),
    (400, "the frontier cannot be written: .*nothing of this call was recorded"),  # small: it waits in memory
])  # fmt: skip
def test_the_server_lives_on_when_its_disk_is_full(small_disk: Path, number: int, reason: str) -> None:
    with serving(small_disk, "--delay", "0", "http://a/") as program:
        soap = Soap(address_of(program))
        job = soap.job(wanted=1)
        ballast = fill(small_disk, 0)
        found = [f"http://b/{'x' * 500}/{each}" for each in range(number)]
        with pytest.raises(zeep.exceptions.Fault, match=reason) as caught:
            soap.report("w1", job.job, {}, found)
        assert caught.value.code.endswith(":Server.Store")
        assert program.process.poll() is None
        ballast.unlink()

        def goes_on() -> bool:
            with suppress(Exception):  # the fault is repeated until the store has been opened again
                soap.report("w1", job.job, {"http://a/": Outcome.STORED}, found)
                return True
            return False

        wait_until(goes_on, 30)
        assert soap.totals()["known"] == number + 1
        assert soap.totals()["done"] == 1
        assert program.stop() == 0
        assert "Traceback" not in program.errors()
    case = Case(small_disk / ".mem" / "frontier")
    assert case.audit().known == number + 1
    case.close()


def test_the_server_ends_with_a_sentence_when_its_disk_is_full(small_disk: Path) -> None:
    with serving(small_disk, "--delay", "0", "http://a/") as program:
        soap = Soap(address_of(program))
        job = soap.job(wanted=1)
        fill(small_disk, 0)
        with pytest.raises(zeep.exceptions.Fault, match="cannot be written"):
            soap.report("w1", job.job, {}, [f"http://b/{'x' * 500}/{each}" for each in range(400)])
        assert program.stop() == 2
        assert "urlServer: the frontier cannot be " in program.errors()
        assert "Traceback" not in program.errors()


if __name__ == "__main__":
    fork_and_crawl(Path(sys.argv[1]))

"""The operator's verbs on a frontier in this process, and how their answers look."""

import json
import os
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from common.settings import FtpServerSettings, Settings
from common.wire import HostFact, Outcome
from server.admin import show
from server.admin.operator import Operator, OperatorError
from server.catalogue import Catalogue, StoredPage, apart
from server.catalogue.apart import COUNTS, Apart
from server.catalogue.stored import stored_manifest
from server.policy.policy import Policy
from tests.bundles import CREATED, make_bundle, page_url
from tests.frontier import Case, Make, pages, urls_of


def operator_of(case: Case, folder: Path) -> Operator:
    (folder / ".mem").mkdir(exist_ok=True)
    return Operator(case.frontier, Settings(folder, ftp_server=FtpServerSettings(directory="Pages")))


def ask(operator: Operator, command: str, **arguments: Any) -> dict[str, Any]:
    """The answer, which JSON must carry and a person must be able to read."""
    answer = operator.run(command, arguments)
    assert json.loads(json.dumps(answer)) == answer
    if command not in ("ping", "copy"):
        assert show.lines(command, answer)
    return answer


def test_status_of_an_empty_frontier(frontiers: Make, tmp_path: Path) -> None:
    answer = ask(operator_of(frontiers(), tmp_path), "status")
    assert answer["totals"]["known"] == 0
    assert (answer["paused"], answer["finished"], answer["clients"]) == (False, True, 0)
    assert answer["unsound"] == []
    assert answer["disk_free_bytes"]["frontier"] > 0
    assert answer["disk_free_bytes"]["pages"] is None


def test_status_tells_what_is_out_and_what_was_set(frontiers: Make, tmp_path: Path) -> None:
    case = frontiers(delay_seconds=1.0, lease_seconds=100.0)
    operator = operator_of(case, tmp_path)
    ask(operator, "add", urls=["a.example", "http://b.example/x"])
    leased = case.lease("w1")
    ask(operator, "block", hosts=["b.example", "never-seen.example"])
    ask(operator, "delay", host="a.example", seconds=7)
    answer = ask(operator, "status")
    [job] = answer["jobs"]["first"]
    assert (job["job"], job["client"], job["urls"]) == (case.frontier.job_name(leased.job), "w1", len(leased.tasks))
    assert job["deadline"] == "2023-11-14T22:15:00Z"
    assert [host["name"] for host in answer["blocked"]["first"]] == ["b.example", "never-seen.example"]
    assert [(host["name"], host["own_delay_seconds"]) for host in answer["delays"]["first"]] == [("a.example", 7.0)]
    ask(operator, "unblock", hosts=["b.example", "never-seen.example"])
    ask(operator, "delay", host="a.example", seconds=None)
    answer = ask(operator, "status")
    assert (answer["blocked"]["number"], answer["delays"]["number"]) == (0, 0)


def test_a_host_that_does_not_answer_is_shown_as_parked(frontiers: Make, tmp_path: Path) -> None:
    case = frontiers(delay_seconds=0.0)
    case.add(*[f"http://dead/{i}" for i in range(5)])
    case.finish("a", case.lease("a"), Outcome.REFUSED)
    operator = operator_of(case, tmp_path)
    [host] = ask(operator, "status")["parked"]["first"]
    assert host["name"] == "dead"
    assert ask(operator, "explain", url="http://dead/0")["host"]["is_parked"]


def test_what_was_set_holds_after_a_restart_also_for_hosts_without_work(frontiers: Make, tmp_path: Path) -> None:
    case = frontiers(delay_seconds=1.0)
    operator = operator_of(case, tmp_path)
    ask(operator, "pause")
    ask(operator, "block", hosts=["later.example"])
    ask(operator, "delay", host="slow.example", seconds=30)
    case.reopen()
    operator = operator_of(case, tmp_path)
    answer = ask(operator, "status")
    assert answer["paused"]
    assert [host["name"] for host in answer["blocked"]["first"]] == ["later.example"]
    ask(operator, "resume")
    case.add("http://later.example/")
    assert ask(operator, "status")["finished"], "what is blocked does not keep the crawl from ending"
    assert ask(operator, "explain", url="http://slow.example/")["host"]["delay_seconds"] == 30.0


@pytest.mark.parametrize("url", ["http://a/index.html", "a", "http://a/#top"])
def test_explain_finds_a_url_in_any_spelling(frontiers: Make, tmp_path: Path, url: str) -> None:
    case = frontiers()
    case.add("http://a/index.html")
    answer = ask(operator_of(case, tmp_path), "explain", url=url)
    assert (answer["identity"], answer["state"], answer["requested"]) == ("http://a/", "queued", "http://a/index.html")


def test_explain_follows_a_url_through_its_life(frontiers: Make, tmp_path: Path) -> None:
    case = frontiers(delay_seconds=0.0, retry_wait_seconds=10.0)
    operator = operator_of(case, tmp_path)
    url = "http://a/1"
    assert ask(operator, "explain", url=url)["state"] == "unknown"
    case.add(url)
    leased = case.lease("w1")
    answer = ask(operator, "explain", url=url)
    assert answer["state"] == "leased"
    assert answer["lease"]["client"] == "w1"
    assert answer["lease"]["job"] == case.frontier.job_name(leased.job)
    case.finish("w1", leased, Outcome.SERVER_ERROR)
    answer = ask(operator, "explain", url=url)
    assert (answer["state"], answer["tries"], answer["due"]) == ("waiting", 1, "2023-11-14T22:13:30Z")
    for _ in range(2):
        case.clock.advance(1000)
        case.finish("w1", case.lease("w1"), Outcome.SERVER_ERROR)
    answer = ask(operator, "explain", url=url)
    assert (answer["state"], answer["tries"], answer["reason"]) == ("failed", 3, "server_error: ")
    assert ask(operator, "retry", urls=[url]) == {"retried": 1}
    case.finish("w1", case.lease("w1"))
    answer = ask(operator, "explain", url=url)
    assert (answer["state"], answer["reason"]) == ("done", "stored")
    assert answer["ended"] is not None


def test_explain_names_the_bundle_and_the_member(frontiers: Make, tmp_path: Path) -> None:
    pages = tmp_path / "Pages"
    path = make_bundle(pages / "example.org")
    with Catalogue.open(pages) as catalogue:
        catalogue.add(path, stored_manifest(path))
    operator = operator_of(frontiers(), tmp_path)
    [stored] = ask(operator, "explain", url=page_url("example.org", 1))["stored"]
    assert stored["bundle"] == f"example.org/{path.name}"
    assert stored["member"] == "example.org/page1.html/data.html"
    assert ask(operator, "explain", url="http://other.example/")["stored"] == []


def test_explain_names_no_more_pages_than_one_reads(
    frontiers: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everybody who can upload can upload a page of every URL, again and again."""
    monkeypatch.setattr(apart, "MOST_TOLD", 3)
    (tmp_path / "Pages").mkdir()
    with Catalogue.open(tmp_path / "Pages") as catalogue:
        for number in range(6):
            path = make_bundle(tmp_path / "Pages" / "a.org", "a.org", "1", pages=1, created=CREATED + number)
            catalogue.add(path, stored_manifest(path))
    answer = ask(operator_of(frontiers(), tmp_path), "explain", url=page_url("a.org", 0))
    assert [page["bundle"].split(".")[3] for page in answer["stored"]] == [str(CREATED + number) for number in range(3)]
    assert answer["stored_number"] == 6
    assert show.lines("explain", answer)[-1].split() == ["and", "3", "more"]


def test_of_many_pages_the_last_that_count_are_told() -> None:
    """However many were put before them."""
    whys = [9] * 500 + [COUNTS] * 2 + [9] * 500
    page = StoredPage(PurePosixPath("a/b"), b"", "", "", "", 0, b"", 0.0, 200, "")
    pages = [Apart(replace(page, crawl_time=time), "1", why) for time, why in enumerate(whys)]
    told, number = apart.most_telling(pages)
    assert (len(told), number) == (apart.MOST_TOLD, 1_002)
    assert [each.page.crawl_time for each in told if each.why == COUNTS] == [500, 501]
    assert [each.page.crawl_time for each in told[:3]] == [0, 1, 2]
    revisions = [Apart(replace(page, crawl_time=time), "1", COUNTS) for time in range(1_000)]
    assert [each.page.crawl_time for each in apart.most_telling(revisions)[0]] == [*range(800, 1_000)]


def test_explain_with_a_broken_catalogue_says_so(frontiers: Make, tmp_path: Path) -> None:
    (tmp_path / "Pages").mkdir()
    (tmp_path / "Pages" / "catalogue.sqlite").write_bytes(b"no database" * 100)
    assert "catalogue" in ask(operator_of(frontiers(), tmp_path), "explain", url="http://a/")["catalogue"]


def test_pause_hands_out_nothing(frontiers: Make, tmp_path: Path) -> None:
    case = frontiers()
    case.add("http://a/")
    operator = operator_of(case, tmp_path)
    ask(operator, "pause")
    assert not case.lease().tasks
    ask(operator, "resume")
    assert urls_of(case.lease()) == ["http://a/"]


def test_added_urls_are_start_urls_and_widen_the_scope_for_good(frontiers: Make, tmp_path: Path) -> None:
    case = frontiers(Policy("host", ("http://a/",)))
    case.add("http://b/1")
    operator = operator_of(case, tmp_path)
    assert ask(operator, "explain", url="http://b/1")["reason"] == "scope=host"
    assert ask(operator, "add", urls=["b", "http://b/"]) == {"added": 1, "known": 0}
    case.add("http://b/1", "http://b/2", "http://c/")
    states = [ask(operator, "explain", url=url)["state"] for url in ("b", "b/1", "b/2", "c")]
    assert states == ["queued", "queued", "queued", "excluded"]
    [share] = case.lease(wanted=1).hosts
    assert not share.allow_private


def test_what_has_more_than_a_url_is_not_added(frontiers: Make, tmp_path: Path) -> None:
    operator = operator_of(frontiers(), tmp_path)
    for text in ("http://a/\tlabel", "http://a/ http://b/"):
        with pytest.raises(OperatorError, match="is no http or https URL"):
            ask(operator, "add", urls=[text])


def failed_case(frontiers: Make) -> Case:
    case = frontiers(delay_seconds=0.0)
    case.add("http://a/1", "http://a/2", "http://b/1")
    leased = case.lease()
    outcomes = dict(zip(urls_of(leased), [Outcome.NOT_FOUND, Outcome.TOO_LARGE, Outcome.NOT_FOUND], strict=True))
    case.report("a", leased.job, outcomes, hosts=[HostFact("a")])
    return case


def test_blacklist_is_filtered_and_limited(frontiers: Make, tmp_path: Path) -> None:
    operator = operator_of(failed_case(frontiers), tmp_path)
    assert ask(operator, "blacklist")["number"] == 3
    assert ask(operator, "blacklist", outcome="not_found")["number"] == 2
    assert ask(operator, "blacklist", host="http://B/")["number"] == 1
    answer = ask(operator, "blacklist", limit=1)
    assert (answer["number"], len(answer["urls"])) == (3, 1)
    assert set(answer["urls"][0]) == {"url", "outcome", "detail", "tries", "time"}


def test_queue_is_told_in_pieces(frontiers: Make, tmp_path: Path) -> None:
    case = frontiers(delay_seconds=0.0)
    case.add(*pages("a", 1_500), "http://b/")
    operator = operator_of(case, tmp_path)
    first = ask(operator, "queue", host="http://A/", limit=5_000)
    assert [item["url"] for item in first["urls"]] == pages("a", 1_500)[:1_000], "no answer is large"
    rest = ask(operator, "queue", host="a", limit=5_000, after=first["rest"])
    assert [item["url"] for item in rest["urls"]] == pages("a", 1_500)[1_000:]
    assert first["number"] == rest["number"] == 1_500
    assert ask(operator, "queue")["number"] == 1_501
    assert len(ask(operator, "queue")["urls"]) == 100
    assert ask(operator, "queue", host="b", limit=1)["urls"] == [
        {"url": "http://b/", "depth": 0, "tries": 0, "kind": "page", "due": None}
    ]
    assert "page     http://b/  (depth 0)" in show.lines("queue", ask(operator, "queue", host="b"))


@pytest.mark.parametrize(
    ("arguments", "number"),
    [
        ({"urls": ["http://a/1", "http://a/1#x", "http://nobody/"]}, 1),
        ({"outcome": "not_found"}, 2),
        ({"host": "a"}, 2),
        ({"host": "a", "outcome": "too_large"}, 1),
        ({"all": True}, 3),
    ],
)
def test_retry(frontiers: Make, tmp_path: Path, arguments: dict[str, Any], number: int) -> None:
    case = failed_case(frontiers)
    assert ask(operator_of(case, tmp_path), "retry", **arguments) == {"retried": number}
    assert (case.frontier.totals().queued, case.frontier.totals().failed) == (number, 3 - number)


def test_retry_of_two_spellings_is_one_retry(frontiers: Make, tmp_path: Path) -> None:
    case = frontiers(delay_seconds=0.0)
    case.add("http://a/")
    case.finish("a", case.lease(), Outcome.NOT_FOUND)
    assert ask(operator_of(case, tmp_path), "retry", urls=["http://a/", "http://a/index.html"]) == {"retried": 1}
    assert urls_of(case.lease()) == ["http://a/"]


def test_priorities_of_hosts_and_scores_of_urls(frontiers: Make, tmp_path: Path) -> None:
    case = frontiers(delay_seconds=0.0, traversal="priority")
    case.add("http://a/1", "http://a/2", "http://b/")
    operator = operator_of(case, tmp_path)
    assert ask(operator, "priority", target="a", priority=3) == {"host": "a", "priority": 3}
    answer = ask(operator, "priority", target="http://a/2#x", priority=-3)
    assert answer == {"url": "http://a/2", "priority": -3, "before": 1}
    assert ask(operator, "priority", target="b/", priority=0)["url"] == "http://b/", "what has a slash is a URL"
    explained = ask(operator, "explain", url="http://a/2")
    assert (explained["score"], explained["host"]["priority"]) == (-3, 3)
    assert any(line.split() == ["score", "-3"] for line in show.lines("explain", explained))
    [host] = ask(operator, "status")["priorities"]["first"]
    assert (host["name"], host["priority"], host["queued"]) == ("a", 3, 2)
    assert urls_of(case.lease()) == ["http://a/1", "http://a/2", "http://b/"]


def test_status_tells_which_limit_has_ended_the_crawl(frontiers: Make, tmp_path: Path) -> None:
    case = frontiers(delay_seconds=0.0, max_pages_per_host=1)
    case.add("http://a/1", "http://a/2")
    case.finish("w", case.lease("w"))
    operator = operator_of(case, tmp_path)
    answer = ask(operator, "status")
    assert (answer["finished"], answer["ended_by"]) == (True, "max_pages_per_host")
    assert show.lines("status", answer)[0].split(maxsplit=1) == ["state", "finished: max_pages_per_host is reached"]
    assert [host["name"] for host in answer["full"]["first"]] == ["a"]
    told = "\n".join(show.lines("explain", ask(operator, "explain", url="http://a/2")))
    assert "full with 1 pages (max_pages_per_host)" in told


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("dance", {}), ("status", {"x": 1}), ("explain", {}), ("explain", {"url": "ftp://a/"}), ("explain", {"url": 3}),
        ("block", {"hosts": []}), ("block", {"hosts": "a"}), ("block", {"hosts": ["a b"]}), ("block", {"hosts": [1]}),
        ("delay", {"host": "a", "seconds": -1}), ("delay", {"host": "a", "seconds": "3"}),
        ("delay", {"host": "a", "seconds": True}), ("delay", {"host": "a", "seconds": float("nan")}),
        ("add", {"urls": ["mailto:a@example.org"]}), ("blacklist", {"limit": -1}), ("blacklist", {"outcome": "bad"}),
        ("blacklist", {"limit": 10**30}), ("blacklist", {"limit": 100_001}), ("queue", {"limit": 10**30}),
        ("queue", {"limit": -1}), ("queue", {"host": "a b"}), ("queue", {"after": 3}),
        ("priority", {"target": "a"}), ("priority", {"target": "a", "priority": 1.5}),
        ("priority", {"target": "a", "priority": 10**6}), ("priority", {"target": "a", "priority": True}),
        ("priority", {"target": "ftp://a/", "priority": 1}), ("priority", {"target": "a b", "priority": 1}),
        ("retry", {}), ("retry", {"urls": ["http://a/"], "all": True}), ("retry", {"all": 1}),
    ],
)  # fmt: skip
def test_requests_that_make_no_sense(
    frontiers: Make, tmp_path: Path, command: str, arguments: dict[str, Any]
) -> None:
    with pytest.raises(OperatorError):
        operator_of(frontiers(), tmp_path).run(command, arguments)


def test_a_request_that_makes_no_sense_changes_nothing(frontiers: Make, tmp_path: Path) -> None:
    operator = operator_of(frontiers(), tmp_path)
    with pytest.raises(OperatorError):
        operator.run("block", {"hosts": ["good.example", "no host"]})
    assert ask(operator, "status")["blocked"]["number"] == 0


def test_copies_for_audits_are_bounded(frontiers: Make, tmp_path: Path) -> None:
    operator = operator_of(frontiers(), tmp_path)
    for number in range(4):
        (tmp_path / ".mem" / f"audit-copy-{number}").mkdir()
    with pytest.raises(OperatorError, match="4 audits"):
        operator.run("copy", {})
    for number in range(4):  # what a killed audit left long ago goes away by itself
        os.utime(tmp_path / ".mem" / f"audit-copy-{number}", (0, 0))
    folder = ask(operator, "copy")["folder"]
    assert [path.name for path in (tmp_path / ".mem").iterdir()] in ([folder], [])

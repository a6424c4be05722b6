"""Which pages count: what a job had leased and has reported as stored, whatever bundles claim."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from common.urls import digest
from common.wire import FoundUrl, Outcome, Report, UrlResult
from server.frontier.audit import audit
from server.frontier.claims import SINCE_KEY, Claim, Claims, entry
from server.frontier.jobnames import NAMES_KEY, NEXT_JOB_KEY, JobNames
from server.frontier.leasing import skip_jobs
from server.frontier.records import KEY_LENGTH, State
from server.frontier.rocks import RocksStore
from server.frontier.store import Table
from server.frontier.visits import Period
from tests.frontier import Case, Make, urls_of

BODY, OTHER_BODY = "ab" * 20, "cd" * 20
CONFIRMED, HELD, FALSE = Claim


def judged(case: Case, job: int | str, *urls: str, body: str = BODY) -> list[Claim]:
    pages = [(digest(url), bytes.fromhex(body)) for url in urls]
    name = JobNames.of(case.store).name(job) if isinstance(job, int) else job
    return Claims(case.store).judge(name, pages)


def stored(case: Case, job: int, urls: Iterable[str], body: str = BODY) -> None:
    results = [UrlResult(url, Outcome.STORED, sha1=body) for url in urls]
    case.frontier.report("a", job, Report(str(job), results, []))


def test_a_page_counts_when_its_job_has_reported_it(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0.0)
    case.add("http://a/1", "http://a/2")
    job = case.lease().job
    assert judged(case, job, "http://a/1", "http://a/2", "http://a/3") == [HELD, HELD, FALSE]
    stored(case, job, ["http://a/1"])
    assert judged(case, job, "http://a/1", "http://a/2") == [CONFIRMED, HELD]
    stored(case, job, ["http://a/2"])
    case.reopen()
    assert judged(case, job, "http://a/1", "http://a/2") == [CONFIRMED, CONFIRMED]
    case.audit()


@pytest.mark.parametrize("job", ["1", "2", "0", "01", "-1", "x", "", "1" * 40, "９", "1-" + "0" * 16, 2])
def test_what_is_no_job_or_another_one_has_never_had_it(frontiers: Make, job: int | str) -> None:
    case = frontiers()
    case.add("http://a/1")
    stored(case, case.lease().job, ["http://a/1"])
    assert judged(case, job, "http://a/1") == [FALSE]


def test_another_body_under_the_same_job_does_not_count(frontiers: Make) -> None:
    case = frontiers()
    case.add("http://a/1")
    stored(case, case.lease().job, ["http://a/1"])
    assert judged(case, 1, "http://a/1", body=OTHER_BODY) == [FALSE]


@pytest.mark.parametrize("sha1", ["", "no digest", "ab", "ab " * 20, "é" * 40])
def test_a_client_that_does_not_say_which_body_is_believed(frontiers: Make, sha1: str) -> None:
    case = frontiers()
    case.add("http://a/1")
    stored(case, case.lease().job, ["http://a/1"], sha1)
    assert judged(case, 1, "http://a/1") == [CONFIRMED]


@pytest.mark.parametrize("end", ["release", "deadline"])
def test_what_a_job_gave_back_may_have_been_uploaded(frontiers: Make, end: str) -> None:
    case = frontiers(delay_seconds=0.0)
    case.add("http://a/1", "http://a/2", "http://a/3")
    job = case.lease().job
    stored(case, job, ["http://a/1"])
    if end == "release":
        case.frontier.release("a", job)
    else:
        case.clock.advance(1_000)
        case.frontier.expire()
    urls = [f"http://a/{number}" for number in range(1, 5)]
    assert judged(case, job, *urls) == [CONFIRMED, HELD, HELD, FALSE]
    other = case.lease("b").job
    case.report("b", other, {"http://a/2": Outcome.STORED})
    assert judged(case, job, *urls) == [CONFIRMED, HELD, HELD, FALSE], "another one stored it"
    assert judged(case, other, *urls) == [FALSE, CONFIRMED, HELD, FALSE]
    stored(case, job, ["http://a/2"])
    assert judged(case, job, "http://a/2") == [HELD], "too late: that was not accepted"


def test_a_late_report_that_is_accepted_counts(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0.0)
    case.add("http://a/1", "http://a/2", "http://a/3")
    job = case.lease().job
    case.frontier.release("a", job)
    case.report("a", job, {"http://a/2": Outcome.INTERNAL})
    stored(case, job, ["http://a/1"])
    assert judged(case, job, "http://a/1", "http://a/2", "http://a/3") == [CONFIRMED, HELD, HELD]
    case.audit()


def test_what_was_skipped_or_is_no_page_was_not_uploaded(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0.0)
    urls = {f"http://a/{outcome}": outcome for outcome in Outcome}
    case.add(*urls)
    case.report("a", case.lease().job, urls)
    claims = dict(zip(urls.values(), judged(case, 1, *urls), strict=True))
    assert claims.pop(Outcome.STORED) is CONFIRMED
    assert claims.pop(Outcome.INTERNAL) is HELD, "packing failed, perhaps after an upload"
    assert set(claims.values()) == {FALSE}


def test_each_visit_counts_under_its_own_job(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0.0, period=Period(100.0))
    case.add("http://a/1")
    first = case.lease().job
    stored(case, first, ["http://a/1"])
    case.clock.advance(200)
    second = case.lease().job
    assert judged(case, second, "http://a/1", body=OTHER_BODY) == [HELD]
    stored(case, second, ["http://a/1"], OTHER_BODY)
    assert judged(case, first, "http://a/1") == judged(case, second, "http://a/1", body=OTHER_BODY) == [CONFIRMED]
    assert judged(case, first, "http://a/1", body=OTHER_BODY) == [FALSE]


def test_another_spelling_in_the_report_is_the_same_page(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0.0)
    case.add("http://a/index.html")
    stored(case, case.lease().job, ["http://a/"])
    assert judged(case, 1, "http://a/") == [CONFIRMED]


def older(case: Case) -> None:
    """As a version left it that noted nothing, and whose jobs were called by their numbers."""
    rows = [(Table.CLAIMS, key, None) for key, _ in case.store.scan(Table.CLAIMS)]
    case.store.write([*rows, (Table.META, SINCE_KEY, None), (Table.META, NAMES_KEY, None)])


def test_pages_of_an_older_crawl_are_judged_by_their_urls(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0.0)
    case.add("http://a/1", "http://a/2", "http://a/3")
    stored(case, case.lease(wanted=2).job, ["http://a/1"])
    older(case)
    urls = ["http://a/1", "http://a/2", "http://a/3", "http://unknown/"]
    assert judged(case, "1", *urls) == [CONFIRMED, HELD, HELD, HELD], "also when it is only read"
    case.reopen()
    assert judged(case, "1", *urls) == [CONFIRMED, HELD, HELD, HELD]
    case.lease()
    assert judged(case, 2, *urls) == [FALSE, FALSE, HELD, FALSE], "from now on it is known"
    assert judged(case, "2", *urls) == [FALSE] * 4, "and nobody guesses what it is called"
    assert judged(case, 3, *urls) == [FALSE] * 4


def test_after_changes_were_lost(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0.0)
    case.add("http://a/1", "http://a/2")
    stored(case, case.lease().job, ["http://a/1"])
    skip_jobs(case.store)
    case.reopen()
    for job in (1, 2, 1_000_000):
        assert judged(case, job, "http://a/1", "http://a/2", "http://b/") == [CONFIRMED, HELD, HELD]
    assert judged(case, 1, "http://a/1", body=OTHER_BODY) == [FALSE], "of this one the record is left"
    assert judged(case, 9_000_000, "http://a/1") == [FALSE]


def test_after_the_names_of_jobs_were_lost(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0.0)
    case.add("http://a/1", "http://a/2")
    job = case.lease().job
    name = case.frontier.job_name(job)
    stored(case, job, ["http://a/1"])
    case.store.write([(Table.META, NAMES_KEY, None)])
    skip_jobs(case.store)
    case.reopen()
    assert judged(case, name, "http://a/1", "http://a/2", "http://b/") == [CONFIRMED, HELD, HELD]
    assert case.frontier.job_number(name) == job
    assert judged(case, name, "http://a/1", body=OTHER_BODY) == [FALSE]
    case.frontier.release("a", job)
    later = case.lease().job
    assert judged(case, later, "http://a/1", "http://a/2") == [FALSE, HELD]
    assert judged(case, str(later), "http://a/2") == [FALSE]


def test_what_a_repair_settles_counts_and_takes_nothing_from_who_has_it(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0.0)
    case.add("http://a/1", "http://a/2")
    first = case.lease().job
    case.frontier.release("a", first)
    second = case.lease("b").job
    page = (digest("http://a/1"), bytes.fromhex(BODY))
    key = page[0][:KEY_LENGTH]
    notes = Claims(case.store).noted(case.frontier.job_name(first), [page])
    assert case.frontier.mark_stored([(key, "http://a/1")], notes) == 1
    assert case.state("http://a/1") is State.DONE
    assert judged(case, first, "http://a/1", "http://a/2") == [CONFIRMED, HELD]
    assert judged(case, second, "http://a/1", "http://a/2") == [HELD, HELD]
    case.audit()


@pytest.mark.parametrize("job", ["1", "01", "x-1", "1-" + "0" * 16, "9" * 40])
def test_what_is_believed_of_another_crawl_counts_under_its_job_alone(frontiers: Make, job: str) -> None:
    case = frontiers()
    page = (digest("http://a/1"), bytes.fromhex(BODY))
    case.store.write(Claims(case.store).noted(job, [page]))
    assert judged(case, job, "http://a/1", "http://a/2") == [CONFIRMED, FALSE]
    assert judged(case, job, "http://a/1", body=OTHER_BODY) == [FALSE]
    assert judged(case, 1, "http://a/1") == judged(case, "2", "http://a/1") == [FALSE]
    case.audit()


def test_the_audit_sees_rows_that_are_none(frontiers: Make) -> None:
    case = frontiers()
    key = b"\0" * 8 + b"s" + entry(b"k" * 16) + b"x"
    case.store.write([(Table.CLAIMS, key, b"")])
    assert audit(case.store).differences == ["a row of claims is none: " + "00" * 8]
    case.store.write([(Table.CLAIMS, key, None)])


def test_a_reader_of_a_frontier_without_the_table(tmp_path: Path) -> None:
    store = RocksStore(tmp_path)
    store.write([(Table.META, NEXT_JOB_KEY, b"7")])
    store._db.drop_column_family("claims")
    with pytest.raises(Exception, match="dropped"):  # and all else is closed
        store.close()
    reader = RocksStore(tmp_path, read_only=True)
    assert list(reader.scan(Table.CLAIMS)) == [] == list(reader.get_many(Table.CLAIMS, []))
    assert reader.get(Table.CLAIMS, b"x") is None
    page = (digest("http://a/"), bytes(20))
    assert [Claims(reader).judge(job, [page]) for job in ("6", "7")] == [[HELD], [FALSE]]
    reader.close()
    writer = RocksStore(tmp_path)
    writer.write([(Table.CLAIMS, b"x", b"y")])
    assert writer.get(Table.CLAIMS, b"x") == b"y"
    writer.close()


def test_reports_of_many_threads_and_clients_stay_apart(frontiers: Make) -> None:
    """Two reports of one job with one page each: neither takes the place of the other."""
    case = frontiers(delay_seconds=0.0)
    urls = [f"http://a/{number}" for number in range(10)]
    case.frontier.add([FoundUrl(url, 0) for url in urls])
    leased = case.lease()
    for url in urls_of(leased):
        stored(case, leased.job, [url])
    assert judged(case, leased.job, *urls) == [CONFIRMED] * 10

"""What jobs are called outside: nobody guesses it, and it stays what it was over restarts, upgrades and losses."""

import pytest

from server.frontier.core import FrontierError
from server.frontier.jobnames import NAMES_KEY, NEXT_JOB_KEY, JobNames
from server.frontier.leasing import skip_jobs
from server.frontier.store import Table
from tests.frontier import Case, Make

LONGEST = 10**18 - 1  # of numbers that a name can have
ZEROS = "0" * 16


def without_names(case: Case, next_job: int) -> None:
    """As an older version left it, or damage."""
    case.store.write([(Table.META, NAMES_KEY, None), (Table.META, NEXT_JOB_KEY, str(next_job).encode())])


@pytest.mark.parametrize("number", [1, 2, 17, LONGEST])
def test_a_name_is_that_of_its_number_also_after_a_restart(frontiers: Make, number: int) -> None:
    case = frontiers()
    name = case.frontier.job_name(number)
    assert name.partition("-")[0] == str(number)
    assert len(name) <= 40, "a bundle's name has room for it"
    case.reopen()
    assert (case.frontier.job_name(number), case.frontier.job_number(name)) == (name, number)


def test_another_frontier_has_other_names(frontiers: Make) -> None:
    case, name = frontiers(), frontiers().frontier.job_name(1)
    assert case.frontier.job_name(1) != name
    with pytest.raises(FrontierError, match="is no job of this crawl"):
        case.frontier.job_number(name)


@pytest.mark.parametrize("name", [
    "1", "2", "0", "01", "-1", "", "x", "x-1", "1-", "1" * 30, f"1-{ZEROS}", f"1-{ZEROS}0", "1-" + "０" * 16, "１",
    f"{LONGEST}1-{ZEROS}", "1-" + "g" * 16, "../1",
])  # fmt: skip
def test_what_is_invented_is_no_name(frontiers: Make, name: str) -> None:
    with pytest.raises(FrontierError, match="is no job of this crawl"):
        frontiers().frontier.job_number(name)


def test_a_name_that_is_changed_is_none(frontiers: Make) -> None:
    case = frontiers()
    name, other = case.frontier.job_name(1), case.frontier.job_name(2)
    changed = [name[:-1], name + "0", "0" + name, name.upper() + "\n", name[:-1] + ("1" if name[-1] == "0" else "0")]
    for wrong in (*changed, other[0] + name[1:]):
        assert JobNames.of(case.store).number(wrong) is None, wrong


def test_jobs_of_an_older_crawl_keep_their_names(frontiers: Make) -> None:
    case = frontiers()
    without_names(case, 7)
    assert JobNames.of(case.store).number("6") == 6, "also when it is only read"
    assert JobNames.of(case.store).number("7") is None
    for _ in range(2):
        case.reopen()
        names = JobNames.of(case.store)
        assert (names.name(6), names.number("6")) == ("6", 6)
        assert names.number(f"6-{ZEROS}") is None, "it had no digits"
        assert names.number("7") is None
        assert names.number(names.name(7)) == 7
        case.store.write([(Table.META, NEXT_JOB_KEY, b"9")])


def test_without_a_key_no_name_has_digits(frontiers: Make) -> None:
    case = frontiers()
    without_names(case, 7)
    names = JobNames.of(case.store)
    assert names.number(names.name(7)) is None, "anybody could have made it"


@pytest.mark.parametrize("is_lost", [False, True])
def test_names_after_changes_were_lost(frontiers: Make, is_lost: bool) -> None:
    """Twice: the second loss does not take what the first one left."""
    case = frontiers()
    older = case.frontier.job_name(6)
    without_names(case, 7) if is_lost else case.store.write([(Table.META, NEXT_JOB_KEY, b"7")])
    skip_jobs(case.store)
    case.reopen()
    middle = case.frontier.job_name(1_000_007)
    skip_jobs(case.store)
    case.reopen()
    later = case.frontier.job_name(2_000_007)
    assert [case.frontier.job_number(name) for name in (older, middle, later)] == [6, 1_000_007, 2_000_007]
    names = JobNames.of(case.store)
    assert names.number(f"6-{ZEROS}") == (6 if is_lost else None), "what was made cannot be told from what is invented"
    for number in ("1000007", f"1000007-{ZEROS}", "2000007"):
        assert names.number(number) is None

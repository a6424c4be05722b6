"""robots.txt, case by case, against a table written from RFC 9309: the rules alone, and through the cache of them."""

from collections.abc import Iterator

import pytest

from client.robots import Robots, Verdict
from client.rules import Rules, sitemap_addresses
from client.transport import Headers, Response
from common.clock import ManualClock
from tests.data.robots_cases import AGENT, CASES, DELAYS, SITEMAPS, Case

ORIGIN = "https://example.org"


def _files(case: Case) -> Iterator[bytes]:
    if isinstance(case.file, bytes):
        yield case.file
    else:
        for line_end in ("\n", "\r\n", "\r"):
            yield case.file.replace("|", line_end).encode()


@pytest.mark.parametrize("case", CASES, ids=[f"{case.section} {case.name}" for case in CASES])
def test_rules(case: Case) -> None:
    for file in _files(case):
        rules = Rules(file, case.agent)
        assert [path for path in case.allowed.split() if not rules.allows(ORIGIN + path)] == []
        assert [path for path in case.disallowed.split() if rules.allows(ORIGIN + path)] == []


@pytest.mark.parametrize("case", CASES, ids=[f"{case.section} {case.name}" for case in CASES])
def test_verdicts(case: Case) -> None:
    robots = Robots(case.agent, ManualClock())
    assert robots.claim(ORIGIN) == f"{ORIGIN}/robots.txt"
    robots.answer(ORIGIN, Response(200, Headers(), next(_files(case)), "192.0.2.1", 0.1))
    assert {robots.verdict(ORIGIN + path) for path in case.allowed.split()} <= {Verdict.ALLOWED}
    assert {robots.verdict(ORIGIN + path) for path in case.disallowed.split()} <= {Verdict.DISALLOWED}


@pytest.mark.parametrize(("text", "delay"), DELAYS)
def test_crawl_delay(text: str, delay: float | None) -> None:
    assert Rules(text.replace("|", "\n").encode(), AGENT).crawl_delay == delay


@pytest.mark.parametrize(("text", "addresses"), SITEMAPS)
def test_sitemaps(text: str, addresses: list[str]) -> None:
    sitemaps = Rules(text.replace("|", "\n").encode(), AGENT).sitemaps
    assert list(sitemap_addresses(ORIGIN, sitemaps)) == addresses


def test_no_case_twice() -> None:
    assert len({case.name for case in CASES}) == len(CASES)
    assert len({(case.file, case.agent, case.allowed) for case in CASES}) == len(CASES)

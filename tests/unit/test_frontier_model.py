"""Any sequence of calls, with crashes in between, compared to the model after every step."""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from common.wire import FoundUrl, HostFact, Kind, ListedUrl, Outcome, Report, UrlResult
from server.frontier.frontier import FrontierError, Rules
from server.frontier.rocks import RocksStore
from server.frontier.store import Store
from server.frontier.visits import Period
from tests.frontier import Case, urls_of
from tests.frontier_model import ENDS, Model
from tests.memory_store import MemoryStore

pytestmark = pytest.mark.contract

HOSTS = [f"h{number}" for number in range(4)]
URLS = [f"http://{host}/{number}" for host in HOSTS for number in range(6)]
RULES = [
    Rules(delay_seconds=2, lease_seconds=60, retry_wait_seconds=3),
    Rules(delay_seconds=2, lease_seconds=12, retry_wait_seconds=3, connections_per_host=3),
    Rules(delay_seconds=0, lease_seconds=60, retry_wait_seconds=3, connections_per_host=3),
    Rules(delay_seconds=0, lease_seconds=12, retry_wait_seconds=3, max_pages=5, max_pages_per_host=3),
    Rules(delay_seconds=2, lease_seconds=12, retry_wait_seconds=3, max_pages_per_host=2, traversal="priority"),
    Rules(delay_seconds=0, lease_seconds=60, retry_wait_seconds=3, max_bytes=60, traversal="random"),
    Rules(delay_seconds=0, lease_seconds=60, retry_wait_seconds=3, connections_per_host=3, traversal="dfs"),
    Rules(delay_seconds=2, lease_seconds=60, retry_wait_seconds=3, traversal="dfs"),
    Rules(delay_seconds=0, lease_seconds=60, retry_wait_seconds=3, connections_per_host=3, traversal="priority"),
]
RULES_WITH_PERIOD = [
    Rules(delay_seconds=0, lease_seconds=60, retry_wait_seconds=3, period=Period(10.0)),
    Rules(
        delay_seconds=2, lease_seconds=12, retry_wait_seconds=3, max_pages=5, max_pages_per_host=3,
        period=Period(is_adaptive=True, shortest=4.0, longest=900.0),
    ),
    Rules(delay_seconds=0, lease_seconds=12, retry_wait_seconds=3, max_bytes=60, traversal="dfs", period=Period(4.0)),
]  # fmt: skip

RULES = [*RULES[:5], *(replace(rules, sitemaps=True) for rules in RULES[3:])]
RULES_WITH_PERIOD = [RULES_WITH_PERIOD[0], *(replace(rules, sitemaps=True) for rules in RULES_WITH_PERIOD)]
OPERATIONS = ("pause", "block", "unblock", "delay", "priority", "score")
clients = st.sampled_from("abc")
hosts = st.sampled_from(HOSTS)
url_lists = st.lists(st.sampled_from(URLS), min_size=1, max_size=12)
found_lists = st.lists(st.tuples(st.sampled_from(URLS), st.integers(0, 3)), min_size=1, max_size=12)
# What is common comes often; every outcome comes.
outcomes = st.sampled_from([Outcome.STORED, Outcome.TIMEOUT, Outcome.BUSY, *Outcome])
# Times relative to now: long ago, just now, within a day ahead, and beyond belief.
listed_rows = st.builds(
    ListedUrl, st.sampled_from(URLS), st.integers(0, 3), st.sampled_from([None, -(10**6), -3, 0, 3600, 10**6]),
    st.sampled_from(Kind), st.sampled_from([0, 0, 1, 6]), st.sampled_from(["", "", *HOSTS]),
)  # fmt: skip
listed_lists = st.lists(listed_rows, max_size=6)
facts = st.builds(
    HostFact, hosts, st.sampled_from(["", "10.0.0.1", "10.0.0.2"]), st.sampled_from([-1.0, 0.0, 5.0, 500.0]),
    st.sampled_from([0.0, 0.0, 20.0]), st.sampled_from([0.0, 0.0, 1.0, 4.0]),
)  # fmt: skip


class FrontierMachine(RuleBasedStateMachine):
    """Subclasses say on which store, and by which rules."""

    make: Callable[[Path], Store]
    rules: list[Rules]

    @initialize(data=st.data(), some=found_lists)
    def open(self, data: st.DataObject, some: list[tuple[str, int]]) -> None:
        rules = data.draw(st.sampled_from(type(self).rules))
        self.folder = tempfile.TemporaryDirectory(prefix="frontier-")
        self.case = Case(Path(self.folder.name), rules, make=type(self).make)
        self.model = Model(rules, self.case.clock.now())
        self.past: dict[int, tuple[str, list[str]]] = {}  # every job there ever was
        self.add(some)
        if rules.period.is_set:  # there are pages to visit again from the start
            self.lease("a", "", 100)
            self.report_all_jobs(Outcome.STORED)

    def teardown(self) -> None:
        if hasattr(self, "case"):
            self.case.close()
            MemoryStore.forget(self.case.folder)
            self.folder.cleanup()

    @property
    def frontier(self) -> Any:
        self.model.at(self.case.clock.now())
        return self.case.frontier

    def any_job(self, data: st.DataObject) -> int:
        """A job that is out, if there is one: most calls are about these."""
        live = list(self.model.jobs)
        return data.draw(st.sampled_from(live + list(self.past)[-3:] if live else list(self.past)), "job")

    # --- the crawl

    @rule(some=found_lists)
    def add(self, some: list[tuple[str, int]]) -> None:
        assert self.frontier.add([FoundUrl(*each) for each in some]) == self.model.add(_with_hosts(some))

    @rule(client=clients, request=st.sampled_from(["", "r1", "r2"]), wanted=st.sampled_from([0, 1, 3, 100]))
    def lease(self, client: str, request: str, wanted: int) -> None:
        frontier = self.frontier
        self.model.begin_lease()
        known = self.model.known_job(client, request)
        got = frontier.lease(client, request, wanted)
        if known:
            assert got.job == known
            assert set(urls_of(got)) == set(self.model.of("leased", job=known))
            self.model.renew(known)
            return
        self.model.leased(client, request, wanted, got)
        if got.tasks:
            self.past[got.job] = (client, urls_of(got))

    @rule(client=clients)  # rules are drawn alike, and this is what clients do most
    def lease_much(self, client: str) -> None:
        self.lease(client, "", 100)

    @precondition(lambda self: self.model.jobs)
    @rule(data=st.data(), outcome=outcomes, told=st.lists(facts, max_size=2))
    def report_a_whole_job(self, data: st.DataObject, outcome: Outcome, told: list[HostFact]) -> None:
        job = data.draw(st.sampled_from(list(self.model.jobs)))
        self.report(job, [(url, outcome) for url in self.past[job][1]], told, [], 1)

    @precondition(lambda self: self.past)
    @rule(data=st.data(), listed=listed_lists)
    def report_what_sitemaps_say(self, data: st.DataObject, listed: list[ListedUrl]) -> None:
        self.report(self.any_job(data), [], [], [], 0, listed)

    @precondition(lambda self: self.model.jobs)
    @rule(outcome=st.sampled_from([Outcome.STORED, Outcome.STORED, Outcome.UNCHANGED, Outcome.NOT_FOUND]))
    def report_all_jobs(self, outcome: Outcome) -> None:
        for job in list(self.model.jobs):
            self.report(job, [(url, outcome) for url in self.past[job][1]], [], [], 1)

    @precondition(lambda self: self.past)
    @rule(
        data=st.data(), told=st.lists(facts, max_size=2), found=found_lists, size=st.integers(0, 9),
        listed=listed_lists,
    )  # fmt: skip
    def report_something(
        self, data: st.DataObject, told: list[HostFact], found: list[tuple[str, int]], size: int,
        listed: list[ListedUrl],
    ) -> None:  # fmt: skip
        job = self.any_job(data)
        own = self.past[job][1]
        urls = st.sampled_from([*own, *own, *own, "http://unknown/", *URLS])
        self.report(job, data.draw(st.lists(st.tuples(urls, outcomes), max_size=6)), told, found, size, listed)

    def report(
        self, job: int, results: list[tuple[str, Outcome]], told: list[HostFact], found: list[tuple[str, int]],
        size: int, listed: Sequence[ListedUrl] = (),
    ) -> None:  # fmt: skip
        now = int(self.case.clock.now())
        listed = [row._replace(modified=0 if row.modified is None else now + row.modified) for row in listed]
        report = Report(
            str(job), [UrlResult(url, outcome) for url, outcome in results], [FoundUrl(*each) for each in found[:4]],
            told, size, listed,
        )  # fmt: skip
        settled = self.frontier.report(self.past[job][0], job, report)
        pages = [(row.url, row.depth) for row in listed if row.kind is Kind.PAGE]
        links = _with_hosts(found[:4] + pages)
        if self.model.rules.sitemaps:
            self.model.link_held(job, links)
        accepted, refused = self.model.report(job, results, told)
        assert (settled.accepted, settled.refused) == (accepted, refused)
        is_repeated = bool(results) and not accepted
        new, taken = self.model.hear(listed, links)
        new += self.model.add(links, self.model.touched | taken, is_repeated)
        assert settled.new_urls == new
        self.model.size += size if accepted else 0

    @precondition(lambda self: self.model.jobs)
    @rule(data=st.data(), verb=st.sampled_from(["report", "renew", "release"]))
    def call_for_a_job_of_another_client(self, data: st.DataObject, verb: str) -> None:
        job = data.draw(st.sampled_from(list(self.model.jobs)))
        arguments: list[Any] = ["somebody else", job]
        if verb == "report":
            arguments.append(Report(str(job), [UrlResult(self.past[job][1][0], Outcome.STORED)], []))
        with pytest.raises(FrontierError, match="belongs to another client"):
            getattr(self.frontier, verb)(*arguments)
        with pytest.raises(FrontierError, match="never been"):
            self.frontier.report("a", self.model.last_job + 1, Report("", [], []))

    @precondition(lambda self: self.past)
    @rule(data=st.data())
    def renew(self, data: st.DataObject) -> None:
        job = self.any_job(data)
        frontier = self.frontier
        if job in self.model.jobs:
            assert frontier.renew(self.past[job][0], job) == self.model.rules.lease_seconds
            self.model.renew(job)
        else:
            with pytest.raises(FrontierError, match="not leased"):
                frontier.renew(self.past[job][0], job)

    @precondition(lambda self: self.past)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        job = self.any_job(data)
        assert self.frontier.release(self.past[job][0], job) == self.model.release(job)

    @rule(seconds=st.sampled_from([0.5, 2.0, 2.0, 5.0, 13.0]))
    def wait(self, seconds: float) -> None:
        self.case.clock.advance(seconds)

    @rule(seconds=st.sampled_from([7.0, 61.0, 600.0, 5000.0]))
    def wait_long(self, seconds: float) -> None:
        self.case.clock.advance(seconds)

    @rule()
    def tick(self) -> None:
        assert self.frontier.expire() == self.model.expire()
        assert sorted(record.url for record in self.frontier.tick()) == sorted(self.model.tick())

    @rule()
    def crash(self) -> None:
        _ = self.frontier  # the model's clock
        self.case.reopen()
        self.model.reopen()

    # --- an operator

    @rule(data=st.data(), verb=st.sampled_from([*OPERATIONS, "retry"]), name=hosts)
    def operate(self, data: st.DataObject, verb: str, name: str) -> None:
        frontier, model = self.frontier, self.model
        if verb == "pause":
            model.paused = not model.paused and data.draw(st.integers(0, 2)) == 0  # else nothing would happen
            frontier.pause(model.paused)
        elif verb == "retry":
            some = model.of("failed") if data.draw(st.booleans()) else data.draw(url_lists)
            assert frontier.retry(some) == model.retry(some)
        elif name in model.hosts and verb == "delay":
            model.hosts[name].own_delay = data.draw(st.sampled_from([None, 0.0, 0.0, 7.0]))
            frontier.set_delay(name, model.hosts[name].own_delay)
        elif name in model.hosts and verb == "priority":
            model.hosts[name].priority = data.draw(st.sampled_from([-3, -1, 0, 0, 1, 3]))
            frontier.set_priority(name, model.hosts[name].priority)
        elif verb == "score":
            self.set_score(data.draw(st.sampled_from(URLS)), data.draw(st.integers(-5, 5)))
        elif name in model.hosts and verb in ("block", "unblock"):
            model.hosts[name].blocked = verb == "block"
            frontier.block(name, verb == "block")

    def set_score(self, url: str, score: int) -> None:
        frontier, known = self.frontier, self.model.urls.get(url)
        is_open = known is not None and known.state in ("queued", "waiting") and not known.apart
        if self.model.rules.traversal != "priority" or known is None or not is_open:
            with pytest.raises(FrontierError):
                frontier.set_score(url, score)
        else:
            assert frontier.set_score(url, score) == known.score
            known.score = score

    # --- after every step

    @invariant()
    def is_as_the_model_says(self) -> None:
        if not hasattr(self, "case"):
            return
        self.case.audit()
        frontier, model = self.frontier, self.model
        totals = frontier.totals()
        assert {name: getattr(totals, name) for name in model.counts()} == model.counts()
        assert {url: frontier.explain(url).state for url in model.urls} == {
            url: known.state for url, known in model.urls.items()
        }
        assert [url for url in model.urls if frontier.explain(url).is_sitemap] == [
            url for url, known in model.urls.items() if known.sitemap
        ]
        for url in model.of("leased"):
            told = frontier.explain(url)
            assert (told.job, told.client) == (model.urls[url].job, model.jobs[told.job].client)
        assert sorted(record.url for record in frontier.failed()) == sorted(model.of("failed"))
        assert frontier.is_finished() == model.is_finished()
        assert frontier.ended_by() == model.ended_by()
        assert frontier.next_due() == pytest.approx(model.next_due(), abs=0.002)
        assert frontier.is_paused == model.paused


def _with_hosts(found: list[tuple[str, int]]) -> list[tuple[str, str, int]]:
    return [(url, url.split("/")[2], depth) for url, depth in found]


@pytest.mark.parametrize(
    ("make", "rules", "examples"),
    [(MemoryStore, RULES, 250), (RocksStore, RULES, 4), (MemoryStore, RULES_WITH_PERIOD, 120)],
)
def test_any_sequence_of_calls(make: Callable[[Path], Store], rules: list[Rules], examples: int) -> None:
    machine = type("Machine", (FrontierMachine,), {"make": staticmethod(make), "rules": rules})
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples, stateful_step_count=50, deadline=None, suppress_health_check=checks, database=None,
            derandomize=True,  # the same runs each time; without it, and with more examples, it searches on
            phases=[Phase.generate],  # making a failing run short would take minutes
        ),
    )  # fmt: skip


def test_the_model_knows_every_outcome() -> None:
    assert set(ENDS) == set(Outcome)

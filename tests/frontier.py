"""A frontier under test: opens it, opens it again as after a crash, and audits every record of its store."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from common.clock import ManualClock
from common.wire import FoundUrl, HostFact, ListedUrl, Outcome, Report, Totals, UrlResult
from server.frontier.audit import audit
from server.frontier.frontier import Frontier, Leased, Rules, Settled
from server.frontier.records import State
from server.frontier.rocks import RocksStore
from server.frontier.store import Store
from server.policy.policy import Policy

STATES = ("known", "queued", "leased", "done", "failed", "excluded")


@dataclass
class Case:
    """One work folder, with the frontier that is open on it now. A second store only needs another `make`."""

    folder: Path
    rules: Rules = field(default_factory=Rules)
    policy: Policy = field(default_factory=Policy)
    make: Callable[[Path], Store] = RocksStore
    clock: ManualClock = field(default_factory=ManualClock)

    def __post_init__(self) -> None:
        self._drained = 0  # so that `drain` can go on after a failure
        self._open()

    def _open(self) -> None:
        self.store = self.make(self.folder)
        self.frontier = Frontier(self.store, self.policy, self.rules, self.clock)

    def reopen(self) -> None:
        """As after a crash: nothing is said to the frontier, its memory is gone."""
        self.store.close()
        self._open()

    def close(self) -> None:
        self.store.close()

    # --- shorthands: what tests do all the time

    def add(self, *urls: str, depth: int = 0, hops: int = 0, start: bool = False) -> int:
        if start:
            return self.frontier.begin_with(urls)
        return self.frontier.add([FoundUrl(url, depth, hops) for url in urls])

    def lease(self, client: str = "a", request: str = "", wanted: int = 100) -> Leased:
        return self.frontier.lease(client, request, wanted)

    def report(
        self, client: str, job: int, outcomes: dict[str, Outcome], found: Iterable[str] = (),
        hosts: Iterable[HostFact] = (), size: int = 0, listed: Iterable[ListedUrl] = (),
    ) -> Settled:  # fmt: skip
        results = [UrlResult(url, outcome) for url, outcome in outcomes.items()]
        links = [FoundUrl(url, 1) for url in found]
        return self.frontier.report(client, job, Report(str(job), results, links, list(hosts), size, list(listed)))

    def finish(self, client: str, leased: Leased, outcome: Outcome = Outcome.STORED) -> Settled:
        """Report the whole job with one outcome."""
        return self.report(client, leased.job, dict.fromkeys(urls_of(leased), outcome))

    def state(self, url: str) -> State | None:
        return self.frontier.state_of(url)

    def audit(self) -> Totals:
        """The audited totals, which must also be those in memory."""
        found = audit(self.store)
        assert found.differences == []
        assert self.frontier.unsound() == []
        totals, seen = found.totals, self.frontier.totals()
        assert [getattr(seen, name) for name in STATES] == [getattr(totals, name) for name in STATES]
        assert (seen.stored, seen.sent, seen.processed) == (totals.stored, totals.sent, totals.processed)
        assert seen.size == totals.size
        return totals

    def drain(self, client: str = "drain", limit: int = 1000) -> list[str]:
        """Crawl all that is left, moving the clock; returns the URLs in the order in which they were handed out."""
        order: list[str] = []
        for _ in range(limit):
            leased = self.lease(client, f"drain {self._drained}")
            if leased.finished:
                return order
            order += urls_of(leased)
            if leased.tasks:
                self.finish(client, leased)
                self._drained += 1
            else:
                self.clock.advance(leased.wait_seconds)
        raise AssertionError(f"never finished: {self.frontier.totals()}")


Make = Callable[..., Case]  # of the fixture `frontiers`: a policy, and rules by name


def pages(host: str, number: int) -> list[str]:
    return [f"http://{host}/{i}" for i in range(number)]


def urls_of(leased: Leased) -> list[str]:
    return [task.url for task in leased.tasks]

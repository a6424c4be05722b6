"""A week of crawling without a network: `python -m benchmarks.simulation [--hosts N] [--clients N] [--json FILE]`.

The real frontier, a clock that jumps from event to event, hosts with a heavy-tailed number of pages, and clients that
come, die and return. Proves from every simulated request that no host is asked before its delay is over, whichever
clients ask, and from every receipt that no URL is lost or done twice. Prints how long clients stood idle though hosts
were ready, and the time to finish against the lower bound.
"""

import argparse
import heapq
import json
import random
import shutil
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from common.clock import ManualClock
from common.wire import FoundUrl, HostFact, HostShare, Outcome, Report, UrlResult, UrlTask
from server.frontier.frontier import Frontier, Rules
from server.frontier.rocks import RocksStore
from server.policy.policy import Policy

DELAY_SECONDS = 1.0
FETCH_SECONDS = 0.3
THREADS = 20
REPORT_SECONDS = 30.0
WEEK_SECONDS = 7 * 86_400.0
LEASE_SECONDS = 300.0
MEAN_LIFE_SECONDS, MEAN_ABSENCE_SECONDS = 6 * 3600.0, 1800.0
HOSTS_PER_ADDRESS = 3  # of every third host; the others have an address of their own


class SimulatedWeb:
    """Host k links to hosts 10k+1 to 10k+10; page i of a host to pages 2i+1 and 2i+2. All is reached from host 0."""

    def __init__(self, hosts: int, chance: random.Random) -> None:
        self.pages = [min(400_000, int(chance.paretovariate(0.9))) for _ in range(hosts)]

    def url(self, host: int, page: int) -> str:
        return f"http://h{host}.example/{page}"

    def links(self, url: str) -> list[str]:
        host, page = self.parse(url)
        links = [self.url(host, child) for child in (2 * page + 1, 2 * page + 2) if child < self.pages[host]]
        if page == 0:
            links += [self.url(other, 0) for other in range(10 * host + 1, 10 * host + 11) if other < len(self.pages)]
        return links

    def parse(self, url: str) -> tuple[int, int]:
        name, _, page = url.removeprefix("http://h").partition(".example/")
        return int(name), int(page)

    def address(self, name: str) -> str:
        number = int(name.removeprefix("h").removesuffix(".example"))
        return f"10.{number % 3}.0.{number // (3 * HOSTS_PER_ADDRESS) if number % 3 == 0 else number}"

    def total(self) -> int:
        return sum(self.pages)


@dataclass(eq=False)
class Lane:
    """A slot of a client, as client/schedule.py has it."""

    share: HostShare
    tasks: deque[tuple[int, UrlTask]] = field(default_factory=deque)  # job, task
    due: float = 0.0


@dataclass(eq=False)
class Client:
    """A simulated worker. `life` tells events of an earlier life from those of the present one."""

    name: str
    life: int = 0
    is_alive: bool = False
    lanes: dict[str, Lane] = field(default_factory=dict)  # those with something to do
    due: list[tuple[float, int, Lane]] = field(default_factory=list)  # heap of lanes that can be asked, by time
    not_before: dict[str, float] = field(default_factory=dict)  # host and slot -> end of the delay after a request
    waiting: int = 0  # URLs not begun with
    asks_at: float = -1.0  # when it will ask for a job next; below zero: not planned
    jobs: dict[int, list[UrlResult]] = field(default_factory=dict)  # unreported results
    left: Counter[int] = field(default_factory=Counter)  # unfinished URLs of each job
    busy: int = 0
    wanting: float = -1.0  # since when it has had free threads and nothing to do; below zero: it has not
    idle_seconds: float = 0.0
    alive_seconds: float = 0.0
    born: float = 0.0


class Simulation:
    def __init__(self, folder: Path, hosts: int, clients: int, seed: int) -> None:
        self.chance = random.Random(seed)
        self.web = SimulatedWeb(hosts, self.chance)
        self.clock = ManualClock(0.0)
        rules = Rules(delay_seconds=DELAY_SECONDS, lease_seconds=LEASE_SECONDS, durability="normal")
        self.frontier = Frontier(RocksStore(folder), Policy(), rules, self.clock)
        self.clients = [Client(f"client-{number}") for number in range(clients)]
        self.events: list[tuple[float, int, Callable[[], None]]] = []
        self.order = count()
        self.last_request: dict[str, float] = {}  # host or address -> end of the last request
        self.done: Counter[str] = Counter()
        self.is_over = False
        self.samples = self.wasteful = 0  # moments looked at; those with an idle client beside a host that is ready
        self.violations = self.requests = self.refetched = 0

    def at(self, when: float, what: Callable[[], None]) -> None:
        heapq.heappush(self.events, (when, next(self.order), what))

    def run(self) -> float:
        """Returns the simulated seconds until all is done."""
        self.frontier.begin_with([self.web.url(0, 0)])
        for client in self.clients:
            self.at(self.chance.uniform(0, 600), lambda client=client: self.born(client))  # type: ignore[misc]
        self.at(1.0, self.tick)
        while self.events and self.clock.now() < WEEK_SECONDS:
            when, _, what = heapq.heappop(self.events)
            self.clock.advance(when - self.clock.now())
            what()
            if self.is_over:
                break
        return self.clock.now()

    def tick(self) -> None:
        self.frontier.tick()
        self.is_over = self.frontier.is_finished()
        with self.frontier._decide() as memory:
            ready_at = memory.core.turns.next_ready()  # nobody else needs to know that
        is_ready = ready_at is not None and ready_at < self.clock.now() - 2 * DELAY_SECONDS
        self.samples += 1
        self.wasteful += is_ready and any(client.is_alive and client.wanting >= 0 for client in self.clients)
        self.at(self.clock.now() + 10.0, self.tick)

    def idle_and_alive(self) -> tuple[float, float]:
        """Client seconds so far: without anything to do, and in all."""
        now = self.clock.now()
        idle = sum(c.idle_seconds + (now - c.wanting if c.wanting >= 0 else 0.0) for c in self.clients)
        return idle, sum(c.alive_seconds + (now - c.born if c.is_alive else 0.0) for c in self.clients)

    # --- a client's life ---------------------------------------------------------------------------------------

    def born(self, client: Client) -> None:
        """As a real one: what it had before it died, it gives back."""
        for job in list(client.left):
            self.frontier.release(client.name, job)
        client.life += 1
        client.is_alive, client.born = True, self.clock.now()
        client.lanes, client.due, client.jobs, client.left = {}, [], {}, Counter()
        client.not_before = {}
        client.busy, client.waiting, client.wanting, client.asks_at = 0, 0, -1.0, -1.0
        life = client.life
        self.at(self.clock.now() + self.chance.expovariate(1 / MEAN_LIFE_SECONDS), self.of(client, life, self.die))
        self.ask(client)
        self.at(self.clock.now() + REPORT_SECONDS, self.of(client, life, self.report_regularly))

    def die(self, client: Client) -> None:
        """Without a word: what it had not reported is lost to it. Now and then it never gives its jobs back."""
        self.stop_idling(client)
        client.is_alive = False
        client.alive_seconds += self.clock.now() - client.born
        if self.chance.random() < 0.3:
            client.left = Counter()
        back = self.clock.now() + self.chance.expovariate(1 / MEAN_ABSENCE_SECONDS)
        self.at(back, lambda: self.born(client))

    def of(self, client: Client, life: int, what: Callable[[Client], None]) -> Callable[[], None]:
        """An event that happens only if the client is still in the same life."""
        return lambda: what(client) if client.is_alive and client.life == life else None

    # --- working -----------------------------------------------------------------------------------------------

    def ask(self, client: Client) -> None:
        client.asks_at = -1.0
        if len(client.lanes) >= THREADS and client.waiting >= 2 * THREADS:
            return
        leased = self.frontier.lease(client.name, f"{client.life} {next(self.order)}", 300)
        if not leased.tasks:
            self.start_idling(client)
            client.asks_at = self.clock.now() + leased.wait_seconds
            self.at(client.asks_at, self.of(client, client.life, self.ask))
            return
        self.stop_idling(client)
        shares = {share.host: share for share in leased.hosts}
        client.jobs[leased.job] = []
        client.left[leased.job] = len(leased.tasks)
        client.waiting += len(leased.tasks)
        for task in leased.tasks:
            share = shares[task.url.split("/", 3)[2]]
            if share.slot not in client.lanes:
                due = max(client.not_before.get(key, 0.0) for key in (share.slot, share.host))
                client.lanes[share.slot] = Lane(share, due=due)
                self.line_up(client, client.lanes[share.slot])
            client.lanes[share.slot].tasks.append((leased.job, task))
        self.start_requests(client)

    def line_up(self, client: Client, lane: Lane) -> None:
        heapq.heappush(client.due, (lane.due, next(self.order), lane))
        if lane.due > self.clock.now():
            self.at(lane.due, self.of(client, client.life, self.start_requests))

    def start_requests(self, client: Client) -> None:
        now = self.clock.now()
        while client.busy < THREADS and client.due and client.due[0][0] <= now:
            self.request(client, heapq.heappop(client.due)[2])

    def request(self, client: Client, lane: Lane) -> None:
        now = self.clock.now()
        job, task = lane.tasks.popleft()
        client.waiting -= 1
        host = task.url.split("/", 3)[2]
        # The slot is the address as soon as that is known; before, nobody can know that two hosts share it.
        for key in {host, lane.share.slot}:
            self.violations += now - self.last_request.get(key, -WEEK_SECONDS) < DELAY_SECONDS - 1e-6
        client.busy += 1
        self.requests += 1
        end = now + FETCH_SECONDS
        self.last_request[host] = self.last_request[lane.share.slot] = end
        self.at(end, self.of(client, client.life, lambda c: self.finished(c, lane, job, task)))

    def finished(self, client: Client, lane: Lane, job: int, task: UrlTask) -> None:
        client.busy -= 1
        lane.due = self.clock.now() + lane.share.delay_seconds
        client.not_before[task.url.split("/", 3)[2]] = client.not_before[lane.share.slot] = lane.due
        client.jobs[job].append(UrlResult(task.url, Outcome.STORED, 200))
        client.left[job] -= 1
        if lane.tasks:
            self.line_up(client, lane)
        else:
            del client.lanes[lane.share.slot]
        if client.left[job] == 0:
            self.report(client, job)
        self.start_requests(client)
        if client.busy < THREADS and client.asks_at < 0:
            self.ask(client)

    def report_regularly(self, client: Client) -> None:
        for job in list(client.jobs):
            if client.jobs[job]:
                self.report(client, job)
        self.at(self.clock.now() + REPORT_SECONDS, self.of(client, client.life, self.report_regularly))

    def report(self, client: Client, job: int) -> None:
        results, client.jobs[job] = client.jobs[job], []
        found = [FoundUrl(link, 1) for result in results for link in self.web.links(result.url)]
        names = {result.url.split("/", 3)[2] for result in results}
        facts = [HostFact(name, self.web.address(name)) for name in names]
        settled = self.frontier.report(client.name, job, Report(str(job), results, found, facts))
        if settled.refused:
            self.refetched += settled.refused  # done by another meanwhile: which ones is not said, so all are checked
        else:
            self.done.update(result.url for result in results)
        if client.left[job] == 0:
            del client.jobs[job], client.left[job]

    # --- idling ------------------------------------------------------------------------------------------------

    def start_idling(self, client: Client) -> None:
        if client.wanting < 0 and client.busy == 0:
            client.wanting = self.clock.now()

    def stop_idling(self, client: Client) -> None:
        if client.wanting >= 0:
            client.idle_seconds += self.clock.now() - client.wanting
            client.wanting = -1.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=100_000)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="simulation-"))
    started = time.perf_counter()
    try:
        simulation = Simulation(folder, options.hosts, options.clients, options.seed)
        finished = simulation.run()
        results = _results(simulation, finished, time.perf_counter() - started)
        simulation.frontier.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for name, value in results.items():
        print(f"{name:56} {value:>16,.2f}")
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))
    broken = results["delay violations"] or results["URLs lost"] or results["URLs done twice"]
    return 1 if broken else 0


def _results(simulation: Simulation, finished: float, seconds: float) -> dict[str, float]:
    totals, web = simulation.frontier.totals(), simulation.web
    idle, alive = simulation.idle_and_alive()
    slowest = max(web.pages) * (FETCH_SECONDS + DELAY_SECONDS)
    work = web.total() * FETCH_SECONDS / (THREADS * len(simulation.clients))
    return {
        "hosts": float(len(web.pages)),
        "pages": float(web.total()),
        "requests": float(simulation.requests),
        "delay violations": float(simulation.violations),
        "URLs lost": float(web.total() - totals.done),
        "URLs done twice": float(totals.done - totals.known) + sum(n > 1 for n in simulation.done.values()),
        "pages fetched again because a client died, %": 100 * (simulation.requests / web.total() - 1),
        "simulated hours to finish": finished / 3600,
        "lower bound: largest host, hours": slowest / 3600,
        "lower bound: all work on all threads, hours": work / 3600,
        "time to finish / lower bound": finished / max(slowest, work),
        "client time without anything to do, %": 100 * idle / alive,
        "moments with an idle client and a host that waits, %": 100 * simulation.wasteful / simulation.samples,
        "real seconds": seconds,
    }


if __name__ == "__main__":
    sys.exit(main())

"""What the frontier must do, in plain Python: no disk, no queues, every rule written a second time and as simply as
possible. It does not choose what is leased; it says whether a choice was allowed, and whether there had to be one.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from common.wire import HostFact, Outcome
from server.frontier.frontier import Leased, Rules

SOON, PATIENTLY = (1, 10), (2, 10, 60, 120)
DONE, EXCLUDED, FAILED = "done", "excluded", "failed"
# outcome -> how it ends, waits before each further try, what it says about the host
ENDS: dict[Outcome, tuple[str, tuple[int, ...], str]] = {
    Outcome.STORED: (DONE, (), "well"),
    Outcome.UNCHANGED: (DONE, (), "well"),
    Outcome.REDIRECTED: (DONE, (), "well"),
    Outcome.DISALLOWED: (EXCLUDED, (), ""),
    Outcome.UNWANTED: (EXCLUDED, (), "well"),
    Outcome.NOT_FOUND: (FAILED, (), "well"),
    Outcome.CLIENT_ERROR: (FAILED, (), "well"),
    Outcome.SERVER_ERROR: (FAILED, SOON, "well"),
    Outcome.BUSY: (FAILED, PATIENTLY, "busy"),
    Outcome.ROBOTS_UNREACHABLE: (FAILED, PATIENTLY, ""),
    Outcome.DNS: (FAILED, SOON, "dead"),
    Outcome.REFUSED: (FAILED, SOON, "dead"),
    Outcome.TIMEOUT: (FAILED, SOON, "dead"),
    Outcome.TLS: (FAILED, SOON, "dead"),
    Outcome.BROKEN: (FAILED, SOON, "well"),
    Outcome.TOO_LARGE: (FAILED, (), "well"),
    Outcome.BAD_CONTENT: (FAILED, (), "well"),
    Outcome.BAD_REDIRECT: (FAILED, (), "well"),
    Outcome.FORBIDDEN_ADDRESS: (FAILED, (), ""),
    Outcome.INTERNAL: (FAILED, SOON, ""),
    Outcome.SKIPPED: ("queued", (), ""),
}
PARKS = (4, 20, 60, 240, 960)


@dataclass
class Url:
    host: str
    state: str = "queued"
    tries: int = 0
    due: float = 0.0  # while waiting
    job: int = 0  # while leased: of which job; while queued: the job that lost it


@dataclass
class Host:
    address: str = ""
    blocked: bool = False
    own_delay: float | None = None
    crawl_delay: float = -1.0
    latency: float = 0.0
    backoff: float = 0.0
    failures: int = 0
    parks: int = 0
    ready_at: float = 0.0
    late_at: float = 0.0  # certainly ready after this: a restart makes hosts wait, and a shorter delay comes too late
    was_asked: bool = False  # and not since the restart


@dataclass
class Job:
    client: str
    request: str
    deadline: float
    connections: dict[str, int] = field(default_factory=dict)  # by host


Holders = dict[tuple[str, str], set[str]]  # slot, client -> hosts


class Model:
    """The whole frontier. It is told the time before each call."""

    def __init__(self, rules: Rules, now: float) -> None:
        self.rules = rules
        self.now = now
        self.opened_at = now
        self.urls: dict[str, Url] = {}
        self.hosts: dict[str, Host] = {}
        self.jobs: dict[int, Job] = {}
        self.last_job = 0
        self.asked: set[str] = set()
        self.paused = False
        self.sent = self.size = self.stored = 0
        self.slot_ready: dict[str, tuple[float, float]] = {}  # not before the first, certainly after the second

    def at(self, now: float) -> None:
        """Before each call: what time it is."""
        self.now = now
        for name, host in self.hosts.items():
            host.late_at = max(host.late_at, self.opened_at + self.delay(name))

    # --- questions

    def slot(self, name: str) -> str:
        return self.hosts[name].address or name

    def delay(self, name: str) -> float:
        host = self.hosts[name]
        if host.own_delay is not None:
            return host.own_delay
        longest = self.rules.max_crawl_delay_seconds
        delay = max(self.rules.delay_seconds, min(host.crawl_delay, longest))
        return (max(delay, min(host.latency, longest)) if delay > 0 else 0) + host.backoff

    def of(self, *states: str, host: str = "", job: int = 0) -> list[str]:
        return [
            url
            for url, known in self.urls.items()
            if known.state in states and host in ("", known.host) and job in (0, known.job)
        ]

    def holders(self) -> Holders:
        held: Holders = {}
        for url in self.of("leased"):
            name = self.urls[url].host
            held.setdefault((self.slot(name), self.jobs[self.urls[url].job].client), set()).add(name)
        return held

    def others(self, slot: str, client: str) -> dict[str, int]:
        """Who else is in a slot, each with the connections that it may use there."""
        used: dict[str, int] = {}
        for url in self.of("leased"):
            name, job = self.urls[url].host, self.jobs[self.urls[url].job]
            if self.slot(name) == slot and job.client != client:
                used[job.client] = max(used.get(job.client, 0), job.connections[name])
        return used

    def is_finished(self) -> bool:
        open_urls = self.of("queued", "waiting")
        return not self.of("leased") and all(self.hosts[self.urls[url].host].blocked for url in open_urls)

    def counts(self) -> dict[str, int]:
        states = Counter(url.state for url in self.urls.values())
        return {
            "known": len(self.urls), "queued": states["queued"] + states["waiting"], "leased": states["leased"],
            "done": states[DONE], "failed": states[FAILED], "excluded": states[EXCLUDED],
            "stored": self.stored, "sent": self.sent, "size": self.size, "hosts": len(self.hosts),
        }  # fmt: skip

    # --- adding and leasing

    def add(self, urls: Iterable[tuple[str, str]]) -> int:
        new = {url: host for url, host in urls if url not in self.urls}
        for url, host in new.items():
            self.hosts.setdefault(host, Host())
            self.urls[url] = Url(host)
        return len(new)

    def known_job(self, client: str, request: str) -> int:
        return next(
            (job for job, it in self.jobs.items() if request and (it.client, it.request) == (client, request)), 0
        )

    def begin_lease(self) -> None:
        self.expire()
        for url in self.of("waiting"):
            if int(self.urls[url].due * 1000) <= int(self.now * 1000):
                self.urls[url].state, self.urls[url].job = "queued", 0

    def renew(self, job: int) -> None:
        self.jobs[job].deadline = self.now + self.rules.lease_seconds

    def leased(self, client: str, request: str, wanted: int, got: Leased) -> None:
        """Check what was handed out as a new job, and take it over."""
        if not got.tasks:
            free = self.must_be_free()
            assert self.paused or wanted < 1 or not free or any(it.client == client for it in self.jobs.values()), free
            assert got.finished == self.is_finished()
            return
        assert not self.paused
        assert 0 < len(got.tasks) <= wanted
        assert got.job == self.last_job + 1
        numbers = Counter(self.urls[task.url].host for task in got.tasks)
        assert sorted(numbers) == sorted(share.host for share in got.hosts)
        held = self.holders()
        for share in got.hosts:
            self._check_share(client, share.host, share.connections, numbers[share.host], held)
            assert (share.delay_seconds, share.slot) == (self.delay(share.host), self.slot(share.host))
        self.last_job = got.job
        connections = {share.host: share.connections for share in got.hosts}
        self.jobs[got.job] = Job(client, request, self.now + self.rules.lease_seconds, connections)
        for task in got.tasks:
            url = self.urls[task.url]
            assert url.state == "queued"
            url.state, url.job = "leased", got.job
            self.asked.add(url.host)
            self.hosts[url.host].was_asked = False
        self.sent += len(got.tasks)

    def _check_share(self, client: str, name: str, connections: int, number: int, held: Holders) -> None:
        host, slot, delay = self.hosts[name], self.slot(name), self.delay(name)
        others = self.others(slot, client)
        assert not host.blocked
        assert self.now >= host.ready_at, f"{name} is asked too early"
        assert not host.was_asked or self.now >= self.opened_at + delay, f"{name} is asked too early after a restart"
        assert (slot, client) in held or self.now >= self.slot_ready.get(slot, (0.0, 0.0))[0], f"{slot} is too early"
        if delay > 0:
            assert not others, f"{name} is with two clients"
        assert connections <= self.rules.connections_per_host
        assert (slot, client) in held or connections + sum(others.values()) <= self.rules.connections_per_host
        out = len(self.of("leased", host=name)) + number
        if host.failures or host.parks:
            assert out <= 3
        elif delay > 0:
            assert out <= max(1, int(self.rules.lease_seconds / 2 / delay))

    def must_be_free(self) -> list[str]:
        """Hosts that a client with nothing in hand can certainly have."""
        taken = {slot for slot, _ in self.holders()}
        return [
            name
            for name, host in self.hosts.items()
            if self.of("queued", host=name) and not host.blocked and host.parks <= len(PARKS)
            and self.slot(name) not in taken
            and max(host.ready_at, host.late_at, self.slot_ready.get(self.slot(name), (0.0, 0.0))[1]) <= self.now
        ]  # fmt: skip

    # --- reports

    def report(self, job: int, outcomes: Iterable[tuple[str, Outcome]], facts: Iterable[HostFact]) -> tuple[int, int]:
        """The numbers of accepted and refused results."""
        before, accepted, refused = self.holders(), 0, 0
        signs: dict[str, Counter[str]] = {}
        touched: set[str] = set()
        for url, outcome in outcomes:
            known = self.urls.get(url)
            if url in touched or (known and known.state in (DONE, FAILED, EXCLUDED, "waiting")):
                continue
            late = known is not None and known.state == "queued" and known.job == job
            if known is None or not (late or (known.state == "leased" and known.job == job)):
                refused += 1
                continue
            if late and outcome is Outcome.SKIPPED:
                continue
            touched.add(url)
            accepted += 1
            self._settle(known, outcome, job)
            signs.setdefault(known.host, Counter())[ENDS[outcome][2]] += 1
        for name, seen in signs.items():
            self._read_signs(self.hosts[name], seen)
        for fact in facts:
            self._learn(fact)
        if job in self.jobs:
            self.renew(job)
        self._after(before)
        return accepted, refused

    def _settle(self, url: Url, outcome: Outcome, job: int) -> None:
        end, waits, _ = ENDS[outcome]
        url.job = 0
        if outcome is Outcome.SKIPPED:
            url.state, url.job = "queued", job
        elif url.tries < len(waits):
            url.state, url.due = "waiting", self.now + waits[url.tries] * self.rules.retry_wait_seconds
            url.tries += 1
        else:
            url.state = end
            self.stored += outcome is Outcome.STORED

    def _read_signs(self, host: Host, seen: Counter[str]) -> None:
        if seen["busy"]:
            host.backoff = min(max(2 * host.backoff, self.rules.delay_seconds, 1.0), 300.0)
        elif seen["well"]:
            host.backoff = host.backoff * 0.8 if host.backoff > 0.1 else 0.0
        if seen["well"] or seen["busy"]:
            host.failures = host.parks = 0
        else:
            host.failures += seen["dead"]
            if host.failures >= 3:
                host.failures = 0
                host.parks += 1
                wait = PARKS[host.parks - 1] if host.parks <= len(PARKS) else 0
                host.ready_at = max(host.ready_at, self.now + wait * self.rules.retry_wait_seconds)

    def _learn(self, fact: HostFact) -> None:
        host = self.hosts.get(fact.host)
        if host is None:
            return
        host.crawl_delay = fact.crawl_delay_seconds
        host.address = fact.address or host.address
        if fact.latency_seconds:
            host.latency = (host.latency + fact.latency_seconds) / 2 if host.latency else fact.latency_seconds
        if fact.retry_after_seconds:
            host.ready_at = max(host.ready_at, self.now + fact.retry_after_seconds)

    def _after(self, before: Holders) -> None:
        """Hosts and slots that a client has left may be asked again after the delay."""
        after = self.holders()
        had = {(client, name) for (_, client), names in before.items() for name in names}
        have = {(client, name) for (_, client), names in after.items() for name in names}
        for _, name in had - have:
            self.hosts[name].ready_at = max(self.hosts[name].ready_at, self.now + self.delay(name))
        for slot, client in before.keys() - after.keys():
            delays = [self.delay(name) for name in before[slot, client]]
            _, latest = self.slot_ready.get(slot, (0.0, 0.0))
            self.slot_ready[slot] = self.now + min(delays), max(latest, self.now + max(delays))
        self.jobs = {job: it for job, it in self.jobs.items() if self.of("leased", job=job)}

    # --- other ends, and operators

    def release(self, *jobs: int) -> int:
        before = self.holders()
        urls = [url for job in jobs for url in self.of("leased", job=job)]
        for url in urls:
            self.urls[url].state = "queued"  # and keeps the job as the one that lost it
        self._after(before)
        return len(urls)

    def expire(self) -> int:
        return self.release(*(job for job, it in self.jobs.items() if it.deadline <= self.now))

    def tick(self) -> list[str]:
        """What is given up."""
        self.expire()
        buried = [
            url
            for name, host in self.hosts.items()
            if host.parks > len(PARKS) and not host.blocked and not self.of("leased", host=name)
            for url in self.of("queued", host=name)
        ]
        for url in buried:
            self.urls[url].state, self.urls[url].job = FAILED, 0
        return buried

    def retry(self, urls: Iterable[str]) -> int:
        again = [url for url in dict.fromkeys(urls) if url in self.of(FAILED)]
        for url in again:
            known = self.urls[url]
            known.state, known.tries, known.job = "queued", 0, 0
            self.hosts[known.host].failures = self.hosts[known.host].parks = 0
        return len(again)

    def reopen(self) -> None:
        """Leases begin anew, and every host that was ever asked was asked just now, as far as anybody knows."""
        for job in self.jobs:
            self.renew(job)
        self.slot_ready.clear()
        for name in self.asked:
            self.hosts[name].was_asked = True
        self.opened_at = self.now
        self.at(self.now)

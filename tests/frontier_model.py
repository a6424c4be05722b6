"""What the frontier must do, in plain Python: no disk, no queues, every rule written a second time and as simply as
possible. It does not choose what is leased; it says whether a choice was allowed, and whether there had to be one.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from common.urls import digest
from common.wire import HostFact, Kind, ListedUrl, Outcome
from server.frontier.frontier import Leased, Rules

SOON, PATIENTLY = (1, 10), (2, 10, 60, 120)
DONE, EXCLUDED, FAILED = "done", "excluded", "failed"
# outcome -> how it ends, waits before each further try, what it says about the host
ENDS: dict[Outcome, tuple[str, tuple[int, ...], str]] = {
    Outcome.STORED: (DONE, (), "well"),
    Outcome.UNCHANGED: (DONE, (), "well"),
    Outcome.REDIRECTED: (DONE, (), "well"),
    Outcome.LISTED: (DONE, (), "well"),
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
    depth: int = 0
    arrival: int = 0
    score: int = 0
    again: bool = False  # its page is stored, and it is visited again
    interval: float = 0.0
    next_visit: float = 0.0  # while it is done
    visited: int = 0
    has_record: bool = False  # of its visits
    record_depth: int = 0  # in that record
    has_page: bool = False
    sitemap: bool = False
    guessed: bool = False  # a sitemap whose failure is no news
    linked: bool = False  # a sitemap to which a page links
    ended: Outcome | None = None  # of a sitemap
    no_sitemap: bool = False  # a done page that was taken for one
    rule: str = ""  # that excluded it

    @property
    def apart(self) -> bool:
        """It brings no new page."""
        return self.again or self.sitemap

    @property
    def is_none(self) -> bool:
        """A sitemap that is none."""
        return self.sitemap and self.ended is Outcome.UNWANTED and not self.has_page

    @property
    def kind(self) -> Kind:
        return Kind.PAGE if not self.sitemap else Kind.GUESSED if self.guessed else Kind.SITEMAP


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
    priority: int = 0


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
        self.sent = self.processed = self.size = self.arrivals = 0
        self.stored: Counter[str] = Counter()  # by host
        self.revisits: Counter[str] = Counter()  # by outcome
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
        if self.of("leased"):
            return False
        if self.is_over():
            return True
        return not self.due() and not any(self.is_work(self.urls[url]) for url in self.of("queued", "waiting"))

    def is_work(self, url: Url) -> bool:
        """Whether a queued URL keeps the crawl from ending."""
        return not self.hosts[url.host].blocked and (url.apart or not (self.is_full(url.host) or self.has_all()))

    def ended_by(self) -> str:
        """What the frontier says of it: nothing, if nothing is left."""
        if not self.of("queued", "waiting", "leased"):
            return ""
        held = {self.urls[url].host for url in self.of("queued", "waiting") if not self.urls[url].apart}
        if held and self.has_all():
            return "max_pages"
        if self.is_over():
            return "max_bytes"
        return "max_pages_per_host" if self.is_finished() and any(map(self.is_full, held)) else ""

    def has_all(self) -> bool:
        return 0 < self.rules.max_pages <= self.stored.total()

    def is_over(self) -> bool:
        return 0 < self.rules.max_bytes <= self.size

    def due(self) -> list[str]:
        """Done pages that are to be visited again now, the first one first."""
        done = self.dated()
        dates = {url: int(self.urls[url].next_visit * 1000) for url in done}
        return sorted(
            (url for url in done if dates[url] <= int(self.now * 1000)), key=lambda url: (dates[url], digest(url))
        )

    def next_due(self) -> float:
        return min((self.urls[url].next_visit for url in self.dated()), default=0.0)

    def dated(self) -> list[str]:
        """Those that will be visited again."""
        return [url for url in self.of(DONE) if self.urls[url].has_record] if self.rules.period.is_set else []

    def is_full(self, name: str) -> bool:
        return 0 < self.rules.max_pages_per_host <= self.stored[name]

    def pages_left(self, name: str) -> float:
        """How many URLs of the host may be leased, for all that limits in pages say."""
        pages, of_host = self.rules.max_pages, self.rules.max_pages_per_host
        new = [self.urls[url].host for url in self.of("leased") if not self.urls[url].apart]
        left = pages - self.stored.total() - len(new) if pages else float("inf")
        return min(left, of_host - self.stored[name] - new.count(name) if of_host else left)

    def place(self, url: str) -> tuple[int, ...]:
        """What is smaller is taken first, within a host; what brings no new page is apart."""
        known = self.urls[url]
        if known.apart:
            return (known.arrival,)
        orders = {
            "bfs": (known.depth, known.arrival), "dfs": (-known.arrival,), "random": (),
            "priority": (-known.score, known.arrival),
        }  # fmt: skip
        return orders[self.rules.traversal]

    def arrive(self, known: Url) -> None:
        self.arrivals += 1
        known.arrival = self.arrivals

    def counts(self) -> dict[str, int]:
        states = Counter(url.state for url in self.urls.values())
        return {
            "known": len(self.urls), "queued": states["queued"] + states["waiting"], "leased": states["leased"],
            "done": states[DONE], "failed": states[FAILED], "excluded": states[EXCLUDED],
            "stored": self.stored.total(), "sent": self.sent, "size": self.size, "hosts": len(self.hosts),
            "again": sum(self.urls[url].apart for url in self.of("queued", "waiting")),
            "again_leased": sum(self.urls[url].apart for url in self.of("leased")),
            "revisits": self.revisits.total(), "revisions": self.revisits[Outcome.STORED],
            "unchanged": self.revisits[Outcome.UNCHANGED], "processed": self.processed,
        }  # fmt: skip

    # --- adding and leasing

    def add(self, found: Iterable[tuple[str, str, int]], settled: Iterable[str] = (), repeated: bool = False) -> int:
        """URLs with their hosts and depths. Those settled by the same call, or told before, are not found again."""
        least: dict[str, tuple[str, int]] = {}
        for url, host, depth in found:
            least[url] = host, min(depth, least.get(url, (host, depth))[1])
        rows = list(least.items())
        if self.rules.traversal == "dfs":
            rows.reverse()
        new = 0
        for url, (host, depth) in rows:
            if url not in self.urls:
                new += 1
                self.hosts.setdefault(host, Host())
                self.urls[url] = Url(host, depth=depth, score=1 - depth)
                self.arrive(self.urls[url])
            elif url in settled:
                continue
            elif self.urls[url].sitemap and self.urls[url].state in ("queued", "waiting", "leased"):
                self._link(self.urls[url], depth)
            elif self.urls[url].state == DONE and self.urls[url].is_none:
                self.urls[url] = Url(host, depth=depth, score=1 - depth)
                self.arrive(self.urls[url])
            elif self.urls[url].state == "queued" and not repeated:
                self._find_again(self.urls[url], depth)
            elif self.urls[url].rule == "sitemap_nesting":  # only as a sitemap it is not wanted
                self.urls[url] = Url(host, depth=depth, score=1 - depth)
                self.arrive(self.urls[url])
        return new

    def link_held(self, job: int, found: Iterable[tuple[str, str, int]]) -> None:
        """Before a report: what it links to among the sitemaps of its job."""
        for url, _, depth in found:
            known = self.urls.get(url)
            if known is not None and known.sitemap and known.state == "leased" and known.job == job:
                self._link(known, depth)

    def _link(self, known: Url, depth: int) -> None:
        if known.again:  # a page that is stored, and stays one
            return
        known.linked, known.depth = True, min(known.depth, max(0, depth - 1))

    def hear(self, rows: Iterable[ListedUrl], found: Iterable[tuple[str, str, int]]) -> tuple[int, set[str]]:
        """What sitemaps say, after a report; how many of them were not known, and which have become sitemaps. `found`:
        the links in the same report."""
        named: dict[str, ListedUrl] = {}
        dates: dict[str, int] = {}
        for row in rows:
            if row.kind is not Kind.PAGE and self.rules.sitemaps:
                named[row.url] = min(named.get(row.url, row), row, key=lambda row: (row.hops, row.kind is Kind.GUESSED))
            if row.modified and not row.host:
                dates[row.url] = max(row.modified, dates.get(row.url, 0))
        for url in set(dates) & set(self.dated()) - self.touched:
            self._hurry(self.urls[url], dates[url])
        new, taken = 0, set[str]()
        for url, row in named.items():
            host, known = url.split("/")[2], self.urls.get(url)
            is_own = row.host in ("", host)
            if known is None:
                new += 1
                taken.add(url)
                self.hosts.setdefault(host, Host())
                known = self.urls[url] = Url(host)
                if row.hops > 5:
                    known.state, known.rule = EXCLUDED, "sitemap_nesting"
                    continue
            elif url in self.touched or not is_own or row.hops > 5 or not self._can_be_sitemap(known):
                continue
            taken.add(url)
            depths = [depth for link, _, depth in found if link == url]
            if known.state == "queued" and known.arrival:
                depths = [known.depth] if self.rules.traversal == "random" else [known.depth, *depths]
            elif known.rule == "unwanted" or known.state == DONE:
                depths = []
            known.sitemap, known.linked, known.again = True, False, known.has_page
            known.guessed = row.kind is Kind.GUESSED and not known.has_page
            known.state, known.job, known.tries, known.depth, known.rule = "queued", 0, 0, row.depth, ""
            for depth in depths:
                self._link(known, depth)
            self.arrive(known)
        return new, taken

    def _can_be_sitemap(self, known: Url) -> bool:
        if known.sitemap:
            return False
        return (known.state == DONE and not known.no_sitemap) or (known.state == "queued" and not known.again) or (
            known.rule in ("sitemap_nesting", "unwanted")
        )  # fmt: skip

    def _hurry(self, known: Url, date: int) -> None:
        if date > self.now + 86_400 or known.visited >= min(date, self.now):
            return
        period = self.rules.period
        due = max(self.now, known.visited + period.shortest if period.is_adaptive else 0.0)
        known.next_visit = min(known.next_visit, due)

    def _find_again(self, known: Url, depth: int) -> None:
        if known.apart:
            return
        if self.rules.traversal != "random":
            known.depth = min(known.depth, depth)
        if self.rules.traversal == "dfs":
            self.arrive(known)
        known.score += 1

    def known_job(self, client: str, request: str) -> int:
        return next(
            (job for job, it in self.jobs.items() if request and (it.client, it.request) == (client, request)), 0
        )

    def begin_lease(self) -> None:
        self.expire()
        for url in sorted(self.of("waiting"), key=lambda url: (int(self.urls[url].due * 1000), self.place(url))):
            if int(self.urls[url].due * 1000) <= int(self.now * 1000):
                self.urls[url].state, self.urls[url].job = "queued", 0
                self.arrive(self.urls[url])
        self.bring_back()

    def bring_back(self) -> None:
        for url in self.due():
            known = self.urls[url]
            host = self.hosts[known.host]
            if host.parks > len(PARKS) and not self.of("queued", "waiting", "leased", host=known.host):
                host.parks = len(PARKS)
            known.state, known.job, known.tries, known.no_sitemap = "queued", 0, 0, False
            known.again, known.guessed, known.linked = known.has_page, known.sitemap, False
            self.arrive(known)

    def renew(self, job: int) -> None:
        self.jobs[job].deadline = self.now + self.rules.lease_seconds

    def leased(self, client: str, request: str, wanted: int, got: Leased) -> None:
        """Check what was handed out as a new job, and take it over."""
        free = [] if self.is_over() or any(it.client == client for it in self.jobs.values()) else self.must_be_free()
        if not got.tasks:
            assert self.paused or wanted < 1 or not free, free
            assert got.finished == self.is_finished()
            return
        assert not self.paused
        assert not self.is_over()
        assert 0 < len(got.tasks) <= wanted
        assert got.job == self.last_job + 1
        numbers = Counter(self.urls[task.url].host for task in got.tasks)
        assert sorted(numbers) == sorted(share.host for share in got.hosts)
        lowest = min(self.hosts[name].priority for name in numbers)
        assert not [name for name in free if self.hosts[name].priority > lowest and name not in numbers], "not its turn"
        held = self.holders()
        for share in got.hosts:
            self._check_order([task.url for task in got.tasks if self.urls[task.url].host == share.host])
            self._check_share(client, share.host, share.connections, numbers[share.host], held)
            assert (share.delay_seconds, share.slot) == (self.delay(share.host), self.slot(share.host))
        self.last_job = got.job
        connections = {share.host: share.connections for share in got.hosts}
        self.jobs[got.job] = Job(client, request, self.now + self.rules.lease_seconds, connections)
        for task in got.tasks:
            url = self.urls[task.url]
            assert url.state == "queued"
            url.state, url.job = "leased", got.job
            assert task.depth == url.depth
            assert task.kind is url.kind
            self.asked.add(url.host)
            self.hosts[url.host].was_asked = False
        self.sent += len(got.tasks)
        new = {self.urls[task.url].host for task in got.tasks if not self.urls[task.url].apart}
        assert all(self.pages_left(name) >= 0 for name in new), "more is out than may be stored"

    def _check_order(self, taken: list[str]) -> None:
        """They come in their order, and nothing that is left would have come before one of them."""
        left = set(self.of("queued", host=self.urls[taken[0]].host)) - set(taken)
        for again in (False, True):
            places = [self.place(url) for url in taken if self.urls[url].apart == again]
            assert places == sorted(places)
            rest = [self.place(url) for url in left if self.urls[url].apart == again]
            assert not places or all(place >= places[-1] for place in rest), "not the first of the host"

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
        if self.rules.traversal == "dfs":
            assert out <= self.rules.connections_per_host
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
            and self._has_something(name) and self.slot(name) not in taken
            and max(host.ready_at, host.late_at, self.slot_ready.get(self.slot(name), (0.0, 0.0))[1]) <= self.now
        ]  # fmt: skip

    def _has_something(self, name: str) -> bool:
        queued = [self.urls[url] for url in self.of("queued", host=name)]
        return any(url.apart for url in queued) or (bool(queued) and self.pages_left(name) > 0)

    # --- reports

    def report(self, job: int, outcomes: Iterable[tuple[str, Outcome]], facts: Iterable[HostFact]) -> tuple[int, int]:
        """The numbers of accepted and refused results."""
        before, accepted, refused = self.holders(), 0, 0
        held = {self.urls[url].host for url in self.of("leased", job=job)}
        signs: dict[str, Counter[str]] = {}
        self.touched = touched = set[str]()
        for url, outcome in self._in_order(job, outcomes):
            known = self.urls.get(url)
            if url in touched or (known and known.state in (DONE, FAILED, EXCLUDED, "waiting")):
                continue
            late = known is not None and known.state == "queued" and known.job == job
            if known is None or not (late or (known.state == "leased" and known.job == job)):
                refused += 1
                continue
            if late and outcome is Outcome.SKIPPED:
                continue
            if late and outcome is Outcome.STORED and not known.apart and self.pages_left(known.host) <= 0:
                refused += 1
                continue
            touched.add(url)
            accepted += 1
            self._settle(known, outcome, job)
            signs.setdefault(known.host, Counter())[ENDS[outcome][2]] += 1
        for name, seen in signs.items():
            self._read_signs(self.hosts[name], seen)
        for fact in facts:
            if fact.host in held or fact.host in signs:  # others are not for this job to speak of
                self._learn(fact)
        if job in self.jobs:
            self.renew(job)
        self._after(before)
        return accepted, refused

    def _in_order(self, job: int, outcomes: Iterable[tuple[str, Outcome]]) -> list[tuple[str, Outcome]]:
        """What is done makes no trouble and comes first; then, URL by URL, the rest."""
        first: dict[str, Outcome] = {}
        others: dict[str, list[tuple[str, Outcome]]] = {}
        held = [url for url in self.of("leased", job=job) if not self.urls[url].apart]
        for url, outcome in outcomes:
            if url in held and url not in first and url not in others and ENDS[outcome][0] == DONE:
                first[url] = outcome
            else:
                others.setdefault(url, []).append((url, outcome))
        return [*first.items(), *(each for results in others.values() for each in results)]

    def _settle(self, url: Url, outcome: Outcome, job: int) -> None:
        end, waits, _ = ENDS[outcome]
        url.job = 0
        self.processed += end == DONE
        if outcome is Outcome.SKIPPED:
            url.state, url.job = "queued", job
        elif url.tries < len(waits):
            url.state, url.due = "waiting", self.now + waits[url.tries] * self.rules.retry_wait_seconds
            url.tries += 1
        elif url.sitemap and url.again and (outcome is Outcome.UNWANTED or (end != DONE and not url.guessed)):
            self._stay_page(url, outcome)
        elif url.sitemap and outcome is Outcome.UNWANTED and (url.linked or not url.guessed):
            self._is_no_sitemap(url)
        elif url.sitemap and (end == DONE or url.again or url.guessed):
            self._read(url, outcome)
        elif url.again:
            self._visited(url, outcome)
        else:
            url.state = end
            if end == EXCLUDED:
                url.rule, url.sitemap = outcome.value, False
            if outcome is Outcome.STORED:
                self._store(url)
                if self.rules.period.is_set:
                    self._note_visit(url, self._first_interval())
                    url.again = True

    def _store(self, url: Url) -> None:
        self.stored[url.host] += not url.has_page
        url.has_page = True

    def _is_no_sitemap(self, url: Url) -> None:
        url.sitemap = url.has_record = False
        url.depth += 1
        url.state, url.tries, url.score = "queued", 0, 1 - url.depth
        self.arrive(url)

    def _stay_page(self, url: Url, outcome: Outcome) -> None:
        """A stored page was not read as a sitemap."""
        url.state, url.sitemap, url.no_sitemap = DONE, False, outcome is Outcome.UNWANTED
        url.depth, url.next_visit = url.record_depth, url.visited + url.interval

    def _read(self, url: Url, outcome: Outcome) -> None:
        """The visit of a sitemap has ended."""
        period = self.rules.period
        url.state, url.ended = DONE, outcome
        if outcome is Outcome.STORED:
            self._store(url)
        if period.is_set:
            first = period.shortest if period.is_adaptive else period.fixed
            self._note_visit(url, self._next_interval(url.interval if url.has_record else first, outcome))

    def _visited(self, url: Url, outcome: Outcome) -> None:
        url.state = DONE
        interval = url.interval if url.has_record else self._first_interval()
        self._note_visit(url, self._next_interval(interval, outcome))
        self.revisits[outcome] += 1

    def _first_interval(self) -> float:
        period = self.rules.period
        return (period.shortest * period.longest) ** 0.5 if period.is_adaptive else period.fixed

    def _next_interval(self, interval: float, outcome: Outcome) -> float:
        period = self.rules.period
        factors = {
            Outcome.STORED: 0.5, Outcome.LISTED: 0.5, Outcome.UNCHANGED: 2.0, Outcome.NOT_FOUND: 1e9,
            Outcome.REDIRECTED: 1e9,
        }  # fmt: skip
        if not period.is_adaptive:
            return period.fixed
        return min(max(interval * factors.get(outcome, 1.0), period.shortest), period.longest)

    def _note_visit(self, url: Url, interval: float) -> None:
        url.has_record, url.interval, url.record_depth = True, interval, url.depth
        url.visited, url.next_visit = int(self.now), self.now + interval

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
        self.bring_back()
        buried = [
            url
            for name, host in self.hosts.items()
            if host.parks > len(PARKS) and not host.blocked and not self.of("leased", host=name)
            for url in self.of("queued", host=name)
        ]
        for url in buried:
            known = self.urls[url]
            known.state, known.job = FAILED, 0
            if known.sitemap and known.again and not known.guessed:
                self._stay_page(known, Outcome.REFUSED)
            elif known.sitemap and (known.again or known.guessed):
                self._read(known, Outcome.REFUSED)
            elif known.again:
                self._visited(known, Outcome.REFUSED)
        return [url for url in buried if self.urls[url].state == FAILED]

    def retry(self, urls: Iterable[str]) -> int:
        again = [url for url in dict.fromkeys(urls) if url in self.of(FAILED)]
        for url in again:
            known = self.urls[url]
            known.state, known.tries, known.job, known.score = "queued", 0, 0, 1 - known.depth
            known.linked = False
            self.arrive(known)
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

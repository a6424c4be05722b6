"""The client's threads and the bounded queues between them. The stages themselves are plain functions and objects.

    run       (1)  asks for jobs, renews leases, orders cuts
    download  (N)  schedule -> fetcher -> to be mined
    datamine  (N)  to be mined -> miner -> harvest of the job
    pack      (1)  harvest -> compressed while pages arrive, then bundles and report in the spool
    ship      (1)  spool -> FTP server, then URL server

A full queue, or no room for more pages, makes the stages before wait, back to the schedule: memory stays bounded
whatever the network does.
"""

import contextlib
import logging
import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from client import listing
from client.bundler import Harvest
from client.coordinator import Coordinator
from client.fetcher import Fetcher, Turn, Visit, sender, user_agent
from client.jobs import ActiveJob, Jobs
from client.miner import mine
from client.outbox import Outbox, delivery_of
from client.patience import Stopped, level_of, wait_seconds
from client.reading.reader import Reader
from client.recent import RecentlySent
from client.results import FetchResult, MinedPage
from client.robots import Robots
from client.room import Room
from client.schedule import Schedule, Ticket
from client.services import Services
from client.transport import Transport
from common import VERSION
from common.errors import RemoteRefused, RemoteUnavailable
from common.urls import host_of, origin_of
from common.wire import HostFact, HostShare, Job, JobSettings, Kind, ListedUrl, Outcome

_MAX_WAITING_URLS = 2_000  # in the schedule; with more, no job is asked for
_MAX_JOBS = 50  # a job stays until its last parcel is delivered, so this bounds what piles up when servers are away
_MAX_HARVEST_BYTES = 32 << 20  # a harvest with more is cut at once
_ROOM_BYTES = 40 << 20  # for pages that are fetched and not packed; with more, downloads wait
_LARGE_PAGE_BYTES = 1 << 20
_TICK_SECONDS = 0.2
_STOP_FETCH_SECONDS = 10.0  # fetches under way get so long to end when the client stops
_HOST_FAILURES = (Outcome.DNS, Outcome.REFUSED, Outcome.TIMEOUT, Outcome.TLS)
_MAX_HOST_FAILURES = 3  # in a row, then the host's other URLs are not tried now
_MAX_HOLD_SECONDS = 60.0  # a host that asks for a longer pause gets it from the server: its URLs go back

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Fetched:
    """What passes from download to datamine."""

    job: str
    result: FetchResult
    fact: HostFact
    sitemaps: Sequence[ListedUrl] = ()  # of its host, if they were not told before


class Pipeline:
    """One client at work. `run` blocks until `stop` is called from another thread."""

    def __init__(self, services: Services, pairs: int, on_page: Callable[[MinedPage], None]) -> None:
        self._services = services
        self._pairs = pairs
        self._on_page = on_page
        self._clock = services.clock
        self._stopping = threading.Event()
        self._wake = threading.Event()  # there may be something new to do for the run thread
        self._schedule = Schedule(services.clock)
        self._to_mine: queue.Queue[_Fetched | None] = queue.Queue(maxsize=2 * pairs)
        self._room = Room(_ROOM_BYTES)
        self._recent = RecentlySent()
        self._reader = Reader()
        self._origins = listing.Origins(services.clock)
        self._mining_large = threading.Lock()
        self._jobs = Jobs(services.spool)
        self._outbox = Outbox(services, self._jobs, self._recent, self._newest_settings, self._wake)
        self._lock = threading.Lock()  # guards _robots
        self._robots: tuple[tuple[str, float], Robots] | None = None
        self._settings: JobSettings | None = None  # the newest; set by the run thread

    def stop(self) -> None:
        """Ask `run` to end. Not for signal handlers: see common.ending."""
        self._stopping.set()
        self._wake.set()

    def run(self) -> None:
        """Work until stopped. Everything that was finished is shipped or in the spool afterwards."""
        coordinator = self._services.coordinator()
        try:
            recovery = delivery_of(self._services, self._stopping)
            recovery.recover()
            recovery.close()
        except Stopped:
            _log.info("stopped; what was in the spool is still there")
            return
        self._outbox.start()
        mines = [self._start(str(number), self._mine_loop) for number in range(1, self._pairs + 1)]
        downloads = [self._start(f"download {number}", self._download_loop) for number in range(1, self._pairs + 1)]
        self._coordinate(coordinator)
        self._end_fetching(downloads, mines)
        self._reader.close()
        self._services.filters.close()
        self._order_cuts(everything=True)
        self._outbox.end()
        self._give_back(coordinator)
        coordinator.close()

    # --- the run thread ----------------------------------------------------------------------------------------

    def _coordinate(self, coordinator: Coordinator) -> None:
        ask_at, failures, request = 0.0, 0, self._services.spool.request()
        while not self._stopping.is_set():
            self._order_cuts()
            self._renew(coordinator)
            if self._clock.ticks() >= ask_at and self._wants_work():
                try:
                    job = coordinator.get_job(request, _MAX_WAITING_URLS)
                    self._settings = job.settings
                    self._accept(job)
                except (RemoteUnavailable, RemoteRefused, OSError) as error:  # OSError: such as a full disk
                    failures += 1
                    ask_at = self._clock.ticks() + self._retry_wait(failures, error)
                    continue
                failures, request = 0, self._services.spool.next_request()
                ask_at = self._clock.ticks() + (0.0 if job.tasks else job.wait_seconds)
            until_asking = ask_at - self._clock.ticks()
            if self._wake.wait(min(_TICK_SECONDS, until_asking) if until_asking > 0 else _TICK_SECONDS):
                self._wake.clear()
                ask_at = ask_at if failures else 0.0

    def _wants_work(self) -> bool:
        waiting = self._schedule.waiting()
        if waiting >= _MAX_WAITING_URLS or self._outbox.is_full or len(self._jobs.all()) >= _MAX_JOBS:
            return False
        return self._schedule.capacity() < self._pairs or waiting < 2 * self._pairs

    def _retry_wait(self, failures: int, error: Exception) -> float:
        wait = wait_seconds(failures, self._services.max_wait_seconds)
        _log.log(level_of(failures), "no job (%s); asking again in %.1f s", error, wait)
        return wait

    def _share_out(self, hosts: Sequence[str]) -> None:
        """Another client has nothing to do: what we have not begun with of these hosts goes back, for its sake."""
        withdrawn = [ticket for host in hosts for ticket in self._schedule.withdraw(host=host)]
        if not withdrawn:
            return
        _log.info("%d URLs of %d hosts are given back, for a client that has nothing to do", len(withdrawn), len(hosts))
        for job, tickets in groupby(sorted(withdrawn, key=attrgetter("job")), key=attrgetter("job")):
            self._jobs.of(job).harvest.skip(ticket.visit.task for ticket in tickets)
        for active in self._jobs.all():  # a host is free when what was under way of it is reported, too
            active.harvest.hurry()

    def _accept(self, job: Job) -> None:
        self._share_out(job.give_back)
        if not job.tasks:
            return
        _log.info("job %s: %d URLs on %d hosts", job.job, len(job.tasks), len(job.hosts))
        spool = self._services.spool
        harvest = Harvest(job.job, len(job.tasks), job.settings, spool, self._clock, self._room, self._recent)
        robots_key = (job.settings.agent_name, job.settings.max_crawl_delay_seconds)
        with self._lock:
            if self._robots is None or self._robots[0] != robots_key:
                self._robots = robots_key, Robots(robots_key[0], self._clock, max_crawl_delay_seconds=robots_key[1])
        self._jobs.add(ActiveJob(harvest, job.settings, job.lease_seconds, self._clock.ticks()))
        shares = {share.host: share for share in job.hosts}
        hosts = [host_of(task.url) for task in job.tasks]
        visits = [
            Visit(task, shares.get(host) or HostShare(host, 1.0), job.settings)
            for task, host in zip(job.tasks, hosts, strict=True)
        ]
        self._schedule.add([Ticket(job.job, visit) for visit in visits], job.hosts)

    def _order_cuts(self, everything: bool = False) -> None:
        active_jobs = self._jobs.all()
        due = [active for active in active_jobs if everything or active.harvest.is_due(_MAX_HARVEST_BYTES)]
        if not due and self._room.is_crowded:
            due = [max(active_jobs, key=lambda active: active.harvest.held)] if active_jobs else []
        for active in due:
            # At the end also when there is one: it may have been made before the last page came.
            if self._jobs.order_cut(active, again=everything):
                self._outbox.order_cut(active)

    def _renew(self, coordinator: Coordinator) -> None:
        now = self._clock.ticks()
        for active in self._jobs.all():
            if now - active.renewed < active.lease_seconds / 3:
                continue
            active.renewed = now  # whatever comes: not more often
            try:
                coordinator.renew(active.harvest.job)
            except RemoteRefused as error:
                self._lose(active, error)
            except RemoteUnavailable as error:
                _log.debug("lease of job %s not renewed: %s", active.harvest.job, error)

    def _lose(self, active: ActiveJob, reason: Exception) -> None:
        """The lease is gone: others have the URLs now, so what we have not begun with is dropped."""
        dropped = self._schedule.withdraw(job=active.harvest.job)
        if dropped:
            _log.warning("job %s is lost (%s); %d URLs dropped", active.harvest.job, reason, len(dropped))
        active.harvest.give_back(len(dropped))
        if self._jobs.end_if_settled(active):
            self._wake.set()

    # --- the end -----------------------------------------------------------------------------------------------

    def _end_fetching(self, downloads: list[threading.Thread], mines: list[threading.Thread]) -> None:
        _log.info("stopping; %d URLs are given back", len(self._schedule.withdraw()))
        self._schedule.close()
        deadline = self._clock.ticks() + _STOP_FETCH_SECONDS
        for thread in downloads:
            thread.join(max(0.0, deadline - self._clock.ticks()))
        for _ in mines:
            self._to_mine.put(None)
        for thread in mines:
            thread.join()

    def _give_back(self, coordinator: Coordinator) -> None:
        spool = self._services.spool
        for job in spool.jobs():
            if any(spool.parcels(job)):
                continue  # to be delivered first, at the next start
            try:
                coordinator.exit(job)
            except (RemoteUnavailable, RemoteRefused) as error:
                _log.warning("job %s is given back at the next start: %s", job, error)
            else:
                spool.end(job)
        _log.info("stopped")

    # --- download ----------------------------------------------------------------------------------------------

    def _download_loop(self) -> None:
        fetcher: Fetcher | None = None
        made_for: tuple[object, ...] = ()
        while (ticket := self._schedule.take()) is not None:
            settings = ticket.visit.settings
            with self._lock:
                assert self._robots is not None, "made with the first job"
                robots = self._robots[1]
            wanted = (settings.agent_name, settings.contact, settings.verify_tls, robots)
            if fetcher is None or made_for != wanted:
                agent = user_agent(settings.agent_name, VERSION, settings.contact)
                transport = Transport(agent, sender(settings.contact), settings.verify_tls)
                fetcher, made_for = Fetcher(transport, robots, self._clock), wanted
            self._turn(ticket, fetcher, robots)

    def _turn(self, ticket: Ticket, fetcher: Fetcher, robots: Robots) -> None:
        visit = ticket.visit
        try:
            result = fetcher.turn(visit)
        except Exception:  # a mistake of ours must cost this page only
            _log.exception("fetching %s", visit.task.url)
            result = FetchResult(visit.task, Outcome.INTERNAL, "the client made a mistake; its log has it")
        self._hand_over(ticket, result, fetcher, robots)

    def _hand_over(self, ticket: Ticket, result: FetchResult | Turn, fetcher: Fetcher, robots: Robots) -> None:
        visit = ticket.visit
        host = host_of(visit.task.url)
        crawl_delay = robots.crawl_delay(origin_of(visit.url)) if visit.settings.robots_control else None
        if crawl_delay:
            self._schedule.hold(host, 0.0, crawl_delay)
        if isinstance(result, Turn):
            fetcher.let_go()
            self._schedule.again(ticket, requested=result is Turn.AGAIN)
            return
        if result.address:
            self._schedule.locate(host, result.address)
        delay = -1.0 if crawl_delay is None else crawl_delay
        fact = HostFact(host, result.address, delay, result.retry_after_seconds, result.seconds)
        if result.retry_after_seconds:
            self._schedule.hold(host, min(result.retry_after_seconds, _MAX_HOLD_SECONDS))
        failures = self._schedule.done(ticket, result.requested, result.outcome in _HOST_FAILURES)
        self._take_room(len(result.body))
        fetcher.let_go()
        self._to_mine.put(_Fetched(ticket.job, result, fact, self._sitemaps(visit, result, robots)))
        if failures >= _MAX_HOST_FAILURES or result.retry_after_seconds > _MAX_HOLD_SECONDS:
            self._give_up_host(host, result, fact)

    def _sitemaps(self, visit: Visit, result: FetchResult, robots: Robots) -> Sequence[ListedUrl]:
        """Those of the host, the first time that it is known which there are. A host that only serves sitemaps of
        others may be none of the crawl, so its own are not looked for."""
        if not visit.settings.sitemaps or visit.task.kind is not Kind.PAGE:
            return ()
        origin, has_robots = origin_of(visit.url), visit.settings.robots_control
        if self._origins.has(origin):
            return ()
        named = robots.sitemaps(origin) if has_robots else ()
        if named is None or (not has_robots and not result.status):  # it does not answer
            return ()
        return self._origins.news(origin, visit.task.depth, named)

    def _give_up_host(self, host: str, result: FetchResult, fact: HostFact) -> None:
        """The host does not answer: its other URLs go back, and the server decides when to try again."""
        for ticket in self._schedule.withdraw(host=host):
            skipped = FetchResult(ticket.visit.task, Outcome.SKIPPED, f"{host}: {result.detail}", requested=False)
            self._to_mine.put(_Fetched(ticket.job, skipped, fact))

    # --- datamine ----------------------------------------------------------------------------------------------

    def _mine_loop(self) -> None:
        while (fetched := self._to_mine.get()) is not None:
            active = self._jobs.of(fetched.job)
            page = self._services.filters.judge(self._mined(fetched.result, active.settings))
            if active.harvest.add(page, fetched.fact, fetched.sitemaps):
                self._outbox.order_squeeze(active)
            self._room.grow(-len(fetched.result.body))
            self._on_page(page)
            if active.harvest.is_complete or self._room.is_crowded:
                self._wake.set()

    def _mined(self, result: FetchResult, settings: JobSettings) -> MinedPage:
        """Of large pages one at a time, because mined they are huge."""
        large = self._mining_large if len(result.body) > _LARGE_PAGE_BYTES else contextlib.nullcontext()
        try:
            with large:
                if result.task.kind is not Kind.PAGE:
                    return listing.read(result, self._sitemaps_of, self._reader.read_sitemap)
                return mine(result, settings, self._reader)
        except Exception:  # a mistake of ours must cost this page only
            _log.exception("mining %s", result.task.url)
            return MinedPage(result.task, Outcome.INTERNAL, "the client made a mistake; its log has it")

    def _take_room(self, size: int) -> None:
        while not self._room.take(size, _TICK_SECONDS):
            self._wake.set()  # so that a cut is ordered
            if self._stopping.is_set():
                self._room.grow(size)
                return

    def _sitemaps_of(self, origin: str) -> Sequence[str] | None:
        with self._lock:
            return self._robots[1].sitemaps(origin) if self._robots else None

    # --- small things ------------------------------------------------------------------------------------------

    def _newest_settings(self) -> JobSettings:
        assert self._settings is not None, "came with the first job"
        return self._settings

    def _start(self, name: str, target: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=target, name=name, daemon=True)
        thread.start()
        return thread

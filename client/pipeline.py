"""The client's threads and the bounded queues between them. The stages themselves are plain functions and objects.

    run       (1)  asks for jobs, renews leases, orders cuts
    download  (N)  schedule -> fetcher -> to be mined
    datamine  (N)  to be mined -> miner -> harvest of the job; and some more that wait for pages that take long
    pack      (1)  harvest -> compressed while pages arrive, then bundles and report in the spool
    ship      (1)  spool -> FTP server, then URL server

A full queue, or no room for more pages, makes the stages before wait, back to the schedule: memory stays bounded
whatever the network does.
"""

import logging
import queue
import threading
from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import TypeVar

from client import listing
from client.bundler import Harvest
from client.coordinator import Coordinator
from client.downloads import Download, Fetched, failed
from client.fetcher import Visit
from client.jobs import ActiveJob, Jobs
from client.line import Line
from client.miner import mine
from client.outbox import Outbox, delivery_of
from client.patience import Stopped, level_of, wait_seconds
from client.reading.reader import MAX_LAID_ASIDE, Reader
from client.recent import RecentlySent
from client.results import FetchResult, MinedPage
from client.robots import Robots
from client.room import LARGE_BYTES, Room
from client.schedule import Schedule, Ticket
from client.services import Services
from common.errors import RemoteRefused, RemoteUnavailable
from common.loop import Loop
from common.urls import host_of
from common.wire import HostShare, Job, JobSettings, Kind, Outcome

_MAX_WAITING_URLS = 2_000  # in the schedule; with more, no job is asked for
_MAX_JOBS = 50  # a job stays until its last parcel is delivered, so this bounds what piles up when servers are away
_MAX_HARVEST_BYTES = 32 << 20  # a harvest with more is cut at once
_ROOM_BYTES = 40 << 20  # for pages that are fetched and not packed; with more, downloads wait
_TICK_SECONDS = 0.2
_MAX_TRIES = 3  # to report a page as failed
_STOP_FETCH_SECONDS = 10.0  # fetches under way get so long to end when the client stops
_T = TypeVar("_T")

_log = logging.getLogger(__name__)


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
        self._to_mine: queue.Queue[Fetched | None] = queue.Queue(maxsize=2 * pairs)
        self._room = Room(_ROOM_BYTES)
        self._recent = RecentlySent()
        self._line = Line(self._to_mine, pairs)
        self._reader = Reader(aside=self._line.aside)
        self._origins = listing.Origins(services.clock)
        self._mining_large = threading.Lock()
        self._jobs = Jobs(services.spool)
        self._outbox = Outbox(services, self._jobs, self._recent, self._newest_settings, self._wake)
        self._lock = threading.Lock()  # guards _robots
        self._robots: tuple[tuple[str, float], Robots] | None = None
        self._settings: JobSettings | None = None  # the newest; set by the run thread
        # Of the run thread: when to ask for a job (ticks), how often that failed in a row, and the name of the request.
        self._ask_at, self._failures, self._request = 0.0, 0, ""

    def stop(self) -> None:
        """Ask `run` to end. Not for signal handlers: see common.ending."""
        self._stopping.set()
        self._wake.set()

    def run(self) -> None:
        """Work until stopped. Everything that was finished is shipped or in the spool afterwards."""
        coordinator = self._services.coordinator()
        try:
            recovery = delivery_of(self._services, self._stopping)
            recovery.recover(self._services.caught)
            recovery.close()
        except Stopped:
            _log.info("stopped; what was in the spool is still there")
            return
        self._outbox.start()
        mining = self._pairs + MAX_LAID_ASIDE  # so that there are always as many at work as there are pairs
        mines = [self._begin_mining(number) for number in range(1, mining + 1)]
        downloads = [self._begin_download(number) for number in range(1, self._pairs + 1)]
        self._request = self._services.spool.request()
        coordinating: Loop[Coordinator] = self._loop("coordinate")
        coordinating.run(lambda: None if self._stopping.is_set() else coordinator, self._coordinate)
        self._end(coordinator, downloads, mines)

    def _loop(self, name: str) -> Loop[_T]:
        return Loop(name, self._services.caught, self._stopping.wait)

    def _begin(self, name: str, run: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=run, name=name, daemon=True)
        thread.start()
        return thread

    # --- the run thread ----------------------------------------------------------------------------------------

    def _coordinate(self, coordinator: Coordinator) -> None:
        """One turn: what is due, and a job if we want one. Then wait until there may be something new."""
        self._services.caught.save()
        self._order_cuts()
        self._renew(coordinator)
        if self._clock.ticks() >= self._ask_at and self._wants_work():
            try:
                job = coordinator.get_job(self._request, _MAX_WAITING_URLS)
                self._settings = job.settings
                self._accept(job)
            except (RemoteUnavailable, RemoteRefused) as error:
                self._failures += 1
                self._ask_at = self._clock.ticks() + self._retry_wait(self._failures, error)
                return
            self._failures, self._request = 0, self._services.spool.next_request()
            self._ask_at = self._clock.ticks() + (0.0 if job.tasks else job.wait_seconds)
        until_asking = self._ask_at - self._clock.ticks()
        if self._wake.wait(min(_TICK_SECONDS, until_asking) if until_asking > 0 else _TICK_SECONDS):
            self._wake.clear()
            self._ask_at = self._ask_at if self._failures else 0.0

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
        by_job = groupby(sorted(withdrawn, key=attrgetter("job")), key=attrgetter("job"))
        left = [(job, list(tickets)) for job, tickets in by_job]
        try:
            while left:
                job, tickets = left[-1]
                self._jobs.of(job).harvest.skip(ticket.visit.task for ticket in tickets)
                left.pop()
        except BaseException:  # then we ask for them after all
            self._schedule.add([ticket for _, tickets in left for ticket in tickets], ())
            raise
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
        active = ActiveJob(harvest, job.settings, job.lease_seconds, self._clock.ticks())
        shares = {share.host: share for share in job.hosts}
        hosts = [host_of(task.url) for task in job.tasks]
        tickets = [
            Ticket(job.job, Visit(task, shares.get(host) or HostShare(host, 1.0), job.settings))
            for task, host in zip(job.tasks, hosts, strict=True)
        ]
        self._jobs.add(active)
        try:
            self._schedule.add(tickets, job.hosts)
        except BaseException:  # the same job comes again: of this one nothing may be left
            self._schedule.withdraw(job=job.job)
            self._jobs.forget(active)
            raise

    def _order_cuts(self, everything: bool = False) -> None:
        active_jobs = self._jobs.all()
        due = [active for active in active_jobs if everything or active.harvest.is_due(_MAX_HARVEST_BYTES)]
        if not due and self._room.is_crowded:
            due = [max(active_jobs, key=lambda active: active.harvest.held)] if active_jobs else []
        for active in due:
            # At the end also when there is one: it may have been made before the last page came.
            if self._jobs.order_cut(active, again=everything):
                try:
                    self._outbox.order_cut(active)
                except BaseException:
                    self._jobs.cut_is_not_ordered(active)
                    raise

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
        dropped = len(self._schedule.withdraw(job=active.harvest.job))
        active.harvest.give_back(dropped)
        if dropped:
            _log.warning("job %s is lost (%s); %d URLs dropped", active.harvest.job, reason, dropped)
        if self._jobs.end_if_settled(active):
            self._wake.set()

    # --- the end -----------------------------------------------------------------------------------------------

    def _end(
        self, coordinator: Coordinator, downloads: list[threading.Thread], mines: list[threading.Thread]
    ) -> None:
        """Each step, whatever becomes of those before it."""
        steps = iter([
            lambda: self._end_fetching(downloads, mines),
            self._reader.close,
            self._services.filters.close,
            lambda: self._order_cuts(everything=True),
            self._outbox.end,
            lambda: self._give_back(coordinator),
            coordinator.close,
        ])  # fmt: skip
        ending: Loop[Callable[[], None]] = self._loop("end")
        ending.run(lambda: next(steps, None), lambda step: step())
        self._services.caught.save()

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

    def _begin_download(self, number: int) -> threading.Thread:
        download = Download(
            self._schedule, self._robots_of_now, self._origins, self._clock, self._take_room,
            lambda size: self._room.grow(-size), self._to_mine.put,
        )  # fmt: skip
        loop: Loop[Ticket] = self._loop("download")
        return self._begin(f"download {number}", lambda: loop.run(self._schedule.take, download.work, download.rescue))

    def _robots_of_now(self) -> Robots:
        with self._lock:
            assert self._robots is not None, "made with the first job"
            return self._robots[1]

    def _take_room(self, size: int) -> None:
        while not self._room.take(size, _TICK_SECONDS):
            self._wake.set()  # so that a cut is ordered
            if self._stopping.is_set():
                self._room.grow(size)
                return

    # --- datamine ----------------------------------------------------------------------------------------------

    def _begin_mining(self, number: int) -> threading.Thread:
        loop: Loop[Fetched] = self._loop("datamine")
        return self._begin(str(number), lambda: loop.run(self._line.take, self._mine, self._not_mined))

    def _mine(self, fetched: Fetched) -> None:
        active = self._jobs.of(fetched.job)
        self._count(fetched, active, self._services.filters.judge(self._mined(fetched.result, active.settings)))

    def _not_mined(self, fetched: Fetched, error: BaseException, tries: int) -> bool:
        """Something was raised over it: reported as failed, so that the server tries it again, but not for ever."""
        if not fetched.is_counted:
            active = self._jobs.of(fetched.job)
            if tries > _MAX_TRIES:  # not even that: the server has it back when the lease ends
                fetched.is_counted = True
                active.harvest.give_back(1)
                if self._jobs.end_if_settled(active):
                    self._wake.set()
            else:
                self._count(fetched, active, MinedPage(fetched.result.task, Outcome.INTERNAL, failed(error)))
        return True

    def _count(self, fetched: Fetched, active: ActiveJob, page: MinedPage) -> None:
        has_piece = active.harvest.add(page, fetched.fact, fetched.sitemaps)
        fetched.is_counted = True
        self._room.grow(-len(fetched.result.body))
        if has_piece:
            self._outbox.order_squeeze(active)
        if active.harvest.is_complete or self._room.is_crowded:
            self._wake.set()
        self._on_page(page)

    def _mined(self, result: FetchResult, settings: JobSettings) -> MinedPage:
        """Of large pages one at a time, because mined they are huge; but none waits while another process reads."""
        if len(result.body) <= LARGE_BYTES:
            return self._read(result, settings, None)
        with self._line.aside():  # small ones have their turn meanwhile
            self._mining_large.acquire()
        try:
            return self._read(result, settings, self._mining_large)
        finally:
            self._mining_large.release()

    def _read(self, result: FetchResult, settings: JobSettings, large: "threading.Lock | None") -> MinedPage:
        if result.task.kind is not Kind.PAGE:
            return listing.read(result, self._sitemaps_of, partial(self._reader.read_sitemap, held=large))
        return mine(result, settings, self._reader, large)

    def _sitemaps_of(self, origin: str) -> Sequence[str] | None:
        with self._lock:
            return self._robots[1].sitemaps(origin) if self._robots else None

    # --- small things ------------------------------------------------------------------------------------------

    def _newest_settings(self) -> JobSettings:
        assert self._settings is not None, "came with the first job"
        return self._settings

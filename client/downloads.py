"""One download thread's work: a visit from the schedule, a step further by one request, and its result to be mined.

A visit that is taken from the schedule comes to an end, whatever is raised on the way: it is back in the schedule, or
its result is passed on, be it that we failed.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from client import listing
from client.fetcher import Fetcher, Turn, Visit, sender, user_agent
from client.results import FetchResult
from client.robots import Robots
from client.schedule import Schedule, Ticket
from client.transport import Transport
from common import VERSION
from common.clock import Clock
from common.loop import in_words
from common.urls import host_of, origin_of
from common.wire import HostFact, Kind, ListedUrl, Outcome

_HOST_FAILURES = (Outcome.DNS, Outcome.REFUSED, Outcome.TIMEOUT, Outcome.TLS)
_MAX_HOST_FAILURES = 3  # in a row, then the host's other URLs are not tried now
_MAX_HOLD_SECONDS = 60.0  # a host that asks for a longer pause gets it from the server: its URLs go back


@dataclass(slots=True, eq=False)
class Fetched:
    """What passes from download to datamine."""

    job: str
    result: FetchResult
    fact: HostFact
    sitemaps: Sequence[ListedUrl] = ()  # of its host, if they were not told before
    is_counted: bool = False  # its job has it


def failed(error: BaseException) -> str:
    """What is told of a URL when something was raised over it."""
    return f"the client failed, see its log: {in_words(error)}"


@dataclass(slots=True)
class _InHand:
    """What is done with a ticket already, so that nothing is done twice when the rest fails."""

    is_back: bool = False  # in the schedule
    is_passed_on: bool = False
    room: int = 0  # taken, and not passed on with the body


class Download:
    """The work of one thread; `schedule`, `robots` and `origins` are shared by all. `give_room` takes a negative size
    back; `pass_on` may wait."""

    def __init__(
        self,
        schedule: Schedule,
        robots: Callable[[], Robots],
        origins: listing.Origins,
        clock: Clock,
        take_room: Callable[[int], None],
        give_room: Callable[[int], None],
        pass_on: Callable[[Fetched], None],
    ) -> None:
        self._schedule = schedule
        self._robots = robots
        self._origins = origins
        self._clock = clock
        self._take_room = take_room
        self._give_room = give_room
        self._pass_on = pass_on
        self._fetcher: Fetcher | None = None
        self._made_for: tuple[object, ...] = ()
        self._hand = _InHand()
        self._skipped: deque[Fetched] = deque()  # of hosts that were given up, to be passed on

    def work(self, ticket: Ticket) -> None:
        """Make one request for it."""
        self._hand = _InHand()
        robots = self._robots()
        fetcher = self._fetcher_for(ticket.visit, robots)
        self._hand_over(ticket, fetcher.turn(ticket.visit), fetcher, robots)

    def rescue(self, ticket: Ticket, error: BaseException, tries: int) -> bool:
        """Something was raised over it: its URL has failed, the host's other URLs go on."""
        hand = self._hand
        if self._fetcher is not None:
            fetcher, self._fetcher = self._fetcher, None  # nobody knows what state it is in
            fetcher.close()
        if not hand.is_back:
            self._schedule.drop(ticket)
            if not hand.is_passed_on:
                self._give_room(hand.room)
                hand.room = 0
                result = FetchResult(ticket.visit.task, Outcome.INTERNAL, failed(error))
                self._pass(Fetched(ticket.job, result, HostFact(host_of(ticket.visit.task.url))))
        self._pass_skipped()
        return True

    def _fetcher_for(self, visit: Visit, robots: Robots) -> Fetcher:
        settings = visit.settings
        wanted = (settings.agent_name, settings.contact, settings.verify_tls, robots)
        if self._fetcher is None or self._made_for != wanted:
            agent = user_agent(settings.agent_name, VERSION, settings.contact)
            transport = Transport(agent, sender(settings.contact), settings.verify_tls)
            self._fetcher, self._made_for = Fetcher(transport, robots, self._clock), wanted
        return self._fetcher

    def _hand_over(self, ticket: Ticket, result: FetchResult | Turn, fetcher: Fetcher, robots: Robots) -> None:
        visit = ticket.visit
        host = host_of(visit.task.url)
        crawl_delay = robots.crawl_delay(origin_of(visit.url)) if visit.settings.robots_control else None
        if crawl_delay:
            self._schedule.hold(host, 0.0, crawl_delay)
        if isinstance(result, Turn):
            fetcher.let_go()
            self._schedule.again(ticket, requested=result is Turn.AGAIN)
            self._hand.is_back = True
            return
        if result.address:
            self._schedule.locate(host, result.address)
        delay = -1.0 if crawl_delay is None else crawl_delay
        fact = HostFact(host, result.address, delay, result.retry_after_seconds, result.seconds)
        if result.retry_after_seconds:
            self._schedule.hold(host, min(result.retry_after_seconds, _MAX_HOLD_SECONDS))
        failures = self._schedule.done(ticket, result.requested, result.outcome in _HOST_FAILURES)
        self._take_room(len(result.body))
        self._hand.room = len(result.body)
        fetcher.let_go()
        self._pass(Fetched(ticket.job, result, fact, self._sitemaps(visit, result, robots)))
        if failures >= _MAX_HOST_FAILURES or result.retry_after_seconds > _MAX_HOLD_SECONDS:
            self._give_up_host(host, result, fact)

    def _pass(self, fetched: Fetched) -> None:
        self._pass_on(fetched)
        self._hand.is_passed_on = True

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
        detail = f"{host}: {result.detail}"
        for ticket in self._schedule.withdraw(host=host):
            skipped = FetchResult(ticket.visit.task, Outcome.SKIPPED, detail, requested=False)
            self._skipped.append(Fetched(ticket.job, skipped, fact))
        self._pass_skipped()

    def _pass_skipped(self) -> None:
        while self._skipped:
            self._pass_on(self._skipped[0])
            self._skipped.popleft()

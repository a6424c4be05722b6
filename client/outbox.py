"""What leaves the client: two threads that pack what was harvested, and deliver it. See client.pipeline for the whole.

    pack      (1)  harvest -> compressed while pages arrive, then bundles and report in the spool
    ship      (1)  spool -> FTP server, then URL server
"""

import logging
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass

from client.delivery import Delivery
from client.jobs import ActiveJob, Jobs
from client.patience import Stopped
from client.recent import RecentlySent
from client.services import Services
from client.spool import Parcel
from common.errors import ConfigError
from common.loop import Loop, in_words
from common.wire import JobSettings

_MAX_PARCELS = 8  # packed and not shipped yet; then packing waits
_STOP_SHIP_SECONDS = 30.0  # at the end: for packing, and for shipping; what is not shipped then stays in the spool
_WAIT_SECONDS = 0.5  # until a queue that is full is looked at again
_MAX_TRIES = 3  # of a step that a mistake of ours ends; then another way is tried, as often
_MAX_TRIES_TO_REMOVE = 8  # what is delivered: some 15 seconds
# About the machine and what a person has set, not about a parcel: tried again until it works.
_PASSING_TROUBLE = (OSError, MemoryError, ConfigError)

_log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class _Order:
    """What the packing thread shall do, and then the shipping thread with the parcel. Each step is noted, so that none
    is done twice when a later one must be tried again."""

    active: ActiveJob
    is_cut: bool  # else it only compresses what is there
    is_packed: bool = False
    parcel: Parcel | None = None  # None: there was nothing to pack
    spoilt: str = ""  # why its pages are reported as failed, and not uploaded
    is_shipped: bool = False
    is_settled: bool = False

    @property
    def job(self) -> str:
        return self.active.harvest.job


def delivery_of(services: Services, stopped: threading.Event) -> Delivery:
    """For one thread, which closes it."""
    coordinator, uploader = services.coordinator(), services.uploader
    return Delivery(services.spool, coordinator, uploader, stopped, services.max_wait_seconds)


class Outbox:
    """Takes orders from any thread. `wake` is set when there may be something new to do for the run thread."""

    def __init__(
        self,
        services: Services,
        jobs: Jobs,
        recent: RecentlySent,
        settings: Callable[[], JobSettings],
        wake: threading.Event,
    ) -> None:
        self._services = services
        self._jobs = jobs
        self._recent = recent
        self._settings = settings
        self._wake = wake
        self._abandoned = threading.Event()  # nothing is shipped any more
        self._delivery: Delivery | None = None  # of the shipping thread
        self._to_pack: queue.Queue[_Order | None] = queue.Queue()  # bounded by the room for pages
        self._to_ship: queue.Queue[_Order | None] = queue.Queue(maxsize=_MAX_PARCELS)
        self._pack_thread = threading.Thread(target=self._pack_loop, name="pack", daemon=True)
        self._ship_thread = threading.Thread(target=self._ship_loop, name="ship", daemon=True)

    def start(self) -> None:
        self._pack_thread.start()
        self._ship_thread.start()

    @property
    def is_full(self) -> bool:
        """Shipping does not keep up."""
        return self._to_ship.full()

    def order_cut(self, active: ActiveJob) -> None:
        """Make a parcel of what the job has harvested, and deliver it."""
        self._to_pack.put(_Order(active, is_cut=True))

    def order_squeeze(self, active: ActiveJob) -> None:
        """Compress what can be compressed already."""
        self._to_pack.put(_Order(active, is_cut=False))

    def end(self) -> None:
        """Do what is ordered, for a while; what is packed and not shipped then stays in the spool."""
        for orders, thread in ((self._to_pack, self._pack_thread), (self._to_ship, self._ship_thread)):
            # Packing, too: it waits while shipping does not get on.
            abandon = threading.Timer(_STOP_SHIP_SECONDS, self._abandoned.set)
            abandon.daemon = True
            abandon.start()
            _put_while(thread.is_alive, orders, None)
            thread.join()
            abandon.cancel()

    # --- pack --------------------------------------------------------------------------------------------------

    def _pack_loop(self) -> None:
        loop: Loop[_Order] = Loop("pack", self._services.caught, self._abandoned.wait)
        loop.run(self._to_pack.get, self._pack, self._not_packed)

    def _pack(self, order: _Order) -> None:
        harvest = order.active.harvest
        if not order.is_cut:
            harvest.squeeze()
            return
        if not order.is_packed:
            order.parcel = harvest.cut()
            order.is_packed = True
            self._jobs.cut(order.active)
        if order.parcel is None:
            self._settle(order)
        else:
            _put_while(lambda: not self._abandoned.is_set(), self._to_ship, order)

    def _not_packed(self, order: _Order, error: BaseException, tries: int) -> bool:
        harvest = order.active.harvest
        if not order.is_cut:
            return True  # it stays as it is until the cut
        if self._abandoned.is_set():
            _log.warning("pages of job %s are given up, because they cannot be packed", order.job)
            return True
        if tries < _MAX_TRIES or isinstance(error, _PASSING_TROUBLE):
            return False
        if order.is_packed or tries >= 2 * _MAX_TRIES:
            harvest.drop()
            order.is_packed = True
            self._jobs.cut(order.active)
            self._settle(order)
            return True
        harvest.spoil(in_words(error))
        return False

    # --- ship --------------------------------------------------------------------------------------------------

    def _ship_loop(self) -> None:
        loop: Loop[_Order] = Loop("ship", self._services.caught, self._abandoned.wait)
        loop.run(self._next_to_ship, self._ship, self._not_shipped)
        if self._delivery is not None:
            self._delivery.close()

    def _next_to_ship(self) -> _Order | None:
        if self._delivery is None and not self._abandoned.is_set():
            self._delivery = delivery_of(self._services, self._abandoned)  # what it raises costs a turn of the loop
        return self._to_ship.get()

    def _ship(self, order: _Order) -> None:
        assert order.parcel is not None
        if order.is_shipped:
            self._settle(order)
            return
        try:
            if self._delivery is None or self._abandoned.is_set():
                raise Stopped
            receipt = self._delivery.deliver(order.parcel, self._settings, self._recent, order.spoilt)
        except Stopped:
            _log.warning("a parcel of job %s stays in the spool until the next start", order.job)
            return
        order.is_shipped = True
        if receipt is not None and receipt.new_urls:
            self._wake.set()
        self._settle(order)

    def _not_shipped(self, order: _Order, error: BaseException, tries: int) -> bool:
        """It is still in the spool, and tried again; one that we make a mistake with each time is not stored."""
        if self._delivery is None or self._abandoned.is_set():
            _log.warning("a parcel of job %s stays in the spool until the next start", order.job)
            return True
        assert order.parcel is not None
        is_passing = isinstance(error, _PASSING_TROUBLE)
        if tries >= _MAX_TRIES and not is_passing:
            order.spoilt = in_words(error)
        if self._delivery.has_told(order.parcel):  # left there it does no harm: the next start delivers it again
            is_at_its_end = tries >= _MAX_TRIES_TO_REMOVE
        else:
            is_at_its_end = tries >= 2 * _MAX_TRIES and not is_passing
        if is_at_its_end:
            self._settle(order)
        return is_at_its_end

    def _settle(self, order: _Order) -> None:
        if not order.is_settled:
            order.is_settled = True
            if self._jobs.delivered(order.active):
                self._wake.set()


def _put_while(is_right: Callable[[], bool], orders: "queue.Queue[_Order | None]", order: _Order | None) -> None:
    """Put it there, as long as it is right to wait for a queue that is full."""
    while is_right():
        try:
            orders.put(order, timeout=_WAIT_SECONDS)
            return
        except queue.Full:
            continue

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
from common.wire import JobSettings

_MAX_PARCELS = 8  # packed and not shipped yet; then packing waits
_STOP_SHIP_SECONDS = 30.0  # at the end: for packing, and for shipping; what is not shipped then stays in the spool
_NO_ROOM_SECONDS = 2.0  # until we look again whether the disk takes something

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Order:
    """What the packing thread shall do."""

    active: ActiveJob
    is_cut: bool  # else it only compresses what is there


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
        self._to_pack: queue.Queue[_Order | None] = queue.Queue()  # bounded by the room for pages
        self._to_ship: queue.Queue[tuple[Parcel, ActiveJob] | None] = queue.Queue(maxsize=_MAX_PARCELS)
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
            orders.put(None)
            thread.join()
            abandon.cancel()

    def _pack_loop(self) -> None:
        while (order := self._to_pack.get()) is not None:
            if order.is_cut:
                self._cut(order.active)
            else:
                order.active.harvest.squeeze()

    def _cut(self, active: ActiveJob) -> None:
        try:
            parcel = self._packed(active)
        except Stopped:
            _log.warning("pages of job %s are given up, because they cannot be packed", active.harvest.job)
            return
        self._jobs.cut(active)
        if parcel is None:
            self._delivered(active)
            return
        while not self._abandoned.is_set():
            try:
                self._to_ship.put((parcel, active), timeout=1.0)
                return
            except queue.Full:
                continue

    def _packed(self, active: ActiveJob) -> Parcel | None:
        while True:
            try:
                return active.harvest.cut()
            except OSError as error:  # such as a full disk: wait for room, nothing is lost meanwhile
                _log.error("job %s cannot be packed: %s", active.harvest.job, error)
                if self._abandoned.wait(_NO_ROOM_SECONDS):
                    raise Stopped from error

    def _ship_loop(self) -> None:
        delivery = delivery_of(self._services, self._abandoned)
        while (item := self._to_ship.get()) is not None:
            parcel, active = item
            try:
                if self._abandoned.is_set():
                    raise Stopped
                receipt = delivery.deliver(parcel, self._settings, self._recent)
            except Stopped:
                _log.warning("a parcel of job %s stays in the spool until the next start", parcel.job)
                continue
            if receipt is not None and receipt.new_urls:
                self._wake.set()
            self._delivered(active)
        delivery.close()

    def _delivered(self, active: ActiveJob) -> None:
        if self._jobs.delivered(active):
            self._wake.set()

"""The jobs that this process has, from the moment they are handed out until their last parcel is delivered."""

import threading
from dataclasses import dataclass

from client.bundler import Harvest
from client.spool import Spool
from common.wire import JobSettings


@dataclass(slots=True, eq=False)
class ActiveJob:
    """One job. `renewed` belongs to the run thread; what follows it is guarded by the lock of Jobs."""

    harvest: Harvest
    settings: JobSettings
    lease_seconds: float
    renewed: float  # ticks
    is_cut: bool = False  # a cut is ordered and not made yet
    parcels: int = 0  # ordered or made, and not delivered yet


class Jobs:
    """All jobs that are not settled. Thread-safe."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._lock = threading.Lock()  # guards _jobs and what is in them
        self._jobs: dict[str, ActiveJob] = {}

    def add(self, active: ActiveJob) -> None:
        with self._lock:
            self._jobs[active.harvest.job] = active

    def forget(self, active: ActiveJob) -> None:
        """It was added by mistake; the server has it still."""
        with self._lock:
            if self._jobs.get(active.harvest.job) is active:
                del self._jobs[active.harvest.job]

    def of(self, job: str) -> ActiveJob:
        """A job is there until all its URLs are."""
        with self._lock:
            return self._jobs[job]

    def all(self) -> list[ActiveJob]:
        with self._lock:
            return list(self._jobs.values())

    def order_cut(self, active: ActiveJob, again: bool) -> bool:
        """Note that a cut is ordered. False if one is ordered already, unless it shall be made `again`."""
        with self._lock:
            if active.is_cut and not again:
                return False
            active.is_cut = True
            active.parcels += 1
            return True

    def cut_is_not_ordered(self, active: ActiveJob) -> None:
        """After all."""
        with self._lock:
            active.is_cut = False
            active.parcels -= 1

    def cut(self, active: ActiveJob) -> None:
        """The cut is made; another one may be ordered."""
        with self._lock:
            active.is_cut = False

    def delivered(self, active: ActiveJob) -> bool:
        """One parcel has reached its end; True if this ends the job."""
        with self._lock:
            active.parcels -= 1
        return self.end_if_settled(active)

    def end_if_settled(self, active: ActiveJob) -> bool:
        """Forget the job if nothing of it is left to do."""
        with self._lock:
            if not active.harvest.is_settled or active.parcels or self._jobs.pop(active.harvest.job, None) is None:
                return False
        self._spool.end(active.harvest.job)
        return True

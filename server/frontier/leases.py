"""The leases that are out, in memory: per job how many URLs of which host are unfinished."""

from collections import Counter
from dataclasses import dataclass, field

from server.frontier.records import JobRecord


@dataclass(slots=True)
class Lease:
    """A job that is out. Changed only by the frontier, under its lock."""

    record: JobRecord
    remaining: Counter[int] = field(default_factory=Counter)  # host -> unfinished URLs

    @property
    def job(self) -> int:
        return self.record.job

    @property
    def client(self) -> str:
        return self.record.client


class Leases:
    """All leases that are out."""

    def __init__(self) -> None:
        self._by_job: dict[int, Lease] = {}

    def __len__(self) -> int:
        return len(self._by_job)

    def add(self, lease: Lease) -> None:
        self._by_job[lease.job] = lease

    def get(self, job: int) -> Lease | None:
        return self._by_job.get(job)

    def remove(self, job: int) -> None:
        self._by_job.pop(job, None)

    def of_request(self, client: str, request: str) -> Lease | None:
        """The lease that answered this very request already, if it is still out."""
        leases = (lease for lease in self._by_job.values() if lease.client == client)
        return next((lease for lease in leases if request and lease.record.request == request), None)

    def overdue(self, now: float) -> list[Lease]:
        return [lease for lease in self._by_job.values() if lease.record.deadline <= now]

    def holds(self, client: str, host: int) -> bool:
        """Whether the client has an unfinished URL of the host in any job."""
        return any(lease.remaining[host] > 0 for lease in self._by_job.values() if lease.client == client)

    def clients(self) -> set[str]:
        return {lease.client for lease in self._by_job.values()}

"""The leases that are out, in memory: which job has which URLs. Bounded by what clients can hold, not by the crawl."""

from collections.abc import Iterator

from server.frontier.records import JobRecord, Task


class Lease:
    """A job that is out. Changed only by the frontier, under its lock."""

    __slots__ = ("record", "tasks")

    def __init__(self, record: JobRecord, tasks: dict[str, Task]) -> None:
        self.record = record
        self.tasks = tasks  # unfinished ones, by address

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
        if not request:
            return None
        leases = (lease for lease in self._by_job.values() if lease.client == client)
        return next((lease for lease in leases if lease.record.request == request), None)

    def overdue(self, now: float) -> list[Lease]:
        return [lease for lease in self._by_job.values() if lease.record.deadline <= now]

    def holder_of(self, url: str) -> Lease | None:
        """Who has this URL."""
        return next((lease for lease in self._by_job.values() if url in lease.tasks), None)

    def clients(self) -> set[str]:
        return {lease.client for lease in self._by_job.values()}

    def __iter__(self) -> Iterator[Lease]:
        return iter(list(self._by_job.values()))

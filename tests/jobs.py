"""What the frontier of a work folder calls its jobs, for tests that upload in their name."""

from pathlib import Path

from common.settings import Settings
from server.frontier.jobnames import JobNames
from server.opening import reading_store


def job_name(folder: Path, number: int = 1) -> str:
    """The name of a job, whether it exists yet or not."""
    with reading_store(Settings(folder)) as store:
        assert store is not None, f"there is no frontier in {folder}"
        return JobNames.of(store).name(number)

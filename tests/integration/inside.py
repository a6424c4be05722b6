"""One client's pipeline inside the test, where its calls can be made to fail."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from client.coordinator import Coordinator
from client.pipeline import Pipeline
from client.results import MinedPage
from client.services import Services
from client.spool import Spool
from client.uploader import Uploader
from common.clock import SystemClock
from common.loop import Caught
from common.wire import JobSettings
from tests.integration.cluster import Cluster


@contextmanager
def working(
    cluster: Cluster,
    folder: Path,
    on_page: Callable[[MinedPage], None] = lambda page: None,
    caught: Caught | None = None,
) -> Iterator[Pipeline]:
    """A pipeline in a thread of its own; stopped at the end of the block, and then it has ended."""

    def uploader(settings: JobSettings) -> Uploader:
        return Uploader(settings.ftp_host, settings.ftp_port, settings.ftp_user, settings.ftp_password)

    services = Services(
        lambda: Coordinator(cluster.url, "inside"), uploader, Spool(folder), SystemClock(), max_wait_seconds=0.2,
        caught=caught or Caught(),
    )  # fmt: skip
    it = Pipeline(services, 3, on_page)
    thread = threading.Thread(target=it.run)
    thread.start()
    try:
        yield it
    finally:
        it.stop()
        thread.join(60)
        assert not thread.is_alive(), "stop does not wait for ever"

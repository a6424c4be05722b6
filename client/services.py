"""What a client's pipeline needs of the world around it."""

from collections.abc import Callable
from dataclasses import dataclass, field

from client.coordinator import Coordinator
from client.filtering.filters import Filters
from client.spool import Spool
from client.uploader import Uploader
from common.clock import Clock
from common.loop import Caught
from common.wire import JobSettings


@dataclass(frozen=True, slots=True)
class Services:
    """How to reach the servers, and where things are kept."""

    coordinator: Callable[[], Coordinator]  # one for each thread that talks to the URL server
    uploader: Callable[[JobSettings], Uploader]
    spool: Spool
    clock: Clock
    max_wait_seconds: float
    filters: Filters = field(default_factory=Filters)
    caught: Caught = field(default_factory=Caught)  # by all loops of the process

"""Opens the frontier of a work folder as its settings say: for the URL server, and for an operator without one."""

import json
from collections.abc import Sequence

from common.clock import Clock
from common.config import Settings
from server.frontier.frontier import Frontier, Rules
from server.frontier.rocks import RocksStore
from server.frontier.store import Store, Table
from server.policy.scope import Policy, policy_of

STORE_FOLDER = "frontier"
_START_URLS_KEY = b"start urls"


def open_frontier(settings: Settings, clock: Clock, starts: Sequence[str] = ()) -> Frontier:
    """The frontier in the work folder. StoreError if it is in use or damaged."""
    store = RocksStore(settings.memory / STORE_FOLDER)
    return Frontier(store, _policy(settings, store, starts), _rules(settings), clock)


def _policy(settings: Settings, store: Store, starts: Sequence[str]) -> Policy:
    """A continued crawl keeps the start URLs that it had before: its scope must not shrink."""
    before = json.loads(store.get(Table.META, _START_URLS_KEY) or b"[]")
    all_starts = list(dict.fromkeys([*before, *starts]))
    store.write([(Table.META, _START_URLS_KEY, json.dumps(all_starts).encode())])
    return policy_of(settings.url_server, all_starts)


def _rules(settings: Settings) -> Rules:
    server = settings.url_server
    return Rules(
        delay_seconds=server.delay,
        max_crawl_delay_seconds=server.max_crawl_delay,
        connections_per_host=server.connections_per_host,
        lease_seconds=server.lease_seconds,
        retry_wait_seconds=server.retry_wait,
        max_pages=server.max_pages,
        drop_index_names=server.drop_index_names,
        allow_private=server.allow_private,
        durability=server.durability,
    )

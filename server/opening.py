"""Opens the frontier of a work folder: for the URL server as its settings say, for an operator as the server had it;
and tells others what rules it has."""

import json
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any, NamedTuple

from common.clock import Clock
from common.settings import Settings, UrlServerSettings
from server.frontier.frontier import Frontier, Rules
from server.frontier.rocks import RocksStore, is_store
from server.frontier.starts import known_starts
from server.frontier.store import Store, Table
from server.frontier.visits import Period
from server.policy.policy import Policy, policy_of

STORE_FOLDER = "frontier"
ADDRESS_NAME = "urlServer.address"  # beside it: where the server that has it open can be called
_HOUR = 3_600.0  # seconds
_log = logging.getLogger(__name__)
_RULES_KEY, _POLICY_KEY = b"rules", b"policy"  # in the table META: what urlServer ran with last, as JSON


class LastPolicy(NamedTuple):
    """The rules that a crawl had last, and its start URLs, which they do not hold for."""

    policy: Policy
    rules: Rules
    starts: list[str]


def open_frontier(
    settings: Settings,
    clock: Clock,
    starts: Iterable[str] = (),
    one_round: bool = False,
    take_in: Callable[[Frontier, Iterable[str]], object] = lambda frontier, starts: frontier.widen(list(starts)),
) -> Frontier:
    """The frontier in the work folder, widened by further start URLs, or what else is to be done with them. StoreError
    if it is in use or damaged. `one_round`: see `Rules`."""
    store = open_store(settings)
    # A continued crawl keeps the start URLs that it had before: its scope must not shrink.
    policy = policy_of(settings.url_server, known_starts(store))
    rules = _as_begun(store, replace(_rules(settings), one_round=one_round))
    store.write([(Table.META, _RULES_KEY, json.dumps(asdict(rules)).encode())])
    frontier = Frontier(store, policy, rules, clock)
    if not frontier.totals().known:  # nothing that other rules have let in
        _note_policy(store, policy)
    take_in(frontier, starts)
    _enforce(store, frontier, policy)
    return frontier


def _as_begun(store: Store, rules: Rules) -> Rules:
    """What is the same page must stay as it was: URLs are known by that, and pages stored under it."""
    known = _known_rules(store)
    if not known:
        return rules
    begun = replace(rules, **{name: known[name] for name in ("drop_index_names", "few_index_names")})
    if begun.drop_index_names != rules.drop_index_names:
        _log.warning(
            "drop_index_names = %d is for new crawls: this one began with %d, and goes on so",
            rules.drop_index_names,
            begun.drop_index_names,
        )
    return begun


def _enforce(store: Store, frontier: Frontier, policy: Policy) -> None:
    """Rules that have changed since the last time count for what is queued, too. They are noted when that is done."""
    if store.get(Table.META, _POLICY_KEY) != _packed(policy):
        if excluded := frontier.narrow():
            _log.info("%d URLs that were queued do not belong to the crawl any more", excluded)
        _note_policy(store, policy)


def _note_policy(store: Store, policy: Policy) -> None:
    store.write([(Table.META, _POLICY_KEY, _packed(policy))])


def _packed(policy: Policy) -> bytes:
    return json.dumps(policy.as_stored()).encode()


def open_store(settings: Settings) -> RocksStore:
    """The tables below it, for who must mend them before a frontier can work on them."""
    return RocksStore(settings.memory / STORE_FOLDER)


def reopened(store: Store, settings: Settings, clock: Clock) -> Frontier:
    """The frontier for an operator while urlServer is stopped. Options on the command line of the server counted for
    what is stored, so they count here, too."""
    return Frontier(store, *_last(store, settings), clock)


@contextmanager
def reading_store(settings: Settings) -> Iterator[Store | None]:
    """The tables as they are now, whether urlServer runs or not: it is not held up. None if there are none here."""
    folder = settings.memory / STORE_FOLDER
    if not is_store(folder):  # opening would make an empty one
        yield None
        return
    store = RocksStore(folder, read_only=True)
    try:
        yield store
    finally:
        store.close()


def last_policy(store: Store, settings: Settings) -> LastPolicy:
    """What urlServer ran with last, or runs with."""
    return LastPolicy(*_last(store, settings), list(known_starts(store)))


def _last(store: Store, settings: Settings) -> tuple[Policy, Rules]:
    policy = Policy.restored(_known(store, _POLICY_KEY, {}), known_starts(store))
    return policy, replace(_rules(settings), **_known_rules(store))


def _known_rules(store: Store) -> dict[str, Any]:
    """What urlServer ran with last; nothing if it never did."""
    known = _known(store, _RULES_KEY, {})
    if not known:
        return {}
    if "period" in known:
        known["period"] = Period(**known["period"])
    return {"few_index_names": True, **known}  # before that was noted, they were few


def _known(store: Store, key: bytes, default: Any) -> Any:
    packed = store.get(Table.META, key)
    return default if packed is None else json.loads(packed)


def _rules(settings: Settings) -> Rules:
    server = settings.url_server
    return Rules(
        delay_seconds=server.delay,
        max_crawl_delay_seconds=server.max_crawl_delay,
        connections_per_host=server.connections_per_host,
        lease_seconds=server.lease_seconds,
        retry_wait_seconds=server.retry_wait,
        traversal=server.traversal,
        max_pages=server.max_pages,
        max_pages_per_host=server.max_pages_per_host,
        max_bytes=server.max_bytes,
        max_time_seconds=server.max_time,
        drop_index_names=server.drop_index_names,
        allow_private=server.allow_private,
        durability=server.durability,
        period=period_of(server),
        sitemaps=server.sitemaps,
    )


def period_of(server: UrlServerSettings) -> Period:
    """The settings in seconds."""
    shortest, longest = server.period_min * _HOUR, server.period_max * _HOUR
    if isinstance(server.period, str):
        return Period(is_adaptive=True, shortest=shortest, longest=longest)
    return Period(server.period * _HOUR, shortest=shortest, longest=longest)

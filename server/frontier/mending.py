"""What an operator or an audit makes good: failed URLs are tried again, URLs whose page is stored are done, and those
whose page is gone are unknown again."""

from collections.abc import Iterable

from common.urls import host_of, resolve
from common.wire import Outcome, UrlResult
from server.frontier.change import Change
from server.frontier.core import Core
from server.frontier.hosts import Host
from server.frontier.records import Entry, FailedRecord, State, UrlState, key_of_identity, pack_entry, waiting_key
from server.frontier.store import Table


def mark_stored(core: Core, change: Change, pages: Iterable[tuple[bytes, str]]) -> int:
    """Settle URLs (key, address) as stored that are queued, outside or unknown, not leased ones; returns how many."""
    return sum(_mark(core, change, key, url) for key, url in dict(pages).items())


def _mark(core: Core, change: Change, key: bytes, url: str) -> bool:
    packed = core.store.get(Table.URLS, key)
    if packed is None:
        host = _made(core, change, url)
        host.known += 1
        change.counts["known"] += 1
    else:
        state = UrlState.unpacked(packed)
        host = change.touch(core.hosts.by_id(state.place.host))
        if state.was_stored or not _taken_out(core, change, host, state):
            return False
    now = core.clock.now()
    core.visits.begin(change, key, Entry(url, 1, 0, 0), UrlResult(url, Outcome.STORED), now)  # no start URL, perhaps
    change.finish(host, key, Outcome.STORED, now)
    return True


def _taken_out(core: Core, change: Change, host: Host, state: UrlState) -> bool:
    """Take a URL out of its state, if nobody has asked for it yet as far as is known."""
    if state.is_outside:
        host.excluded -= 1
        change.counts["excluded"] -= 1
        return True
    where = _entry_of(core, state)
    if where is None:
        return False
    change.delete(*where)
    _count_out(change, host, state)
    host.sitemaps -= state.is_sitemap
    return True


def _count_out(change: Change, host: Host, state: UrlState) -> None:
    """A queued URL is not queued any more."""
    waits = state.state is State.WAITING
    host.queued -= 1
    host.waiting -= waits
    change.counts["queued"] -= 1
    if state.is_apart:
        host.again_waiting -= waits
        change.count_again(host, queued=-1)


def _made(core: Core, change: Change, url: str) -> Host:
    name = host_of(url)
    return change.touch(core.hosts.get_or_make([name])[name])


def _entry_of(core: Core, state: UrlState) -> tuple[Table, bytes] | None:
    """Where the entry of a queued URL stands; None if it is in another state."""
    if state.state is State.WAITING:
        return Table.WAITING, waiting_key(state.due, state.place)
    if state.state is not State.QUEUED:
        return None
    table, where = Table.AGAIN if state.is_apart else Table.QUEUE, state.place.packed()
    return None if core.store.get(table, where) is None else (table, where)


def forget(core: Core, change: Change, keys: Iterable[bytes]) -> int:
    """Make done URLs unknown, so that they are taken in when they are found again; returns how many."""
    number = 0
    for key in dict.fromkeys(keys):
        host = _without_page(core, change, key)
        if host is not None:
            host.known -= 1
            change.counts["known"] -= 1
            change.delete(Table.URLS, key)
            number += 1
    return number


def crawl_again(core: Core, change: Change, pages: Iterable[tuple[bytes, str]]) -> int:
    """Queue done URLs (key, address) whose page is gone; returns how many there were."""
    number = 0
    for key, url in dict(pages).items():
        host = _without_page(core, change, key)
        if host is not None:
            host.queued += 1
            change.counts["queued"] += 1
            own_key = b"" if key_of_identity(url) == key else key
            change.enqueue(host, core.order.next(host, 0), key, pack_entry(url, 0, 0, 0, own_key))
            number += 1
    return number


def _without_page(core: Core, change: Change, key: bytes) -> Host | None:
    """Take a URL out of its state that is done, or waits for another visit. None if it is in any other."""
    packed = core.store.get(Table.URLS, key)
    state = UrlState.unpacked(packed) if packed else None
    if state is None or not state.is_visited:
        return None
    where = None if state.state is State.DONE else _entry_of(core, state)
    if state.state is not State.DONE and where is None:  # leased
        return None
    host = change.touch(core.hosts.by_id(state.place.host))
    if where is None:
        host.done -= 1
        change.counts["done"] -= 1
    else:
        change.delete(*where)
        _count_out(change, host, state)
    host.sitemaps -= state.is_sitemap
    host.stored -= state.has_page
    change.counts["stored"] -= state.has_page
    core.visits.end(change, key)
    return host


def retry(core: Core, change: Change, urls: Iterable[str]) -> int:
    """Queue failed URLs again, as if they had never been tried; returns how many."""
    addresses = (address for url in urls if (address := resolve(url)))
    keys = dict.fromkeys(core.view.key(address) for address in addresses)  # one of many spellings once
    return sum(_retried(core, change, key) for key in keys)


def _retried(core: Core, change: Change, key: bytes) -> bool:
    packed = core.store.get(Table.FAILED, key)
    if packed is None:
        return False
    record = FailedRecord.unpacked(packed)
    host = change.touch(core.hosts.by_id(record.host))
    host.failed -= 1
    host.queued += 1
    host.failures = host.parks = 0
    change.counts.update(failed=-1, queued=1)
    change.delete(Table.FAILED, key)
    own_key = b"" if key_of_identity(record.url) == key else key
    entry = Entry(record.url, record.depth, record.hops, 0, own_key)
    if record.is_sitemap:
        change.count_again(host, queued=1)
        change.enqueue_again(host, host.tail, entry._replace(is_sitemap=True))
        host.tail += 1
    else:
        change.enqueue(host, core.order.next(host, record.depth), key, entry.packed())
    return True

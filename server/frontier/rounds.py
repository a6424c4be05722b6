"""Brings pages back whose next visit is due: they are queued again, apart from what was never visited."""

from common.urls import host_of
from server.frontier.change import Change
from server.frontier.core import Core
from server.frontier.hosts import Host
from server.frontier.records import Entry, State, UrlState, Visit, due_key, key_of_identity
from server.frontier.retries import PARK_WAITS
from server.frontier.store import Table

_LIMIT = 10_000  # pages in one change


def bring_back(core: Core) -> int:
    """Queue the pages that are due, some of them at a time; returns how many."""
    now = core.clock.now()
    rows = core.visits.due(core.due_until(), _LIMIT)
    if not rows:
        return 0
    change, number = Change(), 0
    states = core.store.get_many(Table.URLS, [key for key, _ in rows])
    for (key, visit), packed in zip(rows, states, strict=True):
        state = UrlState.unpacked(packed) if packed else None
        if state is None or state.state is not State.DONE or not visit.url:  # damaged: it must not come up for ever
            change.delete(Table.DUE, due_key(visit.due, key))
        elif _is_outside(core, visit, state.is_sitemap):
            core.visits.postpone(change, key, visit, now)
        else:
            core.visits.take(change, key, visit)
            _queue(change, change.touch(core.hosts.by_id(state.place.host)), key, visit, state)
            number += 1
    core.commit(change)
    core.visits.passed(rows[-1][1].due)
    return number


def _is_outside(core: Core, visit: Visit, is_sitemap: bool) -> bool:
    """By rules that have changed since it was stored. A start URL is always inside."""
    if is_sitemap:
        return not core.rules.sitemaps
    if visit.depth == 0 and visit.hops == 0:
        return False
    return bool(core.policy.excluded_by(visit.url, host_of(visit.url), visit.depth, visit.hops))


def _queue(change: Change, host: Host, key: bytes, visit: Visit, state: UrlState) -> None:
    if host.is_given_up and not host.is_active:  # so long ago that it gets one more chance, with a few URLs
        host.parks = len(PARK_WAITS)
    own_key = b"" if key_of_identity(visit.url) == key else key
    host.done -= 1
    host.queued += 1
    change.counts.update(done=-1, queued=1)
    change.count_again(host, queued=1)
    # A sitemap that was there once is not missed if it is gone, just as a page.
    marks = state.has_page, state.is_sitemap, state.is_sitemap
    change.enqueue_again(host, host.tail, Entry(visit.url, visit.depth, visit.hops, 0, own_key, *marks))
    host.tail += 1

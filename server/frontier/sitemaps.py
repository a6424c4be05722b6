"""Taking in what sitemaps say: sitemaps that are named somewhere, and pages that have changed since their last visit.

What they list is found as any link is (intake.py). A sitemap itself is a URL like any other, but for its mark: it is
queued apart from new pages, read and not stored, and ends as done.
"""

import logging
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from common.urls import host_of, is_plain_address, resolve
from common.wire import FoundUrl, Kind, ListedUrl, Outcome
from server.frontier.change import Change
from server.frontier.core import Core
from server.frontier.hosts import Host
from server.frontier.leases import Lease
from server.frontier.records import (
    Entry,
    State,
    UrlState,
    job_key,
    key_of_identity,
    kind_of_entry,
    pack_tasks,
    unpack_entry,
    waiting_key,
)
from server.frontier.store import Table
from server.frontier.view import Rules

# Of a host. They can list 50 million pages: more than it can be asked for in a year at one request a second.
MAX_SITEMAPS = 1_000
MAX_NESTING = 5  # indexes and redirects one behind the other; honest sites have two
_MAX_AHEAD_SECONDS = 86_400  # a date may be a day ahead, by its time zone; what is further ahead says nothing

_log = logging.getLogger(__name__)


class _Named(NamedTuple):
    """A sitemap that somebody names."""

    url: str
    depth: int
    hops: int
    own_key: bytes
    is_guessed: bool
    is_own: bool  # its own host says so, so it is one, whatever it was taken for before
    is_vouched: bool  # wherever it is: the robots.txt of a host that belongs to the crawl says so, or its own host


class Listed(NamedTuple):
    """The rows of one report, by what they are about."""

    pages: list[FoundUrl]
    sitemaps: dict[bytes, _Named]
    dates: dict[bytes, int]  # when URLs have changed last


def sorted_out(rules: Rules, rows: Iterable[ListedUrl]) -> Listed:
    """Drops what is not crawlable."""
    listed = Listed([], {}, {})
    for row in rows:
        url = row.url if is_plain_address(row.url) else resolve(row.url)
        if url is None:
            continue
        name = rules.identity(url)
        key = key_of_identity(name)
        if row.kind is Kind.PAGE:
            listed.pages.append(FoundUrl(url, row.depth))
        elif rules.sitemaps:
            _add(listed.sitemaps, key, _named(row, url, b"" if name == url else key))
        if row.modified > 0 and not row.host and rules.period.is_set:
            listed.dates[key] = max(row.modified, listed.dates.get(key, 0))
    return listed


def _named(row: ListedUrl, url: str, own_key: bytes) -> _Named:
    is_own = not row.host or row.host == host_of(url)
    hops = max(0, row.hops)
    is_vouched = is_own or hops == 0
    return _Named(url, max(0, row.depth), hops, own_key, row.kind is Kind.GUESSED, is_own, is_vouched)


def _add(sitemaps: dict[bytes, _Named], key: bytes, item: _Named) -> None:
    known = sitemaps.get(key)
    if known is None or (item.hops, item.is_guessed) < (known.hops, known.is_guessed):
        sitemaps[key] = item


def take_in(
    core: Core, change: Change, listed: Listed, late: Collection[bytes], links: Mapping[bytes, int]
) -> tuple[int, set[bytes]]:
    """Queue sitemaps, and let pages be due that have changed; returns how many were not known at all, and the keys of
    those that were touched. `late`: what this change has settled without the store knowing it yet; `links`: what pages
    link to in the same report, with its depth."""
    new, touched = 0, set[bytes]()
    states = core.store.get_many(Table.URLS, list(listed.sitemaps))
    full = _Full()
    for (key, item), packed in zip(listed.sitemaps.items(), states, strict=True):
        state = UrlState.unpacked(packed) if packed else None
        if key in late or (state is not None and (state.is_sitemap or not item.is_own)):
            continue
        rule = core.policy.excluded_sitemap(item.url, host_of(item.url), item.is_vouched)
        rule = rule or ("sitemap_nesting" if item.hops > MAX_NESTING else "")
        if state is None:
            is_taken = _take_new(core, change, key, item, rule, full, links.get(key))
            new += is_taken
        else:
            is_taken = not rule and _take_over(core, change, key, item, state, full, links.get(key))
        if is_taken:
            touched.add(key)
    full.tell()
    _hurry(core, change, {key: date for key, date in listed.dates.items() if key not in touched})
    return new, touched


class _Full:
    """The hosts that have as many sitemaps as they may; told once for each report, not for each sitemap."""

    def __init__(self) -> None:
        self._limits: dict[str, int] = {}  # by host

    def has_enough(self, host: Host, item: _Named) -> bool:
        """What other hosts call a sitemap may be anything: it leaves room for what the host itself names."""
        limit = MAX_SITEMAPS if item.is_own else MAX_SITEMAPS // 2
        if host.sitemaps < limit:
            return False
        self._limits[host.name] = max(limit, self._limits.get(host.name, 0))
        return True

    def tell(self) -> None:
        for name, limit in self._limits.items():
            _log.info("%s has %d sitemaps or more; what else is named is not read", name, limit)


def _take_new(core: Core, change: Change, key: bytes, item: _Named, rule: str, full: _Full, link: int | None) -> bool:
    name = host_of(item.url)
    host = core.hosts.find(name)
    if host is not None and full.has_enough(host, item):
        return False
    host = change.touch(core.hosts.get_or_make([name])[name])
    host.known += 1
    change.counts["known"] += 1
    if rule:
        change.exclude(host, key, rule)
    else:
        entry = Entry(item.url, item.depth, item.hops, 0, item.own_key, is_guessed=item.is_guessed)
        _queue(change, host, entry if link is None else linked(entry, link))
    return True


def _take_over(
    core: Core, change: Change, key: bytes, item: _Named, state: UrlState, full: _Full, link: int | None
) -> bool:
    """A URL that was taken for a page is a sitemap, if nobody is about to visit it. Its page stays, if it has one."""
    host = core.hosts.by_id(state.place.host)
    if full.has_enough(host, item):
        return False
    is_guessed = item.is_guessed and not state.has_page  # until it was read once, a page is what it is known to be
    entry = Entry(item.url, item.depth, item.hops, 0, item.own_key, state.has_page, is_guessed=is_guessed)
    if state.state is State.QUEUED and not state.was_stored:
        packed = core.store.get(Table.QUEUE, state.place.packed())
        if packed is None:  # leased
            return False
        known = unpack_entry(packed)
        entry = linked(entry._replace(url=known.url, own_key=known.own_key), known.depth)
        change.delete(Table.QUEUE, state.place.packed())
        change.touch(host).queued -= 1
        change.counts["queued"] -= 1
    elif state.state is State.DONE and not state.is_no_sitemap:
        change.touch(host).done -= 1
        change.counts["done"] -= 1
        for visit in core.visits.of([key]).values():
            core.visits.take(change, key, visit)
    elif state.is_outside or (state.state is State.EXCLUDED and state.rule_name == Outcome.UNWANTED):
        change.touch(host).excluded -= 1
        change.counts["excluded"] -= 1
    else:
        return False
    _queue(change, host, entry if link is None else linked(entry, link))
    return True


def linked(entry: Entry, depth: int) -> Entry:
    """A sitemap to which a page links that would give it this depth as a page."""
    return entry._replace(is_linked=True, depth=min(entry.depth, max(0, depth - 1)))


def link_held(lease: Lease, links: Iterable[tuple[str, int]]) -> None:
    """Note what a report links to (address, depth) among the sitemaps of its own job: it may also settle them. On disk
    that is only needed for those that it does not settle (link)."""
    for url, depth in links:
        task = lease.tasks.get(url)
        if task is None or kind_of_entry(task.entry) is Kind.PAGE:
            continue
        entry = unpack_entry(task.entry)
        if not entry.is_again:  # one that is stored as a page stays one, linked or not
            lease.tasks[url] = task._replace(entry=linked(entry, depth).packed())


def link(core: Core, change: Change, state: UrlState, url: str, depth: int) -> None:
    """A page links to a sitemap that is still to be read."""
    table, where = Table.AGAIN, state.place.packed()
    if state.state is State.WAITING:
        table, where = Table.WAITING, waiting_key(state.due, state.place)
    if packed := core.store.get(table, where):
        change.put(table, where, linked(unpack_entry(packed), depth).packed())
    elif lease := core.leases.holder_of(url):
        link_held(lease, [(url, depth)])
        change.put(Table.TASKS, job_key(lease.job), pack_tasks(lease.tasks.values()))


def _queue(change: Change, host: Host, entry: Entry) -> None:
    host.sitemaps += 1
    host.queued += 1
    change.counts["queued"] += 1
    change.count_again(host, queued=1)
    change.enqueue_again(host, host.tail, entry._replace(is_sitemap=True))
    host.tail += 1


def _hurry(core: Core, change: Change, dates: dict[bytes, int]) -> None:
    """What has changed since its last visit is due now, or as soon as the period allows."""
    now = core.clock.now()
    believed = {key: min(date, now) for key, date in dates.items() if date <= now + _MAX_AHEAD_SECONDS}
    states = zip(believed, core.store.get_many(Table.URLS, list(believed)), strict=True)
    done = [key for key, packed in states if packed and UrlState.unpacked(packed).state is State.DONE]
    until = core.due_until()  # so that a run of one round visits it, too; but not twice
    for key, visit in core.visits.of(done).items():
        if visit.visited < min(believed[key], until):
            core.visits.hurry(change, key, visit, until)

"""Taking in URLs: which of them are new, what the policy says, and where in the queues of their hosts they stand.

What takes a `View` can run at any time in any thread; what takes the `Core` runs under the frontier's lock.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from common.urls import host_of, is_plain_address, resolve
from common.wire import FoundUrl
from server.frontier import sitemaps
from server.frontier.change import Change
from server.frontier.core import Core
from server.frontier.hosts import Host
from server.frontier.records import State, UrlState, key_of_identity, may_be_page, pack_entry, unpack_entry
from server.frontier.store import Table
from server.frontier.view import Rules, View
from server.policy.policy import Policy


class Candidate(NamedTuple):
    """A URL that may be new."""

    url: str  # its address
    depth: int
    hops: int
    own_key: bytes  # empty if the key follows from the address alone


Candidates = dict[bytes, Candidate]  # by key


def keyed(rules: Rules, found: Iterable[FoundUrl]) -> Candidates:
    """By key, each once: the address found first, with the least depth. Drops what is not crawlable."""
    candidates: Candidates = {}
    identity = rules.identity
    for url, depth, hops in found:
        # Most come from our own client, and are addresses already: one look instead of three calls (1 µs, not 4).
        if not is_plain_address(url):
            address = resolve(url)
            if address is None:
                continue
            url = address
        name = identity(url)
        key = key_of_identity(name)
        known = candidates.get(key)
        if known is None:
            candidates[key] = Candidate(url, max(0, depth), max(0, hops), b"" if name == url else key)
        elif depth < known.depth or hops < known.hops:
            candidates[key] = known._replace(
                depth=max(0, min(depth, known.depth)), hops=max(0, min(hops, known.hops))
            )
    return candidates


def moved_starts(policy: Policy, candidates: Candidates) -> list[str]:
    """Where start URLs have led that are on the same host with or without www."""
    if not policy.is_about_hosts:
        return []
    redirected = (item.url for item in candidates.values() if item.hops and not item.depth)
    return [url for url in redirected if policy.is_moved_start(url)]


def news(view: View, candidates: Candidates, start: bool = False) -> Candidates:
    """Those that change something, as far as the store knows by now."""
    return {key: item for key, item, _ in _news(view, candidates, start)}


def _news(view: View, candidates: Candidates, start: bool) -> list[tuple[bytes, Candidate, bytes | None]]:
    """What is not known, or only as excluded by a rule that does not hold for it now, or has another place in its
    queue because it was found again, or is a sitemap as far as is known, and perhaps a page."""
    states, moves = view.store.get_many(Table.URLS, list(candidates)), view.moves
    return [
        (key, item, state)
        for (key, item), state in zip(candidates.items(), states, strict=True)
        if state is None
        or (state[0] == State.QUEUED and moves(state, item.depth))
        or (state[0] == State.EXCLUDED and _is_reprieved(view, state, item, start))
        or (state[0] > State.WAITING and may_be_page(state) and _is_wanted_as_page(view, state, item, start))
    ]


def admit(core: Core, change: Change, candidates: Candidates, start: bool = False, is_repeated: bool = False) -> int:
    """Queue or exclude what is unknown, and move what was found again; returns how many were not known at all.

    `is_repeated`: all this was told before, so nothing was found again."""
    fresh = _news(core.view, candidates, start)  # again, now that nobody else can add
    if core.order.is_newest_first:
        fresh.reverse()  # the first link of a page is to be taken first
    names = [host_of(item.url) for _, item, _ in fresh]
    hosts, next_number = core.hosts.get_or_make(names), core.order.next
    new = queued = 0
    for (key, item, state), name in zip(fresh, names, strict=True):
        host = change.touch_queue(hosts[name])
        if state is None:
            new += 1
            host.known += 1
        elif state[0] == State.QUEUED:
            if not is_repeated:
                _move(core, change, UrlState.unpacked(state), item)
            continue
        elif may_be_page(state):
            known = UrlState.unpacked(state)
            if known.state is not State.DONE:
                sitemaps.link(core, change, known, item.url, item.depth)
                continue
            _take_sitemap(core, change, host, key)
        else:
            _take_excluded(core, change, host)
        rule = "" if start else core.policy.excluded_by(item.url, name, item.depth, item.hops)
        if rule:
            change.exclude(host, key, rule)
        else:
            entry = pack_entry(item.url, item.depth, item.hops, 0, item.own_key)
            change.enqueue(host, next_number(host, item.depth), key, entry)
            host.queued += 1
            queued += 1
    change.counts["known"] += new
    change.counts["queued"] += queued
    return new


def _move(core: Core, change: Change, state: UrlState, item: Candidate) -> None:
    """A queued URL was found again: it may be nearer to a start URL than was known, and stand elsewhere."""
    packed = core.store.get(Table.QUEUE, state.place.packed())
    if packed is None:  # leased
        return
    host, entry = change.touch_queue(core.hosts.by_id(state.place.host)), unpack_entry(packed)
    entry = entry._replace(depth=min(entry.depth, item.depth), hops=min(entry.hops, item.hops))
    change.move(host, state, core.order.refound(host, state.place.number, entry.depth), entry)


def name_hosts(core: Core, change: Change, starts: Candidates, private: Mapping[str, Sequence[str]]) -> None:
    """An operator has named hosts, which have these private addresses now. Where a name leads later is its owner's
    choice, not the operator's: so it is the addresses that are allowed, and only naming a host anew changes them."""
    for name, host in core.hosts.get_or_make([host_of(item.url) for item in starts.values()]).items():
        if not host.is_start or private.get(name):
            change.touch(host).is_start = True
            host.private = tuple(private.get(name, ()))


def _is_reprieved(view: View, state: bytes, item: Candidate, start: bool) -> bool:
    """A shorter way to a URL beyond max_depth, say. What robots.txt or the type of a page excluded stays so."""
    known = UrlState.unpacked(state)
    # Its host last: most are still outside, and it has to be looked up.
    return known.is_outside and (start or is_inside(view, item)) and _is_counted_there(view, known, item)


def is_inside(view: View, item: Candidate) -> bool:
    """Whether it belongs to the crawl as a page."""
    return not view.policy.excluded_by(item.url, host_of(item.url), item.depth, item.hops)


def _is_wanted_as_page(view: View, state: bytes, item: Candidate, start: bool) -> bool:
    return (start or is_inside(view, item)) and _is_counted_there(view, UrlState.unpacked(state), item)


def _is_counted_there(view: View, known: UrlState, item: Candidate) -> bool:
    """Whether the host of the address is the one that counts the URL; otherwise it stays where it is counted."""
    return view.is_host(known.place.host, host_of(item.url))


def _take_sitemap(core: Core, change: Change, host: Host, key: bytes) -> None:
    """One that nobody names, and that has proved to be none."""
    change.touch(host)
    host.done -= 1
    host.sitemaps -= 1
    change.counts["done"] -= 1
    core.visits.end(change, key)


def _take_excluded(core: Core, change: Change, host: Host) -> None:
    host.excluded -= 1
    change.counts["excluded"] -= 1

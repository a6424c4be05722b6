"""Scores that an operator gives to single URLs, with traversal = priority."""

from server.frontier.change import Change
from server.frontier.core import Core, FrontierError
from server.frontier.order import score_of
from server.frontier.records import Place, State, UrlState, unpack_entry, waiting_key
from server.frontier.store import Table


def set_score(core: Core, change: Change, address: str, score: int) -> int:
    """Give a URL that is to be crawled another score; returns the one it had."""
    if not core.order.is_by_score:
        raise FrontierError(f"URLs have a score with traversal = priority only; here it is {core.order.traversal}")
    key = core.view.key(address)
    packed = core.store.get(Table.URLS, key)
    state = UrlState.unpacked(packed) if packed else None
    table = Table.WAITING if state and state.state is State.WAITING else Table.QUEUE
    entry = None if state is None else core.store.get(table, _where(table, state, state.place))
    if state is None or state.is_apart or entry is None:
        raise FrontierError(f"{address} is not queued, so it has no score")
    known = unpack_entry(entry)
    number = core.order.with_score(state.place.number, score)
    host = change.touch(core.hosts.by_id(state.place.host))
    if table is Table.QUEUE:
        change.move(host, state, number, known)
    else:
        place = Place(host.id, number)
        change.delete(table, _where(table, state, state.place))
        change.put(table, _where(table, state, place), entry)
        change.put(Table.URLS, key, UrlState(State.WAITING, place, due=state.due).packed())
    return score_of(state.place.number, known.depth)


def _where(table: Table, state: UrlState, place: Place) -> bytes:
    return waiting_key(state.due, place) if table is Table.WAITING else place.packed()

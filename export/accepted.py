"""Which links belong to the crawl: those that its own rules accept, as urlServer had them last.

Rules that need more than the address are not asked: max_depth, robots.txt. Nor is what became of the URL.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from common.errors import PavoukError
from common.settings import Settings
from common.urls import host_of, identity
from server.frontier.store import StoreError
from server.opening import LastPolicy, last_policy

_TRIES = 5  # a file of the frontier that we are about to open may just have been merged into another
_WAIT_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class LinkRules:
    """How links are judged and written."""

    accepts: Callable[[str], bool] = lambda address: True
    identity: Callable[[str], str] = identity
    are_known: bool = False  # else every link that can be crawled is accepted


def link_rules(settings: Settings) -> LinkRules:
    """The rules of the crawl in a work folder, running or not; those of config.cfg if its frontier is elsewhere."""
    known = _patiently(settings)
    if known is None:
        return configured(settings)
    return LinkRules(_accepting(known), known.rules.identity, True)


def configured(settings: Settings) -> LinkRules:
    """Every link that can be crawled, under its identity in a crawl that begins with config.cfg."""
    return LinkRules(identity=partial(identity, drop_index=settings.url_server.drop_index_names))


def _accepting(known: LastPolicy) -> Callable[[str], bool]:
    policy, same = known.policy, known.rules.identity
    starts = set(map(same, known.starts))

    def accepts(address: str) -> bool:
        # A start URL is always inside, whatever the rules say.
        return not policy.excluded_by(address, host_of(address), 0, 0) or same(address) in starts

    return accepts


def _patiently(settings: Settings) -> LastPolicy | None:
    for _ in range(_TRIES - 1):
        try:
            return last_policy(settings)
        except StoreError:
            time.sleep(_WAIT_SECONDS)
    try:
        return last_policy(settings)
    except StoreError as error:
        raise PavoukError(f"{error}; with --all-links the rules of the crawl are not needed") from error

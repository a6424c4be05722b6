"""Which links belong to the crawl: those that its own rules accept, as urlServer had them last.

Rules that need more than the address are not asked: max_depth, robots.txt. Nor is what became of the URL.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from common.settings import Settings
from common.urls import host_of, identity
from server.opening import LastPolicy


@dataclass(frozen=True, slots=True)
class LinkRules:
    """How links are judged and written."""

    accepts: Callable[[str], bool] = lambda address: True
    identity: Callable[[str], str] = identity


def link_rules(known: LastPolicy) -> LinkRules:
    """The rules of the crawl, as its frontier has them."""
    return LinkRules(_accepting(known), known.rules.identity)


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

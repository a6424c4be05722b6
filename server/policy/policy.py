"""The policy: all rules about what belongs to a crawl, in one place.

Each rule has a name, which is kept with every URL that it excludes. Rules that are off cost nothing: a policy is a
short list of functions, made once.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import InitVar, dataclass, field, fields
from typing import Any

from common.expressions import Expressions
from common.settings import UrlServerSettings
from common.urls import MAX_URL_LENGTH, host_of, resolve
from server.policy.scope import Inside, Scope, scope_of
from server.policy.traps import length_trap, path_trap, query_trap

_Judge = Callable[[str, str], str]  # address, its host -> the rule that excludes it, or nothing
_NO_LIMIT = float("inf")
_MAX_SHOWN = 200  # characters of an expression: it is stored with each URL that it excludes


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules of one crawl. A start URL is always inside: nobody asks about it. 0 is no limit.

    Only what is inside the scope can change: it grows with further start URLs, as scope.py says."""

    scope: str = "free"
    starts: InitVar[Iterable[str]] = ()
    accept: tuple[str, ...] = ()
    reject: tuple[str, ...] = ()
    max_depth: int = 0
    max_redirects: int = 10
    max_url_length: int = MAX_URL_LENGTH
    max_path_depth: int = 0
    max_path_repeats: int = 0
    max_query_parameters: int = 0
    _deepest: float = field(init=False, repr=False, compare=False)
    _traps: tuple[_Judge, ...] = field(init=False, repr=False, compare=False)
    _judges: tuple[_Judge, ...] = field(init=False, repr=False, compare=False)
    _scopes: tuple[Scope, ...] = field(init=False, repr=False, hash=False)
    _is_host_inside: Inside | None = field(init=False, repr=False, compare=False)

    def __post_init__(self, starts: Iterable[str]) -> None:
        # The way to set what follows from the other fields of a frozen value.
        object.__setattr__(self, "_deepest", self.max_depth or _NO_LIMIT)
        object.__setattr__(self, "_traps", tuple(_traps_of(self)))
        inside = scope_of(self.scope)
        hosts = scope_of("host") if self.scope == "path" else inside
        object.__setattr__(self, "_judges", (*self._traps, *_judges_of(self, inside)))
        both = (inside,) if hosts is inside else (inside, hosts)
        object.__setattr__(self, "_scopes", tuple(scope for scope in both if scope))
        object.__setattr__(self, "_is_host_inside", hosts.has if hosts else None)
        self.widen(starts)

    def excluded_by(self, url: str, host: str, depth: int, hops: int) -> str:
        """The name of the rule that excludes an address; empty if it belongs to the crawl."""
        if depth > self._deepest:
            return "max_depth"
        if hops > self.max_redirects:
            return "max_redirects"
        for judge in self._judges:
            if rule := judge(url, host):
                return rule
        return ""

    def excluded_sitemap(self, url: str, host: str, is_vouched: bool) -> str:
        """The same for a sitemap. Its name says nothing about what it lists, so only traps and the scope count, and of
        the scope only the host; that does not matter if a host that belongs to the crawl vouches for it."""
        for trap in self._traps:
            if rule := trap(url, host):
                return rule
        is_inside = is_vouched or self._is_host_inside is None or self._is_host_inside(url, host)
        return "" if is_inside else f"scope={self.scope}"

    def widen(self, start_urls: Iterable[str]) -> None:
        """Take further start URLs in."""
        if not self._scopes:
            return
        for url in start_urls:
            if address := resolve(url):
                for scope in self._scopes:
                    scope.add(address)

    @property
    def is_about_hosts(self) -> bool:
        """Whether one host is inside and the same with www. in front of it is not."""
        return self.scope in ("host", "path")

    def is_moved_start(self, url: str) -> bool:
        """Whether an address that a start URL has led to is outside only because of a www. in front of its host."""
        host = host_of(url)
        if not self.excluded_by(url, host, 0, 0).startswith("scope="):
            return False
        assert self._is_host_inside is not None
        other = host.removeprefix("www.") if host.startswith("www.") else f"www.{host}"
        return self._is_host_inside(url, host) or self._is_host_inside(url, other)

    def as_stored(self) -> dict[str, Any]:
        """The rules without the start URLs, for JSON."""
        return {name: getattr(self, name) for name in _STORED}

    @classmethod
    def restored(cls, stored: Mapping[str, Any], start_urls: Iterable[str]) -> "Policy":
        """The opposite of `as_stored`."""
        rules = {name: stored[name] for name in _STORED if name in stored}
        rules |= {name: tuple(rules[name]) for name in _LISTS if name in rules}
        return cls(**rules, starts=start_urls)


_LISTS = ("accept", "reject")
_STORED = tuple(item.name for item in fields(Policy) if item.init)


def policy_of(settings: UrlServerSettings, start_urls: Iterable[str]) -> Policy:
    """The policy that the configuration describes, for all start URLs the crawl has had so far."""
    rules = {name: getattr(settings, name) for name in _STORED if name != "scope"}
    return Policy(settings.effective_scope, start_urls, **rules)


def _traps_of(policy: Policy) -> Iterable[_Judge]:
    if policy.max_url_length < MAX_URL_LENGTH:  # longer ones are no addresses at all
        yield length_trap(policy.max_url_length)
    if policy.max_path_depth or policy.max_path_repeats:
        yield path_trap(policy.max_path_depth, policy.max_path_repeats)
    if policy.max_query_parameters:
        yield query_trap(policy.max_query_parameters)


def _judges_of(policy: Policy, scope: Scope | None) -> Iterable[_Judge]:
    """The other rules that are on, the cheap ones first."""
    if scope:
        yield _scope_judge(scope.has, f"scope={policy.scope}")
    if policy.reject:
        yield _reject_judge(Expressions(policy.reject))
    if policy.accept:
        yield _accept_judge(Expressions(policy.accept))


def _scope_judge(inside: Inside, rule: str) -> _Judge:
    return lambda url, host: "" if inside(url, host) else rule


def _reject_judge(expressions: Expressions) -> _Judge:
    return lambda url, _: f"reject: {found[:_MAX_SHOWN]}" if (found := expressions.found_in(url)) else ""


def _accept_judge(expressions: Expressions) -> _Judge:
    return lambda url, _: "" if expressions.is_any_in(url) else "accept"

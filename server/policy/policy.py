"""Scope and limits: which found URLs belong to the crawl."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from common.settings import UrlServerSettings
from common.urls import host_of, resolve


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules of one crawl. A start URL is always inside."""

    scope: str = "free"
    hosts: frozenset[str] = frozenset()
    domains: tuple[str, ...] = ()
    max_depth: int = 0
    max_redirects: int = 10

    def excluded_by(self, url: str, host: str, depth: int, hops: int) -> str:
        """The name of the rule that excludes a URL; empty if it belongs to the crawl."""
        if self.max_depth and depth > self.max_depth:
            return "max_depth"
        if hops > self.max_redirects:
            return "max_redirects"
        return "" if self._inside(host) else f"scope={self.scope}"

    def widened(self, start_urls: Sequence[str]) -> "Policy":
        """The same rules with further start URLs."""
        hosts = self.hosts.union(host_of(address) for url in start_urls if (address := resolve(url)))
        return replace(
            self, hosts=hosts, domains=tuple(sorted({_name(host).removeprefix("www.") for host in hosts}))
        )

    def _inside(self, host: str) -> bool:
        if self.scope == "free" or host in self.hosts:
            return True
        if self.scope != "domain":
            return False
        name = _name(host)
        return any(name == domain or name.endswith("." + domain) for domain in self.domains)


def policy_of(settings: UrlServerSettings, start_urls: Sequence[str]) -> Policy:
    """The policy that the configuration describes, for all start URLs the crawl has had so far."""
    policy = Policy(settings.effective_scope, max_depth=settings.max_depth, max_redirects=settings.max_redirects)
    return policy.widened(start_urls)


def _name(host: str) -> str:
    """The host without its port: scopes are about names."""
    name, colon, port = host.rpartition(":")
    return name if colon and not port.endswith("]") else host

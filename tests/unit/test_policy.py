"""What belongs to a crawl."""

import pytest

from common.settings import UrlServerSettings
from server.policy.policy import Policy, policy_of


def policy(starts: str, **settings: object) -> Policy:
    return policy_of(UrlServerSettings(**settings), starts.split())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("scope", "start", "host", "inside"),
    [
        ("free", "http://a.org/", "b.com", True),
        ("host", "http://a.org/", "a.org", True),
        ("host", "http://a.org/", "www.a.org", False),
        ("host", "http://a.org/", "a.org:8080", False),
        ("host", "http://127.0.0.1:8080/", "127.0.0.1:8080", True),
        ("host", "http://a.org/ http://b.com/", "b.com", True),
        ("domain", "http://a.org/", "sub.a.org", True),
        ("domain", "http://a.org/", "sub.a.org:8080", True),
        ("domain", "http://www.a.org/", "a.org", True),
        ("domain", "http://www.a.org/", "news.a.org", True),
        ("domain", "http://a.org/", "nota.org", False),
        ("domain", "http://a.org/", "a.org.evil.com", False),
        ("domain", "http://[::1]:80/", "[::1]:8080", True),
        ("domain", "http://[::1]:80/", "[::2]", False),
    ],
)
def test_scopes(scope: str, start: str, host: str, inside: bool) -> None:
    rule = policy(start, scope=scope).excluded_by("", host, 0, 0)
    assert rule == ("" if inside else f"scope={scope}")


def test_sitemap_is_the_scope_of_domains() -> None:
    assert policy("http://a.org/", sitemap=True).excluded_by("", "b.com", 0, 0) == "scope=domain"
    assert policy("http://a.org/", sitemap=True, scope="free").excluded_by("", "b.com", 0, 0) == ""


def test_limits_come_before_the_scope() -> None:
    limited = policy("http://a.org/", scope="host", max_depth=2, max_redirects=1)
    assert limited.excluded_by("", "a.org", 2, 1) == ""
    assert limited.excluded_by("", "b.com", 3, 0) == "max_depth"
    assert limited.excluded_by("", "b.com", 0, 2) == "max_redirects"


def test_no_depth_is_no_limit() -> None:
    assert policy("http://a.org/").excluded_by("", "a.org", 10**6, 0) == ""

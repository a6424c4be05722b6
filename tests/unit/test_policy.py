"""What belongs to a crawl: every rule on its own, and what explains it."""

import json
import time
from typing import Any

import pytest

from common.settings import SCOPES, UrlServerSettings
from common.urls import host_of, resolve
from server.policy.policy import Policy, policy_of

OFF = {"max_path_depth": 0, "max_path_repeats": 0, "max_query_parameters": 0}


def policy(starts: str, **settings: object) -> Policy:
    return policy_of(UrlServerSettings(**settings), starts.split())  # type: ignore[arg-type]


def rule(judge: Policy, url: str, depth: int = 0, hops: int = 0) -> str:
    address = resolve(url)
    assert address is not None
    return judge.excluded_by(address, host_of(address), depth, hops)


# --- scopes

SAMPLE = "http://www.sample.com/path/index.html"
SCOPE_CASES = [
    # scope, start URLs, URL, inside
    ("free", "http://a.org/", "http://b.com/", True),
    ("host", "http://a.org/", "http://a.org/x", True),
    ("host", "http://a.org/", "https://a.org/x", True),
    ("host", "http://a.org/", "http://www.a.org/", False),
    ("host", "http://www.a.org/", "http://a.org/", False),
    ("host", "http://a.org/", "http://a.org:8080/", False),
    ("host", "http://127.0.0.1:8080/", "http://127.0.0.1:8080/x", True),
    ("host", "http://a.org/ http://b.com/", "http://b.com/", True),
    ("host", "http://a.org/", "http://a.org./x", True),
    ("path", "http://www.sample.com/index.html", "http://www.sample.com/", True),
    ("path", "http://www.sample.com/index.html", "http://www.sample.com/path/x.html", True),
    ("path", "http://www.sample.com", "http://www.sample.com/path/x.html", True),
    ("path", "http://www.sample.com/index.html", "http://sample.com/", False),
    ("path", SAMPLE, "http://www.sample.com/path/", True),
    ("path", SAMPLE, "https://www.sample.com/path/x.html", True),
    ("path", SAMPLE, "http://www.sample.com/path/deeper/x.html?a=/b", True),
    ("path", SAMPLE, "http://www.sample.com/path", False),
    ("path", SAMPLE, "http://www.sample.com/pathology/", False),
    ("path", SAMPLE, "http://www.sample.com/", False),
    ("path", SAMPLE, "http://www.sample.com/other/?x=/path/", False),
    ("path", SAMPLE, "http://www.sample.com/path/../x.html", False),
    ("path", SAMPLE, "http://www.sample.com:8080/path/", False),
    ("path", SAMPLE, "http://sample.com/path/", False),
    ("path", "http://a.org/%7Eme/", "http://a.org/~me/x", True),
    ("path", "http://a.org/~me/", "http://a.org/%7Eme/x", True),
    ("path", "http://a.org/~me/", "http://a.org/%7Eyou/x", False),
    ("path", "http://a.org/žluť/", "http://a.org/%c5%BElu%C5%A5/x", True),
    ("path", "http://a.org/a/ http://b.org/b/", "http://b.org/b/x", True),
    ("path", "http://a.org/a/ http://b.org/b/", "http://b.org/a/x", False),
    ("path", "http://a.org/a/?page=/x/y/", "http://a.org/a/b", True),
]


@pytest.mark.parametrize(("scope", "starts", "url", "inside"), SCOPE_CASES)
def test_scopes(scope: str, starts: str, url: str, inside: bool) -> None:
    assert rule(policy(starts, scope=scope), url) == ("" if inside else f"scope={scope}")


EXAMPLE = "http://foo1.domain.com/foo/a.htm http://foo2.foo1.domain.com/b.htm http://foo3.foo1.domain.com/c/d/e/f.htm"
DOMAIN_CASES = [
    # start URLs, the names that are inside, the names that are not
    (EXAMPLE, "foo1.domain.com foo2.foo1.domain.com x.y.foo1.domain.com", "domain.com foo2.domain.com o1.domain.com"),
    ("http://a.org/", "a.org sub.a.org www.a.org", "nota.org a.org.evil.com org b.org"),
    ("http://www.a.org/", "www.a.org a.org news.a.org", "b.org www.b.org"),
    ("http://www.x.a.org/", "x.a.org www.x.a.org y.x.a.org", "a.org www.a.org"),
    ("http://x.a.org/ http://y.a.org/", "a.org x.a.org z.a.org", "b.org"),
    ("http://x.a.org/ http://b.org/", "x.a.org b.org y.b.org", "a.org y.a.org"),
    ("http://www.a.org/ http://x.www.a.org/", "a.org y.a.org", "b.org"),
    # what is public is nobody's: never wider than what can be registered
    ("http://a.co.uk/ http://b.co.uk/", "a.co.uk b.co.uk x.b.co.uk", "co.uk c.co.uk uk"),
    ("http://www.bbc.co.uk/", "bbc.co.uk news.bbc.co.uk", "co.uk itv.co.uk"),
    ("http://me.github.io/ http://you.github.io/", "me.github.io you.github.io", "github.io she.github.io"),
    ("http://github.io/", "github.io", "me.github.io"),
    ("http://www.github.io/", "www.github.io x.www.github.io", "github.io me.github.io"),
    ("http://a.com/ http://b.com/", "a.com b.com", "com c.com"),
    ("http://com/", "com", "a.com"),
    ("http://co.uk/", "co.uk", "a.co.uk"),
    ("http://x.city.kawasaki.jp/ http://y.city.kawasaki.jp/", "city.kawasaki.jp", "kawasaki.jp foo.kawasaki.jp"),
    # names in other scripts
    ("http://bücher.example/", "bücher.example www.xn--bcher-kva.example", "bucher.example"),
    ("http://пример.рф/", "www.пример.рф xn--e1afmkfd.xn--p1ai", "рф другой.рф"),
    ("http://a.公司.cn/ http://b.公司.cn/", "x.a.公司.cn b.xn--55qx5d.cn", "公司.cn c.公司.cn"),
    # addresses and single labels are their own domain; ports do not count
    ("http://127.0.0.1/", "127.0.0.1 127.0.0.1:8080", "127.0.0.2 0.0.1.example"),
    ("http://10.0.0.1/ http://10.0.0.2/", "10.0.0.1 10.0.0.2", "10.0.0.3"),
    ("http://[::1]:80/", "[::1] [::1]:8080", "[::2]"),
    ("http://intranet/", "intranet intranet:8080", "www.intranet intranet.a.org"),
    ("http://a.org:8080/", "a.org sub.a.org sub.a.org:81", "b.org:8080"),
    ("http://h0.localhost/", "h0.localhost x.h0.localhost", "h1.localhost localhost"),
]  # fmt: skip


@pytest.mark.parametrize(("starts", "inside", "outside"), DOMAIN_CASES)
def test_domains(starts: str, inside: str, outside: str) -> None:
    domains = policy(starts, scope="domain")
    assert [name for name in inside.split() if rule(domains, f"http://{name}/x")] == []
    assert {rule(domains, f"http://{name}/x") for name in outside.split()} == {"scope=domain"}


@pytest.mark.parametrize("scope", SCOPES)
def test_start_urls_that_come_later_widen_the_scope_and_never_narrow_it(scope: str) -> None:
    starts = ["http://www.a.org/x/", "http://y.www.a.org/", "http://a.org/", "http://1.2.3.4/p/", "http://c.co.uk/"]
    known: list[str] = []
    grown = policy("", scope=scope)
    for start in starts:
        grown.widen([start])
        known.append(f"{start}page")
        assert [url for url in known if rule(grown, url)] == []
    assert grown == policy(" ".join(starts), scope=scope)
    assert bool(rule(grown, "http://elsewhere.net/")) == (scope != "free")


SITE_CASES = [
    # start URLs, hosts inside, hosts outside
    ("http://tul.cz/", "tul.cz www.tul.cz", "fm.tul.cz www.fm.tul.cz tul.com tul.cz:8080"),
    ("http://www.tul.cz/", "tul.cz www.tul.cz", "fm.tul.cz www.www.tul.cz www2.tul.cz cz"),
    ("http://fm.tul.cz/a/", "fm.tul.cz www.fm.tul.cz", "tul.cz www.tul.cz x.fm.tul.cz"),
    ("http://tul.cz/ http://fm.tul.cz/", "tul.cz www.tul.cz fm.tul.cz www.fm.tul.cz", "kmo.tul.cz"),
    ("http://www.a.org:8080/", "a.org:8080 www.a.org:8080", "a.org www.a.org a.org:81"),
    ("http://1.2.3.4/", "1.2.3.4", "1.2.3.5 1.2.3.4:8080"),
    ("http://[::1]:8080/", "[::1]:8080", "[::1]"),
    ("http://wwww.a.org/", "wwww.a.org www.wwww.a.org", "a.org"),
]


@pytest.mark.parametrize(("starts", "inside", "outside"), SITE_CASES)
@pytest.mark.parametrize("rules", [{"sitemap": True}, {"scope": "site"}], ids=str)
def test_the_classic_sitemap_is_one_site(starts: str, inside: str, outside: str, rules: dict[str, Any]) -> None:
    site = policy(starts, **rules)
    for scheme in ("http", "https"):
        assert [name for name in inside.split() if rule(site, f"{scheme}://{name}/x")] == []
        assert {rule(site, f"{scheme}://{name}/x") for name in outside.split()} == {"scope=site"}


def test_a_scope_counts_more_than_the_classic_sitemap() -> None:
    assert rule(policy("http://a.org/", sitemap=True, scope="free"), "http://b.com/") == ""
    assert rule(policy("http://a.org/", sitemap=True, scope="domain"), "http://x.a.org/") == ""
    assert rule(policy("http://a.org/", sitemap=True, scope="host"), "http://www.a.org/") == "scope=host"


@pytest.mark.parametrize("scope", SCOPES)
def test_ten_thousand_start_urls(scope: str) -> None:
    starts = " ".join(f"http://h{n % 100}.site{n}.co.uk/folder{n}/" for n in range(10_000))
    many = policy(starts, scope=scope)
    assert rule(many, "http://h77.site7777.co.uk/folder7777/x") == ""
    began = time.perf_counter()
    for _ in range(1000):
        rule(many, "http://h78.site7777.co.uk/folder7777/x")
    assert time.perf_counter() - began < 1.0, "each takes microseconds, however many there are"


# --- expressions

HTML = r".*\.[hH][tT][mM][lL]?$"
EXPRESSION_CASES = [
    # accept, reject, URL, the rule
    ((HTML,), (), "http://a.org/x.html", ""),
    ((HTML,), (), "http://a.org/x.HTM", ""),
    ((HTML,), (), "http://a.org/x.html?a=1", "accept"),
    ((HTML,), (), "http://a.org/", "accept"),
    ((HTML, "/$"), (), "http://a.org/", ""),
    ((), (r"\.(jpe?g|png)$",), "http://a.org/x.jpg", r"reject: \.(jpe?g|png)$"),
    ((), (r"\.(jpe?g|png)$",), "http://a.org/x.html", ""),
    ((), ("logout", "/edit/"), "http://a.org/edit/logout", "reject: logout"),
    ((), ("/edit/", "logout"), "http://a.org/logout", "reject: logout"),
    (("a",), ("a",), "http://a.org/", "reject: a"),
    ((), ("^https://",), "https://a.org/", "reject: ^https://"),
    ((), ("^a",), "http://a.org/", ""),
    ((), ("A[.]ORG",), "http://A.ORG/", ""),
    ((), ("(?i)A[.]ORG",), "http://A.ORG/", "reject: (?i)A[.]ORG"),
    ((), ("fragment",), "http://a.org/#fragment", ""),
    ((), (r"\?",), "http://a.org/x?", r"reject: \?"),
    ((), (r"\?",), "http://a.org/x.html?a=1", r"reject: \?"),
    ((), (r"\?",), "http://a.org/x%3Fa.html", ""),
    ((), (";sid=", r"\?.*\?"), "http://a.org/x;sid=7", "reject: ;sid="),
    ((), ("a b",), "http://a.org/a b", ""),
    ((), ("a%20b",), "http://a.org/a b", "reject: a%20b"),
    ((), (r"\Qa", "b"), "http://b/", "reject: b"),
    ((), ("(?P<x>c)", "(?P<x>b)"), "http://b/", "reject: (?P<x>b)"),
]  # fmt: skip


@pytest.mark.parametrize(("accept", "reject", "url", "expected"), EXPRESSION_CASES)
def test_expressions(accept: tuple[str, ...], reject: tuple[str, ...], url: str, expected: str) -> None:
    assert rule(policy("http://start/", accept=accept, reject=reject), url) == expected


def test_a_long_expression_is_not_stored_with_every_url() -> None:
    assert rule(policy("", reject=("a|" * 400 + "b",)), "http://b/") == "reject: " + "a|" * 100


def test_a_thousand_expressions() -> None:
    judge = policy("", reject=tuple(f"/folder{n}/" for n in range(1000)))
    assert rule(judge, "http://a.org/folder999/x") == "reject: /folder999/"
    assert rule(judge, "http://a.org/folder1000/x") == ""


@pytest.mark.parametrize(
    "expression", ["(a+)+$", "(a|a)*$", "(.*a){20}$", "(a?){100}b", "^(([a-z])+.)+[A-Z]([a-z])+$", "(.{1,30}){33}x"]
)
def test_no_expression_and_no_url_can_stall_the_server(expression: str) -> None:
    judge = policy("", reject=(expression,))
    began = time.perf_counter()
    rule(judge, "http://a.org/" + "a" * 1900 + "!")
    assert time.perf_counter() - began < 1.0


# --- traps

TRAP_CASES = [
    # the limit, URL, the rule
    ({"max_url_length": 20}, "http://a.org/1234567", ""),
    ({"max_url_length": 20}, "http://a.org/12345678", "max_url_length"),
    ({"max_path_depth": 3}, "http://a.org/a/b/c.html", ""),
    ({"max_path_depth": 3}, "http://a.org/a/b/c/", ""),
    ({"max_path_depth": 3}, "http://a.org/a/b/c/?d=/e/f/g", ""),
    ({"max_path_depth": 3}, "http://a.org/a/b/c/d", "max_path_depth"),
    ({"max_path_depth": 3}, "http://a.org/a/b/c/d/", "max_path_depth"),
    ({"max_path_repeats": 3}, "http://a.org/a/a/a", ""),
    ({"max_path_repeats": 3}, "http://a.org/a/a/a/a", "path_repetition"),
    ({"max_path_repeats": 3}, "http://a.org/a/a/a/a/", "path_repetition"),
    ({"max_path_repeats": 3}, "http://a.org/x/a/a/a/a/y.html", "path_repetition"),
    ({"max_path_repeats": 3}, "http://a.org/a/b/a/b/a/b", ""),
    ({"max_path_repeats": 2}, "http://a.org/a/b/a/b/a/b", "path_repetition"),
    ({"max_path_repeats": 3}, "http://a.org/a/b/a/b/a/b/a/b/", "path_repetition"),
    ({"max_path_repeats": 3}, "http://a.org/x/a/b/c/a/b/c/a/b/c/a/b/c/y", "path_repetition"),
    ({"max_path_repeats": 3}, "http://a.org/a/b/a/c/a/d/a/e/a", ""),
    ({"max_path_repeats": 3}, "http://a.org/a/ab/b/ba/a/ab/b/ba/a", ""),
    ({"max_path_repeats": 3}, "http://a.org/1/1/1/2/2/2/1/1/1", ""),
    ({"max_path_repeats": 3}, "http://a.org/x//////y", "path_repetition"),
    ({"max_path_repeats": 3}, "http://a.org/?next=/a/a/a/a/a", ""),
    ({"max_path_repeats": 1}, "http://a.org/a/a", "path_repetition"),
    ({"max_path_repeats": 1}, "http://a.org/a/b/a", ""),
    ({"max_query_parameters": 2}, "http://a.org/?a=1&b=2", ""),
    ({"max_query_parameters": 2}, "http://a.org/?a=1&b=2&", ""),
    ({"max_query_parameters": 2}, "http://a.org/?a&b&c", "max_query_parameters"),
    ({"max_query_parameters": 2}, "http://a.org/a&b&c&d", ""),
    ({"max_path_depth": 4, "max_path_repeats": 2}, "http://a.org/a/a/a", "path_repetition"),
    ({"max_path_depth": 4, "max_path_repeats": 2}, "http://a.org/a/b/c/d/e", "max_path_depth"),
]


@pytest.mark.parametrize(("limits", "url", "expected"), TRAP_CASES)
def test_traps(limits: dict[str, int], url: str, expected: str) -> None:
    assert rule(policy("", **{**OFF, **limits}), url) == expected


def test_without_limits_every_form_is_inside() -> None:
    free = policy("", **OFF)
    for url in ("http://a.org/" + "a/" * 900, "http://a.org/?" + "&a" * 900, "http://a.org/" + "a" * 1900):
        assert rule(free, url) == ""


def test_the_defaults_leave_ordinary_urls_alone() -> None:
    ordinary = [
        "http://a.org/", "http://a.org/2026/11/11/11.html", "http://a.org/wiki/Main_Page?action=edit&section=1",
        "http://a.org/en/docs/en/docs/v1/api/index.html", "http://a.org/0/0/0/tile.png", "http://a.org/a//b",
    ]  # fmt: skip
    assert [url for url in ordinary if rule(policy(""), url)] == []
    assert rule(policy(""), "http://a.org/" + "a/b/" * 4) == "path_repetition"
    assert rule(policy(""), "http://a.org/" + "/".join(map(str, range(31)))) == "max_path_depth"
    assert rule(policy(""), "http://a.org/?" + "&".join(f"a{n}=1" for n in range(51))) == "max_query_parameters"


# --- depth, redirects, and all together


@pytest.mark.parametrize(
    ("scope", "url", "is_vouched", "expected"),
    [
        ("path", "http://a.test/sitemap.xml", False, ""),
        ("path", "http://b.test/docs/sitemap.xml", False, "scope=path"),
        ("path", "http://b.test/docs/sitemap.xml", True, ""),
        ("host", "http://www.a.test/sitemap.xml", False, "scope=host"),
        ("domain", "http://www.a.test/sitemap.xml", False, ""),
        ("domain", "http://b.test/sitemap.xml", False, "scope=domain"),
        ("site", "http://www.a.test/sitemap.xml", False, ""),
        ("site", "http://b.a.test/sitemap.xml", False, "scope=site"),
        ("free", "http://b.test/sitemap.xml", False, ""),
        ("path", "http://a.test/1/2/3/4.xml", True, "max_path_depth"),
        ("free", "http://a.test/?1&2&3", True, "max_query_parameters"),
        ("free", f"http://a.test/{'x' * 90}", True, "max_url_length"),
    ],
)
def test_sitemaps_are_judged_by_their_host_and_by_traps(scope: str, url: str, is_vouched: bool, expected: str) -> None:
    judge = Policy(
        scope, ("http://a.test/docs/",), (r"\.html$",), ("sitemap",), max_path_depth=3, max_query_parameters=2,
        max_url_length=100,
    )  # fmt: skip
    assert judge.excluded_sitemap(url, host_of(url), is_vouched) == expected


def test_limits_come_before_the_scope() -> None:
    limited = policy("http://a.org/", scope="host", max_depth=2, max_redirects=1)
    assert rule(limited, "http://a.org/", 2, 1) == ""
    assert rule(limited, "http://b.com/", 3, 0) == "max_depth"
    assert rule(limited, "http://b.com/", 0, 2) == "max_redirects"


def test_no_depth_is_no_limit() -> None:
    assert rule(policy("http://a.org/"), "http://a.org/", 10**30) == ""


MOVED = [
    # scope, start URL, where it has led to, whether that counts as another start URL
    ("host", "http://a.org/", "https://www.a.org/", True),
    ("host", "http://www.a.org/x", "http://a.org/", True),
    ("host", "http://a.org:81/", "http://www.a.org:81/", True),
    ("host", "http://a.org/", "http://a.org/x", False),  # it is inside anyway
    ("host", "http://a.org/", "http://b.org/", False),
    ("host", "http://a.org/", "http://m.a.org/", False),
    ("host", "http://a.org/", "http://www.a.org:81/", False),
    ("path", "http://a.org/x/", "http://www.a.org/x/", True),
    ("path", "http://a.org/x/", "http://a.org/y/", True),
    ("domain", "http://a.org/", "http://www.a.org/", False),
    ("site", "http://a.org/", "http://www.a.org/", False),
    ("site", "http://a.org/", "http://m.a.org/", False),
    ("free", "http://a.org/", "http://www.a.org/", False),
]


@pytest.mark.parametrize(("scope", "start", "target", "expected"), MOVED)
def test_start_urls_that_have_moved_to_www(scope: str, start: str, target: str, expected: bool) -> None:
    judge = policy(start, scope=scope)
    assert (judge.is_about_hosts and judge.is_moved_start(target)) == expected


def test_a_stored_policy_is_the_same_policy() -> None:
    starts = ["http://a.org/x/", "http://b.org/"]
    limits = {"max_depth": 7, "max_redirects": 2, "max_url_length": 99, "max_path_depth": 9, "max_path_repeats": 5}
    lists = {"accept": ("/x", r"\.html$"), "reject": ("logout",)}
    before = policy(" ".join(starts), scope="path", max_query_parameters=4, **limits, **lists)
    after = Policy.restored(json.loads(json.dumps(before.as_stored())), starts)
    assert after == before
    assert rule(after, "http://a.org/x/logout") == "reject: logout"


def test_what_an_older_version_stored_is_enough() -> None:
    old = Policy.restored({"scope": "host", "max_depth": 3, "max_redirects": 10}, ["http://a.org/"])
    assert old == Policy("host", ("http://a.org/",), max_depth=3)
    assert Policy.restored({}, []) == Policy()

"""What belongs to a crawl: the real commands over a web whose links are known, by every rule."""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.integration.admin import ask_admin
from tests.integration.cluster import run_cluster
from tests.integration.daemon import run_command
from tests.integration.onecommand import Crawls
from tests.urlserver import Soap, address_of, serving
from tests.web.requestlog import assert_asked_exactly, assert_no_url_twice
from tests.web.running import RunningWeb, run_web

pytestmark = pytest.mark.integration

INNER = ("foo1.domain.localhost", *(f"{name}.foo1.domain.localhost" for name in ("foo2", "foo3", "new")))
OUTER = ("domain.localhost", "foo9.domain.localhost", "afoo1.domain.localhost", "elsewhere.localhost")
FAST = ("--delay", "0", "--connections-per-host", "4")
ABROAD = ("--allow-private", "1")  # other hosts than those of the start URLs are on loopback, too


@pytest.fixture
def crawls(tmp_path: Path) -> Crawls:
    return Crawls(tmp_path / "work")


@pytest.fixture(scope="module")
def web() -> Iterator[RunningWeb]:
    with run_web(pages=8, called=(*INNER, *OUTER)) as running:
        yield running


def _url(web: RunningWeb, host: str, path: str) -> str:
    return f"http://{host}:{web.port}{path}"


def _assert_crawled(
    crawls: Crawls, web: RunningWeb, starts: Sequence[str], options: Sequence[str], **rules: object
) -> frozenset[str]:
    """The stored pages are those of the graph, nothing else was asked for, nothing twice. Returns what was outside."""
    before = len(web.log())
    crawls.run(*starts, *FAST, *ABROAD, *options)
    truth = web.truth_from(starts, **rules)
    stored = crawls.stored()
    assert set(stored) == truth.stored
    assert set(stored.values()) == {1}
    assert len(truth.stored) > 1
    log = web.log()[before:]
    assert_asked_exactly(log, truth)
    assert_no_url_twice(log)
    return truth.outside


def _starts(web: RunningWeb) -> list[str]:
    paths = ("/a/top.html", "/docs/intro.html", "/a/b/c/deep.html")  # the shape of the example in the manual
    return [_url(web, host, path) for host, path in zip(INNER[:3], paths, strict=True)]


def test_scope_free(crawls: Crawls, web: RunningWeb) -> None:
    assert not _assert_crawled(crawls, web, _starts(web), ("--scope", "free"))


def test_scope_domain_is_the_smallest_common_domain(crawls: Crawls, web: RunningWeb) -> None:
    outside = _assert_crawled(
        crawls, web, _starts(web), ("--scope", "domain"), belongs=lambda url: urlsplit(url).hostname in INNER
    )
    url = min(outside)
    assert ask_admin(crawls.folder, "explain", url)["reason"] == "scope=domain"
    assert any(urlsplit(url).hostname == INNER[3] for url in crawls.stored()), "a host that no start URL names"


def test_scope_host(crawls: Crawls, web: RunningWeb) -> None:
    outside = _assert_crawled(crawls, web, _starts(web), ("--scope", "host"), same_hosts=True)
    assert ask_admin(crawls.folder, "explain", min(outside))["reason"] == "scope=host"


def test_the_classic_sitemap_is_one_site(crawls: Crawls, web: RunningWeb) -> None:
    outside = _assert_crawled(crawls, web, [_url(web, OUTER[0], "/")], ("--sitemap", "1"), same_hosts=True)
    assert any(f".{OUTER[0]}:" in url for url in outside), "a subdomain is another site"
    assert ask_admin(crawls.folder, "explain", min(outside))["reason"] == "scope=site"


def test_scope_path(crawls: Crawls, web: RunningWeb) -> None:
    starts = [_url(web, INNER[0], "/s0/0.html"), _url(web, INNER[1], "/docs/"), _url(web, INNER[2], "/index.html")]
    whole = f"//{INNER[2]}:{web.port}/"
    folders = (f"//{INNER[0]}:{web.port}/s0/", f"//{INNER[1]}:{web.port}/docs/", whole)
    outside = _assert_crawled(
        crawls, web, starts, ("--scope", "path"), belongs=lambda url: url.removeprefix("http:").startswith(folders)
    )
    assert any(urlsplit(url).hostname == INNER[0] for url in outside), "also on the hosts of the start URLs"
    assert ask_admin(crawls.folder, "explain", min(outside))["reason"] == "scope=path"


LISTS: list[tuple[tuple[str, ...], Callable[[str], bool], str, str]] = [
    # options, what belongs, a path that does not, the rule that is shown
    (
        ("--accept", r".*\.[hH][tT][mM][lL]?$"),
        lambda url: url.endswith((".html", "/docs/")),  # there is a link to /docs/index.htm, too
        "/report.pdf",
        "accept",
    ),
    (
        ("--accept", r"\.html$", "--accept", r"\?q=[0-9]$", "--reject", "/s[24]/", "--reject", "gzip|chunk"),
        lambda url: not re.search("/s2/|/s4/|gzip|chunk", url) and url.endswith((".html", "?q=1", "?q=3")),
        "/gzip.html",
        "reject: gzip|chunk",
    ),
    (
        ("--reject", r"\.(pdf|png)$", "--reject", r"^http://[^/]*/docs"),
        lambda url: not url.endswith((".pdf", ".png")) and not urlsplit(url).path.startswith("/docs"),
        "/docs/",
        r"reject: ^http://[^/]*/docs",
    ),
    (("--max-path-depth", "2"), lambda url: len(urlsplit(url).path.strip("/").split("/")) <= 2,
     "/a/b/c/deep.html", "max_path_depth"),
    (("--max-query-parameters", "1"), lambda url: "&" not in url, "/search?q=2&lang=cs", "max_query_parameters"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "belongs", "path", "rule"), LISTS, ids=lambda value: str(value)[:20])
def test_lists_and_limits(
    crawls: Crawls, web: RunningWeb, options: tuple[str, ...], belongs: Callable[[str], bool], path: str, rule: str
) -> None:
    # The start URL matches no expression, and belongs to the crawl nevertheless.
    start = _url(web, INNER[0], "/")
    outside = _assert_crawled(crawls, web, [start], options, same_hosts=True, belongs=belongs)
    excluded = _url(web, INNER[0], path)
    assert excluded in outside
    explained = ask_admin(crawls.folder, "explain", excluded)
    assert (explained["state"], explained["reason"]) == ("excluded", rule)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_max_depth_is_the_length_of_the_shortest_way(crawls: Crawls, depth: int) -> None:
    with run_web(hosts=3, pages=40, links=3) as web:
        outside = _assert_crawled(
            crawls, web, web.start_urls[:1], ("--scope", "free", "--max-depth", str(depth)), max_depth=depth
        )
        assert ask_admin(crawls.folder, "explain", min(outside))["reason"] == "max_depth"


def test_rules_of_the_file_count_for_urlserver_and_survive_a_restart(tmp_path: Path) -> None:
    with run_web(hosts=2, pages=20) as web:
        start = web.start_urls[0] + "s0/0.html"
        (tmp_path / "host").mkdir()
        (tmp_path / "host" / "config.cfg").write_text(
            "[url_Server]\nscope = host\nreject =\n    /s3/\n    [.]pdf$\naccept =\n    [.]html$\n    /$\n"
        )
        with run_cluster(tmp_path, [start], "--delay", "0.02") as cluster:
            cluster.kill("url")
            cluster.start("url")
            cluster.start("one")
            cluster.wait_until_finished()
            stored = cluster.stored_urls()
            explained = ask_admin(cluster.host, "explain", web.start_urls[0] + "s3/3.html")
            assert explained["reason"] == "reject: /s3/"
        truth = web.truth_from(
            [start], same_hosts=True,
            belongs=lambda url: "/s3/" not in url and url.endswith((".html", "/")),
        )  # fmt: skip
        assert set(stored) == truth.stored


def test_rules_that_change_count_for_what_is_queued(crawls: Crawls) -> None:
    with run_web(hosts=1, pages=30) as web:
        crawls.run(*web.start_urls, *FAST, "--max-pages", "9")
        assert int(crawls.summary()["still to do"]) > 0
        before = web.log()
        crawls.run(*web.start_urls, *FAST, "--reject", r"/s[0-9]/|\?")
        after = web.log()[len(before) :]
        assert after
        assert not [request.target for request in after if re.search(r"/s[0-9]/|\?", request.target)]
        assert ask_admin(crawls.folder, "explain", web.start_urls[0] + "search?q=1")["state"] in ("excluded", "done")


# --- bad input


MISTAKES = [
    (("--reject", "fine", "--reject", "(un"), "--reject fine (un: '(un' is no regular expression (RE2): missing )"),
    (("--accept", "*.html"), "no argument for repetition operator: *"),
    (("--scope", "galaxy"), "--scope galaxy: expected one of nothing, free, domain, site, host, path"),
    (("--max-path-repeats", "often"), "expected a whole number from 0 to 2000"),
    (("ftp://example.org/",), "start URL 'ftp://example.org/' is no http or https URL"),
]


def test_a_mistake_is_told_and_the_crawl_is_as_it_was(crawls: Crawls) -> None:
    with run_web(hosts=1, pages=5) as web:
        crawls.run(*web.start_urls, *FAST, "--max-pages", "9")
        for arguments, said in MISTAKES:
            assert said in crawls.run(*web.start_urls, *arguments, code=2)
        assert crawls.summary()["pages stored"] == "9"
        crawls.run(*web.start_urls, *FAST)
        assert set(crawls.stored()) == web.truth.stored
        assert set(crawls.stored().values()) == {1}


def test_ten_thousand_start_urls(tmp_path: Path) -> None:
    starts = [f"http://site{number}.example/folder/" for number in range(10_000)]
    (tmp_path / "config.cfg").write_text("[url_Server]\nscope = path\nstart_Urls =\n  " + "\n  ".join(starts) + "\n")
    with serving(tmp_path) as program:
        assert Soap(address_of(program)).totals()["known"] == 10_000
        assert program.stop() == 0
    with serving(tmp_path, *starts[:1000], "http://one.more/") as program:
        assert Soap(address_of(program)).totals()["queued"] == 10_001
        assert program.stop() == 0
    with (tmp_path / "config.cfg").open("a") as file:
        file.write("  gopher://example.org/\n")
    done = run_command("server.urlserver.main", "--dir", tmp_path)
    assert done.returncode == 2
    assert done.stderr == "urlServer: start URL 'gopher://example.org/' is no http or https URL\n"
    assert ask_admin(tmp_path, "explain", starts[77])["state"] == "queued"

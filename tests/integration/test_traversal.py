"""The order of requests, as the web server saw them, against the order that follows from its links."""

from pathlib import Path

import pytest

from tests.integration.admin import ask_admin, run_admin
from tests.integration.cluster import run_cluster
from tests.integration.onecommand import Crawls
from tests.web.identity import identity
from tests.web.requestlog import Request, asked
from tests.web.resources import Page
from tests.web.running import RunningWeb, run_web

pytestmark = pytest.mark.integration

ONE_BY_ONE = ("--delay", "0", "--number-of-threads", "1", "--report-seconds", "0.1")


def links_of(web: RunningWeb, url: str) -> list[str]:
    page = web.web.resource(url)
    assert isinstance(page, Page)
    return list(dict.fromkeys(identity(link.target) for link in page.links if link.target))


def breadth_first(web: RunningWeb, start: str) -> list[str]:
    order = [identity(start)]
    for url in order:
        order += [link for link in links_of(web, url) if link not in order]
    return order


def depth_first(web: RunningWeb, start: str) -> list[str]:
    order: dict[str, None] = {}

    def visit(url: str) -> None:
        order[url] = None
        for link in links_of(web, url):
            if link not in order:
                visit(link)

    visit(identity(start))
    return list(order)


def pages_asked(log: list[Request]) -> list[str]:
    return [identity(request.url) for request in log if not request.is_robots]


def test_bfs_asks_in_the_order_of_a_breadth_first_walk(tmp_path: Path) -> None:
    with run_web(hosts=1, pages=60, odd=False) as web:
        Crawls(tmp_path).run(*web.start_urls, *ONE_BY_ONE)  # it is the default
        assert pages_asked(web.log()) == breadth_first(web, web.start_urls[0])


def test_dfs_asks_in_the_order_of_a_depth_first_walk(tmp_path: Path) -> None:
    with run_web(hosts=1, pages=25, odd=False) as web:
        Crawls(tmp_path).run(*web.start_urls, "--delay", "0", "--traversal", "dfs")
        expected = depth_first(web, web.start_urls[0])
        assert expected != breadth_first(web, web.start_urls[0])
        assert pages_asked(web.log()) == expected


def test_random_asks_for_the_same_in_another_order(tmp_path: Path) -> None:
    with run_web(hosts=1, pages=60, odd=False) as web:
        options = ("--urls-to-crawl", "5", "--traversal", "random")
        Crawls(tmp_path).run(*web.start_urls, *ONE_BY_ONE, *options)
        log = web.log()
        assert asked(log) == web.truth.requested
        assert pages_asked(log) not in (breadth_first(web, web.start_urls[0]), depth_first(web, web.start_urls[0]))


def test_an_operator_raises_urls_and_hosts(tmp_path: Path) -> None:
    with run_web(hosts=3, pages=12, odd=False, links=0) as web:
        starts = [f"{home}s{number % 5}/{number}.html" for home in web.start_urls for number in range(12)]
        options = ("--traversal", "priority", "--delay", "0", "--urls-to-crawl", "40", "--allow-private", "1")
        with run_cluster(tmp_path, starts, *options) as cluster:
            answer = ask_admin(cluster.host, "priority", starts[20], "50")
            assert answer == {"url": starts[20], "priority": 50, "before": 1}
            run_admin(cluster.host, "priority", starts[13], "-50")
            host = starts[12].split("/")[2]
            assert run_admin(cluster.host, "priority", host, "7").stdout.split() == [host, "priority", "7"]
            assert ask_admin(cluster.host, "explain", starts[20])["score"] == 50
            assert "score" in run_admin(cluster.host, "explain", starts[20]).stdout
            cluster.stop("url")
            cluster.start("url")  # all that was set is kept
            job = cluster.coordinator.get_job("first", 14)
            assert [host in task.url for task in job.tasks] == [True] * 12 + [False] * 2
            assert (job.tasks[0].url, job.tasks[11].url) == (starts[20], starts[13])
            cluster.coordinator.exit(job.job)
            cluster.start("one")
            cluster.wait_until_finished()
            status = ask_admin(cluster.host, "status")
            assert [each["name"] for each in status["priorities"]["first"]] == [host]
            refused = run_admin(cluster.host, "priority", starts[20], "50")
            assert (refused.returncode, "is not queued" in refused.stderr) == (2, True)
        order = [request.url for request in web.log() if not request.is_robots]
        of_host = [url for url in order if host in url]
        assert of_host[0] == starts[20]
        assert [url for url in of_host if url in starts][-1] == starts[13]


def test_the_traversal_can_be_changed_between_two_runs(tmp_path: Path) -> None:
    with run_web(hosts=1, pages=40, odd=False) as web:
        crawls = Crawls(tmp_path)
        for pages, traversal in (("8", "bfs"), ("16", "dfs"), ("24", "priority"), ("0", "random")):
            crawls.run(*web.start_urls, "--delay", "0", "--traversal", traversal, "--max-pages", pages)
        assert set(crawls.stored()) == web.truth.stored
        assert set(crawls.stored().values()) == {1}
        assert not ask_admin(tmp_path, "audit")["differences"]["number"]

"""Which URL of a host is taken first, under each traversal; and what an operator can change about it."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from common.settings import TRAVERSALS
from common.wire import FoundUrl, Outcome, Report, UrlResult
from server.frontier.frontier import FrontierError, Rules
from server.frontier.hosts import Host
from server.frontier.order import Order, parts_of, score_of
from server.frontier.records import State
from server.frontier.rocks import RocksStore
from server.frontier.store import StoreError, Table
from tests.frontier import Case, Make, pages, urls_of
from tests.frontier_faults import FailingStore
from tests.unit.test_frontier_turns import CountingStore

pytestmark = pytest.mark.contract

Graph = dict[str, Sequence[str]]  # page -> its links, in their order


def crawl(case: Case, graph: Graph, start: str = "http://a/0", wanted: int = 100) -> list[str]:
    """As one client with one connection does it: page after page, each reported before the next job."""
    order: list[str] = []
    case.add(start)
    for number in range(10_000):
        leased = case.lease("a", str(number), wanted)
        if leased.finished:
            return order
        for task in leased.tasks:
            order.append(task.url)
            found = [FoundUrl(link, task.depth + 1) for link in graph[task.url]]
            report = Report("", [UrlResult(task.url, Outcome.STORED)], found)
            case.frontier.report("a", leased.job, report)
        case.clock.advance(leased.wait_seconds)
    raise AssertionError("never finished")


def any_graph(seed: int, hosts: str = "a") -> Graph:
    dice = random.Random(seed)
    urls = [url for host in hosts for url in pages(host, 30)]
    return {url: dice.sample(urls, dice.randint(0, 6)) for url in urls}


def depth_first(graph: Graph, start: str) -> list[str]:
    """The textbook's walk: a page, and then each of its links with all that it leads to."""
    order: dict[str, None] = {}

    def visit(url: str) -> None:
        order[url] = None
        for link in graph[url]:
            if link not in order:
                visit(link)

    visit(start)
    return list(order)


def breadth_first(graph: Graph, start: str) -> list[str]:
    order = [start]
    for url in order:
        order += [link for link in dict.fromkeys(graph[url]) if link not in order]
    return order


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("wanted", [1, 7, 100])
def test_bfs_is_a_breadth_first_walk(frontiers: Make, seed: int, wanted: int) -> None:
    graph = any_graph(seed)
    assert crawl(frontiers(delay_seconds=0), graph, wanted=wanted) == breadth_first(graph, "http://a/0")


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("wanted", [1, 100])
def test_dfs_is_a_depth_first_walk(frontiers: Make, seed: int, wanted: int) -> None:
    graph = any_graph(seed)
    case = frontiers(delay_seconds=0, traversal="dfs")
    assert crawl(case, graph, wanted=wanted) == depth_first(graph, "http://a/0")


@pytest.mark.parametrize("traversal", TRAVERSALS)
def test_every_traversal_takes_everything_once(frontiers: Make, traversal: str) -> None:
    graph = any_graph(9, "abc")
    order = crawl(frontiers(delay_seconds=0, traversal=traversal), graph)
    assert sorted(order) == sorted(breadth_first(graph, "http://a/0"))


def test_bfs_takes_the_least_depth_first_whenever_it_comes(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0)
    case.add("http://a/5", depth=5)
    case.add("http://a/3", depth=3)
    case.add("http://a/5b", depth=5)
    assert urls_of(case.lease(wanted=1)) == ["http://a/3"]
    case.add("http://a/4", depth=4)
    case.add("http://a/5b", depth=1)  # found again, nearer
    assert case.frontier.explain("http://a/5b").depth == 1
    assert urls_of(case.lease()) == ["http://a/5b", "http://a/4", "http://a/5"]


def test_dfs_has_as_many_urls_of_a_host_out_as_connections(frontiers: Make) -> None:
    for connections in (1, 3):
        case = frontiers(delay_seconds=0, traversal="dfs", connections_per_host=connections)
        case.add(*pages("a", 9), *pages("b", 9))
        assert len(case.lease().tasks) == 2 * connections
        assert not case.lease().tasks


def test_random_puts_urls_at_either_end(frontiers: Make) -> None:
    orders = set()
    for _ in range(4):
        case = frontiers(delay_seconds=0, traversal="random")
        for url in pages("a", 40):
            case.add(url)
        order = [int(url.rpartition("/")[2]) for url in urls_of(case.lease())]
        turn = next(at for at in range(39) if order[at] < order[at + 1])  # 2^-39 that there is none
        assert order[: turn + 1] == sorted(order[: turn + 1], reverse=True), "at the front: the last one first"
        assert order[turn + 1 :] == sorted(order[turn + 1 :]), "at the back: the first one first"
        orders.add(tuple(order))
    assert len(orders) == 4


# --- scores


def test_what_is_found_more_often_comes_first(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0, traversal="priority")
    case.add(*pages("a", 4), depth=2)
    case.add("http://a/9", depth=5)
    case.add("http://a/2")
    case.add("http://a/2", "http://a/3")
    assert [case.frontier.explain(url).score for url in (*pages("a", 4), "http://a/9")] == [-1, -1, 1, 0, -4]
    assert urls_of(case.lease()) == ["http://a/2", "http://a/3", "http://a/0", "http://a/1", "http://a/9"]


def test_a_report_that_is_sent_again_raises_nothing(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0, traversal="priority")
    case.add("http://a/", "http://a/x")
    leased = case.lease(wanted=1)
    for _ in range(3):
        case.report("a", leased.job, {"http://a/": Outcome.STORED}, ["http://a/x", "http://a/y"])
    assert case.frontier.explain("http://a/x").score == 2
    assert case.frontier.explain("http://a/y").score == 0


def test_an_operator_sets_a_score_and_the_next_lease_follows(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0, traversal="priority")
    case.add(*pages("a", 5))
    assert case.frontier.set_score("http://a/4", 100) == 1
    assert case.frontier.set_score("http://a/0", -100) == 1
    assert urls_of(case.lease(wanted=1)) == ["http://a/4"]
    case.reopen()
    case.frontier.set_score("http://a/3", 99_999)
    assert urls_of(case.lease(wanted=3)) == ["http://a/3", "http://a/1", "http://a/2"]
    for url in ("http://a/3", "http://a/unknown"):
        with pytest.raises(FrontierError, match="is not queued"):
            case.frontier.set_score(url, 5)


def test_scores_are_for_priority_only(frontiers: Make) -> None:
    case = frontiers(traversal="dfs")
    case.add("http://a/")
    with pytest.raises(FrontierError, match="traversal = priority only; here it is dfs"):
        case.frontier.set_score("http://a/", 5)
    assert case.frontier.explain("http://a/").score is None


def test_a_score_outlives_a_failure(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0, traversal="priority", retry_wait_seconds=10)
    case.add(*pages("a", 3))
    case.frontier.set_score("http://a/1", 50)
    case.finish("a", case.lease(wanted=1), Outcome.SERVER_ERROR)
    assert case.frontier.set_score("http://a/1", 40) == 50, "also while it waits for its next try"
    assert case.state("http://a/1") is State.WAITING
    case.clock.advance(10)
    assert urls_of(case.lease(wanted=2)) == ["http://a/1", "http://a/0"]
    assert case.frontier.explain("http://a/1").score == 40


@pytest.mark.parametrize("traversal", TRAVERSALS)
def test_hosts_with_a_priority(frontiers: Make, traversal: str) -> None:
    case = frontiers(delay_seconds=0, traversal=traversal, connections_per_host=4)
    for host in "abcd":
        case.add(*pages(host, 4))
    for host, priority in (("c", 5), ("d", 7), ("a", -1)):
        case.frontier.set_priority(host, priority)
    case.reopen()
    taken = [url[7] for url in urls_of(case.lease("x", wanted=10))]
    assert taken == ["d"] * 4 + ["c"] * 4 + ["b"] * 2
    assert [url[7] for url in urls_of(case.lease("x", wanted=10))] == ["b"] * 2, "those below 0 come last"
    assert [url[7] for url in urls_of(case.lease("x", wanted=10))] == ["a"] * 4
    assert [host.name for host in case.frontier.overview().prioritised] == ["a", "c", "d"]


def test_a_raised_host_gets_the_whole_job_if_it_can(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0)
    case.add(*pages("a", 100), *pages("b", 100))
    case.frontier.set_priority("b", 1)
    assert {url[7] for url in urls_of(case.lease(wanted=60))} == {"b"}


def test_a_priority_can_be_taken_back(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0)
    case.add(*pages("a", 2), *pages("b", 2))
    case.frontier.set_priority("b", 1)
    assert urls_of(case.lease(wanted=1)) == ["http://b/0"]
    case.frontier.set_priority("b", 0)
    case.add("http://c/")
    assert {url[7] for url in urls_of(case.lease())} == set("abc")
    assert not case.frontier.overview().prioritised


def test_a_host_with_a_priority_keeps_its_delay(frontiers: Make) -> None:
    case = frontiers(delay_seconds=5, lease_seconds=10)
    case.add(*pages("a", 2))
    case.frontier.set_priority("a", 5)
    case.finish("x", case.lease("x"))
    waiting = case.lease("y")
    assert not waiting.tasks
    assert waiting.wait_seconds == pytest.approx(5)
    case.clock.advance(5)
    assert case.lease("y").tasks


# --- another traversal after a restart


def with_traversal(case: Case, traversal: str) -> Case:
    case.rules = replace(case.rules, traversal=traversal)
    case.reopen()
    case.audit()
    return case


def numbers(urls: Sequence[str]) -> list[int]:
    return [int(url.rpartition("/")[2]) for url in urls]


@pytest.mark.parametrize("before", TRAVERSALS)
@pytest.mark.parametrize("after", TRAVERSALS)
def test_another_traversal_orders_what_is_queued(frontiers: Make, before: str, after: str) -> None:
    case = frontiers(delay_seconds=0, traversal=before, connections_per_host=10)
    depths = (2, 1, 3, 1, 2)
    for url, depth in zip(pages("a", 5), depths, strict=True):
        case.add(url, depth=depth)
    order = numbers(urls_of(with_traversal(case, after).lease()))
    expected = {"bfs": [1, 3, 0, 4, 2], "dfs": [4, 3, 2, 1, 0], "priority": [1, 3, 0, 4, 2]}
    assert sorted(order) == [0, 1, 2, 3, 4]
    assert order == expected.get(after, order)


def test_what_was_leased_or_waiting_finds_its_place_under_another_traversal(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0, traversal="dfs", retry_wait_seconds=1, connections_per_host=2)
    for number, url in enumerate(pages("a", 6)):
        case.add(url, depth=number % 3)
    failing = case.lease("x", wanted=1)  # the one found last
    case.finish("x", failing, Outcome.SERVER_ERROR)
    held = case.lease("y", wanted=2)
    assert numbers([*urls_of(failing), *urls_of(held)]) == [5, 4, 3]
    with_traversal(case, "bfs")
    case.frontier.release("y", held.job)
    case.audit()
    case.clock.advance(10)
    assert numbers(urls_of(case.lease("x"))) == [0, 3, 1, 4, 2, 5]


@pytest.mark.faults
def test_ordering_anew_can_be_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.frontier.reordering._BATCH", 3)
    for failing in range(1, 6):
        case = Case(tmp_path / str(failing), Rules(delay_seconds=0))
        for url in pages("a", 10):
            case.add(url)
        case.rules = replace(case.rules, traversal="dfs", connections_per_host=10)
        case.make = lambda folder, failing=failing: FailingStore(RocksStore(folder), failing)  # type: ignore[misc]
        with pytest.raises(StoreError):
            case.reopen()
        case.store.close()
        case.make = RocksStore
        case._open()
        case.audit()
        assert numbers(urls_of(case.lease())) == list(range(9, -1, -1))
        case.close()


# --- what it costs


@pytest.mark.parametrize("traversal", TRAVERSALS)
def test_the_length_of_a_queue_costs_nothing(tmp_path: Path, traversal: str) -> None:
    rows = []
    for number in (1_000, 50_000):
        rules = Rules(delay_seconds=0, traversal=traversal, connections_per_host=100)
        case = Case(tmp_path / str(number), rules, make=CountingStore)
        for start in range(0, number, 10_000):
            urls = [f"http://a/{page}" for page in range(start, min(start + 10_000, number))]
            case.frontier.add([FoundUrl(url, page % 9) for page, url in enumerate(urls)])
        assert isinstance(case.store, CountingStore)
        case.store.rows = 0
        for _ in range(5):
            leased = case.lease("a", wanted=100)
            assert len(leased.tasks) == 100
            case.finish("a", leased)
        rows.append(case.store.rows)
        case.close()
    assert rows[0] == rows[1]
    assert 500 <= rows[0] < 600


# --- numbers


def all_numbers(order: Order, host: Host) -> Iterator[int]:
    for depth in (0, 1, 7, 65_535, 99_999):
        number = order.next(host, depth)
        yield number
        yield order.again(host, number, depth)
        yield order.kept(number, depth)
        yield order.refound(host, number, depth)


@pytest.mark.parametrize("traversal", TRAVERSALS)
def test_numbers_fit_and_say_what_they_are(traversal: str) -> None:
    order, host = Order(traversal), Host(1, "a")
    host.tail = 5
    for number in all_numbers(order, host):
        assert 0 <= number < 1 << 64
        kind, _, arrival = parts_of(number)
        assert TRAVERSALS[kind] == traversal
        assert 5 <= arrival < host.tail
        assert order.kept(number, 0) == number


def test_scores_stay_within_their_bounds() -> None:
    order, host = Order("priority"), Host(1, "a")
    for wanted, expected in ((10**9, 32_767), (-(10**9), -32_768), (0, 0), (-7, -7)):
        number = order.with_score(order.next(host, 3), wanted)
        assert score_of(number, 3) == expected
        assert order.with_score(number, wanted) == number


def test_the_first_bytes_of_a_queued_url_tell_its_depth(frontiers: Make) -> None:
    """The quick look in `Order.moves` depends on where they are."""
    case = frontiers()
    case.add("http://a/", depth=0x1234)
    packed = case.store.get(Table.URLS, case.frontier._view.key("http://a/"))
    assert packed is not None
    assert Order("bfs").moves(packed, 0x1233)
    assert not Order("bfs").moves(packed, 0x1234)

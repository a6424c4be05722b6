"""What the frontier promises when URLs are added and handed out."""

import pytest

from common.wire import FoundUrl, HostFact, Outcome
from server.frontier.records import State
from server.policy.policy import Policy
from tests.frontier import Make, pages, urls_of

pytestmark = pytest.mark.contract
# --- adding


def test_a_url_is_new_once(frontiers: Make) -> None:
    case = frontiers()
    assert case.add("http://a/", "http://a/x", "http://a/x#part", "HTTP://A:80/x") == 2
    assert case.add("http://a/x", "http://a/y") == 1
    assert case.frontier.totals().known == 3
    assert case.frontier.totals().hosts == 1


def test_what_is_no_url_is_dropped(frontiers: Make) -> None:
    case = frontiers()
    assert case.add("mailto:x@a", "http://", "http://a/" + "x" * 2000, "http://a/\x00") == 1
    assert case.frontier.totals().known == 1


def test_index_names_are_the_same_page_and_the_address_found_first_is_asked(frontiers: Make) -> None:
    case = frontiers()
    assert case.add("http://a/index.html", "http://a/") == 1
    assert case.add("http://a/index.php") == 0
    assert urls_of(case.lease()) == ["http://a/index.html"]


def test_a_page_is_one_page_whoever_visits_it(frontiers: Make) -> None:
    case = frontiers()
    first, second = (f"http://a/x;jsessionid={mark * 32}?y=1" for mark in "AB")
    assert case.add(first, second) == 1
    assert case.add("http://a/x?PHPSESSID=77&y=1", "http://a/x?y=1") == 0
    assert urls_of(case.lease()) == [first]


def test_index_names_can_be_told_apart(frontiers: Make) -> None:
    assert frontiers(drop_index_names=False).add("http://a/index.html", "http://a/") == 2


def test_depth_and_hops_are_the_least_of_all_ways(frontiers: Make) -> None:
    case = frontiers()
    ways = [FoundUrl("http://a/", 5, 0), FoundUrl("http://a/index.html", 2, 1), FoundUrl("http://b/", -1, -1)]
    case.frontier.add(ways)
    tasks = {task.url: (task.depth, task.hops) for task in case.lease().tasks}
    assert tasks == {"http://a/": (2, 0), "http://b/": (0, 0)}


# --- policy


def test_scope_host(frontiers: Make) -> None:
    case = frontiers(Policy("host", ("http://a/",)))
    assert case.add("http://a/", "http://b/") == 2
    assert case.state("http://b/") is State.EXCLUDED
    assert case.frontier.explain("http://b/").reason == "scope=host"
    assert urls_of(case.lease()) == ["http://a/"]


def test_start_urls_are_always_inside_and_may_be_private(frontiers: Make) -> None:
    case = frontiers(Policy("host", ("http://a/",)))
    case.add("http://b/", "http://b/2")
    private = {"b": ("10.0.0.5",), "c": ("10.0.0.6", "fd00::6")}
    assert case.frontier.begin_with(["http://b/", "http://c/"], private) == 1  # b was known as excluded
    leased = case.lease()
    assert set(urls_of(leased)) == {"http://b/", "http://c/"}
    assert {share.host: share.private for share in leased.hosts} == {"b": "10.0.0.5", "c": "10.0.0.6 fd00::6"}
    assert case.state("http://b/2") is State.EXCLUDED


def test_a_start_url_that_is_known_opens_its_host(frontiers: Make) -> None:
    case = frontiers()
    case.add("http://a/")
    case.frontier.begin_with(["http://a/"], {"a": ("10.0.0.5",)})
    assert case.lease().hosts[0].private == "10.0.0.5"


@pytest.mark.parametrize(("kind", "limit"), [("depth", "max_depth"), ("hops", "max_redirects")])
def test_depth_and_redirects_are_limited(frontiers: Make, kind: str, limit: str) -> None:
    case = frontiers(Policy(**{limit: 2}))  # type: ignore[arg-type]
    case.add("http://a/2", **{kind: 2})  # type: ignore[arg-type]
    case.add("http://a/3", **{kind: 3})  # type: ignore[arg-type]
    assert urls_of(case.lease()) == ["http://a/2"]
    assert case.frontier.explain("http://a/3").reason == limit


def test_a_shorter_way_brings_a_url_back(frontiers: Make) -> None:
    case = frontiers(Policy(max_depth=2))
    case.add("http://a/", depth=3)
    assert case.add("http://a/", depth=1) == 0  # known, but no longer excluded
    assert urls_of(case.lease()) == ["http://a/"]


def test_what_robots_txt_excluded_stays_so(frontiers: Make) -> None:
    case = frontiers()
    case.add("http://a/")
    case.finish("a", case.lease(), Outcome.DISALLOWED)
    case.add("http://a/")
    case.add("http://a/", start=True)
    assert case.state("http://a/") is State.EXCLUDED
    assert case.frontier.is_finished()


# --- leasing


def test_an_empty_frontier_is_finished(frontiers: Make) -> None:
    leased = frontiers().lease()
    assert (leased.job, leased.tasks, leased.finished) == (0, (), True)


def test_the_same_request_gives_the_same_job(frontiers: Make) -> None:
    case = frontiers(lease_seconds=100)
    case.add(*pages("a", 5))
    first = case.lease("a", "r1")
    case.report("a", first.job, {"http://a/0": Outcome.STORED})
    case.clock.advance(99)
    again = case.lease("a", "r1")
    assert again.job == first.job
    assert urls_of(again) == pages("a", 5)[1:]
    assert again.hosts == first.hosts
    case.clock.advance(99)  # the answer promised the whole time once more
    assert case.frontier.expire() == 0
    assert case.lease("b", "r1").job == 0  # somebody else's r1 is another request


def test_a_host_is_leased_to_one_client_at_a_time(frontiers: Make) -> None:
    case = frontiers()
    case.add(*pages("a", 200))
    first = case.lease("a", wanted=10)
    assert len(first.tasks) == 10
    assert not case.lease("b").tasks
    assert len(case.lease("a", wanted=10).tasks) == 10  # more of it for the one who has it


def test_the_delay_of_a_host_holds_between_jobs(frontiers: Make) -> None:
    case = frontiers(delay_seconds=3)
    case.add(*pages("a", 2))
    first = case.lease("a", wanted=1)
    case.finish("a", first)
    waiting = case.lease("b")
    assert not waiting.tasks
    assert waiting.wait_seconds == pytest.approx(3)
    case.clock.advance(2.9)
    assert not case.lease("b").tasks
    case.clock.advance(0.2)
    assert case.lease("b").tasks


@pytest.mark.parametrize("end", ["finish", "release"])
def test_the_delay_of_a_host_holds_after_a_restart(frontiers: Make, end: str) -> None:
    case = frontiers(delay_seconds=3)
    case.add(*pages("a", 2))
    first = case.lease("a", wanted=1)
    if end == "finish":
        case.finish("a", first)
    else:
        case.frontier.release("a", first.job)
    case.reopen()
    assert not case.lease("b").tasks
    case.clock.advance(3)
    assert case.lease("b").tasks


def test_hosts_that_were_never_asked_are_ready_after_a_restart(frontiers: Make) -> None:
    case = frontiers(delay_seconds=1000)
    case.add("http://a/")
    case.reopen()
    assert case.lease().tasks


def test_no_more_urls_of_a_host_than_its_delay_allows(frontiers: Make) -> None:
    case = frontiers(delay_seconds=1, lease_seconds=20)
    case.add(*pages("a", 50))
    assert len(case.lease().tasks) == 10  # half of the lease, so that a renewal comes in time
    assert not case.lease().tasks


def test_a_longer_delay_does_not_upset_what_is_out(frontiers: Make) -> None:
    case = frontiers(delay_seconds=1, lease_seconds=60)
    case.add(*pages("a", 50))
    first = case.lease()
    case.report("a", first.job, {"http://a/0": Outcome.STORED}, hosts=[HostFact("a", crawl_delay_seconds=30)])
    assert not case.lease().tasks  # 29 are out, and only one would fit now
    assert case.lease("a", "x").job == 0


def test_crawl_delay_is_obeyed_up_to_the_limit(frontiers: Make) -> None:
    case = frontiers(delay_seconds=1, max_crawl_delay_seconds=60)
    case.add(*pages("a", 3))
    for asked, obeyed in ((10, 10), (1000, 60)):
        first = case.lease("a", wanted=1)
        facts = [HostFact("a", crawl_delay_seconds=asked), HostFact("unknown", crawl_delay_seconds=1)]
        case.report("a", first.job, dict.fromkeys(urls_of(first), Outcome.STORED), hosts=facts)
        case.clock.advance(obeyed - 0.1)
        assert not case.lease().tasks
        case.clock.advance(0.1)
    assert case.lease().hosts[0].delay_seconds == 60


def test_a_full_host_does_not_keep_its_client_from_others(frontiers: Make) -> None:
    case = frontiers(delay_seconds=10, lease_seconds=20)
    case.add(*pages("a", 5))
    assert urls_of(case.lease("a", wanted=8)) == ["http://a/0"]
    case.add("http://b/")
    assert urls_of(case.lease("a", wanted=8)) == ["http://b/"]


def test_hosts_take_turns(frontiers: Make) -> None:
    case = frontiers(delay_seconds=1, lease_seconds=2)  # one URL of a host at a time
    for host in "abc":
        case.add(*pages(host, 3))
    hosts = [url[7] for url in case.drain()]
    assert [set(hosts[i : i + 3]) for i in (0, 3, 6)] == [set("abc")] * 3


def test_new_hosts_do_not_push_in(frontiers: Make) -> None:
    case = frontiers(delay_seconds=1, lease_seconds=2)
    case.add(*pages("old", 2))
    case.finish("a", case.lease("a", wanted=1))
    case.clock.advance(1)
    case.add(*(f"http://new{i}/" for i in range(20)))
    case.add("http://old/more")  # keeps its place
    assert urls_of(case.lease("a", wanted=1)) == ["http://old/1"]


def test_a_client_that_has_all_hosts_leaves_some_to_the_hungry(frontiers: Make) -> None:
    case = frontiers(lease_seconds=100)
    for host in "abcd":
        case.add(*pages(host, 100))
    first = case.lease("a", wanted=40)
    assert len(first.hosts) == 4
    assert not case.lease("b").tasks
    second = case.lease("a", wanted=40)  # before it has run dry, as clients do
    assert [share.host for share in second.hosts] == ["a", "b"]
    case.finish("a", first)
    case.clock.advance(1)
    assert {share.host for share in case.lease("b").hosts} == {"c", "d"}


def test_connections_are_shared_out_to_all_who_ask(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0, connections_per_host=4)
    case.add(*pages("a", 400))
    first = case.lease("a", wanted=10)
    assert first.hosts[0].connections == 4
    assert not case.lease("b", wanted=10).tasks
    case.finish("a", first)
    second = case.lease("a", wanted=10)
    other = case.lease("b", wanted=10)
    assert (second.hosts[0].connections, other.hosts[0].connections) == (2, 2)
    assert not set(urls_of(second)) & set(urls_of(other))


def test_one_client_may_use_all_connections_of_a_host_with_a_delay(frontiers: Make) -> None:
    case = frontiers(connections_per_host=4)
    case.add(*pages("a", 40))
    assert case.lease("a", wanted=10).hosts[0].connections == 4
    assert not case.lease("b", wanted=10).tasks


# --- limits


def test_max_pages_is_exact_with_several_clients(frontiers: Make) -> None:
    case = frontiers(delay_seconds=0, max_pages=10)
    case.add(*(f"http://h{i}/" for i in range(40)))
    first, second, third = (case.lease(name, wanted=6) for name in "abc")
    assert [len(leased.tasks) for leased in (first, second, third)] == [6, 4, 0]
    assert not third.finished
    case.finish("a", first, Outcome.NOT_FOUND)
    case.finish("b", second)
    fourth = case.lease("c", wanted=100)
    assert len(fourth.tasks) == 6
    case.finish("c", fourth)
    assert case.lease("a").finished
    assert case.frontier.is_finished()
    assert case.frontier.totals().stored == 10

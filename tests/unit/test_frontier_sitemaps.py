"""Sitemaps in the frontier: what is taken in, handed out, counted and done, and what they say about pages. Each case is
audited at its end."""

from dataclasses import replace

import pytest

from common.wire import FoundUrl, Kind, ListedUrl, Outcome, Report, UrlResult, UrlTask
from server.frontier import sitemaps
from server.frontier.frontier import Settled
from server.frontier.hosts import Host
from server.frontier.recount import recount
from server.frontier.store import Table
from server.frontier.visits import Period
from server.policy.policy import Policy
from tests.frontier import Case, Make, pages, urls_of

HOUR = 3600.0
HOME, MAP, PAGE = "http://a/", "http://a/sitemap.xml", "http://a/page"
ADAPTIVE = Period(is_adaptive=True, shortest=1 * HOUR, longest=100 * HOUR)


def named(url: str = MAP, **fields: object) -> ListedUrl:
    return ListedUrl(url, 0, kind=Kind.SITEMAP)._replace(**fields)


def guessed(url: str = MAP) -> ListedUrl:
    return named(url, kind=Kind.GUESSED)


def opened(frontiers: Make, *listed: ListedUrl, policy: Policy | None = None, **rules: object) -> Case:
    """A crawl that has its start page, and has heard of these."""
    case = frontiers(policy, **{"delay_seconds": 0, "sitemaps": True, **rules})
    case.add(HOME, start=True)
    case.report("x", case.lease("x").job, {HOME: Outcome.STORED}, listed=listed)
    return case


def tell(case: Case, *listed: ListedUrl) -> Settled:
    return case.report("x", 1, {}, listed=listed)


def read(case: Case, outcome: Outcome = Outcome.LISTED, *listed: ListedUrl) -> list[UrlTask]:
    """Lease what there is, and report it all with one outcome."""
    leased = case.lease("x")
    case.report("x", leased.job, dict.fromkeys(urls_of(leased), outcome), listed=listed)
    return list(leased.tasks)


# --- the life of a sitemap


def test_a_sitemap_is_handed_out_as_such_and_done_without_a_page(frontiers: Make) -> None:
    case = opened(frontiers, named(depth=2), guessed("http://b/sitemap.xml"))
    expected = {UrlTask(MAP, 2, kind=Kind.SITEMAP), UrlTask("http://b/sitemap.xml", kind=Kind.GUESSED)}
    case.reopen()
    case.clock.advance(1)
    assert set(case.lease("x", "r").tasks) == expected
    case.reopen()
    assert set(case.lease("x", "r").tasks) == expected, "the same request again"
    case.report("x", 2, {MAP: Outcome.LISTED, "http://b/sitemap.xml": Outcome.NOT_FOUND},
                listed=[ListedUrl(PAGE, 3), ListedUrl("http://a/other", 3)])  # fmt: skip
    totals = case.frontier.totals()
    assert (totals.known, totals.queued, totals.done, totals.stored, totals.failed) == (5, 2, 3, 1, 0)
    explained = case.frontier.explain(MAP)
    assert (explained.state, explained.reason, explained.is_sitemap) == ("done", "listed", True)
    assert set(case.drain()) == {PAGE, "http://a/other"}
    assert not list(case.store.scan(Table.VISITS)), "without a period"


def test_telling_it_again_changes_nothing(frontiers: Make) -> None:
    case = opened(frontiers, named())
    assert tell(case, named(), guessed()).new_urls == 0
    assert [task.kind for task in read(case)] == [Kind.SITEMAP]
    assert tell(case, named(), guessed()).new_urls == 0
    assert case.lease("x").finished


def test_a_sitemap_that_is_named_and_guessed_is_named(frontiers: Make) -> None:
    case = opened(frontiers, guessed(), named())
    assert [task.kind for task in read(case)] == [Kind.SITEMAP]


def test_without_the_setting_sitemaps_are_not_heard_of(frontiers: Make) -> None:
    case = opened(frontiers, named(), ListedUrl(PAGE, 1), sitemaps=False)
    assert case.drain() == [PAGE]


def test_what_cannot_be_an_address_is_dropped(frontiers: Make) -> None:
    case = opened(frontiers, named("ftp://a/x"), named("nonsense"), ListedUrl("", 1), ListedUrl("mailto:x", 1))
    assert case.frontier.totals().known == 1


@pytest.mark.parametrize("kind", [Kind.SITEMAP, Kind.GUESSED])
def test_what_fails_is_failed_only_if_somebody_names_it(frontiers: Make, kind: Kind) -> None:
    case = opened(frontiers, named(kind=kind), retry_wait_seconds=1)
    read(case, Outcome.TIMEOUT)
    case.clock.advance(2)
    read(case, Outcome.TIMEOUT)
    case.reopen()
    case.clock.advance(11)
    read(case, Outcome.TIMEOUT)
    totals = case.frontier.totals()
    assert (totals.failed, totals.done, totals.again) == ((1, 1, 0) if kind is Kind.SITEMAP else (0, 2, 0))
    assert case.frontier.retry([MAP]) == (kind is Kind.SITEMAP)
    if kind is Kind.SITEMAP:
        case.clock.advance(1000)
        assert read(case) == [UrlTask(MAP, kind=Kind.SITEMAP)], "still a sitemap"


def test_a_host_that_stays_dead_takes_its_sitemaps_along(frontiers: Make) -> None:
    case = opened(frontiers, named("http://dead/named.xml"), guessed("http://dead/sitemap.xml"), retry_wait_seconds=1)
    case.add(*pages("dead", 3))
    for _ in range(200):
        leased = case.lease("x")
        if leased.tasks:
            case.finish("x", leased, Outcome.REFUSED)
        case.frontier.tick()
        case.audit()
        case.clock.advance(100)
    totals = case.frontier.totals()
    assert (totals.queued, totals.failed, totals.done) == (0, 4, 2)


def test_robots_txt_is_obeyed(frontiers: Make) -> None:
    case = opened(frontiers, named(), guessed("http://a/2.xml"))
    read(case, Outcome.DISALLOWED)
    assert case.frontier.explain(MAP).reason == "disallowed"
    assert case.frontier.totals().excluded == 1, "what nobody names is done, whatever it brings"


def test_limits_in_pages_are_not_about_sitemaps(frontiers: Make) -> None:
    case = opened(frontiers, named(), *(ListedUrl(url, 1) for url in pages("a", 5)), max_pages=3, max_pages_per_host=3)
    tell(case, named("http://a/2.xml"))
    leased = case.lease("x")
    kinds = [task.kind for task in leased.tasks]
    assert (kinds.count(Kind.SITEMAP), kinds.count(Kind.PAGE)) == (2, 2)
    ends = {Kind.PAGE: Outcome.STORED, Kind.SITEMAP: Outcome.LISTED}
    case.report("x", leased.job, {task.url: ends[task.kind] for task in leased.tasks})
    assert case.frontier.totals().stored == 3
    assert case.frontier.is_finished()
    tell(case, named("http://a/3.xml"))
    assert not case.frontier.is_finished(), "it can still be read"
    assert urls_of(case.lease("x")) == ["http://a/3.xml"]
    case.report("x", 3, {"http://a/3.xml": Outcome.LISTED})
    assert case.frontier.ended_by() == "max_pages"


def test_a_client_that_knows_no_sitemaps_stores_it(frontiers: Make) -> None:
    case = opened(frontiers, named(), period=ADAPTIVE)
    read(case, Outcome.STORED)
    assert case.audit().stored == 2
    case.clock.advance(2 * HOUR)
    read(case)
    explained = case.frontier.explain(MAP)
    assert (explained.reason, case.audit().stored) == ("listed", 2)
    case.clock.advance(200 * HOUR)
    read(case, Outcome.STORED)
    assert case.audit().stored == 2


def test_given_back_late_and_refused(frontiers: Make) -> None:
    case = opened(frontiers, named(), lease_seconds=10)
    job = case.lease("x").job
    case.clock.advance(11)
    assert case.frontier.expire() == 1
    assert case.report("x", job, {MAP: Outcome.LISTED}, listed=[named()]).accepted == 1, "late, and nobody has taken it"
    assert case.frontier.explain(MAP).reason == "listed"
    assert case.lease("x").finished


# --- what is one, and what is not


def test_a_link_does_not_make_it_a_page(frontiers: Make) -> None:
    case = opened(frontiers)
    case.frontier.report("x", 1, Report("1", [], [FoundUrl(MAP, 1)], listed=[named()]))
    case.add(MAP, depth=1)
    assert [task.kind for task in read(case)] == [Kind.SITEMAP]
    case.add(MAP, depth=1)
    assert case.lease("x").finished


def test_a_queued_page_becomes_a_sitemap_if_its_host_says_so(frontiers: Make) -> None:
    case = opened(frontiers, ListedUrl(MAP, 1))
    tell(case, named(host="b"))
    assert not case.frontier.explain(MAP).is_sitemap
    tell(case, named(), ListedUrl(MAP, 1))
    assert read(case) == [UrlTask(MAP, kind=Kind.SITEMAP)]


@pytest.mark.parametrize("period", [Period(), ADAPTIVE])
def test_a_stored_page_becomes_one_and_stays_stored(frontiers: Make, period: Period) -> None:
    case = opened(frontiers, ListedUrl(MAP, 1), period=period)
    case.finish("x", case.lease("x"))
    tell(case, named(host="b"))
    assert case.lease("x").finished
    tell(case, named())
    totals = case.audit()
    assert (totals.stored, totals.queued, totals.again) == (2, 1, 1)
    assert [task.kind for task in read(case)] == [Kind.SITEMAP]
    assert case.audit().stored == 2


@pytest.mark.parametrize(("outcome", "is_taken"), [(Outcome.UNWANTED, True), (Outcome.DISALLOWED, False)])
def test_one_that_was_not_wanted_as_a_page(frontiers: Make, outcome: Outcome, is_taken: bool) -> None:
    case = opened(frontiers, ListedUrl(MAP, 1))
    case.finish("x", case.lease("x"), outcome)
    tell(case, named())
    assert case.frontier.totals().queued == is_taken


def test_one_that_is_leased_or_waits_as_a_page_stays_one(frontiers: Make) -> None:
    case = opened(frontiers, ListedUrl(MAP, 1), retry_wait_seconds=1)
    leased = case.lease("x")
    tell(case, named())
    case.finish("x", leased, Outcome.TIMEOUT)
    tell(case, named())
    assert case.drain() == [MAP]
    assert case.frontier.totals().stored == 2


def test_what_is_no_sitemap_is_a_page(frontiers: Make) -> None:
    """Nobody shall keep a page of others from being crawled by calling it a sitemap."""
    case = opened(frontiers, named("http://victim/page", host="a"), named("http://a/x/page"),
                  policy=Policy(reject=("/x/",)))  # fmt: skip
    read(case, Outcome.UNWANTED)
    assert case.frontier.explain("http://a/x/page").reason == "reject: /x/"
    leased = case.lease("x")
    assert list(leased.tasks) == [UrlTask("http://victim/page", 1)]
    case.finish("x", leased)
    assert case.audit().stored == 2
    tell(case, named("http://victim/page", host="a"))
    assert case.lease("x").finished


def with_stored_page(frontiers: Make, period: Period) -> Case:
    """A crawl with a page that knows how to be asked for only if it has changed."""
    case = opened(frontiers, ListedUrl(PAGE, 3), period=period)
    result = UrlResult(PAGE, Outcome.STORED, 200, etag='"1"', last_modified="then", sha1="a" * 40)
    case.frontier.report("x", case.lease("x").job, Report("2", [result], []))
    return case


ASKED_AS_PAGE = UrlTask(PAGE, 3, 0, '"1"', "then", "a" * 40)


@pytest.mark.parametrize("kind", [Kind.SITEMAP, Kind.GUESSED])
@pytest.mark.parametrize("outcome", [Outcome.UNWANTED, Outcome.NOT_FOUND, Outcome.DISALLOWED])
def test_a_page_that_was_taken_for_a_sitemap_is_visited_as_before(
    frontiers: Make, kind: Kind, outcome: Outcome
) -> None:
    case = with_stored_page(frontiers, Period(24 * HOUR))
    due = case.frontier.explain(PAGE).due
    case.clock.advance(10 * HOUR)
    tell(case, named(PAGE, kind=kind))
    assert read(case, outcome) == [UrlTask(PAGE, kind=Kind.SITEMAP)], "whether it has changed or not"
    explained = case.frontier.explain(PAGE)
    assert (explained.state, explained.is_sitemap, explained.due) == ("done", False, due)
    assert (case.audit().stored, case.audit().revisits) == (2, 0)
    case.clock.advance(14 * HOUR)
    assert ASKED_AS_PAGE in read(case, Outcome.STORED)
    assert case.audit().revisions == 2


def test_a_page_that_is_known_to_be_no_sitemap_is_asked_for_as_one_once_between_visits(frontiers: Make) -> None:
    case = with_stored_page(frontiers, Period(24 * HOUR))
    tell(case, named(PAGE))
    read(case, Outcome.UNWANTED)
    case.reopen()
    tell(case, named(PAGE))
    assert case.lease("x").finished
    case.clock.advance(24 * HOUR)
    read(case, Outcome.UNCHANGED)
    tell(case, named(PAGE))
    assert [task.kind for task in read(case)] == [Kind.SITEMAP], "it may be one by now"


def test_a_sitemap_that_is_a_page_again(frontiers: Make) -> None:
    case = with_stored_page(frontiers, Period(24 * HOUR))
    tell(case, named(PAGE))
    read(case)
    case.clock.advance(24 * HOUR)
    tasks = {task.url: task for task in read(case, Outcome.UNWANTED)}
    assert (tasks[PAGE].kind, tasks[PAGE].depth) == (Kind.GUESSED, 0)
    assert [task.kind for task in read(case, Outcome.STORED) if task.url == PAGE] == [Kind.PAGE], "it is due"
    assert case.audit().revisions == 1


def test_without_a_period_a_page_that_is_no_sitemap_is_not_due(frontiers: Make) -> None:
    case = with_stored_page(frontiers, Period())
    tell(case, named(PAGE))
    read(case, Outcome.UNWANTED)
    explained = case.frontier.explain(PAGE)
    assert (explained.state, explained.reason, explained.due) == ("done", "stored", 0.0)
    assert not list(case.store.scan(Table.VISITS))
    case.audit()
    tell(case, named(PAGE))
    assert case.lease("x").finished


@pytest.mark.parametrize("outcome", [Outcome.LISTED, Outcome.UNWANTED, Outcome.TIMEOUT])
def test_a_page_from_a_time_with_a_period(frontiers: Make, outcome: Outcome) -> None:
    case = with_stored_page(frontiers, ADAPTIVE)
    case.rules = replace(case.rules, period=Period(), retry_wait_seconds=1)
    case.reopen()
    tell(case, named(PAGE))
    while not (leased := case.lease("x")).finished:
        if leased.tasks:
            case.finish("x", leased, outcome)
        case.clock.advance(1)
    assert case.audit().stored == 2


def test_what_nobody_names_and_is_no_sitemap_is_forgotten(frontiers: Make) -> None:
    case = opened(frontiers, guessed())
    read(case, Outcome.UNWANTED)
    assert case.frontier.totals().queued == 0
    assert case.frontier.explain(MAP).state == "done"


def as_page_after(case: Case) -> list[UrlTask]:
    """How it is asked for after it has proved to be no sitemap."""
    assert [task.kind for task in read(case, Outcome.UNWANTED)] == [Kind.GUESSED]
    case.reopen()
    case.clock.advance(1)
    return [] if case.frontier.is_finished() else read(case, Outcome.STORED)


def test_a_page_at_the_usual_place_is_one_if_a_page_links_to_it(frontiers: Make) -> None:
    case = opened(frontiers)
    case.frontier.report("x", 1, Report("1", [], [FoundUrl(MAP, 2)], listed=[guessed()]))
    assert as_page_after(case) == [UrlTask(MAP, 1)]


def test_one_that_was_queued_as_a_page_is_one(frontiers: Make) -> None:
    case = opened(frontiers, ListedUrl(MAP, 2), policy=Policy(max_depth=2))
    tell(case, guessed()._replace(depth=2))
    assert as_page_after(case) == [UrlTask(MAP, 2)]


def test_a_link_that_is_found_before_it_was_read(frontiers: Make) -> None:
    case = opened(frontiers, guessed())
    case.add(MAP, depth=1)
    assert as_page_after(case) == [UrlTask(MAP, 1)]


def test_a_link_that_is_found_while_it_waits(frontiers: Make) -> None:
    case = opened(frontiers, guessed(), retry_wait_seconds=1)
    read(case, Outcome.TIMEOUT)
    case.add(MAP, depth=1)
    case.clock.advance(2)
    assert as_page_after(case) == [UrlTask(MAP, 1)]


@pytest.mark.parametrize("by_own_job", [True, False])
def test_a_link_that_is_found_while_it_is_leased(frontiers: Make, by_own_job: bool) -> None:
    case = opened(frontiers, guessed())
    leased = case.lease("x")
    links = [FoundUrl(MAP, 1)]
    if not by_own_job:
        case.frontier.add(links)
        case.reopen()
    results = [UrlResult(MAP, Outcome.UNWANTED)]
    case.frontier.report("x", leased.job, Report("2", results, links if by_own_job else []))
    case.clock.advance(1)
    assert read(case, Outcome.STORED) == [UrlTask(MAP, 1)]


@pytest.mark.parametrize("period", [Period(), ADAPTIVE])
def test_a_link_that_is_found_after_it_was_read(frontiers: Make, period: Period) -> None:
    case = opened(frontiers, guessed(), period=period)
    assert as_page_after(case) == []
    assert case.add(MAP, depth=1) == 0
    case.audit()
    assert read(case, Outcome.STORED) == [UrlTask(MAP, 1)]
    assert case.audit().stored == 2


def test_one_that_was_read_before_and_is_a_page_has_no_record_of_its_visits(frontiers: Make) -> None:
    case = opened(frontiers, guessed(), period=Period(24 * HOUR))
    read(case, Outcome.NOT_FOUND)
    case.clock.advance(25 * HOUR)
    assert {task.url for task in case.lease("x").tasks} == {HOME, MAP}
    case.report("x", 3, {HOME: Outcome.UNCHANGED, MAP: Outcome.UNWANTED}, [MAP])
    case.audit()
    assert len(list(case.store.scan(Table.VISITS))) == 1
    assert read(case, Outcome.REDIRECTED) == [UrlTask(MAP, 1)]
    case.audit()
    case.clock.advance(25 * HOUR)
    assert [task.url for task in case.lease("x").tasks] == [HOME], "as any page that was never stored"


def test_a_link_that_does_not_belong_to_the_crawl_changes_nothing(frontiers: Make) -> None:
    case = opened(frontiers, policy=Policy(reject=("map",)))
    case.frontier.report("x", 1, Report("1", [], [FoundUrl(MAP, 1)], listed=[guessed()]))
    case.add(MAP, depth=1)
    assert as_page_after(case) == []
    case.add(MAP, depth=1)
    assert case.lease("x").finished
    assert case.frontier.explain(MAP).state == "done"


def test_a_link_to_a_real_sitemap_does_not_make_it_a_page(frontiers: Make) -> None:
    case = opened(frontiers, guessed())
    case.add(MAP, depth=1)
    read(case)
    case.add(MAP, depth=1)
    assert case.lease("x").finished


# --- what belongs to the crawl


def test_sitemaps_and_the_rules(frontiers: Make) -> None:
    policy = Policy("path", ("http://a/docs/",), accept=(r"\.html$",), reject=("map",), max_path_depth=3)
    case = opened(
        frontiers,
        named(),
        named("http://cdn/named.xml", host="a"),
        named("http://cdn/from-index.xml", host="a", hops=1),
        named("http://cdn/of-its-index.xml", hops=1),
        named("http://a/a/b/c/d.xml"),
        named("http://a/5.xml", hops=sitemaps.MAX_NESTING),
        named("http://a/6.xml", hops=sitemaps.MAX_NESTING + 1),
        *(ListedUrl(f"http://a/{path}", 1) for path in ("docs/1.html", "docs/2.pdf", "other.html")),
        policy=policy,
    )
    reasons = {url: case.frontier.explain(url).reason for url in (
        "http://cdn/from-index.xml", "http://a/a/b/c/d.xml", "http://a/6.xml", "http://a/docs/2.pdf", "http://a/other.html"
    )}  # fmt: skip
    assert list(reasons.values()) == ["scope=path", "max_path_depth", "sitemap_nesting", "accept", "scope=path"]
    assert {task.url for task in read(case)} == {
        MAP, "http://cdn/named.xml", "http://cdn/of-its-index.xml", "http://a/5.xml", "http://a/docs/1.html"
    }  # fmt: skip


def test_rules_that_change_do_not_touch_sitemaps(frontiers: Make) -> None:
    case = opened(frontiers, named(), ListedUrl(PAGE, 1))
    case.policy = Policy(reject=("http://a/",))
    case.reopen()
    assert case.frontier.narrow() == 1
    case.clock.advance(1)
    assert urls_of(case.lease("x")) == [MAP]


def test_a_host_can_have_so_many(
    frontiers: Make, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sitemaps, "MAX_SITEMAPS", 3)
    caplog.set_level("INFO", sitemaps.__name__)
    case = opened(frontiers, *(named(f"http://a/{number}.xml") for number in range(5)), named("http://b/1.xml"))
    assert case.frontier.totals().queued == 4
    case.frontier.report("x", 1, Report("1", [], [FoundUrl("http://a/4.xml", 1)], listed=[named("http://a/4.xml")]))
    tell(case, named("http://a/4.xml"))
    assert not case.frontier.explain("http://a/4.xml").is_sitemap, "a page stays one"
    assert len(read(case)) == 5
    assert set(caplog.messages) == {"a has 3 sitemaps or more; what else is named is not read"}
    assert len(caplog.messages) == 3, "once for each report"
    caplog.clear()
    tell(case, *(named(f"http://c/{number}.xml", host="a") for number in range(5)), named("http://c/own.xml"))
    assert {task.url for task in read(case)} == {"http://c/0.xml", "http://c/own.xml"}, "others have less to say"
    assert caplog.messages == ["c has 1 sitemaps or more; what else is named is not read"]


# --- what an operator and an audit do


def test_counters_are_mended(frontiers: Make) -> None:
    case = opened(frontiers, named(), guessed("http://a/2.xml"), named("http://b/x.xml"), period=ADAPTIVE)
    leased = case.lease("x", wanted=1)
    case.finish("x", leased, Outcome.LISTED)
    case.lease("x", wanted=1)
    before = case.audit()
    for key, value in list(case.store.scan(Table.HOSTS)):
        host = Host.unpacked(key, value)
        host.sitemaps = host.again = 7
        case.store.write([(Table.HOSTS, key, host.packed())])
    assert "a: again 7 -> 0, sitemaps 7 -> 2" in recount(case.store)
    case.reopen()
    assert replace(case.audit(), sent=0) == replace(before, sent=0)


def test_a_sitemap_has_no_score(frontiers: Make) -> None:
    case = opened(frontiers, named(), traversal="priority")
    with pytest.raises(Exception, match="not queued, so it has no score"):
        case.frontier.set_score(MAP, 5)
    assert case.frontier.explain(MAP).score is None


def test_a_page_that_is_there_after_all(frontiers: Make) -> None:
    """What an audit finds in Pages/ is a page, whatever it was taken for."""
    case = opened(frontiers, named(), named("http://a/2.xml"), retry_wait_seconds=1)
    case.report("x", case.lease("x", wanted=1).job, {MAP: Outcome.TIMEOUT})
    keys = [key for key, _ in case.store.scan(Table.URLS)]
    by_url = {case.frontier.explain(url).digest[:32]: url for url in (MAP, "http://a/2.xml")}
    wanted = [(key, by_url[key.hex()]) for key in keys if key.hex() in by_url]
    assert case.frontier.mark_stored(wanted) == 2
    assert case.audit().stored == 3
    assert case.frontier.forget([key for key, _ in wanted]) == 2
    assert case.audit().known == 1


# --- again


def test_sitemaps_are_read_again(frontiers: Make) -> None:
    case = opened(frontiers, named(), guessed("http://b/sitemap.xml"), period=Period(24 * HOUR))
    results = [
        UrlResult(MAP, Outcome.LISTED, 200, etag='"1"', last_modified="then", sha1="a" * 40),
        UrlResult("http://b/sitemap.xml", Outcome.NOT_FOUND, 404),
    ]
    case.frontier.report("x", case.lease("x").job, Report("2", results, []))
    case.clock.advance(24 * HOUR)
    case.reopen()
    case.clock.advance(1)
    tasks = {task.url: task for task in case.lease("x").tasks}
    assert tasks[MAP] == UrlTask(MAP, 0, 0, '"1"', "then", "a" * 40, Kind.GUESSED)
    assert len(tasks) == 3, "also one that may be there by now, and the page"
    case.report("x", 3, {MAP: Outcome.NOT_FOUND, HOME: Outcome.UNCHANGED, "http://b/sitemap.xml": Outcome.LISTED})
    totals = case.audit()
    assert (totals.revisits, totals.unchanged, totals.failed) == (1, 1, 0), "of pages"
    assert case.frontier.explain(MAP).absent_since > 0


def test_an_adaptive_period_begins_short(frontiers: Make) -> None:
    case = opened(frontiers, named(), guessed("http://b/sitemap.xml"), period=ADAPTIVE)
    case.report("x", case.lease("x").job, {MAP: Outcome.LISTED, "http://b/sitemap.xml": Outcome.NOT_FOUND})

    def hours() -> float:
        return case.frontier.explain(MAP).interval_seconds / HOUR

    assert hours() == 1
    assert case.frontier.explain("http://b/sitemap.xml").interval_seconds == 100 * HOUR
    for expected in (2, 4):
        case.clock.advance(hours() * HOUR)
        assert [task.url for task in read(case, Outcome.UNCHANGED)] == [MAP]
        assert hours() == expected
    case.clock.advance(4 * HOUR)
    read(case, Outcome.LISTED)
    assert hours() == 2


def test_without_the_setting_they_are_not_read_again(frontiers: Make) -> None:
    case = opened(frontiers, named(), period=ADAPTIVE)
    read(case)
    case.rules = replace(case.rules, sitemaps=False)
    case.reopen()
    case.clock.advance(2 * HOUR)
    case.frontier.tick()
    assert case.lease("x").finished


# --- lastmod


def listed_pages(case: Case, seconds: float, *urls: str, **fields: object) -> None:
    """A sitemap says that pages have changed so many seconds ago."""
    modified = int(case.clock.now() - seconds)
    tell(case, *(ListedUrl(url, 1, modified)._replace(**fields) for url in urls))


def stored(frontiers: Make, **rules: object) -> Case:
    """A crawl with two stored pages that are not due for long."""
    case = opened(frontiers, ListedUrl(PAGE, 1), **{"period": ADAPTIVE, **rules})
    case.finish("x", case.lease("x"))
    case.clock.advance(5 * HOUR)
    return case


def test_a_page_that_has_changed_is_due_now(frontiers: Make) -> None:
    case = stored(frontiers)
    listed_pages(case, 10, PAGE)
    assert case.frontier.next_due() == pytest.approx(case.clock.now(), abs=0.002)
    assert not case.frontier.is_finished()
    case.reopen()
    case.clock.advance(1)
    assert [task.url for task in read(case, Outcome.UNCHANGED)] == [PAGE]
    listed_pages(case, 10, PAGE)
    assert case.lease("x").finished, "it has not changed since"


@pytest.mark.parametrize(
    ("seconds", "fields"),
    [
        (6 * HOUR, {}),  # before the last visit
        (-2 * 86_400, {}),  # no time that anybody believes
        (10, {"host": "b"}),  # none of their business
        (10, {"modified": 0}),
        (10, {"modified": -5}),
    ],
)
def test_what_does_not_make_a_page_due(frontiers: Make, seconds: float, fields: dict[str, object]) -> None:
    case = stored(frontiers)
    listed_pages(case, seconds, PAGE, "http://a/unknown", **fields)
    assert case.drain() == ["http://a/unknown"]


def test_a_page_that_is_always_of_tomorrow_is_visited_once_for_each_reading(frontiers: Make) -> None:
    case = stored(frontiers, period=Period(100 * HOUR))
    for _ in range(3):
        listed_pages(case, -HOUR, PAGE)
        assert case.drain() == [PAGE]
        assert case.lease("x").finished
        case.clock.advance(10)


def test_an_adaptive_period_is_not_undercut(frontiers: Make) -> None:
    case = stored(frontiers)
    listed_pages(case, 10, PAGE)
    read(case)
    case.clock.advance(60)
    listed_pages(case, 10, PAGE)
    assert case.lease("x").finished
    assert case.frontier.next_due() == pytest.approx(case.clock.now() + HOUR - 60, abs=1)
    case.clock.advance(HOUR)
    assert [task.url for task in read(case)] == [PAGE]


def test_one_round_has_what_has_changed_and_an_end(frontiers: Make) -> None:
    case = stored(frontiers, one_round=True)
    case.reopen()
    case.clock.advance(100)
    listed_pages(case, 10, PAGE)
    assert [task.url for task in read(case)] == [PAGE]
    listed_pages(case, 0, PAGE, HOME)
    assert [task.url for task in read(case)] == [HOME]
    case.clock.advance(50 * HOUR)
    listed_pages(case, 0, PAGE, HOME)
    assert case.lease("x").finished


def test_what_is_queued_leased_or_gone_is_left_alone(frontiers: Make) -> None:
    case = stored(frontiers)
    listed_pages(case, 10, PAGE)
    case.lease("x", "r")
    listed_pages(case, 0, PAGE, HOME)
    assert [task.url for task in case.lease("x").tasks] == [HOME]
    case.report("x", 3, {PAGE: Outcome.NOT_FOUND})
    case.report("x", 4, {HOME: Outcome.UNCHANGED})
    case.clock.advance(2 * HOUR)
    listed_pages(case, 0, PAGE)
    assert urls_of(case.lease("x")) == [PAGE], "it may be back"


def test_an_index_says_which_sitemap_has_changed(frontiers: Make) -> None:
    case = opened(frontiers, named(), period=ADAPTIVE)
    read(case)
    for _ in range(5):
        case.clock.advance(100 * HOUR)
        read(case, Outcome.UNCHANGED)
    case.clock.advance(2 * HOUR)
    assert case.lease("x").finished
    tell(case, named(modified=int(case.clock.now()) - 5))
    assert [task.url for task in read(case)] == [MAP]

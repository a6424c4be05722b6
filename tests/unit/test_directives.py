"""What a page says to robots: the words for us are heard, those for others and all other words are not."""

import pytest

from client.directives import FREE, Directives, directives
from client.results import FetchResult, MinedPage
from common.page import links_in
from common.wire import Outcome, UrlTask
from tests.mining import mine
from tests.tickets import job_settings

URL = "http://example.org/dir/page.html"
AGENT = "Pavouk"
KEPT, LOST, ARCHIVED = "", "noindex", "noarchive"

HEADERS = [
    ((), True, KEPT),
    (("",), True, KEPT),
    (("all",), True, KEPT),
    (("index, follow",), True, KEPT),
    (("noindex",), True, LOST),
    (("NoIndex",), True, LOST),
    (("nofollow",), False, KEPT),
    (("noarchive",), True, ARCHIVED),
    (("none",), False, LOST),
    (("noindex, nofollow",), False, LOST),
    (("noindex,nofollow",), False, LOST),
    (("noindex nofollow",), False, LOST),
    (("noindex", "nofollow"), False, LOST),
    (("noarchive, noindex",), True, LOST),
    (("nosnippet, noimageindex, notranslate, nositelinkssearchbox",), True, KEPT),
    (("noindexed, not-nofollow",), True, KEPT),
    (("pavouk: nofollow",), False, KEPT),
    (("PAVOUK : noindex",), True, LOST),
    (("otherbot: noindex, nofollow",), True, KEPT),
    (("otherbot: noindex", "nofollow"), False, KEPT),
    (("otherbot: noindex, pavouk: nofollow",), False, KEPT),
    (("pavouk: nofollow, otherbot: noindex",), False, KEPT),
    (("pavouk: nofollow, noindex",), False, LOST),
    (("*: noindex",), True, LOST),
    (("pavouk-images: noindex",), True, KEPT),
    (("unavailable_after: 25 Jun 2010 15:00:00 PST",), True, KEPT),
    (("unavailable_after: 25 Jun 2010 15:00:00 PST, noindex",), True, LOST),
    (("unavailable_after: Friday, 25-Jun-10 15:00:00 GMT, noindex",), True, LOST),
    (("max-snippet: 50, max-image-preview:none, nofollow",), False, KEPT),
    ((",,;: , noindex",), True, LOST),
    (("noindex\u200b,\u2060nofollow\u00a0",), False, LOST),
]


@pytest.mark.parametrize(("headers", "follow", "refusal"), HEADERS)
def test_headers(headers: tuple[str, ...], follow: bool, refusal: str) -> None:
    assert directives(headers, (), AGENT) == Directives(follow, refusal)


METAS = [
    ("<meta name=robots content=noindex>", True, LOST),
    ("<META NAME=Robots CONTENT='NOINDEX, NOFOLLOW'>", False, LOST),
    ("<meta name=' robots ' content=' nofollow '>", False, KEPT),
    ("<meta name=robots content='nofollow,noarchive'>", False, ARCHIVED),
    ("<meta name=robots content=none>", False, LOST),
    ("<meta name=robots content='max-image-preview:none'>", True, KEPT),
    ("<meta name=robots content='unavailable_after: 25 Jun 2010 15:00:00 PST'>", True, KEPT),
    ("<meta name=robots content='index, follow'>", True, KEPT),
    ("<meta name=robots>", True, KEPT),
    ("<meta name=robots content=''>", True, KEPT),
    ("<meta name=pavouk content=nofollow>", False, KEPT),
    ("<meta name=otherbot content='noindex, nofollow'>", True, KEPT),
    ("<meta name=robots content=noindex><meta name=robots content=nofollow>", False, LOST),
    ("<meta name=robots content=noindex><meta name=pavouk content='index, nofollow'>", False, LOST),
    ("<meta name=robots http-equiv=refresh content='noindex'>", True, LOST),
    ("<body><p>late<meta name=robots content=nofollow>", False, KEPT),
    ("<!-- <meta name=robots content=noindex> -->", True, KEPT),
    ("<script>'<meta name=robots content=noindex>'</script>", True, KEPT),
    ("<template><meta name=robots content=noindex></template>", True, KEPT),
    ("<meta property=robots content=noindex>", True, KEPT),
]


def _mine(html: str, content_type: str = "text/html", tags: tuple[str, ...] = (), **settings: object) -> MinedPage:
    result = FetchResult(
        UrlTask(URL),
        Outcome.STORED,
        status=200,
        final_url=URL,
        content_type=content_type,
        body=html.encode(),
        robots_tags=tags,
    )
    return mine(result, job_settings(agent_name=AGENT, **settings))


def _paths(page: MinedPage) -> list[str]:
    return [link.removeprefix("http://example.org") for link in page.links]


@pytest.mark.parametrize(("html", "follow", "refusal"), METAS)
def test_metas(html: str, follow: bool, refusal: str) -> None:
    page = _mine(f"{html}<a href=/x>x</a>")
    assert _paths(page) == (["/x"] if follow else [])
    assert (page.outcome, page.detail) == ((Outcome.UNWANTED, refusal) if refusal else (Outcome.STORED, ""))
    assert (page.meta is None) == bool(refusal) == (page.body == b"")


@pytest.mark.parametrize(("headers", "follow", "refusal"), HEADERS)
def test_headers_of_documents(headers: tuple[str, ...], follow: bool, refusal: str) -> None:
    page = _mine("a { background: url(x.png) }", "text/css", headers)
    assert _paths(page) == (["/dir/x.png"] if follow and not refusal else [])
    assert (page.outcome, page.detail) == ((Outcome.UNWANTED, refusal) if refusal else (Outcome.STORED, ""))


def test_headers_and_metas_add_up() -> None:
    page = _mine("<meta name=robots content=nofollow><a href=/x>", tags=("noarchive",))
    assert (page.outcome, page.detail, list(page.links)) == (Outcome.UNWANTED, "noarchive", [])


def test_links_that_are_not_followed_are_recorded() -> None:
    page = _mine("<meta name=robots content=nofollow><a href=/x>x</a>")
    assert list(page.links) == []
    assert links_in(page.xml) == ["http://example.org/x"]


def test_what_a_page_shows_that_is_not_kept_is_not_needed() -> None:
    html = "<meta name=robots content='{}'><a href=/x><img src=/y>"
    assert _paths(_mine(html.format("index"))) == ["/x", "/y"]
    assert _paths(_mine(html.format("noindex"))) == ["/x"]
    assert _paths(_mine(html.format("nofollow"))) == []


def test_nobody_is_heard_when_the_job_says_so() -> None:
    page = _mine("<meta name=robots content=none><a href=/x>", tags=("none",), page_directives=False)
    assert (page.outcome, _paths(page)) == (Outcome.STORED, ["/x"])


def test_nothing_said_is_nothing_asked() -> None:
    assert directives((), [("description", "noindex")], AGENT) is FREE


@pytest.mark.parametrize(
    ("html", "followed"),
    [
        ("<a href=/x rel=nofollow><a href=/y>", ["/y"]),
        ("<a href=/x rel='external NoFollow'><a href=/y rel=nofollower>", ["/y"]),
        ("<a href=/x rel=ugc><a href=/y rel=sponsored>", ["/x", "/y"]),
        ("<a href=/x rel=nofollow><a href=/x>", ["/x"]),
        ("<a href=/x><a href=/x rel=nofollow>", ["/x"]),
        ("<a href=/x rel=nofollow><a href=../x>", ["/x"]),
        ("<a href=/x rel=nofollow><iframe src=/x></iframe>", ["/x"]),
        ("<map><area href=/x rel=nofollow></map><svg><a xlink:href=/y rel=nofollow></a></svg>", []),
        ("<a href=/x#a rel=nofollow><a href=/x#b rel=nofollow>", []),
    ],
)
def test_rel_nofollow(html: str, followed: list[str]) -> None:
    page = _mine(html, rel_nofollow=True)
    assert _paths(page) == followed
    assert links_in(page.xml) == list(_mine(html).links), "the setting is off by default, and all links are recorded"

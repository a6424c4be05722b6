"""Sitemaps by the real commands: pages that no link leads to are stored, only what has changed is asked for again."""

import gzip
import random
import threading
import time
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.integration.admin import ask_admin, run_admin
from tests.integration.cluster import Cluster, run_cluster
from tests.integration.onecommand import Crawls
from tests.integration.test_recrawl import PERIOD, Rounds, each
from tests.waiting import wait_until
from tests.web.running import RunningWeb, run_web

pytestmark = pytest.mark.integration

XML = "application/xml"
MANY_BLANKS = b" " * (60 << 20)


def urlset(urls: Iterable[str]) -> str:
    """Of a mapping, the values say when each has changed."""
    dates = urls if isinstance(urls, dict) else dict.fromkeys(urls, "")
    entries = "".join(f"<url><loc>{url}</loc><lastmod>{date}</lastmod></url>" for url, date in dates.items())
    return f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</urlset>'


def index(urls: Iterable[str]) -> str:
    return f"<sitemapindex>{''.join(f'<sitemap><loc>{url}</loc></sitemap>' for url in urls)}</sitemapindex>"


def rss(url: str) -> str:
    return f"<rss version='2.0'><channel><item><title>x</title><link>{url}</link></item></channel></rss>"


def atom(url: str) -> str:
    return f'<feed xmlns="http://www.w3.org/2005/Atom"><entry><link href="{url}"/></entry></feed>'


class Site:
    """A web with pages that only sitemaps know, and the sitemaps themselves."""

    def __init__(self, web: RunningWeb) -> None:
        self._web = web
        self.homes = [url.rstrip("/") for url in web.start_urls]
        self.hidden: set[str] = set()
        self.read: set[str] = set()  # sitemaps that must be asked for

    def page(self, host: int, name: str) -> str:
        """One that no link leads to."""
        url = f"{self.homes[host]}/hidden/{name}.html"
        self._web.changes.page(url, f"Page at {url}")
        self.hidden.add(url)
        return url

    def file(self, host: int, path: str, body: bytes | str, content_type: str = XML, *, is_read: bool = True) -> str:
        url = f"{self.homes[host]}/{path}"
        self._web.changes.file(url, body, content_type)
        if is_read:
            self.read.add(url)
        return url

    def robots(self, host: int, sitemaps: Iterable[str]) -> None:
        text = "User-agent: *\nDisallow: /closed\n" + "".join(f"Sitemap: {url}\n" for url in sitemaps)
        self._web.changes.file(f"{self.homes[host]}/robots.txt", text, "text/plain")


def asked(web: RunningWeb) -> Counter[str]:
    return Counter(request.url for request in web.log() if not request.is_robots)


def test_what_only_sitemaps_know_is_stored(tmp_path: Path) -> None:
    with run_web(hosts=3, pages=4, odd=False) as web:
        site, starts = Site(web), web.start_urls[:2]
        packed = gzip.compress(urlset([site.page(0, "packed")]).encode())
        outside = f"{site.homes[2]}/outside.html"
        site.robots(0, [
            site.file(0, "index.xml", index([
                site.file(0, "packed.xml.gz", packed, "application/gzip"),
                site.file(0, "more.xml", index([site.file(0, "nested.xml", urlset([site.page(0, "nested")]))])),
                site.file(2, "not-named.xml", urlset([outside]), is_read=False),
            ])),
            site.file(0, "list.txt", f"{site.page(0, 'text')}\nhello\n", "text/plain"),
            site.file(0, "feed.rss", rss(site.page(0, "rss")), "application/rss+xml"),
            site.file(0, "feed.atom", atom(site.page(0, "atom")), "application/atom+xml"),
            site.file(2, "for-others.xml", urlset([site.page(0, "from-elsewhere"), outside])),
            site.file(0, "closed.xml", urlset([outside]), is_read=False),
            site.file(0, "damaged.xml", urlset([site.page(0, "before-the-damage"), outside])[:-30]),
            site.file(0, "bomb.xml.gz", gzip.compress(urlset([site.page(0, "bomb")]).encode()[:-9] + MANY_BLANKS)),
            site.file(0, "entities.xml", '<!DOCTYPE a [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]>' + urlset(["&b;"])),
            f"{site.homes[0]}/missing.xml",
        ])  # fmt: skip
        usual = site.file(1, "sitemap.xml", urlset([
            site.page(1, "usual"), f"{site.homes[1]}/rejected/x.html", f"{site.homes[1]}/hidden/document.pdf",
        ]))  # fmt: skip
        site.read |= {f"{site.homes[0]}/missing.xml", f"{site.homes[0]}/sitemap.xml"}
        crawls = Crawls(tmp_path)
        crawls.run(*starts, "--sitemaps", "1", "--allow-private", "1", "--document-save", "0",
                   "--accept", r"\.html$", "--accept", "/$", "--reject", "/rejected/")  # fmt: skip
        linked = web.truth_from(starts, same_hosts=True).stored
        assert not linked & site.hidden
        assert set(crawls.stored()) == linked | site.hidden
        assert asked(web) == Counter(linked | site.hidden | site.read), "each once, and nothing else"
        _check_ends(tmp_path, crawls, site, usual)


def _check_ends(folder: Path, crawls: Crawls, site: Site, usual: str) -> None:
    summary = crawls.summary()
    assert summary["pages stored"] == str(len(crawls.stored()))
    assert summary["failed"].startswith("2 "), "the usual place that nobody names is not among them"
    blacklist = (folder / ".mem" / "blacklist.txt").read_text()
    assert f"{site.homes[0]}/entities.xml\tbad_content\tthe file declares entities\t" in blacklist
    assert f"{site.homes[0]}/missing.xml\tnot_found\tstatus 404\t" in blacklist
    log = (folder / ".mem" / "clientCrawler.log").read_text()
    assert "/damaged.xml: the file is damaged: " in log
    assert "/bomb.xml.gz: the file is longer than 52428800 bytes; the 1 addresses before that count" in log
    explained = run_admin(folder, "explain", usual).stdout
    assert "kind      sitemap" in explained
    assert "reason    listed" in explained
    ends = {
        f"{site.homes[0]}/sitemap.xml": ("done", "not_found"),
        f"{site.homes[0]}/closed.xml": ("excluded", "disallowed"),
        f"{site.homes[2]}/not-named.xml": ("excluded", "scope=host"),
        f"{site.homes[2]}/outside.html": ("excluded", "scope=host"),
        f"{site.homes[1]}/rejected/x.html": ("excluded", "reject: /rejected/"),
        f"{site.homes[1]}/hidden/document.pdf": ("excluded", "accept"),
    }
    for url, end in ends.items():
        answer = ask_admin(folder, "explain", url)
        assert (answer["state"], answer["reason"]) == end, url
    audit = ask_admin(folder, "audit")
    assert (audit["differences"]["number"], audit["notes"]["number"]) == (0, 0)


def test_without_the_setting_no_sitemap_is_asked_for(tmp_path: Path) -> None:
    with run_web(hosts=1, pages=2, odd=False) as web:
        site = Site(web)
        site.robots(0, [site.file(0, "named.xml", urlset([site.page(0, "hidden")]))])
        Crawls(tmp_path).run(*web.start_urls)
        assert asked(web) == Counter(web.truth.stored)


def test_without_robots_control_only_the_usual_place_is_read(tmp_path: Path) -> None:
    with run_web(hosts=1, pages=2, odd=False) as web:
        site = Site(web)
        site.robots(0, [site.file(0, "named.xml", urlset([f"{site.homes[0]}/x.html"]), is_read=False)])
        site.file(0, "sitemap.xml", urlset([site.page(0, "hidden")]))
        Crawls(tmp_path).run(*web.start_urls, "--sitemaps", "1", "--robots-control", "0")
        assert asked(web) == Counter(web.truth.stored | site.hidden | site.read)


def test_a_sitemap_that_has_moved_and_what_only_seems_to_be_one(tmp_path: Path) -> None:
    """What is named as a sitemap and is a page is a page; and a page that says that there is none is not stored."""
    with run_web(hosts=2, pages=2, odd=False) as web:
        site = Site(web)
        web.changes.moved(f"{site.homes[0]}/sitemap.xml", f"{site.homes[0]}/map/sitemap.xml")
        site.file(0, "map/sitemap.xml", urlset([site.page(0, "hidden")]))
        web.changes.moved(f"{site.homes[1]}/sitemap.xml", f"{site.homes[1]}/sorry.html")
        web.changes.page(f"{site.homes[1]}/sorry.html", "Not found")
        site.robots(1, [site.page(1, "map-for-people")])
        crawls = Crawls(tmp_path)
        crawls.run(*web.start_urls, "--sitemaps", "1", "--max-pages", "100")
        assert set(crawls.stored()) == web.truth.stored | site.hidden
        assert crawls.summary()["failed"] == "0"
        redirects = {f"{home}/sitemap.xml" for home in site.homes}
        twice = Counter([f"{site.homes[1]}/hidden/map-for-people.html"])  # first as a sitemap
        assert asked(web) == Counter(web.truth.stored | site.hidden | site.read | redirects) + twice
        assert ask_admin(tmp_path, "audit")["differences"]["number"] == 0


def test_a_page_that_is_called_or_placed_like_a_sitemap_is_stored_with_its_versions(tmp_path: Path) -> None:
    with run_web(hosts=1, pages=2, odd=False) as web:
        site, home = Site(web), web.start_urls[0]
        called, placed, behind = f"{site.homes[0]}/p.html", f"{site.homes[0]}/sitemap.xml", site.page(0, "behind")
        web.changes.page(home, "Home", [called, placed])
        web.changes.page(called, "First version")
        web.changes.page(placed, "All our pages", [behind])
        site.robots(0, [called])
        rounds = Rounds(tmp_path, web, *PERIOD, "--sitemaps", "1")
        stored = Counter([home, called, placed, behind])
        rounds.run_now()
        assert rounds.crawls.stored() == stored
        for title in ("First version", "Second version", "Third version"):
            web.changes.page(called, title)
            rounds.run()
            stored += Counter([called] if title != "First version" else [])
            assert rounds.crawls.stored() == stored, title
        assert ask_admin(tmp_path, "audit")["differences"]["number"] == 0


def test_only_what_has_changed_is_asked_for_again(tmp_path: Path) -> None:
    """Pages have a long period of their own; the file is read again after the shortest."""
    options = ("--sitemaps", "1", "--period", "adaptive", "--period-min", "0.0005", "--period-max", "1000")
    with run_web(hosts=2, pages=2, odd=False) as web:
        site = Site(web)
        pages = [site.page(0, str(number)) for number in range(4)]
        stranger = min(url for url in web.truth.stored if url.startswith(site.homes[1]))
        sitemap = site.file(0, "sitemap.xml", urlset(dict.fromkeys([*pages, stranger], "2026-01-01")))
        rounds = Rounds(tmp_path, web, *options)
        nothing = Counter([(f"{site.homes[1]}/sitemap.xml", 404)])

        def next_round() -> Counter[tuple[str, int]]:
            due = datetime.fromisoformat(ask_admin(tmp_path, "explain", sitemap)["due"]) + timedelta(seconds=1)
            wait_until(lambda: datetime.now(UTC) > due, 60)
            return rounds.run_now()

        first = rounds.run_now()
        assert first == each(web.truth.stored | set(pages) | {sitemap}, 200) + nothing
        assert next_round() == each({sitemap}, 304), "nothing has changed; what is not there is looked for rarely"

        changed, claimed, same, dreaming = pages
        web.changes.page(changed, "Another title")
        now = datetime.fromtimestamp(time.time() + 60, UTC).isoformat()
        new = site.page(0, "new")
        dates = {changed: now, claimed: now, stranger: now, same: "2026-01-01", dreaming: "2099-01-01", new: ""}
        site.file(0, "sitemap.xml", urlset(dates))
        assert next_round() == each({sitemap, changed, new}, 200) + each({claimed}, 304)
        assert rounds.visited() == "2  (1 changed, 1 unchanged)"
        assert next_round() == each({sitemap}, 304)
        assert rounds.crawls.stored() == Counter([*web.truth.stored, *pages, new, changed])
        assert ask_admin(tmp_path, "audit")["differences"]["number"] == 0


@pytest.mark.faults
@pytest.mark.parametrize("victim", ["url", "one"])
def test_a_kill_loses_nothing_that_only_sitemaps_know(tmp_path: Path, victim: str) -> None:
    chance = random.Random(victim)
    options = ("--sitemaps", "1", "--delay", "0.04", "--report-seconds", "0.3", "--urls-to-crawl", "12")
    with run_web(hosts=2, pages=5, odd=False) as web:
        site = Site(web)
        for host in range(2):
            parts = [
                site.file(host, f"{part}.xml", urlset(site.page(host, f"{part}-{number}") for number in range(10)))
                for part in range(5)
            ]
            site.robots(host, [site.file(host, "index.xml", index(parts))])
        wanted = web.truth.stored | site.hidden
        with run_cluster(tmp_path, web.start_urls, *options) as cluster:
            cluster.start("one")
            for number in range(5):
                wait_until(lambda number=number: _known(cluster) > 8 * number, 60)
                threading.Event().wait(chance.uniform(0.0, 0.4))
                cluster.kill(victim)
                cluster.start(victim)
            totals = cluster.wait_until_finished()
            assert cluster.stop("one") == 0
            assert set(cluster.stored_urls()) == wanted
            assert (totals.stored, totals.failed) == (len(wanted), 0)
            assert cluster.stop("url") == 0
            assert cluster.stop("ftp") == 0
            assert ask_admin(cluster.host, "audit")["differences"]["number"] == 0


def _known(cluster: Cluster) -> int:
    totals = cluster.totals()
    return totals[0].known if totals else -1

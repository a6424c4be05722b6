"""Mines bytes as the client does, and gives what comes out in a form that is easy to compare."""

from dataclasses import dataclass

from lxml import etree

from client import miner
from client.results import FetchResult
from common.wire import Outcome, UrlTask
from tests.tickets import job_settings

SETTINGS = job_settings(document_save=False)


@dataclass(frozen=True, slots=True)
class Mined:
    """What was found in a page."""

    encoding: str
    title: str
    links: list[tuple[str, str]]  # address and anchor text, in the order of the page
    text: str
    detail: str

    @property
    def addresses(self) -> list[str]:
        return [address for address, _ in self.links]


def mined(body: bytes, url: str, charset: str = "") -> Mined:
    """What `client.miner` finds in an HTML page with this body; `charset` is that of the HTTP header."""
    task = UrlTask(url)
    result = FetchResult(
        task, Outcome.STORED, status=200, final_url=url, content_type="text/html", charset=charset, body=body
    )
    page = miner.mine(result, SETTINGS)
    assert page.meta is not None
    root = etree.fromstring(page.xml)
    links = [(link.get("url", ""), link.text or "") for link in root.iterfind("links/link")]
    assert [address for address, _ in links] == list(page.links)
    return Mined(page.meta.encoding, page.meta.title, links, root.findtext("data/text") or "", page.detail)

"""Mines bytes as the client does, and gives what comes out in a form that is easy to compare."""

from dataclasses import dataclass
from pathlib import Path

from lxml import etree

from client import miner
from client.reading.lanes import Avoided
from client.reading.reader import Reader
from client.results import FetchResult, MinedPage
from common.wire import JobSettings, Outcome, UrlTask
from tests.tickets import job_settings

SETTINGS = job_settings(document_save=False)
READER = Reader()


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


def mine(result: FetchResult, settings: JobSettings = SETTINGS) -> MinedPage:
    """As the pipeline does it. The reader holds nothing against the host of an earlier test."""
    READER._avoided = Avoided()
    return miner.mine(result, settings, READER)


def peak_kilobytes_outside() -> int:
    """The most memory that one of the processes has had that read what may do harm; 0 if there is none."""
    pids = [lane._process._pid for lane in READER._page_lanes if lane._process is not None]
    statuses = [Path(f"/proc/{pid}/status").read_text() for pid in pids]
    return max([int(line.split()[1]) for text in statuses for line in text.splitlines() if "VmHWM:" in line], default=0)


def mined(body: bytes, url: str, charset: str = "") -> Mined:
    """What `client.miner` finds in an HTML page with this body; `charset` is that of the HTTP header."""
    task = UrlTask(url)
    result = FetchResult(
        task, Outcome.STORED, status=200, final_url=url, content_type="text/html", charset=charset, body=body
    )
    page = mine(result)
    assert page.meta is not None
    root = etree.fromstring(page.xml)
    links = [(link.get("url", ""), link.text or "") for link in root.iterfind("links/link")]
    assert [address for address, _ in links] == list(page.links)
    return Mined(page.meta.encoding, page.meta.title, links, root.findtext("data/text") or "", page.detail)

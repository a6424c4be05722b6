"""Scrapy's part of the comparison, run by Scrapy's own Python: `python spider.py plain|tuned FOLDER START_URL…`.

Follows the links within the hosts of the start URLs and writes each page to a file of its own, with as many requests
at a time as our crawler may make. `plain` is the spider that Scrapy's manual gives for this. `tuned` is written to be
faster: it cuts fragments off first, so that fewer links become requests that Scrapy then drops as known.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.http import HtmlResponse, Response
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule

SETTINGS = {
    "CONCURRENT_REQUESTS": 64,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 32,
    "DOWNLOAD_DELAY": 0,
    "AUTOTHROTTLE_ENABLED": False,
    "ROBOTSTXT_OBEY": True,
    "COOKIES_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
    "LOG_LEVEL": "WARNING",
}


class PlainSpider(CrawlSpider):
    """Visits every page of the hosts it begins with."""

    name = "plain"
    rules = (Rule(LinkExtractor(), callback="parse_page", follow=True),)

    def __init__(self, folder: str, starts: list[str], **keywords: Any) -> None:
        super().__init__(**keywords)
        self.start_urls = starts
        self.allowed_domains = [str(urlsplit(url).hostname) for url in starts]
        self._folder = Path(folder)

    def parse_start_url(self, response: Response, **_: Any) -> None:
        self.parse_page(response)

    def parse_page(self, response: Response) -> None:
        (self._folder / _file_name(response.url)).write_bytes(response.body)


class TunedSpider(scrapy.Spider):
    """The same with less work."""

    name = "tuned"

    def __init__(self, folder: str, starts: list[str], **keywords: Any) -> None:
        super().__init__(**keywords)
        self.start_urls = starts
        self._folder = Path(folder)
        hosts = [urlsplit(url).netloc for url in starts]
        self._links = LinkExtractor(allow_domains=hosts, process_value=_without_fragment)

    def parse(self, response: Response, **_: Any) -> Iterator[scrapy.Request]:
        (self._folder / _file_name(response.url)).write_bytes(response.body)
        if isinstance(response, HtmlResponse):
            for link in self._links.extract_links(response):
                yield scrapy.Request(link.url)


def _without_fragment(reference: str) -> str | None:
    return reference.partition("#")[0] or None


def _file_name(url: str) -> str:
    parts = urlsplit(url)
    path = parts.path + ("index.html" if parts.path.endswith("/") else "")
    return f"{parts.netloc}{path.replace('/', '+')}"


def main() -> None:
    _, kind, folder, *starts = sys.argv
    process = CrawlerProcess(SETTINGS)
    process.crawl(TunedSpider if kind == "tuned" else PlainSpider, folder=folder, starts=starts)
    process.start()


if __name__ == "__main__":
    main()

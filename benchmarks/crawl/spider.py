"""Scrapy's part of the comparison, run by Scrapy's own Python: `python spider.py FOLDER START_URL…`.

Follows the links within the hosts of the start URLs and writes each page to a file of its own. A plain set-up as
Scrapy's manual advises it for a broad crawl, with as many requests at a time as our crawler may make.
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


class SiteSpider(scrapy.Spider):
    """Visits every page of the hosts it begins with."""

    name = "site"

    def __init__(self, folder: str, starts: list[str], **keywords: Any) -> None:
        super().__init__(**keywords)
        self.start_urls = starts
        self._folder = Path(folder)
        # Without the fragments Scrapy sees earlier that many links are the same.
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
    _, folder, *starts = sys.argv
    process = CrawlerProcess(SETTINGS)
    process.crawl(SiteSpider, folder=folder, starts=starts)
    process.start()


if __name__ == "__main__":
    main()

"""Real bundles for tests: small, different from each other, and the same each time."""

import hashlib
from pathlib import Path

from common.bundle import BundleWriter
from common.page import PageMeta, PageText, page_xml
from common.urls import digest

CREATED = 1_700_000_000


def page_url(domain: str, number: int) -> str:
    """The address of a page in `make_bundle`."""
    return f"https://{domain}/page{number}.html"


def make_bundle(
    folder: Path, domain: str = "example.org", job: str = "1", *, pages: int = 3, created: int = CREATED,
    container: str = "tar.bz2", padding: int = 0,
) -> Path:  # fmt: skip
    """A bundle with its manifest beside it; `padding` bytes that do not compress make it larger."""
    folder.mkdir(parents=True, exist_ok=True)
    writer = BundleWriter(domain, job, container)
    noise = hashlib.shake_128(f"{domain} {job}".encode()).digest(padding)
    for number in range(pages):
        body = f"<title>{domain} {number} of job {job}</title>".encode() + noise
        meta = page_meta(page_url(domain, number), body, created + number)
        writer.add(meta, "data.html", body, page_xml(meta, PageText(text="words")))
    return writer.write(folder, created)


def page_meta(url: str, body: bytes, crawl_time: float) -> PageMeta:
    """What is recorded of a page that has this body."""
    return PageMeta(
        url=url, original_url=url, final_url=url, title="A page", crawl_time=crawl_time, status=200,
        content_type="text/html", encoding="utf-8", etag='"e"', last_modified="", server_date="",
        sha1=hashlib.sha1(body).hexdigest(), digest=digest(url).hex(),
    )  # fmt: skip

"""The values that pass from stage to stage inside the client."""

from collections.abc import Sequence
from dataclasses import dataclass

from common.page import PageMeta
from common.wire import ListedUrl, Outcome, UrlTask


@dataclass(frozen=True, slots=True)
class FetchResult:
    """What became of one URL on the network. With Outcome.STORED there is a body to mine and keep."""

    task: UrlTask
    outcome: Outcome
    detail: str = ""
    status: int = 0
    final_url: str = ""  # the address that answered
    redirect_url: str = ""  # with Outcome.REDIRECTED: the target
    content_type: str = ""  # media type, lower case, without parameters
    charset: str = ""  # from the Content-Type header, as sent
    robots_tags: tuple[str, ...] = ()  # X-Robots-Tag, each line
    etag: str = ""
    last_modified: str = ""
    server_date: str = ""
    body: bytes = b""  # content encodings undone
    fetched_at: float = 0.0  # UTC
    address: str = ""  # IP address that answered
    retry_after_seconds: float = 0.0
    seconds: float = 0.0  # from the request to the whole answer
    requested: bool = True  # False: decided without asking the host, so no delay is due


@dataclass(frozen=True, slots=True)
class MinedPage:
    """A page ready to be stored, or the plain outcome of one that is not."""

    task: UrlTask
    outcome: Outcome
    detail: str = ""
    status: int = 0
    meta: PageMeta | None = None  # None: nothing to store
    data_name: str = ""
    body: bytes = b""
    xml: bytes = b""
    links: Sequence[str] = ()  # addresses to report, each once; `xml` lists all links of the page
    etag: str = ""
    last_modified: str = ""
    sha1: str = ""  # of the body of a sitemap; `meta` has that of a page
    listed: Sequence[ListedUrl] = ()  # with Outcome.LISTED or REDIRECTED, of a sitemap: what it says

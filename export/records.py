"""What an index says of a stored page. Pure: a page in, a record out."""

import hashlib
import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from common.errors import BundleError
from common.page import read_page_xml
from common.urls import resolve
from export.accepted import LinkRules
from export.index import Record
from export.stored import Page

_EXTENSION = re.compile(r"[a-z0-9]{1,8}")


def record_of(page: Page, rules: LinkRules) -> Record:
    """The record of a page. BundleError if its data.xml cannot be read, or is that of another page."""
    meta = page.entry.meta  # which has been checked
    told, content = read_page_xml(page.xml)
    if (told.url, told.sha1) != (meta.url, meta.sha1):
        raise BundleError(f"its data.xml is that of {told.url!r:.200}")
    addresses = ((resolve(url), anchor) for url, anchor in content.links)
    return Record(
        checksum=hashlib.md5(meta.url.encode(errors="replace"), usedforsecurity=False).hexdigest(),
        url=meta.url,
        original_url=meta.original_url,
        title=meta.title,
        encoding=meta.encoding,
        type=page_type(page.entry.data_name),
        last_modified=iso_date(meta.last_modified),
        server_date=iso_date(meta.server_date),
        links=tuple(
            (rules.identity(address), anchor)
            for address, anchor in addresses
            if address is not None and rules.accepts(address)
        ),
    )


def page_type(data_name: str) -> str:
    """`html`, `pdf`, …: the client named the file by the content type, so .htm, .php and no extension are all html."""
    extension = data_name.rpartition(".")[2].lower()
    return extension if _EXTENSION.fullmatch(extension) else "bin"


def iso_date(header: str) -> str:
    """A date of HTTP (RFC 9110 §5.6.7, all three forms) in ISO 8601; empty if there is none that can be read."""
    try:
        date = parsedate_to_datetime(header)
        known = date.replace(tzinfo=UTC) if date.tzinfo is None else date.astimezone(UTC)
    except (ValueError, TypeError, IndexError, OverflowError):
        return ""
    return datetime.isoformat(known.replace(tzinfo=None), timespec="seconds") + "Z"

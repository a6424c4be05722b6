"""What header values mean: types, dates, waits. Pure; nonsense gives the empty value, never an exception."""

import re
from datetime import UTC
from email.utils import parsedate_to_datetime

HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
MAX_RETRY_AFTER_SECONDS = 86_400.0

_MEDIA_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]{1,100}/[a-z0-9!#$&^_.+-]{1,100}")
_CHARSET = re.compile(r";\s*charset\s*=\s*(?:\"([^\"]{1,60})\"|'?([^\s;\"']{1,60}))", re.IGNORECASE)

# The beginnings by which browsers know HTML (WHATWG MIME Sniffing §7.1), after blanks and a byte order mark; and XHTML.
_HTML_START = re.compile(
    rb"(?:\xef\xbb\xbf)?[\t\n\f\r ]*<(?:!--|(?:!doctype html|html|head|script|iframe|h1|div|font|table|a"
    rb"|style|title|b|body|br|p)[ >\t\n\f\r]|\?xml[^>]{0,200}>\s*<(?:!doctype html|html)[ >])",
    re.IGNORECASE,
)


def media_type(content_type: str) -> str:
    """The media type in lower case without parameters; empty if the value names none."""
    name = content_type.partition(";")[0].strip().lower()
    return name if _MEDIA_TYPE.fullmatch(name) else ""


def charset(content_type: str) -> str:
    """The charset parameter as sent."""
    match = _CHARSET.search(content_type)
    return (match[1] or match[2]).strip() if match else ""


def looks_like_html(body: bytes) -> bool:
    """Whether a body without a type is HTML."""
    return _HTML_START.match(body) is not None


def retry_after_seconds(value: str, now: float) -> float | None:
    """Retry-After in seconds from `now`, from a number or a date, capped; None if it is neither."""
    if value.isdecimal() and value.isascii():
        return min(float(value[:10]), MAX_RETRY_AFTER_SECONDS)
    try:
        date = parsedate_to_datetime(value)
        seconds = date.replace(tzinfo=date.tzinfo or UTC).timestamp() - now
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return min(max(seconds, 0.0), MAX_RETRY_AFTER_SECONDS)

"""The text of a document that is plain text, and its encoding. Pure; never raises."""

import codecs
import re

from client import charset
from client.text import folded
from client.walk import MAX_TEXT_LENGTH

MAX_BYTES = 2 * MAX_TEXT_LENGTH  # are read; more would cost memory, and most of it would be cut off

# By what browsers tell data that are no text, whatever their server says (WHATWG MIME Sniffing §7.2).
_SNIFFED_BYTES = 1445
_NO_TEXT = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE)


def read(body: bytes, http_charset: str) -> tuple[str, str]:
    """The text, each run of white space as one blank, and the name of the encoding; nothing if it is no text."""
    if _NO_TEXT.search(body[:_SNIFFED_BYTES]) and not body.startswith(_MARKS) and not _is_utf16(http_charset):
        return "", ""
    beginning = body[:MAX_BYTES]
    name = charset.plain_encoding_of(beginning, http_charset)
    text = charset.text_of(beginning, name)
    if len(body) > MAX_BYTES:
        text = text.rstrip("\ufffd")  # half a character
    return folded(text, MAX_TEXT_LENGTH), name


def _is_utf16(http_charset: str) -> bool:
    """Whether the server says so: then a NUL is part of a character, and browsers show what comes, whatever it is."""
    return (charset.encoding_for(http_charset) or "").startswith("utf-16")

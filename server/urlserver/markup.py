"""Looks at the bytes of a message before libxml2 does: what would cost it more than a moment is refused here.

libxml2 compares each name space with all others, and each attribute of an element with all others. So the markup is
bounded, and only text is free; our messages carry their lists as text. This is no parser of its own: whatever is not
plainly a tag, a comment, an instruction or a CDATA section is refused, so that libxml2 cannot read it in another way.
"""

import codecs
import re

MAX_DEPTH = 50
MAX_TAGS = 1_000  # ours have 40 at most, and a security header of a foreign tool kit as many again
MAX_ATTRIBUTES = 100  # of one element, name spaces counted
MAX_NAMESPACES = 200  # declared in the whole message
MAX_TAG_BYTES = 8_000  # so no name is longer
MAX_COMMENT_BYTES = 8_000  # and instructions

_TAG = re.compile(rb"""<[^\s<>"'/=!?&][^<>"']*+(?:(?:"[^<"]*+"|'[^<']*+')[^<>"']*+)*+>|</[^\s<>"'/=!?&][^<>"'=]*+>""")
_ENCODING = re.compile(rb"""<\?xml\s[^>]{0,200}?encoding\s*=\s*["']([^"']*)["']""")
_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_SAME_AS_UTF8 = ("utf-8", "utf8", "us-ascii", "ascii")
_OTHERS = ("utf-16", "utf-16le", "utf-16be", "iso-8859-1", "iso-8859-2", "iso-8859-15", "windows-1250", "windows-1252")
_DECLARATION, _END_OF_DECLARATION = b"<?xml", b"?>"


class MarkupError(Exception):
    """The message is not passed on; the text says why."""


def checked(message: bytes, charset: str) -> bytes:
    """The message as UTF-8 without an XML declaration, so that libxml2 cannot take it for anything else.

    MarkupError if it is not to be parsed. `charset` is what the Content-Type says, or empty.
    """
    text = _without_declaration(_as_utf8(message, charset))
    _check(text)
    return text


def _as_utf8(message: bytes, charset: str) -> bytes:
    for mark, encoding in _MARKS:  # RFC 7303 §3: it decides before anything else
        if message.startswith(mark):
            return message[len(mark) :] if encoding == "utf-8" else _recoded(message, encoding)
    if not charset:
        declared = _ENCODING.match(message)
        charset = declared[1].decode(errors="replace") if declared else "utf-8"
    encoding = charset.lower()
    if encoding in _SAME_AS_UTF8:
        return message
    if encoding not in _OTHERS:
        raise MarkupError("the message is in an encoding that is not taken here: send UTF-8")
    return _recoded(message, encoding)


def _recoded(message: bytes, encoding: str) -> bytes:
    try:
        return message.decode(encoding).encode()
    except ValueError as error:
        raise MarkupError("the message is not in the encoding that it claims") from error


def _without_declaration(text: bytes) -> bytes:
    if not text.startswith((b"<?xml ", b"<?xml\t", b"<?xml\r", b"<?xml\n")):
        return text
    end = text.find(_END_OF_DECLARATION, 0, MAX_COMMENT_BYTES)
    if end < 0:
        raise MarkupError("the message has no well-formed XML declaration")
    return text[end + len(_END_OF_DECLARATION) :]


def _check(text: bytes) -> None:
    position = text.find(b"<")
    if position < 0 or text[:position].strip():
        raise MarkupError("the message is empty, or no XML")
    tags = depth = namespaces = 0
    while position >= 0:
        tags += 1
        if tags > MAX_TAGS:
            raise MarkupError(f"the message has more than {MAX_TAGS:,} tags")
        end = _end_of_other(text, position)
        if not end:
            tag = _tag(text, position)
            end = position + len(tag)
            depth += 0 if tag.endswith(b"/>") else -1 if tag.startswith(b"</") else 1
            namespaces += tag.count(b"xmlns")
            if depth > MAX_DEPTH:
                raise MarkupError(f"the message is nested deeper than {MAX_DEPTH}")
            if namespaces > MAX_NAMESPACES:
                raise MarkupError(f"the message declares more than {MAX_NAMESPACES} name spaces")
        position = text.find(b"<", end)


def _tag(text: bytes, start: int) -> bytes:
    found = _TAG.match(text, start, start + MAX_TAG_BYTES)
    if not found:
        raise MarkupError(f"the message is not well-formed, or has a tag of more than {MAX_TAG_BYTES:,} bytes")
    tag = found[0]
    if tag.count(b"=") > MAX_ATTRIBUTES:  # some may be inside of values: ours have none there
        raise MarkupError(f"an element has more than {MAX_ATTRIBUTES} attributes")
    return tag


def _end_of_other(text: bytes, start: int) -> int:
    """Where a comment, an instruction or a CDATA section ends; 0 if this is none."""
    if text.startswith(b"<![CDATA[", start):
        return _end(text, start + 9, b"]]>", len(text))
    if text.startswith(b"<!--", start):
        return _end(text, start + 4, b"-->", start + MAX_COMMENT_BYTES)
    if text[start : start + len(_DECLARATION)].lower() == _DECLARATION:  # libxml2 takes the word of a second one, too
        raise MarkupError("the message has an instruction that begins with xml, and is no XML declaration at its start")
    if text.startswith(b"<?", start):
        return _end(text, start + 2, b"?>", start + MAX_COMMENT_BYTES)
    if text.startswith(b"<!DOCTYPE", start):  # SOAP 1.1 §3; and entities come with it
        raise MarkupError("a SOAP message must not have a document type declaration")
    return 0


def _end(text: bytes, start: int, mark: bytes, limit: int) -> int:
    end = text.find(mark, start, limit)
    if end < 0:
        raise MarkupError("the message is not well-formed, or has a long comment")
    return end + len(mark)

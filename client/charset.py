"""Which encoding a page is in, decided as browsers do: byte order mark, HTTP header, <meta>, first near the start;
then, where nothing is declared, UTF-8 if it fits, else detection, else windows-1252. In contrast to browsers, a header
in whose encoding the bytes are no text gives way to a <meta> that fits.

Encodings go by the names and labels of the WHATWG Encoding standard, which differ from Python's: a page that
says latin1 means windows-1252. Never raises: unknown labels are ignored, undecodable bytes become U+FFFD.
"""

import codecs
import re
import threading
from collections.abc import Iterator
from functools import lru_cache

from bs4.dammit import EncodingDetector

FALLBACK = "windows-1252"

_PRESCAN_BYTES = 1024
_LATE_BYTES = 32 << 10  # browsers set no limit, but a head longer than this is rare
_MAX_MENDED = 20_000  # places of EUC-JP that Python takes for no text: each costs a microsecond
_PIECE_BYTES = 1 << 16  # of damaged UTF-16 take 4 ms at most
_SAMPLE_BYTES = 8192  # detection costs about 1 ms a kilobyte in the worst case
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_BE, "utf-16be"), (codecs.BOM_UTF16_LE, "utf-16le"))

# Name and further labels of each encoding. Left out: those that the standard decodes to nothing (hz-gb-2312).
_TABLE = """
utf-8: unicode-1-1-utf-8 unicode11utf8 unicode20utf8 utf8 x-unicode20utf8
ibm866: 866 cp866 csibm866
iso-8859-2: csisolatin2 iso-ir-101 iso8859-2 iso88592 iso_8859-2 iso_8859-2:1987 l2 latin2
iso-8859-3: csisolatin3 iso-ir-109 iso8859-3 iso88593 iso_8859-3 iso_8859-3:1988 l3 latin3
iso-8859-4: csisolatin4 iso-ir-110 iso8859-4 iso88594 iso_8859-4 iso_8859-4:1988 l4 latin4
iso-8859-5: csisolatincyrillic cyrillic iso-ir-144 iso8859-5 iso88595 iso_8859-5 iso_8859-5:1988
iso-8859-6: arabic asmo-708 csiso88596e csiso88596i csisolatinarabic ecma-114 iso-8859-6-e iso-8859-6-i
iso-8859-6: iso-ir-127 iso8859-6 iso88596 iso_8859-6 iso_8859-6:1987
iso-8859-7: csisolatingreek ecma-118 elot_928 greek greek8 iso-ir-126 iso8859-7 iso88597 iso_8859-7
iso-8859-7: iso_8859-7:1987 sun_eu_greek
iso-8859-8: csiso88598e csisolatinhebrew hebrew iso-8859-8-e iso-ir-138 iso8859-8 iso88598 iso_8859-8
iso-8859-8: iso_8859-8:1988 visual
iso-8859-8-i: csiso88598i logical
iso-8859-10: csisolatin6 iso-ir-157 iso8859-10 iso885910 l6 latin6
iso-8859-13: iso8859-13 iso885913
iso-8859-14: iso8859-14 iso885914
iso-8859-15: csisolatin9 iso8859-15 iso885915 iso_8859-15 l9
iso-8859-16:
koi8-r: cskoi8r koi koi8 koi8_r
koi8-u: koi8-ru
macintosh: csmacintosh mac x-mac-roman
windows-874: dos-874 iso-8859-11 iso8859-11 iso885911 tis-620
windows-1250: cp1250 x-cp1250
windows-1251: cp1251 x-cp1251
windows-1252: ansi_x3.4-1968 ascii cp1252 cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100 iso8859-1
windows-1252: iso88591 iso_8859-1 iso_8859-1:1987 l1 latin1 us-ascii x-cp1252 x-user-defined
windows-1253: cp1253 x-cp1253
windows-1254: cp1254 csisolatin5 iso-8859-9 iso-ir-148 iso8859-9 iso88599 iso_8859-9 iso_8859-9:1989
windows-1254: l5 latin5 x-cp1254
windows-1255: cp1255 x-cp1255
windows-1256: cp1256 x-cp1256
windows-1257: cp1257 x-cp1257
windows-1258: cp1258 x-cp1258
x-mac-cyrillic: x-mac-ukrainian
gbk: chinese csgb2312 csiso58gb231280 gb2312 gb_2312 gb_2312-80 iso-ir-58 x-gbk
gb18030:
big5: big5-hkscs cn-big5 csbig5 x-x-big5
euc-jp: cseucpkdfmtjapanese x-euc-jp
iso-2022-jp: csiso2022jp
shift_jis: csshiftjis ms932 ms_kanji shift-jis sjis windows-31j x-sjis
euc-kr: cseuckr csksc56011987 iso-ir-149 korean ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601 windows-949
utf-16be: unicodefffe
utf-16le: csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16
"""
# Where Python has another name, or where browsers decode a superset of what Python calls by that name.
_CODECS = {
    "iso-8859-8-i": "iso-8859-8",
    "macintosh": "mac-roman",
    "windows-874": "cp874",
    "x-mac-cyrillic": "mac-cyrillic",
    "gbk": "gb18030",
    "big5": "big5hkscs",
    "iso-2022-jp": "iso2022_jp_ext",
    "shift_jis": "cp932",
    "euc-kr": "cp949",
}


def _labels() -> dict[str, str]:
    rows = [line.partition(":") for line in _TABLE.split("\n") if line]
    return {label: name for name, _, labels in rows for label in (name, *labels.split())}


_NAME_OF_LABEL = _labels()
# What detectors answer besides labels: Python's names, and supersets that no browser knows.
_NAME_OF_GUESS = {codec: name for name, codec in _CODECS.items()} | {
    "euc_jp": "euc-jp",
    "euc_jis_2004": "euc-jp",
    "euc_jisx0213": "euc-jp",
    "shift_jis_2004": "shift_jis",
    "shift_jisx0213": "shift_jis",
    "euc_kr": "euc-kr",
}

_QUERY_CODECS = {"gbk": "gbk"}  # what gb18030 has beyond it is only read
_NOT_ASCII = re.compile("[^\x00-\x7f]+")
_NOT_IN_QUERY = re.compile("[^!$-&(-;=?-~]")

_TAG_START = re.compile(rb"<(?:!--|(/?[a-z])|[!/?])", re.IGNORECASE)
_META = re.compile(rb"meta[\t\n\f\r /]", re.IGNORECASE)
_ATTRIBUTE = re.compile(
    rb"""[\t\n\f\r /]*([^\t\n\f\r />=][^\t\n\f\r />=]*)"""
    rb"""(?:[\t\n\f\r ]*=[\t\n\f\r ]*(?:"([^"]*)"|'([^']*)'|([^\t\n\f\r >"'][^\t\n\f\r >]*)))?"""
)
_CHARSET_IN_CONTENT = re.compile(rb"""charset\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s;"'][^\s;]*))""")
# What may hold the text of a tag that is none. An end that is missing is the end of all.
_NO_TAGS = re.compile(
    rb"<!--(?:-?>|.*?(?:--!?>|\Z))|<(script|style|title|textarea|xmp|iframe|noembed|noframes)[\s/>].*?(?:</\1|\Z)",
    re.IGNORECASE | re.DOTALL,
)
_XML_DECLARATION = re.compile(rb"""<\?xml[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9._:-]+)["']""")


def decode(body: bytes, http_charset: str) -> tuple[str, str]:
    """The text of a page and the name of its encoding."""
    name = encoding_of(body, http_charset)
    return text_of(body, name), name


def encoding_of(body: bytes, http_charset: str) -> str:
    """The name of the encoding that a browser would use for this body, or a better one if that is no text in it."""
    if (name := _marked(body)) is None and (name := encoding_for(http_charset)) is not None:
        return name if _is_text(body, name) else _mended(body, name)
    return name or _declared(body) or _detected(body)


def _mended(body: bytes, name: str) -> str:
    """What the page says itself, if it is a text in that, instead of the `name` of the header, in which it is none.

    UTF-8 that has no mistake is no accident. Of other encodings, in which many bytes are a text of some kind, it has to
    be most of the text that the header spoils: a page in UTF-8 can have a damaged character, and an old <meta>.
    """
    declared = _declared(body)
    if declared is None or declared == name or not _is_text(body, declared):
        return name
    text = text_of(body, name)
    spoilt, foreign = text.count("\ufffd"), len(text) - len(text.encode("ascii", "ignore"))
    return declared if declared == "utf-8" or 2 * spoilt > foreign else name


def plain_encoding_of(body: bytes, http_charset: str) -> str:
    """The same for plain text, which says nothing itself."""
    return _marked(body) or encoding_for(http_charset) or _detected(body)


def _marked(body: bytes) -> str | None:
    return next((name for mark, name in _BOMS if body.startswith(mark)), None)


def encoding_for(label: str) -> str | None:
    """The encoding that a label stands for; None if it is not one."""
    return _NAME_OF_LABEL.get(label.strip("\t\n\f\r \"'").lower()) if label.isascii() else None


def text_of(body: bytes, name: str) -> str:
    """Decode with an encoding of ours; a byte order mark is not part of the text.

    A codec that calls a handler for each octet that is no character does not let other threads run meanwhile: for
    millions of them, seconds.
    """
    if (table := _table(name)) is not None:
        return codecs.charmap_decode(body, "strict", table)[0]
    codec = _CODECS.get(name, name)
    if name.startswith("utf-16"):
        return _utf16(body, codec).removeprefix("\ufeff")
    return (_euc_jp(body) if name == "euc-jp" else body.decode(codec, "replace")).removeprefix("\ufeff")


def _utf16(body: bytes, codec: str) -> str:
    try:
        return body.decode(codec)
    except UnicodeDecodeError:
        decoder = codecs.getincrementaldecoder(codec)("replace")
        pieces = range(0, len(body), _PIECE_BYTES)
        text = "".join([decoder.decode(body[start : start + _PIECE_BYTES]) for start in pieces])
        return text + decoder.decode(b"", final=True)


def _euc_jp(body: bytes) -> str:
    _mended_here.places = 0
    try:
        return body.decode("euc-jp", _JAPANESE)
    except UnicodeDecodeError:
        return body.decode("euc-jp", "replace")


@lru_cache
def _table(name: str) -> str | None:
    """The characters of an encoding of one octet a character, U+FFFD for octets that are none. None for others."""
    if name == "utf-8":  # of octets alone it looks like one
        return None
    codec = _CODECS.get(name, name)
    octets = bytes(range(256))
    texts = [bytes([octet]).decode(codec, "replace") for octet in octets]
    is_table = all(map(len, texts)) and octets.decode(codec, "replace") == "".join(texts)
    return "".join(texts) if is_table else None


def in_query(text: str, name: str) -> str:
    """`text` with what is not ASCII as browsers send it in a query, which is in the encoding of the page with the link.

    By the URL standard: a character that the encoding lacks is a numeric reference, and UTF-16 is never sent. Octets
    that are ASCII stay as they are.
    """
    codec = "utf-8" if name.startswith("utf-16") else _QUERY_CODECS.get(name) or _CODECS.get(name, name)

    def escaped(run: re.Match[str]) -> str:
        return _NOT_IN_QUERY.sub(_percent, run[0].encode(codec, _REFERENCE).decode("latin-1"))

    return _NOT_ASCII.sub(escaped, text)


def _percent(octet: re.Match[str]) -> str:
    return f"%{ord(octet[0]):02X}"


def _as_reference(error: UnicodeError) -> tuple[bytes, int]:
    assert isinstance(error, UnicodeEncodeError)
    missing = error.object[error.start : error.end]
    return b"".join(b"%%26%%23%d%%3B" % ord(character) for character in missing), error.end


_REFERENCE = "pavouk-reference"
codecs.register_error(_REFERENCE, _as_reference)


_mended_here = threading.local()  # .places: how many, of the text that this thread decodes


def _from_shift_jis(error: UnicodeError) -> tuple[str, int]:
    """What Python's euc_jp lacks of the standard's: rows such as ① and ㈱, which are the same rows in Shift_JIS."""
    assert isinstance(error, UnicodeDecodeError)
    _mended_here.places += 1
    if _mended_here.places > _MAX_MENDED:
        raise error
    pair = error.object[error.start : error.start + 2]
    if len(pair) < 2 or not all(0xA1 <= octet <= 0xFE for octet in pair):
        return "\ufffd", error.start + 1
    row, cell = pair[0] - 0xA1, pair[1] - 0xA1
    lead = row // 2 + (0x81 if row < 62 else 0xC1)
    trail = cell + 0x9F if row % 2 else cell + (0x40 if cell < 63 else 0x41)
    return bytes([lead, trail]).decode("cp932", "replace")[:1], error.start + 2


_JAPANESE = "pavouk-japanese"
codecs.register_error(_JAPANESE, _from_shift_jis)


def _declared(body: bytes) -> str | None:
    """What the page says itself: a <meta> near the start, the XML declaration, a <meta> farther on."""
    head = body[:_PRESCAN_BYTES]
    name = _in_meta(head) or _in_xml(head) or _late(body[:_LATE_BYTES])
    # A page that can say so in ASCII is not in UTF-16.
    return "utf-8" if name and name.startswith("utf-16") else name


def _in_meta(head: bytes) -> str | None:
    """WHATWG "prescan a byte stream": the first <meta> that names an encoding."""
    return next(filter(None, map(_meta_encoding, _metas(head))), None)


def _in_xml(head: bytes) -> str | None:
    declaration = _XML_DECLARATION.match(head)
    return encoding_for(declaration[1].decode("ascii")) if declaration else None


def _late(start: bytes) -> str | None:
    """WHATWG "change the encoding": a <meta> that the prescan did not reach counts when the parser comes to it."""
    if len(start) <= _PRESCAN_BYTES or b"charset" not in start.lower():
        return None
    return _in_meta(_NO_TAGS.sub(b" ", start))


def _metas(head: bytes) -> Iterator[dict[bytes, bytes]]:
    """The attributes of each <meta>. A tag without an end is none."""
    position = 0
    while start := _TAG_START.search(head, position):
        if start[0] == b"<!--":
            end = head.find(b"-->", start.start() + 2)
            position = end + 3
        elif start[1] is None:
            end = head.find(b">", start.end())
            position = end + 1
        else:
            attributes, end = _attributes(head, start.end() - 1)
            position = end
            if end < len(head) and _META.match(head, start.end() - 1):
                yield attributes
        if end < 0:
            return


def _attributes(head: bytes, position: int) -> tuple[dict[bytes, bytes], int]:
    """Attributes of the tag whose name begins at `position`, and its end. The first of a name counts."""
    found: dict[bytes, bytes] = {}
    while attribute := _ATTRIBUTE.match(head, position):
        position = attribute.end()
        found.setdefault(attribute[1].lower(), (attribute[2] or attribute[3] or attribute[4] or b"").lower())
    return found, position


def _meta_encoding(attributes: dict[bytes, bytes]) -> str | None:
    label = attributes.get(b"charset")
    if label is None and attributes.get(b"http-equiv") == b"content-type":
        match = _CHARSET_IN_CONTENT.search(attributes.get(b"content", b""))
        label = (match[1] or match[2] or match[3]) if match else None
    # In HTTP quotes may surround a label. Here they are gone; one that is left is a mistake that makes it void.
    if not label or b'"' in label or b"'" in label:
        return None
    return encoding_for(label.decode("latin-1"))


def _detected(body: bytes) -> str:
    try:
        body.decode("utf-8")
    except UnicodeDecodeError as error:
        return _guessed(body[max(0, error.start - _SAMPLE_BYTES // 4) :][:_SAMPLE_BYTES])
    return "utf-8"


def _guessed(sample: bytes) -> str:
    """The first of bs4's guesses about bytes that are not UTF-8 that is an encoding of the web and fits."""
    for guess in EncodingDetector(sample, exclude_encodings=["utf-8", "ascii"], is_html=True).encodings:
        name = encoding_for(guess) or _NAME_OF_GUESS.get(guess.lower())
        if name and _fits(sample, name):
            return name
    return FALLBACK


def _is_text(body: bytes, name: str) -> bool:
    if name.startswith("utf-"):
        try:
            body.decode(name)
        except UnicodeDecodeError:
            return False
        return True
    if (table := _table(name)) is not None:  # looking for octets costs a tenth of decoding
        return not any(bytes([octet]) in body for octet, text in enumerate(table) if text == "\ufffd")
    return "\ufffd" not in text_of(body, name)


def _fits(sample: bytes, name: str) -> bool:
    try:
        codecs.getincrementaldecoder(_CODECS.get(name, name))().decode(sample)
    except UnicodeDecodeError:
        return False
    return True

"""URLs: the address that is requested, and the identity that says which addresses are the same page.

Pure functions, the same on server and client. Bad input gives None, never an exception.
An *address* is what a browser would request (WHATWG, by ada-url) without fragment and user information.
An *identity* is url-normalize's form of an address without session ids and default index names; it is a key, never
requested.
"""

import hashlib
import re
from urllib.parse import unquote

import ada_url
from url_normalize import url_normalize

MAX_URL_LENGTH = 2000  # longer ones are traps or mistakes; servers commonly refuse them

# What servers give for a folder when they are not configured otherwise, in any case of letters: half of these servers
# run where files have none. Of other names the case matters.
_INDEX_NAME = re.compile(
    r"\A([^?]*/)(?:index\.(?:x?html?|shtml?|php[3-8]?|phtml|aspx?|jspx?|jhtml|cfm|cgi|pl|do)"
    r"|default\.(?:html?|aspx?|jsp|php|cfm))(?=\?|$)",
    re.IGNORECASE | re.ASCII,
)
_FEW_INDEX_NAMES = re.compile(r"\A([^?]*/)(?:index\.html?|index\.php|default\.aspx?)(?=\?|$)")

# Session ids: the same page has another one for each visitor. Where the name alone does not tell, the value must look
# like one.
_SESSION_WORD = re.compile(r"sess|sid=|zenid=|[?&]s=|/\([A-Z]\(", re.IGNORECASE)  # a quick look first
_SESSION_IN_PATH = re.compile(r";jsessionid=[^/;]*|/\((?:[A-Z]\([0-9a-z]{24}\))+\)(?=/)", re.IGNORECASE)
_SESSION_PARAMETER = re.compile(
    r"(?:jsessionid|phpsessid|aspsessionid[a-z]{8}|oscsid|zenid)=.*"
    r"|(?:sid|session_?id)=(?=.*[0-9])(?=.*[a-z])[0-9a-z]{26,128}"
    r"|s=[0-9a-f]{32}",
    re.IGNORECASE,
)

# Addresses that url-normalize is known to leave alone (about 1 µs instead of 25 to 70). Stricter than necessary on
# purpose: no percent signs, no empty path segments or parameters, no host label that IDNA would look at.
_LABEL = r"(?!..--)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
_PATH_CHAR = r"[A-Za-z0-9\-._~!$&'()*+,;=:@]"
_QUERY_CHAR = r"[A-Za-z0-9\-._~!$'()*+,;:@/?]"
_PARAMETER = rf"{_QUERY_CHAR}+(?:={_QUERY_CHAR}*)?"
_CANONICAL = re.compile(
    rf"https?://{_LABEL}(?:\.{_LABEL})*(?::[0-9]+)?/(?:{_PATH_CHAR}+/)*{_PATH_CHAR}*"
    rf"(?:\?{_PARAMETER}(?:&{_PARAMETER})*)?"
)
# Of these, those that `resolve` is known to leave alone: no port, no dot segments, no host that could be a number, no
# apostrophe in the query.
_PLAIN_PARAMETER = _PARAMETER.replace("'", "")
_PLAIN = re.compile(
    rf"https?://(?:{_LABEL}\.)*(?!..--)[a-z](?:[a-z0-9-]*[a-z0-9])?/(?:(?!\.){_PATH_CHAR}+/)*(?:(?!\.){_PATH_CHAR}+)?"
    rf"(?:\?{_PLAIN_PARAMETER}(?:&{_PLAIN_PARAMETER})*)?"
)
# Browsers take these out or encode them: a label behind a URL, or two on one line, would silently be another URL.
_NEVER_TYPED = re.compile(r"[\s\x00-\x1f\x7f-\x9f]")
_MAX_LABEL_LENGTH = 63
_MAX_ROUNDS = 4
_MAX_RAW_NAME_LENGTH = 2 * 254  # characters that may become one of 253: accents may be apart from their letters
# Scheme, slashes, and a host where it is none of a path.
_START = re.compile(r"[\x00-\x20]*+([a-z][a-z0-9+.-]*+:)?+([/\\]*+)([^/\\?#]*+)", re.IGNORECASE)
_NO_CHARACTERS = str.maketrans("", "", "\t\n\r")  # of a URL, wherever they are
_MAX_ORIGIN_LENGTH = len("https://") + 254 + len(":65535")  # a name in DNS has 253 characters, and perhaps a dot


def resolve(reference: str, base: str | None = None) -> str | None:
    """The address a browser would request for `reference` on the page `base`; None if it is not crawlable."""
    if len(reference) > _MAX_RAW_NAME_LENGTH and _has_long_name(reference, base):
        return None
    try:
        href: str = ada_url.join_url(base, reference) if base else ada_url.normalize_url(reference)
    except (ValueError, UnicodeError):
        return None
    if not href.startswith(("http://", "https://")):
        return None
    address = href.partition("#")[0]
    origin = address[: address.find("/", 8)]
    if "@" in origin:
        address = _without_user(address)
        origin = origin_of(address)
    if len(address) > MAX_URL_LENGTH or len(origin) > _MAX_ORIGIN_LENGTH:
        return None
    # Browsers accept empty labels; DNS has none, and `..` must never become the name of a folder.
    return None if ".." in origin or "//." in origin else address


def _has_long_name(reference: str, base: str | None) -> bool:
    """Whether its host has too many characters for a name, which is told before it is resolved: a name that is not in
    ASCII costs the square of its length: 13 ms for 3,900 characters, and there is room for 700 of these in a page."""
    match = _START.match(reference.translate(_NO_CHARACTERS))
    assert match is not None, "which may be empty"
    scheme, slashes, authority = match.groups("")
    if len(slashes) < 2 and (not scheme or (base or "").startswith(scheme.lower())):
        return False  # a path
    name = unquote(authority.rpartition("@")[2].partition(":")[0])
    return len(name) > _MAX_RAW_NAME_LENGTH and not name.isascii()


def is_plain_address(url: str) -> bool:
    """Whether `url` is certainly an address already: a quick yes, or no answer."""
    return len(url) <= MAX_URL_LENGTH and _PLAIN.fullmatch(url) is not None and url.find("/", 8) <= _MAX_LABEL_LENGTH


def typed(text: str) -> str | None:
    """The address of a URL as a person types it: a missing scheme is http. None for what is no crawlable URL."""
    text = text.strip()
    if _NEVER_TYPED.search(text):
        return None
    if "://" in text:
        return resolve(text)
    authority = text.partition("/")[0]
    _, colon, port = authority.rpartition(":")
    # A mail address is no host, and what has a colon without a port after it is another scheme, or a mistyped one.
    if "@" in authority or (colon and not port.isdigit() and not authority.endswith("]")):
        return None
    return resolve(f"http://{text}")


def _without_user(address: str) -> str:
    scheme, _, rest = address.partition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}://{authority.rpartition('@')[2]}{slash}{path}"


def identity(address: str, drop_index: bool = True, few_index_names: bool = False) -> str:
    """The key under which `address` and its other spellings are one page.

    A crawl must not change what is the same page: `few_index_names` is for those that began when fewer were known.
    """
    if _CANONICAL.fullmatch(address) is None or len(address.split("/", 3)[2]) > _MAX_LABEL_LENGTH:
        address = normalized(address)
    for _ in range(_MAX_ROUNDS):  # what one takes away may have hidden another
        if not ("?" in address or ";" in address or ")/" in address) or not _SESSION_WORD.search(address):
            break
        address, before = _without_session(address), address
        if address == before:
            break
    if drop_index and ("/index." in (lower := address.lower()) or "/default." in lower):
        names = _FEW_INDEX_NAMES if few_index_names else _INDEX_NAME
        address = names.sub(r"\1", address, count=1)
    return address


def _without_session(address: str) -> str:
    start, mark, query = address.partition("?")
    number = 1
    while number:  # without a session id behind it, another one may be a whole segment
        start, number = _SESSION_IN_PATH.subn("", start)
    parameters = query.split("&")
    kept = [parameter for parameter in parameters if not _SESSION_PARAMETER.fullmatch(parameter)]
    return normalized(start + (mark + "&".join(kept) if kept else ""))  # what is left of a segment may be nothing


def normalized(address: str) -> str:
    """url-normalize's form, the long way. Applied until it no longer changes, so that it is idempotent."""
    for _ in range(_MAX_ROUNDS):
        try:
            form = url_normalize(address) or address
        except (ValueError, UnicodeError):  # names that IDNA refuses, and that browsers accept
            return address
        if form == address:
            break
        address = form
    return address


def digest(url_identity: str) -> bytes:
    """The 20-byte key of an identity: SHA-1, so that other tools can compute it."""
    return hashlib.sha1(url_identity.encode(), usedforsecurity=False).digest()


def host_of(address: str) -> str:
    """Host name with the port if it is not the default one: the unit of politeness, and a bundle's domain."""
    authority = address.split("/", 3)[2]
    if "." in authority[-1:] or ".:" in authority:  # example.org. is example.org
        name, colon, port = authority.partition(":")
        return name.rstrip(".") + colon + port
    return authority


def origin_of(address: str) -> str:
    """Scheme, host and port, which share one robots.txt."""
    return address[: address.find("/", 8)]


def path_of(address: str) -> str:
    """Path and query, as robots rules see them."""
    return address[address.find("/", 8) :]

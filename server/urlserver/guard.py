"""Looks at the head of a request before a byte of its body is taken: who asks, from where, for what, and how much.

Pure: a head in; out comes an answer, or the application that may have the body. The same rules for everything that is
served. A web page that is open in a browser on this machine must not be able to ask anything: it can reach servers
here, and by bending its own name to 127.0.0.1 (DNS rebinding) also read what they say.
"""

import ipaddress
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from xml.sax.saxutils import escape

from common.secrets import same_secret
from server.urlserver import web

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
Headers = list[tuple[str, str]]

_SOAP_FAULT = (
    '<?xml version="1.0" encoding="UTF-8"?>'
    '<soap:Envelope xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/"><soap:Body><soap:Fault>'
    "<faultcode>soap:{code}</faultcode><faultstring>{text}</faultstring>"
    "</soap:Fault></soap:Body></soap:Envelope>"
)
_CODES = {HTTPStatus.UNAUTHORIZED: "Client.Token", HTTPStatus.INTERNAL_SERVER_ERROR: "Server.Store"}
_XML = "text/xml; charset=utf-8"
_CONTENT_TYPES = ("text/xml", "application/xml")
_MAX_LENGTH_DIGITS = 15
_NOT_FROM_PAGES = "requests are not taken from web pages"


@dataclass(frozen=True, slots=True)
class Head:
    """What a request says before its body. Names of headers in lower case; several of one name are joined."""

    method: str
    target: str
    headers: Mapping[str, str] = field(default_factory=dict)
    peer: str = ""  # the address that it comes from
    user: int | None = None  # of this machine, whose program asks; only looked up when `Guard.asks_who` says so

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def query(self) -> str:
        return self.target.partition("?")[2]

    @property
    def has_body(self) -> bool:
        return "content-length" in self.headers or "transfer-encoding" in self.headers

    @property
    def length(self) -> int | None:
        """Of the body; None if it is not told in a way that is taken here."""
        text = self.headers.get("content-length", "")
        is_number = text.isascii() and text.isdigit() and len(text) <= _MAX_LENGTH_DIGITS
        return int(text) if is_number and "transfer-encoding" not in self.headers else None


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer. The length is told by who sends it."""

    status: int
    phrase: str
    headers: Headers
    body: bytes


class Guard:
    """In front of two applications, and of the WSDL, which has no secrets."""

    def __init__(
        self,
        soap: Wsgi,
        wsdl: bytes,
        token: str,
        max_bytes: int,
        admin: Wsgi | None = None,
        own_name: str = "",
        users: Collection[int] = (),
    ) -> None:
        self._soap = soap
        self._admin = admin
        self._wsdl = Answer(200, "OK", _headers(_XML), wsdl)
        self._expected = f"Bearer {token}" if token else ""
        self._max_bytes = max_bytes
        self._own_name = own_name.lower()  # beside addresses and localhost
        self._users = () if token else users  # who is answered without a token; empty: everybody

    @property
    def asks_who(self) -> bool:
        """Whether it matters which user of this machine asks."""
        return bool(self._users)

    def judged(self, head: Head) -> Answer | Wsgi:
        """The application that may have the body, for a request that is good as far as it can be seen by now."""
        if refusal := self._refused_to_pages(head):
            return self._refused(head, *refusal)
        if head.method == "GET" and head.query.lower() == "wsdl":
            return self._wsdl
        if refusal := self._refusal(head):
            return self._refused(head, *refusal)
        return self._admin if self._admin and _is_admin(head) else self._soap

    def not_kept(self, head: Head, error: OSError) -> Answer:
        """What is said to who may ask, when there is no room for the body: it is no mistake of his."""
        reason = error.strerror or str(error)
        text = f"the message cannot be written to the disk ({reason}); nothing of it was recorded, try again later"
        return self._refused(head, HTTPStatus.INTERNAL_SERVER_ERROR, text)  # SOAP 1.1 §6.2: all faults have this one

    def _refused_to_pages(self, head: Head) -> tuple[HTTPStatus, str] | None:
        # Browsers send Origin with every POST, and Sec-Fetch-Site with everything to where it is allowed; "none" is a
        # person who has typed the address.
        if "origin" in head.headers or head.headers.get("sec-fetch-site", "none") != "none":
            return HTTPStatus.FORBIDDEN, _NOT_FROM_PAGES
        if not head.target.startswith("/"):
            return HTTPStatus.BAD_REQUEST, "this is no proxy"
        # With a token a page would have to know it. Without, a name that somebody has bent to us stands in Host.
        if not self._expected and not self._is_own(head.headers.get("host", "")):
            text = "without a token this server is called by its address or as localhost, not by another name"
            return HTTPStatus.FORBIDDEN, text
        return None

    def _is_own(self, host: str) -> bool:
        name, _, port = host.lower().rpartition(":")
        if not name or not port.isdigit():  # no port, or an IPv6 address without one
            name = host.lower()
        return not name or name in ("localhost", self._own_name) or _is_address(name.strip("[]"))

    def _refusal(self, head: Head) -> tuple[HTTPStatus, str] | None:
        if head.method != "POST":
            return HTTPStatus.METHOD_NOT_ALLOWED, "send SOAP by POST, or get the WSDL at ?wsdl"
        if self._expected and not same_secret(head.headers.get("authorization", ""), self._expected):
            return HTTPStatus.UNAUTHORIZED, "the token is missing or wrong: send it as 'Authorization: Bearer TOKEN'"
        if self._users and head.user not in self._users:  # a job has the FTP password
            return HTTPStatus.FORBIDDEN, "without a token this server answers only the user who has started it"
        kind = head.headers.get("content-type", "").partition(";")[0].strip().lower()
        if _is_admin(head):
            if kind != web.CONTENT_TYPE:
                return HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"send commands with the Content-Type {web.CONTENT_TYPE}"
        elif kind not in _CONTENT_TYPES:  # spyne would also unpack MIME attachments
            return HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "send SOAP 1.1 with the Content-Type text/xml"
        if head.length is None:
            return HTTPStatus.LENGTH_REQUIRED, "the message needs a Content-Length"
        most = min(self._max_bytes, web.MAX_BYTES) if _is_admin(head) else self._max_bytes
        if head.length > most:
            return HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the message has more than {most} bytes: split it"
        return None

    def _refused(self, head: Head, status: HTTPStatus, text: str) -> Answer:
        if _is_admin(head):
            body, headers = web.error_body(text), _headers(web.CONTENT_TYPE)
        else:
            code = _CODES.get(status, "Client")
            body, headers = _SOAP_FAULT.format(code=code, text=escape(text)).encode(), _headers(_XML)
        if status is HTTPStatus.UNAUTHORIZED:
            headers.append(("WWW-Authenticate", "Bearer"))  # RFC 9110 §15.5.2
        return Answer(status.value, status.phrase, headers, b"" if head.method == "HEAD" else body)


def _is_admin(head: Head) -> bool:
    return head.path == web.ADMIN_PATH


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _headers(content_type: str) -> Headers:
    return [("Content-Type", content_type)]

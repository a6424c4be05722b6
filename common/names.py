"""A URL as a path that is safe on every file system, and back again.

https://example.org/a/Team.html?x=1  ->  example.org/a/Team.html!3fx=1~1
http://127.0.0.1:8080/               ->  127.0.0.1+8080/!

- `!hh` stands for a character that some file system forbids or treats in its own way; a lone `!` for an empty name.
- `~mask` at the end says which letters are capitals (bits, from the first letter on, in hexadecimal), so that names
  which differ only in case stay apart where the file system does not tell them apart.
- A name that would be too long is cut: a part that ends in `~` goes on in the next one, which begins with `~`.
- The first name is the host, with `+port` if it is not the default, and `+http` or `+https` where that is not what
  one would expect (https on the default port, http on any other).
"""

import hashlib
import re

MAX_DOMAIN_LENGTH = 150  # a bundle's file name has the domain, time, job and suffixes within 255
MAX_NAME_LENGTH = 200  # 255 is the usual limit; leaves room for our suffixes and for temporary names

_UNSAFE = re.compile(r"[^A-Za-z0-9._\-=,&+@%$'();]")
_UNSAFE_IN_HOST = re.compile(r"[^a-z0-9._\-]")
_DOMAIN = re.compile(r"[a-z0-9!_\-][a-z0-9!._\-]*(?:\+[0-9]{1,5})?(?:~[0-9a-f]{8})?")
# Windows treats these as devices, with any extension; `data.` is what page folders themselves contain.
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:$|\.)|data\.", re.IGNORECASE)
_BACK = re.compile(r"!([0-9a-f]{2})")


def _escape(match: re.Match[str]) -> str:
    return f"!{ord(match[0]):02x}"


def _unescape(text: str) -> str:
    return _BACK.sub(lambda match: chr(int(match[1], 16)), text)


def domain_name(host: str) -> str:
    """What a host's folder and bundles are called: `example.org`, `example.org+8080`, `!5b!3a!3a1!5d+8080`."""
    name = _safe_host(host)
    if len(name) <= MAX_DOMAIN_LENGTH:
        return name
    return f"{name[:MAX_DOMAIN_LENGTH]}~{hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()[:8]}"


def is_domain_name(name: str) -> bool:
    """Whether `name` can have come from `domain_name`: what the FTP server accepts as a folder."""
    return len(name) <= MAX_DOMAIN_LENGTH + 9 and _DOMAIN.fullmatch(name) is not None


def _safe_host(host: str) -> str:
    name, port = _split_port(host)
    safe = _tamed(_UNSAFE_IN_HOST.sub(_escape, name))
    return f"{safe}+{port}" if port else safe


def _split_port(host: str) -> tuple[str, str]:
    name, colon, port = host.rpartition(":")
    if not colon or port.endswith("]"):
        return host, ""
    return name, port


def page_folder(address: str) -> str:
    """The folder of a page inside its bundle, with `/` between the names."""
    scheme, _, rest = address.partition("://")
    host, _, path = rest.partition("/")
    path, question, query = path.partition("?")
    *folders, last = path.split("/")
    names = _pieces(_host_folder(scheme, host))
    for segment in (*folders, last + question + query):
        names.extend(_pieces(_segment_name(segment)))
    return "/".join(names)


def address_of(folder: str) -> str:
    """Undo `page_folder`."""
    names, joined = [], ""
    for piece in folder.split("/"):
        joined += piece.removeprefix("~").removesuffix("~")
        if not piece.endswith("~"):
            names.append(joined)
            joined = ""
    host_folder, *segments = names
    scheme, host = _scheme_and_host(host_folder)
    return f"{scheme}://{host}/" + "/".join(map(_segment_of, segments))


def _host_folder(scheme: str, host: str) -> str:
    expected = "http" if _split_port(host)[1] else "https"
    return _safe_host(host) + ("" if scheme == expected else f"+{scheme}")


def _scheme_and_host(host_folder: str) -> tuple[str, str]:
    name, *rest = host_folder.split("+")
    port = next((part for part in rest if part.isdigit()), "")
    scheme = next((part for part in rest if not part.isdigit()), "http" if port else "https")
    return scheme, _unescape(name) + (f":{port}" if port else "")


def _segment_name(segment: str) -> str:
    if not segment:
        return "!"
    name = _tamed(_UNSAFE.sub(_escape, segment))
    mask = _capitals(segment)
    return f"{name}~{mask:x}" if mask else name


def _tamed(name: str) -> str:
    """`name` without what some system gives a meaning of its own at the beginning or the end."""
    if name[0] == "." or _RESERVED.match(name):
        name = f"!{ord(name[0]):02x}{name[1:]}"
    if name[-1] == ".":  # Windows drops a dot at the end
        name = f"{name[:-1]}!2e"
    return name


def _segment_of(name: str) -> str:
    # The mask is only there to keep names apart; the letters themselves keep their case.
    return "" if name == "!" else _unescape(name.partition("~")[0])


def _capitals(segment: str) -> int:
    mask, bit = 0, 1
    for character in segment:
        if character.isalpha():
            if character.isupper():
                mask |= bit
            bit <<= 1
    return mask


def _pieces(name: str) -> list[str]:
    """Cut a long name; the `~` at each end also keeps the parts from looking like reserved names."""
    pieces = []
    while len(name) > MAX_NAME_LENGTH:
        pieces.append(name[:MAX_NAME_LENGTH] + "~")
        name = "~" + name[MAX_NAME_LENGTH:]
    return [*pieces, name]

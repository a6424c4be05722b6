"""The file of a page copy: what follows from its URL, its type, and the scheme that the domain is known by.

http://www.example.org/           ->  www.example.org/index.html
http://example.org:8080/a/B.pdf   ->  example.org+8080/a/B.pdf
http://example.org/about          ->  example.org/about~.html          it may have pages below it: example.org/about/…
http://example.org/v1.2/team.htm  ->  example.org/v1.2~/team.htm

Escapes and long names are those of common.names. On top of that files always have a dot, and folders have none or end
in `~`, so that no page is in the way of another; and two pages never have the same file. Where the file system does not
tell capitals from small letters, `~` and the mask of common.names says which are capitals: `B~1.pdf`.
"""

import hashlib
import re
from dataclasses import dataclass

from common.names import domain_name, page_folder
from common.urls import path_of

MAX_PATH_LENGTH = 900  # of all names together: some systems end at 1024, with the folder they are in
LONG = "~long"  # the folder for what is longer

_URL = re.compile(r"(?P<scheme>https?)://(?P<host>[^/]+)/")
_INDEX = "index.html"
_EMPTY = "!"  # an empty name in common.names
# A name of common.names: what it stands for (or the end of it, if it was cut), and the mask of the capitals.
_NAME = re.compile(r"(?P<base>~?[^~]*)(?P<mask>~[0-9a-f]+)?")


@dataclass(frozen=True, slots=True)
class FileNames:
    """How the pages of one domain are called. Its `usual_scheme` gets the plain name of the host as its folder."""

    usual_scheme: str
    masks: bool = False  # the file system takes A and a for the same

    def file_of(self, url: str, extension: str) -> str | None:
        """The path of a page copy, with `/` between the names; None if `url` is no http or https URL."""
        match = _URL.match(url)
        if match is None:
            return None
        host = domain_name(match["host"]) + ("" if match["scheme"] == self.usual_scheme else f"+{match['scheme']}")
        _, *folders, last = page_folder("https://host" + path_of(url)).split("/")
        path = "/".join([host, *map(self._folder, folders), self._file(last, extension)])
        if len(path) > MAX_PATH_LENGTH:
            digest = hashlib.sha1(url.encode(errors="replace"), usedforsecurity=False).hexdigest()
            return f"{host}/{LONG}/{digest}.{extension}"
        return path

    def _folder(self, name: str) -> str:
        base, mask = self._split(name)
        return f"{base}{mask}~" if "." in base else base + mask

    def _file(self, name: str, extension: str) -> str:
        if name == _EMPTY:  # asked for by the name of its folder
            return _INDEX
        if name == _INDEX:  # only with drop_index_names = 0, which makes it another page
            return f"!{ord(_INDEX[0]):02x}{_INDEX[1:]}"
        base, mask = self._split(name)
        stem, dot, own = base.rpartition(".")
        return f"{stem}{mask}.{own}" if dot else f"{base}{mask}~.{extension}"

    def _split(self, name: str) -> tuple[str, str]:
        match = _NAME.fullmatch(name)
        if match is None:  # a part that goes on
            return name, ""
        return match["base"], (match["mask"] or "") if self.masks else ""

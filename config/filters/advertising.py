"""Discards pages of advertising hosts: those of the domains in advertising.txt, and of all below them."""

from pathlib import Path
from urllib.parse import urlsplit

from client.filtering.page import Page

_blacklist: set[str] = set()


def setup(folder: Path) -> None:
    file = folder / "advertising.txt"
    for number, line in enumerate(file.read_text(encoding="utf-8-sig").splitlines(), start=1):
        domain = line.partition("#")[0].strip().strip(".").lower()
        if not domain:
            continue
        if any(character in domain for character in "/:* \t"):
            raise ValueError(f"{file.name}, line {number}: {domain!r} is no domain such as example.org")
        _blacklist.add(domain.encode("idna").decode())


def keep(page: Page) -> bool:
    labels = (urlsplit(page.url).hostname or "").rstrip(".").split(".")
    return not any(".".join(labels[start:]) in _blacklist for start in range(len(labels)))

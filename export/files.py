"""Page copies as a folder tree: one file for each page, with the body as it is stored."""

import tempfile
from pathlib import Path

from export.names import FileNames
from export.output import explained, replacing
from export.records import page_type
from export.stored import Harvest


def lay_out(harvest: Harvest, folder: Path) -> int:
    """Write a copy of every page below `folder`; says how many. Files of ours are replaced, others left alone."""
    number = 0
    with explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
        masks = _takes_capitals_for_small_letters(folder)
    for domain in harvest.domains():
        names = FileNames(harvest.first_scheme(domain), masks)
        for page in harvest.pages(domain):
            name = names.file_of(page.entry.meta.url, page_type(page.entry.data_name))
            if name is None:
                harvest.left_out.append(f"{page.entry.meta.url!r} is no URL of a page")
                continue
            _put(folder / name, page.body)
            number += 1
    return number


def _put(path: Path, body: bytes) -> None:
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            file.write(body)


def _takes_capitals_for_small_letters(folder: Path) -> bool:
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".a") as probe:
        path = Path(probe.name)
        return path.with_name(path.name.swapcase()).exists()

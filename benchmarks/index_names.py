"""How many pages a default index name merges wrongly: folders of documents that have two of them.

    python -m benchmarks.index_names FOLDER…

A crawl takes a folder's address and its default index file for one page. In each folder on disk, files with such names
are compared: two with different contents are two pages, of which the crawl would fetch one. A single one that servers
do not give for the folder by themselves (nginx and Apache: index.html and others in small letters) is counted, too, and
whether a page of the same tree links to the folder by its own address: only then two pages could be meant.
"""

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, unquote, urljoin

from selectolax.lexbor import LexborHTMLParser

from common.urls import identity

SERVED = ("index.html", "index.htm", "index.php")
ROOT = "http://h/"


def index_files(files: list[Path], few: bool) -> list[Path]:
    """Those of the files in a folder that are the same page as the folder."""
    return [file for file in files if identity(ROOT + quote(file.name), few_index_names=few) == ROOT]


def linked_folders(tree: Path) -> set[str]:
    """Folders to which pages in a tree link by an address that ends in a slash, as paths below it."""
    found: set[str] = set()
    for page in tree.rglob("*.[hH][tT][mM]*"):
        if page.is_file():
            base = ROOT + page.relative_to(tree).as_posix()
            found.update(_folders(LexborHTMLParser(page.read_bytes()), base))
    return found


def _folders(page: LexborHTMLParser, base: str) -> Iterator[str]:
    for node in page.css("a[href]"):
        try:
            address = urljoin(base, node.attrs["href"] or "").partition("#")[0].partition("?")[0]
        except ValueError:
            continue
        if address.startswith(ROOT) and address.endswith("/"):
            yield unquote(address.removeprefix(ROOT))


def counted(tree: Path, few: bool) -> Counter[str]:
    """What there is in one tree."""
    counts: Counter[str] = Counter()
    links: set[str] | None = None
    for folder in (tree, *(path for path in tree.rglob("*") if path.is_dir())):
        everything = [file for file in folder.iterdir() if file.is_file()]
        files = index_files(everything, few)
        counts["folders"] += 1
        counts["pages"] += sum(".htm" in file.suffix.lower() or file in files for file in everything)
        counts["with an index file"] += bool(files)
        contents = {file.read_bytes() for file in files}
        if len(contents) > 1:
            counts["with two that differ"] += 1
            print(f"differ: {folder}: {', '.join(sorted(file.name for file in files))}")
        elif files and not any(file.name in SERVED for file in files):
            counts["with one that is not served for the folder"] += 1
            links = linked_folders(tree) if links is None else links
            path = "" if folder == tree else folder.relative_to(tree).as_posix() + "/"
            counts["and a link to the folder"] += path in links
            print(f"not served: {folder}: {files[0].name}{', folder is linked' if path in links else ''}")
    return counts


def main() -> int:
    """Both lists: that of today, and the one of crawls that began earlier."""
    trees = [Path(name) for name in sys.argv[1:]]
    for few in (False, True):
        total = sum((counted(tree, few) for tree in trees), Counter[str]())
        print("few names:" if few else "all names:", ", ".join(f"{name}: {number}" for name, number in total.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())

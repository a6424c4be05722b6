"""Sets pages apart that do not count, for one connection: whoever can upload can claim any page for any job.

A view with the name of the table hides them from every statement that says `page`; all that is stored is `main.page`.
"""

import sqlite3
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from server.catalogue.rows import StoredPage, stored_page

COUNTS = 0
REPEATED = -1  # its job has stored that URL before: the first one to come counts
MOST_TOLD = 200  # pages of one URL, when a person asks

# Is given a job, and digests of URL and body of each page; says COUNTS of each, or why not.
Judge = Callable[[str, Sequence[tuple[bytes, bytes]]], Sequence[int]]

_PREPARE = """
DROP VIEW IF EXISTS temp.page;
DROP TABLE IF EXISTS temp.apart;
CREATE TEMP TABLE apart (
    digest BLOB, bundle INTEGER, position INTEGER, why INTEGER, PRIMARY KEY (digest, bundle, position)
) WITHOUT ROWID;
"""
_SHADOW = """
CREATE TEMP VIEW page AS SELECT * FROM main.page AS every WHERE bundle <= {mark} AND NOT EXISTS (
    SELECT 1 FROM temp.apart
    WHERE apart.digest = every.digest AND apart.bundle = every.bundle AND apart.position = every.position
)
"""
_EVERY = (
    "SELECT bundle, job, digest, position, sha1 FROM bundle CROSS JOIN main.page AS page ON page.bundle = bundle.id"
    " WHERE bundle.id <= ? ORDER BY bundle.id, position"
)
_REPEATED = (
    "INSERT INTO temp.apart SELECT digest, bundle, position, ? FROM (SELECT digest, bundle, position,"
    " row_number() OVER (PARTITION BY digest, job ORDER BY bundle, position) AS number FROM page"
    " JOIN bundle ON bundle.id = page.bundle"
    " WHERE digest IN (SELECT digest FROM page GROUP BY digest HAVING count(*) > 1)) WHERE number > 1"
)
_DIGESTS = "SELECT digest, count(*) FROM temp.apart GROUP BY digest ORDER BY digest"
_PAGE = "domain, name, page.digest, url, folder, data_name, page.size, sha1, crawl_time, status, content_type"
_OF = (
    f"SELECT job, why, {_PAGE} FROM temp.apart JOIN main.page AS page USING (bundle, position)"
    " JOIN bundle ON bundle.id = page.bundle WHERE apart.digest = ? ORDER BY page.bundle, position"
)
_ALL_OF = (
    f"SELECT job, {_PAGE} FROM main.page AS page JOIN bundle ON bundle.id = page.bundle"
    " WHERE digest = ? ORDER BY page.bundle, position"
)


@dataclass(frozen=True, slots=True)
class Apart:
    """A stored page that does not count, and why."""

    page: StoredPage
    job: str
    why: int


def set_apart(database: sqlite3.Connection, judge: Judge, mark: int) -> int:
    """One walk over all pages, bundle by bundle; hides what came after `mark`, too. Returns how many do not count."""
    database.executescript(_PREPARE)
    for (bundle, job), rows in groupby(database.execute(_EVERY, (mark,)), itemgetter(0, 1)):
        pages = [row[2:] for row in rows]
        reasons = judge(job, [(digest, sha1) for digest, _, sha1 in pages])
        found = [
            (digest, bundle, position, int(why))
            for (digest, position, _), why in zip(pages, reasons, strict=True)
            if why != COUNTS
        ]
        if found:
            database.executemany("INSERT INTO temp.apart VALUES (?, ?, ?, ?)", found)
    database.execute(_SHADOW.format(mark=int(mark)))
    database.execute(_REPEATED, (REPEATED,))
    return int(database.execute("SELECT count(*) FROM temp.apart").fetchone()[0])


def digests(database: sqlite3.Connection) -> Iterator[tuple[bytes, int]]:
    """URLs that have pages apart, in the order of their digests, and how many."""
    yield from database.execute(_DIGESTS)


def pages_of(database: sqlite3.Connection, digest: bytes) -> list[Apart]:
    """What is set apart of one URL, in the order in which it came."""
    return [Apart(stored_page(row[2:]), row[0], row[1]) for row in database.execute(_OF, (digest,))]


def judged(database: sqlite3.Connection, digest: bytes, judge: Judge) -> Iterator[Apart]:
    """All that is stored of one URL, in the order in which it came, by the same rules as with all pages."""
    jobs = set[str]()
    for job, *columns in database.execute(_ALL_OF, (digest,)):
        page = stored_page(columns)
        why = int(judge(job, [(page.digest, page.sha1)])[0])
        if why == COUNTS and job in jobs:
            why = REPEATED
        if why == COUNTS:
            jobs.add(job)
        yield Apart(page, job, why)


def most_telling(pages: Iterable[Apart]) -> tuple[list[Apart], int]:
    """At most MOST_TOLD of so many pages, oldest first: the last that count, then the first that do not."""
    counting, others, number = deque[Apart](maxlen=MOST_TOLD), list[Apart](), 0
    for number, page in enumerate(pages, start=1):  # noqa: B007
        if page.why == COUNTS:
            counting.append(page)
        elif len(others) < MOST_TOLD:
            others.append(page)
    told = [*counting, *others][:MOST_TOLD]
    return sorted(told, key=lambda each: each.page.crawl_time), number

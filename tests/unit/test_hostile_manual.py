"""The manual's page about the hostile web tells what the code does."""

import re
from pathlib import Path

from client import bounds, encoding, fields, links, robots, rules, sitemaps
from client.reading import reader
from common import urls
from common.settings import UrlServerSettings, default_of, keys_of, written
from common.wire import Outcome
from server.frontier.sitemaps import MAX_NESTING, MAX_SITEMAPS

PAGE = (Path(__file__).resolve().parents[2] / "manual" / "hostile-web.md").read_text()
LIMITS = dict(re.findall(r"^\| ([^|]+) \| ([0-9][^|]*) \|", PAGE, re.MULTILINE))


def test_outcomes_exist_and_all_that_a_server_can_cause_are_there() -> None:
    told = set(re.findall(r"\| `(\w+)` \|$", PAGE, re.MULTILINE))
    ours = {Outcome.UNCHANGED, Outcome.DISALLOWED, Outcome.UNWANTED, Outcome.INTERNAL, Outcome.SKIPPED}
    assert told == {str(outcome) for outcome in set(Outcome) - ours}


def test_settings_have_these_defaults() -> None:
    section = UrlServerSettings
    keys = {key.name: written(default_of(section, field)) for field, key in keys_of(section).items()}
    told = {name.strip("`"): float(value) for name, value in LIMITS.items() if name.startswith("`")}
    assert len(told) == 7
    assert told == {name: float(keys[name]) for name in told}


def test_other_limits() -> None:
    assert float(LIMITS["Retry-After"]) == fields.MAX_RETRY_AFTER_SECONDS
    assert int(LIMITS["encodings in a row"]) == encoding._MAX_ENCODINGS
    assert int(LIMITS["gzip members"]) == encoding._MAX_MEMBERS
    assert LIMITS["zstd window"] == f"{encoding._ZSTD_MAX_WINDOW >> 20} MB"
    assert LIMITS["robots.txt"] == f"{rules.MAX_BYTES >> 10} KiB"
    assert int(LIMITS["redirects of robots.txt"]) == robots._MAX_HOPS
    assert LIMITS["sitemap"] == f"{sitemaps.MAX_BYTES >> 20} MiB"
    assert f"at most {sitemaps.MAX_ENTRIES:,} addresses" in PAGE
    assert f"{MAX_SITEMAPS:,} sitemaps of a host, {MAX_NESTING} one behind the other" in PAGE
    assert int(LIMITS["URL"]) == urls.MAX_URL_LENGTH
    assert f"links per page: {links.MAX_LINKS:,}" in PAGE
    assert int(LIMITS["HTML that is parsed"]) == bounds.MAX_BYTES
    assert f"at most {bounds.MAX_TAGS:,} tags" in PAGE
    assert f"{bounds.HARMLESS_TAGS:,} tags, and little formatting" in PAGE
    assert float(LIMITS["reading a page"]) == reader.MAX_SECONDS
    assert f"seconds of processor time, and {reader.MAX_PAGE_MEMORY >> 20} MB" in PAGE
    assert f"with {reader.MAX_SITEMAP_SECONDS:.0f} s and {reader.MAX_SITEMAP_MEMORY >> 20} MB" in PAGE
    per_tag, per_byte = 1e6 * bounds._SECONDS_PER_TAG, 1e6 * bounds._SECONDS_PER_BYTE
    assert f"{bounds._SECONDS} s, {per_tag:g} µs a tag and {per_byte:g} µs a byte" in PAGE
    assert bounds.seconds_for(b"<" * 2 * bounds.MAX_BYTES) == reader.MAX_SECONDS
    assert f"each page has {reader._MOMENT.seconds} s and {reader._MOMENT.memory_bytes >> 20} MB" in PAGE
    assert f"with up to {reader._WHILE.seconds} s" in PAGE
    assert reader.MAX_LAID_ASIDE == 8, "as the page says"

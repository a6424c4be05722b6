"""A host and two clients over a web whose links are known."""

from pathlib import Path

import pytest

from tests.integration.cluster import run_cluster
from tests.web.requestlog import (
    assert_agent,
    assert_asked_exactly,
    assert_delay_kept,
    assert_no_url_twice,
    assert_nothing_disallowed,
)
from tests.web.running import run_web

pytestmark = pytest.mark.integration


def test_two_clients_store_what_is_reachable_and_nothing_else(tmp_path: Path) -> None:
    with run_web(hosts=6, pages=20) as web, run_cluster(tmp_path, web.start_urls, "--delay", "0.05") as cluster:
        cluster.start("one")
        cluster.start("two")
        totals = cluster.wait_until_finished()
        assert cluster.stop("one") == 0
        assert cluster.stop("two") == 0
        stored = cluster.stored_urls()
        assert set(stored) == web.truth.stored
        assert set(stored.values()) == {1}
        assert totals.stored == len(stored)
        assert totals.failed == len(web.truth.missing)
        log = web.log()
        assert_asked_exactly(log, web.truth)
        assert_no_url_twice(log)
        assert_nothing_disallowed(log, web.truth)
        assert_delay_kept(log, 0.05, tolerance=0.0)
        assert_agent(log, r"pavouk/[0-9.]+( \(.*\))?")
        for name in ("one", "two"):
            assert "[CT: text/html]" in cluster.programs[name].output(), "both clients had work"

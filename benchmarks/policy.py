"""What the rules about what to crawl cost: `python -m benchmarks.policy`.

Found URLs are taken in by a frontier on RocksDB, with each set of rules in turn, several rounds. Counted is the
processor time of the thread, the best round of each: other work on the machine disturbs that the least.
"""

import tempfile
import time
from pathlib import Path

from benchmarks.frontier import BATCH, HOSTS, KNOWN_SHARE, Web
from common.clock import SystemClock
from common.settings import UrlServerSettings
from common.wire import FoundUrl
from server.frontier.frontier import Frontier, Rules
from server.frontier.rocks import RocksStore
from server.policy.policy import Policy, policy_of

ROUNDS = 5
BATCHES = 400
STARTS = [f"http://www.host{number}.example/articles/" for number in range(HOSTS)]
EXPRESSIONS = (r"\.(jpe?g|png|gif)$", "/(login|logout)/")
CASES = {
    "no rules": Policy(),
    "defaults": policy_of(UrlServerSettings(), ()),
    "scope = host": policy_of(UrlServerSettings(scope="host"), STARTS),
    "scope = domain": policy_of(UrlServerSettings(scope="domain"), STARTS),
    "scope = path": policy_of(UrlServerSettings(scope="path"), STARTS),
    "scope = domain, two in reject": policy_of(UrlServerSettings(scope="domain", reject=EXPRESSIONS), STARTS),
}


def main() -> None:
    web = Web()
    batches = [web.batch(BATCH, KNOWN_SHARE) for _ in range(BATCHES)]
    best = dict.fromkeys(CASES, float("inf"))
    for _ in range(ROUNDS):
        for name, policy in CASES.items():
            best[name] = min(best[name], _seconds(policy, batches))
    for name, seconds in best.items():
        microseconds = seconds / BATCHES / BATCH * 1e6
        print(f"{name:32} {microseconds:6.2f} µs a found URL {seconds / best['no rules']:6.3f}")


def _seconds(policy: Policy, batches: list[list[FoundUrl]]) -> float:
    rules = Rules(delay_seconds=0, durability="normal")
    with tempfile.TemporaryDirectory(prefix="policy-") as folder:
        frontier = Frontier(RocksStore(Path(folder, "store")), policy, rules, SystemClock())
        start = time.thread_time()
        for batch in batches:
            frontier.add(batch)
        seconds = time.thread_time() - start
        frontier.close()
    return seconds


if __name__ == "__main__":
    main()

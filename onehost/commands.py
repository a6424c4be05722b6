"""The command of this package, as it is installed. It looks for its libraries before it imports anything else."""

from common.extras import require


def crawl() -> int:
    """crawl"""
    require("crawl", "server", "client")
    from onehost.main import main

    return main()

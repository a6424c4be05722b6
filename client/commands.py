"""The command of a worker, as it is installed. It looks for its libraries before it imports anything else."""

from common.extras import require


def client_crawler() -> int:
    """clientCrawler"""
    require("clientCrawler", "client")
    from client.main import main

    return main()

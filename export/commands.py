"""The command of this package, as it is installed. It looks for its libraries before it imports anything else."""

from common.extras import require


def crawl_export() -> int:
    """crawlExport"""
    require("crawlExport", "server")
    from export.main import main

    return main()

"""The commands of a host, as they are installed. They look for their libraries before they import anything else."""

from common.extras import require


def url_server() -> int:
    """urlServer"""
    require("urlServer", "server")
    from server.urlserver.main import main

    return main()


def ftp_server() -> int:
    """ftpServer"""
    require("ftpServer", "server")
    from server.ftpserver.main import main

    return main()


def crawl_admin() -> int:
    """crawlAdmin"""
    require("crawlAdmin", "server")
    from server.admin.main import main

    return main()

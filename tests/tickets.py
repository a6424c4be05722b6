"""Jobs and tickets for tests of the client: real values, made with little writing."""

from collections.abc import Sequence
from typing import Any

from client.fetcher import Visit
from client.schedule import Ticket
from common.urls import host_of
from common.wire import HostShare, JobSettings, UrlTask


def job_settings(**changes: Any) -> JobSettings:
    """Settings of a job; the FTP server is nowhere."""
    values: dict[str, Any] = {
        "ftp_host": "127.0.0.1", "ftp_port": 9, "ftp_user": "crawler", "ftp_password": "", "ftp_tls": False,
        "agent_name": "pavouk", "contact": "", "robots_control": True, "page_parse": True, "document_save": True,
        "drop_index_names": True, "bundle_format": "tar.bz2", "max_body_bytes": 10**7, "max_header_bytes": 10**5,
        "max_redirects": 10, "connect_timeout_seconds": 5.0, "idle_timeout_seconds": 5.0,
        "fetch_timeout_seconds": 10.0, "max_crawl_delay_seconds": 60.0, "report_seconds": 30.0,
        "verify_tls": True, "page_directives": True, "rel_nofollow": False,
    }  # fmt: skip
    return JobSettings(**{**values, **changes})


def ticket(url: str, job: str = "1") -> Ticket:
    return Ticket(job, Visit(UrlTask(url), HostShare(host_of(url), 1.0), job_settings()))


def tickets(urls: Sequence[str], job: str = "1") -> list[Ticket]:
    return [ticket(url, job) for url in urls]

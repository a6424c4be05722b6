"""What the URL server does for a client, in plain Python. No SOAP, no sockets, no threads of its own."""

import logging
import re
from collections.abc import Sequence

from common.contact import missing_contact
from common.secrets import FTP_USER, ftp_password, host_secret
from common.settings import Settings
from common.wire import HostShare, Job, JobSettings, Outcome, Receipt, Report, Totals
from server.frontier.frontier import Frontier, Rules
from server.urlserver.journal import Journal

_log = logging.getLogger(__name__)
_CLIENT_NAME = re.compile(r"[A-Za-z0-9._:@+-]{1,100}")
_STORED = (Outcome.STORED, Outcome.UNCHANGED, Outcome.REDIRECTED, Outcome.LISTED)


class BadRequest(Exception):
    """The caller made a mistake; the message says which."""


class UrlService:
    """The operations of the contract. Called by many threads at once."""

    def __init__(self, frontier: Frontier, settings: Settings, journal: Journal) -> None:
        self._frontier = frontier
        self._settings = settings
        self._journal = journal
        self._job_settings = _job_settings(settings, frontier.rules)
        self._at_start = frontier.totals()
        self._is_contact_told = bool(settings.url_server.contact)

    def get_job(self, client: str, request: str, wanted: int) -> Job:
        """The next job for a client; `wanted` bounds the number of URLs."""
        _check_client(client)
        limit = self._settings.url_server.urls_to_crawl
        leased = self._frontier.lease(client, request[:100], min(wanted, limit) if wanted > 0 else limit)
        if not self._is_contact_told:
            self._warn_of_contact(leased.hosts)
        return Job(
            job=self._frontier.job_name(leased.job) if leased.tasks else "",
            lease_seconds=leased.lease_seconds,
            wait_seconds=leased.wait_seconds,
            tasks=leased.tasks,
            hosts=leased.hosts,
            settings=self._job_settings,
            finished=leased.finished,
            give_back=leased.give_back,
        )

    def _warn_of_contact(self, shares: Sequence[HostShare]) -> None:
        """Once: before the first host is asked that no operator has named as a private one."""
        if warning := missing_contact(share.host for share in shares if not share.private):
            self._is_contact_told = True
            _log.warning("%s", warning)

    def send_all_data(self, client: str, address: str, report: Report) -> Receipt:
        """Settle a report and tell the console about it."""
        _check_client(client)
        settled = self._frontier.report(client, self._frontier.job_number(report.job), report)
        done = sum(result.outcome in _STORED for result in report.results)
        numbers = done, len(report.found) + len(report.listed), len(report.results) - done, report.size // 1024
        line = f"({' '.join(map(str, numbers))}) from {client} [{address}]"
        self._journal.report(line, settled.failed, self._frontier.totals())
        return Receipt(settled.accepted, settled.refused, settled.new_urls)

    def c_exit(self, client: str, job: str) -> int:
        """Take the unfinished URLs of a job back."""
        _check_client(client)
        return self._frontier.release(client, self._frontier.job_number(job))

    def renew_job(self, client: str, job: str) -> float:
        """Extend a lease."""
        _check_client(client)
        return self._frontier.renew(client, self._frontier.job_number(job))

    def get_totals(self, at_start: bool = False) -> tuple[Totals, bool, str, float]:
        """The frontier in numbers, now or when the server started; whether the crawl is finished; the limit that has
        ended it or is about to; and when the next page is to be visited again (UTC, 0: none is)."""
        frontier = self._frontier
        totals = self._at_start if at_start else frontier.totals()
        return totals, frontier.is_finished(), frontier.ended_by(), frontier.next_due()


def _check_client(client: str) -> None:
    if not _CLIENT_NAME.fullmatch(client):
        raise BadRequest("ident must be 1 to 100 letters, digits or . _ : @ + -")


def _job_settings(settings: Settings, rules: Rules) -> JobSettings:
    server, ftp = settings.url_server, settings.ftp_server
    everywhere = ftp.ip in ("", "0.0.0.0", "::")
    return JobSettings(
        ftp_host="" if everywhere else ftp.ip,
        ftp_port=ftp.ftp_port,
        ftp_user=ftp.user or FTP_USER,
        ftp_password=ftp.password or ftp_password(ftp.token or host_secret(settings.memory)),
        ftp_tls=bool(ftp.tls_cert),
        agent_name=server.agent_name,
        contact=server.contact,
        robots_control=server.robots_control,
        page_parse=server.page_parse,
        document_save=server.document_save,
        drop_index_names=rules.drop_index_names,
        bundle_format=server.bundle_format,
        max_body_bytes=server.max_body_bytes,
        max_header_bytes=server.max_header_bytes,
        max_redirects=server.max_redirects,
        connect_timeout_seconds=server.connect_timeout,
        idle_timeout_seconds=server.idle_timeout,
        fetch_timeout_seconds=server.fetch_timeout,
        max_crawl_delay_seconds=server.max_crawl_delay,
        report_seconds=server.report_seconds,
        verify_tls=server.verify_tls,
        page_directives=server.page_directives,
        rel_nofollow=server.rel_nofollow,
        repeat_links=server.traversal in ("dfs", "priority"),
        recrawl=server.period != 0,
        sitemaps=server.sitemaps,
        few_index_names=rules.few_index_names,
    )

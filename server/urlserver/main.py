"""The command urlServer: reads the settings, opens the frontier, serves until SIGTERM or SIGINT."""

import argparse
import ipaddress
import json
import logging
import signal
import sys
import threading
from collections.abc import Sequence

from common import VERSION, logs
from common.clock import SystemClock
from common.config import Settings, add_common_options, add_options, from_options
from common.errors import ConfigError, PavoukError
from common.wire import FoundUrl
from server.frontier.frontier import Frontier, FrontierError, Rules
from server.frontier.rocks import RocksStore
from server.frontier.store import Store, StoreError, Table
from server.policy.scope import Policy, policy_of
from server.urlserver.http import Guard, HttpServer, quiet_lost_connections
from server.urlserver.journal import Journal
from server.urlserver.service import BadRequest, UrlService, start_addresses
from server.urlserver.soap import application, wsdl

_STORE_FOLDER = "frontier"
_START_URLS_KEY = b"start urls"
_TICK_SECONDS = 1.0

_log = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    """Run urlServer; returns the exit code."""
    try:
        options = _parser().parse_args(argv)
        settings = from_options(options)
        logs.set_up(settings.url_server.log_level)
        quiet_lost_connections()
        _run(settings, start_addresses((*settings.url_server.start_urls, *options.urls)))
    except (PavoukError, StoreError, FrontierError, BadRequest, OSError) as error:
        print(f"urlServer: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="urlServer",
        description="Coordinates a crawl: keeps all URLs and hands them out to clientCrawlers over SOAP.",
    )
    parser.add_argument("--version", action="version", version=f"pavouk {VERSION}")
    parser.add_argument("urls", nargs="*", metavar="URL", help="Further start URLs, beside start_Urls.")
    add_common_options(parser)
    add_options(parser, "url_Server")
    parser.add_argument("--ftp-ip", dest="ftp_server.ip", metavar="VALUE", help="Where clients are sent to upload.")
    parser.add_argument("--ftp-port", dest="ftp_server.ftp_port", metavar="VALUE", help="Port of the FTP server there.")
    return parser


def _run(settings: Settings, starts: Sequence[str]) -> None:
    server = settings.url_server
    _check_exposure(server.ip, server.token)
    tls = server.tls_cert, server.tls_key
    http = HttpServer(server.ip, server.server_port, server.server_threads, *tls, settings.folder)
    url = http.bind()
    try:
        _serve(settings, starts, http, url)
    finally:
        http.stop()  # its threads would keep the process alive


def _serve(settings: Settings, starts: Sequence[str], http: HttpServer, url: str) -> None:
    server = settings.url_server
    _make_folder(settings)
    store = RocksStore(settings.memory / _STORE_FOLDER)
    clock = SystemClock()
    frontier = Frontier(store, _policy(settings, store, starts), _rules(settings), clock)
    frontier.add((FoundUrl(address, 0) for address in starts), start=True)
    journal = Journal(settings.memory, clock, frontier.failed())
    app = application(UrlService(frontier, settings, journal), server.max_message_bytes)
    guard = Guard(app, wsdl(app, url), server.token, server.max_message_bytes)
    ticking = _Ticker(frontier)
    for number in (signal.SIGTERM, signal.SIGINT):
        # Stopping joins threads, which a signal handler must not do itself.
        signal.signal(number, lambda *_: threading.Thread(target=http.stop).start())
    ticking.start()
    _say_ready(url, settings, frontier)
    try:
        http.serve(guard)
    finally:
        ticking.stop()
        journal.close()
        frontier.close()
    _log.info("stopped; everything is kept in %s", settings.memory)


class _Ticker(threading.Thread):
    """Takes back the jobs of silent clients, also when nobody calls."""

    def __init__(self, frontier: Frontier) -> None:
        super().__init__(name="ticker", daemon=True)
        self._frontier = frontier
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.wait(_TICK_SECONDS):
            try:
                if returned := self._frontier.expire():
                    _log.warning("a client fell silent: %d URLs are queued again", returned)
            except StoreError as error:  # tried again at the next tick; callers get a fault meanwhile
                _log.error("%s", error)

    def stop(self) -> None:
        self._ended.set()
        self.join()


def _check_exposure(ip: str, token: str) -> None:
    if token:
        return
    if not _is_loopback(ip):
        raise ConfigError(f"ip = {ip} is reachable from outside and needs a token; set token, or ip = 127.0.0.1")
    print("urlServer: no token is set, so only this machine can connect", flush=True)


def _is_loopback(ip: str) -> bool:
    try:
        return ipaddress.ip_address(ip).is_loopback
    except ValueError:
        return ip == "localhost"


def _make_folder(settings: Settings) -> None:
    try:
        settings.memory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot write to the work folder {settings.folder}: {error.strerror}") from error


def _policy(settings: Settings, store: Store, starts: Sequence[str]) -> Policy:
    """A continued crawl keeps the start URLs that it had before: its scope must not shrink."""
    before = json.loads(store.get(Table.META, _START_URLS_KEY) or b"[]")
    all_starts = list(dict.fromkeys([*before, *starts]))
    store.write([(Table.META, _START_URLS_KEY, json.dumps(all_starts).encode())])
    return policy_of(settings.url_server, all_starts)


def _rules(settings: Settings) -> Rules:
    server = settings.url_server
    return Rules(
        delay_seconds=server.delay,
        max_crawl_delay_seconds=server.max_crawl_delay,
        connections_per_host=server.connections_per_host,
        lease_seconds=server.lease_seconds,
        retry_wait_seconds=server.retry_wait,
        max_pages=server.max_pages,
        drop_index_names=server.drop_index_names,
        allow_private=server.allow_private,
    )


def _say_ready(url: str, settings: Settings, frontier: Frontier) -> None:
    totals = frontier.totals()
    print(f"urlServer listens on {url}?wsdl", flush=True)
    _log.info("%d URLs known, %d queued; state in %s", totals.known, totals.queued, settings.memory)


if __name__ == "__main__":
    sys.exit(main())

"""The command urlServer: reads the settings, opens the frontier, serves until SIGTERM or SIGINT."""

import argparse
import gc
import logging
import os
import sys
import threading
from collections.abc import Iterable, Sequence
from itertools import chain

from common import VERSION, heap, logs
from common.clock import Clock, SystemClock
from common.config import add_common_options, add_options, from_options
from common.console import show_all_characters
from common.ending import Ending
from common.errors import ConfigError, PavoukError
from common.files import keep_private, private_folder, publish
from common.loop import Caught, Loop
from common.secrets import check_exposure
from common.seeds import Seeds, add_seeds_option, start_addresses
from common.settings import Settings
from common.wire import Totals
from server import starting
from server.admin.operator import Operator
from server.frontier.frontier import Frontier, FrontierError
from server.frontier.store import StoreError
from server.opening import ADDRESS_NAME, open_frontier
from server.urlserver.guard import Guard
from server.urlserver.http import HttpServer
from server.urlserver.journal import Journal
from server.urlserver.service import UrlService
from server.urlserver.soap import application, wsdl
from server.urlserver.spyne_memory import let_go_of_messages
from server.urlserver.web import AdminApp

_TICK_SECONDS = 1.0
_PROGRESS_SECONDS = 5.0

_log = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    """Run urlServer; returns the exit code."""
    show_all_characters()
    try:
        options = _parser().parse_args(argv)
        keep_private()
        ending = Ending()
        heap.keep_small()
        settings = from_options(options, ("url_server", "ftp_server"))
        logs.set_up(settings.url_server.log_level)
        starts = start_addresses((*settings.url_server.start_urls, *options.urls))
        seeds = Seeds(options.seeds, _say, lambda: ending.is_told)
        _run(settings, chain(starts, seeds), options.one_round, options.shared_port, ending)
    except (PavoukError, StoreError, FrontierError, OSError) as error:
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
    add_seeds_option(parser)
    add_common_options(parser)
    add_options(parser, "url_Server")
    parser.add_argument("--ftp-ip", dest="ftp_server.ip", metavar="VALUE", help="Where clients are sent to upload.")
    parser.add_argument("--ftp-port", dest="ftp_server.ftp_port", metavar="VALUE", help="Port of the FTP server there.")
    parser.add_argument(
        "--ftp-tls-cert", dest="ftp_server.tls_cert", metavar="VALUE",
        help="Certificate of the FTP server there; empty: clients upload without TLS.",
    )  # fmt: skip
    parser.add_argument(
        "--one-round", action="store_true",
        help="With a period: only pages that are due at the start are visited again, so that the crawl has an end.",
    )  # fmt: skip
    parser.add_argument(
        "--shared-port", action="store_true",
        help="Other programs of the same user may hold the port or listen on it, too; crawl gives this option.",
    )  # fmt: skip
    return parser


def _run(settings: Settings, starts: Iterable[str], one_round: bool, shared_port: bool, ending: Ending) -> None:
    server = settings.url_server
    check_exposure(server.ip, server.token)
    if not server.token:
        print("urlServer: no token is set, so only your programs on this machine are answered", flush=True)
    tls = server.tls_cert, server.tls_key
    http = HttpServer(server.ip, server.server_port, server.server_threads, *tls, settings.folder, shared_port)
    url = http.bind()
    try:
        _serve(settings, starts, http, url, one_round, ending)
    finally:
        http.close()


def _serve(
    settings: Settings, starts: Iterable[str], http: HttpServer, url: str, one_round: bool, ending: Ending
) -> None:
    server = settings.url_server
    _make_folder(settings)
    clock = SystemClock()

    before = Totals()

    def take_in(frontier: Frontier, starts: Iterable[str]) -> None:
        nonlocal before
        before = frontier.totals()
        _say_what_was_there(before, settings)
        starting.take_in(frontier, starts, _Progress(clock), lambda: ending.is_told)

    frontier = open_frontier(settings, clock, starts, one_round, take_in)
    if ending.is_told:
        frontier.close()
        _log.info("stopped before all start URLs were taken in: give them again")
        return
    journal = Journal(settings.memory, clock, frontier.failed())
    app = application(UrlService(frontier, settings, journal, before), server.max_message_bytes)
    let_go_of_messages(app)
    caught = Caught()
    admin = AdminApp(Operator(frontier, settings, caught))
    own = {os.geteuid(), 0}
    guard = Guard(app, wsdl(app, url), server.token, server.max_message_bytes, admin, server.ip, own)
    ticking = _Ticker(frontier, journal, caught)
    threading.Thread(target=_stop_when_told, args=(ending, http), name="ending", daemon=True).start()
    ticking.start()
    address = settings.memory / ADDRESS_NAME
    publish(address, [url.encode()])
    _say_ready(url, settings, frontier)
    gc.freeze()  # what is there now stays, hosts without number perhaps: no search for garbage need look at it
    try:
        http.serve(guard, settings.memory)
    finally:
        address.unlink(missing_ok=True)
        ticking.stop()
        journal.close()
        frontier.close()
    _log.info("stopped; everything is kept in %s", settings.memory)


def _say(text: str) -> None:
    print(f"urlServer: {text}", file=sys.stderr, flush=True)


class _Progress:
    """Says how many start URLs have been taken in while that takes long."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._said = clock.ticks()

    def __call__(self, number: int) -> None:
        if self._clock.ticks() - self._said > _PROGRESS_SECONDS:
            self._said = self._clock.ticks()
            print(f"urlServer: {number} start URLs taken in, and more to come", flush=True)


def _stop_when_told(ending: Ending, http: HttpServer) -> None:
    """Stopping joins threads, which a signal handler must not do itself."""
    ending.wait()
    http.stop()


class _Ticker(threading.Thread):
    """Lets the frontier do what time brings, also when nobody calls."""

    def __init__(self, frontier: Frontier, journal: Journal, caught: Caught) -> None:
        super().__init__(name="ticker", daemon=True)
        self._frontier = frontier
        self._journal = journal
        self._ended = threading.Event()
        self._loop: Loop[Frontier] = Loop("tick", caught, self._ended.wait)

    def run(self) -> None:
        self._loop.run(lambda: None if self._ended.wait(_TICK_SECONDS) else self._frontier, self._tick)

    def _tick(self, frontier: Frontier) -> None:
        try:
            self._journal.given_up(frontier.tick())
        except StoreError as error:  # tried again at the next tick; callers get a fault meanwhile
            _log.error("%s", error)

    def stop(self) -> None:
        self._ended.set()
        self.join()


def _make_folder(settings: Settings) -> None:
    try:
        private_folder(settings.memory)
    except OSError as error:
        raise ConfigError(f"cannot write to the work folder {settings.folder}: {error.strerror}") from error


def _say_what_was_there(totals: Totals, settings: Settings) -> None:
    text = f"begins anew: there was nothing in {settings.memory}"
    if totals.known:
        numbers = f"{totals.known} URLs known, {totals.queued} queued, {totals.processed} processed"
        text = f"goes on with what is in {settings.memory}: {numbers}"
    print(f"urlServer {text}", flush=True)


def _say_ready(url: str, settings: Settings, frontier: Frontier) -> None:
    totals = frontier.totals()
    print(f"urlServer listens on {url}?wsdl", flush=True)
    _log.info("%d URLs known, %d queued; state in %s", totals.known, totals.queued, settings.memory)


if __name__ == "__main__":
    sys.exit(main())

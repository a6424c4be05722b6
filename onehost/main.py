"""The command crawl: start the parts, show how it goes on, end when the crawl is done, leave a summary."""

import argparse
import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING

from common import VERSION
from common.config import add_common_options, add_options, from_options, given_options
from common.console import show_all_characters
from common.contact import missing_contact
from common.ending import INTERRUPTED, Ending
from common.errors import ConfigError, PavoukError, RemoteUnavailable
from common.files import private_folder, publish, refuse_strangers
from common.handles import let_go
from common.page import iso_time
from common.secrets import host_secret
from common.seeds import Seeds, add_seeds_option, start_addresses
from common.settings import Settings, UrlServerSettings, default_of
from common.tokens import VARIABLE
from common.urls import host_of
from common.wire import Totals
from onehost.copies import folder_options, lay_out, prepare
from onehost.crawler_options import CrawlerOptions, take_over
from onehost.parts import SHARED_PORT, Part, PartFailed, held_port, open_log

if TYPE_CHECKING:
    from client.coordinator import Coordinator

SUMMARY_NAME = "summary.txt"
SEEDS_NAME = "seeds.txt"  # in .mem/, until the end of a run that urlServer has begun with all of them
_SHORT_TICK_SECONDS, _TICK_SECONDS = 0.05, 0.25
_LINE_SECONDS = 2.0
_RETRY_WAIT = "5"  # somebody is waiting: unless told otherwise, further tries come sooner than in a long crawl
_AT_ONCE = ("max_time", "max_bytes")  # limits that end a crawl also while jobs are out; their URLs are given back
_INTERRUPTED_TEXT = "interrupted; run the same command again to go on"

# Keys that are no options of crawl: it takes addresses and ports on loopback, a token of its own, no TLS between its
# parts; and one log_level is enough for them.
OWN_KEYS = {
    "url_Server": ("ip", "server_port", "start_urls", "token", "token_file", "tls_cert", "tls_key"),
    "ftp_Server": (
        "ip", "ftp_port", "passive_ports", "user", "password", "token", "token_file", "tls_cert", "tls_key",
        "log_level",
    ),
    "settings": ("server_ip", "server_port", "name", "token", "token_file", "tls", "tls_ca", "log_level"),
}  # fmt: skip


class _Interrupted(Exception):
    """While seeds were read."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run crawl; returns the exit code."""
    show_all_characters()
    options = parser().parse_args(argv)
    try:
        ending = Ending(signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        classic = take_over(options)
        settings = _checked(options, ending)
        if classic.repository is not None:
            prepare(classic.repository)
        if classic.log_file is not None:
            _try_log(classic.log_file)
        _warn_of_contact(settings, options.urls)
        crawl = Crawl(options, settings, ending, classic)
        code = crawl.run()
        if code == 0 and classic.repository is not None:
            code, lines = lay_out(options, classic.repository, ending)
            crawl.tell(lines if code != INTERRUPTED else [*lines, _INTERRUPTED_TEXT])
        return code
    except PavoukError as error:
        print(f"crawl: {error}", file=sys.stderr)
        return 1 if isinstance(error, PartFailed) else 2
    except _Interrupted:
        return INTERRUPTED


def parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="crawl",
        description="Crawls from one machine: starts urlServer, ftpServer and clientCrawler, and ends when all is "
        "done. Stays on the hosts of the start URLs unless --scope says otherwise. Interrupt it and run it again: "
        "it goes on.",
    )
    parser.add_argument("urls", nargs="*", metavar="URL", help="Where to begin; more can be in config.cfg.")
    parser.add_argument("--version", action="version", version=f"pavouk {VERSION}")
    parser.add_argument(
        "--crawler-conf", type=Path, metavar="FILE",
        help="A classic crawler file (<crawler-options> …); options on the command line count more.",
    )  # fmt: skip
    add_seeds_option(parser)
    add_common_options(parser)
    parser.set_defaults(dir=None)  # a crawler file may say where to work
    own_defaults = {"scope": "host, or site with sitemap = 1", "retry_wait": _RETRY_WAIT}
    add_options(parser, "url_Server", skip=OWN_KEYS["url_Server"], own_defaults=own_defaults)
    add_options(parser, "ftp_Server", skip=OWN_KEYS["ftp_Server"])
    add_options(parser, "settings", skip=OWN_KEYS["settings"])
    return parser


def _checked(options: argparse.Namespace, ending: Ending) -> Settings:
    """Mistakes are found before anything is started."""
    settings = from_options(options, tokens=())
    starts = start_addresses((*settings.url_server.start_urls, *options.urls))
    seeds = Seeds(options.seeds, _say, lambda: ending.is_told)
    if not starts and not options.seeds and not os.path.lexists(settings.memory):
        raise ConfigError("give a start URL, such as: crawl http://example.org/")
    try:
        private_folder(settings.memory)
        refuse_strangers(settings.folder / SUMMARY_NAME)
        if options.seeds or options.crawler_conf:
            _take_in(options, seeds, settings.memory / SEEDS_NAME, ending)
    except OSError as error:
        raise ConfigError(f"cannot write to the work folder {settings.folder}: {error.strerror}") from error
    if not starts and options.seeds and not seeds.good:
        raise ConfigError(f"there is no start URL in {options.seeds}")
    return settings


def _warn_of_contact(settings: Settings, urls: Iterable[str]) -> None:
    """urlServer warns, too, when it comes to that; but in its log."""
    starts = start_addresses((*settings.url_server.start_urls, *urls))
    if settings.url_server.contact:
        return
    seeds = settings.memory / SEEDS_NAME
    with seeds.open(encoding="ascii") if seeds.exists() else contextlib.nullcontext(()) as lines:
        if warning := missing_contact(host_of(address.rstrip()) for address in chain(starts, lines)):
            _say(warning)


def _try_log(file: Path) -> None:
    """What cannot be written must be told before anything is started."""
    refuse_strangers(file)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        open_log(file).close()
    except OSError as error:
        raise ConfigError(f"cannot write to the log file {file}: {error.strerror}") from error


def _take_in(options: argparse.Namespace, seeds: Seeds, file: Path, ending: Ending) -> None:
    """Copy the good ones, all or none: urlServer reads them once more when it is started again. So are the start URLs
    of a crawler file, which can be more than a command line takes."""
    listed = dict.fromkeys(start_addresses(options.urls)) if options.crawler_conf else {}
    if options.crawler_conf:
        options.urls = []
    # What a run had that was killed is not lost.
    others = seeds if options.seeds or not file.exists() else Seeds(str(file), _say)

    def lines() -> Iterator[bytes]:
        for address in chain(listed, (other for other in others if other not in listed)):
            yield f"{address}\n".encode()
        if ending.is_told:
            raise _Interrupted

    publish(file, lines(), is_private=True)
    if not file.stat().st_size:
        file.unlink()


def _say(text: str) -> None:
    _show(f"crawl: {text}", sys.stderr)


def _show(text: str, stream: IO[str] | None = None) -> None:
    """A terminal that is gone, or `head` that has seen enough, is no reason to end a crawl."""
    stream = stream or sys.stdout
    try:
        print(text, file=stream, flush=True)
    except OSError:
        let_go(stream)


class Crawl:
    """One crawl on this machine. Everything happens in the main thread."""

    def __init__(
        self, options: argparse.Namespace, settings: Settings, ending: Ending, classic: CrawlerOptions
    ) -> None:
        self._options = options
        self._settings = settings
        self._ending = ending
        self._started = time.monotonic()
        self._blacklist = settings.memory / "blacklist.txt"
        self._seeds = settings.memory / SEEDS_NAME
        logs = settings.memory
        # Other users of this machine could connect to the parts, too.
        self._token = host_secret(settings.memory)

        def part(name: str, module: str, ready: str) -> Part:
            secret, log = {VARIABLE: self._token}, logs / f"{name}.log"
            return Part(name, module, ready, log, classic.logs_on_screen, secret, classic.log_file)

        self._ftp = part("ftpServer", "server.ftpserver.main", "listens on")
        self._url = part("urlServer", "server.urlserver.main", "listens on")
        self._client = part("clientCrawler", "client.main", "works for")
        self._ports = held_port(), held_port()  # of ftpServer and urlServer, until we end
        self._before = Totals()
        self._last = Totals()
        self._limit = ""  # that has ended the crawl
        self._next_due = 0.0  # UTC; when the next page is to be visited again

    def run(self) -> int:
        is_idle = False
        try:
            coordinator = self._start()
            if coordinator is None:
                _show(_INTERRUPTED_TEXT)
                return INTERRUPTED
            _show(self._beginning())
            finished = self._watch(coordinator)
            is_idle = finished and not self._last.leased
            if not is_idle:
                self._client.stop()  # before the other two: it still has something to deliver to them
            with contextlib.suppress(RemoteUnavailable):
                self._last, _ = coordinator.totals()
                self._limit = coordinator.ended_by()
                self._next_due = coordinator.next_due()
        finally:
            if not is_idle:  # nor stopped above, after an error
                self._client.stop()
            parts = (self._client, self._url, self._ftp)
            for part in parts:
                part.ask_to_stop()
            for part in parts:
                part.stop()
        self._seeds.unlink(missing_ok=True)
        (self._settings.folder / SUMMARY_NAME).unlink(missing_ok=True)
        self.tell(self._summary(finished))
        return self._exit_code(finished)

    def tell(self, lines: Sequence[str]) -> None:
        """Lines of the summary."""
        text = "".join(f"{line}\n" for line in lines)
        with (self._settings.folder / SUMMARY_NAME).open("a", encoding="utf-8") as file:
            file.write(text)
        _show(text.rstrip("\n"))

    def _exit_code(self, finished: bool) -> int:
        if not finished:
            return INTERRUPTED
        if self._last.stored:
            return 0
        _say(f"no page was stored; {self._blacklist} and the logs beside it say why")
        return 1

    def _start(self) -> "Coordinator | None":
        """All parts are started together, and we get ready while they do; the client asks until it is answered. None if
        we are interrupted meanwhile."""
        loopback = (SHARED_PORT, "--ip", "127.0.0.1", "--tls-cert", "", "--tls-key", "")
        ftp_port, server_port = (str(held.getsockname()[1]) for held in self._ports)
        self._ftp.launch((*self._common("ftp_server"), *loopback, "--ftp-port", ftp_port))
        server = [*self._common("url_server"), *loopback, "--server-port", server_port]
        server += ["--ftp-ip", "127.0.0.1", "--ftp-port", ftp_port, "--ftp-tls-cert", "", "--one-round"]
        if self._settings.url_server.retry_wait == default_of(UrlServerSettings, "retry_wait"):
            server.insert(0, f"--retry-wait={_RETRY_WAIT}")  # one that was given comes later, and counts
        if not self._settings.url_server.scope and not self._settings.url_server.sitemap:
            server += ["--scope", "host"]
        if self._seeds.exists():
            server += [f"--seeds={self._seeds}"]
        self._url.launch((*server, *self._options.urls))
        where = ("--server-ip", "127.0.0.1", "--server-port", server_port, "--tls", "0")
        self._client.launch(("foreground", *self._common("client"), *where, "--max-wait", "5"))
        from client.coordinator import Coordinator  # zeep takes its time

        for part in (self._ftp, self._url, self._client):
            part.wait_until_ready(lambda: self._ending.is_told)
        if self._ending.is_told:
            return None
        coordinator = Coordinator(f"http://127.0.0.1:{server_port}/", "crawl", self._token)
        self._before = self._last = coordinator.totals(at_start=True)[0]
        return coordinator

    def _common(self, section: str) -> list[str]:
        """The options that the user gave and that this part reads."""
        return folder_options(self._options) + given_options(self._options, section)

    def _watch(self, coordinator: "Coordinator") -> bool:
        """Until the crawl is finished (True) or interrupted (False)."""
        next_line = 0.0
        while not self._ending.wait(self._until_next_look()):
            for part in (self._url, self._ftp, self._client):
                if part.keep_alive():
                    _say(f"{part.name} had died and was started again")
            try:
                self._last, finished = coordinator.totals()
            except RemoteUnavailable:
                continue  # being started again
            if finished or self._is_over(coordinator):
                return True
            if time.monotonic() >= next_line:
                next_line = time.monotonic() + _LINE_SECONDS
                _show(self._progress())
        return False

    def _until_next_look(self) -> float:
        """Seconds. The end is to be noticed soon, and looking costs both sides a few milliseconds."""
        now = self._last
        done = max(now.done - self._before.done, 1)
        left = (now.queued + now.leased) * (time.monotonic() - self._started) / done  # seconds, about
        return min(max(left / 4, _SHORT_TICK_SECONDS), _TICK_SECONDS)

    def _is_over(self, coordinator: "Coordinator") -> bool:
        """Whether a limit ends the crawl at once."""
        server = self._settings.url_server
        if not server.max_time and not server.max_bytes:
            return False
        try:
            return coordinator.ended_by() in _AT_ONCE
        except RemoteUnavailable:
            return False

    def _beginning(self) -> str:
        before, folder = self._before, self._settings.folder
        if not before.known:
            return f"begins anew in {folder}"
        return f"goes on in {folder}: {before.stored} stored, {before.queued + before.leased} to do"

    def _progress(self) -> str:
        seconds = time.monotonic() - self._started
        now = self._last
        rate = (now.stored - self._before.stored) / seconds
        return (
            f"{seconds:6.0f} s  {now.stored} stored, {now.queued + now.leased} to do, {now.failed} failed, "
            f"{now.excluded} excluded, {now.size / 1e6:.1f} MB, {rate:.1f} pages/s"
        )

    def _summary(self, finished: bool) -> list[str]:
        now, seconds = self._last, time.monotonic() - self._started
        return [
            self._end() if finished else _INTERRUPTED_TEXT,
            f"pages stored   {now.stored}" + self._in_this_run(),
            *self._visited_again(),
            f"failed         {now.failed}" + (f"  (see {self._blacklist})" if now.failed else ""),
            f"excluded       {now.excluded}  (robots.txt, scope, limits)",
            f"still to do    {now.queued + now.leased}",
            f"bundles        {now.size / 1e6:.1f} MB in {self._settings.pages}",
            f"time           {seconds:.1f} s",
        ]

    def _visited_again(self) -> list[str]:
        """Of this run."""
        now, before = self._last, self._before
        if self._settings.url_server.period == 0:
            return []
        visits, changed = now.revisits - before.revisits, now.revisions - before.revisions
        unchanged = now.unchanged - before.unchanged
        others = f", {visits - changed - unchanged} gone or failed" if visits > changed + unchanged else ""
        return [f"visited again  {visits}  ({changed} changed, {unchanged} unchanged{others})"]

    def _end(self) -> str:
        end = f"finished: {self._limit} is reached; with a higher limit it goes on" if self._limit else "finished"
        if self._next_due:
            end += f"; the next page is due at {iso_time(self._next_due)}: then run the same command again"
        return end

    def _in_this_run(self) -> str:
        return f"  ({self._last.stored - self._before.stored} in this run)" if self._before.stored else ""


if __name__ == "__main__":
    sys.exit(main())

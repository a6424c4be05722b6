"""The command clientCrawler: start, stop, restart, status, foreground."""

import argparse
import contextlib
import logging
import os
import re
import signal
import socket
import sys
import threading
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from client.coordinator import Coordinator
from client.daemonize import AlreadyRunning, PidFile, started
from client.filtering.filters import Filters, check
from client.pipeline import Pipeline
from client.results import MinedPage
from client.services import Services
from client.spool import Spool, jobs_in
from client.uploader import Uploader
from client.workers import Workers
from common import VERSION, heap, logs
from common.clock import SystemClock
from common.config import add_common_options, add_options, from_options
from common.console import show_all_characters
from common.ending import Ending
from common.errors import ConfigError, PavoukError
from common.files import keep_private, private_folder, publish, trusted
from common.loop import Caught, read_caught, told
from common.settings import Settings
from common.wire import JobSettings, Outcome

STATE_FOLDER = ".client"
_PID_NAME, _LOG_NAME, _NAME_NAME, _CAUGHT_NAME = "clientCrawler.pid", "clientCrawler.log", "name", "caught"
_STOP_SECONDS = 120.0
# Exit codes of the Linux Standard Base for init scripts.
_OK, _BAD_USAGE, _NOT_RUNNING, _DEAD_BUT_PID_FILE, _FAILED = 0, 2, 3, 1, 1

PipelineOf = Callable[[int, Callable[[MinedPage], None]], Pipeline]  # of a process; told of each page

_log = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    """Run clientCrawler; returns the exit code."""
    show_all_characters()
    options = _parser().parse_args(argv)
    commands: dict[str, Callable[[Settings, PidFile], int]] = {
        "start": _start,
        "stop": _stop,
        "restart": _restart,
        "status": _status,
        "foreground": _foreground,
    }
    try:
        keep_private()
        is_work = options.command in ("start", "restart", "foreground")
        settings = from_options(options, ("client",) if is_work else ())
        settings = replace(settings, folder=settings.folder.absolute())  # a daemon changes its folder
        if is_work:
            private_folder(_state_folder(settings))
        return commands[options.command](settings, PidFile(_state_folder(settings) / _PID_NAME))
    except PavoukError as error:
        print(f"clientCrawler: {error}", file=sys.stderr)
    except OSError as error:
        print(f"clientCrawler: cannot use the work folder {options.dir}: {error}", file=sys.stderr)
    return _BAD_USAGE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="clientCrawler",
        description="A worker: gets jobs from urlServer, downloads and mines pages, uploads them to ftpServer.",
    )
    parser.add_argument("command", choices=("start", "stop", "restart", "status", "foreground"))
    parser.add_argument("--version", action="version", version=f"pavouk {VERSION}")
    add_common_options(parser)
    add_options(parser, "settings")
    return parser


def _start(settings: Settings, pid_file: PidFile, pipeline_of: PipelineOf | None = None) -> int:
    """`pipeline_of`: what was prepared before the lock was free."""
    try:
        pid_file.acquire()
    except AlreadyRunning as error:
        print(error)
        return _OK
    log_file = _state_folder(settings) / _LOG_NAME
    log_file.open("a").close()  # a daemon could not say that it is not allowed to
    prepared = pipeline_of or _prepared(settings)

    def work(ready: Callable[[], None]) -> int:
        logs.set_up(settings.client.log_level, log_file)
        return _work(settings, lambda number: prepared(number, lambda page: None), pid_file, ready)

    sys.stdout.flush()  # the daemon must not print it again
    if not started(pid_file, settings.folder, work):
        print(f"clientCrawler did not start; see {log_file}", file=sys.stderr)
        return _FAILED
    print(f"clientCrawler started; log in {log_file}")
    return _OK


def _stop(settings: Settings, pid_file: PidFile) -> int:
    pid = pid_file.running_pid()
    if pid is None:
        print("clientCrawler is not running")
        return _OK
    if not pid_file.stop_running(_STOP_SECONDS):
        print(f"clientCrawler (pid {pid}) did not stop within {_STOP_SECONDS:.0f} s", file=sys.stderr)
        return _FAILED
    print("clientCrawler stopped")
    return _OK


def _restart(settings: Settings, pid_file: PidFile) -> int:
    pipeline_of = _prepared(settings)  # a mistake must not cost the worker that runs
    return _stop(settings, pid_file) or _start(settings, pid_file, pipeline_of)


def _status(settings: Settings, pid_file: PidFile) -> int:
    pid = pid_file.running_pid()
    if pid is not None:
        print(f"clientCrawler is running (pid {pid})")
        for line in told(read_caught(file) for file in _caught_files(settings)):
            print(line)
        return _OK
    if pid_file.left_behind():
        print("clientCrawler is not running; it ended without being stopped")
        return _DEAD_BUT_PID_FILE
    print("clientCrawler is not running")
    return _NOT_RUNNING


def _foreground(settings: Settings, pid_file: PidFile) -> int:
    try:
        pid_file.acquire()
    except AlreadyRunning as error:
        print(f"clientCrawler: {error}", file=sys.stderr)
        return _FAILED
    logs.set_up(settings.client.log_level)

    def ready() -> None:
        pid_file.write_pid()
        print(f"clientCrawler works for {_url(settings)}", flush=True)

    pipeline_of = _prepared(settings)
    return _work(settings, lambda number: pipeline_of(number, _print_page), pid_file, ready)


def _work(
    settings: Settings, pipeline_of: Callable[[int], Pipeline], pid_file: PidFile, ready: Callable[[], None]
) -> int:
    """Says that it is ready when a signal to stop would find it so."""

    def work(number: int) -> int:
        pipeline = pipeline_of(number)
        threading.Thread(target=_stop_when_told, args=(Ending(), pipeline), name="ending", daemon=True).start()
        try:
            pipeline.run()
        except Exception:
            _log.exception("a process ends because of a mistake of ours")
            return _FAILED
        return _OK

    heap.keep_small()
    for file in _caught_files(settings):  # of an earlier run
        file.unlink(missing_ok=True)
    workers = Workers(_number_of_processes(settings), work, SystemClock(), Caught(_caught_file(settings, 0)))
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signal_number, lambda *_: workers.stop())
    ready()
    if not workers.run():
        return _FAILED
    pid_file.release()
    return _OK


def _stop_when_told(ending: Ending, pipeline: Pipeline) -> None:
    ending.wait()
    pipeline.stop()


def _number_of_processes(settings: Settings) -> int:
    """As configured; more if an earlier run with more processes has left something to deliver."""
    number = settings.client.processes or len(os.sched_getaffinity(0))
    left = [index for index in range(256) if _has_work(_spool_folder(settings, index))]
    return max([number, *(index + 1 for index in left)])


def _has_work(spool: Path) -> bool:
    return spool.is_dir() and bool(jobs_in(spool))


def _spool_folder(settings: Settings, number: int) -> Path:
    return _state_folder(settings) / (f"spool-{number + 1}" if number else "spool")


def _caught_file(settings: Settings, process: int) -> Path:
    """Where a process says what its loops have caught; the one that watches the others is number 0."""
    return _state_folder(settings) / f"{_CAUGHT_NAME}-{process}"


def _caught_files(settings: Settings) -> list[Path]:
    return [path for path in sorted(_state_folder(settings).glob(f"{_CAUGHT_NAME}-*")) if not path.suffix]


def _prepared(settings: Settings) -> PipelineOf:
    """Everything that can go wrong with the settings goes wrong here, before the daemon leaves its terminal."""
    client = settings.client
    ident = _ident(settings)
    ca_file = _certificate(settings)
    url = _url(settings)
    filters = trusted(settings.folder, client.filters) if client.filters else None
    if filters is not None:
        check(filters)
    Spool(_spool_folder(settings, 0))

    def uploader(job: JobSettings) -> Uploader:
        host = job.ftp_host or client.server_ip
        return Uploader(host, job.ftp_port, job.ftp_user, job.ftp_password, job.ftp_tls, ca_file)

    def pipeline(number: int, on_page: Callable[[MinedPage], None]) -> Pipeline:
        name = f"{ident}-{number + 1}" if number else ident
        services = Services(
            coordinator=lambda: Coordinator(url, name, client.token, ca_file),
            uploader=uploader,
            spool=Spool(_spool_folder(settings, number)),
            clock=SystemClock(),
            max_wait_seconds=client.max_wait,
            filters=Filters(filters, client.filter_seconds),
            caught=Caught(_caught_file(settings, number + 1)),
        )
        return Pipeline(services, client.number_of_threads, on_page)

    return pipeline


def _url(settings: Settings) -> str:
    client = settings.client
    host = f"[{client.server_ip}]" if ":" in client.server_ip else client.server_ip
    return f"{'https' if client.tls else 'http'}://{host}:{client.server_port}/"


def _certificate(settings: Settings) -> str:
    if not settings.client.tls_ca:
        return ""
    path = trusted(settings.folder, settings.client.tls_ca)
    if not path.is_file():
        raise ConfigError(f"tls_ca: there is no file {path}")
    return str(path)


def _state_folder(settings: Settings) -> Path:
    return settings.folder / STATE_FOLDER


def _ident(settings: Settings) -> str:
    """Our name at the server. It stays the same over restarts, so that we get our own jobs back."""
    if settings.client.name:
        return settings.client.name
    file = _state_folder(settings) / _NAME_NAME
    if not file.exists():
        host = re.sub(r"[^A-Za-z0-9.-]", "-", socket.gethostname())[:60] or "client"
        publish(file, [f"{host}-{uuid.uuid4().hex[:8]}".encode()])
    return file.read_text().strip()


def _print_page(page: MinedPage) -> None:
    thread = threading.current_thread().name
    if page.outcome is Outcome.STORED and page.meta is not None:
        rest = f"[CT: {page.meta.content_type}][size: {len(page.body)}]"
    else:
        rest = f"[{page.outcome}]" + (f"[{page.detail}]" if page.detail else "")
    # One write, so that the lines of several threads stay whole.
    with contextlib.suppress(OSError):  # a reader that has gone away is no reason to stop working
        sys.stdout.write(f"{thread} {page.task.url} {rest}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

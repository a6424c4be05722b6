"""The command ftpServer: receives bundles until SIGTERM or SIGINT, or rebuilds the catalogue of what is stored."""

import argparse
import logging
import sys
from collections.abc import Sequence
from dataclasses import replace

from common import VERSION, logs
from common.config import add_common_options, add_options, from_options
from common.console import show_all_characters
from common.ending import INTERRUPTED, Ending
from common.errors import PavoukError
from common.secrets import check_exposure, host_secret
from common.settings import Settings
from server.catalogue import Catalogue, CatalogueWriter
from server.ftpserver.folder import PagesFolder
from server.ftpserver.inbox import Inbox
from server.ftpserver.server import FtpServer, make_server

log = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    """Run ftpServer; returns the exit code."""
    show_all_characters()
    options = _parser().parse_args(argv)
    try:
        settings = from_options(options, ("ftp_server",))
        logs.set_up(settings.ftp_server.log_level)
        return _rebuild(settings) if options.rebuild_catalogue else _serve(settings, options.shared_port)
    except (PavoukError, OSError) as error:
        print(f"ftpServer: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:  # a server ends in its own way
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ftpServer",
        description="Receives bundles from clientCrawlers over FTP, verifies, stores and catalogues them.",
    )
    parser.add_argument("--version", action="version", version=f"pavouk {VERSION}")
    parser.add_argument(
        "--rebuild-catalogue", action="store_true",
        help="Read all stored bundles, make the catalogue anew, report broken bundles, and end "
        "(exit code 1 if there are any). Not while an ftpServer of ours runs there; another FTP server may.",
    )  # fmt: skip
    parser.add_argument(
        "--shared-port", action="store_true",
        help="Other programs of the same user may hold the port or listen on it, too; crawl gives this option.",
    )  # fmt: skip
    add_common_options(parser)
    add_options(parser, "ftp_Server", skip=("password",))  # everybody on a machine can read command lines
    return parser


def _rebuild(settings: Settings) -> int:
    folder = PagesFolder(settings.pages)
    try:
        with Catalogue.open(folder.directory, thorough=True) as catalogue:
            changes = catalogue.rebuild(verify=True)
            counts = catalogue.counts()
    finally:
        folder.close()
    for name, reason in changes.broken:
        print(f"broken: {name}: {reason}")
    print(f"{counts.bundles} bundles, {counts.pages} pages, {counts.urls} URLs, {len(changes.broken)} broken")
    return 1 if changes.broken else 0


def _serve(settings: Settings, shared_port: bool) -> int:
    options = settings.ftp_server
    check_exposure(options.ip, options.token)
    secret = options.token or host_secret(settings.memory)
    folder = PagesFolder(settings.pages)
    writer = CatalogueWriter(folder.directory)
    try:
        max_body_bytes = settings.url_server.max_body_bytes
        inbox = Inbox(folder.directory, folder.incoming, options.max_bundle_bytes, max_body_bytes, writer.put)
        server = make_server(replace(options, token=secret), settings.folder, inbox, shared_port)
        ending = Ending()
        writer.start()
        try:
            _say_ready(settings, server)
            while not ending.is_told:
                server.serve_once()
        finally:
            server.close_all()
            writer.close()
    finally:
        folder.close()
    log.info("stopped")
    return 0


def _say_ready(settings: Settings, server: FtpServer) -> None:
    if not settings.ftp_server.token:
        print("ftpServer: no token is set, so only this machine can connect", file=sys.stderr)
    ip, port = server.address
    host = f"[{ip}]" if ":" in ip else ip
    print(f"ftpServer listens on ftp://{host}:{port}/ (directory {settings.pages})", flush=True)


if __name__ == "__main__":
    sys.exit(main())

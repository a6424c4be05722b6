"""The real ftpServer for tests, and what it has stored."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from client.uploader import Uploader
from common.bundle import manifest_path, parse_bundle_name
from common.names import is_domain_name
from common.secrets import FTP_USER, ftp_password
from server.catalogue import Catalogue
from tests.processes import Running, running

READY = r"^ftpServer listens on ftp://(?P<ip>\S+):(?P<port>\d+)/ \(directory (?P<directory>.+)\)$"
TOKEN = "a-secret"


@dataclass(frozen=True)
class FtpServer:
    """A running ftpServer."""

    program: Running
    pages: Path

    @property
    def port(self) -> int:
        return int(self.program.match["port"])

    @property
    def url(self) -> str:
        """With the account's name and password, as curl and lftp take it."""
        return f"ftp://{FTP_USER}:{ftp_password(TOKEN)}@127.0.0.1:{self.port}"

    def uploader(self, **options: object) -> Uploader:
        return Uploader("127.0.0.1", self.port, FTP_USER, ftp_password(TOKEN), **options)  # type: ignore[arg-type]


@contextmanager
def run_ftp_server(folder: Path, *options: str, port: int = 0) -> Iterator[FtpServer]:
    """Runs ftpServer on the work folder until the end of the block."""
    command = ["-m", "server.ftpserver.main", "--dir", folder, "--ftp-port", str(port), "--token", TOKEN, *options]
    with running(command, READY) as program:
        yield FtpServer(program, folder / "Pages")


def stored_bundles(pages: Path) -> dict[str, bytes]:
    """Every complete bundle in Pages/ with its content; each has its manifest beside it."""
    found = [path for path in _in_domains(pages) if parse_bundle_name(path.name)]
    assert all(manifest_path(path).exists() for path in found)
    return {path.name: path.read_bytes() for path in found}


def strangers_in(pages: Path) -> list[str]:
    """What is in the folders of the domains besides bundles and manifests."""
    bundles = {path for path in _in_domains(pages) if parse_bundle_name(path.name)}
    expected = bundles | {manifest_path(path) for path in bundles}
    return [path.name for path in _in_domains(pages) if path not in expected]


def _in_domains(pages: Path) -> list[Path]:
    return [path for path in pages.glob("*/*") if is_domain_name(path.parent.name)]


def catalogued_bundles(pages: Path) -> list[str]:
    """The names of the bundles in the catalogue."""
    with Catalogue.open(pages, read_only=True) as catalogue:
        return [bundle.name for bundle in catalogue.bundles()]

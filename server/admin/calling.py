"""Finds who can answer an operator: the running urlServer, or else the frontier in the work folder itself."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from common.clock import SystemClock
from common.errors import PavoukError, RemoteUnavailable
from common.files import trusted
from common.secrets import known_host_secret
from common.settings import Settings
from server.admin.operator import Answer, Arguments, Operator
from server.admin.remote import NotOurs, NotRunning, Place, Remote, configured_place, written_place
from server.frontier.rocks import is_store
from server.frontier.store import DamagedStore, Store, StoreError
from server.opening import ADDRESS_NAME, STORE_FOLDER, open_store, reopened

_log = logging.getLogger(__name__)


class NoCrawl(PavoukError):
    """There is nothing in this work folder."""


class Verbs(Protocol):
    """What answers: an Operator here, or a Remote one."""

    def run(self, command: str, arguments: Arguments) -> Answer:
        """Do what the operator asks."""


def running_server(settings: Settings, is_told: bool) -> Remote | None:
    """The urlServer that has the work folder open, or None. `is_told`: the operator said where it is."""
    if is_told:
        remote = _remote(settings, configured_place(settings))
        return remote if _folder_of(remote) is not None else None
    written = written_place(settings)
    if written is not None:
        # A crawl on one machine has no other token than that of its work folder.
        remote = _remote(settings, written, known_host_secret(settings.memory) or "")
        try:
            if _is_of(_folder_of(remote), settings):
                return remote
        except (NotOurs, RemoteUnavailable) as error:
            _log.warning("%s; %s may have been left by a server that was killed", error, ADDRESS_NAME)
    place = configured_place(settings)
    if not place.port or place == written:
        return None
    remote = _remote(settings, place)
    folder = _folder_of(remote)
    # With a crawl here, a server that works in another folder is not meant. Without one it can only be that.
    return remote if folder and (_is_of(folder, settings) or not has_crawl(settings)) else None


def _folder_of(remote: Remote) -> str | None:
    """The work folder of the server; None if nobody listens."""
    try:
        return str(remote.run("ping", {}).get("folder", ""))
    except NotRunning:
        return None


def _is_of(folder: str | None, settings: Settings) -> bool:
    return folder == str(settings.folder.resolve())


def _remote(settings: Settings, place: Place, other_token: str = "") -> Remote:
    certificate, token = settings.url_server.tls_cert, settings.url_server.token
    return Remote(place, token or other_token, trusted(settings.folder, certificate) if certificate else None)


@contextmanager
def opened_here(settings: Settings) -> Iterator[Operator]:
    """An operator on the frontier of the work folder, which no server has open. NoCrawl if there is none."""
    store = opened_store(settings)
    frontier = reopened(store, settings, SystemClock())
    try:
        yield Operator(frontier, settings)
    finally:
        frontier.close()


def opened_store(settings: Settings) -> Store:
    """The tables of the work folder; nobody else can open them then."""
    if not has_crawl(settings):  # opening would make an empty one
        raise NoCrawl(f"there is no crawl in {settings.folder.absolute()}: say which work folder with --dir")
    try:
        return open_store(settings)
    except DamagedStore:
        raise
    except StoreError as error:
        raise RemoteUnavailable(f"urlServer does not answer where it should, and {error}") from error


def has_crawl(settings: Settings) -> bool:
    return is_store(settings.memory / STORE_FOLDER)

"""The parts of ftpServer below FTP: names, uploads, quarantine, account; and the time-outs of sessions."""

import ftplib
import socket
import threading
from dataclasses import replace

import pytest

from common.bundle import manifest_bytes, manifest_path, parse_manifest
from common.secrets import FTP_USER, ftp_password, same_secret
from common.settings import FtpServerSettings
from server.ftpserver.folder import PagesFolder
from server.ftpserver.inbox import Inbox, Refused, SendAgain
from server.ftpserver.quarantine import Quarantine
from server.ftpserver.uploads import Place, TooLong, Uploads, is_domain_folder, place_of
from tests.bundles import make_bundle

NAME = "example.org.1700000000.1.tar.bz2"


def test_the_password_follows_from_the_token():
    # printf 'pavouk ftp' | openssl dgst -sha256 -hmac token
    assert ftp_password("token") == "7932b87c44e9db82d37e24eeb1d38b12024a37b63e03020f8f886c7401934195"
    assert ftp_password("") != ftp_password("token")


def test_secrets_of_any_kind_can_be_compared():
    assert same_secret("č", "č")
    assert not same_secret("\udcff", "č")
    assert not same_secret("", "x")


@pytest.mark.parametrize(
    ("path", "place"),
    [
        (f"/example.org/{NAME}.part", Place("example.org", NAME)),
        (f"/example.org/{NAME}.manifest.part", Place("example.org", NAME, is_manifest=True)),
        ("/a.cz+8080/a.cz+8080.17.j_1.tar.zst.part", Place("a.cz+8080", "a.cz+8080.17.j_1.tar.zst")),
        (f"/example.org/{NAME}", None),
        (f"/example.org/{NAME}.manifest.manifest.part", None),
        (f"//example.org/{NAME}.part", None),
        (f"example.org/{NAME}.part", Place("example.org", NAME)),
        ("", None),
        ("/", None),
    ],
)
def test_what_may_be_sent_where(path, place):
    assert place_of(path) == place


def test_the_catalogue_cannot_be_taken_for_a_domain():
    assert not any(is_domain_folder(f"/catalogue.sqlite{ending}") for ending in ("", "-wal", "-shm", ".bad-17"))
    assert is_domain_folder("/catalogue.org")


def test_an_upload_is_hashed_and_limited_as_it_comes(tmp_path):
    uploads = Uploads(tmp_path, 10, 4)
    bundle = uploads.begin(Place("example.org", NAME))
    bundle.write(b"12345")
    with pytest.raises(TooLong):
        bundle.write(b"678901")
    bundle.write(b"67890")
    assert uploads.complete(Place("example.org", NAME)) is None
    bundle.close()
    assert uploads.complete(Place("example.org", NAME)) is bundle
    assert bundle.sha256 == "c775e7b757ede630cd0aa1113bd102661ab38829ca52a6422ab782862f268646"
    assert bundle.path.read_bytes() == b"1234567890"
    with pytest.raises(TooLong):
        uploads.begin(Place("example.org", NAME, is_manifest=True)).write(b"12345")
    uploads.drop_all()
    assert list(tmp_path.iterdir()) == []


def test_the_quarantine_drops_the_oldest(tmp_path):
    quarantine = Quarantine(tmp_path, max_files=5, max_bytes=1000)
    for number in range(8):
        file = tmp_path / f"{number}.part"
        file.write_bytes(b"x")
        quarantine.take(f"bundle{number}", file)
    assert _kept(tmp_path) == [f"bundle{number}" for number in range(3, 8)]
    file.write_bytes(bytes(998))
    quarantine.take("large", file)
    assert _kept(tmp_path) == ["bundle6", "bundle7", "large"]
    file.write_bytes(bytes(2000))
    quarantine.take("too-large", file)
    assert _kept(tmp_path) == []


def _kept(directory):
    return [path.name.split("-", 2)[2] for path in sorted((directory / ".quarantine").iterdir())]


def test_many_threads_can_use_the_quarantine(tmp_path):
    quarantine = Quarantine(tmp_path, max_files=5)
    failed = []

    def take(worker):
        try:
            for number in range(50):
                file = tmp_path / f"{worker}{number}.part"
                file.write_bytes(b"x")
                quarantine.take("bundle", file)
        except OSError as error:
            failed.append(error)

    threads = [threading.Thread(target=take, args=(worker,)) for worker in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert len(_kept(tmp_path)) == 5


class Received:
    """An inbox with the uploads of one session, and what it handed over."""

    def __init__(self, directory):
        folder = PagesFolder(directory)
        self.handed_over = []
        self.inbox = Inbox(directory, folder.incoming, 10**9, 10**7, lambda *item: self.handed_over.append(item))
        self.uploads = self.inbox.uploads()

    def send(self, bundle, manifest=None):
        place = Place(bundle.parent.name, bundle.name)
        beside = replace(place, is_manifest=True)
        contents = bundle.read_bytes(), manifest or manifest_path(bundle).read_bytes()
        for where, content in zip((place, beside), contents, strict=True):
            with_content = self.uploads.begin(where)
            with_content.write(content)
            with_content.close()
        self.inbox.accept(place, self.uploads.complete(place), self.uploads.complete(beside))
        self.uploads.drop(place, beside)


def test_what_is_stored_is_handed_over_with_its_manifest(tmp_path):
    received = Received(tmp_path / "Pages")
    bundle = make_bundle(tmp_path / "example.org")
    received.send(bundle)
    stored = tmp_path / "Pages" / "example.org" / bundle.name
    assert received.handed_over == [(stored, parse_manifest(manifest_path(bundle).read_bytes()))]
    assert stored.read_bytes() == bundle.read_bytes()
    received.send(bundle)
    assert len(received.handed_over) == 2  # the first time the server may have died before it was catalogued


@pytest.mark.parametrize(
    "change",
    [
        {"domain": "example.net"}, {"job": "2"}, {"created": 1}, {"created": 1.7e9}, {"domain": None},
    ],
)  # fmt: skip
def test_a_manifest_that_contradicts_the_name_is_refused(tmp_path, change):
    received = Received(tmp_path / "Pages")
    bundle = make_bundle(tmp_path / "example.org")
    manifest = replace(parse_manifest(manifest_path(bundle).read_bytes()), **change)
    if change == {"created": 1.7e9}:  # equal to the number in the name, and yet no whole number
        manifest = replace(manifest, created=1_700_000_000.0)
    with pytest.raises(Refused):
        received.send(bundle, manifest_bytes(manifest))
    assert received.handed_over == []


@pytest.mark.parametrize("text", [b"", b"\n", b"[]\n", b"{}\n", b"[" * 100_000, b'{"version": 1}\n', b"\xff\xfe"])
def test_a_manifest_that_is_none_is_wanted_again(tmp_path, text):
    import zstandard

    received = Received(tmp_path / "Pages")
    bundle = make_bundle(tmp_path / "example.org")
    for content in (text + b" ", zstandard.compress(text), zstandard.compress(text)[:-1]):
        with pytest.raises(SendAgain):
            received.send(bundle, content)


def test_one_session_at_a_time_stores_a_bundle(tmp_path):
    received = Received(tmp_path / "Pages")
    bundle = make_bundle(tmp_path / "example.org")
    with received.inbox._alone(bundle.name), pytest.raises(SendAgain, match="another session"):
        received.send(bundle)
    received.send(bundle)
    assert not (tmp_path / "Pages" / ".quarantine").exists()


@pytest.mark.filterwarnings("ignore:The asyn:DeprecationWarning")
def test_sessions_that_do_nothing_and_transfers_that_stall_are_ended(tmp_path, monkeypatch):
    from server.ftpserver import server as server_module
    from server.ftpserver.session import DataChannel, Session

    monkeypatch.setattr(Session, "timeout", 0.5)
    monkeypatch.setattr(DataChannel, "timeout", 0.3)
    inbox = Inbox(tmp_path, PagesFolder(tmp_path).incoming, 1000, 10**7, lambda path, manifest: None)
    server = server_module.make_server(FtpServerSettings(ftp_port=0), tmp_path, inbox)
    ended = threading.Event()

    def serve():
        while not ended.is_set():
            server.serve_once()
        server.close_all()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with socket.create_connection(server.address, timeout=20) as silent:
            assert silent.makefile("rb").read().split(b"\r\n")[1].startswith(b"421")
        with ftplib.FTP(timeout=20) as session:
            session.connect(*server.address)
            session.login(FTP_USER, ftp_password(""))
            session.voidcmd("TYPE I")
            data = session.transfercmd(f"STOR /example.org/{NAME}.part")
            data.sendall(b"then nothing")
            with pytest.raises(ftplib.error_temp, match="421 Data connection timed out"):
                session.voidresp()
    finally:
        ended.set()
        thread.join()
    assert list((tmp_path / ".incoming").iterdir()) == []

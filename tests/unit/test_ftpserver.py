"""The FTP account, seen by a client that tries everything."""

import contextlib
import ftplib
import io
import random
import socket
import threading

import pytest

from common.bundle import manifest_path
from common.secrets import FTP_USER, ftp_password
from tests.bundles import make_bundle
from tests.ftp import TOKEN, catalogued_bundles, run_ftp_server, stored_bundles, strangers_in

NAME = "example.org.1700000000.1.tar.bz2"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with run_ftp_server(tmp_path_factory.mktemp("ftp"), "--max-connections-per-address", "20") as running:
        yield running
        assert "Traceback" not in running.program.errors()


@pytest.fixture
def session(server):
    with log_in(server) as session:
        yield session


def log_in(server, password=None):
    session = ftplib.FTP(timeout=20)
    session.connect("127.0.0.1", server.port)
    session.login(FTP_USER, ftp_password(TOKEN) if password is None else password)
    return session


def send(session, name, content):
    session.storbinary(f"STOR {name}", io.BytesIO(content))


def send_both(session, bundle, content=None, manifest=None):
    target = f"/{bundle.name.split('.17')[0]}/{bundle.name}"
    send(session, f"{target}.manifest.part", manifest_path(bundle).read_bytes() if manifest is None else manifest)
    send(session, f"{target}.part", bundle.read_bytes() if content is None else content)
    return target


def refused(session, command, code="5"):
    with pytest.raises((ftplib.error_perm, ftplib.error_temp)) as caught:
        session.sendcmd(command)
    assert str(caught.value).startswith(code), (command, caught.value)
    assert session.sendcmd("NOOP").startswith("200")
    return str(caught.value)


def test_a_bundle_is_stored_under_its_name_when_it_is_renamed(server, session, tmp_path):
    bundle = make_bundle(tmp_path, "stored.org")
    target = send_both(session, bundle)
    assert bundle.name not in stored_bundles(server.pages)
    assert session.rename(f"{target}.part", target) == "250 Stored."
    assert stored_bundles(server.pages)[bundle.name] == bundle.read_bytes()
    assert manifest_path(server.pages / "stored.org" / bundle.name).read_bytes() == manifest_path(bundle).read_bytes()


def test_relative_names_work_in_the_folder_of_the_domain(server, session, tmp_path):
    bundle = make_bundle(tmp_path, "relative.org")
    assert session.mkd("relative.org") == "/relative.org"
    session.cwd("/relative.org")
    assert session.pwd() == "/relative.org"
    send(session, f"{bundle.name}.manifest.part", manifest_path(bundle).read_bytes())
    send(session, f"{bundle.name}.part", bundle.read_bytes())
    session.rename(f"{bundle.name}.part", bundle.name)
    session.cwd("..")
    assert session.pwd() == "/"
    assert bundle.name in stored_bundles(server.pages)


@pytest.mark.parametrize(
    "command",
    [
        "RETR /example.org/x", "LIST", "LIST /", "NLST", "MLSD", "MLST /", "STAT", "STAT /", "DELE /example.org/x",
        "RMD /example.org", "XRMD x", "APPE /example.org/x", "REST 10", "SITE CHMOD 777 /example.org", "SITE HELP",
        "PORT 127,0,0,1,4,1", "EPRT |1|127.0.0.1|1025|", "MDTM /example.org/x", "SIZE /example.org/x",
        "MFMT 20200101000000 /example.org", "STOU", "ALLO 5", "REIN", "ABOR", "XCWD /", "NOSUCH", "",
    ],
)  # fmt: skip
def test_nothing_else_is_offered(session, command):
    refused(session, command, "502")


def test_what_is_not_offered_is_not_announced(session):
    features = set(session.sendcmd("FEAT").split("\n")[1:-1])
    assert {line.strip() for line in features} == {"EPSV", "PAVOUK", "TVFS", "UTF8"}
    assert {word for word in session.sendcmd("HELP").split() if word.isupper()} == {
        "CDUP", "CWD", "EPSV", "FEAT", "HELP", "MKD", "NOOP", "OPTS", "PASS", "PASV", "PWD", "QUIT", "RNFR", "RNTO",
        "STOR", "SYST", "TYPE", "USER",
    }  # fmt: skip


def _stored(server):
    """What is in Pages/, but for the files that SQLite makes and removes beside the catalogue when it likes."""
    return sorted(path for path in server.pages.rglob("*") if not path.name.startswith("catalogue.sqlite-"))


@pytest.mark.parametrize(
    "name",
    [
        "../x.part", "/../../etc/passwd", "/etc/passwd", NAME, f"/{NAME}.part", f"/example.org/{NAME}",
        f"/example.net/{NAME}.part", f"/example.org/sub/{NAME}.part", f"/example.org/../{NAME}.part",
        "/example.org/.part", "/example.org/notes.part", f"/.quarantine/{NAME}.part", f"/.incoming/{NAME}.part",
        "/catalogue.sqlite.part", "/example.org/example.org.17.1.tar.gz.part",
        "/example.org/example.org.0017.1.tar.bz2.part", f"/example.org/{NAME}.part.part",
        f"/example.org/{NAME}\x00.part", f"/example.org/\n{NAME}.part", "/example.org/" + "a" * 1500 + ".part",
        "/" + "a" * 300 + "/" + "a" * 300 + ".17.1.tar.bz2.part", f"/Example.org/{NAME}.part",
        "/catalogue.sqlite/catalogue.sqlite.17.1.tar.bz2.part",
    ],
)  # fmt: skip
def test_only_bundles_can_be_sent(server, session, name):
    session.voidcmd("TYPE I")
    before = _stored(server)
    session.putline = lambda line: session.sock.sendall(line.encode() + b"\r\n")  # ftplib's refuses line ends
    refused(session, f"STOR {name}", "55")
    assert _stored(server) == before


@pytest.mark.parametrize(
    "name",
    [
        "..", "../odd", "/../odd", "x/../../odd", "/.quarantine", "/a/b", "Example.org", "catalogue.sqlite", "a b",
        "x" * 200,
    ],
)  # fmt: skip
def test_only_folders_of_domains_can_be_made(server, session, name):
    before = _stored(server)
    refused(session, f"MKD {name}", "550")
    assert _stored(server) == before


@pytest.mark.parametrize("name", ["/.quarantine", "/a/b", "Example.org", "catalogue.sqlite", "a b", "..", "../odd"])
def test_there_are_no_other_folders(session, name):
    refused(session, f"CWD {name}", "550")
    assert session.pwd() == "/"


def test_a_symbolic_link_is_not_followed(server, session, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (server.pages / "linked.org").symlink_to(outside)
    try:
        refused(session, "MKD linked.org", "550")
        target = send_both(session, make_bundle(tmp_path, "linked.org"))
        session.sendcmd(f"RNFR {target}.part")
        refused(session, f"RNTO {target}", "550")
        assert list(outside.iterdir()) == []
    finally:
        (server.pages / "linked.org").unlink()


def test_text_mode_is_refused_because_it_alters_bundles(session):
    session.sendcmd("TYPE A")
    assert "TYPE I" in refused(session, f"STOR /example.org/{NAME}.part", "550")


def test_a_name_is_only_changed_by_taking_the_ending_away(session, tmp_path):
    bundle = make_bundle(tmp_path, "renamed.org")
    target = send_both(session, bundle)
    refused(session, f"RNTO {target}", "503")
    refused(session, f"RNFR {target}", "550")
    refused(session, f"RNFR {target}.manifest.part", "550")
    refused(session, "RNFR /", "550")
    for other in ("/renamed.org/renamed.org.1700000000.2.tar.bz2", f"{target}.part", "/x", "x", f"/x.org{target}"):
        session.sendcmd(f"RNFR {target}.part")
        refused(session, f"RNTO {other}", "553")
    assert session.rename(f"{target}.part", target).startswith("250")


@pytest.mark.parametrize("how", ["cut", "altered", "longer", "empty", "manifest cut", "manifest of another"])
def test_what_arrives_broken_goes_to_the_quarantine_and_can_be_sent_again(server, session, tmp_path, how):
    domain = f"{how.replace(' ', '-')}.org"
    bundle = make_bundle(tmp_path, domain)
    content, manifest = bundle.read_bytes(), manifest_path(bundle).read_bytes()
    broken = {
        "cut": (content[:-1], manifest),
        "altered": (content[:50] + bytes([content[50] ^ 1]) + content[51:], manifest),
        "longer": (content + b"x", manifest),
        "empty": (b"", manifest),
        "manifest cut": (content, manifest[:-5]),
        "manifest of another": (content, manifest_path(make_bundle(tmp_path, domain, "2")).read_bytes()),
    }[how]
    target = send_both(session, bundle, *broken)
    session.sendcmd(f"RNFR {target}.part")
    assert "Send it again" in refused(session, f"RNTO {target}", "451")
    assert bundle.name not in stored_bundles(server.pages)
    kept = [path for path in (server.pages / ".quarantine").iterdir() if domain in path.name]
    assert sorted(path.read_bytes() for path in kept) == sorted(broken)
    target = send_both(session, bundle)
    assert session.rename(f"{target}.part", target).startswith("250")
    assert stored_bundles(server.pages)[bundle.name] == content


def test_a_bundle_without_a_manifest_is_refused(session, server, tmp_path):
    bundle = make_bundle(tmp_path, "alone.org")
    send(session, f"/alone.org/{bundle.name}.part", bundle.read_bytes())
    session.sendcmd(f"RNFR /alone.org/{bundle.name}.part")
    assert "manifest" in refused(session, f"RNTO /alone.org/{bundle.name}", "550")
    assert bundle.name not in stored_bundles(server.pages)


def test_a_sound_manifest_of_a_different_bundle_is_refused_for_good(session, tmp_path):
    bundle = make_bundle(tmp_path, "claimed.org")
    other = make_bundle(tmp_path, "claimed.org", "2")
    target = send_both(session, bundle, other.read_bytes(), manifest_path(other).read_bytes())
    session.sendcmd(f"RNFR {target}.part")
    assert "not that of" in refused(session, f"RNTO {target}", "550")


def test_sending_a_stored_bundle_again_changes_nothing(server, session, tmp_path):
    bundle = make_bundle(tmp_path, "twice.org")
    for _ in range(2):
        target = send_both(session, bundle)
        assert session.rename(f"{target}.part", target).startswith("250")
    stored = server.pages / "twice.org" / bundle.name
    manifest_path(stored).unlink()  # then the file itself must do
    target = send_both(session, bundle)
    assert session.rename(f"{target}.part", target).startswith("250")
    assert stored.read_bytes() == bundle.read_bytes()
    manifest_path(stored).write_bytes(manifest_path(bundle).read_bytes())


def test_a_stored_bundle_is_never_overwritten(server, session, tmp_path):
    bundle = make_bundle(tmp_path / "a", "kept.org")
    target = send_both(session, bundle)
    session.rename(f"{target}.part", target)
    target = send_both(session, make_bundle(tmp_path / "b", "kept.org", pages=9))
    session.sendcmd(f"RNFR {target}.part")
    assert "different bundle" in refused(session, f"RNTO {target}", "550")
    assert stored_bundles(server.pages)[bundle.name] == bundle.read_bytes()


def test_what_another_session_sent_must_be_sent_again(server, session, tmp_path):
    bundle = make_bundle(tmp_path, "other.org")
    target = send_both(session, bundle)
    with log_in(server) as second:
        assert "send it again" in refused(second, f"RNFR {target}.part", "450")
    assert session.rename(f"{target}.part", target).startswith("250")


def test_two_sessions_that_send_the_same_bundle_do_not_disturb_each_other(server, tmp_path):
    bundle = make_bundle(tmp_path, "both.org", pages=1, padding=300_000)
    content = bundle.read_bytes()
    with log_in(server) as first, log_in(server) as second:
        send(first, f"/both.org/{bundle.name}.manifest.part", manifest_path(bundle).read_bytes())
        first.voidcmd("TYPE I")
        stalled = first.transfercmd(f"STOR /both.org/{bundle.name}.part")
        stalled.sendall(b"something else that would spoil the file")
        target = send_both(second, bundle)
        stalled.sendall(b"and more of it")
        assert second.rename(f"{target}.part", target).startswith("250")
        stalled.close()
        first.voidresp()
        first.sendcmd(f"RNFR {target}.part")
        refused(first, f"RNTO {target}", "451")
    assert stored_bundles(server.pages)[bundle.name] == content


def test_nothing_is_left_of_a_session_that_ends_in_between(server, tmp_path):
    bundle = make_bundle(tmp_path, "gone.org")
    with log_in(server) as session:
        send_both(session, bundle)
        assert len(list((server.pages / ".incoming").iterdir())) == 2
    with log_in(server) as session:
        session.voidcmd("TYPE I")
        data = session.transfercmd(f"STOR /gone.org/{bundle.name}.part")
        data.sendall(b"a beginning")
        session.sock.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(ConnectionResetError):
            assert data.recv(1) == b""  # the server has closed its end
        data.close()
        session.close()
    assert not (server.pages / "gone.org").exists()
    assert strangers_in(server.pages) == []


def test_a_session_cannot_pile_up_files(session, tmp_path):
    for number in range(16):
        send(session, f"/piled.org/piled.org.17.{number}.tar.bz2.part", b"x")
    session.voidcmd("TYPE I")
    refused(session, "STOR /piled.org/piled.org.17.99.tar.bz2.part", "452")
    send(session, "/piled.org/piled.org.17.3.tar.bz2.part", b"y")


def test_a_wrong_password_is_refused(server):
    with pytest.raises(ftplib.error_perm, match="530"):
        log_in(server, "wrong")


def test_nothing_can_be_done_without_logging_in(server):
    with ftplib.FTP(timeout=20) as session:
        session.connect("127.0.0.1", server.port)
        for command in ("PWD", "MKD example.org", "TYPE I", "PASV", f"STOR /example.org/{NAME}.part", "RNFR /"):
            refused(session, command, "530")


NOISE = b"\xff\xfe\x00" * 5000 + b"\r\n" + random.Random(1).randbytes(20_000) + b"\r\nQUIT\r\n"


def test_noise_before_the_login_is_cut_off(server, session):
    address = "127.0.0.1", server.port
    with socket.create_connection(address, timeout=20) as connection, contextlib.suppress(ConnectionError):
        connection.sendall(NOISE)
        while connection.recv(65536):
            pass
    assert session.sendcmd("NOOP").startswith("200")


def test_noise_on_the_control_connection_ends_nothing(server, session):
    with log_in(server) as other:
        other.sock.sendall(NOISE)
        while other.sock.recv(65536):
            pass
    assert session.sendcmd("NOOP").startswith("200")


def test_many_sessions_at_once(server, tmp_path):
    bundles = [make_bundle(tmp_path, f"many{number % 5}.org", str(number)) for number in range(60)]

    def send_all(part):
        with log_in(server) as session:
            for bundle in part:
                target = send_both(session, bundle)
                session.rename(f"{target}.part", target)

    threads = [threading.Thread(target=send_all, args=(bundles[number::6],)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stored = stored_bundles(server.pages)
    assert all(stored[bundle.name] == bundle.read_bytes() for bundle in bundles)
    assert strangers_in(server.pages) == []


def test_the_catalogue_has_what_is_stored_when_the_server_has_ended(tmp_path):
    with run_ftp_server(tmp_path / "work") as server:
        uploader = server.uploader()
        for number in range(10):
            uploader.upload(make_bundle(tmp_path, "example.org", str(number)))
        send_both(log_in(server), make_bundle(tmp_path, "never-renamed.org"))
    assert sorted(catalogued_bundles(server.pages)) == sorted(stored_bundles(server.pages))
    assert list((server.pages / ".incoming").iterdir()) == []

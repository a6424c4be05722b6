"""The contract of manual/ftp.md, command by command: what may come in which session, and what each reply means."""

import ftplib
import io
import threading

import pytest

from common.bundle import manifest_path
from common.secrets import FTP_USER, ftp_password
from server.ftpserver.waiting import WaitingManifests
from tests.bundles import make_bundle
from tests.ftp import TOKEN, catalogued_bundles, run_ftp_server, stored_bundles, strangers_in


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with run_ftp_server(tmp_path_factory.mktemp("ftp"), "--max-connections-per-address", "20") as running:
        yield running
        assert "Traceback" not in running.program.errors()


def log_in(server):
    session = ftplib.FTP(timeout=20)
    session.connect("127.0.0.1", server.port)
    session.login(FTP_USER, ftp_password(TOKEN))
    return session


def target_of(bundle):
    return f"/{bundle.name.split('.17')[0]}/{bundle.name}"


def send_manifest(server, bundle, content=None):
    with log_in(server) as session:
        content = manifest_path(bundle).read_bytes() if content is None else content
        session.storbinary(f"STOR {target_of(bundle)}.manifest.part", io.BytesIO(content))


def send_bundle(server, bundle, content=None):
    """The reply to the rename."""
    target = target_of(bundle)
    with log_in(server) as session:
        session.storbinary(f"STOR {target}.part", io.BytesIO(bundle.read_bytes() if content is None else content))
        session.sendcmd(f"RNFR {target}.part")
        try:
            return session.sendcmd(f"RNTO {target}")
        except (ftplib.error_perm, ftplib.error_temp) as error:
            return str(error)


def waiting_in(server):
    return sorted(path.name for path in (server.pages / ".manifests").iterdir())


def test_a_bundle_may_come_in_another_session_than_its_manifest(server, tmp_path):
    bundle = make_bundle(tmp_path, "apart.org")
    send_manifest(server, bundle)
    assert send_bundle(server, bundle) == "250 Stored."
    assert stored_bundles(server.pages)[bundle.name] == bundle.read_bytes()
    stored = manifest_path(server.pages / "apart.org" / bundle.name)
    assert stored.read_bytes() == manifest_path(bundle).read_bytes()
    assert stored.stat().st_nlink == 1
    assert waiting_in(server) == []


def test_both_sessions_may_be_open_at_once(server, tmp_path):
    bundle = make_bundle(tmp_path, "atonce.org")
    with log_in(server) as session:
        session.storbinary(f"STOR {target_of(bundle)}.manifest.part", manifest_path(bundle).open("rb"))
        assert send_bundle(server, bundle) == "250 Stored."
        assert session.sendcmd("NOOP").startswith("200")
    assert stored_bundles(server.pages)[bundle.name] == bundle.read_bytes()


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_manifest_waits_over_a_restart(tmp_path, how):
    bundle = make_bundle(tmp_path)
    with run_ftp_server(tmp_path) as server:
        send_manifest(server, bundle)
        getattr(server.program, how)()
    with run_ftp_server(tmp_path) as server:
        assert send_bundle(server, bundle) == "250 Stored."
    assert stored_bundles(server.pages) == {bundle.name: bundle.read_bytes()}
    assert catalogued_bundles(server.pages) == [bundle.name]
    assert strangers_in(server.pages) == []


def test_a_bundle_whose_answer_was_lost_needs_no_manifest_again(server, tmp_path):
    bundle = make_bundle(tmp_path, "lost.org")
    send_manifest(server, bundle)
    assert [send_bundle(server, bundle) for _ in range(3)] == ["250 Stored."] * 3
    assert send_bundle(server, bundle, bundle.read_bytes() + b"x").startswith("550")
    assert stored_bundles(server.pages)[bundle.name] == bundle.read_bytes()


@pytest.mark.parametrize("what", ["bundle", "manifest"])
def test_what_arrived_broken_is_sent_again_both_of_it(server, tmp_path, what):
    bundle = make_bundle(tmp_path, f"broken-{what}.org")
    broken = {what: b"broken"}
    send_manifest(server, bundle, broken.get("manifest"))
    assert send_bundle(server, bundle, broken.get("bundle")).startswith("451")
    assert waiting_in(server) == []
    assert send_bundle(server, bundle).startswith("550"), "its manifest lies in the quarantine"
    send_manifest(server, bundle)
    assert send_bundle(server, bundle) == "250 Stored."


def test_the_manifest_of_the_same_session_counts_more_than_one_that_waits(server, tmp_path):
    bundle = make_bundle(tmp_path, "own.org")
    with log_in(server) as session:
        session.storbinary(f"STOR {target_of(bundle)}.manifest.part", manifest_path(bundle).open("rb"))
        send_manifest(server, bundle, b"of somebody who sends nonsense")
        session.storbinary(f"STOR {target_of(bundle)}.part", bundle.open("rb"))
        assert session.rename(f"{target_of(bundle)}.part", target_of(bundle)) == "250 Stored."
    assert waiting_in(server) == []


def test_two_workers_at_the_same_bundles_in_pieces(server, tmp_path):
    """Each manifest and each bundle in a session of its own, all of them twice and at once."""
    bundles = [make_bundle(tmp_path, "two.org", str(number)) for number in range(12)]
    refused = []

    def work():
        for bundle in bundles:
            reply = ""
            for _ in range(20):  # 4xx and a missing manifest: the other one was just at it
                if reply.startswith("250"):
                    break
                send_manifest(server, bundle)
                reply = send_bundle(server, bundle)
            if not reply.startswith("250"):
                refused.append(reply)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert refused == []
    stored = stored_bundles(server.pages)
    assert all(stored[bundle.name] == bundle.read_bytes() for bundle in bundles)
    assert strangers_in(server.pages) == []


@pytest.mark.parametrize("name", ["/zz", "zz", "made.org", "/a.cz+8080"])
def test_a_folder_is_made_by_its_first_bundle_and_not_by_mkd(server, name):
    with log_in(server) as session:
        assert session.mkd(name) == f"/{name.removeprefix('/')}"
        session.cwd(name)
    assert not (server.pages / name.removeprefix("/")).exists()


def test_waiting_manifests_are_few_and_the_oldest_go_first(tmp_path):
    file = tmp_path / "received"
    file.write_bytes(bytes(400))
    waiting = WaitingManifests(tmp_path, max_files=3, max_bytes=1000)
    for number in range(5):
        waiting.keep(f"b{number}", file)
    assert [name for name in map(str, range(5)) if waiting.find(f"b{name}")] == ["3", "4"]
    again = WaitingManifests(tmp_path, max_files=3, max_bytes=1000)
    assert [name for name in map(str, range(5)) if again.find(f"b{name}")] == ["3", "4"]
    again.drop("b3")
    again.drop("b3")
    assert [path.name for path in (tmp_path / ".manifests").iterdir()] == ["b4.manifest"]


def test_only_what_arrived_whole_waits(server, tmp_path):
    """A manifest that is cut off because it is too long is nobody's."""
    with run_ftp_server(tmp_path, "--max-bundle-bytes", "1000000") as server, log_in(server) as session:
        session.voidcmd("TYPE I")
        data = session.transfercmd("STOR /a.org/a.org.17.1.tar.bz2.manifest.part")
        with pytest.raises(ConnectionError):
            data.sendall(bytes(50_000_000))
        with pytest.raises(ftplib.error_perm, match="552"):
            session.voidresp()
        assert waiting_in(server) == []

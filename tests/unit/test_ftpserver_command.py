"""ftpServer as a command: start, stop, limits, bad settings, TLS, kill -9, --rebuild-catalogue."""

import ftplib
import os
import random
import signal
import socket
import ssl
import subprocess
import sys
import threading

import pytest

from common.bundle import manifest_path
from common.errors import RemoteUnavailable
from common.secrets import FTP_USER, ftp_password, known_host_secret
from server.catalogue import Catalogue
from server.ftpserver import main
from tests.bundles import make_bundle
from tests.certificates import make_certificate
from tests.ftp import READY, TOKEN, catalogued_bundles, run_ftp_server, stored_bundles, strangers_in
from tests.processes import ROOT, running


def ftp_server(*options, folder=ROOT):
    """Run the command to its end, which is expected to come soon."""
    command = [sys.executable, "-m", "server.ftpserver.main", *map(str, options)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_says_where_it_listens_and_ends_cleanly(tmp_path, number):
    with run_ftp_server(tmp_path / "new" / "work") as server:
        assert server.port > 0
        assert server.program.match["directory"] == str(server.pages)
        with ftplib.FTP(timeout=20) as session:
            session.connect("127.0.0.1", server.port)
            assert server.program.stop(number) == 0
    assert server.program.output().count("\n") == 1
    assert "Traceback" not in server.program.errors()


def test_without_a_token_it_serves_this_machine_only_and_says_so(tmp_path):
    command = ["-m", "server.ftpserver.main", "--dir", tmp_path, "--ftp-port", "0"]
    with running(command, READY) as program:
        program.wait_for_errors("no token is set, so only this machine can connect")
        with ftplib.FTP(timeout=20) as session:
            session.connect("127.0.0.1", int(program.match["port"]))
            with pytest.raises(ftplib.error_perm, match="530"):
                session.login(FTP_USER, ftp_password(""))
            secret = known_host_secret(tmp_path / ".mem")
            assert session.login(FTP_USER, ftp_password(secret)).startswith("230")


@pytest.mark.parametrize("ip", ["0.0.0.0", "::", "10.0.0.1", "example.org", ""])
def test_an_address_that_others_can_reach_needs_a_token(tmp_path, ip):
    ended = ftp_server("--dir", tmp_path, "--ip", ip, "--ftp-port", "0")
    assert ended.returncode == 2
    assert "needs a token; set token, or ip = 127.0.0.1" in ended.stderr
    assert ended.stdout == ""


def test_it_listens_on_ipv6(tmp_path):
    with run_ftp_server(tmp_path, "--ip", "::1") as server, ftplib.FTP(timeout=20) as session:
        assert server.program.match["ip"] == "[::1]"
        session.connect("::1", server.port)
        session.login(FTP_USER, ftp_password(TOKEN))
        session.storbinary("STOR /a.org/a.org.17.1.tar.bz2.part", open(os.devnull, "rb"))  # noqa: PTH123, SIM115


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--ftp-port", "70000"], "expected a whole number from 0 to 65535"),
        (["--ip", "203.0.113.1", "--token", "t"], "cannot listen on 203.0.113.1"),
        (["--passive-ports", "5-x"], "expected two port numbers"),
        (["--passive-ports", "50-10"], "the lower one first"),
        (["--tls-cert", "missing.pem"], "missing.pem"),
        (["--config", "missing.cfg"], "cannot be read"),
    ],
)
def test_a_bad_setting_is_explained(tmp_path, options, words):
    ended = ftp_server("--dir", tmp_path, "--ftp-port", "0", *options)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert words in ended.stderr
    assert "Traceback" not in ended.stderr


def test_an_unknown_key_in_the_file_is_explained(tmp_path):
    (tmp_path / "config.cfg").write_text("[ftp_Server]\nip = 127.0.0.1\nftp_prot = 1\n")
    ended = ftp_server("--dir", tmp_path)
    assert ended.returncode == 2
    assert "line 3: unknown key 'ftp_prot'" in ended.stderr


def test_a_port_in_use_is_explained(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        ended = ftp_server("--dir", tmp_path, "--ftp-port", other.getsockname()[1])
    assert ended.returncode == 2
    assert "Address already in use" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_missing_certificate_is_named(tmp_path):
    ended = ftp_server("--dir", tmp_path, "--ftp-port", "0", "--tls-cert", "missing.pem")
    assert ended.returncode == 2
    assert ended.stderr.endswith(f"cannot be used: {tmp_path}/missing.pem: No such file or directory\n")


def test_a_directory_that_cannot_be_written_is_explained(tmp_path):
    (tmp_path / "Pages").write_text("a file")
    ended = ftp_server("--dir", tmp_path, "--ftp-port", "0")
    assert ended.returncode == 2
    assert "cannot be used" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_directory_belongs_to_one_server(tmp_path):
    with run_ftp_server(tmp_path):
        for options in (["--ftp-port", "0"], ["--rebuild-catalogue"]):
            ended = ftp_server("--dir", tmp_path, *options)
            assert ended.returncode == 2
            assert "in use by another ftpServer" in ended.stderr


def test_the_classic_file_is_enough(tmp_path):
    (tmp_path / "config.cfg").write_text("[ftp_Server]\nip = 127.0.0.1\nftp_port = 0\ndirectory = Harvest\n")
    with running(["-m", "server.ftpserver.main", "--dir", tmp_path], READY) as program:
        assert program.match["directory"] == str(tmp_path / "Harvest")
        assert program.stop() == 0


def test_sessions_are_limited_in_all_and_per_address(tmp_path):
    with run_ftp_server(tmp_path, "--max-connections", "3", "--max-connections-per-address", "2") as server:
        held = [_logged_in(server, "127.0.0.1") for _ in range(2)]
        with pytest.raises(ftplib.error_temp, match="421 Too many connections from your address"):
            _logged_in(server, "127.0.0.1")
        held.append(_logged_in(server, "127.0.0.2"))
        with pytest.raises(ftplib.error_temp, match="421 Too many connections,"):
            _logged_in(server, "127.0.0.3")
        with pytest.raises(RemoteUnavailable, match="421"):
            server.uploader().upload(make_bundle(tmp_path))
        # all three can work, and a place is free again when one has gone
        for session in held:
            session.storbinary("STOR /a.org/a.org.17.1.tar.bz2.part", open(os.devnull, "rb"))  # noqa: PTH123, SIM115
        held.pop(0).quit()
        held.append(_logged_in_at_last(server, "127.0.0.4"))
        for session in held:
            session.close()


def _logged_in(server, source):
    session = ftplib.FTP(timeout=20)
    session.connect("127.0.0.1", server.port, source_address=(source, 0))
    session.login(FTP_USER, ftp_password(TOKEN))
    return session


def _logged_in_at_last(server, source):
    """The server says goodbye a moment before it gives the place free."""
    for _ in range(1000):
        try:
            return _logged_in(server, source)
        except ftplib.error_temp:
            continue
    raise AssertionError("the place never became free")


def test_an_upload_that_is_too_long_is_cut_off_and_refused(tmp_path):
    with run_ftp_server(tmp_path, "--max-bundle-bytes", "1000000") as server, ftplib.FTP(timeout=20) as session:
        session.connect("127.0.0.1", server.port)
        session.login(FTP_USER, ftp_password(TOKEN))
        session.voidcmd("TYPE I")
        data = session.transfercmd("STOR /a.org/a.org.17.1.tar.bz2.part")
        with pytest.raises(ConnectionError):
            data.sendall(bytes(100_000_000))
        with pytest.raises(ftplib.error_perm, match="552 longer than 1000000 bytes"):
            session.voidresp()
        assert sum(path.stat().st_size for path in (server.pages / ".incoming").iterdir()) <= 1_000_000
        assert session.sendcmd("NOOP").startswith("200")


def test_data_connections_stay_within_the_given_ports(tmp_path):
    with run_ftp_server(tmp_path, "--passive-ports", "42100-42120") as server, ftplib.FTP(timeout=20) as session:
        session.connect("127.0.0.1", server.port)
        session.login(FTP_USER, ftp_password(TOKEN))
        for _ in range(5):
            assert 42100 <= session.makepasv()[1] <= 42120


def test_tls_is_required_when_there_is_a_certificate(tmp_path):
    certificate, key = make_certificate(tmp_path)
    with run_ftp_server(tmp_path, "--tls-cert", str(certificate), "--tls-key", str(key)) as server:
        with ftplib.FTP(timeout=20) as session:
            session.connect("127.0.0.1", server.port)
            with pytest.raises(ftplib.error_perm, match="SSL/TLS required on the control channel"):
                session.login(FTP_USER, ftp_password(TOKEN))
        context = ssl.create_default_context(cafile=certificate)
        with ftplib.FTP_TLS(context=context, timeout=20) as session:
            session.connect("127.0.0.1", server.port)
            session.login(FTP_USER, ftp_password(TOKEN))
            with pytest.raises(ftplib.error_perm, match="SSL/TLS required on the data channel"):
                session.makepasv()
            assert "AUTH TLS" in session.sendcmd("FEAT")


def test_a_key_that_does_not_belong_to_the_certificate_is_explained(tmp_path):
    certificate, _ = make_certificate(tmp_path, "one")
    _, key = make_certificate(tmp_path, "two")
    ended = ftp_server("--dir", tmp_path, "--ftp-port", "0", "--tls-cert", certificate, "--tls-key", key)
    assert ended.returncode == 2
    assert "key values mismatch" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_rebuilding_the_catalogue_reports_what_is_broken(tmp_path):
    pages = tmp_path / "Pages"
    good, bad = (make_bundle(pages / "example.org", job=str(number)) for number in (1, 2))
    ended = ftp_server("--dir", tmp_path, "--rebuild-catalogue")
    assert (ended.returncode, ended.stdout) == (0, "2 bundles, 6 pages, 3 URLs, 0 broken\n")
    bad.write_bytes(bad.read_bytes()[:-1])
    ended = ftp_server("--dir", tmp_path, "--rebuild-catalogue")
    assert ended.returncode == 1
    assert f"broken: example.org/{bad.name}: " in ended.stdout
    assert "1 bundles, 3 pages, 3 URLs, 1 broken" in ended.stdout
    assert catalogued_bundles(pages) == [good.name]
    assert bad.exists()


def test_an_interrupted_rebuild_ends_quietly_and_changes_nothing(tmp_path, monkeypatch, capsys):
    bundle = make_bundle(tmp_path / "Pages" / "example.org")
    options = ["--rebuild-catalogue", "--dir", str(tmp_path)]
    assert main.main(options) == 0
    capsys.readouterr()
    make_bundle(tmp_path / "Pages" / "example.org", job="2")

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Catalogue, "counts", interrupted)
    monkeypatch.setattr("server.catalogue.catalogue.page_rows", interrupted)
    assert main.main(options) == 130
    assert capsys.readouterr() == ("", "")
    assert catalogued_bundles(tmp_path / "Pages") == [bundle.name]


def test_what_a_crash_left_behind_is_put_right_at_the_start(tmp_path):
    pages = tmp_path / "Pages"
    stored = make_bundle(pages / "example.org")  # renamed, but not yet catalogued
    orphan = make_bundle(tmp_path, "example.org", "2")  # its manifest was renamed, the bundle not yet
    manifest_path(orphan).rename(manifest_path(pages / "example.org" / orphan.name))
    (pages / ".incoming").mkdir()
    (pages / ".incoming" / "0.part").write_bytes(b"half a bundle")
    manifest_path(make_bundle(tmp_path, "example.org", "2", padding=1)).touch()
    with run_ftp_server(tmp_path) as server:
        assert list((pages / ".incoming").iterdir()) == []
        uploader = server.uploader()
        uploader.upload(make_bundle(tmp_path / "again", "example.org", "2"))
        uploader.close()
    assert sorted(catalogued_bundles(pages)) == sorted([stored.name, orphan.name])
    assert strangers_in(pages) == []


def test_killing_the_server_loses_nothing_and_stores_nothing_twice(tmp_path):
    chance = random.Random(7)
    bundles = [
        make_bundle(tmp_path / "spool", f"h{number % 3}.org", str(number), padding=chance.choice([0, 20_000]))
        for number in range(500)
    ]
    waiting = list(bundles)
    for _ in range(12):
        with run_ftp_server(tmp_path) as server:
            killer = threading.Timer(chance.uniform(0, 0.15), server.program.process.kill)
            killer.start()
            _upload_until_killed(server, waiting)
            killer.join()
            server.program.kill()
            _check_what_is_there(server.pages, bundles)
    assert waiting  # so each kill came in the middle of the work
    with run_ftp_server(tmp_path) as server:
        _upload_until_killed(server, waiting)
        assert waiting == []
    stored = stored_bundles(server.pages)
    assert stored == {bundle.name: bundle.read_bytes() for bundle in bundles}
    assert sorted(catalogued_bundles(server.pages)) == sorted(stored)
    assert strangers_in(server.pages) == []


def _upload_until_killed(server, waiting):
    uploader = server.uploader()
    try:
        while waiting:
            uploader.upload(waiting[0])
            waiting.pop(0)
    except RemoteUnavailable:
        uploader.close()


def _check_what_is_there(pages, bundles):
    """At no moment is there an incomplete bundle under a final name."""
    content = {bundle.name: bundle for bundle in bundles}
    for name, stored in stored_bundles(pages).items():
        assert stored == content[name].read_bytes()

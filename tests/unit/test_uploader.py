"""The client's uploader against the real ftpServer, and against servers that misbehave."""

import ftplib
import io
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress

import pytest

from client import uploader as uploader_module
from client.uploader import Uploader
from common.bundle import manifest_path
from common.errors import BundleError, ConfigError, RemoteRefused, RemoteUnavailable
from common.secrets import FTP_USER, ftp_password
from tests.bundles import make_bundle
from tests.certificates import make_certificate
from tests.ftp import TOKEN, run_ftp_server, stored_bundles, strangers_in
from tests.processes import ROOT


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with run_ftp_server(tmp_path_factory.mktemp("ftp"), "--max-bundle-bytes", "1000000") as running:
        yield running


@pytest.fixture
def uploader(server):
    uploader = server.uploader()
    yield uploader
    uploader.close()


@pytest.mark.parametrize("container", ["tar.bz2", "tar.zst"])
def test_a_bundle_arrives(server, uploader, tmp_path, container):
    bundle = make_bundle(tmp_path, "arrives.org", container=container)
    uploader.upload(bundle)
    assert stored_bundles(server.pages)[bundle.name] == bundle.read_bytes()
    assert bundle.exists()  # removing it is not the uploader's business


def test_one_connection_serves_many_bundles(server, uploader, tmp_path):
    for number in range(5):
        uploader.upload(make_bundle(tmp_path, f"h{number}.example", str(number)))
    assert {f"h{number}.example" for number in range(5)} <= {path.name for path in server.pages.iterdir()}


def test_sending_again_is_no_error(server, uploader, tmp_path):
    bundle = make_bundle(tmp_path, "again.org")
    uploader.upload(bundle)
    uploader.upload(bundle)
    stored = server.pages / "again.org"
    assert sorted(path.name for path in stored.iterdir()) == [bundle.name, f"{bundle.name}.manifest"]


def test_it_connects_again_when_the_server_was_away(tmp_path):
    first, second, third = (make_bundle(tmp_path, job=str(number)) for number in range(3))
    with run_ftp_server(tmp_path / "work") as server:
        uploader = server.uploader()
        uploader.upload(first)
    with pytest.raises(RemoteUnavailable, match="cannot be reached"):
        uploader.upload(second)
    with run_ftp_server(tmp_path / "work", port=server.port) as server:
        uploader.upload(second)
        uploader.close()
        uploader.close()
        uploader.upload(third)
        uploader.close()
    assert len(stored_bundles(server.pages)) == 3


def test_a_wrong_password_says_nothing_against_the_bundle(server, tmp_path):
    uploader = Uploader("127.0.0.1", server.port, FTP_USER, "wrong")
    with pytest.raises(RemoteUnavailable, match="does not let us in: 530 Wrong user or password"):
        uploader.upload(make_bundle(tmp_path))


def test_a_bundle_that_the_server_does_not_want_is_refused(uploader, tmp_path):
    uploader.upload(make_bundle(tmp_path / "a", "refused.org"))
    with pytest.raises(RemoteRefused, match="550 a different bundle of this name"):
        uploader.upload(make_bundle(tmp_path / "b", "refused.org", pages=7))
    uploader.upload(make_bundle(tmp_path, "wanted.org"))


def test_a_bundle_that_is_too_long_is_refused(server, uploader, tmp_path):
    with pytest.raises(RemoteRefused, match="552 longer than 1000000 bytes"):
        uploader.upload(make_bundle(tmp_path, "long.org", pages=3, padding=8_000_000))
    assert strangers_in(server.pages) == []
    uploader.upload(make_bundle(tmp_path, "short.org"))


def test_a_bundle_that_is_damaged_here_is_told_apart_from_one_that_arrives_broken(server, uploader, tmp_path):
    bundle = make_bundle(tmp_path, "damaged.org")
    content = bundle.read_bytes()
    bundle.write_bytes(content[:-1])
    with pytest.raises(BundleError, match="changed on this machine"):
        uploader.upload(bundle)
    assert bundle.name not in stored_bundles(server.pages)
    bundle.write_bytes(content)
    uploader.upload(bundle)


@pytest.mark.parametrize("alter", [lambda data: data[:-1], lambda data: data[:9] + b"?" + data[10:]])
def test_a_bundle_that_arrives_broken_can_be_sent_again(server, uploader, tmp_path, monkeypatch, alter):
    bundle = make_bundle(tmp_path, "broken.org", str(len(alter(bytes(20)))))
    with monkeypatch.context() as patch:
        patch.setattr(ftplib.FTP, "storbinary", _altered_on_the_way(alter))
        with pytest.raises(RemoteUnavailable, match="451 Send it again"):
            uploader.upload(bundle)
    assert bundle.name not in stored_bundles(server.pages)
    uploader.upload(bundle)
    assert stored_bundles(server.pages)[bundle.name] == bundle.read_bytes()


def _altered_on_the_way(alter):
    send = ftplib.FTP.storbinary

    def storbinary(self, command, file, blocksize, callback):
        data = file.read()
        if callback is None:  # the manifest
            return send(self, command, io.BytesIO(data))
        callback(data)
        return send(self, command, io.BytesIO(alter(data)))

    return storbinary


def test_files_that_are_missing_or_no_bundles_are_errors_of_the_bundle(uploader, tmp_path):
    bundle = make_bundle(tmp_path, "missing.org")
    manifest = manifest_path(bundle).read_bytes()
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "notes.txt.manifest").write_bytes(manifest)
    with pytest.raises(BundleError, match="not the name of a bundle"):
        uploader.upload(tmp_path / "notes.txt")
    bundle.unlink()
    with pytest.raises(BundleError, match="cannot be read"):
        uploader.upload(bundle)
    manifest_path(bundle).unlink()
    with pytest.raises(BundleError, match="manifest cannot be read"):
        uploader.upload(bundle)


def test_tls(tmp_path):
    certificate, key = make_certificate(tmp_path)
    with run_ftp_server(tmp_path, "--tls-cert", str(certificate), "--tls-key", str(key)) as server:
        uploader = server.uploader(tls=True, tls_ca=str(certificate))
        bundles = [make_bundle(tmp_path, job=str(number), padding=200_000 * number) for number in range(4)]
        for bundle in bundles:
            uploader.upload(bundle)
        uploader.close()
        with pytest.raises(RemoteUnavailable, match="not trusted: self-signed certificate"):
            server.uploader(tls=True).upload(bundles[0])
        with pytest.raises(RemoteUnavailable, match="SSL/TLS required"):
            server.uploader().upload(bundles[0])
        assert stored_bundles(server.pages) == {bundle.name: bundle.read_bytes() for bundle in bundles}
        assert "Traceback" not in server.program.errors()


def test_a_bundle_that_is_too_long_is_refused_over_tls_too(tmp_path):
    certificate, key = make_certificate(tmp_path)
    options = ["--tls-cert", str(certificate), "--tls-key", str(key), "--max-bundle-bytes", "1000000"]
    with run_ftp_server(tmp_path, *options) as server:
        uploader = server.uploader(tls=True, tls_ca=str(certificate))
        with pytest.raises(RemoteRefused, match="552 longer"):
            uploader.upload(make_bundle(tmp_path, "long.org", pages=3, padding=8_000_000))
        uploader.upload(make_bundle(tmp_path, "short.org"))
        uploader.close()


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_a_file_of_certificates_that_is_none_is_a_bad_setting(tmp_path, content):
    if content:
        (tmp_path / "ca.pem").write_text(content)
    with pytest.raises(ConfigError, match=r"tls_ca = .*ca\.pem cannot be used"):
        Uploader("127.0.0.1", 1, "user", "password", tls=True, tls_ca=str(tmp_path / "ca.pem"))


@contextmanager
def answering(*replies, hold=False):
    """A server that answers each line with the next of `replies`, then hangs up, or holds the connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve():
            connection, _ = listener.accept()
            with suppress(ConnectionError), connection, connection.makefile("rb") as lines:
                for reply in replies:
                    connection.sendall(reply)
                    if not lines.readline():
                        return
                while hold and lines.readline():
                    pass

        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1]
        thread.join()


@pytest.mark.parametrize(
    ("replies", "expected", "words"),
    [
        ([], RemoteUnavailable, "cannot be reached"),
        ([b"220 x\r\n"], RemoteUnavailable, "cannot be reached"),
        ([b"421 full\r\n"], RemoteUnavailable, "421 full"),
        ([b"HTTP/1.1 400 Bad Request\r\n"], RemoteUnavailable, "cannot be reached: HTTP"),
        ([b"\xff\xff\xff\r\n"], RemoteUnavailable, "cannot be reached"),
        ([b"x" * 100_000 + b"\r\n"], RemoteUnavailable, "cannot be reached"),
        ([b"220 x\r\n", b"331 x\r\n", b"530 no\r\n"], RemoteUnavailable, "530 no"),
        ([b"220 x\r\n", b"230 x\r\n", b"200 x\r\n", b"450 later\r\n"], RemoteUnavailable, "450 later"),
        (
            [
                b"220 x\r\n", b"230 x\r\n", b"500 x\r\n", b'257 "/"\r\n', b"200 x\r\n", b"550 x\r\n", b"200 x\r\n",
                b"227 nonsense\r\n",
            ],
            RemoteUnavailable, "227 nonsense",
        ),
    ],
)  # fmt: skip
def test_whatever_a_server_answers_becomes_one_of_two_errors(tmp_path, replies, expected, words):
    with answering(*replies) as port:
        uploader = Uploader("127.0.0.1", port, "user", "password")
        with pytest.raises(expected, match=words):
            uploader.upload(make_bundle(tmp_path))
        uploader.close()


def test_a_server_that_hangs_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(uploader_module, "TIMEOUT_SECONDS", 0.2)
    with answering(b"220 x\r\n", hold=True) as port:
        uploader = Uploader("127.0.0.1", port, "user", "password")
        with pytest.raises(RemoteUnavailable, match="timed out"):
            uploader.upload(make_bundle(tmp_path))


def test_nobody_listens(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(RemoteUnavailable, match="refused"):
        Uploader("127.0.0.1", port, "user", ftp_password(TOKEN)).upload(make_bundle(tmp_path))


def test_the_client_does_not_load_the_server():
    program = "import sys, client.uploader; print({'pyftpdlib', 'server'} & {m.split('.')[0] for m in sys.modules})"
    ended = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ended.stdout == "set()\n"

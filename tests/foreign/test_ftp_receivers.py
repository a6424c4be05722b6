"""The client's uploader against FTP servers that only store: vsftpd and proftpd, real ones."""

import ftplib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from common.bundle import manifest_path
from common.errors import BundleError, RemoteRefused, RemoteUnavailable
from tests.bundles import make_bundle
from tests.foreign_ftp import KINDS, foreign_server
from tests.ftp import stored_bundles, strangers_in


@pytest.fixture(scope="module", params=KINDS)
def foreign(request):
    with foreign_server(request.param) as running:
        yield running


@pytest.fixture
def server(foreign):
    return foreign.server


@pytest.fixture
def uploader(server):
    uploader = server.uploader()
    yield uploader
    uploader.close()


def assert_stored(pages, *bundles):
    """Bundle and manifest stand complete under their final names, and nothing beside them."""
    stored = stored_bundles(pages)
    for bundle in bundles:
        assert stored[bundle.name] == bundle.read_bytes()
        domain = bundle.name.partition(".17")[0]
        beside = manifest_path(pages / domain / bundle.name)
        assert beside.read_bytes() == manifest_path(bundle).read_bytes()
    assert strangers_in(pages) == []


def test_bundles_arrive_with_their_manifests_in_folders_of_their_domains(server, uploader, tmp_path):
    bundles = [make_bundle(tmp_path, f"a{number % 2}.org", str(number), padding=100_000) for number in range(4)]
    for bundle in bundles:
        uploader.upload(bundle)
    assert_stored(server.pages, *bundles)


def test_an_upload_whose_answer_was_lost_is_done_again_and_changes_nothing(server, uploader, tmp_path):
    bundle = make_bundle(tmp_path, "lost.org")
    uploader.upload(bundle)
    before = {path: path.stat() for path in (server.pages / "lost.org").iterdir()}
    again = server.uploader()
    again.upload(bundle)
    again.close()
    assert {path: path.stat() for path in (server.pages / "lost.org").iterdir()} == before


@pytest.mark.parametrize("step", range(1, 12))
def test_a_connection_that_breaks_at_any_step_leaves_nothing_wrong(server, tmp_path, monkeypatch, step):
    """The server has done what it was told, and its answer is lost."""
    bundle = make_bundle(tmp_path, f"step{step}.org", padding=1000)
    steps = 0
    answer = ftplib.FTP.getresp

    def lossy(connection):
        nonlocal steps
        text = answer(connection)
        if connection.sock is not None and not text.startswith("220"):
            steps += 1
        if steps == step + 5:  # the first five are those of the login
            steps += 1
            raise EOFError
        return text

    uploader = server.uploader()
    with monkeypatch.context() as patch:
        patch.setattr(ftplib.FTP, "getresp", lossy)
        with pytest.raises(RemoteUnavailable):
            uploader.upload(bundle)
    uploader.upload(bundle)
    uploader.close()
    assert_stored(server.pages, bundle)


def test_a_part_of_an_earlier_attempt_is_in_nobodys_way(server, uploader, tmp_path):
    bundle = make_bundle(tmp_path, "part.org")
    with ftplib.FTP() as session:
        session.connect("127.0.0.1", server.port)
        session.login(server.user, server.password)
        session.mkd("part.org")
        for name in (bundle.name, manifest_path(bundle).name):
            with Path(os.devnull).open("rb") as nothing:
                session.storbinary(f"STOR part.org/{name}.part", nothing)
    uploader.upload(bundle)
    assert_stored(server.pages, bundle)


def test_a_different_bundle_of_the_same_name_is_refused_and_not_overwritten(server, uploader, tmp_path):
    first = make_bundle(tmp_path / "a", "same.org")
    uploader.upload(first)
    with pytest.raises(RemoteRefused, match=r"a different same\.org"):
        uploader.upload(make_bundle(tmp_path / "b", "same.org", pages=9))
    assert_stored(server.pages, first)


def test_a_bundle_that_is_damaged_here_gets_no_final_name(server, uploader, tmp_path):
    bundle = make_bundle(tmp_path, "damaged.org")
    content = bundle.read_bytes()
    bundle.write_bytes(content[:-1])
    with pytest.raises(BundleError, match="changed on this machine"):
        uploader.upload(bundle)
    assert bundle.name not in stored_bundles(server.pages)
    bundle.write_bytes(content)
    uploader.upload(bundle)
    assert_stored(server.pages, bundle)


def test_what_the_server_may_not_write_is_a_reason_to_wait(server, uploader, tmp_path):
    """It says nothing about the bundle: when its operator has mended it, the bundle is wanted."""
    bundle = make_bundle(tmp_path, "locked.org")
    folder = server.pages / "locked.org"
    folder.mkdir()
    with pytest.raises(RemoteUnavailable, match=r"which only stores, does not take it: 55[03]"):
        uploader.upload(bundle)
    folder.rmdir()
    uploader.upload(bundle)
    assert_stored(server.pages, bundle)


def test_a_server_that_starts_again_in_between_gets_the_rest(foreign, uploader, tmp_path):
    bundles = [make_bundle(tmp_path, "restart.org", str(number)) for number in range(2)]
    uploader.upload(bundles[0])
    foreign.stop()
    with pytest.raises(RemoteUnavailable, match="cannot be reached"):
        uploader.upload(bundles[1])
    foreign.start()
    uploader.upload(bundles[1])
    assert_stored(foreign.pages, *bundles)


@pytest.fixture
def small_disk(foreign):
    """A domain's folder on a disk of its own that holds 64 KB."""
    folder = foreign.pages / "full.org"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k,mode=777", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        folder.rmdir()
        pytest.skip("this machine does not permit to mount a small disk")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)
    shutil.rmtree(folder)


def test_a_full_disk_there_is_a_reason_to_wait(uploader, small_disk, tmp_path):
    bundle = make_bundle(tmp_path, "full.org", padding=200_000)
    for _ in range(2):
        with pytest.raises(RemoteUnavailable):
            uploader.upload(bundle)
    assert not (small_disk / bundle.name).exists()
    subprocess.run(["mount", "-o", "remount,size=16m", str(small_disk)], check=True)
    uploader.upload(bundle)
    assert (small_disk / bundle.name).read_bytes() == bundle.read_bytes()


def test_tls(tmp_path):
    """vsftpd takes no data connection that does not go on with the session of the control connection."""
    with foreign_server("vsftpd", tls=True) as foreign:
        bundles = [make_bundle(tmp_path, job=str(number), padding=300_000) for number in range(3)]
        with pytest.raises(RemoteUnavailable, match="does not let us in"):
            foreign.server.uploader().upload(bundles[0])
        uploader = foreign.server.uploader(tls=True, tls_ca=str(foreign.certificate))
        for bundle in bundles:
            uploader.upload(bundle)
        uploader.close()
        assert_stored(foreign.pages, *bundles)

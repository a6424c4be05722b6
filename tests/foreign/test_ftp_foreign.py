"""Foreign FTP clients, curl and lftp: they can hand in bundles as the manual says, and nothing else."""

import shutil
import subprocess

import pytest

from common.bundle import manifest_path
from common.secrets import FTP_USER, ftp_password
from tests.bundles import make_bundle
from tests.certificates import make_certificate
from tests.ftp import TOKEN, catalogued_bundles, run_ftp_server, stored_bundles, strangers_in

needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
needs_lftp = pytest.mark.skipif(shutil.which("lftp") is None, reason="lftp is not installed")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ftp")
    with run_ftp_server(folder) as running:
        uploader = running.uploader()
        uploader.upload(make_bundle(folder, "there.org"))
        uploader.close()
        yield running
        assert "Traceback" not in running.program.errors()


@pytest.fixture
def unchanged(server):
    """Whatever the test does, what is stored stays as it is."""
    before = {path: path.read_bytes() for path in server.pages.glob("there.org/*")}
    yield server
    assert {path: path.read_bytes() for path in server.pages.glob("there.org/*")} == before
    assert strangers_in(server.pages) == []


def curl(*arguments):
    command = ["curl", "--silent", "--show-error", "--max-time", "30", "--disable", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def curl_hand_in(url, bundle, *options):
    """The contract as curl says it: two uploads and a rename over one connection."""
    domain = bundle.name.split(".17")[0]
    base = f"{url}/{domain}/{bundle.name}"
    return curl(
        *options, "-T", manifest_path(bundle), f"{base}.manifest.part", "--next", "--silent", "--show-error", *options,
        "-T", bundle, "-Q", f"-RNFR {bundle.name}.part", "-Q", f"-RNTO {bundle.name}", f"{base}.part",
    )  # fmt: skip


def lftp(server, *commands):
    settings = (
        "set net:max-retries 1; set net:reconnect-interval-base 1; set net:timeout 10; set cmd:fail-exit yes;"
        " set ftp:ssl-allow no"
    )
    opening = f"open -u {FTP_USER},{ftp_password(TOKEN)} -p {server.port} 127.0.0.1"
    script = "; ".join([settings, opening, *commands])
    command = ["lftp", "--norc", "-c", script]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)


@needs_curl
def test_curl_hands_in_a_bundle(server, tmp_path):
    bundle = make_bundle(tmp_path, "curl.org", padding=100_000)
    ended = curl_hand_in(server.url, bundle)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert stored_bundles(server.pages)[bundle.name] == bundle.read_bytes()
    assert curl_hand_in(server.url, bundle).returncode == 0


@needs_curl
def test_curl_hands_in_a_bundle_in_two_calls(server, tmp_path):
    """As the manual shows it: the bundle comes in another session than its manifest."""
    bundle = make_bundle(tmp_path, "curl-twice.org")
    base = f"{server.url}/curl-twice.org/{bundle.name}"
    assert curl("-T", manifest_path(bundle), f"{base}.manifest.part").returncode == 0
    renaming = ("-Q", f"-RNFR {bundle.name}.part", "-Q", f"-RNTO {bundle.name}")
    ended = curl("-T", bundle, *renaming, f"{base}.part")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert stored_bundles(server.pages)[bundle.name] == bundle.read_bytes()


@needs_curl
def test_curl_learns_that_a_bundle_arrived_broken(server, tmp_path):
    bundle = make_bundle(tmp_path, "curl-broken.org")
    content = bundle.read_bytes()
    bundle.write_bytes(content[:-1])
    ended = curl_hand_in(server.url, bundle)
    assert ended.returncode == 21
    assert f"not accepted: RNTO {bundle.name}" in ended.stderr
    assert bundle.name not in stored_bundles(server.pages)
    bundle.write_bytes(content)
    assert curl_hand_in(server.url, bundle).returncode == 0
    assert stored_bundles(server.pages)[bundle.name] == content


@needs_curl
def test_curl_hands_in_a_bundle_over_tls(tmp_path):
    certificate, key = make_certificate(tmp_path)
    with run_ftp_server(tmp_path, "--tls-cert", str(certificate), "--tls-key", str(key)) as server:
        bundles = [make_bundle(tmp_path, job=str(number), padding=100_000) for number in range(8)]
        assert curl_hand_in(server.url, bundles[0]).returncode == 67  # login denied: no TLS
        assert curl_hand_in(server.url, bundles[0], "--ssl-reqd").returncode == 60  # not trusted
        for bundle in bundles:  # many: what TLS 1.3 does to uploads does not happen each time
            ended = curl_hand_in(server.url, bundle, "--ssl-reqd", "--cacert", certificate)
            assert (ended.returncode, ended.stderr) == (0, "")
        assert stored_bundles(server.pages) == {bundle.name: bundle.read_bytes() for bundle in bundles}
    assert catalogued_bundles(server.pages) == [bundle.name for bundle in bundles]


@needs_curl
@pytest.mark.parametrize(
    "arguments",
    [
        ["{url}/"],
        ["{url}/there.org/"],
        ["{url}/there.org/{name}"],
        ["--list-only", "{url}/"],
        ["-C", "10", "{url}/there.org/{name}"],
        ["-Q", "DELE there.org/{name}", "{url}/"],
        ["-Q", "RMD there.org", "{url}/"],
        ["-Q", "RNFR there.org/{name}", "-Q", "RNTO there.org/{name}.part", "{url}/"],
        ["-Q", "SITE CHMOD 777 there.org", "{url}/"],
        ["-Q", "MKD .hidden", "{url}/"],
        ["-Q", "CWD ../..", "-Q", "MKD etc/x", "{url}/"],
        ["-T", "{file}", "{url}/notes.txt"],
        ["-T", "{file}", "{url}/there.org/{name}"],
        ["-T", "{file}", "--path-as-is", "{url}/../../tmp/{name}.part"],
        ["-T", "{file}", "--ftp-create-dirs", "{url}/there.org/deeper/{name}.part"],
        ["--append", "-T", "{file}", "{url}/there.org/{name}.part"],
        ["--ftp-port", "-", "-T", "{file}", "{url}/there.org/{name}.part"],
        ["--use-ascii", "-T", "{file}", "{url}/there.org/{name}.part"],
    ],
)
def test_curl_can_do_nothing_else(unchanged, tmp_path, arguments):
    file = tmp_path / "file"
    file.write_bytes(b"something")
    values = {"url": unchanged.url, "file": file, "name": "there.org.1700000000.1.tar.bz2"}
    ended = curl(*(argument.format(**values) for argument in arguments))
    assert ended.returncode not in (0, 28), ended  # 28: no answer in time
    assert ended.stdout == ""
    assert sorted(path.name for path in unchanged.pages.iterdir() if path.name.startswith(("etc", ".hidden"))) == []


@needs_curl
def test_curl_learns_nothing_about_a_file(unchanged):
    names = "there.org.1700000000.1.tar.bz2", "there.org.1700000000.2.tar.bz2"
    known, unknown = (curl("--head", f"{unchanged.url}/there.org/{name}") for name in names)
    assert (known.returncode, known.stdout) == (unknown.returncode, unknown.stdout) == (0, "")


@needs_lftp
def test_lftp_hands_in_bundles(server, tmp_path):
    bundles = [make_bundle(tmp_path, "lftp.org", str(number), padding=50_000) for number in range(3)]
    commands = ["mkdir lftp.org", "cd lftp.org"]
    for bundle in bundles:
        commands += [
            f"put {manifest_path(bundle)} -o {bundle.name}.manifest.part",
            f"put {bundle} -o {bundle.name}.part",
            f"mv {bundle.name}.part {bundle.name}",
        ]
    ended = lftp(server, *commands)
    assert ended.returncode == 0, ended
    stored = stored_bundles(server.pages)
    assert all(stored[bundle.name] == bundle.read_bytes() for bundle in bundles)


@needs_lftp
@pytest.mark.parametrize(
    "command",
    [
        "get there.org/{name} -o /dev/null",
        "ls",
        "ls there.org",
        "nlist",
        "rm there.org/{name}",
        "rmdir there.org",
        "rm -r there.org",
        "mkdir Odd",
        "mkdir there.org/deeper",
        "mkdir ../../odd",
        "cd .quarantine",
        "put {file} -o notes.txt",
        "put {file} -o there.org/{name}",
        "mv there.org/{name} there.org/other",
        "chmod 777 there.org",
        "du",
        "mirror there.org {folder}/copy",
    ],
)
def test_lftp_can_do_nothing_else(unchanged, tmp_path, command):
    file = tmp_path / "file"
    file.write_bytes(b"something")
    name = "there.org.1700000000.1.tar.bz2"
    ended = lftp(unchanged, command.format(name=name, file=file, folder=tmp_path))
    assert ended.returncode != 0, ended
    assert name not in ended.stdout
    assert not list(tmp_path.glob("copy/*"))
    assert {path.name for path in unchanged.pages.iterdir()}.isdisjoint({"Odd", "odd"})

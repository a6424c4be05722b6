"""Other users of the machine, who see the list of processes and may write where everybody may."""

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from client.filtering.filters import check
from common.config import load
from common.errors import ConfigError
from common.files import private_folder
from onehost.parts import held_port
from server.urlserver import peers
from tests.certificates import make_certificate
from tests.integration.onecommand import Crawls
from tests.processes import ROOT
from tests.urlserver import NAMESPACE, Soap, address_of, serving, urls_of
from tests.web.running import run_web

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")

STRANGER = 65_534
# Tries to listen on a port until standard input ends; says what has happened.
SQUATTER = """
import os, socket, select, sys
os.setgroups([]), os.setuid(int(sys.argv[1]))
print("begins", flush=True)
tries = 0
while not tries or not select.select([sys.stdin], [], [], 0.0)[0]:
    for ip in ("127.0.0.1", "0.0.0.0"):
        for options in ((), (socket.SO_REUSEADDR,), (socket.SO_REUSEPORT,), (socket.SO_REUSEADDR, socket.SO_REUSEPORT)):
            tries += 1
            with socket.socket() as listening:
                for option in options:
                    listening.setsockopt(socket.SOL_SOCKET, option, 1)
                try:
                    listening.bind((ip, int(sys.argv[2])))
                    listening.listen()
                except OSError:
                    continue
                print("listens as", ip, options, flush=True)
print(tries, "tries")
"""


def squatter(port: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", SQUATTER, str(STRANGER), str(port)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "begins\n"
    return process


# Asks for a job with its first argument as the user; the second says what to do with the socket before the answer.
ASKER = """
import os, socket, sys
user, port, way, message = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4].encode()
os.setgroups([]), os.setuid(user)
family, ip = (socket.AF_INET6, "::ffff:127.0.0.1") if way == "mapped" else (socket.AF_INET, "127.0.0.1")
with socket.socket(family) as asking:
    asking.connect((ip, port))
    head = ["POST / HTTP/1.1", "Host: localhost", "Content-Type: text/xml", f"Content-Length: {len(message)}", "", ""]
    asking.sendall("\\r\\n".join(head).encode() + message)
    if way == "half closed":
        asking.shutdown(socket.SHUT_WR)
    if way != "gone":  # whose socket is nobody's then
        print(asking.recv(65536).decode())
"""
GET_JOB = f"""<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Body><getJob xmlns="{NAMESPACE}">
<ident>stranger</ident><request>1</request><wanted>1</wanted></getJob></e:Body></e:Envelope>"""


def asked(user: int, port: int, way: str) -> str:
    command = [sys.executable, "-c", ASKER, str(user), str(port), way, GET_JOB]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert not done.stderr
    return done.stdout


def said(process: subprocess.Popen[str]) -> str:
    return process.communicate("that is all\n", timeout=60)[0]


def put(path: Path, is_folder: bool = True) -> None:
    """As a stranger does who was there first."""
    path.mkdir() if is_folder else path.write_text("")
    os.chown(path, STRANGER, STRANGER)


PLANTED = {
    "config.cfg": ("urlServer", "ftpServer", "crawl", "crawlAdmin", "clientCrawler", "crawlExport"),
    "config": ("urlServer", "ftpServer", "crawl", "crawlAdmin", "clientCrawler", "crawlExport"),
    ".mem": ("urlServer", "ftpServer", "crawl"),
    ".client": ("clientCrawler",),
    "Pages": ("ftpServer", "crawl"),
    "summary.txt": ("crawl",),
}
COMMANDS = {
    "urlServer": ("server.urlserver.main", "--server-port", "0", "http://a.example/"),
    "ftpServer": ("server.ftpserver.main", "--ftp-port", "0"),
    "crawl": ("onehost.main", "http://a.example/"),
    "crawlAdmin": ("server.admin.main", "status"),
    "clientCrawler": ("client.main", "foreground"),
    "crawlExport": ("export.main", "files", "--output", "out"),
}


@needs_root
@pytest.mark.parametrize(("planted", "command"), [(each, name) for each in PLANTED for name in PLANTED[each]])
def test_what_a_stranger_has_put_there_is_not_used(tmp_path: Path, planted: str, command: str) -> None:
    tmp_path.chmod(0o1777)
    put(tmp_path / planted, is_folder="." not in planted[1:])
    if planted == "config":
        put(tmp_path / "config" / "config.cfg", is_folder=False)
    module, *arguments = COMMANDS[command]
    line = [sys.executable, "-m", module, *arguments, "--dir", tmp_path]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode in (1, 2)  # 1 if it is a part of crawl that refuses
    assert f"{tmp_path / planted} belongs to another user" in done.stderr


NAMED = [
    # command, options that name what a stranger has put there
    ("urlServer", ("--token-file", "named")),
    ("urlServer", ("--tls-cert", "named", "--tls-key", "own")),
    ("urlServer", ("--tls-cert", "own", "--tls-key", "named")),
    ("ftpServer", ("--token-file", "named/token")),
    ("ftpServer", ("--tls-cert", "named", "--tls-key", "own")),
    ("ftpServer", ("--tls-cert", "own", "--tls-key", "named")),
    ("crawlAdmin", ("--token-file", "named")),
    ("crawlAdmin", ("--ip", "127.0.0.1", "--tls-cert", "named")),
    ("clientCrawler", ("--token-file", "named")),
    ("clientCrawler", ("--tls", "1", "--tls-ca", "named/own")),
    ("clientCrawler", ("--filters", "named")),
    ("crawl", ("--filters", "named/filters")),
]


@needs_root
@pytest.mark.parametrize(("command", "options"), NAMED)
def test_what_a_stranger_has_put_where_a_setting_points_is_not_used(
    tmp_path: Path, command: str, options: tuple[str, ...]
) -> None:
    tmp_path.chmod(0o1777)
    put(tmp_path / "named")
    (tmp_path / "named" / "filters").mkdir()
    (tmp_path / "named" / "token").write_text("abc")
    make_certificate(tmp_path, "own")[0].rename(tmp_path / "own")
    module, *arguments = COMMANDS[command]
    line = [sys.executable, "-m", module, *arguments, "--dir", tmp_path, *options]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode in (1, 2)  # 1 if it is a part of crawl that refuses
    assert f"{tmp_path / 'named'} belongs to another user" in done.stderr
    assert "Traceback" not in done.stderr


@needs_root
@pytest.mark.parametrize("name", ["repository", "log-file"])
def test_where_a_crawler_file_lets_crawl_write_is_not_what_a_stranger_has_put_there(tmp_path: Path, name: str) -> None:
    tmp_path.chmod(0o1777)
    put(tmp_path / "named", is_folder=name == "repository")
    (tmp_path / "conf").write_text(f'<crawler-options> {name} = "{tmp_path}/named";')
    command = [sys.executable, "-m", "onehost.main", "--crawler-conf", tmp_path / "conf", "a.example"]
    done = subprocess.run([*command, "--dir", tmp_path / "work"], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert f"{tmp_path / 'named'} belongs to another user" in done.stderr


@needs_root
@pytest.mark.parametrize("name", ["a.py", "_shared.py", "__pycache__", "models/b.py"])
def test_what_a_stranger_has_put_among_filters_is_not_run(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "filters"
    (folder / "models").mkdir(parents=True)
    (folder / "keep.py").write_text("def keep(page):\n    return True\n")
    for each in (folder, folder / "models"):
        each.chmod(0o1777)
    check(folder)
    put(folder / name)
    with pytest.raises(ConfigError, match=f"{name} belongs to another user"):
        check(folder)


@needs_root
@pytest.mark.parametrize("command", COMMANDS)
def test_a_work_folder_of_somebody_else_is_told(tmp_path: Path, command: str) -> None:
    (tmp_path / "closed").mkdir(mode=0o700)
    module, *arguments = COMMANDS[command]
    # Loaded first, because the interpreter can be in a folder of root's.
    become = f"os.setgroups([]); os.setuid({STRANGER})"
    program = f"import encodings.idna, os, sys; from {module} import main; {become}; sys.exit(main())"
    line = [sys.executable, "-c", program, *arguments, "--dir", tmp_path / "closed" / "work"]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr


@needs_root
def test_a_work_folder_that_a_stranger_has_made_is_not_used(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    put(tmp_path / "work")
    with pytest.raises(ConfigError, match="belongs to another user"):
        load(tmp_path / "work")


@needs_root
@pytest.mark.parametrize(("mode", "owner", "of_folder"), [(0o777, 0, 0), (0o775, STRANGER, 0), (0o777, 1, 1)])
def test_who_may_write_there_anyway_is_no_stranger(tmp_path: Path, mode: int, owner: int, of_folder: int) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "config.cfg").write_text("[settings]\nname = me\n")
    os.chown(work, of_folder, 0)
    os.chown(work / "config.cfg", owner, 0)
    work.chmod(mode)
    assert load(work).client.name == "me"


@needs_root
@pytest.mark.parametrize("way", ["plain", "mapped", "half closed", "gone"])
def test_without_a_token_other_users_get_no_job(tmp_path: Path, way: str) -> None:
    """A job has the FTP password. Whoever closes his socket at once has no name any more, and is not taken for root."""
    with serving(tmp_path, "http://127.0.0.1:9/") as server:
        soap = Soap(address_of(server))
        port = urlsplit(address_of(server)).port
        assert port
        answer = asked(STRANGER, port, way)
        assert "ftp_password" not in answer
        if way != "gone":
            assert "403" in answer
            assert "only the user who has started it" in answer
        assert soap.totals()["leased"] == 0
        assert len(urls_of(soap.job())) == 1, "and who has started it gets one"


@pytest.mark.parametrize(("family", "ip"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_whose_program_is_at_the_other_end(family: int, ip: str) -> None:
    with socket.create_server((ip, 0), family=family) as server, socket.socket(family) as asking:
        asking.connect(server.getsockname()[:2])
        accepted, _ = server.accept()
        with accepted:
            ends = peers.addresses(accepted)
            assert ends
            assert peers.user_at(*ends) == os.geteuid()
            asking.close()
            assert peers.user_at(*ends) is None
        assert peers.addresses(accepted) is None


def test_a_private_folder_is_never_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even for the moment in which somebody could put something into it."""
    before = os.umask(0)
    monkeypatch.setattr(Path, "chmod", lambda *_: pytest.fail("it was open"))
    private_folder(tmp_path / ".mem")
    os.umask(before)


@needs_root
def test_a_port_that_is_held_is_for_one_user() -> None:
    with held_port() as held:
        assert re.fullmatch(r"\d+ tries\n", said(squatter(held.getsockname()[1])))


@needs_root
@pytest.mark.integration
@pytest.mark.parametrize("part", ["url", "ftp"])
def test_nobody_takes_the_place_of_a_part_that_died(tmp_path: Path, part: str) -> None:
    """Whoever listens there is told the token by the next client, or sent the harvest."""
    crawls = Crawls(tmp_path / "work")
    with run_web(hosts=1, pages=50) as web, crawls.running("--delay", "0.2", *web.start_urls) as crawl:
        pid = crawls.parts()[part]
        line = Path(f"/proc/{pid}/cmdline").read_text()
        found = re.search(r"--(?:server|ftp)-port\0(\d+)", line)
        assert found, line
        thief = squatter(int(found[1]))
        os.kill(pid, signal.SIGKILL)
        crawl.wait_for_errors("had died and was started again")
        assert re.fullmatch(r"\d+ tries\n", said(thief))

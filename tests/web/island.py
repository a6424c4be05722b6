"""A network of its own: `unshare --mount --net python -m tests.web.island`. Needs root.

Every address of the world is this machine, names are told by `nameserver`, and on port 80 of every address somebody
answers which address it was. Reads a JSON line with a url and limits, fetches it with the real client, and prints
what came of it as a JSON line. A list is a command instead, to be run in this network.
"""

import json
import socket
import subprocess
import sys
import tempfile
import threading
from dataclasses import asdict, dataclass
from pathlib import Path

from client.transport import Limits, Transport, TransportError
from tests.web.nameserver import ZONE, Zone, serve

COMMAND = ("unshare", "--mount", "--net", "--propagation", "private")

# The island's own: where names are asked, and that nobody else is.
_FILES = {
    "/etc/resolv.conf": "nameserver 127.0.0.1\noptions timeout:2 attempts:1\n",
    "/etc/nsswitch.conf": "hosts: files dns\n",
}
_NETWORK = (
    "ip link set lo up",
    "ip route add local 0.0.0.0/0 dev lo",
    "ip -6 route add local ::/0 dev lo",
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What the island is asked to fetch. `check` looks the name up before, as a careless client would."""

    url: str
    allow_private: bool = False
    private: tuple[str, ...] = ()
    connect_timeout_seconds: float = 30.0
    check: bool = False


@dataclass(frozen=True, slots=True)
class Fetched:
    """What came of it. `checked` are the addresses that were found before; `served` those that answered so far."""

    outcome: str
    detail: str
    body: str
    checked: list[str]
    served: list[str]


class Island:
    """The whole network, in one process."""

    def __init__(self) -> None:
        self.served: list[str] = []  # appended to by one thread only
        names = socket.socket(type=socket.SOCK_DGRAM)
        names.bind(("127.0.0.1", 53))
        web = socket.create_server(("::", 80), family=socket.AF_INET6, backlog=100, dualstack_ipv6=True)
        threading.Thread(target=serve, args=(Zone(ZONE), names), daemon=True).start()
        threading.Thread(target=self._serve_web, args=(web,), daemon=True).start()

    def _serve_web(self, listening: socket.socket) -> None:
        while True:
            connection, _ = listening.accept()
            with connection:
                connection.recv(65536)
                address = connection.getsockname()[0].removeprefix("::ffff:")
                self.served.append(address)
                head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(address)}\r\nConnection: close\r\n\r\n"
                connection.sendall((head + address).encode())

    def fetch(self, asked: Asked) -> Fetched:
        """With a transport of its own, which has no connections and knows no names yet."""
        checked = _look_up(asked.url.split("/")[2]) if asked.check else []
        seconds = asked.connect_timeout_seconds
        limits = Limits(seconds, 60.0, 60.0, max_body_bytes=100_000, max_header_bytes=20_000)
        transport = Transport("pavouk")
        try:
            response = transport.request(asked.url, limits, (), asked.allow_private, asked.private)
            return Fetched("stored", "", response.body.decode(), checked, self.served)
        except TransportError as error:
            return Fetched(error.outcome, error.detail, "", checked, self.served)
        finally:
            # Closing may wait for a name: not here, where the next one is asked for.
            threading.Thread(target=transport.close).start()


def _look_up(name: str) -> list[str]:
    return sorted({str(found[4][0]) for found in socket.getaddrinfo(name, 80, socket.AF_INET)})


def _leave_the_world(folder: Path) -> None:
    for command in _NETWORK:
        subprocess.run(command.split(), check=True)
    for number, (path, text) in enumerate(_FILES.items()):
        file = folder / str(number)
        file.write_text(text)
        subprocess.run(["mount", "--bind", str(file), path], check=True)


def main() -> None:
    """The program."""
    with tempfile.TemporaryDirectory(prefix="island-") as folder:
        _leave_the_world(Path(folder))
        island = Island()
        print("ready 80", flush=True)
        for line in sys.stdin:
            asked = json.loads(line)
            if isinstance(asked, list):
                done = subprocess.run(asked, capture_output=True, text=True, timeout=300)
                print(json.dumps([done.returncode, done.stdout + done.stderr, island.served]), flush=True)
            else:
                print(json.dumps(asdict(island.fetch(Asked(**asked)))), flush=True)


if __name__ == "__main__":
    main()

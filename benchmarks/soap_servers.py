"""cheroot against waitress under the URL server's SOAP application: requests per second over loopback.

    pip install waitress            # only this comparison needs it
    python -m benchmarks.soap_servers [SECONDS]

Each server runs in its own process with 16 threads; 8 client threads call getTotals (small) and getJob (writes)
over kept connections. waitress has no TLS and reads whole requests before it takes a thread.
"""

import http.client
import sys
import tempfile
import threading
import time
from multiprocessing import Process, Queue
from pathlib import Path
from typing import Any

from common.clock import SystemClock
from common.settings import Settings
from common.wire import FoundUrl
from server.frontier.frontier import Frontier, Rules
from server.frontier.rocks import RocksStore
from server.policy.policy import Policy
from server.urlserver.http import Guard, HttpServer
from server.urlserver.journal import Journal
from server.urlserver.service import UrlService
from server.urlserver.soap import NAMESPACE, application, wsdl

CLIENTS = 8
THREADS = 16
HOSTS, PAGES = 200, 100
CALLS = {"getTotals": "<getTotals/>", "getJob": "<getJob><ident>w{client}</ident><wanted>1</wanted></getJob>"}


def guarded(folder: Path) -> Guard:
    """The application as urlServer builds it, on a frontier with work for everybody."""
    clock = SystemClock()
    frontier = Frontier(RocksStore(folder / "frontier"), Policy(), Rules(delay_seconds=0), clock)
    frontier.add(FoundUrl(f"http://h{host}/{page}", 0) for host in range(HOSTS) for page in range(PAGES))
    service = UrlService(frontier, Settings(folder=folder), Journal(folder, clock, ()))
    app = application(service, 1_000_000)
    return Guard(app, wsdl(app, "http://127.0.0.1/"), "", 1_000_000)


def serve(name: str, ports: "Queue[int]") -> None:
    """One of the two servers, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        app = guarded(Path(folder))
        if name == "cheroot":
            server = HttpServer("127.0.0.1", 0, THREADS, "", "", Path(folder))
            ports.put(int(server.bind().rsplit(":", 1)[1].strip("/")))
            server.serve(app)
        else:
            import waitress

            waiting: Any = waitress.create_server(app, host="127.0.0.1", port=0, threads=THREADS)
            ports.put(waiting.effective_port)
            waiting.run()


def call(port: int, body: str, ends_at: float, counts: list[int]) -> None:
    """One client: the same call again and again."""
    message = f'<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/" xmlns="{NAMESPACE}"><e:Body>{body}'
    message += "</e:Body></e:Envelope>"
    connection = http.client.HTTPConnection("127.0.0.1", port)
    number = 0
    while time.monotonic() < ends_at:
        connection.request("POST", "/", message, {"Content-Type": "text/xml"})
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200, answer.status
        number += 1
    counts.append(number)


def measure(port: int, body: str, seconds: float) -> float:
    counts: list[int] = []
    ends_at = time.monotonic() + seconds
    threads = [
        threading.Thread(target=call, args=(port, body.format(client=client), ends_at, counts))
        for client in range(CLIENTS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(counts) == CLIENTS
    return sum(counts) / seconds


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
    rates: dict[tuple[str, str], float] = {}
    for name in ("cheroot", "waitress"):
        ports: Queue[int] = Queue()
        process = Process(target=serve, args=(name, ports), daemon=True)
        process.start()
        port = ports.get(timeout=30)
        for operation, body in CALLS.items():
            rates[name, operation] = measure(port, body, seconds)
        process.kill()
        process.join()
    for operation in CALLS:
        one, other = rates["cheroot", operation], rates["waitress", operation]
        print(f"{operation:10} cheroot {one:6.0f}/s   waitress {other:6.0f}/s   ratio {one / other:.2f}")


if __name__ == "__main__":
    main()

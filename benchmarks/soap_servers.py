"""Our HTTP server against cheroot and waitress under the same SOAP application: requests per second over loopback.

    pip install cheroot waitress            # only this comparison needs them
    python -m benchmarks.soap_servers [SECONDS [ROUNDS]]

Each server runs in its own process with 16 threads; 8 client threads call getTotals (small) and getJob (writes)
over kept connections. The servers take turns, and medians of the rounds are told.
"""

import http.client
import sys
import tempfile
import threading
import time
from multiprocessing import Process, Queue
from pathlib import Path
from statistics import median
from typing import Any

from common.clock import SystemClock
from common.settings import Settings
from common.wire import FoundUrl
from server.frontier.frontier import Frontier, Rules
from server.frontier.rocks import RocksStore
from server.policy.policy import Policy
from server.urlserver.guard import Guard, Wsgi
from server.urlserver.http import HttpServer
from server.urlserver.journal import Journal
from server.urlserver.service import UrlService
from server.urlserver.soap import NAMESPACE, application, wsdl

SERVERS = ("ours", "cheroot", "waitress")
CLIENTS = 8
THREADS = 16
HOSTS, PAGES = 200, 100
CALLS = {"getTotals": "<getTotals/>", "getJob": "<getJob><ident>w{client}</ident><wanted>1</wanted></getJob>"}


def application_of(folder: Path) -> Any:
    """As urlServer builds it, on a frontier with work for everybody."""
    clock = SystemClock()
    frontier = Frontier(RocksStore(folder / "frontier"), Policy(), Rules(delay_seconds=0), clock)
    frontier.add(FoundUrl(f"http://h{host}/{page}", 0) for host in range(HOSTS) for page in range(PAGES))
    service = UrlService(frontier, Settings(folder=folder), Journal(folder, clock, ()))
    return application(service, 1_000_000)


def serve(name: str, ports: "Queue[int]") -> None:
    """One of the servers, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        app = application_of(Path(folder))
        {"ours": _ours, "cheroot": _cheroot, "waitress": _waitress}[name](app, ports, Path(folder))


def _ours(app: Any, ports: "Queue[int]", folder: Path) -> None:
    server = HttpServer("127.0.0.1", 0, THREADS, "", "", folder)
    ports.put(int(server.bind().rsplit(":", 1)[1].strip("/")))
    server.serve(Guard(app, wsdl(app, "http://127.0.0.1/"), "", 1_000_000), folder)


def _cheroot(app: Wsgi, ports: "Queue[int]", folder: Path) -> None:
    from cheroot import wsgi

    server: Any = wsgi.Server(("127.0.0.1", 0), app, numthreads=THREADS, max=THREADS)
    server.prepare()
    ports.put(server.bind_addr[1])
    server.serve()


def _waitress(app: Wsgi, ports: "Queue[int]", folder: Path) -> None:
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
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    rates: dict[tuple[str, str], list[float]] = {}
    for _ in range(rounds):
        for name in SERVERS:
            ports: Queue[int] = Queue()
            process = Process(target=serve, args=(name, ports), daemon=True)
            process.start()
            port = ports.get(timeout=30)
            for operation, body in CALLS.items():
                rates.setdefault((name, operation), []).append(measure(port, body, seconds))
            process.kill()
            process.join()
    for operation in CALLS:
        medians = {name: median(rates[name, operation]) for name in SERVERS}
        told = "   ".join(f"{name} {rate:6.0f}/s ({medians['ours'] / rate:.2f})" for name, rate in medians.items())
        print(f"{operation:10} {told}")


if __name__ == "__main__":
    main()

"""Several gateways share one port: all serve, and one that is killed takes nothing with it."""

import re
import signal
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from chaos.node import Node, wait_until
from corvo.runtime.addresses import split_address

pytestmark = pytest.mark.system

GATEWAYS = ["gateway-0", "gateway-1"]
BACK_S = 10.0  # on a busy machine; what it usually takes is the benchmarks' matter


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    with tempfile.TemporaryDirectory(prefix="corvo-") as folder:
        node = Node.start(Path(folder) / "data", "--gateways", "2", "--shards", "1")
        yield node
        assert node.stop() == 0


def who_serves(client: httpx.Client) -> str:
    """The number of the gateway at the other end of this connection."""
    found = re.search(r'corvo_http_requests_in_flight\{gateway="(\d)"\}', client.get("/metrics").text)
    assert found
    return f"gateway-{found[1]}"


def gateways(node: Node) -> dict[str, int]:
    return {process.role: process.pid for process in node.processes() if process.role.startswith("gateway")}


def are_all_reached(node: Node) -> bool:
    seen = set()
    for _ in range(20):
        with httpx.Client(base_url=node.url) as client:
            seen.add(who_serves(client))
    return sorted(seen) == GATEWAYS


def test_both_serve_and_one_that_is_killed_is_back(node: Node) -> None:
    wait_until(lambda: are_all_reached(node), "both gateways to be reached", BACK_S)
    jobs: set[str] = set()
    failures: list[str] = []
    over = threading.Event()

    def produce(number: int) -> None:
        """A client that tries again when its connection breaks, as clients do."""
        with httpx.Client(base_url=node.url, timeout=BACK_S) as client:
            while not over.is_set():
                try:
                    reply = client.post("/api/v1/enqueue", json={"queue": f"q{number}"})
                except httpx.TransportError:
                    continue  # the connection was to the one that was killed
                if reply.status_code == 201:
                    jobs.add(reply.json()["job_id"])
                else:
                    failures.append(reply.text)

    producers = [threading.Thread(target=produce, args=(number,)) for number in range(4)]
    for producer in producers:
        producer.start()
    try:
        for role in GATEWAYS:
            killed = node.kill(role)
            wait_until(lambda: gateways(node).get(role, killed) != killed, f"{role} to be back", BACK_S)  # noqa: B023
            after = len(jobs)
            wait_until(lambda: len(jobs) > after + 20, "jobs to be taken", BACK_S)  # noqa: B023
    finally:
        over.set()
        for producer in producers:
            producer.join()
    wait_until(lambda: are_all_reached(node), "both gateways to be reached again", BACK_S)
    assert failures == []
    found = httpx.get(f"{node.url}/api/v1/queues?consistent=true").json()
    assert sum(queue["pending"] for queue in found) >= len(jobs)


def test_one_that_is_told_to_stop_is_replaced_and_the_port_stays_open(node: Node) -> None:
    before = gateways(node)
    stopped = node.kill("gateway-0", signal.SIGTERM)
    wait_until(lambda: gateways(node).get("gateway-0", stopped) != stopped, "gateway-0 to be back", BACK_S)

    assert gateways(node)["gateway-1"] == before["gateway-1"]
    wait_until(lambda: are_all_reached(node), "both gateways to be reached", BACK_S)


def test_connections_wait_while_no_gateway_runs(node: Node) -> None:
    for role in GATEWAYS:
        node.kill(role)
    with socket.create_connection(split_address(node.settings.bind), timeout=BACK_S) as connection:
        connection.sendall(b"GET /livez HTTP/1.1\r\nhost: corvo\r\n\r\n")
        assert connection.recv(12) == b"HTTP/1.1 200"


def test_a_node_behind_granian_serves_and_stops_in_order(folder: Path) -> None:
    node = Node.start(folder / "data", "--gateways", "2", "--shards", "1", "--http-server", "granian")
    try:
        with httpx.Client(base_url=node.url, timeout=BACK_S) as client:
            assert client.post("/api/v1/enqueue", json={"queue": "mail", "payload": 7}).status_code == 201
            assert client.post("/api/v1/fetch", json={"queues": ["mail"], "worker_id": "w"}).json()["payload"] == 7
        wait_until(lambda: are_all_reached(node), "both gateways to be reached", BACK_S)
    finally:
        code = node.stop()
    assert code == 0
    log = (folder / "data" / "server.log").read_text()
    assert "Traceback" not in log and log.count('"event": "stopped"') >= len(GATEWAYS)

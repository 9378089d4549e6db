"""`corvo server --bootstrap`, then `corvo server --join` on other nodes: a cluster that grows from one node."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from chaos.node import Node, wait_until
from chaos.ports import HOST, free_ports

pytestmark = pytest.mark.system

READY_S = 40.0


@pytest.fixture
def nodes() -> Iterator[list[Node]]:
    nodes: list[Node] = []
    yield nodes
    for node in nodes:
        node.kill_all()


def launch(folder: Path, name: str, raft_port: int, *flags: str) -> Node:
    address = f"{HOST}:{raft_port}"
    return Node.launch(folder / name, "--node-id", name, "--shards", "1", "--raft-bind", address, *flags)


def voters(node: Node) -> list[str]:
    response = httpx.get(f"{node.url}/api/v1/cluster/status", timeout=10.0)
    return sorted(response.json()["groups"][0]["members"]["voters"]) if response.status_code == 200 else []


def test_nodes_join_one_that_was_bootstrapped_without_its_restart(folder: Path, nodes: list[Node]) -> None:
    ports = free_ports(1, 3)
    first = launch(folder, "node-0", ports[0], "--bootstrap")
    nodes.append(first)
    first.await_healthy(READY_S)
    assert httpx.post(f"{first.url}/api/v1/enqueue", json={"queue": "mail"}).status_code == 201
    secret = folder / "node-0" / "cluster-secret"
    assert secret.stat().st_mode & 0o777 == 0o600
    assert str(secret) in (folder / "node-0" / "server.log").read_text()

    for number in (1, 2):
        flags = ("--join", f"{HOST}:{ports[0]}", "--cluster-secret-file", str(secret))
        nodes.append(launch(folder, f"node-{number}", ports[number], *flags))
    for node in nodes[1:]:
        node.await_healthy(READY_S)

    wait_until(lambda: voters(first) == ["node-0", "node-1", "node-2"], "all three to vote", READY_S)
    fetched = httpx.post(f"{nodes[2].url}/api/v1/fetch", json={"queues": ["mail"], "worker_id": "w"}, timeout=10.0)
    assert fetched.json()["queue"] == "mail"

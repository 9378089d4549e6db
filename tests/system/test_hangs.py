"""Processes that hang: each kind is stopped (SIGSTOP), killed by the supervisor, and replaced."""

import json
import signal
from collections.abc import Iterator

import httpx
import pytest

from chaos.node import Node, wait_until
from corvo.runtime.heartbeat import read_heartbeats
from corvo.runtime.process import RUN

pytestmark = pytest.mark.system

PATIENCE_S = 90.0


@pytest.fixture(scope="module")
def watched_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    node = Node.start(
        tmp_path_factory.mktemp("n"), "--hang-timeout", "6", "--shards", "2", "--gateways", "2", "--log-format", "json"
    )
    yield node
    node.stop()


def beating(node: Node) -> set[str]:
    return set(read_heartbeats(node.data_dir / RUN))


def lines(node: Node, event: str, role: str) -> list[int]:
    """Pids in the log lines of an event."""
    told = [json.loads(line) for line in (node.data_dir / "server.log").read_text().splitlines() if line[:1] == "{"]
    return [line["pid"] for line in told if line["event"] == event and line["name"] == role]


@pytest.mark.parametrize("role", ["shard-1", "gateway-1", "mirror"])
def test_a_process_that_hangs_is_replaced(watched_node: Node, role: str) -> None:
    node = watched_node
    everyone = {"gateway-0", "gateway-1", "mirror", "shard-0", "shard-1"}
    wait_until(lambda: beating(node) == everyone, "every process to give heartbeats", PATIENCE_S)

    pid = node.kill(role, signal.SIGSTOP)

    wait_until(lambda: node.pid_of(role) not in (None, pid), f"{role} to be replaced", PATIENCE_S)
    assert pid in lines(node, "process hangs: killing it", role)
    wait_until(lambda: is_alive(node) and beating(node) == everyone, "the node to be well", PATIENCE_S)


def is_alive(node: Node) -> bool:
    with httpx.Client(timeout=10.0) as client:
        return all(client.get(f"{node.url}{path}").status_code == 200 for path in ("/livez", "/readyz"))

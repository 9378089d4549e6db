"""A whole node and its read database: rebuilt under readers, and kept in PostgreSQL."""

import threading
from pathlib import Path

import httpx
import pytest

from chaos.node import Node
from tests.gateway.mirror.mirrors import eventually
from tests.support.postgres import Server

pytestmark = pytest.mark.system


def enqueue(node: Node, count: int) -> None:
    jobs = [{"queue": f"q{number % 3}", "payload": {"n": number}} for number in range(count)]
    assert httpx.post(f"{node.url}/api/v1/enqueue/batch", json={"jobs": jobs}).status_code in (200, 201)


def total(node: Node) -> int:
    found = httpx.post(f"{node.url}/api/v1/jobs/search", json={"consistent": True, "limit": 1}, timeout=20.0)
    assert found.status_code == 200, found.text
    return int(found.json()["total"])


def rebuild(node: Node) -> httpx.Response:
    return httpx.post(f"{node.url}/api/v1/admin/rebuild-read-db?wait=true", timeout=70.0)


def test_a_rebuild_fails_no_read_and_misses_no_job(node: Node) -> None:
    enqueue(node, 300)
    assert total(node) == 300
    before = httpx.get(f"{node.url}/api/v1/cluster/status").json()["mirror"]
    is_over, failed = threading.Event(), []

    def hammer() -> None:
        with httpx.Client() as client:
            while not is_over.is_set():
                reply = client.post(f"{node.url}/api/v1/jobs/search", json={"limit": 1})
                if reply.status_code != 200 or reply.json()["total"] < 300:
                    failed.append(reply.text)

    readers = [threading.Thread(target=hammer) for _ in range(3)]
    for reader in readers:
        reader.start()
    try:
        reply = rebuild(node)
    finally:
        is_over.set()
        for reader in readers:
            reader.join()

    assert (reply.status_code, reply.json()["rebuilt"]) == (200, True), reply.text
    assert failed == []
    enqueue(node, 3)
    assert total(node) == 303
    after = httpx.get(f"{node.url}/api/v1/cluster/status").json()["mirror"]
    assert after["generation"] == reply.json()["generation"] != before["generation"]
    assert after["rebuilt_at"] > before["rebuilt_at"]


def test_a_node_keeps_its_lists_in_postgresql(folder: Path, postgres: Server) -> None:
    node = Node.start(folder / "data", "--read-db", f"{postgres.url}&schema=whole_node", log=folder / "log")
    try:
        eventually(lambda: httpx.get(f"{node.url}/readyz").status_code == 200, "PostgreSQL has its tables")
        enqueue(node, 30)
        assert total(node) == 30
        assert len(httpx.get(f"{node.url}/api/v1/queues?consistent=true").json()) == 3
        assert postgres.execute("SELECT status, count(*) FROM whole_node.tasks GROUP BY 1") == [("pending", 30)]

        assert rebuild(node).status_code == 200

        assert total(node) == 30
        assert not (folder / "data" / "read.db").exists()
    finally:
        node.stop()
        postgres.execute("DROP SCHEMA IF EXISTS whole_node CASCADE")

"""`corvo server --retention`: ended jobs go after that time, also with the setting changed at a restart."""

from pathlib import Path

import httpx
import pytest

from chaos.node import Node, wait_until

pytestmark = pytest.mark.system

READY_S = 30.0


def started(data_dir: Path, retention: str) -> Node:
    node = Node.start(data_dir, "--shards", "1", "--fsync", "off", "--retention", retention)
    wait_until(lambda: httpx.get(f"{node.url}/readyz").status_code == 200, "the server to be ready", READY_S)
    return node


def completed(node: Node) -> str:
    api = f"{node.url}/api/v1"
    job_id = str(httpx.post(f"{api}/enqueue", json={"queue": "mail"}).json()["job_id"])
    httpx.post(f"{api}/fetch", json={"queues": ["mail"], "worker_id": "w"}).raise_for_status()
    httpx.post(f"{api}/ack/{job_id}", json={}).raise_for_status()
    return job_id


def test_ended_jobs_are_kept_as_long_as_the_server_says(tmp_path: Path) -> None:
    node = started(tmp_path / "data", "forever")
    kept = completed(node)
    assert httpx.get(f"{node.url}/api/v1/queues/mail").json()["retention"]["completed_ms"] is None
    node.stop()

    node = started(tmp_path / "data", "1s")
    try:
        gone = completed(node)
        wait_until(lambda: httpx.get(f"{node.url}/api/v1/jobs/{gone}").status_code == 404, "the job to go", READY_S)
        assert httpx.get(f"{node.url}/api/v1/jobs/{kept}").status_code == 200
        assert httpx.get(f"{node.url}/api/v1/queues/mail").json()["retention"]["completed_ms"] == 1_000
    finally:
        node.stop()

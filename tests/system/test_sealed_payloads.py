"""Encryption at rest through a real server: nothing on its disk holds a payload, and everybody sees them as before."""

import base64
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from chaos.node import Node, wait_until

pytestmark = pytest.mark.system

SECRET = "kilimanjaro-4711"


def key_line(name: str) -> str:
    return f"{name}:{base64.b64encode(os.urandom(32)).decode()}\n"


def write_keys(path: Path, *lines: str) -> None:
    path.write_text("".join(lines))
    path.chmod(0o600)


def holds_secret(folder: Path) -> list[str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [str(path.relative_to(folder)) for path in files if SECRET.encode() in path.read_bytes()]


class Client:
    def __init__(self, node: Node) -> None:
        self.http = httpx.Client(base_url=f"{node.url}/api/v1", timeout=30.0)

    def post(self, path: str, status: int = 200, **body: Any) -> Any:
        answer = self.http.post(path, json=body)
        assert answer.status_code == status, (path, answer.text)
        return answer.json() if answer.content else None

    def get(self, path: str, status: int = 200) -> Any:
        answer = self.http.get(path)
        assert answer.status_code == status, (path, answer.text)
        return answer.json()

    def enqueue(self, queue: str, **more: Any) -> str:
        made: str = self.post("/enqueue", 201, queue=queue, **more)["job_id"]
        return made

    def fetch(self, queue: str) -> Any:
        return self.post("/fetch", queues=[queue], worker_id="w", timeout=20)

    def ack(self, job: Any, **more: Any) -> None:
        self.post(f"/ack/{job['job_id']}", lease_token=job["lease_token"], **more)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="corvo-") as path:
        yield Path(path)


def test_payloads_are_sealed_on_disk_and_plain_for_workers_and_people(folder: Path) -> None:
    data, keys = folder / "data", folder / "keys"
    first, second = key_line("first"), key_line("second")
    note = {"note": SECRET}

    node = Node.start(data)
    before = Client(node).enqueue("before", payload={"plain": 1})
    assert node.stop() == 0

    write_keys(keys, first)
    node = Node.start(data, "--payload-key-file", str(keys))
    try:
        client = Client(node)
        assert client.fetch("before")["payload"] == {"plain": 1}
        assert client.get(f"/jobs/{before}")["payload"] == {"plain": 1}

        job_id = client.enqueue("one", payload=note, checkpoint=note)
        job = client.fetch("one")
        assert (job["payload"], job["checkpoint"]) == (note, note)
        client.post("/heartbeat", jobs={job_id: {"checkpoint": {"at": SECRET}, "lease_token": job["lease_token"]}})
        client.ack(job, result={"done": SECRET})
        view = client.get(f"/jobs/{job_id}")
        assert (view["payload"], view["result"], view["checkpoint"]) == (note, {"done": SECRET}, {"at": SECRET})
        replayed = client.post(f"/jobs/{job_id}/replay", 201, **{"from": 1})["job_id"]
        again = client.fetch("one")
        assert (again["job_id"], again["payload"], again["checkpoint"]) == (replayed, note, {"at": SECRET})

        steps = [{"queue": "step", "payload": note}, {"queue": "step", "payload": {"second": SECRET}}]
        client.enqueue("step", payload=note, chain={"steps": steps})
        client.ack(client.fetch("step"), result={"sum": SECRET})
        following = client.fetch("step")["payload"]
        assert following["previous_result"] == {"sum": SECRET} and following["second"] == SECRET

        batch = {"on_complete": {"queue": "after", "payload": note}}
        client.post("/enqueue/batch", 201, jobs=[{"queue": "member", "payload": note}], batch=batch)
        client.ack(client.fetch("member"))
        after = client.fetch("after")["payload"]
        assert after["note"] == SECRET and after["batch"]["total"] == 1

        schedule = client.post("/schedules", 201, name="nightly", queue="timed", cron="0 3 * * *", payload=note)
        assert schedule["payload"] == note and client.get("/schedules/nightly")["payload"] == note
        client.post("/schedules/nightly/run", 201)
        assert client.fetch("timed")["payload"] == note

        moved = client.enqueue("from.here", payload=note)
        client.post(f"/jobs/{moved}/move", queue="to.there")
        assert client.fetch("to.there")["payload"] == note

        found = client.post("/jobs/search", queue="one", consistent=True)
        assert {str(one["payload"]) for one in found["jobs"]} == {str(note)}
        sought = client.post("/jobs/search", payload_contains=SECRET, consistent=True)
        assert sought["jobs"] == [] and sought["sealed_unsearched"] is True
        assert client.post("/jobs/search", payload_contains="plain", consistent=True)["jobs"][0]["id"] == before
        assert client.get(f"/search/fulltext?q={SECRET}&consistent=true")["results"] == []
        assert holds_secret(data) == []
    finally:
        assert node.stop() == 0
    assert holds_secret(data) == []

    write_keys(keys, second, first)  # rotated: the new key seals, the old one still opens
    node = Node.start(data, "--payload-key-file", str(keys))
    try:
        client = Client(node)
        assert client.get(f"/jobs/{job_id}")["payload"] == note
        client.enqueue("two", payload=note)
    finally:
        assert node.stop() == 0

    node = Node.start(data)  # without any key
    try:
        client = Client(node)
        assert client.get(f"/jobs/{job_id}", 503)["code"] == "PAYLOAD_KEY_MISSING"
        assert client.post("/fetch", 503, queues=["two"], worker_id="w", timeout=1)["code"] == "PAYLOAD_KEY_MISSING"
        listed = client.post("/jobs/search", queue="two", consistent=True)["jobs"]
        assert [one["payload"] for one in listed] == ["(encrypted)"]

        def given_back() -> bool:
            [job] = client.post("/jobs/search", queue="two", consistent=True)["jobs"]
            return bool(job["state"] == "scheduled")

        wait_until(given_back, "the claimed job to be given back", 20.0)
    finally:
        assert node.stop() == 0
    assert holds_secret(data) == []

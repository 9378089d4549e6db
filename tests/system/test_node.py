"""One node, end to end: what the README promises, over real processes."""

import json
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from chaos.kill_shards import settled, unlike_rows
from chaos.node import Node, wait_until
from chaos.state import statuses
from corvo.model.sharding import shard_of_queue
from corvo.model.timestamps import parse_rfc3339, to_rfc3339

pytestmark = pytest.mark.system


def post(node: Node, path: str, body: object, timeout: float = 40.0) -> httpx.Response:
    return httpx.post(f"{node.url}/api/v1{path}", json=body, timeout=timeout)


def enqueue(node: Node, queue: str, **fields: object) -> str:
    response = post(node, "/enqueue", {"queue": queue, **fields})
    assert response.status_code == 201, response.text
    return str(response.json()["job_id"])


def fetch(node: Node, *queues: str, timeout: float = 20.0, **fields: object) -> httpx.Response:
    return post(node, "/fetch", {"queues": list(queues), "worker_id": "w1", "timeout": timeout, **fields})


def job(node: Node, job_id: str) -> dict[str, object]:
    response = httpx.get(f"{node.url}/api/v1/jobs/{job_id}", timeout=20.0)
    assert response.status_code == 200, response.text
    return dict(response.json())


def queue_on_other_shard(name: str, shards: int) -> str:
    home = shard_of_queue(name, shards)
    return next(f"{name}.{n}" for n in range(1000) if shard_of_queue(f"{name}.{n}", shards) != home)


def test_a_job_goes_from_producer_to_worker_and_is_done(shared_node: Node) -> None:
    job_id = enqueue(shared_node, "emails.send", payload={"to": "a@b.c"}, tags={"tenant": "acme"})

    fetched = fetch(shared_node, "emails.send").json()
    assert fetched["job_id"] == job_id
    assert fetched["payload"] == {"to": "a@b.c"}
    assert (fetched["attempt"], fetched["lease_duration"], fetched["tags"]) == (1, 60, {"tenant": "acme"})
    acked = post(shared_node, f"/ack/{job_id}", {"lease_token": fetched["lease_token"], "result": {"sent": True}})

    assert acked.json() == {"status": "ok"}
    done = job(shared_node, job_id)
    assert (done["state"], done["result"]) == ("completed", {"sent": True})


def test_lists_and_search_show_what_the_shards_hold(shared_node: Node) -> None:
    queues = [f"lists.{number}" for number in range(6)]
    ids = [enqueue(shared_node, queue) for queue in queues for _ in range(3)]
    claimed = fetch(shared_node, queues[0]).json()

    found = post(shared_node, "/jobs/search", {"queue": queues[0], "order": "asc", "consistent": True}).json()
    assert [row["id"] for row in found["jobs"]] == ids[:3]
    assert (found["total"], found["has_more"]) == (3, False)
    active = post(shared_node, "/jobs/search", {"queue": queues[0], "state": ["active"], "consistent": True}).json()
    assert [row["id"] for row in active["jobs"]] == [claimed["job_id"]]
    rows = {row["name"]: row for row in httpx.get(f"{shared_node.url}/api/v1/queues?consistent=true").json()}
    assert [(rows[queue]["pending"], rows[queue]["active"]) for queue in queues] == [(2, 1)] + [(3, 0)] * 5
    workers = httpx.get(f"{shared_node.url}/api/v1/workers").json()
    assert "w1" in [worker["id"] for worker in workers]


def test_a_batch_over_all_shards_answers_in_the_order_of_the_request(shared_node: Node) -> None:
    queues = [f"order.{number}" for number in range(20)]

    answer = post(shared_node, "/enqueue/batch", {"jobs": [{"queue": queue} for queue in queues]}).json()

    assert [job(shared_node, job_id)["queue"] for job_id in answer["job_ids"]] == queues


def test_a_waiting_worker_gets_the_job_that_comes(shared_node: Node) -> None:
    answers: list[httpx.Response] = []
    worker = threading.Thread(target=lambda: answers.append(fetch(shared_node, "wait.one")))
    worker.start()
    parked_fetches(shared_node, 1)

    job_id = enqueue(shared_node, "wait.one")

    worker.join(20.0)
    assert answers[0].json()["job_id"] == job_id


def test_a_worker_waits_on_queues_of_different_shards_at_once(shared_node: Node) -> None:
    near = "wait.many"
    far = queue_on_other_shard(near, 4)
    for queue in (near, far):
        answers: list[httpx.Response] = []
        worker = threading.Thread(target=lambda into=answers: into.append(fetch(shared_node, near, far)))
        worker.start()
        parked_fetches(shared_node, 2)

        job_id = enqueue(shared_node, queue)

        worker.join(20.0)
        assert answers[0].json()["job_id"] == job_id
        parked_fetches(shared_node, 0)


def parked_fetches(node: Node, count: int) -> None:
    wait_until(
        lambda: sum(status.fetches_parked for status in statuses(node.data_dir, 4)) == count,
        f"{count} calls to be parked",
        10.0,
    )


def test_an_empty_poll_never_enters_the_log(shared_node: Node) -> None:
    before = [status.log_last_index for status in statuses(shared_node.data_dir, 4)]

    assert fetch(shared_node, "nothing.here", timeout=0.5).status_code == 204
    assert fetch(shared_node, "nothing.here", queue_on_other_shard("nothing.here", 4), timeout=0.5).status_code == 204

    assert [status.log_last_index for status in statuses(shared_node.data_dir, 4)] == before


def test_a_scheduled_job_comes_when_it_is_due_and_not_before(shared_node: Node) -> None:
    due_at = time.time_ns() + 700_000_000
    job_id = enqueue(shared_node, "later", scheduled_at=to_rfc3339(due_at))
    assert job(shared_node, job_id)["state"] == "scheduled"

    fetched = fetch(shared_node, "later").json()

    assert fetched["job_id"] == job_id
    assert parse_rfc3339(str(job(shared_node, job_id)["started_at"])) >= due_at


def test_a_lease_that_runs_out_gives_the_job_to_the_next_worker(shared_node: Node) -> None:
    job_id = enqueue(shared_node, "leases", max_retries=2)
    first = fetch(shared_node, "leases", lease_duration=1).json()

    second = fetch(shared_node, "leases", lease_duration=1).json()

    assert (second["job_id"], second["attempt"]) == (job_id, 2)
    late = post(shared_node, f"/ack/{job_id}", {"lease_token": first["lease_token"]})
    assert (late.status_code, late.json()["code"]) == (409, "LEASE_LOST")
    wait_until(lambda: job(shared_node, job_id)["state"] == "dead", "the second lease to run out", 20.0)
    errors = job(shared_node, job_id)["errors"]
    assert isinstance(errors, list) and [error["attempt"] for error in errors] == [1, 2]


def test_a_cancelled_job_tells_its_worker_by_heartbeat(shared_node: Node) -> None:
    job_id = enqueue(shared_node, "cancels")
    token = fetch(shared_node, "cancels").json()["lease_token"]
    beat = {"jobs": {job_id: {"lease_token": token, "progress": {"current": 1, "total": 2}}}}
    assert post(shared_node, "/heartbeat", beat).json() == {"jobs": {job_id: {"status": "ok"}}}

    assert post(shared_node, f"/jobs/{job_id}/cancel", None).json() == {"status": "cancelling"}

    assert post(shared_node, "/heartbeat", beat).json() == {"jobs": {job_id: {"status": "cancel"}}}


def test_pages_for_machines_and_people(shared_node: Node) -> None:
    enqueue(shared_node, "pages")
    assert httpx.get(f"{shared_node.url}/healthz").json()["status"] == "ok"
    assert httpx.get(f"{shared_node.url}/readyz").status_code == 200
    assert httpx.get(f"{shared_node.url}/livez").status_code == 200
    assert httpx.get(f"{shared_node.url}/api/v1/info").json()["server_version"]
    families = {f.name: f for f in text_string_to_metric_families(httpx.get(f"{shared_node.url}/metrics").text)}
    assert {sample.labels["shard"] for sample in families["corvo_raft_applied_index"].samples} == set("0123")
    assert families["corvo_http_requests"].samples
    status = httpx.get(f"{shared_node.url}/api/v1/cluster/status").json()
    assert status["status"] == "healthy" and [group["state"] for group in status["groups"]] == ["leader"] * 4
    assert "/api/v1/enqueue" in httpx.get(f"{shared_node.url}/openapi.json").json()["paths"]
    assert "/api/v1/enqueue" in httpx.get(f"{shared_node.url}/docs").text


def test_a_first_start_has_nothing_to_warn_of(folder: Path) -> None:
    node = Node.start(folder / "data", "--log-format", "json")
    enqueue(node, "first")
    search = {"queue": "first", "consistent": True}
    wait_until(lambda: post(node, "/jobs/search", search).json().get("total") == 1, "the mirror to show the job", 40.0)
    node.stop()

    lines = [json.loads(line) for line in (folder / "data" / "server.log").read_text().splitlines()]
    assert [line for line in lines if line["level"] != "info"] == []


def test_a_stopped_node_comes_back_with_everything(node: Node, folder: Path) -> None:
    kept = [enqueue(node, f"restart.{number % 5}", payload={"n": number}) for number in range(25)]
    claimed = fetch(node, "restart.0").json()

    assert node.stop() == 0
    again = Node.start(folder / "data")

    try:
        assert [job(again, job_id)["payload"] for job_id in kept] == [{"n": number} for number in range(25)]
        acked = post(again, f"/ack/{claimed['job_id']}", {"lease_token": claimed["lease_token"]})
        assert acked.json() == {"status": "ok"}
        assert unlike_rows(again, settled(again)) == []
    finally:
        assert again.stop() == 0


def test_a_stop_ends_waiting_fetches_with_an_answer(node: Node) -> None:
    answers: list[httpx.Response] = []
    worker = threading.Thread(target=lambda: answers.append(fetch(node, "never", timeout=30)))
    worker.start()
    wait_until(lambda: sum(s.fetches_parked for s in statuses(node.data_dir, 4)) == 1, "the fetch to wait", 10.0)

    assert node.stop() == 0

    worker.join(10.0)
    assert answers[0].status_code == 204


def test_read_db_heals_when_it_is_deleted_or_damaged(node: Node, folder: Path) -> None:
    for number in range(40):
        enqueue(node, f"heal.{number % 4}")
    assert unlike_rows(node, settled(node)) == []

    for path in node.data_dir.glob("read.db*"):
        path.unlink()
    node.kill("mirror")
    enqueue(node, "heal.0")

    wait_until(lambda: (node.data_dir / "read.db").exists(), "read.db to be built", 20.0)
    wait_until(lambda: unlike_rows(node, settled(node)) == [], "read.db to be whole", 20.0)
    assert node.stop() == 0
    with (node.data_dir / "read.db").open("r+b") as file:
        file.seek(0)
        file.write(b"this is not a database" * 500)
    again = Node.start(folder / "data")
    try:
        wait_until(lambda: _is_whole(again), "read.db to be rebuilt", 20.0)
        points = httpx.get(f"{again.url}/api/v1/metrics/throughput?consistent=true", timeout=20.0).json()
        assert sum(point["enqueued"] for point in points) == 41, "throughput is kept by the shards"
    finally:
        again.stop()


def _is_whole(node: Node) -> bool:
    try:
        return unlike_rows(node, settled(node)) == []
    except sqlite3.Error:
        return False


def test_a_fetch_of_the_stream_sees_what_its_own_frame_freed(shared_node: Node) -> None:
    """A slot, a unique key and a dependency: each is freed by the ack that stands in the frame of the fetch."""
    node = shared_node
    with connect(node.url.replace("http://", "ws://") + "/api/v1/stream", compression=None) as stream:

        def ask(**frame: Any) -> Any:
            stream.send(json.dumps({"id": 1, **frame}))
            return json.loads(stream.recv(10.0))

        def acks(jobs: Any) -> list[Any]:
            return [{"job_id": job["job_id"], "lease_token": job["lease_token"]} for job in jobs]

        queue = "stream.limited"
        fetch = {"queues": [queue], "worker_id": "w1", "count": 5}
        assert post(node, f"/queues/{queue}/concurrency", {"max": 1}).status_code == 200
        first = ask(enqueue=[{"queue": queue, "payload": n} for n in range(3)], fetch=fetch)
        assert [job["payload"] for job in first["jobs"]] == [0]
        second = ask(ack=acks(first["jobs"]), fetch=fetch)
        assert (second["acked"], [job["payload"] for job in second["jobs"]]) == ([{"status": "ok"}], [1])
        third = ask(fail=[{**acks(second["jobs"])[0], "retry": False}], fetch=fetch)
        assert (third["failed"][0]["status"], [job["payload"] for job in third["jobs"]]) == ("dead", [2])

        queue = "stream.unique"
        fetch = {"queues": [queue], "worker_id": "w1", "count": 5}
        unique = {"queue": queue, "unique_key": "k"}
        first = ask(enqueue=[unique], fetch=fetch)
        second = ask(ack=acks(first["jobs"]), enqueue=[unique], fetch=fetch)
        assert [made["unique_existing"] for made in second["enqueued"]] == [False]
        assert [job["job_id"] for job in second["jobs"]] == [second["enqueued"][0]["job_id"]]

        queue = "stream.chained"
        fetch = {"queues": [queue], "worker_id": "w1", "count": 5}
        first = ask(enqueue=[{"queue": queue}], fetch=fetch)
        waits = ask(enqueue=[{"queue": queue, "depends_on": [first["jobs"][0]["job_id"]]}])
        second = ask(ack=acks(first["jobs"]), fetch=fetch)
        assert [job["job_id"] for job in second["jobs"]] == [waits["enqueued"][0]["job_id"]]


def test_the_stream_carries_whole_lives_and_ends_in_order(node: Node) -> None:
    url = node.url.replace("http://", "ws://") + "/api/v1/stream"
    with connect(url, subprotocols=["corvo.json.v1"], compression=None, close_timeout=0.5) as stream:  # type: ignore[list-item]
        fetch = {"queues": ["stream.near"], "worker_id": "w1", "count": 10}
        stream.send(json.dumps({"id": 1, "enqueue": [{"queue": "stream.near"}] * 3, "fetch": fetch}))
        jobs = json.loads(stream.recv(10.0))["jobs"]
        acks = [{"job_id": job["job_id"], "lease_token": job["lease_token"]} for job in jobs]
        stream.send(json.dumps({"id": 2, "ack": acks, "fetch": fetch | {"wait_ms": 30_000}}))
        wait_until(lambda: sum(s.fetches_parked for s in statuses(node.data_dir, 4)) == 1, "the fetch to wait", 10.0)

        assert node.stop() == 0

        told, answered = json.loads(stream.recv(10.0)), json.loads(stream.recv(10.0))
        assert (told["id"], told["code"]) == (None, "DRAINING")
        assert (answered["id"], answered["acked"], answered["jobs"]) == (2, [{"status": "ok"}] * 3, [])
        with pytest.raises(ConnectionClosed) as closed:
            stream.recv(10.0)
        assert closed.value.rcvd is not None and closed.value.rcvd.code == 1001

"""Events and "why" over real processes: what a client of the stream lives through."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from chaos.cluster import Cluster
from chaos.node import Node, wait_until
from tests.system.test_node import enqueue, fetch, post

pytestmark = pytest.mark.system


class Heard(NamedTuple):
    id: str
    type: str
    data: dict[str, Any]


class Listener:
    """Reads a stream in a thread; `heard` grows as events come."""

    def __init__(self, url: str, query: str = "", last_event_id: str = "") -> None:
        self.heard: list[Heard] = []
        self.last_id = ""
        self.is_ended = False
        self.failure: Exception | None = None
        headers = {"last-event-id": last_event_id} if last_event_id else {}
        self._http = httpx.Client(timeout=60.0)
        request = self._http.build_request("GET", f"{url}/api/v1/events{query}", headers=headers)
        self._response = self._http.send(request, stream=True)
        assert self._response.status_code == 200, self._response.read()
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        fields: dict[str, str] = {}
        try:
            for line in self._response.iter_lines():
                if line:
                    name, _, value = line.partition(": ")
                    fields[name] = value
                    continue
                self.last_id = fields.get("id", self.last_id)
                if "data" in fields:
                    self.heard.append(Heard(fields["id"], fields["event"], json.loads(fields["data"])))
                fields = {}
            self.is_ended = True
        except Exception as error:
            self.failure = error

    def wait_for(self, count: int) -> list[Heard]:
        wait_until(lambda: len(self.heard) >= count, f"{count} events, not {self.heard}", 30.0)
        return self.heard

    def close(self) -> None:
        wire = self._response.extensions["network_stream"].get_extra_info("socket")
        with suppress(OSError):  # the server may have hung up before
            wire.shutdown(socket.SHUT_RDWR)  # else the thread would go on reading
        self._response.close()
        self._http.close()
        self._thread.join(10.0)


@contextmanager
def listening(url: str, query: str = "", last_event_id: str = "") -> Iterator[Listener]:
    listener = Listener(url, query, last_event_id)
    wait_until(lambda: listener.last_id != "", "the first id", 30.0)
    try:
        yield listener
    finally:
        listener.close()


def requests_under_way(node: Node) -> int:
    text = httpx.get(f"{node.url}/metrics", timeout=10.0).text
    (line,) = (line for line in text.splitlines() if line.startswith("corvo_http_requests_in_flight{"))
    return int(float(line.split()[-1]))


def test_the_life_of_a_job_is_told_while_it_happens(shared_node: Node) -> None:
    with listening(shared_node.url, "?queues=ev.life") as listener:
        job_id = enqueue(shared_node, "ev.life")
        token = fetch(shared_node, "ev.life").json()["lease_token"]
        post(shared_node, f"/ack/{job_id}", {"lease_token": token})

        heard = listener.wait_for(3)

    assert [one.type for one in heard] == ["enqueued", "started", "completed"]
    assert {one.data["job_id"] for one in heard} == {job_id}
    assert [one.data["at_ns"] for one in heard] == sorted(one.data["at_ns"] for one in heard)


def test_a_stream_over_all_shards_is_resumed_without_loss_or_repetition(shared_node: Node) -> None:
    queues = [f"ev.resume.{number}" for number in range(12)]
    wanted = f"?queues={','.join(queues)}"
    heard: list[Heard] = []
    cursor = ""
    jobs = []
    for number in range(4):
        with listening(shared_node.url, wanted, cursor) as listener:
            jobs += [enqueue(shared_node, queue) for queue in queues]
            listener.wait_for(12 if number != 1 else 5)
        heard += listener.heard
        cursor = heard[-1].id
        jobs += [enqueue(shared_node, queue) for queue in queues[:3]]  # while nobody listens
    with listening(shared_node.url, wanted, cursor) as listener:
        wait_until(lambda: len(heard) + len(listener.heard) >= len(jobs), "the rest", 30.0)
    heard += listener.heard

    assert sorted(one.data["job_id"] for one in heard) == sorted(jobs)


def test_killed_shards_and_gateways_cost_no_event(node: Node) -> None:
    heard: list[Heard] = []
    jobs = [enqueue(node, f"ev.kill.{number}") for number in range(8)]
    with listening(node.url, "?from=start&types=enqueued") as listener:
        listener.wait_for(8)
        node.kill("shard-0")
        jobs += [enqueue(node, f"ev.kill.{number}") for number in range(8)]
        listener.wait_for(16)
        node.kill("gateway-0")
        wait_until(lambda: listener.is_ended or listener.failure is not None, "the end of the stream", 30.0)
    heard += listener.heard
    node.await_healthy(30.0)
    jobs += [enqueue(node, f"ev.kill.{number}") for number in range(8)]
    with listening(node.url, "?types=enqueued", listener.last_id) as listener:
        listener.wait_for(8)
    heard += listener.heard

    assert sorted(one.data["job_id"] for one in heard) == sorted(jobs)


def test_a_node_that_stops_ends_its_streams_at_once(folder: Path) -> None:
    node = Node.start(folder / "data")
    with listening(node.url) as listener:
        started = time.monotonic()
        assert node.stop() == 0
        wait_until(lambda: listener.is_ended, f"a clean end, not {listener.failure}", 10.0)

    assert time.monotonic() - started < 8.0


def test_clients_that_hang_up_leave_nothing_behind(shared_node: Node) -> None:
    host, _, port = shared_node.url.removeprefix("http://").partition(":")
    clients = [socket.create_connection((host, int(port)), 10.0) for _ in range(20)]
    for client in clients:
        client.sendall(b"GET /api/v1/events?from=start HTTP/1.1\r\nhost: localhost\r\n\r\n")
    wait_until(lambda: requests_under_way(shared_node) == 21, "all of them to listen", 30.0)

    for client in clients:
        client.close()

    wait_until(lambda: requests_under_way(shared_node) == 1, "only the question itself to be under way", 30.0)


def test_pages_hold_what_the_stream_told(shared_node: Node) -> None:
    job_id = enqueue(shared_node, "ev.pages")

    found, cursor = [], ""
    while True:
        query = {"limit": "7", "after_seq": cursor, "job_ids": job_id}
        page = httpx.get(f"{shared_node.url}/api/v1/cluster/events", params=query, timeout=20.0).json()
        found += page["events"]
        cursor = page["next"]
        if not page.get("has_more"):
            break

    assert [(event["type"], event["queue"]) for event in found] == [("enqueued", "ev.pages")]


def test_why_is_the_truth_of_the_moment(shared_node: Node) -> None:
    def why(job_id: str) -> dict[str, Any]:
        return dict(httpx.get(f"{shared_node.url}/api/v1/jobs/{job_id}/why", timeout=20.0).json())

    first, second = enqueue(shared_node, "ev.why"), enqueue(shared_node, "ev.why")
    assert why(first)["reason"] == "NO_WORKER"
    assert why(second)["jobs_ahead"]["count"] == 1
    fetch(shared_node, "ev.why")
    assert (why(first)["reason"], why(first)["worker_id"]) == ("RUNNING", "w1")
    assert why(second)["reason"] == "NEXT"


def test_a_stream_goes_on_with_another_node(folder: Path) -> None:
    with Cluster.start(folder, nodes=3, shards=2) as cluster:
        first, second = cluster.nodes[0], cluster.nodes[1]
        queues = [f"ev.{number}" for number in range(6)]
        jobs = []
        with listening(first.url) as listener:
            jobs += [enqueue(first, queue) for queue in queues]
            listener.wait_for(6)
        jobs += [enqueue(second, queue) for queue in queues]
        with listening(second.url, "", listener.heard[3].id) as other:
            other.wait_for(8)

    told = [one.data["job_id"] for one in listener.heard[:4] + other.heard]
    assert sorted(told) == sorted(jobs)

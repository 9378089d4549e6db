"""Bulk operations over real processes: the gateway is killed half-way, and every job is changed and counted once."""

import httpx
import pytest

from chaos.node import Node, wait_until

pytestmark = pytest.mark.system

JOBS = 12_000
QUEUES = 8  # over all shards


def test_a_killed_gateway_resumes_and_every_job_is_changed_exactly_once(node: Node) -> None:
    fill(node)
    cancel = begin(node, "cancel", "pending")
    told = finished(node, cancel, kills=0)
    assert (told["affected"], told["errors"]) == (JOBS, 0)

    retry = begin(node, "retry", "cancelled")
    told = finished(node, retry, kills=1)
    assert (told["affected"], told["errors"], told["processed"]) == (JOBS, 0, JOBS), told
    assert counts(node) == {"pending": JOBS}
    assert events_of(node, "retried") == JOBS, "each of them once"

    delete = begin(node, "delete", "pending")
    told = finished(node, delete, kills=2)
    assert (told["affected"], told["errors"], told["processed"]) == (JOBS, 0, JOBS), told
    assert counts(node) == {}
    assert events_of(node, "deleted") == JOBS


def fill(node: Node) -> None:
    with httpx.Client(base_url=node.url, timeout=30.0) as client:
        for first in range(0, JOBS, 1000):
            jobs = [{"queue": f"bulk.{number % QUEUES}"} for number in range(first, first + 1000)]
            client.post("/api/v1/enqueue/batch", json={"jobs": jobs}).raise_for_status()


def begin(node: Node, action: str, state: str) -> str:
    reply = httpx.post(
        f"{node.url}/api/v1/jobs/bulk", json={"action": action, "filter": {"state": [state]}}, timeout=30.0
    )
    assert reply.status_code == 202, reply.text
    assert reply.json()["estimated_total"] == JOBS
    return str(reply.json()["bulk_operation_id"])


def finished(node: Node, bulk_id: str, kills: int) -> dict[str, int]:
    """The record when it is over; the gateway is killed so often on the way, each time a little further on."""
    seen: dict[str, int] = {}

    def is_over() -> bool:
        nonlocal seen, kills
        try:
            reply = httpx.get(f"{node.url}/api/v1/bulk/{bulk_id}", timeout=10.0)
        except httpx.HTTPError:
            return False
        if reply.status_code != 200:
            return False
        progressed = reply.json()["processed"] > seen.get("processed", 0)
        seen = reply.json()
        if kills and progressed and seen["finished_at"] is None:
            kills -= 1
            node.kill("gateway")
        return seen["finished_at"] is not None

    wait_until(is_over, f"{bulk_id} to be over", 60.0)
    assert seen["status"] == "completed"
    assert kills == 0, "it was over before it could be killed"
    return seen


def counts(node: Node) -> dict[str, int]:
    """Jobs by state, as the shards know them."""
    reply = httpx.get(f"{node.url}/api/v1/queues", params={"consistent": "true"}, timeout=30.0)
    states = ("pending", "active", "held", "completed", "dead", "scheduled", "retrying", "cancelled")
    total = {state: sum(queue[state] for queue in reply.json()) for state in states}
    return {state: count for state, count in total.items() if count}


def events_of(node: Node, kind: str) -> int:
    """How often that happened to a job: the shards' own journal of what they did."""
    found, cursor = 0, ""
    with httpx.Client(base_url=node.url, timeout=30.0) as client:
        while True:
            query = {"after_seq": cursor, "limit": "1000", "types": kind}
            page = client.get("/api/v1/cluster/events", params=query).json()
            assert not page.get("missed")
            found += len(page["events"])
            cursor = page["next"]
            if not page.get("has_more"):
                return found

"""From method and path to endpoint."""

import pytest

from corvo.model.errors import Refusal
from gateway.app import ENDPOINTS
from gateway.routes import API, Routes
from tests.support.builders import job_id

JOB = job_id(1)
routes = Routes(ENDPOINTS)


@pytest.mark.parametrize(
    ("method", "path", "name", "parameters"),
    [
        ("POST", "/enqueue", "enqueue", ()),
        ("POST", "/enqueue/batch", "enqueue_batch", ()),
        ("POST", "/batch", "create_batch", ()),
        ("POST", "/batch/b1/seal", "seal_batch_by_its_old_path", ("b1",)),
        ("POST", "/batches/b1/seal", "seal_batch", ("b1",)),
        ("GET", "/batches/b1", "get_batch", ("b1",)),
        ("POST", "/fetch", "fetch", ()),
        ("POST", "/fetch/batch", "fetch_batch", ()),
        ("POST", "/ack/batch", "ack_batch", ()),  # not the ack of a job named batch
        ("POST", f"/ack/{JOB}", "ack", (JOB,)),
        ("POST", "/fail/batch", "fail_batch", ()),
        ("POST", f"/fail/{JOB}", "fail", (JOB,)),
        ("POST", "/heartbeat", "heartbeat", ()),
        ("POST", f"/jobs/{JOB}/cancel", "cancel", (JOB,)),
        ("POST", f"/jobs/{JOB}/retry", "retry", (JOB,)),
        ("POST", f"/jobs/{JOB}/requeue", "requeue", (JOB,)),
        ("POST", f"/jobs/{JOB}/hold", "hold", (JOB,)),
        ("POST", f"/jobs/{JOB}/approve", "approve", (JOB,)),
        ("POST", f"/jobs/{JOB}/reject", "reject", (JOB,)),
        ("POST", f"/jobs/{JOB}/move", "move", (JOB,)),
        ("POST", f"/jobs/{JOB}/priority", "change_priority", (JOB,)),
        ("POST", f"/jobs/{JOB}/replay", "replay", (JOB,)),
        ("DELETE", f"/jobs/{JOB}", "delete_job", (JOB,)),
        ("GET", f"/jobs/{JOB}", "get_job", (JOB,)),
        ("GET", "/jobs/search", "get_job", ("search",)),  # by GET it is an id, and no job has it
        ("POST", "/jobs/search", "search", ()),
        ("GET", "/search/fulltext", "fulltext", ()),
        ("GET", "/queues", "queues", ()),
        ("GET", "/queues/mail", "get_queue", ("mail",)),
        ("GET", "/queues/pause", "get_queue", ("pause",)),
        ("GET", "/queues/a\0b", "get_queue", ("a/b",)),  # a slash that came encoded
        ("POST", "/queues/mail/pause", "pause_queue", ("mail",)),
        ("POST", "/queues/a\0pause/pause", "pause_queue", ("a/pause",)),
        ("POST", "/queues/mail/resume", "resume_queue", ("mail",)),
        ("POST", "/queues/mail/drain", "drain_queue", ("mail",)),
        ("POST", "/queues/mail/clear", "clear_queue", ("mail",)),
        ("DELETE", "/queues/mail", "delete_queue", ("mail",)),
        ("DELETE", "/queues/a\0throttle", "delete_queue", ("a/throttle",)),
        ("POST", "/queues/mail/concurrency", "set_concurrency", ("mail",)),
        ("POST", "/queues/mail/throttle", "set_throttle", ("mail",)),
        ("DELETE", "/queues/mail/throttle", "remove_throttle", ("mail",)),
        ("POST", "/queues/mail/retention", "set_retention", ("mail",)),
        ("GET", "/batches", "batches", ()),
        ("GET", "/workers", "workers", ()),
        ("GET", "/workers/w1", "get_worker", ("w1",)),
        ("GET", "/workers/host\0w1", "get_worker", ("host/w1",)),
        ("GET", "/jobs/dead", "dead", ()),  # not the job of that id
        ("GET", "/jobs/held", "held", ()),
        ("GET", "/metrics/throughput", "throughput", ()),
        ("GET", "/queues/mail/throughput", "queue_throughput", ("mail",)),
        ("GET", "/queues/a\0throughput", "get_queue", ("a/throughput",)),
        ("GET", "/errors/groups", "error_groups", ()),
        ("GET", "/schedules", "schedules", ()),
        ("POST", "/schedules", "create_schedule", ()),
        ("GET", "/schedules/nightly", "get_schedule", ("nightly",)),
        ("PUT", "/schedules/nightly", "update_schedule", ("nightly",)),
        ("DELETE", "/schedules/nightly", "delete_schedule", ("nightly",)),
        ("POST", "/schedules/nightly/pause", "pause_schedule", ("nightly",)),
        ("POST", "/schedules/nightly/resume", "resume_schedule", ("nightly",)),
        ("POST", "/schedules/nightly/run", "run_schedule", ("nightly",)),
        ("GET", "/cluster/status", "cluster_status", ()),
        ("POST", "/cluster/join", "cluster_join", ()),
        ("POST", "/cluster/remove", "cluster_remove", ()),
        ("POST", "/cluster/transfer", "cluster_transfer", ()),
        ("POST", "/admin/rebuild-read-db", "rebuild_read_db", ()),
        ("POST", "/admin/rebuild-sqlite", "rebuild_sqlite", ()),
        ("GET", "/info", "info", ()),
        ("GET", "/events", "events", ()),
        ("GET", "/cluster/events", "cluster_events", ()),
        ("GET", f"/jobs/{JOB}/why", "why", (JOB,)),
        ("POST", "/jobs/bulk", "bulk", ()),
        ("POST", "/jobs/bulk-get", "bulk_get", ()),
        ("GET", "/bulk", "bulks", ()),
        ("GET", "/bulk/bulk_1", "get_bulk", ("bulk_1",)),
        ("GET", "/bulk/bulk_1/progress", "bulk_progress", ("bulk_1",)),
        ("POST", "/bulk/bulk_1/cancel", "cancel_bulk", ("bulk_1",)),
    ],
)
def test_each_route_is_found(method: str, path: str, name: str, parameters: tuple[str, ...]) -> None:
    match = routes.find(method, API + path)

    assert (match.endpoint.name, match.parameters) == (name, parameters)


def test_every_endpoint_has_its_row_above() -> None:
    table = test_each_route_is_found.pytestmark[0].args[1]

    assert {row[2] for row in table} == {endpoint.name for endpoint in ENDPOINTS}
    assert len({endpoint.name for endpoint in ENDPOINTS}) == len(ENDPOINTS)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "/enqueu",
        "/enqueue/",
        "//enqueue",
        "/enqueue//batch",
        "/Enqueue",
        "/enqueue/batch/more",
        "/ack",
        "/ack/",
        "/ack//",
        "/jobs",
        "/jobs/",
        "/jobs//cancel",
        f"/jobs/{JOB}/",
        f"/jobs/{JOB}/cancel/",
        f"/jobs/{JOB}/retrying",
        "/../enqueue",
        "/./enqueue",
        "/{job_id}",
        "/jobs/" + "a/" * 4_000,
        "/enqueue\n",
        "/enqueue\0",
        "x",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_nothing_is_served_elsewhere(method: str, path: str) -> None:
    with pytest.raises(Refusal) as refusal:
        routes.find(method, API + path)

    assert refusal.value.code == "NOT_FOUND"
    assert len(refusal.value.message) < 300


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/enqueue", "POST"),
        ("PUT", "/enqueue", "POST"),
        ("HEAD", "/info", "GET"),
        ("OPTIONS", "/fetch", "POST"),
        ("POST", "/queues", "GET"),
        ("PUT", f"/jobs/{JOB}", "DELETE, GET"),
        ("GET", f"/jobs/{JOB}/cancel", "POST"),
        ("PUT", "/jobs/search", "DELETE, GET, POST"),
        ("GET", "/ack/batch", "POST"),
    ],
)
def test_a_wrong_method_is_told_the_right_ones(method: str, path: str, allowed: str) -> None:
    with pytest.raises(Refusal, match=f"is served for {allowed}, not for {method}") as refusal:
        routes.find(method, API + path)

    assert refusal.value.code == "METHOD_NOT_ALLOWED"


def test_every_body_has_its_decoder() -> None:
    assert set(routes.decoders) == {endpoint.name for endpoint in ENDPOINTS if endpoint.body is not None}

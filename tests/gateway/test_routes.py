"""From method and path to endpoint."""

import pytest

from corvo.errors import Refusal
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
        ("POST", "/fetch", "fetch", ()),
        ("POST", "/fetch/batch", "fetch_batch", ()),
        ("POST", "/ack/batch", "ack_batch", ()),  # not the ack of a job named batch
        ("POST", f"/ack/{JOB}", "ack", (JOB,)),
        ("POST", "/fail/batch", "fail_batch", ()),
        ("POST", f"/fail/{JOB}", "fail", (JOB,)),
        ("POST", "/heartbeat", "heartbeat", ()),
        ("POST", f"/jobs/{JOB}/cancel", "cancel", (JOB,)),
        ("GET", f"/jobs/{JOB}", "get_job", (JOB,)),
        ("GET", "/jobs/search", "get_job", ("search",)),  # by GET it is an id, and no job has it
        ("POST", "/jobs/search", "search", ()),
        ("GET", "/queues", "queues", ()),
        ("GET", "/workers", "workers", ()),
        ("GET", "/cluster/status", "cluster_status", ()),
        ("POST", "/cluster/join", "cluster_join", ()),
        ("POST", "/cluster/remove", "cluster_remove", ()),
        ("POST", "/cluster/transfer", "cluster_transfer", ()),
        ("GET", "/info", "info", ()),
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
        f"/jobs/{JOB}/retry",
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
        ("DELETE", f"/jobs/{JOB}", "GET"),
        ("GET", f"/jobs/{JOB}/cancel", "POST"),
        ("DELETE", "/jobs/search", "GET, POST"),
        ("GET", "/ack/batch", "POST"),
    ],
)
def test_a_wrong_method_is_told_the_right_ones(method: str, path: str, allowed: str) -> None:
    with pytest.raises(Refusal, match=f"is served for {allowed}, not for {method}") as refusal:
        routes.find(method, API + path)

    assert refusal.value.code == "METHOD_NOT_ALLOWED"


def test_every_body_has_its_decoder() -> None:
    assert set(routes.decoders) == {endpoint.name for endpoint in ENDPOINTS if endpoint.body is not None}

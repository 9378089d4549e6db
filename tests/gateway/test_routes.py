"""From method and path to endpoint."""

import pytest

from corvo.endpoint import Endpoint
from corvo.model.errors import Refusal
from gateway.app import ENDPOINTS
from gateway.routes import API, Routes
from tests.support.builders import job_id
from tests.support.routes import sample_parameters, sample_path

JOB = job_id(1)
routes = Routes(ENDPOINTS)


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.name)
def test_each_route_leads_to_its_endpoint_with_its_parameters(endpoint: Endpoint) -> None:
    match = routes.find(endpoint.method, API + sample_path(endpoint))

    assert (match.endpoint.name, match.parameters) == (endpoint.name, sample_parameters(endpoint))


def test_every_endpoint_has_a_name_of_its_own() -> None:
    assert len({endpoint.name for endpoint in ENDPOINTS}) == len(ENDPOINTS)


@pytest.mark.parametrize(
    ("method", "path", "name", "parameters"),
    [
        ("POST", "/ack/batch", "ack_batch", ()),  # not the ack of a job named batch
        ("POST", "/fail/batch", "fail_batch", ()),
        ("GET", "/jobs/search", "get_job", ("search",)),  # by GET it is an id, and no job has it
        ("POST", "/jobs/search", "search", ()),
        ("GET", "/jobs/dead", "dead", ()),  # not the job of that id
        ("GET", "/dead", "dead", ()),  # an alias
        ("GET", "/held", "held", ()),
        ("GET", "/queues/pause", "get_queue", ("pause",)),
        ("GET", "/queues/a\0b", "get_queue", ("a/b",)),  # a slash that came encoded
        ("POST", "/queues/a\0pause/pause", "pause_queue", ("a/pause",)),
        ("DELETE", "/queues/a\0throttle", "delete_queue", ("a/throttle",)),
        ("GET", "/workers/host\0w1", "get_worker", ("host/w1",)),
        ("GET", "/queues/a\0throughput", "get_queue", ("a/throughput",)),
    ],
)
def test_names_that_look_like_routes_are_told_from_routes(
    method: str, path: str, name: str, parameters: tuple[str, ...]
) -> None:
    match = routes.find(method, API + path)

    assert (match.endpoint.name, match.parameters) == (name, parameters)


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
        ("POST", "/queues", "GET"),
        ("PUT", f"/jobs/{JOB}", "DELETE, GET"),
        ("GET", f"/jobs/{JOB}/cancel", "POST"),
        ("PUT", "/jobs/search", "DELETE, GET, POST"),
        ("GET", "/ack/batch", "POST"),
    ],
)
def test_a_wrong_method_is_told_the_right_ones(method: str, path: str, allowed: str) -> None:
    with pytest.raises(Refusal, match=f"supports {allowed}, not {method}") as refusal:
        routes.find(method, API + path)

    assert refusal.value.code == "METHOD_NOT_ALLOWED"


def test_every_body_has_its_decoder() -> None:
    assert set(routes.decoders) == {endpoint.name for endpoint in ENDPOINTS if endpoint.body is not None}

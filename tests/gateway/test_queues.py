"""Queues over HTTP: each route, its answer, its refusals."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

import msgspec
import pytest

from corvo.model.sharding import shard_of_queue
from tests.gateway.asgi import JSON, House, Reply, a_scope


@pytest.fixture
def house() -> Iterator[House]:
    with House() as house:
        yield house


def send(house: House, method: str, address: str, body: Any = None) -> Reply:
    """A request as a client spells it: the path percent-encoded, with what stands after a `?`."""
    raw, _, query = ("/api/v1" + address).partition("?")
    scope = a_scope(
        method,
        unquote(raw),
        [] if body is None else [JSON],
        raw_path=raw.encode(),
        query_string=query.encode(),
    )
    return house.ask(scope, b"" if body is None else msgspec.json.encode(body))


@pytest.mark.parametrize("name", ["mail", "a:b.c-d", "a%2Fb", "a%2Fpause", "a%2Fthrottle"])
def test_a_queue_is_paused_looked_at_and_resumed(house: House, name: str) -> None:
    queue = unquote(name)
    house.enqueue(queue)

    assert send(house, "POST", f"/queues/{name}/pause").json == {"status": "paused"}
    assert house.post("/fetch", {"queues": [queue], "worker_id": "w", "timeout": 0}).status == 204
    seen = send(house, "GET", f"/queues/{name}").json
    assert (seen["name"], seen["status"], seen["paused"], seen["pending"]) == (queue, "paused", True, 1)
    assert send(house, "POST", f"/queues/{name}/resume").json == {"status": "resumed"}
    assert house.fetch(queue)["queue"] == queue


def test_a_drain_tells_what_is_active_until_nothing_is(house: House) -> None:
    house.enqueue()
    job = house.fetch()

    assert send(house, "POST", "/queues/mail/drain").json == {"status": "draining", "active": 1}
    assert send(house, "GET", "/queues/mail").json["status"] == "draining"
    house.post(f"/ack/{job['job_id']}", {"lease_token": job["lease_token"]})
    assert send(house, "GET", "/queues/mail").json["status"] == "drained"
    assert send(house, "POST", "/queues/mail/drain").json == {"status": "drained", "active": 0}


def test_limits_are_set_seen_and_removed(house: House) -> None:
    for path, body in (("concurrency", {"max": 3}), ("throttle", {"rate": 5, "window_ms": 60_000})):
        assert send(house, "POST", f"/queues/mail/{path}", body).json == {"status": "ok"}
    kept = {"completed": "1h", "dead": "forever"}
    assert send(house, "POST", "/queues/mail/retention", kept).json == {"status": "ok"}

    seen = send(house, "GET", "/queues/mail").json
    assert (seen["max_concurrency"], seen["rate_limit"], seen["rate_window_ms"], seen["rate_room"]) == (3, 5, 60_000, 5)
    assert seen["retention"] == {"completed_ms": 3_600_000, "dead_ms": None, "cancelled_ms": 604_800_000}

    assert send(house, "DELETE", "/queues/mail/throttle").json == {"status": "ok"}
    assert send(house, "POST", "/queues/mail/concurrency", {"max": 0}).json == {"status": "ok"}
    seen = send(house, "GET", "/queues/mail").json
    assert (seen["max_concurrency"], seen["rate_limit"], seen["rate_window_ms"], seen["rate_room"]) == (None,) * 4


def test_the_window_of_a_throttle_may_be_a_duration(house: House) -> None:
    send(house, "POST", "/queues/mail/throttle", {"rate": 100, "period": "1m"})
    assert send(house, "GET", "/queues/mail").json["rate_window_ms"] == 60_000

    send(house, "POST", "/queues/mail/throttle", {"rate": 100, "period": "1m", "window_ms": 5_000})
    assert send(house, "GET", "/queues/mail").json["rate_window_ms"] == 5_000


def test_a_long_queue_is_cleared_by_one_request(house: House) -> None:
    for _ in range(3):
        house.post("/enqueue/batch", {"jobs": [{"queue": "mail"}] * 900})
    job = house.fetch()

    assert send(house, "POST", "/queues/mail/clear").json == {"status": "cleared", "deleted": 2_699}
    seen = send(house, "GET", "/queues/mail").json
    assert (seen["pending"], seen["active"], seen["left"]) == (0, 1, 1)
    assert house.post(f"/ack/{job['job_id']}", {"lease_token": job["lease_token"]}).status == 200


def test_a_queue_is_deleted_only_when_it_is_confirmed_and_no_job_is_active(house: House) -> None:
    house.enqueue()
    house.enqueue()
    house.fetch()

    refused = send(house, "DELETE", "/queues/mail")
    assert (refused.status, refused.code, refused.json["field"]) == (400, "VALIDATION_ERROR", "confirm")
    assert "?confirm=true" in refused.json["error"]
    refused = send(house, "DELETE", "/queues/mail?confirm=true")
    assert (refused.status, refused.code) == (409, "WRONG_STATE")
    assert send(house, "DELETE", "/queues/mail?confirm=true&force=true").json == {"status": "deleted"}
    assert send(house, "GET", "/queues/mail").status == 404
    assert send(house, "DELETE", "/queues/mail?confirm=true").code == "QUEUE_NOT_FOUND"


@pytest.mark.parametrize("query", ["confirm=perhaps", "sure=true", "confirm=%ff"])
def test_what_stands_after_the_question_mark_is_checked(house: House, query: str) -> None:
    house.enqueue()

    assert send(house, "DELETE", f"/queues/mail?{query}").code == "VALIDATION_ERROR"
    assert send(house, "GET", "/queues/mail").status == 200


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "", None),
        ("POST", "/resume", None),
        ("POST", "/clear", None),
        ("POST", "/concurrency", {"max": 0}),
        ("DELETE", "/throttle", None),
        ("DELETE", "?confirm=true", None),
    ],
)
def test_an_unknown_queue_is_told_so(house: House, method: str, path: str, body: Any) -> None:
    reply = send(house, method, f"/queues/mial{path}", body)

    assert (reply.status, reply.code) == (404, "QUEUE_NOT_FOUND")


@pytest.mark.parametrize(("path", "body"), [("pause", None), ("drain", None), ("concurrency", {"max": 2})])
def test_a_decision_about_an_unknown_queue_makes_it(house: House, path: str, body: Any) -> None:
    assert send(house, "POST", f"/queues/new/{path}", body).status == 200
    assert send(house, "GET", "/queues/new").json["enqueued"] == 0


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("concurrency", {}),
        ("concurrency", {"max": "3"}),
        ("concurrency", {"max": 10**9}),
        ("throttle", {"rate": 0, "window_ms": 1_000}),
        ("throttle", {"rate": 1, "window_ms": 999}),
        ("throttle", {"rate": 1, "window_ms": 86_400_001}),
        ("throttle", {"rate": 100_001, "window_ms": 1_000}),
        ("throttle", {"rate": 1}),
        ("throttle", {"rate": 1, "period": "1x"}),
        ("throttle", {"rate": 1, "period": "999ms"}),
        ("throttle", {"rate": 1, "period": "25h"}),
        ("throttle", {"rate": 1, "period": 60}),
        ("retention", {}),
        ("retention", {"dead": "soon"}),
        ("retention", {"dead": 5}),
    ],
)
def test_bad_bodies_are_refused_before_any_shard_is_asked(house: House, path: str, body: Any) -> None:
    assert send(house, "POST", f"/queues/mail/{path}", body).code == "VALIDATION_ERROR"
    assert house.shards.asked == []


@pytest.mark.parametrize("name", ["%20", "-a", "a%7Cb", "%C3%A4", "a%0Ab", "%2Fa", "a" * 201, "a%252Fb"])
@pytest.mark.parametrize(("method", "rest"), [("GET", ""), ("POST", "/pause"), ("DELETE", "?confirm=true")])
def test_what_is_no_name_is_refused_before_any_shard_is_asked(house: House, name: str, method: str, rest: str) -> None:
    assert send(house, method, f"/queues/{name}{rest}").code == "VALIDATION_ERROR"
    assert house.shards.asked == []


def test_the_shard_of_the_queue_is_asked_and_no_other(house: House) -> None:
    for name in ("a", "b", "c", "d"):
        send(house, "POST", f"/queues/{name}/pause")

    assert [shard for shard, _ in house.shards.asked] == [shard_of_queue(name, 4) for name in ("a", "b", "c", "d")]


def test_a_weighted_fetch_serves_all_its_queues(house: House) -> None:
    for queue in ("a", "b", "c"):
        for _ in range(5):
            house.enqueue(queue)
    asked = {"strategy": "weighted", "weights": {"a": 5}, "pool_size": 4, "version": "1.0"}

    found = [house.fetch("a", "b", "c", **asked)["queue"] for _ in range(15)]

    assert sorted(found) == ["a"] * 5 + ["b"] * 5 + ["c"] * 5
    reply = house.post("/fetch", {"queues": ["a"], "worker_id": "w", "timeout": 0, "weights": {"a": 1}})
    assert (reply.status, reply.json["field"]) == (400, "weights")

"""How a request travels through the whole application: every route of jobs over fake shards, and what stands around."""

import asyncio
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from corvo.model.errors import Refusal
from corvo.model.sharding import shard_of_job, shard_of_queue
from corvo.ops.jobs.enqueue import Enqueue
from corvo.ops.jobs.fetch import Fetch
from gateway import app as app_module
from gateway.app import Gateway
from gateway.metrics import Metrics
from tests.gateway.asgi import House, a_scope, call, parts
from tests.gateway.fake_shards import FakeShards
from tests.support.builders import NOW, SECOND, an_asking, job_id, promote

# One queue on each of four shards.
QUEUES = tuple(next(f"q{n}" for n in range(100) if shard_of_queue(f"q{n}", 4) == shard) for shard in range(4))


# Enqueue


def test_enqueue_answers_201_with_the_id_and_the_status() -> None:
    with House() as house:
        reply = house.post("/enqueue", {"queue": "mail", "payload": {"to": "a"}})

    assert reply.status == 201
    assert set(reply.json) == {"job_id", "status", "unique_existing"}
    assert (reply.json["status"], reply.json["unique_existing"]) == ("pending", False)
    assert shard_of_job(reply.json["job_id"], 4) == shard_of_queue("mail", 4)


def test_a_job_for_later_is_scheduled_and_one_for_earlier_is_pending() -> None:
    with House() as house:
        later = house.post("/enqueue", {"queue": "mail", "scheduled_at": "2026-01-01T01:00:00+01:00"})
        sooner = house.post("/enqueue", {"queue": "mail", "scheduled_at": "2026-01-01T00:00:01Z"})
        earlier = house.post("/enqueue", {"queue": "mail", "scheduled_at": "2025-12-31T23:59:59Z"})
        shown = house.get(f"/jobs/{sooner.json['job_id']}").json

    assert [reply.json["status"] for reply in (later, sooner, earlier)] == ["pending", "scheduled", "pending"]
    assert (shown["state"], shown["scheduled_at"]) == ("scheduled", "2026-01-01T00:00:01.000000000Z")


def test_a_promoted_job_has_no_moment_any_more() -> None:
    with House(1) as house:
        job = house.enqueue(scheduled_at="2026-01-01T00:00:01Z")
        house.shards.machines[0].one(promote(), at=NOW + SECOND)
        shown = house.get(f"/jobs/{job}").json

    assert (shown["state"], shown.get("scheduled_at")) == ("pending", None)


def test_a_job_without_a_payload_has_an_empty_one() -> None:
    with House() as house:
        house.enqueue()

        assert house.fetch()["payload"] == {}


def test_every_field_of_enqueue_is_shown_again() -> None:
    with House() as house:
        job = house.enqueue(
            priority="high",
            payload=[1],
            max_retries=7,
            retry_backoff="linear",
            retry_base_delay="1m30s",
            retry_max_delay_ms=90_000,
            tags={"a": "b"},
            checkpoint={"at": 1},
            parent_id="p",
        )
        shown = house.get(f"/jobs/{job}").json

    assert shown == {
        "id": job,
        "queue": "mail",
        "state": "pending",
        "payload": [1],
        "priority": 1,
        "attempt": 0,
        "max_retries": 7,
        "retry_backoff": "linear",
        "retry_base_delay_ms": 90_000,
        "retry_max_delay_ms": 90_000,
        "tags": {"a": "b"},
        "checkpoint": {"at": 1},
        "parent_id": "p",
        "created_at": "2026-01-01T00:00:00.000000000Z",
    }


def test_a_batch_over_all_shards_is_answered_in_the_order_of_the_request() -> None:
    queues = [QUEUES[number % 4] for number in (3, 0, 2, 2, 1, 0, 3)]
    with House() as house:
        reply = house.post("/enqueue/batch", {"jobs": [{"queue": q, "payload": n} for n, q in enumerate(queues)]})
        shown = [house.get(f"/jobs/{job}").json for job in reply.json["job_ids"]]

    assert reply.status == 201
    assert set(reply.json) == {"job_ids"}
    assert [(job["queue"], job["payload"]) for job in shown] == [(q, n) for n, q in enumerate(queues)]
    asked = [(shard, len(ask.jobs)) for shard, ask in house.shards.asked if isinstance(ask, Enqueue)]
    assert asked == [(3, 2), (0, 2), (2, 2), (1, 1)], "one operation for each shard"


# Fetch


def test_fetch_answers_200_with_what_a_worker_needs() -> None:
    with House() as house:
        job = house.enqueue(payload={"n": 1}, tags={"a": "b"}, checkpoint=5)
        fetched = house.fetch()

    assert fetched == {
        "job_id": job,
        "queue": "mail",
        "payload": {"n": 1},
        "attempt": 1,
        "max_retries": 3,
        "lease_duration": 60,
        "lease_token": 1,
        "checkpoint": 5,
        "tags": {"a": "b"},
    }


def test_what_a_job_does_not_have_is_left_out_of_the_fetched_job() -> None:
    with House() as house:
        house.enqueue()

        assert set(house.fetch()) == {
            "job_id",
            "queue",
            "payload",
            "attempt",
            "max_retries",
            "lease_duration",
            "lease_token",
        }


def test_a_lease_is_whole_where_it_is_whole() -> None:
    with House() as house:
        for _ in range(2):
            house.enqueue()
        whole = house.post("/fetch", {"queues": ["mail"], "worker_id": "w1", "lease_duration": 90.0})
        broken = house.post("/fetch", {"queues": ["mail"], "worker_id": "w1", "lease_duration": 1.5})

    assert b'"lease_duration":90,' in whole.content
    assert b'"lease_duration":1.5,' in broken.content


def test_fetch_with_nothing_to_fetch_is_204_and_a_batch_an_empty_list() -> None:
    with House() as house:
        one = house.post("/fetch", {"queues": ["mail"], "worker_id": "w1", "timeout": 0})
        many = house.post("/fetch/batch", {"queues": list(QUEUES), "worker_id": "w1", "timeout": 0.01, "count": 5})

    assert (one.status, one.content) == (204, b"")
    assert (many.status, many.json) == (200, {"jobs": []})


def test_fetch_batch_takes_up_to_its_count_in_the_order_of_the_queues() -> None:
    with House() as house:
        for number in range(8):
            house.enqueue(QUEUES[number % 4], payload=number)
        body = {"queues": [QUEUES[2], QUEUES[0]], "worker_id": "w1", "count": 3}
        first = house.post("/fetch/batch", body).json["jobs"]
        second = house.post("/fetch/batch", body).json["jobs"]

    assert [job["payload"] for job in first] == [2, 6, 0]
    assert [job["payload"] for job in second] == [4]


def test_a_queue_named_twice_is_asked_once() -> None:
    with House() as house:
        house.post("/fetch", {"queues": ["mail", "mail"], "worker_id": "w1", "timeout": 0})

    assert [ask.queues for _, ask in house.shards.asked if isinstance(ask, Fetch)] == [["mail"]]


# The end of a claim


def test_an_ack_completes_the_job_with_its_result() -> None:
    with House() as house:
        job = house.enqueue()
        token = house.fetch()["lease_token"]
        reply = house.post(f"/ack/{job}", b'{"result": {"ok" : true}, "checkpoint": 7, "lease_token": %d}' % token)
        shown = house.get(f"/jobs/{job}")

    assert (reply.status, reply.json) == (200, {"status": "ok"})
    assert (shown.json["state"], shown.json["checkpoint"]) == ("completed", 7)
    assert b'"result":{"ok" : true}' in shown.content
    assert "completed_at" in shown.json
    assert "lease_expires_at" not in shown.json


@pytest.mark.parametrize("body", [b"", b"{}", b'{"result":null,"lease_token":null}'])
def test_an_ack_needs_no_body(body: bytes) -> None:
    with House() as house:
        job = house.enqueue()
        house.fetch()

        assert house.ask(a_scope("POST", f"/api/v1/ack/{job}", [] if not body else None), body).status == 200


def test_an_ack_is_the_same_when_it_is_sent_again_under_its_lease() -> None:
    with House() as house:
        job = house.enqueue()
        token = house.fetch()["lease_token"]
        replies = [house.post(f"/ack/{job}", {"lease_token": token}) for _ in range(2)]

    assert [reply.json for reply in replies] == [{"status": "ok"}] * 2


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [({"lease_token": 9}, 409, "LEASE_LOST"), ({}, 409, "WRONG_STATE")],
)
@pytest.mark.parametrize("route", ["ack", "fail"])
def test_who_does_not_hold_the_job_is_told_so(route: str, body: Any, status: int, code: str) -> None:
    with House() as house:
        job = house.enqueue()
        reply = house.post(f"/{route}/{job}", body)

    assert (reply.status, reply.code) == (status, code)
    assert job in reply.json["error"]


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/ack/{}"), ("POST", "/fail/{}"), ("POST", "/jobs/{}/cancel"), ("GET", "/jobs/{}")],
)
def test_an_unknown_job_is_404(method: str, path: str) -> None:
    with House() as house:
        reply = house.ask(a_scope(method, "/api/v1" + path.format(job_id(1))))

    assert (reply.status, reply.code) == (404, "JOB_NOT_FOUND")
    assert reply.json["error"] == f"no job has the id '{job_id(1)}'"


def test_an_ack_batch_answers_each_job_for_itself_in_order() -> None:
    with House() as house:
        jobs = [house.enqueue(queue) for queue in QUEUES]
        tokens = {job["job_id"]: job["lease_token"] for job in (house.fetch(queue) for queue in QUEUES[:3])}
        acks = [
            {"job_id": jobs[2], "lease_token": tokens[jobs[2]]},
            {"job_id": jobs[3]},
            {"job_id": job_id(1, shard=1)},
            {"job_id": "stranger"},
            {"job_id": job_id(1, shard=99)},
            {"job_id": jobs[0], "lease_token": 5},
            {"job_id": jobs[1], "result": [1]},
        ]
        reply = house.post("/ack/batch", {"acks": acks})

    assert reply.status == 200
    assert reply.json["acked"] == 2
    assert [result.get("status", result.get("code")) for result in reply.json["results"]] == [
        "ok",
        "WRONG_STATE",
        "JOB_NOT_FOUND",
        "JOB_NOT_FOUND",
        "JOB_NOT_FOUND",
        "LEASE_LOST",
        "ok",
    ]
    assert all(set(result) in ({"status"}, {"error", "code"}) for result in reply.json["results"])


def test_a_failure_says_what_comes_next() -> None:
    with House() as house:
        job = house.enqueue(max_retries=2, retry_base_delay="0s")
        house.fetch()
        first = house.post(f"/fail/{job}", {"error": "boom", "backtrace": "line 1"})
        shown = house.get(f"/jobs/{job}").json

    assert first.status == 200
    assert first.json == {
        "status": "retrying",
        "attempts_remaining": 1,
        "next_attempt_at": "2026-01-01T00:00:00.000000000Z",
    }
    assert [(error["error"], error["backtrace"], error["attempt"]) for error in shown["errors"]] == [
        ("boom", "line 1", 1)
    ]


def test_the_last_failure_is_death() -> None:
    with House() as house:
        job = house.enqueue(max_retries=1)
        house.fetch()
        reply = house.post(f"/fail/{job}")

    assert reply.json == {"status": "dead", "attempts_remaining": 0}


def test_a_fail_batch_answers_each_job_for_itself_in_order() -> None:
    with House() as house:
        jobs = [house.enqueue(queue, max_retries=1) for queue in QUEUES[:2]]
        house.fetch(QUEUES[1])
        fails = [{"job_id": job, "error": "x"} for job in (jobs[0], "stranger", jobs[1])]
        reply = house.post("/fail/batch", {"fails": fails})

    assert reply.json["failed"] == 1
    assert [result.get("status", result.get("code")) for result in reply.json["results"]] == [
        "WRONG_STATE",
        "JOB_NOT_FOUND",
        "dead",
    ]


# Heartbeat and cancel


def test_a_heartbeat_answers_for_each_job() -> None:
    with House() as house:
        held, cancelled, lost = (house.enqueue(queue) for queue in QUEUES[:3])
        tokens = [house.fetch(queue)["lease_token"] for queue in QUEUES[:3]]
        house.post(f"/jobs/{cancelled}/cancel")
        beats = {
            lost: {"lease_token": tokens[2] + 1},
            held: {"lease_token": tokens[0], "progress": {"done": 1}, "checkpoint": {"at": 2}},
            cancelled: {"lease_token": tokens[1]},
            "stranger": {},
            "stranger-with-token": {"lease_token": 1},
            job_id(1): {},
            job_id(2): {"lease_token": 3},
        }
        reply = house.post("/heartbeat", {"jobs": beats})
        shown = house.get(f"/jobs/{held}").json

    assert reply.status == 200
    assert list(reply.json["jobs"].items()) == [
        (lost, {"status": "lease_lost"}),
        (held, {"status": "ok"}),
        (cancelled, {"status": "cancel"}),
        ("stranger", {"status": "cancel"}),
        ("stranger-with-token", {"status": "lease_lost"}),
        (job_id(1), {"status": "cancel"}),
        (job_id(2), {"status": "cancel"}),
    ]
    assert (shown["progress"], shown["checkpoint"]) == ({"done": 1}, {"at": 2})


def test_a_heartbeat_without_a_token_speaks_for_the_live_claim() -> None:
    with House() as house:
        job = house.enqueue()
        house.fetch()

        assert house.post("/heartbeat", {"jobs": {job: {}}}).json == {"jobs": {job: {"status": "ok"}}}


def test_a_heartbeat_renews_by_the_span_of_the_claim() -> None:
    with House() as house:
        job = house.enqueue()
        house.post("/fetch", {"queues": ["mail"], "worker_id": "w1", "lease_duration": 90})
        house.shards.machines[shard_of_queue("mail", 4)].now = NOW + 50 * SECOND
        house.post("/heartbeat", {"jobs": {job: {}}})

        assert house.get(f"/jobs/{job}").json["lease_expires_at"] == "2026-01-01T00:02:20.000000000Z"


def test_cancel_says_whether_a_worker_has_yet_to_stop() -> None:
    with House() as house:
        idle, busy = house.enqueue(QUEUES[0]), house.enqueue(QUEUES[1])
        house.fetch(QUEUES[1])
        replies = [house.post(f"/jobs/{job}/cancel") for job in (idle, busy)]
        again = house.post(f"/jobs/{idle}/cancel")

    assert [(reply.status, reply.json) for reply in replies] == [
        (200, {"status": "cancelled"}),
        (200, {"status": "cancelling"}),
    ]
    assert (again.status, again.code) == (409, "WRONG_STATE")


# Payloads, to the byte

PAYLOADS = [
    b"{}",
    b"null",
    b"0",
    b'"x"',
    b"[ 1 ,  2 ]",
    b'{ "a" : 1 }',
    b'{"a":1,"a":2}',
    b'{"b":1,"a":2}',
    b'"\\u00e4\\n\\/"',
    '"ä😀\u2028"'.encode(),
    b'"\\ud83d\\ude00"',
    b'"\\u0000"',
    b"123456789012345678901234567890",
    b"-0",
    b"1.10",
    b"1E+2",
    b"1e308",
    b"0.1000000000000000055511151231257827",
    b"[\n\t1\r\n]",
    b"[" * 60 + b"]" * 60,
]


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_payload_comes_out_as_it_went_in(payload: bytes) -> None:
    with House() as house:
        check_payload(house, payload)


@given(
    st.recursive(
        st.sampled_from(PAYLOADS) | st.text(max_size=5).map(msgspec.json.encode),
        lambda inner: (
            st.lists(inner, max_size=3).map(lambda items: b"[ " + b" ,".join(items) + b"]")
            | inner.map(lambda item: b'{"k" :' + item + b', "k": \n' + item + b" }")
        ),
        max_leaves=6,
    ).filter(lambda payload: len(payload) < 900 and payload.count(b"[") < 63)
)
def test_any_payload_comes_out_as_it_went_in(payload: bytes) -> None:
    with House() as house:
        check_payload(house, payload)


def check_payload(house: House, payload: bytes) -> None:
    job = house.post("/enqueue", b'{"queue": "mail", "payload": ' + payload + b' , "tags": {"a":"b"}}').json["job_id"]
    shown = house.get(f"/jobs/{job}").content
    fetched = house.post("/fetch", {"queues": ["mail"], "worker_id": "w1"}).content

    assert b'"payload":' + payload + b',"priority"' in shown
    assert b'"payload":' + payload + b',"attempt"' in fetched


# What stands around


def test_every_endpoint_has_a_plan_or_a_handler() -> None:
    with pytest.raises(AssertionError, match="no handler serves"):
        Gateway(FakeShards(), an_asking(), {}, lambda *_: None, Metrics(), None)  # type: ignore[arg-type,return-value]


def test_a_refusal_of_a_shard_reaches_the_client() -> None:
    with House() as house:
        house.shards.refusing[shard_of_queue("mail", 4)] = Refusal("OVERLOADED", "later", retry_after_ms=100)
        reply = house.post("/enqueue", {"queue": "mail"})

    assert (reply.status, reply.json["retry_after_ms"]) == (429, 100)
    assert reply.headers["retry-after"] == "0.100"


def test_too_many_requests_at_once_are_turned_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app_module, "REQUESTS_MAX", 0)
    with House() as house:
        reply = house.post("/enqueue", {"queue": "mail"})

    assert (reply.status, reply.code) == (429, "OVERLOADED")
    assert house.shards.asked == []
    assert house.metrics.in_flight == 0


def test_a_failure_of_ours_is_logged_and_answered_without_its_reason() -> None:
    with House() as house:
        house.shards.machines.clear()
        house.shards.__class__ = type("Broken", (FakeShards,), {"__len__": lambda self: 4})
        with capture_logs() as logs:
            reply = house.runner.run(call(house.app, a_scope(), parts(b'{"queue": "mail"}')))

    assert (reply.status, reply.code) == (500, "INTERNAL_ERROR")
    assert b"Index" not in reply.content
    assert [(line["event"], line["route"]) for line in logs] == [("request failed", "/enqueue")]
    assert house.metrics.in_flight == 0


def test_what_is_not_of_the_interface_is_left_to_the_pages() -> None:
    with House() as house:
        assert house.ask(a_scope("GET", "/docs")).content == b"a page"
        assert house.ask(a_scope("GET", "/elsewhere")).status == 404


def test_pages_stand_behind_the_same_edge() -> None:
    with House() as house:
        assert house.ask(a_scope("TRACE", "/docs")).status == 405
        assert house.ask(a_scope("GET", "/docs", http_version="2")).status == 505
        assert house.ask(a_scope("GET", "/" + "a" * 10_000)).status == 414


def test_a_client_that_leaves_before_its_body_came_gets_nothing_and_disturbs_nobody() -> None:
    async def leave() -> Any:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        raise AssertionError("nobody is there")

    with House() as house:
        house.runner.run(house.app(a_scope(), leave, send))

        assert house.shards.asked == []
        assert house.metrics.in_flight == 0
        assert house.enqueue()


def test_web_sockets_are_closed_at_once() -> None:
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    with House() as house:
        house.runner.run(house.app({"type": "websocket", "query_string": b"", "path": "/"}, receive, send))

    assert [message["type"] for message in sent] == ["websocket.close"]


def test_the_servers_life_is_acknowledged() -> None:
    messages = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]
    sent: list[Any] = []

    async def receive() -> Any:
        return messages.pop(0)

    async def send(message: Any) -> None:
        sent.append(message["type"])

    with House() as house:
        house.runner.run(house.app({"type": "lifespan"}, receive, send))

    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


def test_a_job_can_live_its_whole_life_over_http() -> None:
    with House() as house:
        job = house.enqueue(max_retries=3, retry_backoff="none", payload={"n": 1})
        machine = house.shards.machines[shard_of_queue("mail", 4)]
        token = house.fetch()["lease_token"]
        house.post(f"/fail/{job}", {"error": "once", "lease_token": token})
        machine.apply(promote())
        token = house.fetch()["lease_token"]
        house.post("/heartbeat", {"jobs": {job: {"lease_token": token, "progress": {"half": True}}}})
        house.post(f"/ack/{job}", {"lease_token": token, "result": "done"})
        shown = house.get(f"/jobs/{job}").json

    assert (shown["state"], shown["attempt"], shown["result"], shown["progress"]) == (
        "completed",
        2,
        "done",
        {"half": True},
    )
    assert [error["error"] for error in shown["errors"]] == ["once"]
    machine.check()


def test_requests_do_not_wait_for_each_other() -> None:
    async def both(house: House) -> tuple[int, int]:
        waiting = asyncio.create_task(
            call(
                house.app,
                a_scope("POST", "/api/v1/fetch"),
                parts(b'{"queues": ["mail"], "worker_id": "w1", "timeout": 30}'),
            )
        )
        await asyncio.sleep(0)
        enqueued = await call(house.app, a_scope(), parts(b'{"queue": "mail"}'))
        return (await waiting).status, enqueued.status

    with House() as house:
        assert house.runner.run(both(house)) == (200, 201)

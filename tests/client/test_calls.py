"""What is sent for each request, and how answers are read. No server."""

import msgspec
import pytest

from corvo.client import calls
from corvo.client.answers import Enqueued
from corvo.client.bodies import (
    AckBody,
    DeleteQueueQuery,
    EnqueueBody,
    FetchBatchBody,
    FetchBody,
    HeartbeatBody,
    HeartbeatJob,
    SearchBody,
)
from corvo.client.calls import ServerRefused, read_answer

NO_HEADERS: dict[str, str] = {}


def test_a_body_names_only_what_differs_from_the_defaults() -> None:
    call = calls.call_of("enqueue", EnqueueBody(queue="mail", payload=msgspec.Raw(b'{"n": 1}'), priority="high"))

    assert (call.method, call.path) == ("POST", "/api/v1/enqueue")
    assert call.body == b'{"queue":"mail","payload":{"n": 1},"priority":"high"}'


def test_a_body_inside_a_body_is_lean_too() -> None:
    call = calls.call_of("heartbeat", HeartbeatBody(jobs={"s00_job_a": HeartbeatJob(lease_token=3)}))

    assert call.body == b'{"jobs":{"s00_job_a":{"lease_token":3}}}'


@pytest.mark.parametrize(
    "body",
    [
        EnqueueBody(queue="mail", tags=msgspec.Raw(b'{"a":"b"}'), max_retries=0),
        FetchBatchBody(queues=["mail"], worker_id="w", count=7, timeout=0.0),
        SearchBody(state=["dead"], limit=3, order="asc"),
        HeartbeatBody(jobs={"s00_job_a": HeartbeatJob()}),
    ],
)
def test_what_the_server_reads_would_be_sent_the_same(body: msgspec.Struct) -> None:
    sent = msgspec.json.encode(calls.without_defaults(body))

    read = msgspec.json.decode(sent, type=type(body))
    assert msgspec.json.encode(calls.without_defaults(read)) == sent


def test_a_query_names_only_what_was_said() -> None:
    call = calls.call_of("delete_queue", None, DeleteQueueQuery(confirm=True), name="a/b")

    assert (call.method, call.path) == ("DELETE", "/api/v1/queues/a%2Fb?confirm=true")
    assert call.wait_s == 600


def test_a_job_id_cannot_leave_its_place_in_the_path() -> None:
    call = calls.call_of("ack", AckBody(), job_id="../queues?x=1#")

    assert call.path == "/api/v1/ack/..%2Fqueues%3Fx%3D1%23"


def test_a_fetch_tells_the_driver_how_long_the_server_may_wait() -> None:
    assert calls.call_of("fetch", FetchBody(queues=["mail"], worker_id="w", timeout=12)).wait_s == 12
    assert calls.call_of("queues").wait_s == 0


def test_an_answer_is_typed() -> None:
    call = calls.call_of("enqueue", EnqueueBody(queue="mail"))

    answer = read_answer(call, 201, NO_HEADERS, b'{"job_id": "s00_job_a", "status": "pending", "new_field": 1}')

    assert answer == Enqueued("s00_job_a", "pending")


def test_no_job_to_fetch_is_no_refusal() -> None:
    assert read_answer(calls.call_of("fetch", FetchBody(queues=["q"], worker_id="w")), 204, NO_HEADERS, b"") is None


def test_a_refusal_carries_code_sentence_status_and_pause() -> None:
    with pytest.raises(ServerRefused) as refused:
        read_answer(calls.call_of("queues"), 429, {"retry-after": "2"}, b'{"error": "too much", "code": "OVERLOADED"}')

    assert (refused.value.code, refused.value.message, refused.value.status) == ("OVERLOADED", "too much", 429)
    assert refused.value.retry_after_s == 2
    assert refused.value.may_retry


@pytest.mark.parametrize("status", [400, 404, 409, 500, 504])
def test_only_what_changed_nothing_may_be_sent_again(status: int) -> None:
    with pytest.raises(ServerRefused) as refused:
        read_answer(calls.call_of("queues"), status, NO_HEADERS, b'{"error": "no", "code": "X"}')

    assert not refused.value.may_retry


def test_a_page_of_a_proxy_is_named_as_such() -> None:
    with pytest.raises(ServerRefused) as refused:
        read_answer(
            calls.call_of("queues"), 502, {"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, b"<html>\nBad\n" * 999
        )

    assert refused.value.code == "HTTP_502"
    assert "HTTP 502" in refused.value.message and len(refused.value.message) < 400
    assert refused.value.retry_after_s is None


def test_an_answer_of_another_shape_is_a_refusal_not_a_crash() -> None:
    with pytest.raises(ServerRefused) as refused:
        read_answer(calls.call_of("queues"), 200, NO_HEADERS, b'{"not": "a list"}')

    assert refused.value.code == "UNREADABLE_ANSWER"

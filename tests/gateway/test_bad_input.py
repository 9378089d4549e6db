"""Everything that a request can get wrong, one row each.

Each is answered with a status of 4xx and a code, names the field where there is one, reaches no shard, and leaves the
application as usable as before.
"""

import asyncio
from time import monotonic
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corvo.model.limits import BODY_BYTES_MAX, SMALL_JSON_BYTES_MAX
from gateway.app import ENDPOINTS
from gateway.routes import API
from tests.gateway.asgi import PAYLOAD_BYTES_MAX, House, Reply, a_scope, call, check_shape, parts
from tests.gateway.catalogue import NOT_JSON
from tests.support.builders import job_id
from tests.support.routes import sample_path

JOB = job_id(1)
GOOD: dict[str, tuple[str, Any]] = {
    endpoint.name: (sample_path(endpoint), endpoint.example)
    for endpoint in ENDPOINTS
    if endpoint.body is not None and endpoint.method == "POST"
}
BODY_OPTIONAL = {endpoint.name for endpoint in ENDPOINTS if endpoint.body_optional}


def refused(house: House, path: str, body: Any, status: int = 400) -> Reply:
    """Sends it, and checks what is true of every refusal."""
    reply = house.post(path, body)
    assert reply.status == status, reply
    check_refused(house, reply)
    return reply


def check_refused(house: House, reply: Reply) -> None:
    assert house.shards.asked == []
    assert 400 <= reply.status < 500
    assert {"error", "code"} <= set(reply.json)
    assert house.post("/enqueue", {"queue": "mail"}).status == 201, "the application is usable"
    house.shards.asked.clear()


def test_the_good_bodies_are_good_and_there_is_one_for_every_post() -> None:
    assert set(GOOD) == {e.name for e in ENDPOINTS if e.body is not None and e.method == "POST"}

    with House() as house:
        for path, body in GOOD.values():
            expected = (401,) if path == "/auth/login" else (200, 201, 204, 404, 409)
            assert house.post(path, body).status in expected


# Bytes that are no JSON of ours, on every route


@pytest.mark.parametrize(
    "body",
    NOT_JSON,
)
@pytest.mark.parametrize("name", ["enqueue", "enqueue_batch", "search", "ack"])
def test_what_is_no_json_is_refused_on_every_route(name: str, body: bytes) -> None:
    with House() as house:
        assert refused(house, GOOD[name][0], body).code in ("PARSE_ERROR", "VALIDATION_ERROR")
        if name == "enqueue":
            assert refused(house, GOOD[name][0], body).code == "PARSE_ERROR"


@pytest.mark.parametrize("name", [name for name in GOOD if name not in BODY_OPTIONAL])
def test_an_empty_body_is_refused_where_a_body_is_needed(name: str) -> None:
    with House() as house:
        assert refused(house, GOOD[name][0], b"").code == "PARSE_ERROR"


@pytest.mark.parametrize("body", [b"null", b"[]", b'"x"', b"1", b"true", b"[{}]", b"1.5"])
@pytest.mark.parametrize("name", GOOD)
def test_a_body_that_is_no_object_is_refused_as_a_whole(name: str, body: bytes) -> None:
    with House() as house:
        reply = refused(house, GOOD[name][0], body)

    assert reply.code == "VALIDATION_ERROR"
    assert reply.json.get("field", "body") == "body"


@pytest.mark.parametrize("depth", [65, 100, 1_000, 5_000_000])
@pytest.mark.parametrize(("left", "right"), [(b"[", b"]"), (b'{"a":', b"}")])
@pytest.mark.parametrize("frame", [b"%s", b'{"queue": "mail", "payload": %s}', b'{"queue": "mail", "other": %s}'])
def test_bombs_of_depth_are_refused_wherever_they_hide(frame: bytes, left: bytes, right: bytes, depth: int) -> None:
    depth = min(depth, (BODY_BYTES_MAX - 100) // len(left))
    bodies = [frame % (left * depth)]
    if depth * len(left + right) < BODY_BYTES_MAX:
        bodies.append(frame % (left * depth + b"1" + right * depth))
    for body in bodies:
        with House() as house:
            assert refused(house, "/enqueue", body).code in ("PARSE_ERROR", "VALIDATION_ERROR")


@pytest.mark.parametrize("tail", [b'"' + b'\\"' * 20_000, b'"' * 40_001, b'"\\' * 20_000, b"[]," * 500_000])
def test_a_body_that_is_costly_to_walk_is_refused_in_a_moment(tail: bytes) -> None:
    started = monotonic()

    with House() as house:
        refused(house, "/enqueue", b'{"queue": "mail", "payload": [' + b"[]," * 70 + tail)

    assert monotonic() - started < 1


def test_brackets_in_texts_are_no_bomb() -> None:
    with House() as house:
        assert house.post("/enqueue", {"queue": "mail", "payload": "[" * 500 + "{" * 400}).status == 201


# Too much


def test_a_body_over_the_limit_is_refused_before_it_is_read() -> None:
    async def unread() -> Any:
        raise AssertionError("the body was read")

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    length = (b"content-length", str(BODY_BYTES_MAX + 1).encode())
    with House() as house:
        house.runner.run(house.app(a_scope(headers=[length]), unread, send))

        assert house.shards.asked == []
    assert sent[0]["status"] == 413
    assert (b"connection", b"close") in sent[0]["headers"]
    assert msgspec.json.decode(sent[1]["body"])["code"] == "BODY_TOO_LARGE"


def test_a_body_that_grows_past_the_limit_is_refused() -> None:
    with House() as house:
        reply = house.ask(a_scope(), *[b" " * 1024 * 1024] * 17)
        check_refused(house, reply)

    assert (reply.status, reply.code, reply.headers["connection"]) == (413, "BODY_TOO_LARGE", "close")


def a_text(size: int) -> str:
    return "x" * (size - 2)  # with its quotes


def test_a_payload_may_be_as_large_as_the_limit_and_no_larger() -> None:
    with House() as house:
        assert house.post("/enqueue", {"queue": "mail", "payload": a_text(PAYLOAD_BYTES_MAX)}).status == 201
        house.shards.asked.clear()
        one = refused(house, "/enqueue", {"queue": "mail", "payload": a_text(PAYLOAD_BYTES_MAX + 1)}, 413)
        batch = [{"queue": "mail"}, {"queue": "mail", "payload": a_text(PAYLOAD_BYTES_MAX + 1)}]
        many = refused(house, "/enqueue/batch", {"jobs": batch}, 413)

    assert (one.code, one.json["field"]) == ("PAYLOAD_TOO_LARGE", "payload")
    assert (many.code, many.json["field"]) == ("PAYLOAD_TOO_LARGE", "jobs[1].payload")


LARGE = {"a": a_text(SMALL_JSON_BYTES_MAX)}


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/enqueue", {"queue": "mail", "tags": LARGE}, "tags"),
        ("/enqueue", {"queue": "mail", "checkpoint": LARGE}, "checkpoint"),
        ("/enqueue/batch", {"jobs": [{"queue": "mail", "tags": LARGE}]}, "jobs[0].tags"),
        (f"/ack/{JOB}", {"checkpoint": LARGE}, "checkpoint"),
        (f"/ack/{JOB}", {"result": "x" * 300_000}, "result"),
        ("/ack/batch", {"acks": [{"job_id": JOB}, {"job_id": JOB, "checkpoint": LARGE}]}, "acks[1].checkpoint"),
        ("/heartbeat", {"jobs": {JOB: {"progress": LARGE}}}, f"jobs.{JOB}.progress"),
        ("/heartbeat", {"jobs": {JOB: {"checkpoint": LARGE}}}, f"jobs.{JOB}.checkpoint"),
    ],
)
def test_documents_that_are_too_large_are_refused(path: str, body: Any, field: str) -> None:
    with House() as house:
        reply = refused(house, path, body, 413)

    assert (reply.code, reply.json["field"]) == ("PAYLOAD_TOO_LARGE", field)


# Fields

NOT_INTS = [b"-1", b"9007199254740992", b"9223372036854775808", b"18446744073709551616", b"9" * 400, b"1.0", b"1e3"]
NOT_INTS += [b"0.5", b"1e400", b"true", b'"5"', b"[]", b"{}"]
INTS = [
    # body, field, ints that are outside just this field
    ("enqueue", b'{"queue": "mail", "max_retries": %s}', "max_retries", [b"1001", b"2147483648"]),
    ("enqueue", b'{"queue": "mail", "retry_base_delay_ms": %s}', "retry_base_delay_ms", [b"31622400001"]),
    ("enqueue", b'{"queue": "mail", "retry_max_delay_ms": %s}', "retry_max_delay_ms", [b"31622400001"]),
    ("enqueue_batch", b'{"jobs": [{"queue": "mail", "max_retries": %s}]}', "jobs[0].max_retries", [b"1001"]),
    ("fetch_batch", b'{"queues": ["a"], "worker_id": "w", "count": %s}', "count", [b"0", b"513"]),
    ("ack", b'{"lease_token": %s}', "lease_token", [b"0"]),
    ("ack_batch", b'{"acks": [{"job_id": "j", "lease_token": %s}]}', "acks[0].lease_token", [b"0"]),
    ("fail", b'{"lease_token": %s}', "lease_token", [b"0"]),
    ("fail_batch", b'{"fails": [{"job_id": "j", "lease_token": %s}]}', "fails[0].lease_token", [b"0"]),
    ("heartbeat", b'{"jobs": {"j": {"lease_token": %s}}}', "jobs[...].lease_token", [b"0"]),
    ("search", b'{"limit": %s}', "limit", [b"0", b"1001"]),
]


@pytest.mark.parametrize(
    ("name", "frame", "field", "number"), [(*row[:3], n) for row in INTS for n in NOT_INTS + row[3]]
)
def test_numbers_outside_their_range_are_refused(name: str, frame: bytes, field: str, number: bytes) -> None:
    with House() as house:
        reply = refused(house, GOOD[name][0], frame % number)

    assert (reply.code, reply.json["field"]) == ("VALIDATION_ERROR", field)
    assert reply.json["error"].startswith(field)


@pytest.mark.parametrize(
    ("field", "number"),
    [(f, n) for f in ("timeout", "lease_duration") for n in (b"-1", b"1e9", b"1e400", b"true", b'"5"', b"[]")]
    + [("timeout", b"3600.1"), ("timeout", b"-0.001")]
    + [("lease_duration", b"0"), ("lease_duration", b"0.999"), ("lease_duration", b"43200.1")],
)
@pytest.mark.parametrize("path", ["/fetch", "/fetch/batch"])
def test_spans_of_fetch_outside_their_range_are_refused(path: str, field: str, number: bytes) -> None:
    with House() as house:
        reply = refused(house, path, b'{"queues": ["a"], "worker_id": "w", "%s": %s}' % (field.encode(), number))

    assert (reply.code, reply.json["field"]) == ("VALIDATION_ERROR", field)


NAMES = [
    "",
    " ",
    "\0",
    "a\0b",
    "|",
    "a|b",
    "..",
    ".",
    ".a",
    "-a",
    "_a",
    ":a",
    "/a",
    "a b",
    "a\n",
    "\na",
    "a\r\nb",
    "a\t",
]
NAMES += ["a" * 201, "a" * 10_000, "ä", "mäil", "ａ", "ı", "a\u200d", "\u202ea", "a%2fb", "a\\b", "a*", "a?b", "a;b"]
NAMES += ["a\u0301", "😀", "a\x7f", "a\x1b[31m", '"', "a'b", "<script>", "${x}", "a#b", "a&b", "a,b", "a=b", "~"]


@pytest.mark.parametrize("name", NAMES)
def test_names_of_queues_outside_the_pattern_are_refused(name: str) -> None:
    with House() as house:
        for path, body, field in [
            ("/enqueue", {"queue": name}, "queue"),
            ("/enqueue/batch", {"jobs": [{"queue": "a"}, {"queue": name}]}, "jobs[1].queue"),
            ("/fetch", {"queues": ["a", name], "worker_id": "w"}, "queues[1]"),
            ("/fetch/batch", {"queues": [name], "worker_id": "w"}, "queues[0]"),
            ("/jobs/search", {"queue": name}, "queue"),
            ("/fetch", {"queues": ["a"], "worker_id": name}, "worker_id"),
            ("/jobs/search", {"worker_id": name}, "worker_id"),
        ]:
            reply = refused(house, path, body)
            assert (reply.code, reply.json["field"]) == ("VALIDATION_ERROR", field)


@pytest.mark.parametrize("name", ["a", "A9", "a" * 200, "a.b_c-d:e/f", "0", "a..b", "a::b"])
def test_names_inside_the_pattern_are_taken(name: str) -> None:
    with House() as house:
        assert house.post("/enqueue", {"queue": name}).status == 201


TIMES = ["", "now", "2026-01-00", "2026-01-01T00:00:00", "2026-01-01 00:00:00Z", "2026-01-01T00:00:00+24:00"]
TIMES += ["2026-01-01T00:00:00+00:60", "0000-01-01T00:00:00Z", "2026-12-31T23:59:60Z", "2026-02-30T00:00:00Z"]
TIMES += ["2026-13-01T00:00:00Z", "2026-01-01T24:00:00Z", "1999-12-31T23:59:59Z", "2200-01-01T00:00:00Z"]
TIMES += ["9999-12-31T23:59:59.9999999Z", "10000-01-01T00:00:00Z", "2026-01-01T00:00:00.0000000001Z"]
TIMES += [
    "2026-01-01T00:00:00Z\n",
    " 2026-01-01T00:00:00Z",
    "٢٠٢٦-01-01T00:00:00Z",
    "1767225600",
]
TIMES += ["2026-01-01T00:00:00Z" * 1_000, "-2026-01-01T00:00:00Z", "2026-01-01T00:00Z", "2026-W01-1T00:00:00Z"]
TIMES += ["9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59"]  # out of the years that datetime knows


@pytest.mark.parametrize("time", TIMES)
def test_malformed_times_are_refused(time: str) -> None:
    with House() as house:
        one = refused(house, "/enqueue", {"queue": "mail", "scheduled_at": time})
        many = refused(house, "/enqueue/batch", {"jobs": [{"queue": "mail", "scheduled_at": time}]})

    assert (one.code, one.json["field"]) == ("VALIDATION_ERROR", "scheduled_at")
    assert (many.code, many.json["field"]) == ("VALIDATION_ERROR", "jobs[0].scheduled_at")


@pytest.mark.parametrize("time", [0, 1767225600, 10**18, 1.5, True, [], {}])
def test_times_that_are_no_text_are_refused(time: Any) -> None:
    with House() as house:
        reply = refused(house, "/enqueue", {"queue": "mail", "scheduled_at": time})

    assert (reply.code, reply.json["field"]) == ("VALIDATION_ERROR", "scheduled_at")


DURATIONS: list[Any] = [
    "",
    "5",
    "s",
    "-5s",
    "5 s",
    "5s ",
    "5S",
    "5us",
    "5w",
    "1.5.5s",
    "1e3s",
    "∞",
    "٥s",
    "5s\n",
    "5s,5s",
]
DURATIONS += ["0x5s", "1.1234567s", ".5s", "5.s", "9" * 60 + "h", "1s" * 33, "367d", "1h" * 1_000, 5, 5.0, True, [], {}]


@pytest.mark.parametrize("duration", DURATIONS)
@pytest.mark.parametrize("field", ["retry_base_delay", "retry_max_delay"])
def test_malformed_durations_are_refused(field: str, duration: Any) -> None:
    with House() as house:
        reply = refused(house, "/enqueue", {"queue": "mail", field: duration})
        # in milliseconds beside it or not
        both = refused(house, "/enqueue", {"queue": "mail", field: duration, f"{field}_ms": 5})

    assert (reply.code, reply.json["field"]) == ("VALIDATION_ERROR", field)
    assert (both.code, both.json["field"]) == ("VALIDATION_ERROR", field)


@pytest.mark.parametrize(
    ("name", "body", "field"),
    [
        # wrong types
        ("enqueue", {"queue": 1}, "queue"),
        ("enqueue", {"queue": None}, "queue"),
        ("enqueue", {"queue": ["mail"]}, "queue"),
        ("enqueue", {"queue": "mail", "priority": 1.5}, "priority"),
        ("enqueue", {"queue": "mail", "parent_id": 1}, "parent_id"),
        ("enqueue", {"queue": "mail", "parent_id": ""}, "parent_id"),
        ("enqueue", {"queue": "mail", "parent_id": "x" * 129}, "parent_id"),
        ("enqueue_batch", {"jobs": {}}, "jobs"),
        ("enqueue_batch", {"jobs": [1]}, "jobs[0]"),
        ("enqueue_batch", {"jobs": [{"queue": "a"}, None]}, "jobs[1]"),
        ("fetch", {"queues": "mail", "worker_id": "w"}, "queues"),
        ("fetch", {"queues": [1], "worker_id": "w"}, "queues[0]"),
        ("fetch", {"queues": ["a"], "worker_id": 1}, "worker_id"),
        ("fetch", {"queues": ["a"], "worker_id": "w", "hostname": 1}, "hostname"),
        ("fetch", {"queues": ["a"], "worker_id": "w", "hostname": "x" * 257}, "hostname"),
        ("fail", {"error": 1}, "error"),
        ("fail", {"error": "x" * 8193}, "error"),
        ("fail", {"backtrace": "x" * 129_537}, "backtrace"),
        ("fail", {"error": {"message": "x"}}, "error"),
        ("fail_batch", {"fails": [{"job_id": None, "error": None}]}, "fails[0].job_id"),
        ("ack_batch", {"acks": [{"job_id": 1}]}, "acks[0].job_id"),
        ("ack_batch", {"acks": [{"job_id": ""}]}, "acks[0].job_id"),
        ("ack_batch", {"acks": [{"job_id": "x" * 129}]}, "acks[0].job_id"),
        ("heartbeat", {"jobs": []}, "jobs"),
        ("heartbeat", {"jobs": {JOB: 1}}, "jobs[...]"),
        ("search", {"queue": 1}, "queue"),
        ("search", {"state": "pending"}, "state"),
        ("search", {"state": ["lost"]}, "state[0]"),
        ("search", {"state": ["pending"] * 9}, "state"),
        ("search", {"order": "up"}, "order"),
        ("search", {"consistent": 1}, "consistent"),
        ("search", {"cursor": "x" * 513}, "cursor"),
        # unknown words
        ("enqueue", {"queue": "mail", "priority": "urgent"}, "priority"),
        ("enqueue", {"queue": "mail", "priority": "HIGH"}, "priority"),
        ("enqueue", {"queue": "mail", "priority": ""}, "priority"),
        ("enqueue", {"queue": "mail", "retry_backoff": "cubic"}, "retry_backoff"),
        ("search", {"priority": "low"}, "priority"),
        # missing
        ("enqueue", {}, "queue"),
        ("enqueue_batch", {}, "jobs"),
        ("enqueue_batch", {"jobs": [{"queue": "a"}, {}]}, "jobs[1].queue"),
        ("fetch", {"worker_id": "w"}, "queues"),
        ("fetch", {"queues": ["a"]}, "worker_id"),
        ("ack_batch", {"acks": [{}]}, "acks[0].job_id"),
        ("fail_batch", {"fails": [{"error": "x"}]}, "fails[0].job_id"),
        ("heartbeat", {}, "jobs"),
        # too few, too many
        ("enqueue_batch", {"jobs": []}, "jobs"),
        ("enqueue_batch", {"jobs": [{"queue": "a"}] * 1001}, "jobs"),
        ("fetch", {"queues": [], "worker_id": "w"}, "queues"),
        ("fetch", {"queues": ["a"] * 101, "worker_id": "w"}, "queues"),
        ("ack_batch", {"acks": []}, "acks"),
        ("ack_batch", {"acks": [{"job_id": JOB}] * 513}, "acks"),
        ("fail_batch", {"fails": []}, "fails"),
        ("fail_batch", {"fails": [{"job_id": JOB}] * 513}, "fails"),
        ("heartbeat", {"jobs": {}}, "jobs"),
        ("heartbeat", {"jobs": {str(n): {} for n in range(1001)}}, "jobs"),
        # unknown fields, where they stand
        ("enqueue", {"queue": "mail", "qeue": 1}, "qeue"),
        ("enqueue", {"queue": "mail", "state": "completed"}, "state"),
        ("enqueue", {"queue": "mail", "attempt": 9}, "attempt"),
        ("enqueue", {"queue": "mail", "lease_token": 9}, "lease_token"),
        ("enqueue", {"queue": "mail", "id": JOB}, "id"),
        ("enqueue", {"queue": "mail", "": 1}, "body"),
        ("enqueue_batch", {"jobs": [{"queue": "a"}], "batch": {"callback": 1}}, "batch.callback"),
        ("create_batch", {"on_succes": {"queue": "a"}}, "on_succes"),
        ("enqueue_batch", {"jobs": [{"queue": "a"}, {"queue": "a", "delay": 1}]}, "jobs[1].delay"),
        ("fetch", {"queues": ["a"], "worker_id": "w", "count": 1}, "count"),
        ("ack", {"status": "ok"}, "status"),
        ("ack_batch", {"acks": [{"job_id": JOB, "usage": {}}]}, "acks[0].usage"),
        ("fail", {"job_id": JOB}, "job_id"),
        ("heartbeat", {"jobs": {JOB: {"usage": {}}}}, "jobs[...].usage"),
        ("search", {"tag": "a"}, "tag"),
        # documents that must be objects
        ("enqueue", {"queue": "mail", "tags": []}, "tags"),
        ("enqueue", {"queue": "mail", "tags": "a"}, "tags"),
        ("enqueue", {"queue": "mail", "tags": 1}, "tags"),
        ("enqueue_batch", {"jobs": [{"queue": "a", "tags": [1]}]}, "jobs[0].tags"),
        ("heartbeat", {"jobs": {JOB: {"progress": 0.5}}}, f"jobs.{JOB}.progress"),
        ("heartbeat", {"jobs": {JOB: {"progress": []}}}, f"jobs.{JOB}.progress"),
        ("heartbeat", {"jobs": {JOB: {"checkpoint": "x"}}}, f"jobs.{JOB}.checkpoint"),
        ("heartbeat", {"jobs": {"stranger": {"progress": 1}}}, "jobs.stranger.progress"),
    ],
)
def test_a_wrong_field_is_named_with_its_place(name: str, body: Any, field: str) -> None:
    with House() as house:
        reply = refused(house, GOOD[name][0], body)

    assert (reply.code, reply.json["field"]) == ("VALIDATION_ERROR", field)


# Ids


@pytest.mark.parametrize(
    "job",
    [
        "1",
        "job",
        "%2e%2e",
        "s00_job_",
        job_id(1)[:-1],
        job_id(1) + "0",
        job_id(1).upper(),
        job_id(1).replace("_", "-"),
        job_id(1).replace("0", "٠"),
        job_id(1) + "\n",
        " " + job_id(1),
        job_id(1, shard=4),  # there are four shards, the last is 3
        job_id(1, shard=99),
        "s-1" + job_id(1)[3:],
        "x" * 64,
    ],
)
def test_ids_that_no_shard_can_have_minted_are_unknown(job: str) -> None:
    with House() as house:
        for method, path in [
            ("GET", "/jobs/{}"),
            ("POST", "/jobs/{}/cancel"),
            ("POST", "/ack/{}"),
            ("POST", "/fail/{}"),
        ]:
            reply = house.ask(a_scope(method, API + path.format(job)))
            assert (reply.status, reply.code) == (404, "JOB_NOT_FOUND")
            check_refused(house, reply)
        for path, body in [
            ("/ack/batch", {"acks": [{"job_id": job}]}),
            ("/fail/batch", {"fails": [{"job_id": job}]}),
        ]:
            reply = house.post(path, body)
            assert (reply.status, [result["code"] for result in reply.json["results"]]) == (200, ["JOB_NOT_FOUND"])
            assert house.shards.asked == []
        reply = house.post("/heartbeat", {"jobs": {job: {}}})
        assert (reply.status, reply.json) == (200, {"jobs": {job: {"status": "cancel"}}})
        assert house.shards.asked == []


def test_a_very_long_id_is_not_repeated_in_full() -> None:
    with House() as house:
        reply = house.get("/jobs/" + "x" * 8_000)

    assert (reply.status, reply.code) == (404, "JOB_NOT_FOUND")
    assert len(reply.content) < 300


# Kinds of body, paths, methods


@pytest.mark.parametrize(
    "content_type",
    [b"", b"text/plain", b"application/x-www-form-urlencoded", b"multipart/form-data; boundary=a", b"application/xml"]
    + [b"application/json; charset=utf-16", b"text/json"],
)
@pytest.mark.parametrize("name", GOOD)
def test_a_body_that_is_not_called_json_is_refused(name: str, content_type: bytes) -> None:
    path, body = GOOD[name]
    headers = [(b"content-type", content_type)] if content_type else []
    with House() as house:
        reply = house.ask(a_scope("POST", API + path, headers), msgspec.json.encode(body))
        check_refused(house, reply)

    assert (reply.status, reply.code) == (415, "UNSUPPORTED_MEDIA_TYPE")


def test_a_compressed_body_is_refused() -> None:
    with House() as house:
        headers = [(b"content-type", b"application/json"), (b"content-encoding", b"gzip")]
        reply = house.ask(a_scope(headers=headers), b"\x1f\x8b")
        check_refused(house, reply)

    assert reply.status == 415


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("POST", "/api/v1/nothing", 404, "NOT_FOUND"),
        ("POST", "/api/v1", 404, "NOT_FOUND"),
        ("POST", "/api/v1/enqueue/", 404, "NOT_FOUND"),
        ("POST", "/api/v1enqueue", 404, "NOT_FOUND"),
        ("POST", "/api/v1/jobs/../enqueue", 404, "NOT_FOUND"),
        ("GET", "/api/v1/enqueue", 405, "METHOD_NOT_ALLOWED"),
        ("PUT", "/api/v1/enqueue", 405, "METHOD_NOT_ALLOWED"),
        ("TRACE", "/api/v1/enqueue", 405, "METHOD_NOT_ALLOWED"),
        ("CONNECT", "/api/v1/enqueue", 405, "METHOD_NOT_ALLOWED"),
        ("BREW", "/api/v1/enqueue", 405, "METHOD_NOT_ALLOWED"),
        ("POST", "api/v1/enqueue", 400, "BAD_REQUEST"),
    ],
)
def test_an_unknown_path_or_method_is_refused(method: str, path: str, status: int, code: str) -> None:
    with House() as house:
        reply = house.ask(a_scope(method, path), b'{"queue": "mail"}')
        check_refused(house, reply)

    assert (reply.status, reply.code) == (status, code)


# Anything at all

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["mail", JOB, "5s"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
odd_bytes = st.sampled_from(
    [b'"', b"\\", b"\xff", b"\0", b"[", b"}", b",", b":", b"1e999", b"null", b"-", b"`", b" - at "]
)
names = st.sampled_from(sorted(GOOD))


@given(names, values)
def test_any_json_is_an_answer_and_never_a_failure(name: str, value: Any) -> None:
    with House() as house:
        house.post(GOOD[name][0], value)


@given(names, st.data())
def test_a_good_body_with_one_value_changed_is_an_answer_and_never_a_failure(name: str, data: st.DataObject) -> None:
    path, good = GOOD[name]
    body = msgspec.json.decode(msgspec.json.encode(good))
    place = body
    key = data.draw(st.sampled_from(sorted(body)))
    while isinstance(place[key], dict | list) and place[key] and data.draw(st.booleans()):
        place = place[key]
        key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
    fields = sorted({field for e in ENDPOINTS if e.body for field in e.body.__struct_fields__})
    if isinstance(place, dict) and data.draw(st.booleans()):
        key = data.draw(st.sampled_from(fields) | st.text(max_size=5))
    place[key] = data.draw(values)
    if "timeout" in body:
        body["timeout"] = 0

    with House() as house:
        house.post(path, body)


@given(names, st.data())
def test_a_good_body_with_some_bytes_changed_is_an_answer_and_never_a_failure(name: str, data: st.DataObject) -> None:
    path, good = GOOD[name]
    body = msgspec.json.encode(good)
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(body)))
        end = min(start + data.draw(st.integers(0, 4)), len(body))
        body = body[:start] + data.draw(odd_bytes | st.binary(max_size=3)) + body[end:]
    body = body.replace(b'"timeout":0', b'"timeout":0.0')

    with House() as house:
        try:
            house.runner.run(_within(house, path, body))
        except TimeoutError:
            pass  # the mutation made a fetch that waits


async def _within(house: House, path: str, body: bytes) -> None:
    async with asyncio.timeout(0.05):
        check_shape(await call(house.app, a_scope("POST", API + path), parts(body)))

"""The express lane: what it recognises, and that nobody can tell from an answer which way a request went."""

from collections.abc import Iterator
from time import sleep
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corvo.model.limits import BODY_BYTES_MAX
from gateway.api.fetch import GRACE_S
from gateway.http.fast_path import recognise
from gateway.http.servers import hypercorn
from tests.gateway.served import Heard, Served, Talk, a_server, chunked, enqueue, request, wait_until

JSON = "Content-Type: application/json"
PLAIN = [
    enqueue(),
    enqueue(b'{"queue": "mail"}', "Connection: keep-alive", "User-Agent: curl/8", "Accept: */*"),
    request("POST", "/api/v1/fetch/batch", JSON, "Content-Length: 0"),
    request("POST", "/api/v1/ack/s00_job_00000000000000000000000000", JSON, "Content-Length: 2", body=b"{}"),
    request("POST", "/api/v1/nowhere", JSON, "Content-Length: 2", body=b"{}"),
    request("POST", "/api/v1/enqueue", "content-length:0"),
]
UNUSUAL = [
    request("GET", "/api/v1/info"),
    request("POST", "/api/v1/queues/a%2Fb/pause", "Content-Length: 0"),
    request("POST", "/api/v1/enqueue?x=1", "Content-Length: 0"),
    request("POST", "/api/v1/metrics", "Content-Length: 0"),
    request("POST", "/healthz", "Content-Length: 0"),
    request("POST", "/api/v1/enqueue", JSON),
    request("POST", "/api/v1/enqueue", JSON, "Content-Length: 2", host="", body=b"{}"),
    request("POST", "/api/v1/enqueue", JSON, "Content-Length: 2", "Host: other", body=b"{}"),
    enqueue(b"{}", "Content-Length: 2"),
    enqueue(b"{}", "Content-Type: text/plain"),
    enqueue(b"{}", length="+2"),
    enqueue(b"{}", length=-2),
    enqueue(b"{}", length=BODY_BYTES_MAX + 1),
    enqueue(b"{}", length="0" * 20 + "2"),
    enqueue(b"{}", "Transfer-Encoding: chunked"),
    enqueue(b"{}", "Connection: close"),
    enqueue(b"{}", "Connection: upgrade", "Upgrade: websocket"),
    enqueue(b"{}", "Expect: 100-continue"),
    enqueue(b"{}", "Content-Encoding: gzip"),
    enqueue(b"{}", "X-Odd: caf\xe9"),
    enqueue(b"{}", "X-Folded: a\r\n b"),
    enqueue(b"{}", "No colon here"),
    enqueue(b"{}", "Spaced : out"),
    enqueue(b"{}", *[f"X-{number}: 1" for number in range(50)]),
    enqueue(b"{}", f"X-Long: {'x' * 20_000}"),
    enqueue().replace(b"\r\n", b"\n"),
    enqueue().replace(b"HTTP/1.1", b"HTTP/1.0"),
    b"\r\n" + enqueue(),
    chunked(b"2\r\n{}\r\n0\r\n\r\n"),
]


@pytest.mark.parametrize("text", PLAIN)
def test_a_plain_request_is_recognised(text: bytes) -> None:
    head = recognise(text)
    assert head is not None
    assert text[head.end :] == text.partition(b"\r\n\r\n")[2]
    assert len(text) - head.end == head.length


@pytest.mark.parametrize("text", UNUSUAL)
def test_an_unusual_request_is_left_to_the_server(text: bytes) -> None:
    assert recognise(text) is None


def test_half_a_head_is_left_to_the_server() -> None:
    text = enqueue()
    end = text.index(b"\r\n\r\n") + 4
    assert [recognise(text[:cut]) for cut in range(end)] == [None] * end


def test_headers_are_kept_as_the_application_sees_them() -> None:
    head = recognise(enqueue(b"{}", "X-Request-ID: Seven "))
    assert head is not None
    assert head.headers == [
        (b"host", b"corvo"),
        (b"content-type", b"application/json"),
        (b"content-length", b"2"),
        (b"x-request-id", b"Seven"),
    ]


@given(st.binary(max_size=300))
def test_any_bytes_are_no_trouble(noise: bytes) -> None:
    recognise(noise)
    recognise(b"POST /api/v1/enqueue HTTP/1.1\r\n" + noise)


# Both ways, side by side


@pytest.fixture(scope="module")
def lane() -> Iterator[Served]:
    with a_server(hypercorn.serve) as served:
        yield served


def _told(heard: Heard) -> Any:
    """All of an answer but its clock and the ids that it made."""
    headers = {name: value for name, value in heard.headers.items() if name not in ("date", "server-timing")}
    body = heard.json if heard.content else None
    if isinstance(body, dict) and "job_id" in body:
        body["job_id"] = len(body["job_id"])
    return heard.status, headers, body


BODIES = [
    b'{"queue": "mail"}',
    b'{"queue": "mail", "payload": {"n": 1}, "priority": "high", "max_retries": 5}',
    b'{"queue": ""}',
    b'{"queue": "mail", "nonsense": 1}',
    b"{",
    b"",
    b"\xff",
    b"[" * 500,
    b'{"queue": "mail", "payload": "%b"}' % (b"x" * 2_000),
]


@pytest.mark.system
@pytest.mark.parametrize("body", BODIES)
def test_an_answer_is_the_same_either_way(lane: Served, body: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    with Talk(lane) as talk:
        by_lane = _told(talk.ask(enqueue(body)))
    monkeypatch.setattr("gateway.http.hypercorn_connection.recognise", lambda data: None)
    with Talk(lane) as talk:
        by_road = _told(talk.ask(enqueue(body)))
    assert by_lane == by_road


@pytest.mark.system
def test_a_connection_may_change_between_lane_and_server(lane: Served) -> None:
    with Talk(lane) as talk:
        for text, status in [
            (enqueue(), 201),
            (request("GET", "/api/v1/info"), 200),
            (enqueue(), 201),
            (chunked(b'11\r\n{"queue": "mail"}\r\n0\r\n\r\n'), 201),
            (enqueue() + request("GET", "/api/v1/info") + enqueue(), 201),
        ]:
            assert talk.ask(text).status == status
        assert [talk.hear().status, talk.hear().status] == [200, 201]


@pytest.mark.system
def test_a_body_that_comes_in_pieces_is_put_together(lane: Served) -> None:
    text = enqueue(b'{"queue": "mail", "payload": {"text": "in pieces"}}')
    head = text.index(b"\r\n\r\n") + 4
    with Talk(lane) as talk:
        for cut in (head, head + 1, head + 10, len(text) - 1):
            talk.say(text[:cut])
            talk.say(text[cut:])
            assert talk.hear().status == 201


@pytest.mark.system
def test_a_body_that_breaks_off_is_no_request(lane: Served) -> None:
    with Talk(lane) as talk:
        talk.say(enqueue(b'{"queue": "broken-off"}', length=100))
        talk.finish()
        assert talk.is_closed()
    assert not any(machine.tables.find_queue("broken-off") for machine in lane.shards.machines)


@pytest.mark.system
def test_requests_ahead_of_a_wait_are_answered_after_it(lane: Served) -> None:
    """A worker that waits and has sent its next request already has not hung up."""
    wait = b'{"queues": ["nothing"], "worker_id": "w", "timeout": 0.2}'
    with Talk(lane) as talk:
        talk.say(request("POST", "/api/v1/fetch", JSON, f"Content-Length: {len(wait)}", body=wait))
        talk.say(enqueue())
        assert [talk.hear().status, talk.hear().status] == [204, 201]


@pytest.mark.system
def test_a_job_that_comes_during_a_long_wait_leaves_the_connection_usable(lane: Served) -> None:
    """While a worker waits, its connection is watched; what watches must be out of the way of the next request."""
    wait = b'{"queues": ["later"], "worker_id": "w", "timeout": 20}'
    fetch = request("POST", "/api/v1/fetch", JSON, f"Content-Length: {len(wait)}", body=wait)
    with Talk(lane) as worker, Talk(lane) as producer:
        for _ in range(3):
            worker.say(fetch)
            wait_until(lambda: lane.shards.parked)
            sleep(2 * GRACE_S)  # until the watch has begun
            assert producer.ask(enqueue(b'{"queue": "later"}')).status == 201
            assert worker.hear().status == 200
            assert worker.is_usable()

"""The fast path: what it recognises, and that nobody can tell from an answer which way a request went."""

from collections.abc import Iterator
from time import sleep
from typing import Any

import h11
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corvo.model.limits import BODY_BYTES_MAX
from gateway.api.fetch import GRACE_S
from gateway.http.fast_path import HEADERS_MAX, recognise
from gateway.http.messages import PATH_BYTES_MAX
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
    request("POST", "/api/v1/enqueue", "Content-Length: \t 0 \t"),
    enqueue(b"{}", *[f"X-{number}: 1" for number in range(HEADERS_MAX - 3)]),
]
UNUSUAL = [
    request("GET", "/api/v1/info"),
    request("POST", "/api/v1/queues/a%2Fb/pause", "Content-Length: 0"),
    request("POST", "/api/v1/enqueue?x=1", "Content-Length: 0"),
    request("POST", "/api/v1/metrics", "Content-Length: 0"),
    request("POST", "/api/v1/", "Content-Length: 0"),
    request("POST", "/api/v1/enqueue#part", "Content-Length: 0"),
    request("POST", "http://corvo/api/v1/enqueue", "Content-Length: 0"),
    request("POST", f"/api/v1/{'x' * PATH_BYTES_MAX}", "Content-Length: 0"),
    request("POST", " /api/v1/enqueue", "Content-Length: 0"),
    request("POST", "/api/v1/enqueue ", "Content-Length: 0"),
    request("POST", "/healthz", "Content-Length: 0"),
    request("POST", "/api/v1/enqueue", JSON),
    request("POST", "/api/v1/enqueue", JSON, "Content-Length: 2", host="", body=b"{}"),
    request("POST", "/api/v1/enqueue", JSON, "Content-Length: 2", "Host: other", body=b"{}"),
    enqueue(b"{}", "Content-Length: 2"),
    enqueue(b"{}", "Content-Type: text/plain"),
    request("POST", "/api/v1/enqueue", "Content-Type:", JSON, "Content-Length: 0"),
    enqueue(b"{}", "X-Empty:"),
    enqueue(b"{}", "X-Blank: \t "),
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
    enqueue(b"{}", "X-Folded:\r\n b"),
    enqueue(b"{}", "X-Folded: \r\n\tb"),
    enqueue(b"{}", "X-Bare: a\nX-Next: b"),
    enqueue(b"{}", "X-Bare: a\n\nPOST /api/v1/ack"),
    enqueue(b"{}", "X-Bare: a\rX-Next: b"),
    enqueue(b"{}", "X-Control: \x01"),
    enqueue(b"{}", "X-Control: \x7f"),
    enqueue(b"{}", ": no name"),
    enqueue(b"{}", "No colon here"),
    enqueue(b"{}", "Spaced : out"),
    enqueue(b"{}", *[f"X-{number}: 1" for number in range(HEADERS_MAX - 2)]),
    enqueue(b"{}", f"X-Long: {'x' * 20_000}"),
    enqueue().replace(b"\r\n", b"\n"),
    enqueue().replace(b"HTTP/1.1", b"HTTP/1.0"),
    enqueue().replace(b"HTTP/1.1", b"HTTP/2.0"),
    enqueue().replace(b" HTTP/1.1", b""),
    enqueue().replace(b"HTTP/1.1", b"HTTP/1.1 "),
    enqueue().replace(b"HTTP/1.1\r\n", b"HTTP/1.1\r\n "),
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
    assert list(head.headers) == [
        (b"host", b"corvo"),
        (b"content-type", b"application/json"),
        (b"content-length", b"2"),
        (b"x-request-id", b"Seven"),
    ]


@given(st.binary(max_size=300))
def test_any_bytes_are_no_trouble(noise: bytes) -> None:
    recognise(noise)
    recognise(b"POST /api/v1/enqueue HTTP/1.1\r\n" + noise)


def _mutants() -> st.SearchStrategy[bytes]:
    """Plain requests with some bytes replaced by others that parsers of HTTP may read in different ways."""
    pieces = [
        b"",
        b" ",
        b"  ",
        b"\t",
        b"\r",
        b"\n",
        b"\r\n",
        b"\0",
        b"\x0b",
        b"\x7f",
        b"\xe9",
        b":",
        b",",
        b";",
        b"0",
        b"_",
        b"/",
    ]
    pieces += [
        b"%2f",
        b"?",
        b"#",
        b"HTTP/1.1",
        b"\r\nHost: b",
        b"\r\nContent-Length: 1",
        b"\r\nContent-Type: a/b",
        b"\r\nX:",
    ]
    change = st.tuples(st.floats(0, 1), st.integers(0, 2), st.sampled_from(pieces))

    def changed(text: bytes, changes: list[tuple[float, int, bytes]]) -> bytes:
        for place, removed, piece in changes:
            at = int(place * text.index(b"\r\n\r\n")) if b"\r\n\r\n" in text else 0
            text = text[:at] + piece + text[at + removed :]
        return text

    return st.builds(changed, st.sampled_from(PLAIN), st.lists(change, min_size=1, max_size=3))


@given(_mutants())
@settings(max_examples=1_000)
def test_what_is_recognised_is_what_the_server_would_read(text: bytes) -> None:
    """httptools and h11 are two parsers: a head that h11 refuses or reads otherwise must never be recognised."""
    head = recognise(text)
    if head is None:
        return
    server = h11.Connection(h11.SERVER)
    server.receive_data(text[: head.end])
    heard = server.next_event()

    assert isinstance(heard, h11.Request)
    assert (heard.method, heard.target.decode(), heard.http_version) == (b"POST", head.path, b"1.1")
    assert list(heard.headers) == list(head.headers)
    assert int(dict(head.headers)[b"content-length"]) == head.length
    assert server.trailing_data == (b"", False)


# Both ways, side by side


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
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
def test_an_answer_is_the_same_either_way(served: Served, body: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    with Talk(served) as talk:
        by_fast_path = _told(talk.ask(enqueue(body, "X-Request-Id: one")))
    monkeypatch.setattr("gateway.http.hypercorn_connection.recognise", lambda data: None)
    with Talk(served) as talk:
        by_server = _told(talk.ask(enqueue(body, "X-Request-Id: one")))
    assert by_fast_path == by_server


@pytest.mark.system
def test_a_connection_may_change_between_fast_path_and_server(served: Served) -> None:
    with Talk(served) as talk:
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
def test_a_body_that_comes_in_pieces_is_put_together(served: Served) -> None:
    text = enqueue(b'{"queue": "mail", "payload": {"text": "in pieces"}}')
    head = text.index(b"\r\n\r\n") + 4
    with Talk(served) as talk:
        for cut in (head, head + 1, head + 10, len(text) - 1):
            talk.say(text[:cut])
            talk.say(text[cut:])
            assert talk.hear().status == 201


@pytest.mark.system
def test_a_body_that_breaks_off_is_no_request(served: Served) -> None:
    with Talk(served) as talk:
        talk.say(enqueue(b'{"queue": "broken-off"}', length=100))
        talk.finish()
        assert talk.is_closed()
    assert not any(machine.tables.find_queue("broken-off") for machine in served.shards.machines)


@pytest.mark.system
def test_requests_ahead_of_a_wait_are_answered_after_it(served: Served) -> None:
    """A worker that waits and has sent its next request already has not hung up."""
    wait = b'{"queues": ["nothing"], "worker_id": "w", "timeout": 0.2}'
    with Talk(served) as talk:
        talk.say(request("POST", "/api/v1/fetch", JSON, f"Content-Length: {len(wait)}", body=wait))
        talk.say(enqueue())
        assert [talk.hear().status, talk.hear().status] == [204, 201]


@pytest.mark.system
def test_a_job_that_comes_during_a_long_wait_leaves_the_connection_usable(served: Served) -> None:
    """While a worker waits, its connection is watched; what watches must be out of the way of the next request."""
    wait = b'{"queues": ["later"], "worker_id": "w", "timeout": 20}'
    fetch = request("POST", "/api/v1/fetch", JSON, f"Content-Length: {len(wait)}", body=wait)
    with Talk(served) as worker, Talk(served) as producer:
        for _ in range(3):
            worker.say(fetch)
            wait_until(lambda: served.shards.parked)
            sleep(2 * GRACE_S)  # until the watch has begun
            assert producer.ask(enqueue(b'{"queue": "later"}')).status == 201
            assert worker.hear().status == 200
            assert worker.is_usable()

"""Granian in front of the gateway, held to what `test_hypercorn.py` holds Hypercorn to, where the two may differ."""

import re
from collections.abc import Iterator
from time import monotonic, sleep
from typing import Any

import msgspec
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

import gateway.http.messages as edge
from corvo.model.limits import BODY_BYTES_MAX
from gateway.http.servers import granian
from tests.gateway.served import (
    INFO,
    PATIENCE_S,
    Served,
    Talk,
    a_fetch,
    a_server,
    chunked,
    descriptors,
    enqueue,
    request,
    wait_until,
)

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with a_server(granian.serve, is_quiet=True) as server:
        yield server


def stream_of(served: Served, path: str = "/api/v1/stream") -> Any:
    return connect(f"ws://127.0.0.1:{served.port}{path}", compression=None, max_size=None)


def frame(stream: ClientConnection, text: str) -> Any:
    stream.send(text)
    return msgspec.json.decode(stream.recv(timeout=PATIENCE_S))


# Requests


def test_a_worker_keeps_its_connection(served: Served) -> None:
    with Talk(served) as talk:
        assert talk.ask(chunked(b'5\r\n{"que\r\nc\r\nue": "mail"}\r\n0\r\n\r\n')).status == 201
        for _ in range(1_100):
            heard = talk.ask(INFO)
            assert heard.status == 200 and "connection" not in heard.headers
        assert talk.is_usable()


def test_requests_sent_ahead_are_answered_in_order(served: Served) -> None:
    with Talk(served) as talk:
        talk.say(b"".join(enqueue(b'{"queue": "ahead", "payload": %d}' % number) for number in range(100)))
        heard = [talk.hear() for _ in range(100)]

    assert {one.status for one in heard} == {201}
    jobs = [one.json["job_id"] for one in heard]
    assert jobs == sorted(set(jobs)), "ids sort by age"


def test_http_1_0_is_answered_and_closed(served: Served) -> None:
    with Talk(served) as talk:
        assert talk.ask(b"GET /api/v1/info HTTP/1.0\r\n\r\n").status == 200
        assert talk.is_closed()


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (enqueue(b"{"), 400),
        (enqueue(b"[" * 100_000), 400),
        (a_fetch(0), 204),
        (request("GET", "/api/v1/nothing"), 404),
        (request("TRACE", "/api/v1/info"), 405),
        (request("GET", "/api/v1/jobs/%2e%2e%2f"), 400),
        (request("GET", "/api/v1/jobs/%00"), 400),
        (request("GET", "/api/v1/jobs/%ff"), 400),
        (request("GET", "/api/v1/queues/a%2Fb"), 404),
        (request("OPTIONS", "*"), 400),
    ],
)
def test_the_connection_is_usable_afterwards(served: Served, text: bytes, status: int) -> None:
    with Talk(served) as talk:
        assert talk.ask(text).status == status
        assert talk.is_usable()


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (enqueue(b"", length=BODY_BYTES_MAX + 1), 413),
        (enqueue(b"", "Expect: 100-continue", length=BODY_BYTES_MAX + 1), 413),
        (enqueue(b'{"queue": "mail"}', "Content-Length: 4"), 400),
        (chunked(b"0\r\n\r\n", "Content-Length: 0"), 400),
        (enqueue().replace(b"Content-Length: 17", b"Transfer-Encoding: xchunked"), 400),
        (request("GET", "/api/v1/info", "X: " + "a" * 20_000), 431),
        (request("GET", "/api/v1/info", "X: " + "a" * 50_000), 431),
        (request("GET", "/api/v1/info", *["X: y"] * 150), 431),
        (request("GET", "/" + "a" * 17_000), 414),
        (request("GET", "/api/v1/info", "X: a\r\n b"), 400),
        (b"nonsense\r\n\r\n", 400),
    ],
)
def test_after_a_doubtful_request_the_connection_is_closed(served: Served, text: bytes, status: int) -> None:
    with Talk(served) as talk:
        heard = talk.ask(text)

        assert (heard.status, heard.headers["connection"]) == (status, "close")
        assert talk.is_closed()


def test_a_long_body_of_unknown_length_is_cut_off(served: Served) -> None:
    chunk = b"%x\r\n%s\r\n" % (1 << 20, b" " * (1 << 20))
    with Talk(served) as talk:
        talk.say(chunked(b""))
        try:
            for _ in range(20):
                talk.say(chunk)
        except OSError:
            pass  # it was closed meanwhile
        assert talk.hear().status == 413


def test_the_body_of_a_refused_request_is_never_taken_for_the_next_request(served: Served) -> None:
    hidden = enqueue(b'{"queue": "hidden"}')
    for text in [
        request("POST", "/api/v1/enqueue", "Content-Encoding: gzip", f"Content-Length: {len(hidden)}", body=hidden),
        request("TRACE", "/api/v1/enqueue", f"Content-Length: {len(hidden)}", body=hidden),
        request("GET", "/api/v1/info", f"Content-Length: {len(hidden)}", body=hidden),
        enqueue(hidden, "Transfer-Encoding: chunked"),
        chunked(b"0\r\n\r\n" + hidden, f"Content-Length: {len(hidden)}"),
    ]:
        with Talk(served) as talk:
            talk.say(text)
            talk.hear()
            try:
                talk.say(INFO)
                talk.hear()
            except (AssertionError, ConnectionError):
                pass  # closed: as good
    assert all("hidden" not in repr(ask) for _, ask in served.shards.asked)


def test_http_2_is_not_spoken(served: Served) -> None:
    with Talk(served) as talk:
        talk.say(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        assert talk.is_closed()


def test_heads_that_do_not_come_and_connections_that_idle_are_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    assert granian.IDLE_MS == 30_000
    monkeypatch.setattr(granian, "IDLE_MS", 200)
    with a_server(granian.serve) as server, Talk(server) as slow, Talk(server) as silent, Talk(server) as idle:
        slow.say(INFO[:-3])
        assert idle.is_usable()

        assert not re.match(rb"HTTP/1.1 2", slow.more())
        assert silent.is_closed()
        assert idle.is_closed()


def test_a_body_that_does_not_come_is_given_up(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edge, "BODY_TIMEOUT_S", 0.2)
    with Talk(served) as talk:
        heard = talk.ask(enqueue(b"{}", length=1_000))

        assert (heard.status, heard.headers["connection"]) == (408, "close")
        assert talk.is_closed()


def test_a_worker_that_hangs_up_is_no_longer_waited_for(served: Served) -> None:
    with Talk(served) as talk:
        talk.say(a_fetch())
        wait_until(lambda: served.shards.parked)

    wait_until(lambda: not served.shards.parked)


def test_a_client_that_leaves_in_the_middle_disturbs_nobody_and_leaves_nothing(served: Served) -> None:
    before = descriptors()
    for text in [enqueue()[:-5], chunked(b"5\r\nab"), b"GET /api", enqueue(b"", length=1_000), INFO] * 10:
        with Talk(served) as talk:
            talk.say(text)
    with Talk(served) as talk:
        assert talk.is_usable()

    wait_until(lambda: descriptors() <= before)


# The stream


def test_a_stream_answers_frames(served: Served) -> None:
    with stream_of(served) as stream:
        answer = frame(
            stream, '{"id": 1, "enqueue": [{"queue": "mail"}], "fetch": {"queues": ["m"], "worker_id": "w"}}'
        )
        assert (answer["id"], answer["enqueued"][0]["status"], answer["jobs"]) == (1, "pending", [])
        assert frame(stream, "{")["code"] == "PARSE_ERROR"


def test_a_stream_takes_large_frames_and_no_larger_ones(served: Served) -> None:
    with stream_of(served) as stream:
        assert frame(stream, '{"id": 1}' + " " * (BODY_BYTES_MAX - 9))["id"] == 1
        half = " " * (BODY_BYTES_MAX // 2 + 1)
        stream.send([half, half])  # in pieces, each of which is small enough
        with pytest.raises(ConnectionClosed) as closed:
            stream.recv(timeout=PATIENCE_S)
        assert closed.value.rcvd is not None and closed.value.rcvd.code == 1009


def test_a_client_that_reads_nothing_and_goes_holds_up_nobody(served: Served) -> None:
    """Granian 2.7 could stop the whole loop then (its issue 862)."""
    with stream_of(served) as stream:
        stream.socket.settimeout(0.5)
        jobs = ",".join(['{"queue": "mail"}'] * 500)
        try:
            for number in range(1_000):
                stream.send(f'{{"id": {number}, "enqueue": [{jobs}]}}')
        except (OSError, ConnectionClosed):
            pass  # it stops to read a client that does not
        with Talk(served) as talk:
            assert talk.is_usable()
        stream.socket.close()
    with Talk(served) as talk:
        assert talk.is_usable()


def test_there_is_a_stream_at_one_address_only(served: Served) -> None:
    with pytest.raises(InvalidStatus):
        stream_of(served, "/api/v1/events").__enter__()


# Stopping


def test_a_stop_finishes_what_is_under_way_and_ends_what_waits() -> None:
    with a_server(granian.serve) as server, Talk(server) as slow, Talk(server) as waiting, Talk(server) as idle:
        assert idle.is_usable()
        waiting.say(a_fetch())
        assert server.shards.held.wait(PATIENCE_S)
        server.shards.held.clear()
        slow.say(enqueue(b'{"queue": "slow"}'))
        assert server.shards.held.wait(PATIENCE_S)
        server.drain()
        ended = waiting.hear()
        sleep(0.3)
        server.release()
        finished = slow.hear()

        assert (ended.status, finished.status) == (204, 201)
        assert slow.is_closed()
        assert idle.is_closed()
        server.end()
        with pytest.raises(ConnectionError):
            Talk(server)
        assert server.reported == []


def test_a_stop_answers_the_frames_of_a_stream_then_closes_it() -> None:
    with a_server(granian.serve) as server, stream_of(server) as stream:
        stream.send('{"id": 7, "enqueue": [{"queue": "slow"}]}')
        assert server.shards.held.wait(PATIENCE_S)
        server.drain()
        told = msgspec.json.decode(stream.recv(timeout=PATIENCE_S))
        sleep(0.3)
        server.release()
        answer = msgspec.json.decode(stream.recv(timeout=PATIENCE_S))
        with pytest.raises(ConnectionClosed) as closed:
            stream.recv(timeout=PATIENCE_S)

    assert (told["code"], answer["id"], answer["enqueued"][0]["status"]) == ("DRAINING", 7, "pending")
    assert closed.value.rcvd is not None and closed.value.rcvd.code == 1001


def test_a_stop_does_not_wait_longer_than_it_may() -> None:
    started = monotonic()
    with a_server(granian.serve, graceful_s=0.3) as server, Talk(server) as slow:
        slow.say(enqueue(b'{"queue": "slow"}'))
        assert server.shards.held.wait(PATIENCE_S)
        server.drain()
        server.end()

    assert monotonic() - started < 3

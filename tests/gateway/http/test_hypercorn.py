"""Hypercorn in front of the gateway, spoken to over raw sockets.

Where Hypercorn lets through what a stricter server would refuse, the test says so in its name and holds it to what
makes it safe.
"""

import re
from collections.abc import Iterator
from time import monotonic, sleep

import h2.config
import h2.connection
import h2.events
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from websockets.sync.client import connect

import gateway.http.messages as edge
from gateway.http.fixed_headers import fixed_headers
from gateway.http.servers import hypercorn
from tests.gateway.catalogue import BAD_CHUNKS, CLOSED, KEPT, SMUGGLED
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
    with a_server(hypercorn.serve, is_quiet=True) as server:
        yield server


# Well-behaved clients


def test_a_request_is_served_and_the_connection_kept(served: Served) -> None:
    with Talk(served) as talk:
        assert talk.ask(enqueue()).status == 201
        assert talk.ask(INFO).status == 200
        assert talk.ask(chunked(b'5\r\n{"que\r\nc\r\nue": "mail"}\r\n0\r\n\r\n')).status == 201
        assert talk.is_usable()


def test_nothing_tells_what_serves(served: Served) -> None:
    for text in [enqueue(), INFO, enqueue(b"{"), request("GET", "/nowhere"), b"nonsense\r\n\r\n"]:
        with Talk(served) as talk:
            heard = talk.ask(text)
            assert "server" not in heard.headers
            assert "x-powered-by" not in heard.headers
            assert not re.search(rb"(?i)hypercorn|h11|python|traceback|/work|\.py", heard.content)
            assert set(heard.headers) <= {
                *("content-length", "content-type", "server-timing", "date", "connection"),
                *("x-request-id", *(name.decode() for name, _ in fixed_headers(is_secure=False))),
            }


def test_a_worker_keeps_its_connection_over_more_than_a_thousand_requests(served: Served) -> None:
    with Talk(served) as talk:
        for _ in range(1_100):
            heard = talk.ask(INFO)
            assert heard.status == 200
            assert "connection" not in heard.headers


def test_requests_sent_ahead_are_answered_in_order(served: Served) -> None:
    with Talk(served) as talk:
        talk.say(b"".join(enqueue(b'{"queue": "ahead", "payload": %d}' % number) for number in range(100)))
        heard = [talk.hear() for _ in range(100)]

        assert {one.status for one in heard} == {201}
        jobs = [one.json["job_id"] for one in heard]
        assert jobs == sorted(set(jobs)), "ids sort by age"
        assert talk.is_usable()


def test_http_1_0_is_answered_and_closed(served: Served) -> None:
    with Talk(served) as talk:
        assert talk.ask(b"GET /api/v1/info HTTP/1.0\r\n\r\n").status == 200
        assert talk.is_closed()


def test_a_client_may_ask_to_close(served: Served) -> None:
    with Talk(served) as talk:
        assert talk.ask(request("GET", "/api/v1/info", "Connection: close")).status == 200
        assert talk.is_closed()


def test_no_content_is_no_content(served: Served) -> None:
    body = b'{"queues": ["empty"], "worker_id": "w", "timeout": 0}'
    text = request("POST", "/api/v1/fetch", "Content-Type: application/json", f"Content-Length: {len(body)}", body=body)
    with Talk(served) as talk:
        heard = talk.ask(text)

        assert (heard.status, heard.content) == (204, b"")
        assert not {"content-length", "transfer-encoding"} & set(heard.headers)
        assert talk.is_usable()


@pytest.mark.parametrize(("path", "status"), [("/api/v1/info", 200), ("/api/v1/fetch", 405), ("/docs", 200)])
def test_head_has_no_body(served: Served, path: str, status: int) -> None:
    with Talk(served) as talk:
        talk.say(request("HEAD", path))
        sleep(0.05)
        heard = talk.more()

        assert heard.startswith(b"HTTP/1.1 %d" % status)
        assert heard.endswith(b"\r\n\r\n")
        assert talk.is_usable()


# Refused, and the connection goes on


@pytest.mark.parametrize(
    ("text", "status"),
    KEPT,
)
def test_after_a_refusal_the_connection_is_usable(served: Served, text: bytes, status: int) -> None:
    with Talk(served) as talk:
        heard = talk.ask(text)

        assert heard.status == status
        assert "connection" not in heard.headers
        assert talk.is_usable()


def test_the_body_of_a_refused_request_is_never_taken_for_the_next_request(served: Served) -> None:
    for text in SMUGGLED:
        with Talk(served) as talk:
            first = talk.ask(text)
            try:
                talk.say(INFO)
                answers = [talk.hear()]
            except (AssertionError, ConnectionError):
                answers = []  # closed: as good

            assert first.status in (200, 400, 405, 415)
            assert [answer.status for answer in answers] in ([], [200])
    assert all("hidden" not in repr(ask) for _, ask in served.shards.asked)


def test_connect_is_refused(served: Served) -> None:
    """S18. Hypercorn would let it through (its issue 277)."""
    with Talk(served) as talk:
        assert talk.ask(b"CONNECT elsewhere:443 HTTP/1.1\r\nHost: elsewhere:443\r\n\r\n").status == 405


# Refused, and closed


@pytest.mark.parametrize(
    ("text", "status"),
    CLOSED,
)
def test_after_a_doubtful_request_the_connection_is_closed(served: Served, text: bytes, status: int) -> None:
    with Talk(served) as talk:
        heard = talk.ask(text)

        assert heard.status == status
        assert heard.headers["connection"] == "close"
        assert talk.is_closed()


@pytest.mark.parametrize(
    "body",
    BAD_CHUNKS,
)
def test_bad_chunks_are_never_a_request(served: Served, body: bytes) -> None:
    """S11. The head was good, so the application waits for the body when the connection ends: 400, or no answer."""
    before = len(served.shards.asked)
    with Talk(served) as talk:
        talk.say(chunked(body))
        heard = talk.more()

        assert heard == b"" or heard.startswith(b"HTTP/1.1 400")
        assert talk.more() == b""
    assert len(served.shards.asked) == before
    with Talk(served) as talk:
        assert talk.is_usable()


def test_a_chunked_body_past_the_limit_is_refused_at_the_limit(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """S06."""
    monkeypatch.setattr(edge, "BODY_BYTES_MAX", 100_000)
    chunk = b"4000\r\n" + b" " * 0x4000 + b"\r\n"
    with Talk(served) as talk:
        heard = talk.ask(chunked(chunk * 7))

        assert (heard.status, heard.headers["connection"]) == (413, "close")
        assert talk.is_closed()


def test_a_header_without_end_is_cut_off(served: Served) -> None:
    with Talk(served) as talk:
        try:
            talk.say(b"GET /api/v1/info HTTP/1.1\r\nX: " + b"a" * 200_000)
        except ConnectionError:
            pass
        heard = talk.more()

        assert heard == b"" or heard.startswith((b"HTTP/1.1 431", b"HTTP/1.1 400"))
        assert talk.more() == b""


# What Hypercorn lets through, and why it does no harm


@pytest.mark.parametrize("length", ["17\r\nContent-Length: 17", "17, 17"])
def test_hypercorn_takes_two_equal_lengths_as_one(served: Served, length: str) -> None:
    """S08 asks for 400. The parser has made one of them before we see it; both agree, so nothing can hide between."""
    with Talk(served) as talk:
        assert talk.ask(enqueue(length=length)).status == 201
        assert talk.is_usable()


@pytest.mark.parametrize(
    "text",
    [INFO.replace(b"\r\n", b"\n"), request("GET", "/api/v1/info", "X: a\r\n b")],
    ids=["bare line feeds", "a folded header"],
)
def test_hypercorn_reads_old_line_ends_and_folded_headers(served: Served, text: bytes) -> None:
    """S12 asks for 400. The parser has unfolded them before we see it, to one request and never to two."""
    with Talk(served) as talk:
        assert talk.ask(text).status == 200
        assert talk.is_usable()


def test_hypercorn_says_continue_before_it_asks_us(served: Served) -> None:
    """S21, S05: a client that waits for leave is told to go on, then refused, and nothing of the body is read."""
    with Talk(served) as talk:
        talk.say(enqueue(b"", "Expect: 100-continue", length=17_000_000))
        first = talk.hear()
        heard = talk.hear() if first.status == 100 else first

        assert heard.status == 413
        assert talk.is_closed()


def test_a_body_that_waits_for_leave_is_read(served: Served) -> None:
    with Talk(served) as talk:
        assert talk.ask(enqueue(b"", "Expect: 100-continue", length=17)).status == 100
        assert talk.ask(b'{"queue": "mail"}').status == 201
        assert talk.is_usable()


def h2_status(talk: Talk, connection: h2.connection.H2Connection, stream: int) -> int:
    """The status of the answer on a stream of HTTP/2."""
    while True:
        more = talk.more()
        assert more, "closed without an answer"
        for event in connection.receive_data(more):
            if isinstance(event, h2.events.ResponseReceived) and event.stream_id == stream:
                headers = {
                    bytes(name) if isinstance(name, bytes) else name.encode(): value for name, value in event.headers
                }
                return int(headers[b":status"])
        talk.say(connection.data_to_send())


def test_hypercorn_speaks_http_2_in_the_clear_and_every_request_is_refused(served: Served) -> None:
    """S19. A setting to switch it off does not exist; no request that comes that way is served."""
    connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
    connection.initiate_connection()
    head = [(":method", "GET"), (":path", "/api/v1/info"), (":scheme", "http"), (":authority", "corvo")]
    connection.send_headers(1, head, end_stream=True)
    with Talk(served) as talk:
        talk.say(connection.data_to_send())

        assert h2_status(talk, connection, 1) == 505


def test_hypercorn_upgrades_to_http_2_and_every_request_is_refused(served: Served) -> None:
    connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
    settings = connection.initiate_upgrade_connection()
    assert settings is not None
    lines = ["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", f"HTTP2-Settings: {settings.decode()}"]
    with Talk(served) as talk:
        heard = talk.ask(request("GET", "/api/v1/info", *lines))
        talk.say(connection.data_to_send())

        assert heard.status == 101
        if talk._heard:
            for event in connection.receive_data(talk._heard):
                if isinstance(event, h2.events.ResponseReceived):
                    assert dict(event.headers)[b":status"] == b"505"
                    return
        assert h2_status(talk, connection, 1) == 505


def test_a_web_socket_is_refused(served: Served) -> None:
    lines = ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"]
    with Talk(served) as talk:
        heard = talk.ask(request("GET", "/api/v1/events", *lines, "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="))

        assert heard.status == 403


# Slow clients


def test_headers_that_dribble_are_cut_off_at_the_idle_time_of_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """S01 asks for 5 s. Hypercorn has one limit for the time between requests and for a head, and ours is 30 s."""
    usual = hypercorn.config(20.0)
    assert usual.keep_alive_timeout == 30.0
    usual.keep_alive_timeout = 0.4
    monkeypatch.setattr(hypercorn, "config", lambda graceful_s: usual)
    started = monotonic()

    with a_server(hypercorn.serve) as server, Talk(server) as talk:
        talk._socket.settimeout(0.05)
        is_open = True
        for byte in INFO[:-1]:
            try:
                talk.say(bytes([byte]))
                is_open = talk.more() != b""
            except TimeoutError:
                continue
            except ConnectionError:
                is_open = False
            if not is_open:
                break

    assert not is_open
    assert monotonic() - started < 3


@pytest.mark.parametrize(
    "text",
    [
        enqueue(b"{}", length=1_000_000),  # S02
        chunked(b"2\r\n{}\r\n"),
        enqueue(b"", "Expect: 100-continue", length=17),  # S21
    ],
    ids=["length", "chunked", "continue"],
)
def test_a_body_that_does_not_come_is_given_up(served: Served, text: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    assert edge.BODY_TIMEOUT_S == 15.0
    monkeypatch.setattr(edge, "BODY_TIMEOUT_S", 0.2)
    with Talk(served) as talk:
        heard = talk.ask(text)
        if heard.status == 100:
            heard = talk.hear()

        assert (heard.status, heard.headers["connection"]) == (408, "close")
        assert talk.is_closed()


def test_many_silent_connections_keep_nobody_waiting(served: Served) -> None:
    talks = [Talk(served) for _ in range(200)]
    for talk in talks[::2]:
        talk.say(b"POST /api/v1/enqueue HTTP/1.1\r\n")

    with Talk(served) as talk:
        assert talk.is_usable()
    for talk in talks:
        talk.__exit__()


def test_a_client_that_leaves_in_the_middle_disturbs_nobody(served: Served) -> None:
    for text in [enqueue()[:-5], chunked(b"5\r\nab"), b"GET /api", enqueue(b"", length=1_000)]:
        with Talk(served) as talk:
            talk.say(text)
    with Talk(served) as talk:
        assert talk.is_usable()


def test_a_client_that_has_gone_leaves_no_descriptor_behind(served: Served) -> None:
    """Hypercorn would keep the socket until the idle time of a connection is over."""
    before = descriptors()
    for _ in range(50):
        with Talk(served) as talk:
            talk.ask(INFO)
    for _ in range(50):
        with Talk(served) as talk:
            pass

    wait_until(lambda: descriptors() <= before)


def test_a_client_that_only_stops_sending_is_answered_and_closed(served: Served) -> None:
    with Talk(served) as talk:
        talk.say(INFO)
        assert talk.hear().status == 200
        talk.finish()

        assert talk.is_closed()


def test_a_worker_that_hangs_up_is_no_longer_waited_for(served: Served) -> None:
    with Talk(served) as talk:
        talk.say(a_fetch())
        wait_until(lambda: served.shards.parked)
        sleep(0.1)

    wait_until(lambda: not served.shards.parked)


# Anything at all


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_bytes_are_answered_or_cut_off_and_never_our_fault(served: Served, data: st.DataObject) -> None:
    text = data.draw(st.sampled_from([enqueue(), INFO, chunked(b'11\r\n{"queue": "mail"}\r\n0\r\n\r\n'), a_fetch(0)]))
    odd = st.sampled_from(
        [b"\r\n", b"\n", b"\0", b":", b" ", b"chunked", b"9" * 30, b"\xff", b"Host: x\r\n", b"HTTP/1.1", b"%"]
    )
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = min(start + data.draw(st.integers(0, 6)), len(text))
        text = text[:start] + data.draw(odd | st.binary(max_size=3)) + text[end:]

    with Talk(served) as talk:
        try:
            talk.say(text)
            talk.finish()
        except ConnectionError:
            pass
        heard = b""
        while more := talk.more():
            heard += more
    with Talk(served) as talk:
        assert talk.is_usable()

    assert not re.search(rb"HTTP/1.1 5(?!01|05)", heard), heard


# Stopping


def test_a_stop_finishes_what_is_under_way_and_ends_what_waits() -> None:
    with a_server(hypercorn.serve) as server, Talk(server) as slow, Talk(server) as waiting, Talk(server) as idle:
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


def test_a_stop_does_not_wait_longer_than_it_may() -> None:
    started = monotonic()
    with a_server(hypercorn.serve, graceful_s=0.3) as server, Talk(server) as slow:
        slow.say(enqueue(b'{"queue": "slow"}'))
        assert server.shards.held.wait(PATIENCE_S)
        server.drain()
        server.end()

    assert monotonic() - started < 3


def test_a_stop_with_nothing_under_way_is_quick() -> None:
    """Also after a stream: the task that pings it would go on sleeping."""
    with a_server(hypercorn.serve) as server, Talk(server) as idle:
        with connect(f"ws://127.0.0.1:{server.port}/api/v1/stream") as stream:
            stream.send('{"id": 1}')
            assert stream.recv(timeout=PATIENCE_S)
        assert idle.is_usable()
        started = monotonic()
        server.drain()
        server.end()

    assert monotonic() - started < 2

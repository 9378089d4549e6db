"""HTTP/2 behind Hypercorn, spoken to frame by frame: what a client may do to its connection, and to nobody else."""

import json
import ssl
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gateway.http.messages as edge
from gateway.http import http2
from gateway.http.fixed_headers import fixed_headers
from gateway.http.servers import hypercorn
from tests.gateway.served import PATIENCE_S, Served, Talk, a_server, descriptors, wait_until
from tests.support.authority import Authority

pytestmark = pytest.mark.system

MAIL = b'{"queue": "mail"}'


@pytest.fixture(scope="module")
def authority() -> Iterator[Authority]:
    with tempfile.TemporaryDirectory(prefix="corvo-") as folder:
        yield Authority(Path(folder))


@pytest.fixture(scope="module")
def context(authority: Authority) -> ssl.SSLContext:
    return authority.context("h2")


@pytest.fixture(scope="module")
def served(authority: Authority) -> Iterator[Served]:
    with a_server(hypercorn.serve, authority=authority, is_quiet=True) as server:
        yield server


class Answer:
    def __init__(self) -> None:
        self.headers: dict[bytes, bytes] = {}
        self.body = b""
        self.is_whole = False
        self.reset: int | None = None  # with this code

    @property
    def status(self) -> int:
        return int(self.headers[b":status"])

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Two(Talk):
    """A connection of HTTP/2 whose every frame can be sent by hand."""

    def __init__(self, served: Served, context: ssl.SSLContext, **fields: Any) -> None:
        super().__init__(served, context)
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding=None, **fields))
        self.h2.initiate_connection()
        self.answers: dict[int, Answer] = {}
        self.ended: int | None = None  # the code with which the server ended the connection
        self.reads = True  # gives back the room that answers take
        self.owed = 0  # and has not been given back
        self.send()

    def send(self) -> None:
        self.say(self.h2.data_to_send())

    def begin(self, method: str, path: str, *headers: tuple[str, str], is_whole: bool = True) -> int:
        stream: int = self.h2.get_next_available_stream_id()
        head = [(":method", method), (":path", path), (":scheme", "https"), (":authority", "corvo"), *headers]
        self.h2.send_headers(stream, head, end_stream=is_whole)
        self.answers[stream] = Answer()
        return stream

    def enqueue(self, body: bytes = MAIL, *headers: tuple[str, str]) -> int:
        stream = self.begin("POST", "/api/v1/enqueue", ("content-type", "application/json"), *headers, is_whole=False)
        self.h2.send_data(stream, body, end_stream=True)
        return stream

    def ask(self, stream: int) -> Answer:  # type: ignore[override]  # a stream, where HTTP/1.1 has a text
        self.send()
        answer = self.answers[stream]
        while not answer.is_whole and answer.reset is None:
            assert self.listen(), f"closed with {self.ended} before the answer"
        return answer

    def listen(self) -> bool:
        """Takes what comes next. False: the server has closed."""
        data = self.more()
        for event in self.h2.receive_data(data) if data else ():
            answer = self.answers.get(getattr(event, "stream_id", None) or 0, Answer())
            match event:
                case h2.events.ResponseReceived():
                    answer.headers = dict(event.headers or ())
                case h2.events.DataReceived():
                    answer.body += event.data or b""
                    self.owed += event.flow_controlled_length or 0
                    if self.reads:
                        self.give_back(event.stream_id or 0)
                case h2.events.StreamEnded():
                    answer.is_whole = True
                case h2.events.StreamReset():
                    answer.reset = event.error_code
                case h2.events.ConnectionTerminated():
                    self.ended = event.error_code
        if pending := self.h2.data_to_send():
            self.say(pending)
        return bool(data)

    def give_back(self, stream: int) -> None:
        self.h2.acknowledge_received_data(self.owed, stream)
        self.owed = 0

    def until_closed(self) -> int | None:
        """Why the server ended the connection; None: it did not say."""
        while self.listen():
            pass
        return self.ended

    def is_usable(self) -> bool:
        return self.ask(self.enqueue()).status == 201


# Well-behaved clients


def test_many_requests_at_once_share_a_connection(served: Served, context: ssl.SSLContext) -> None:
    with Two(served, context) as two:
        streams = [
            two.enqueue(b'{"queue": "mail", "payload": %d}' % number) for number in range(edge.HTTP2_STREAMS_MAX)
        ]
        answers = [two.ask(stream) for stream in streams]

        assert {answer.status for answer in answers} == {201}
        assert len({answer.json["job_id"] for answer in answers}) == edge.HTTP2_STREAMS_MAX
        assert two.is_usable()


def test_a_connection_is_kept_over_many_requests(served: Served, context: ssl.SSLContext) -> None:
    with Two(served, context) as two:
        for _ in range(1_100):
            assert two.ask(two.begin("GET", "/api/v1/info")).status == 200


def test_an_answer_says_no_more_than_it_does_elsewhere(served: Served, context: ssl.SSLContext) -> None:
    with Two(served, context) as two:
        answer = two.ask(two.enqueue(b"{"))

    assert (answer.status, answer.json["code"]) == (400, "PARSE_ERROR")
    assert set(answer.headers) == {
        *(b":status", b"content-length", b"content-type", b"server-timing", b"date", b"x-request-id"),
        *(name for name, _ in fixed_headers(is_secure=True)),
    }


def test_an_answer_larger_than_the_window_waits_for_its_reader(served: Served, context: ssl.SSLContext) -> None:
    batch = json.dumps({"jobs": [{"queue": "window", "payload": "x" * 900}] * 400}).encode()
    wanted = json.dumps({"queues": ["window"], "worker_id": "w", "count": 400}).encode()
    kind = ("content-type", "application/json")
    with Two(served, context) as two:
        making = two.begin("POST", "/api/v1/enqueue/batch", kind, is_whole=False)
        for at in range(0, len(batch), 16_000):
            while two.h2.local_flow_control_window(making) < 16_000:
                two.send()
                two.listen()
            two.h2.send_data(making, batch[at : at + 16_000], end_stream=at + 16_000 >= len(batch))
        assert two.ask(making).status == 201
        two.reads = False
        fetching = two.begin("POST", "/api/v1/fetch/batch", kind, is_whole=False)
        two.h2.send_data(fetching, wanted, end_stream=True)
        two.send()
        answer = two.answers[fetching]
        while two.h2.remote_flow_control_window(fetching) > 0:
            assert two.listen()
        assert not answer.is_whole
        two.reads = True
        two.give_back(fetching)

        assert len(two.ask(fetching).json["jobs"]) == 400
        assert two.is_usable()


def test_head_and_no_content_have_no_body(served: Served, context: ssl.SSLContext) -> None:
    body = b'{"queues": ["empty"], "worker_id": "w", "timeout": 0}'
    with Two(served, context) as two:
        head = two.ask(two.begin("HEAD", "/api/v1/info"))
        stream = two.begin("POST", "/api/v1/fetch", ("content-type", "application/json"), is_whole=False)
        two.h2.send_data(stream, body, end_stream=True)
        nothing = two.ask(stream)

    assert (head.status, head.body) == (200, b"")
    assert (nothing.status, nothing.body) == (204, b"")


def test_trailers_and_padding_and_priorities_are_passed_over(served: Served, context: ssl.SSLContext) -> None:
    with Two(served, context) as two:
        stream = two.begin("POST", "/api/v1/enqueue", ("content-type", "application/json"), is_whole=False)
        two.h2.prioritize(stream, weight=5)
        two.h2.send_data(stream, MAIL, pad_length=100)
        two.h2.send_headers(stream, [("x-sum", "7")], end_stream=True)

        assert two.ask(stream).status == 201
        assert two.is_usable()


def test_a_worker_that_takes_its_request_back_is_no_longer_waited_for(served: Served, context: ssl.SSLContext) -> None:
    with Two(served, context) as two:
        stream = two.begin("POST", "/api/v1/fetch", ("content-type", "application/json"), is_whole=False)
        two.h2.send_data(stream, b'{"queues": ["nothing"], "worker_id": "w", "timeout": 30}', end_stream=True)
        two.send()
        wait_until(lambda: served.shards.parked)
        two.h2.reset_stream(stream, h2.errors.ErrorCodes.CANCEL)
        two.send()
        wait_until(lambda: not served.shards.parked)

        assert two.is_usable()


# Refused, and the connection goes on


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/api/v1/nothing", 404),
        ("TRACE", "/api/v1/info", 405),
        ("BR\u00c9W", "/api/v1/info", 405),
        ("GET", "/api/v1/jobs/%2e%2e%2f", 400),
        ("GET", "/api/v1/jobs/%00", 400),
        ("GET", "/api/v1/jobs/%ff", 400),
        ("GET", "/api/v1/jobs/\xff", 404),
        ("GET", "/api/v1/jobs/ \t", 404),
        ("GET", "nowhere", 400),
        ("OPTIONS", "*", 400),
        ("GET", "/" + "a" * 17_000, 414),
    ],
)
def test_after_a_refusal_the_connection_is_usable(
    served: Served, context: ssl.SSLContext, method: str, path: str, status: int
) -> None:
    with Two(served, context, validate_outbound_headers=False) as two:
        assert two.ask(two.begin(method, path)).status == status
        assert two.is_usable()


def test_headers_that_are_too_large_are_refused(served: Served, context: ssl.SSLContext) -> None:
    with Two(served, context) as two:
        assert two.ask(two.begin("GET", "/api/v1/info", ("x", "a" * 20_000))).status == 431
        assert two.ask(two.begin("GET", "/api/v1/info", *[(f"x{number}", "") for number in range(101)])).status == 431
        assert two.is_usable()


@pytest.mark.parametrize(
    "headers", [[], [(":protocol", "websocket"), (":path", "/api/v1/stream"), (":scheme", "https")]]
)
def test_connect_is_refused_also_for_a_web_socket(
    served: Served, context: ssl.SSLContext, headers: list[tuple[str, str]]
) -> None:
    with Two(served, context, validate_outbound_headers=False) as two:
        stream = two.h2.get_next_available_stream_id()
        two.answers[stream] = Answer()
        two.h2.send_headers(stream, [(":method", "CONNECT"), (":authority", "corvo"), *headers], end_stream=False)
        answer = two.ask(stream)

        assert answer.status == 405
        assert not two.h2.remote_settings.enable_connect_protocol
        assert two.is_usable()


@pytest.mark.parametrize("is_announced", [True, False])
def test_a_body_that_is_too_large_is_refused_and_need_not_be_sent(
    served: Served, context: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch, is_announced: bool
) -> None:
    """Hypercorn's own would fail with a KeyError, or wait for ever for somebody to read the rest."""
    monkeypatch.setattr(edge, "BODY_BYTES_MAX", 200_000)
    length = [("content-length", "400000")] if is_announced else []
    with Two(served, context) as two:
        stream = two.begin("POST", "/api/v1/enqueue", ("content-type", "application/json"), *length, is_whole=False)
        answer = two.answers[stream]
        sent = 0
        while answer.reset is None and sent < 300_000:
            if two.h2.local_flow_control_window(stream) >= 10_000:
                two.h2.send_data(stream, b" " * 10_000)
                sent += 10_000
                two.send()
            else:
                assert two.listen()
        while answer.reset is None:
            assert two.listen()

        assert (answer.status, answer.is_whole, answer.reset) == (413, True, h2.errors.ErrorCodes.NO_ERROR)
        assert two.is_usable()


def test_a_refused_body_in_flight_takes_no_room_for_ever(served: Served, context: ssl.SSLContext) -> None:
    with Two(served, context) as two:
        for _ in range(20):
            stream = two.begin("POST", "/api/v1/enqueue", ("content-encoding", "gzip"), is_whole=False)
            two.h2.send_data(stream, b" " * 15_000)
            assert two.ask(stream).status == 415
        assert two.is_usable()


def test_a_body_that_does_not_come_is_given_up(
    served: Served, context: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edge, "BODY_TIMEOUT_S", 0.2)
    with Two(served, context) as two:
        stream = two.begin("POST", "/api/v1/enqueue", ("content-type", "application/json"), is_whole=False)
        two.h2.send_data(stream, b"{")

        assert two.ask(stream).status == 408
        assert two.is_usable()


def test_a_client_that_does_not_read_is_given_up(
    served: Served, context: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http2, "WINDOW_S", 0.2)
    with Two(served, context) as two:
        two.h2.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: 0})
        stream = two.begin("GET", "/api/v1/info")
        answer = two.ask(stream)

        assert (answer.status, answer.body, answer.reset) == (200, b"", h2.errors.ErrorCodes.CANCEL)


# Refused, and closed


def test_more_streams_than_agreed_end_the_connection(served: Served, context: ssl.SSLContext) -> None:
    with Two(served, context) as two:
        for _ in range(edge.HTTP2_STREAMS_MAX + 1):  # before the server has told how many it takes
            two.begin("POST", "/api/v1/enqueue", is_whole=False)
        two.send()

        assert two.until_closed() == h2.errors.ErrorCodes.PROTOCOL_ERROR


def test_a_client_that_takes_back_all_it_asks_is_sent_away(served: Served, context: ssl.SSLContext) -> None:
    """ "Rapid reset": the work would be done for nobody."""
    before = len(served.shards.asked)
    with Two(served, context) as two:
        for _ in range(20 * http2.RESETS_MAX):
            two.h2.reset_stream(two.enqueue(), h2.errors.ErrorCodes.CANCEL)
        try:
            two.send()
        except ConnectionError:
            pass

        assert two.until_closed() in (h2.errors.ErrorCodes.ENHANCE_YOUR_CALM, None)
    with Two(served, context) as two:
        assert two.is_usable()
    assert len(served.shards.asked) - before < 10 * http2.RESETS_MAX


def test_who_takes_back_now_and_then_may_go_on(served: Served, context: ssl.SSLContext) -> None:
    with Two(served, context) as two:
        for _ in range(2 * http2.RESETS_MAX):
            two.h2.reset_stream(two.begin("GET", "/api/v1/info"), h2.errors.ErrorCodes.CANCEL)
            assert two.is_usable()


def test_streams_that_are_still_at_work_count_though_they_were_taken_back(authority: Authority) -> None:
    with a_server(hypercorn.serve, authority=authority) as served, Two(served, authority.context("h2")) as two:
        for _ in range(edge.HTTP2_STREAMS_MAX):
            stream = two.enqueue(b'{"queue": "slow"}')
            two.send()
            assert served.shards.held.wait(PATIENCE_S)
            served.shards.held.clear()
            two.h2.reset_stream(stream, h2.errors.ErrorCodes.CANCEL)
        refused = two.ask(two.enqueue())
        served.release()
        wait_until(lambda: served.app._metrics.in_flight == 0)

        assert refused.reset == h2.errors.ErrorCodes.REFUSED_STREAM
        assert two.is_usable()


@pytest.mark.parametrize(
    "text",
    [
        b"GET /api/v1/info HTTP/1.1\r\nHost: corvo\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 20_000,
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00\x00\x04\x08\x00\x00\x00\x00\x00\x7f\xff\xff\xff" * 2,
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"
        + b"\x00\x00\x01\x01\x04\x00\x00\x00\x01\xff",
    ],
    ids=["http 1", "nonsense", "window", "headers"],
)
def test_what_is_no_http_2_is_cut_off(served: Served, context: ssl.SSLContext, text: bytes) -> None:
    with Talk(served, context) as talk:
        talk.say(text)
        while talk.more():
            pass
    with Two(served, context) as two:
        assert two.is_usable()


def test_headers_beyond_all_measure_end_the_connection(served: Served, context: ssl.SSLContext) -> None:
    with Two(served, context) as two:
        two.begin("GET", "/api/v1/info", *[("x", "a" * 10_000)] * 5)
        two.send()

        assert two.until_closed() == h2.errors.ErrorCodes.ENHANCE_YOUR_CALM


def test_thousands_of_priorities_cost_nothing(served: Served, context: ssl.SSLContext) -> None:
    """Hypercorn's own keeps each of them, and fails at the thousandth."""
    with Two(served, context) as two:
        for stream in range(1, 4_001, 2):
            two.h2.prioritize(stream, weight=16)
        two.send()

        two.h2.highest_outbound_stream_id = 4_001
        assert two.is_usable()


def test_a_client_that_leaves_in_the_middle_leaves_nothing_behind(served: Served, context: ssl.SSLContext) -> None:
    """Also in the middle of an answer that waits for room: Hypercorn's own would keep it for ever."""
    with Two(served, context) as two:
        assert two.is_usable()
    before = descriptors()
    for _ in range(10):
        with Two(served, context) as two:
            two.h2.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: 0})
            two.begin("GET", "/api/v1/info")
            two.begin("POST", "/api/v1/enqueue", is_whole=False)
            two.send()
            two.listen()

    wait_until(lambda: descriptors() <= before)
    wait_until(lambda: served.app._metrics.in_flight == 0)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_bytes_are_answered_or_cut_off_and_never_our_fault(
    served: Served, context: ssl.SSLContext, data: st.DataObject
) -> None:
    with Two(served, context) as two:
        two.enqueue()
        two.begin("GET", "/api/v1/info")
        text = two.h2.data_to_send()
        for _ in range(data.draw(st.integers(1, 3))):
            start = data.draw(st.integers(0, len(text)))
            end = min(start + data.draw(st.integers(0, 6)), len(text))
            text = text[:start] + data.draw(st.binary(max_size=4)) + text[end:]
        try:
            two.say(text)
            two.finish()
            while two.more():
                pass
        except OSError:
            pass
    with Two(served, context) as two:
        assert two.is_usable()
    assert served.reported == []


# Stopping and idling


def test_a_stop_answers_what_is_under_way_and_says_goodbye(authority: Authority) -> None:
    context = authority.context("h2")
    with (
        a_server(hypercorn.serve, authority=authority) as served,
        Two(served, context) as busy,
        Two(served, context) as idle,
    ):
        assert idle.is_usable()
        stream = busy.enqueue(b'{"queue": "slow"}')
        busy.send()
        assert served.shards.held.wait(PATIENCE_S)
        served.drain()
        assert idle.until_closed() == h2.errors.ErrorCodes.NO_ERROR
        late = busy.ask(busy.enqueue())
        served.release()

        assert busy.ask(stream).status == 201
        assert late.reset == h2.errors.ErrorCodes.REFUSED_STREAM, "it may be sent again elsewhere"
        assert busy.until_closed() == h2.errors.ErrorCodes.NO_ERROR
        served.end()
        assert served.reported == []


def test_a_connection_that_idles_is_told_goodbye(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = hypercorn.config(20.0)
    usual.keep_alive_timeout = 0.3
    monkeypatch.setattr(hypercorn, "config", lambda graceful_s: usual)
    with a_server(hypercorn.serve, authority=authority) as served, Two(served, authority.context("h2")) as two:
        assert two.is_usable()
        assert two.until_closed() == h2.errors.ErrorCodes.NO_ERROR

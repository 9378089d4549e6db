"""The driver against a server that plays back answers."""

import socket

import msgspec
import pytest

from corvo.client.answers import Acked, Enqueued, Failed, FetchedBatch, FetchedJob, HeartbeatAnswer, HeartbeatStatus
from corvo.client.bodies import AckBody, EnqueueBody, FailBody, FetchBatchBody, FetchBody, HeartbeatBody, HeartbeatJob
from corvo.client.calls import ServerRefused
from corvo.client.http import BadServer, Client, Unreachable
from corvo.client.refusals import ShardUnavailable
from tests.client.playback import Playback

ID = "s01_job_01hzy3v7k2m4n6p8q0r2s4t6v8"


class Clock:
    """Time that passes only by sleeping."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def read(self) -> float:
        return self.now


def client_of(playback: Playback, clock: Clock, deadline_s: float = 10.0) -> Client:
    return Client(playback.url, deadline_s=deadline_s, sleep=clock.sleep, clock=clock.read)


def test_the_life_of_a_job_over_http(playback: Playback) -> None:
    fetched = FetchedJob(ID, "mail", {"n": 1}, 1, 3, 60, 5)
    playback.answer("POST", "/enqueue", Enqueued(ID, "pending"), 201)
    playback.answer("POST", "/fetch", fetched)
    playback.answer("POST", "/fetch", b"", 204)
    playback.answer("POST", "/fetch/batch", FetchedBatch([fetched]))
    playback.answer("POST", "/heartbeat", HeartbeatAnswer({ID: HeartbeatStatus("ok")}))
    playback.answer("POST", f"/fail/{ID}", Failed("retrying", 2, "2026-01-31T09:00:00Z"))
    playback.answer("POST", f"/ack/{ID}", Acked())

    with Client(playback.url) as client:
        assert client.enqueue(EnqueueBody(queue="mail")) == Enqueued(ID, "pending")
        assert client.fetch(FetchBody(queues=["mail"], worker_id="w")) == fetched
        assert client.fetch(FetchBody(queues=["mail"], worker_id="w")) is None
        assert client.fetch_batch(FetchBatchBody(queues=["mail"], worker_id="w", count=9)).jobs == [fetched]
        assert client.heartbeat(HeartbeatBody(jobs={ID: HeartbeatJob(lease_token=5)})).jobs[ID].status == "ok"
        assert client.fail(ID, FailBody(error="boom", lease_token=5)).attempts_remaining == 2
        assert client.ack(ID, AckBody(result=msgspec.Raw(b"[1]"), lease_token=5)) == Acked()

    assert playback.asked[-1].body == b'{"result":[1],"lease_token":5}'


def test_an_overload_is_waited_out_for_as_long_as_the_server_says(playback: Playback) -> None:
    clock = Clock()
    playback.refuse("GET", "/queues", 429, "OVERLOADED", "too much", retry_after="3")
    playback.refuse("GET", "/queues", 503, "DRAINING", "going", retry_after="1")
    playback.answer("GET", "/queues", [])

    assert client_of(playback, clock).queues() == []

    assert clock.slept == [3.0, 1.0]


def test_without_a_time_the_pauses_grow(playback: Playback) -> None:
    clock = Clock()
    for _ in range(3):
        playback.refuse("GET", "/queues", 503, "SHARD_UNAVAILABLE", "no leader")
    playback.answer("GET", "/queues", [])

    client_of(playback, clock).queues()

    assert clock.slept == [0.2, 0.4, 0.8]


def test_no_pause_leads_beyond_the_deadline(playback: Playback) -> None:
    clock = Clock()
    playback.refuse("GET", "/queues", 503, "DRAINING", "going", retry_after="4")

    with pytest.raises(ServerRefused, match="going"):
        client_of(playback, clock, deadline_s=10).queues()

    assert clock.slept == [4.0, 4.0]


def test_a_refusal_of_the_request_itself_is_not_repeated(playback: Playback) -> None:
    clock = Clock()
    playback.refuse("GET", f"/jobs/{ID}", 404, "JOB_NOT_FOUND", "no such job")

    with pytest.raises(ServerRefused, match="no such job"):
        client_of(playback, clock).get_job(ID)

    assert clock.slept == [] and len(playback.asked) == 1


@pytest.mark.parametrize(("waits", "pauses"), [(True, [0.2, 0.4, 0.8, 1.6, 3.2]), (False, [])])
def test_a_server_that_is_not_there_is_waited_for_or_unreachable_at_once(waits: bool, pauses: list[float]) -> None:
    clock = Clock()
    with socket.socket() as taken:  # bound, not listening: nobody else can be there
        taken.bind(("127.0.0.1", 0))
        client = Client(
            f"http://127.0.0.1:{taken.getsockname()[1]}",
            deadline_s=10,
            waits_for_server=waits,
            sleep=clock.sleep,
            clock=clock.read,
        )
        with pytest.raises(Unreachable, match="nothing answers"):
            client.queues()

    assert clock.slept == pytest.approx(pauses)


def test_headers_of_a_trace_and_the_namespace_go_with_every_request(playback: Playback) -> None:
    playback.answer("GET", "/queues", [])
    spans = iter(["00-a-1-01", "00-b-2-01"])

    with Client(playback.url, namespace="acme", trace=lambda: {"traceparent": next(spans)}) as client:
        client.queues()
        client.queues()

    assert [heard["traceparent"] for heard in playback.headers] == ["00-a-1-01", "00-b-2-01"]
    assert {heard["x-corvo-namespace"] for heard in playback.headers} == {"acme"}


def test_another_deadline_for_one_call(playback: Playback) -> None:
    clock = Clock()
    playback.refuse("GET", "/queues", 503, "SHARD_UNAVAILABLE", "no leader", retry_after="2")
    client = client_of(playback, clock, deadline_s=60)

    with pytest.raises(ShardUnavailable):
        client.within(5).queues()

    assert clock.slept == [2.0, 2.0]


@pytest.mark.parametrize("server", ["http://", "ftp://host", "http://host:notaport"])
def test_what_is_no_address_is_refused_at_once(server: str) -> None:
    with pytest.raises(BadServer):
        Client(server)


def test_an_address_without_a_scheme_is_understood() -> None:
    assert Client("localhost:8080/").server == "http://localhost:8080"

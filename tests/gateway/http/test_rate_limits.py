"""How many requests a client may send: buckets by address, bounded, and refusals that cost nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corvo.model.access import built_in
from corvo.model.access_records import RateLimit
from corvo.model.errors import Refusal
from gateway.api.stream import PATH as STREAM_PATH
from gateway.http import rate_limits
from gateway.http.messages import Request
from gateway.http.rate_limits import Rate, RateLimits, TokenBuckets
from gateway.http.servers import hypercorn
from tests.gateway.asgi import House, Reply, a_scope, parts
from tests.gateway.served import Talk, a_server, enqueue, request


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def a_house(read: Rate, write: Rate, clock: Clock, limits: RateLimit | None = None) -> House:
    house = House()
    house.app._rate_limits = RateLimits(read, write, limits_of=lambda namespace: limits, clock=clock)
    return house


def send(house: House, method: str, path: str, body: bytes = b"", address: str = "10.0.0.1") -> Reply:
    return house.ask(a_scope(method, f"/api/v1{path}", client=(address, 4711)), body)


@given(st.lists(st.tuples(st.floats(0, 2), st.integers(1, 4)), max_size=60))
def test_in_no_span_of_time_is_more_given_than_the_burst_and_the_rate(steps: list[tuple[float, int]]) -> None:
    clock = Clock()
    buckets, rate = TokenBuckets(clock), Rate(5.0, 10.0)
    given_at: list[tuple[float, int]] = []
    for pause, cost in steps:
        clock.now += pause
        if not buckets.take("a", cost, rate):
            given_at.append((clock.now, cost))
    for number, (begin, _) in enumerate(given_at):
        for end, _ in given_at[number:]:
            spent = sum(cost for at, cost in given_at if begin <= at <= end)
            assert spent <= 10.0 + 5.0 * (end - begin) + 1e-6


def test_the_pause_that_is_told_is_long_enough() -> None:
    clock = Clock()
    buckets, rate = TokenBuckets(clock), Rate(4.0, 2.0)
    assert [buckets.take("a", 1, rate) for _ in range(2)] == [0.0, 0.0]

    assert buckets.wait_s("a", 1, rate) == pytest.approx(0.25)
    clock.now += (wait := buckets.take("a", 1, rate))

    assert wait == pytest.approx(0.25)
    assert buckets.take("a", 1, rate) == 0.0


def test_clients_do_not_share_and_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limits, "CLIENTS_MAX", 100)
    clock = Clock()
    buckets, rate = TokenBuckets(clock), Rate(1.0, 1.0)
    for number in range(1_000):
        clock.now += 0.001
        assert buckets.take(f"client-{number}", 1, rate) == 0.0
        assert len(buckets) <= 100

    assert buckets.take("client-999", 1, rate) > 0.0, "the newest are remembered"


def test_reads_and_writes_are_counted_apart_and_refused_with_a_pause() -> None:
    with a_house(Rate(1.0, 2.0), Rate(10.0, 1.0), Clock()) as house:
        assert send(house, "POST", "/enqueue", b'{"queue": "mail"}').status == 201
        reply = send(house, "POST", "/enqueue", b'{"queue": "mail"}')
        assert (reply.status, reply.code) == (429, "RATE_LIMITED")
        assert (reply.json["retry_after_ms"], reply.headers["retry-after"]) == (100, "0.100")
        assert len(house.shards.asked) == 1, "nothing was asked of a shard"

        assert [send(house, "GET", "/info").status for _ in range(3)] == [200, 200, 429]
        assert send(house, "POST", "/jobs/search", b"{}").status == 429, "a search is a read"
        assert send(house, "GET", "/info", address="10.0.0.2").status == 200
        assert house.ask(a_scope("GET", "/docs", client=("10.0.0.1", 1))).status == 200, "pages are not counted"


BATCHES = pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/enqueue/batch", b'{"jobs": [{"queue": "a"}, {"queue": "b"}, {"queue": "c"}]}'),
        ("/ack/batch", b'{"acks": [{"job_id": "x"}, {"job_id": "y"}, {"job_id": "z"}]}'),
        ("/fail/batch", b'{"fails": [{"job_id": "x"}, {"job_id": "y"}, {"job_id": "z"}]}'),
        ("/fetch/batch", b'{"queues": ["a"], "worker_id": "w", "count": 3, "timeout": 0}'),
    ],
)


@BATCHES
def test_each_item_of_a_batch_counts_in_a_namespace_with_limits(path: str, body: bytes) -> None:
    with a_house(Rate(1.0, 9.0), Rate(1.0, 9.0), Clock(), RateLimit(write_burst=5.0)) as house:
        assert send(house, "POST", path, body).status < 300
        asked = len(house.shards.asked)
        assert send(house, "POST", path, body).code == "RATE_LIMITED"
        assert len(house.shards.asked) == asked


@BATCHES
def test_a_request_counts_once_elsewhere(path: str, body: bytes) -> None:
    with a_house(Rate(1.0, 9.0), Rate(1.0, 2.0), Clock()) as house:
        statuses = [send(house, "POST", path, body).status for _ in range(3)]

    assert [status < 300 for status in statuses] == [True, True, False]
    assert statuses[2] == 429


def test_a_frame_counts_by_its_items_in_a_namespace_with_limits_only() -> None:
    request = Request(a_scope("GET", STREAM_PATH, client=("10.0.0.1", 1)), parts())
    request.principal = built_in("mailer", "key", "worker")
    free, limited = (
        RateLimits(Rate(1.0, 1.0), Rate(1.0, 5.0), limits_of=lambda namespace, limits=limits: limits, clock=Clock())
        for limits in (None, RateLimit())
    )

    for _ in range(10):
        free.admit_frame(request, 100)
    limited.admit_frame(request, 5)
    with pytest.raises(Refusal, match="too many writes"):
        limited.admit_frame(request, 1)


def test_addresses_of_one_ipv6_network_are_one_client() -> None:
    with a_house(Rate(1.0, 1.0), Rate(1.0, 1.0), Clock()) as house:
        statuses = [
            send(house, "GET", "/info", address=address).status
            for address in ("2001:db8::1", "2001:db8::ffff:2", "2001:db8:0:1::1", "::ffff:10.0.0.9", "10.0.0.9")
        ]

    assert statuses == [200, 429, 200, 200, 429]


def test_the_fast_path_knows_the_address_and_keeps_the_connection() -> None:
    with a_server(hypercorn.serve) as served:
        served.app._rate_limits = RateLimits(Rate(1.0, 9.0), Rate(0.001, 2.0))
        with Talk(served) as talk:
            assert [talk.ask(enqueue()).status for _ in range(4)] == [201, 201, 429, 429]
            assert talk.ask(request("GET", "/api/v1/info")).status == 200
        with Talk(served) as talk:
            assert talk.ask(enqueue()).status == 429, "the same address on another connection"

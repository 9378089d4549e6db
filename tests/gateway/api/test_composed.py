"""The endpoints that are more than one plan, in the whole application."""

import pytest

from corvo.model.job import Worker
from corvo.queries.cluster import GetIndex
from corvo.rules.batches import Batch
from gateway.search import lag
from tests.gateway.asgi import a_scope, call, parts
from tests.gateway.search.conftest import Written
from tests.gateway.whole_house import WholeHouse
from tests.support.builders import NOW, a_job, job_id


def test_a_fetch_claims_one_and_a_batch_as_many_as_asked(house: WholeHouse) -> None:
    jobs = [house.enqueue(payload=number) for number in range(4)]

    one = house.fetch()
    batch = house.post("/fetch/batch", {"queues": ["mail"], "worker_id": "w1", "count": 2})

    assert one["job_id"] == jobs[0]
    assert [job["job_id"] for job in batch.json["jobs"]] == jobs[1:3]


def test_with_nothing_to_fetch_one_is_204_and_a_batch_is_empty(house: WholeHouse) -> None:
    body = {"queues": ["mail"], "worker_id": "w1", "timeout": 0}

    assert house.post("/fetch", body).status == 204
    assert house.post("/fetch/batch", body).json == {"jobs": []}


def test_a_search_is_answered_from_read_db(house: WholeHouse, written: Written) -> None:
    written.put(a_job(1, queue="mail"), a_job(2, queue="sms"))

    everything = house.post("/jobs/search").json
    mail = house.post("/jobs/search", {"queue": "mail"}).json

    assert {job["id"] for job in everything["jobs"]} == {job_id(1), job_id(2)}
    assert [job["id"] for job in mail["jobs"]] == [job_id(1)]
    assert house.shards.asked == [], "no shard is asked"


def test_a_consistent_search_waits_for_what_the_shards_have_applied(
    house: WholeHouse, written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lag, "WAIT_MS_MAX", 30)

    caught_up = house.post("/jobs/search", {"consistent": True})
    written.put_cursor(index=11)  # the shard is at 12
    scope = a_scope("POST", "/api/v1/jobs/search")
    behind = house.runner.run(call(house.app, scope, parts(b'{"consistent": true}')))

    assert caught_up.status == 200
    assert [type(ask) for _, ask in house.shards.asked] == [GetIndex, GetIndex]
    assert (behind.status, behind.code) == (503, "READ_DB_UNAVAILABLE")


def test_queues_are_consistent_only_when_asked(house: WholeHouse) -> None:
    plain = house.get("/queues")
    house.ask(a_scope("GET", "/api/v1/queues", [], query_string=b"consistent=true"))

    assert (plain.status, plain.json) == (200, [])
    assert [type(ask) for _, ask in house.shards.asked] == [GetIndex]


@pytest.mark.parametrize(
    "query", [b"a=1", b"consistent=maybe", b"consistent=", b"\xff=1", b"consistent=%ff", b"&" * 99 + b"="]
)
def test_a_query_that_says_something_else_is_refused(house: WholeHouse, query: bytes) -> None:
    reply = house.ask(a_scope("GET", "/api/v1/queues", [], query_string=query))

    assert (reply.status, reply.code) == (400, "VALIDATION_ERROR")
    assert house.shards.asked == []


def test_workers_are_listed(house: WholeHouse, written: Written) -> None:
    written.put(Worker("w1", "host", ["mail"], NOW, NOW))

    assert [worker["id"] for worker in house.get("/workers").json] == ["w1"]


def test_batches_are_listed_from_read_db_by_state_and_page_by_page(house: WholeHouse, written: Written) -> None:
    written.put(*[Batch(f"s00_batch_{number}", NOW + number, is_sealed=number > 0) for number in range(3)])

    def ids(query: bytes) -> list[str]:
        reply = house.ask(a_scope("GET", "/api/v1/batches", [], query_string=query))
        return [batch["id"][-1] for batch in reply.json["batches"]]

    first = house.ask(a_scope("GET", "/api/v1/batches", [], query_string=b"limit=2")).json

    assert [batch["id"][-1] for batch in first["batches"]] == ["2", "1"]
    assert ids(b"limit=2&cursor=" + first["cursor"].encode()) == ["0"]
    assert (ids(b"state=open"), ids(b"state=sealed"), ids(b"state=completed")) == (["0"], ["2", "1"], [])
    assert house.shards.asked == [], "no shard is asked"
    assert ids(b"consistent=true") == ["2", "1", "0"]
    assert [type(ask) for _, ask in house.shards.asked] == [GetIndex]


@pytest.mark.parametrize("query", [b"limit=0", b"limit=1001", b"limit=x", b"state=over", b"cursor=x", b"page=1"])
def test_a_list_of_batches_that_cannot_be_is_refused(house: WholeHouse, query: bytes) -> None:
    reply = house.ask(a_scope("GET", "/api/v1/batches", [], query_string=query))

    assert (reply.status, reply.code) == (400, "VALIDATION_ERROR")


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/jobs/search"), ("GET", "/queues"), ("GET", "/workers"), ("GET", "/batches")]
)
def test_without_read_db_lists_are_unavailable_and_jobs_are_not(
    blind_house: WholeHouse, method: str, path: str
) -> None:
    reply = blind_house.runner.run(call(blind_house.app, a_scope(method, "/api/v1" + path), parts()))

    assert (reply.status, reply.code) == (503, "READ_DB_UNAVAILABLE")
    assert reply.json["retry_after_ms"] > 0
    assert blind_house.enqueue()


@pytest.mark.parametrize(
    "body",
    [
        {"created_after": "yesterday"},
        {"created_before": ""},
        {"scheduled_after": "2026-01"},
        {"completed_before": "9999-12-31T23:59:59-23:59"},
        {"cursor": "nonsense"},
        {"cursor": ""},
        {"cursor": "\0"},
        {"cursor": "é" * 500},
        {"cursor": "AAAA" * 100},
        {"job_id_prefix": "%"},
        {"job_id_prefix": "' OR 1=1 --"},
        {"job_id_prefix": "\0"},
    ],
)
def test_nonsense_in_a_search_is_refused_or_finds_nothing(
    house: WholeHouse, written: Written, body: dict[str, str]
) -> None:
    written.put(a_job(1))

    reply = house.post("/jobs/search", body)

    assert reply.status in (200, 400)
    if reply.status == 200:
        assert "job_id_prefix" in body
        assert reply.json["jobs"] == []
    else:
        assert reply.json["field"] in body

"""Batches, keys and dependencies over HTTP: many shards, and errands between them."""

import asyncio
from typing import Any

import pytest

from corvo.model.errors import Refusal
from corvo.model.sharding import shard_of_queue
from corvo.ops.batches.add_to_batch import AddToBatch
from corvo.ops.jobs.enqueue import Enqueue
from corvo.queries.arrivals import GetArrivals
from gateway.shards import plan_executor
from tests.gateway.asgi import House
from tests.support.builders import job_id

# One queue on each of four shards.
QUEUES = tuple(next(f"q{n}" for n in range(100) if shard_of_queue(f"q{n}", 4) == shard) for shard in range(4))
JOBS = [{"queue": QUEUES[number % 4], "payload": number} for number in (3, 0, 2, 2, 1, 0, 3)]


def asked_of(house: House, kind: type) -> list[int]:
    return [shard for shard, ask in house.shards.asked if isinstance(ask, kind)]


def complete(house: House, *queues: str) -> None:
    for queue in queues:
        job = house.fetch(queue)
        assert house.post(f"/ack/{job['job_id']}", {"lease_token": job["lease_token"]}).status == 200


# A batch in one request


def test_jobs_and_their_batch_are_made_in_one_request() -> None:
    with House() as house:
        reply = house.post("/enqueue/batch", {"jobs": JOBS, "batch": {"callback_queue": "done"}})
        shown = [house.get(f"/jobs/{job}").json for job in reply.json["job_ids"]]
        batch = house.get(f"/batches/{reply.json['batch_id']}").json

    assert reply.status == 201
    assert [(job["queue"], job["payload"]) for job in shown] == [(job["queue"], job["payload"]) for job in JOBS]
    assert (batch["state"], batch["total"], batch["pending"]) == ("sealed", 7, 7)
    assert asked_of(house, AddToBatch) == [3], "one operation, at the shard of the first job"
    assert asked_of(house, Enqueue) == []


def test_the_callback_comes_when_all_have_ended() -> None:
    jobs = [{"queue": queue} for queue in QUEUES]
    body = {"jobs": jobs, "batch": {"callback_queue": "done", "callback_payload": {"album": 42}}}
    with House() as house:
        batch_id = house.post("/enqueue/batch", body).json["batch_id"]
        complete(house, *QUEUES)
        callback = house.fetch("done")
        batch = house.get(f"/batches/{batch_id}").json

    counts = {
        "batch_id": batch_id,
        "total": 4,
        "succeeded": 4,
        "failed": 0,
        "completed": 4,
        "dead": 0,
        "cancelled": 0,
        "deleted": 0,
    }
    assert callback["payload"] == {"album": 42, "batch": {**counts, "callback": "on_complete"}}
    assert (batch["state"], batch["completed"], batch["on_complete"]["job_id"]) == ("completed", 4, callback["job_id"])


def test_jobs_that_take_their_time_to_arrive_are_waited_for() -> None:
    with House() as house:
        house.shards.is_carrying = False

        async def carry_later() -> None:
            asyncio.get_running_loop().call_later(0.02, house.shards.carry)

        house.runner.run(carry_later())
        reply = house.post("/enqueue/batch", {"jobs": JOBS, "batch": {}})

        assert len(asked_of(house, GetArrivals)) > 3, "more than one look"
        assert all(house.get(f"/jobs/{job}").status == 200 for job in reply.json["job_ids"])


def test_jobs_that_do_not_arrive_are_answered_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_executor, "COURTESY_S", 0.05)
    with House() as house:
        house.shards.is_carrying = False
        late = house.post("/enqueue/batch", {"jobs": JOBS, "batch": {}})
        house.shards.refusing[1] = Refusal("SHARD_UNAVAILABLE", "shard 1 is not reachable")
        lost = house.post("/enqueue/batch", {"jobs": JOBS, "batch": {}})

    assert (late.status, len(late.json["job_ids"])) == (201, 7)
    assert (lost.status, len(lost.json["job_ids"])) == (201, 7)


# An open batch


def test_an_open_batch_takes_jobs_until_it_is_sealed() -> None:
    with House() as house:
        made = house.post("/batch", {"on_success": {"queue": "well"}, "description": "an album"})
        batch_id = made.json["batch_id"]
        for queue in QUEUES:
            assert house.post("/enqueue", {"queue": queue, "batch_id": batch_id}).status == 201
        house.post("/enqueue/batch", {"jobs": [{"queue": "more"}, {"queue": "more"}], "batch_id": batch_id})
        complete(house, *QUEUES, "more", "more")
        before = house.get(f"/batches/{batch_id}").json
        sealed = [house.post(f"/{path}/{batch_id}/seal") for path in ("batch", "batches")]
        after = house.get(f"/batches/{batch_id}").json
        late = house.post("/enqueue", {"queue": "mail", "batch_id": batch_id})

    assert made.status == 201
    assert (before["state"], before["total"], before["completed"]) == ("open", 6, 6)
    assert [(reply.status, reply.json) for reply in sealed] == [(200, {"status": "sealed"})] * 2
    assert (after["state"], after["description"]) == ("completed", "an album")
    assert (late.status, late.json["code"]) == (409, "BATCH_SEALED")


def test_a_batch_needs_nothing_said_of_it() -> None:
    with House() as house:
        batch_id = house.post("/batch").json["batch_id"]

        assert house.get(f"/batches/{batch_id}").json["state"] == "open"


@pytest.mark.parametrize("batch_id", ["nonsense", "s00_batch_" + "0" * 26, "s77_batch_" + "0" * 26])
def test_an_unknown_batch_is_refused_everywhere(batch_id: str) -> None:
    with House() as house:
        replies = [
            house.get(f"/batches/{batch_id}"),
            house.post(f"/batch/{batch_id}/seal"),
            house.post(f"/batches/{batch_id}/seal"),
            house.post("/enqueue", {"queue": "mail", "batch_id": batch_id}),
            house.post("/enqueue/batch", {"jobs": [{"queue": "mail"}], "batch_id": batch_id}),
        ]

    assert {(reply.status, reply.json["code"]) for reply in replies} == {(404, "BATCH_NOT_FOUND")}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"jobs": [{"queue": "a"}, {"queue": "a", "batch_id": "s00_batch_x"}]}, "jobs[1].batch_id"),
        ({"jobs": [{"queue": "a"}], "batch": {}, "batch_id": "s00_batch_x"}, "batch_id"),
        ({"jobs": [{"queue": "a"}], "batch": {"callback_payload": 1}}, "batch.callback_payload"),
        ({"jobs": [{"queue": "a"}], "batch": {"on_failure": {"queue": "|"}}}, "batch.on_failure.queue"),
        ({"jobs": [{"queue": "a", "depends_on": ["nonsense"]}]}, "jobs[0].depends_on"),
    ],
)
def test_what_makes_no_sense_is_refused_and_nothing_reaches_a_shard(body: Any, field: str) -> None:
    with House() as house:
        reply = house.post("/enqueue/batch", body)

    assert (reply.status, reply.json["code"], reply.json["field"]) == (400, "VALIDATION_ERROR", field)
    assert house.shards.asked == []


# Keys


@pytest.mark.parametrize("key", ["unique_key", "idempotency_key"])
def test_a_second_job_with_a_key_is_answered_with_the_first(key: str) -> None:
    with House() as house:
        first = house.post("/enqueue", {"queue": "mail", key: "k"})
        second = house.post("/enqueue", {"queue": "mail", key: "k"})
        elsewhere = house.post("/enqueue", {"queue": "post", key: "k"})

    assert (first.status, elsewhere.status) == (201, 201)
    assert (second.status, second.json) == (
        200,
        {"job_id": first.json["job_id"], "status": "duplicate", "unique_existing": True},
    )


@pytest.mark.parametrize("batch", [{}, {"batch": {"callback_queue": "done"}}], ids=["plain", "a batch"])
def test_a_key_is_unique_inside_one_request(batch: Any) -> None:
    jobs = [{"queue": queue, "unique_key": "k"} for queue in (*QUEUES, *QUEUES)]
    with House() as house:
        reply = house.post("/enqueue/batch", {"jobs": jobs, **batch})
        ids = reply.json["job_ids"]
        shown = [house.get(f"/jobs/{job}").json["queue"] for job in ids]

    assert ids[:4] == ids[4:]
    assert len(set(ids)) == 4
    assert shown == [*QUEUES, *QUEUES]


def test_a_duplicate_that_is_added_to_a_batch_is_answered_as_one_and_counted_as_gone() -> None:
    with House() as house:
        batch_id = house.post("/batch").json["batch_id"]
        first = [house.enqueue(queue, unique_key="k") for queue in QUEUES]
        replies = [
            house.post("/enqueue", {"queue": queue, "unique_key": "k", "batch_id": batch_id}) for queue in QUEUES
        ]
        batch = house.get(f"/batches/{batch_id}").json

    assert [(reply.status, reply.json["job_id"], reply.json["status"]) for reply in replies] == [
        (200, job, "duplicate") for job in first
    ]
    assert (batch["total"], batch["deleted"], batch["pending"]) == (4, 4, 0)


# Dependencies


def test_a_job_may_wait_for_jobs_on_any_shard() -> None:
    with House() as house:
        others = [house.enqueue(queue) for queue in QUEUES]
        reply = house.post("/enqueue", {"queue": "last", "depends_on": others})
        complete(house, *QUEUES)

        assert (reply.status, reply.json["status"]) == (201, "scheduled")
        assert house.fetch("last")["job_id"] == reply.json["job_id"]


def test_a_job_of_a_batch_may_wait_for_others() -> None:
    with House() as house:
        other = house.enqueue(QUEUES[1])
        jobs = [{"queue": QUEUES[2], "depends_on": [other]}, {"queue": QUEUES[3]}]
        reply = house.post("/enqueue/batch", {"jobs": jobs, "batch": {"callback_queue": "done"}})
        complete(house, QUEUES[1], QUEUES[2], QUEUES[3])

        assert reply.status == 201
        assert house.fetch("done")["payload"]["batch"]["completed"] == 2


@pytest.mark.parametrize("batch", [{}, {"batch": {}}], ids=["plain", "a batch"])
def test_a_job_that_would_wait_for_an_unknown_one_is_refused(batch: Any) -> None:
    unknown = job_id(9, shard=2)
    with House() as house:
        known = house.enqueue()
        one = house.post("/enqueue", {"queue": "last", "depends_on": [known, unknown]})
        jobs = [{"queue": "a"}, {"queue": "last", "depends_on": [unknown, known]}]
        many = house.post("/enqueue/batch", {"jobs": jobs, **batch})

    assert (one.status, one.json["code"], one.json["field"]) == (400, "VALIDATION_ERROR", "depends_on")
    assert (many.status, many.json["code"], many.json["field"]) == (400, "VALIDATION_ERROR", "jobs[1].depends_on")
    assert unknown in many.json["error"]
    assert len(asked_of(house, Enqueue)) == 1
    assert asked_of(house, AddToBatch) == []

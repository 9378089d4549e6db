"""`POST /jobs/bulk` and `bulk-get`: few jobs within the request, many as an operation, and every mistake named."""

from typing import Any

import pytest

from corvo.model.errors import Refusal
from corvo.model.lifecycle import State
from corvo.ops.bulk.act_on_jobs import ActOnJobs
from gateway.api.bulk import matching, requests
from tests.gateway.api.bulk.conftest import QUEUES, SHARDS, BulkHouse
from tests.gateway.asgi import a_scope, call, parts
from tests.support.builders import NOW, SECOND, job_id


def test_everything_that_matches_is_changed_on_all_shards(bulk_house: BulkHouse) -> None:
    jobs = bulk_house.fill(9)
    others = [bulk_house.enqueue("apart")]
    bulk_house.mirror()

    reply = bulk_house.bulk("hold", filter={"created_after": "2025-01-01T00:00:00Z", "state": ["pending"]})

    told = reply.json
    assert (reply.status, told["affected"], told["errors"], told["matched"]) == (200, 10, 0, 10)
    assert told["duration_ms"] > 0
    assert bulk_house.states() == dict.fromkeys([*jobs, *others], State.HELD)


def test_a_filter_leaves_all_others_alone(bulk_house: BulkHouse) -> None:
    jobs = bulk_house.fill(6)

    reply = bulk_house.bulk("delete", filter={"queue": QUEUES[1]})

    assert reply.json["affected"] == 2
    assert set(bulk_house.states()) == {job for number, job in enumerate(jobs) if number % SHARDS != 1}


def test_slices_follow_each_other_and_each_shard_gets_one_operation_a_slice(
    bulk_house: BulkHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matching, "BULK_SLICE", 6)
    bulk_house.fill(15)
    bulk_house.shards.asked.clear()

    reply = bulk_house.bulk("cancel", filter={"state": ["pending"]})

    assert reply.json["affected"] == 15
    asked = [(shard, ask) for shard, ask in bulk_house.shards.asked if isinstance(ask, ActOnJobs)]
    assert [ask.step for _, ask in asked] == [1] * SHARDS + [2] * SHARDS + [3] * SHARDS
    assert len({ask.bulk_id for _, ask in asked}) == 1


def test_named_jobs_are_changed_once_each_and_refused_one_by_one(bulk_house: BulkHouse) -> None:
    held, pending = bulk_house.fill(2)
    bulk_house.post(f"/jobs/{held}/hold")
    unknown = job_id(9, shard=2)

    told = bulk_house.bulk("approve", job_ids=[held, pending, held, unknown]).json

    assert (told["affected"], told["errors"], told["matched"]) == (1, 2, 3)
    assert told["error_codes"] == {"WRONG_STATE": 1, "JOB_NOT_FOUND": 1}
    samples = {sample["job_id"]: sample for sample in told["error_samples"]}
    assert samples[unknown]["code"] == "JOB_NOT_FOUND"
    assert "is pending" in samples[pending]["error"]


@pytest.mark.parametrize(
    ("action", "fields", "state"),
    [
        ("cancel", {"grace": 0}, State.CANCELLED),
        ("hold", {"reason": "ask Ada"}, State.HELD),
        ("move", {"move_to_queue": QUEUES[0]}, State.PENDING),
        ("change_priority", {"priority": "high"}, State.PENDING),
    ],
)
def test_each_action_with_what_belongs_to_it(
    bulk_house: BulkHouse, action: str, fields: dict[str, Any], state: State
) -> None:
    jobs = bulk_house.fill(6)

    assert bulk_house.bulk(action, filter={"state": ["pending"]}, **fields).json["affected"] == 6

    assert bulk_house.states() == dict.fromkeys(jobs, state)
    shown = bulk_house.get(f"/jobs/{jobs[1]}").json
    if action == "hold":
        assert shown["hold_reason"] == "ask Ada"
    if action == "move":
        assert shown["queue"] == QUEUES[0]
    if action == "change_priority":
        assert shown["priority"] == 1


def test_jobs_that_have_moved_are_found_under_their_ids(bulk_house: BulkHouse) -> None:
    jobs = bulk_house.fill(6)
    bulk_house.bulk("move", job_ids=jobs, move_to_queue=QUEUES[2])
    bulk_house.mirror()

    by_name = bulk_house.bulk("hold", job_ids=jobs).json
    by_filter = bulk_house.bulk("approve", filter={"queue": QUEUES[2]}).json
    many = bulk_house.post("/jobs/bulk-get", {"job_ids": jobs}).json

    assert (by_name["affected"], by_name["errors"]) == (6, 0)
    assert by_filter["affected"] >= 6, "a row of a job that has left may linger, and leads to the same job"
    assert {job["queue"] for job in many["jobs"]} == {QUEUES[2]}
    assert [job["id"] for job in many["jobs"]] == jobs


def test_jobs_that_are_made_after_the_request_are_not_touched(bulk_house: BulkHouse) -> None:
    [old] = bulk_house.fill(1)
    for machine in bulk_house.shards.machines:
        machine.now = NOW + SECOND
    young = bulk_house.enqueue(QUEUES[0])
    bulk_house.mirror()

    assert bulk_house.bulk("delete", filter={"state": ["pending"]}).json["affected"] == 1

    assert set(bulk_house.states()) == {young}
    assert old not in bulk_house.states()


def test_a_job_that_matches_no_more_is_refused_by_its_shard(bulk_house: BulkHouse) -> None:
    [job] = bulk_house.fill(1)
    bulk_house.fetch(QUEUES[0])

    told = bulk_house.bulk("delete", filter={"state": ["pending"]}).json

    assert (told["affected"], told["error_codes"]) == (0, {"WRONG_STATE": 1})
    assert bulk_house.states() == {job: State.ACTIVE}


def test_a_dry_run_counts_shows_a_few_and_changes_nothing(bulk_house: BulkHouse) -> None:
    jobs = bulk_house.fill(12)

    by_filter = bulk_house.bulk("delete", filter={"state": ["pending"]}, dry_run=True).json
    by_name = bulk_house.bulk("delete", job_ids=[*jobs[:3], job_id(9)], dry_run=True).json

    assert (by_filter["dry_run"], by_filter["matched"], by_filter["matched_is_exact"]) == (True, 12, True)
    assert (by_filter["affected"], len(by_filter["sample"])) == (0, 10)
    assert by_filter["sample"][0]["state"] == "pending"
    assert (by_name["matched"], [job["id"] for job in by_name["sample"]]) == (3, jobs[:3])
    assert len(bulk_house.states()) == 12


def test_many_become_an_operation(bulk_house: BulkHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "BULK_AT_ONCE_MAX", 5)
    bulk_house.fill(6)

    reply = bulk_house.bulk("hold", filter={"state": ["pending"]})

    told = reply.json
    assert (reply.status, told["status"], told["estimated_total"]) == (202, "processing", 6)
    assert told["progress_url"] == f"/api/v1/bulk/{told['bulk_operation_id']}/progress"
    assert set(bulk_house.states().values()) == {State.PENDING}
    shown = bulk_house.get(f"/bulk/{told['bulk_operation_id']}").json
    assert (shown["status"], shown["action"], shown["total"], shown["processed"]) == ("queued", "hold", 6, 0)
    assert shown["filter"]["state"] == ["pending"]
    assert shown["filter"]["created_before"].startswith("2026-01-01T00:00:00")


def test_few_become_one_if_somebody_wants_it(bulk_house: BulkHouse) -> None:
    jobs = bulk_house.fill(2)

    by_filter = bulk_house.bulk("hold", filter={"state": ["pending"]}, **{"async": True})
    by_name = bulk_house.bulk("hold", job_ids=jobs, **{"async": True})

    assert (by_filter.status, by_name.status) == (202, 202)
    ids = [reply.json["bulk_operation_id"] for reply in (by_name, by_filter)]
    assert [bulk["id"] for bulk in bulk_house.get("/bulk").json] == ids, "newest first"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"action": "explode", "job_ids": [job_id(1)]}, "action"),
        ({"job_ids": [job_id(1)]}, "action"),
        ({"action": "retry"}, "filter"),
        ({"action": "retry", "filter": {"queue": "a"}, "job_ids": [job_id(1)]}, "filter"),
        ({"action": "retry", "job_ids": []}, "job_ids"),
        ({"action": "retry", "job_ids": ["nonsense"]}, "job_ids[0]"),
        ({"action": "retry", "job_ids": [job_id(1)] * 10_001}, "job_ids"),
        ({"action": "retry", "filter": {}}, "filter"),
        ({"action": "retry", "filter": {"limit": 3}}, "filter.limit"),
        ({"action": "retry", "filter": {"nonsense": 3}}, "filter.nonsense"),
        ({"action": "retry", "filter": {"state": ["nonsense"]}}, "filter.state[0]"),
        ({"action": "retry", "filter": {"created_after": "yesterday"}}, "filter.created_after"),
        ({"action": "retry", "filter": {"created_before": "yesterday"}}, "filter.created_before"),
        ({"action": "move", "job_ids": [job_id(1)]}, "move_to_queue"),
        ({"action": "move", "job_ids": [job_id(1)], "move_to_queue": "a|b"}, "move_to_queue"),
        ({"action": "hold", "job_ids": [job_id(1)], "reset_attempts": False}, "reset_attempts"),
        ({"action": "hold", "job_ids": [job_id(1)], "keep_priority": True}, "keep_priority"),
        ({"action": "change_priority", "job_ids": [job_id(1)]}, "priority"),
    ],
)
def test_a_mistake_is_named_and_reaches_no_job(bulk_house: BulkHouse, body: dict[str, Any], field: str) -> None:
    bulk_house.fill(1)

    reply = bulk_house.post("/jobs/bulk", body)

    assert (reply.status, reply.code) == (400, "VALIDATION_ERROR"), reply
    assert reply.json["field"] == field, reply
    assert not any(isinstance(ask, ActOnJobs) for _, ask in bulk_house.shards.asked)


def test_without_a_search_database_a_filter_is_refused_and_names_are_not(
    bulk_house: BulkHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    [job] = bulk_house.fill(1)
    bulk_house.written.path.unlink()

    async def ask(scope: Any, body: bytes) -> Any:
        return await call(bulk_house.app, scope, parts(body))

    refused = bulk_house.runner.run(
        ask(a_scope("POST", "/api/v1/jobs/bulk"), b'{"action":"hold","filter":{"queue":"a"}}')
    )

    assert (refused.status, refused.code) == (503, "READ_DB_UNAVAILABLE")
    assert bulk_house.bulk("hold", job_ids=[job]).json["affected"] == 1


def test_a_shard_that_stays_away_is_told_of_when_the_time_is_up(
    bulk_house: BulkHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "AT_ONCE_S", 0.05)
    jobs = bulk_house.fill(3)
    bulk_house.shards.refusing[1] = Refusal("SHARD_UNAVAILABLE", "shard 1 is not reachable", retry_after_ms=1_000)

    async def ask() -> Any:
        body = b'{"action":"hold","job_ids":["%b"]}' % '","'.join(jobs).encode()
        return await call(bulk_house.app, a_scope("POST", "/api/v1/jobs/bulk"), parts(body))

    reply = bulk_house.run(ask())
    assert (reply.status, reply.code) == (504, "DEADLINE_EXCEEDED")

    bulk_house.shards.refusing.clear()
    assert bulk_house.bulk("hold", job_ids=jobs).json["errors"] == 2, "those of the other shards were held"


def test_many_jobs_are_read_from_their_shards(bulk_house: BulkHouse) -> None:
    jobs = bulk_house.fill(4)

    reply = bulk_house.post("/jobs/bulk-get", {"job_ids": [jobs[3], job_id(9), jobs[0]]})

    assert [job["id"] for job in reply.json["jobs"]] == [jobs[3], jobs[0]]
    assert bulk_house.post("/jobs/bulk-get", {"job_ids": ["x"]}).json["field"] == "job_ids[0]"
    assert bulk_house.post("/jobs/bulk-get", {"job_ids": jobs * 251}).status == 400

"""One job as clients see it."""

import msgspec
import pytest

from corvo.endpoint import Operation
from corvo.model.errors import Refusal
from corvo.model.job_extras import Chain, ChainStep, JobExtras
from corvo.model.lifecycle import STATE_NAMES, State
from corvo.ops.jobs.hold import Hold
from corvo.ops.jobs.reject import Reject
from corvo.ops.jobs.retry import Retry
from corvo.queries import job as module
from corvo.queries.job import GetJob, JobRecord, job_view
from tests.support.builders import (
    NOW,
    SECOND,
    a_job,
    ack,
    an_asking,
    cancel,
    enqueue,
    fail,
    fetch,
    job_id,
    promote,
    reclaim,
)
from tests.support.machine import Machine


def shown(record: JobRecord) -> dict:
    return msgspec.json.decode(msgspec.json.encode(job_view(record)))


def test_a_new_job_shows_what_it_has_and_leaves_out_what_it_has_not() -> None:
    assert shown(JobRecord(a_job(payload=b'{"to": "x"}'), [])) == {
        "id": job_id(1),
        "queue": "mail",
        "state": "pending",
        "payload": {"to": "x"},
        "priority": 2,
        "attempt": 0,
        "max_retries": 3,
        "retry_backoff": "exponential",
        "retry_base_delay_ms": 5_000,
        "retry_max_delay_ms": 600_000,
        "created_at": "2026-01-01T00:00:00.000000000Z",
    }


def test_a_job_that_has_lived_shows_its_documents_moments_and_failures() -> None:
    machine = Machine()
    machine.apply(enqueue(1, tags=b'{"a":"b"}', checkpoint=b"5"), fetch(), fail(1, error="boom", backtrace="line 1"))

    view = shown(JobRecord(machine.job(1), machine.tables.errors(job_id(1))))

    assert view["state"] == "retrying"
    assert (view["tags"], view["checkpoint"], view["worker_id"], view["hostname"]) == ({"a": "b"}, 5, "w1", "host")
    assert view["started_at"] == "2026-01-01T00:00:00.000000000Z"
    assert view["scheduled_at"] == "2026-01-01T00:00:05.000000000Z"
    assert view["errors"] == [
        {
            "id": 1,
            "job_id": job_id(1),
            "attempt": 1,
            "error": "boom",
            "created_at": "2026-01-01T00:00:00.000000000Z",
            "backtrace": "line 1",
        }
    ]


def lived(*road: Operation, **fields: object) -> dict:
    machine = Machine()
    machine.apply(enqueue(1, **fields))
    for number, operation in enumerate(road, 1):
        machine.apply(operation, at=NOW + number * SECOND)
    return shown(GetJob(job_id(1)).read(machine.tables))


def test_every_attempt_is_shown_with_its_worker_its_span_and_its_outcome() -> None:
    view = lived(
        fetch(worker="w1"),
        fail(1, ask=1, error="boom", backtrace="line 1", delay_ms=0),
        promote(),
        fetch(worker="w2", claim=2),
        ack(1, ask=2),
    )

    assert view["attempts"] == [
        {
            "attempt": 1,
            "worker_id": "w1",
            "outcome": "failed",
            "started_at": "2026-01-01T00:00:01.000000000Z",
            "ended_at": "2026-01-01T00:00:02.000000000Z",
            "error": "boom",
            "backtrace": "line 1",
        },
        {
            "attempt": 2,
            "worker_id": "w2",
            "outcome": "completed",
            "started_at": "2026-01-01T00:00:04.000000000Z",
            "ended_at": "2026-01-01T00:00:05.000000000Z",
        },
    ]


@pytest.mark.parametrize(
    ("road", "outcomes"),
    [
        ([], []),
        ([fetch()], ["active"]),
        ([fetch(), cancel(1)], ["cancelled"]),
        ([fetch(), Hold(5, job_id(1))], ["interrupted"]),
        ([fetch(), Hold(5, job_id(1)), Reject(6, job_id(1))], ["interrupted"]),
        ([Hold(5, job_id(1)), Reject(6, job_id(1))], []),
        ([fetch(lease_ms=1_000), reclaim()], ["failed"]),
        ([fetch(), ack(1), Retry(5, job_id(1))], []),
    ],
)
def test_the_newest_attempt_has_an_outcome_of_its_own(road: list, outcomes: list) -> None:
    assert [attempt["outcome"] for attempt in lived(*road).get("attempts", [])] == outcomes


def test_what_binds_a_job_is_shown() -> None:
    extras = JobExtras(
        unique_key="k",
        idempotency_key="i",
        expire_after_ms=60_000,
        batch_id="b",
        jitter_permille=250,
        chain=Chain("chn_1", 0, (ChainStep("mail"), ChainStep("post", b'{"n": 2.50}')), on_exit=ChainStep("end")),
        schedule_id="sched_1",
    )
    view = lived(Hold(5, job_id(1), "why"), extras=extras)

    assert {name: view[name] for name in ("unique_key", "idempotency_key", "batch_id", "chain_id", "chain_step")} == {
        "unique_key": "k",
        "idempotency_key": "i",
        "batch_id": "b",
        "chain_id": "chn_1",
        "chain_step": 0,
    }
    assert view["chain_config"] == {
        "steps": [{"queue": "mail", "payload": {}}, {"queue": "post", "payload": {"n": 2.5}}],
        "on_exit": {"queue": "end", "payload": {}},
    }
    assert view["retry_jitter"] == 0.25
    assert (view["schedule_id"], view["hold_reason"]) == ("sched_1", "why")
    assert view["expire_at"] == "2026-01-01T00:01:00.000000000Z"
    assert "cancel_requested" not in view


def test_a_job_that_waits_for_others_names_them_and_no_moment() -> None:
    other = job_id(2)
    machine = Machine()
    machine.apply(enqueue(2), enqueue(1, extras=JobExtras(waits_for=(other,))))

    view = shown(GetJob(job_id(1)).read(machine.tables))

    assert (view["state"], view["waiting_for"], "scheduled_at" in view) == ("scheduled", [other], False)
    assert "retry_jitter" not in view and "chain_config" not in view


def test_a_job_whose_worker_was_asked_to_stop_says_so() -> None:
    view = lived(fetch(), cancel(1, grace_ms=30_000))

    assert (view["state"], view["cancel_requested"]) == ("active", True)


@pytest.mark.parametrize("state", State)
def test_only_an_active_job_shows_the_end_of_its_lease(state: State) -> None:
    view = shown(JobRecord(a_job(state=state, lease_expires_at=NOW + SECOND), []))

    assert view["state"] == STATE_NAMES[state]
    assert ("lease_expires_at" in view) == (state == State.ACTIVE)


def test_the_question_goes_to_the_shard_that_minted_the_id() -> None:
    plan = module.ENDPOINTS[0].plan(an_asking(), None, job_id(1, shard=3))

    assert plan.calls == [(3, GetJob(job_id(1, shard=3)))]
    assert plan.conclude([JobRecord(a_job(), [])]).status == 200


def test_an_id_that_no_shard_can_have_minted_is_unknown() -> None:
    with pytest.raises(Refusal) as refused:
        module.ENDPOINTS[0].plan(an_asking(), None, "nonsense")

    assert refused.value.code == "JOB_NOT_FOUND"

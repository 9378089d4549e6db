"""One job as clients see it."""

import msgspec
import pytest

from corvo.errors import Refusal
from corvo.lifecycle import STATE_NAMES, State
from corvo.queries import job as module
from corvo.queries.job import GetJob, JobRecord, job_view
from tests.support.builders import NOW, SECOND, a_job, an_asking, enqueue, fail, fetch, job_id
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

"""Cancel: a job that has not finished is settled at once."""

import msgspec
import pytest

from corvo.errors import Refusal
from corvo.lifecycle import State
from corvo.ops.jobs import cancel as module
from corvo.ops.jobs.heartbeat import Pulse
from tests.support.builders import (
    NOW,
    SECOND,
    ack,
    an_asking,
    cancel,
    enqueue,
    fail,
    fetch,
    heartbeat,
    job_id,
    promote,
    reclaim,
)
from tests.support.machine import Machine, nothing_changes

PLAN = {endpoint.name: endpoint.plan for endpoint in module.ENDPOINTS}
ROADS = {
    "pending": [enqueue(1)],
    "scheduled": [enqueue(1, scheduled_at=NOW + SECOND)],
    "active": [enqueue(1), fetch(lease_ms=10_000)],
    "retrying": [enqueue(1), fetch(lease_ms=10_000), fail(1, ask=5)],
}


@pytest.mark.parametrize("road", ROADS)
def test_a_job_that_has_not_finished_is_cancelled(road: str) -> None:
    machine = Machine()
    machine.apply(*ROADS[road])

    was_active = machine.one(cancel(1, ask=9), at=NOW + SECOND)

    assert was_active is (road == "active")
    job = machine.job(1)
    assert (job.state, job.settled_id, job.failed_at) == (State.CANCELLED, 9, NOW + SECOND)
    machine.check()


@pytest.mark.parametrize(
    ("road", "code"),
    [
        ([], "JOB_NOT_FOUND"),
        ([enqueue(1), fetch(), ack(1)], "WRONG_STATE"),
        ([enqueue(1, max_retries=1), fetch(), fail(1)], "WRONG_STATE"),
        ([enqueue(1), cancel(1, ask=5)], "WRONG_STATE"),
    ],
    ids=["unknown", "completed", "dead", "cancelled by another"],
)
def test_a_job_that_is_unknown_or_settled_is_refused_and_nothing_changes(road: list, code: str) -> None:
    machine = Machine()
    machine.apply(*road)

    with nothing_changes(machine):
        refused = machine.one(cancel(1, ask=9))

    assert refused.code == code


@pytest.mark.parametrize("road", ["pending", "scheduled", "active"])
def test_a_cancel_sent_again_at_once_gets_the_same_answer_and_changes_nothing(road: str) -> None:
    machine = Machine()
    machine.apply(*ROADS[road])
    first = machine.one(cancel(1, ask=9))

    with nothing_changes(machine):
        assert machine.one(cancel(1, ask=9)) is first


def test_a_cancel_of_a_retrying_job_sent_again_gets_the_same_answer() -> None:
    machine = Machine()
    machine.apply(*ROADS["retrying"])
    first = machine.one(cancel(1, ask=9))

    assert machine.one(cancel(1, ask=9)) is first is False


def test_a_cancel_of_an_active_job_sent_again_after_the_lease_gets_the_same_answer() -> None:
    machine = Machine()
    machine.apply(*ROADS["active"])
    first = machine.one(cancel(1, ask=9))

    assert machine.one(cancel(1, ask=9), at=NOW + 11 * SECOND) is first is True


def test_what_the_worker_of_a_cancelled_job_reports_is_refused() -> None:
    machine = Machine()
    machine.apply(*ROADS["active"])
    machine.apply(cancel(1))

    with nothing_changes(machine):
        assert machine.one(heartbeat(1, token=1)) == [Pulse.CANCEL]
        assert machine.one(ack(1, ask=2, token=1))[0].code == "LEASE_LOST"
        assert machine.one(fail(1, ask=2, token=1))[0].code == "LEASE_LOST"


@pytest.mark.parametrize("road", ROADS)
def test_time_does_nothing_to_a_cancelled_job(road: str) -> None:
    machine = Machine()
    machine.apply(*ROADS[road])
    machine.apply(cancel(1))

    with nothing_changes(machine):
        assert machine.apply(promote(), reclaim(), at=NOW + 10**6 * SECOND) == [0, 0]
        assert machine.one(fetch(claim=9)) == []


def test_a_cancel_goes_to_the_shard_of_the_job_and_says_whether_a_worker_must_be_told() -> None:
    plan = PLAN["cancel"](an_asking(), None, job_id(1, shard=2))

    [(shard, operation)] = plan.calls
    assert (shard, operation.job_id) == (2, job_id(1, shard=2))
    assert operation.ask_id > 0
    assert msgspec.to_builtins(plan.conclude([True]).body) == {"status": "cancelling"}
    assert msgspec.to_builtins(plan.conclude([False]).body) == {"status": "cancelled"}


def test_an_id_that_no_shard_can_have_minted_is_unknown() -> None:
    with pytest.raises(Refusal) as refused:
        PLAN["cancel"](an_asking(), None, "nonsense")

    assert refused.value.code == "JOB_NOT_FOUND"

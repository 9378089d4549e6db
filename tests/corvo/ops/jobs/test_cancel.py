"""Cancel: at once where no worker has the job, else with a grace."""

import msgspec
import pytest

from corvo.model.errors import Refusal
from corvo.model.events import EventKind
from corvo.model.lifecycle import State
from corvo.model.limits import CANCEL_GRACE_MS_DEFAULT
from corvo.ops.jobs import cancel as module
from corvo.ops.jobs.cancel import CancelBody
from corvo.ops.jobs.heartbeat import Pulse
from corvo.ops.jobs.hold import Hold
from corvo.ops.jobs.retry import Retry
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
    ring,
)
from tests.support.event_kinds import kinds_of
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
    plan = PLAN["cancel"](an_asking(), CancelBody(), job_id(1, shard=2))

    [(shard, operation)] = plan.calls
    assert (shard, operation.job_id, operation.grace_ms) == (2, job_id(1, shard=2), CANCEL_GRACE_MS_DEFAULT)
    assert operation.ask_id > 0
    assert msgspec.to_builtins(plan.conclude([True]).body) == {"status": "cancelling"}
    assert msgspec.to_builtins(plan.conclude([False]).body) == {"status": "cancelled"}


def test_an_id_that_no_shard_can_have_minted_is_unknown() -> None:
    with pytest.raises(Refusal) as refused:
        PLAN["cancel"](an_asking(), CancelBody(), "nonsense")

    assert refused.value.code == "JOB_NOT_FOUND"


@pytest.mark.parametrize(("grace", "ms"), [(None, 30_000), (0, 0), (1.5, 1_500), ("90s", 90_000), ("0s", 0)])
def test_a_grace_is_a_duration_or_seconds(grace: str | float | None, ms: int) -> None:
    [(_, operation)] = PLAN["cancel"](an_asking(), CancelBody(grace), job_id(1)).calls

    assert operation.grace_ms == ms


@pytest.mark.parametrize("grace", [-1, 1e12, "soon", "9999d"])
def test_a_grace_that_is_none_is_refused(grace: str | float) -> None:
    with pytest.raises(Refusal) as refused:
        PLAN["cancel"](an_asking(), CancelBody(grace), job_id(1))

    assert (refused.value.code, refused.value.field) == ("VALIDATION_ERROR", "grace")


# With a grace


def cancelling(grace_ms: int = 5_000) -> Machine:
    machine = Machine()
    machine.apply(*ROADS["active"])
    assert machine.one(cancel(1, ask=9, grace_ms=grace_ms)) is True
    return machine


@pytest.mark.parametrize("road", ["pending", "scheduled", "retrying"])
def test_a_job_that_no_worker_has_needs_no_grace(road: str) -> None:
    machine = Machine()
    machine.apply(*ROADS[road])

    assert machine.one(cancel(1, grace_ms=5_000)) is False
    assert machine.job(1).state is State.CANCELLED


def test_a_held_job_is_cancelled_at_once() -> None:
    machine = Machine()
    machine.apply(enqueue(1), Hold(3, job_id(1)))

    assert machine.one(cancel(1, grace_ms=5_000)) is False
    assert machine.job(1).state is State.CANCELLED


def test_an_active_job_stays_active_and_its_worker_is_told_without_a_new_lease() -> None:
    machine = cancelling()
    assert kinds_of(machine)[-1] is EventKind.CANCELLING

    assert machine.one(heartbeat(1, token=1, checkpoint=b'{"c":1}'), at=NOW + SECOND) == [Pulse.CANCEL]

    job = machine.job(1)
    assert (job.state, job.lease_expires_at) == (State.ACTIVE, NOW + 10 * SECOND)
    assert job.checkpoint == b'{"c":1}'
    machine.check()


def test_an_ack_in_time_still_completes_it() -> None:
    machine = cancelling()

    assert machine.one(ack(1, ask=2, token=1)) == [None]
    assert machine.job(1).state is State.COMPLETED
    with nothing_changes(machine):
        assert machine.one(cancel(1, ask=9, grace_ms=5_000)) is True
    assert machine.one(cancel(1, ask=10, grace_ms=5_000)).code == "WRONG_STATE"
    machine.apply(ring(), at=NOW + 6 * SECOND)
    assert machine.job(1).state is State.COMPLETED


def test_a_fail_leaves_it_cancelled_with_attempts_left() -> None:
    machine = cancelling()

    [failure] = machine.one(fail(1, ask=2, token=1))

    assert failure.state is State.CANCELLED
    assert machine.job(1).state is State.CANCELLED
    machine.check()


def test_the_end_of_the_grace_cancels_it() -> None:
    machine = cancelling(grace_ms=5_000)
    machine.flush()
    machine.restart()

    machine.apply(ring(), at=NOW + 5 * SECOND - 1)
    assert machine.job(1).state is State.ACTIVE
    machine.apply(ring(), at=NOW + 5 * SECOND)

    assert (machine.job(1).state, machine.job(1).failed_at) == (State.CANCELLED, NOW + 5 * SECOND)
    assert machine.one(heartbeat(1, token=1)) == [Pulse.CANCEL]
    assert machine.one(ack(1, ask=2, token=1))[0].code == "LEASE_LOST"
    assert machine.one(cancel(1, ask=9, grace_ms=5_000)) is True, "the same request again"
    machine.check()


def test_the_end_of_the_lease_cancels_it_with_attempts_left() -> None:
    machine = cancelling(grace_ms=60_000)

    assert machine.one(reclaim(), at=NOW + 10 * SECOND) == 1

    assert machine.job(1).state is State.CANCELLED
    assert machine.tables.errors(job_id(1))[0].worker_id == "w1"
    machine.check()


def test_a_second_cancel_is_answered_alike_and_the_sooner_end_counts() -> None:
    machine = cancelling(grace_ms=5_000)

    assert machine.one(cancel(1, ask=10, grace_ms=8_000)) is True
    assert machine.job(1).extras.cancel_at == NOW + 5 * SECOND
    assert machine.one(cancel(1, ask=11, grace_ms=2_000)) is True
    assert machine.job(1).extras.cancel_at == NOW + 2 * SECOND
    assert kinds_of(machine).count(EventKind.CANCELLING) == 1
    assert machine.one(cancel(1, ask=12)) is True
    assert machine.job(1).state is State.CANCELLED, "without a grace, at once"


def test_a_cancelled_job_that_is_run_again_is_not_cancelled_by_the_old_wish() -> None:
    machine = cancelling(grace_ms=5_000)
    machine.apply(fail(1, ask=2, token=1), Retry(3, job_id(1)), fetch(claim=2, lease_ms=60_000))

    machine.apply(ring(), at=NOW + 6 * SECOND)

    assert machine.job(1).state is State.ACTIVE
    assert machine.one(heartbeat(1, token=2)) == [Pulse.OK]

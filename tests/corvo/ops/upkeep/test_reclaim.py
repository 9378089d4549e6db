"""Reclaim: a lease that ran out counts as a failed attempt."""

import pytest

from corvo.model.lifecycle import State
from corvo.ops.upkeep import reclaim as module
from tests.support.builders import MS, NOW, SECOND, ack, enqueue, fetch, heartbeat, job_id, reclaim
from tests.support.machine import Machine, nothing_changes


def with_active_job(**fields: object) -> Machine:
    machine = Machine()
    machine.apply(enqueue(1, **fields), fetch(lease_ms=10_000))
    return machine


def test_a_job_whose_lease_is_over_goes_back_to_pending_and_not_before() -> None:
    machine = with_active_job()

    with nothing_changes(machine):
        assert machine.one(reclaim(), at=NOW + 10 * SECOND - 1) == 0
    assert machine.one(reclaim(), at=NOW + 10 * SECOND) == 1

    assert (machine.job(1).state, machine.job(1).attempt) == (State.PENDING, 1)
    assert machine.changes.woken == {"mail"}
    [error] = machine.tables.errors(job_id(1))
    assert (error.error, error.claim) == ("lease of worker w1 expired", 1)
    assert machine.queue().failed == 1
    machine.check()


def test_a_job_without_attempts_left_is_dead() -> None:
    machine = with_active_job(max_retries=1)

    machine.apply(reclaim(), at=NOW + 10 * SECOND)

    assert (machine.job(1).state, machine.job(1).failed_at) == (State.DEAD, NOW + 10 * SECOND)
    machine.check()


def test_a_job_that_kills_its_workers_stops_doing_so() -> None:
    machine = Machine()
    machine.apply(enqueue(1, max_retries=3))

    claims = 0
    while machine.one(fetch(claim=claims + 1, lease_ms=1_000)):
        claims += 1
        machine.apply(reclaim(), at=machine.now + SECOND)

    assert claims == 3
    assert machine.job(1).state == State.DEAD
    assert len(machine.tables.errors(job_id(1))) == 3


@pytest.mark.parametrize("spoken", [ack(1), heartbeat(1)], ids=["ack", "heartbeat"])
def test_a_job_whose_worker_spoke_in_time_is_left_alone(spoken) -> None:
    machine = with_active_job()
    machine.apply(spoken, at=NOW + 9 * SECOND)

    with nothing_changes(machine):
        assert machine.one(reclaim(), at=NOW + 10 * SECOND) == 0


def test_leases_end_in_their_order_whatever_order_they_were_taken_in() -> None:
    machine = Machine()
    machine.apply(enqueue(1, 2, 3))
    for number, lease_ms in enumerate((3_000, 1_000, 2_000), 1):
        machine.apply(fetch(claim=number, lease_ms=lease_ms))

    machine.apply(reclaim(), at=NOW + 5 * SECOND)

    assert [claim.job_id for claim in machine.one(fetch(count=3, claim=9))] == [job_id(2), job_id(3), job_id(1)]


def test_a_crowd_is_reclaimed_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "UPKEEP_JOBS_PER_ENTRY", 2)
    machine = Machine()
    machine.apply(enqueue(*range(1, 6)), fetch(count=5, lease_ms=1_000))

    assert [machine.one(reclaim(), at=NOW + SECOND) for _ in range(4)] == [2, 2, 1, 0]
    machine.check()


def test_a_lease_is_known_after_a_restart() -> None:
    machine = with_active_job()
    machine.flush()
    machine.restart()

    assert machine.one(reclaim(), at=NOW + 10 * SECOND - MS) == 0
    assert machine.one(reclaim(), at=NOW + 10 * SECOND) == 1

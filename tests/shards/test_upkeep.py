"""Timers: what is due is proposed, what is not is slept for, and neither needs a memory."""

from hypothesis import given

from corvo.model.lifecycle import State
from corvo.ops.schedules.fire_schedules import FireSchedules
from corvo.ops.upkeep.keep_ended import KeepEnded
from corvo.ops.upkeep.keep_workers import KeepWorkers
from corvo.ops.upkeep.promote import Promote
from corvo.ops.upkeep.reclaim import Reclaim
from corvo.state.due import HORIZON_NS
from shards.upkeep import UpkeepSettings, next_upkeep_ns, upkeep_due
from tests.support.builders import MS, NOW, SECOND, cancel, enqueue, fail, fetch
from tests.support.machine import Machine
from tests.support.schedules import create as create_schedule
from tests.support.schedules import look
from tests.support.strategies import logs


def test_an_empty_shard_has_nothing_due_and_looks_again_at_the_horizon() -> None:
    machine = Machine()

    assert upkeep_due(machine.tables, NOW) == []
    assert next_upkeep_ns(machine.tables, NOW) == NOW + HORIZON_NS


def test_another_retention_than_the_state_s_is_proposed_once() -> None:
    machine = Machine()

    settings = UpkeepSettings(retention_ms=3_600_000)

    assert next_upkeep_ns(machine.tables, NOW, settings) == NOW
    assert upkeep_due(machine.tables, NOW, settings) == [KeepEnded(3_600_000)]
    machine.apply(KeepEnded(3_600_000))
    assert upkeep_due(machine.tables, NOW, settings) == []
    assert next_upkeep_ns(machine.tables, NOW, settings) > NOW


def test_another_worker_timeout_than_the_state_s_is_proposed_once() -> None:
    machine = Machine()
    settings = UpkeepSettings(worker_timeout_ms=60_000)

    assert next_upkeep_ns(machine.tables, NOW, settings) == NOW
    assert upkeep_due(machine.tables, NOW, settings) == [KeepWorkers(60_000)]
    machine.apply(KeepWorkers(60_000))
    assert upkeep_due(machine.tables, NOW, settings) == []


def test_a_scheduled_job_is_due_at_its_nanosecond_and_not_before() -> None:
    machine = Machine()
    machine.apply(enqueue(1, scheduled_at=NOW + 7 * MS))

    assert upkeep_due(machine.tables, NOW + 7 * MS - 1) == []
    assert next_upkeep_ns(machine.tables, NOW) == NOW + 7 * MS
    assert upkeep_due(machine.tables, NOW + 7 * MS) == [Promote()]


def test_a_lease_is_over_at_its_nanosecond_and_not_before() -> None:
    machine = Machine()
    machine.apply(enqueue(1), fetch(lease_ms=1_050))
    end = NOW + 1_050 * MS

    assert upkeep_due(machine.tables, end - 1) == []
    assert next_upkeep_ns(machine.tables, end - 1) == end
    assert upkeep_due(machine.tables, end) == [Reclaim()]


def test_what_is_due_together_is_proposed_together_promotions_first() -> None:
    machine = Machine()
    machine.apply(enqueue(1), fetch(lease_ms=1_000), enqueue(2, scheduled_at=NOW + SECOND))

    assert upkeep_due(machine.tables, NOW + SECOND) == [Promote(), Reclaim()]


def test_a_failed_job_without_backoff_is_due_at_once() -> None:
    machine = Machine()
    machine.apply(enqueue(1, base_delay_ms=0), fetch(), fail(1))

    assert upkeep_due(machine.tables, NOW) == [Promote()]
    assert next_upkeep_ns(machine.tables, NOW) == NOW


def test_a_cancelled_job_wakes_the_shard_at_most_once_and_proposes_nothing() -> None:
    machine = Machine()
    machine.apply(enqueue(1, scheduled_at=NOW + 100 * MS))
    machine.apply(cancel(1))
    due_at = next_upkeep_ns(machine.tables, NOW)

    assert upkeep_due(machine.tables, due_at) == []
    assert next_upkeep_ns(machine.tables, due_at) == due_at + HORIZON_NS


def test_a_schedule_is_due_at_its_slot_and_slept_for_until_then() -> None:
    machine = Machine()
    machine.apply(create_schedule(cron="* * * * * *"))
    look(machine, NOW)  # a new one is looked at once

    assert next_upkeep_ns(machine.tables, NOW) == NOW + SECOND
    assert upkeep_due(machine.tables, NOW + SECOND - 1) == []
    [operation] = upkeep_due(machine.tables, NOW + SECOND)
    assert isinstance(operation, FireSchedules)
    assert machine.one(operation, at=NOW + SECOND) == 1
    assert next_upkeep_ns(machine.tables, NOW + SECOND) == NOW + 2 * SECOND


@given(logs)
def test_sleeping_until_the_next_timer_never_sleeps_past_one(log: list) -> None:
    """Both answers against a look at every job: never late, and early only up to the next glance."""
    machine = Machine()
    for step, operations in log:
        machine.apply(*operations, at=machine.now + step)
        wall = max(machine.now, machine.tables.now)
        dues = [job.due_at for job in machine.jobs() if job.state in (State.SCHEDULED, State.RETRYING)]
        ends = [job.lease_expires_at for job in machine.jobs() if job.state == State.ACTIVE]

        assert (Promote() in upkeep_due(machine.tables, wall)) == any(due <= wall for due in dues)
        assert (Reclaim() in upkeep_due(machine.tables, wall)) == any(end <= wall for end in ends)
        assert next_upkeep_ns(machine.tables, wall) <= min([*dues, *ends], default=wall + HORIZON_NS)
        if not upkeep_due(machine.tables, wall):
            assert next_upkeep_ns(machine.tables, wall) > wall, "a shard with nothing to do must sleep"

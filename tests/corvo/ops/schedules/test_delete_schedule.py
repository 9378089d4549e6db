"""DeleteSchedule: nothing fires any more, the name is free, jobs stay."""

import msgspec

from corvo.endpoint import Plan
from corvo.ops.schedules import delete_schedule as module
from corvo.ops.schedules.delete_schedule import DeleteSchedule
from corvo.ops.schedules.fire_schedules import FireSchedules
from corvo.queries.schedule_view import GetSchedule
from corvo.rules import schedules
from tests.support.builders import NOW, SECOND, an_asking
from tests.support.machine import Machine, nothing_changes
from tests.support.schedules import create, look, schedule_id, the_schedule

[ENDPOINT] = module.ENDPOINTS
MINUTE = 60 * SECOND


def test_a_deleted_schedule_is_gone_and_its_jobs_are_not() -> None:
    machine = Machine()
    machine.apply(create())
    look(machine, NOW + MINUTE)
    firings = schedules.due(machine.tables, NOW + 2 * MINUTE)

    assert machine.one(DeleteSchedule(schedule_id())) is True

    assert machine.tables.schedules.find("nightly") is None
    assert len(machine.jobs()) == 1
    with nothing_changes(machine):
        assert machine.one(FireSchedules(firings), at=NOW + 2 * MINUTE) == 0
        assert look(machine, NOW + 3 * MINUTE) == 0


def test_a_deleted_schedule_stays_deleted_after_a_crash() -> None:
    machine = Machine()
    machine.apply(create())
    machine.flush()
    machine.apply(DeleteSchedule(schedule_id()))
    machine.restart()

    assert len(machine.tables.schedules) == 0


def test_the_name_is_free_for_a_schedule_that_a_repetition_does_not_touch() -> None:
    machine = Machine()
    machine.apply(create(number=1), DeleteSchedule(schedule_id(1)), create(number=2, queue="sms"))

    with nothing_changes(machine):
        assert machine.one(DeleteSchedule(schedule_id(1))) is False

    assert the_schedule(machine).id == schedule_id(2)


def test_a_name_deletes_nothing_by_itself() -> None:
    """Or the repetition of a request could delete the successor."""
    machine = Machine()
    machine.apply(create())

    with nothing_changes(machine):
        assert machine.one(DeleteSchedule("nightly")) is False


def test_the_schedule_is_looked_up_and_then_deleted_by_its_id() -> None:
    machine = Machine()
    made = machine.one(create(shard=2))
    assert ENDPOINT.plan is not None
    plan = ENDPOINT.plan(an_asking(), None, made.id)

    assert plan.calls == [(2, GetSchedule(made.id))]
    then = plan.conclude([made])
    assert isinstance(then, Plan)
    assert then.calls == [(2, DeleteSchedule(made.id))]
    answer = then.conclude([False])
    assert not isinstance(answer, Plan)
    assert msgspec.to_builtins(answer.body) == {"id": made.id, "name": "nightly", "status": "deleted"}

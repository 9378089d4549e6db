"""PauseSchedule: nothing fires any more, not even what the leader has worked out already."""

import pytest

from corvo.ops.schedules import pause_schedule as module
from corvo.ops.schedules.fire_schedules import FireSchedules
from corvo.ops.schedules.pause_schedule import PauseSchedule
from corvo.rules import schedules
from corvo.state.schedules import CatchUp
from tests.support.builders import NOW, SECOND, an_asking
from tests.support.machine import Machine, nothing_changes
from tests.support.schedules import create, look, schedule_id, the_schedule

[ENDPOINT] = module.ENDPOINTS
MINUTE = 60 * SECOND


@pytest.mark.parametrize("schedule", ["nightly", schedule_id(1)])
def test_a_paused_schedule_fires_nothing(schedule: str) -> None:
    machine = Machine()
    machine.apply(create(catch_up=CatchUp.ALL))

    paused = machine.one(PauseSchedule(schedule), at=NOW + SECOND)

    assert paused == the_schedule(machine)
    assert (paused.is_paused, paused.updated_at) == (True, NOW + SECOND)
    with nothing_changes(machine):
        assert look(machine, NOW + 60 * MINUTE) == 0


def test_what_was_worked_out_before_the_pause_does_not_fire() -> None:
    machine = Machine()
    machine.apply(create())
    firings = schedules.due(machine.tables, NOW + MINUTE)
    machine.apply(PauseSchedule("nightly"))

    with nothing_changes(machine):
        assert machine.one(FireSchedules(firings), at=NOW + MINUTE) == 0


def test_a_repetition_changes_nothing_and_gets_the_same_answer() -> None:
    machine = Machine()
    machine.apply(create())
    first = machine.one(PauseSchedule("nightly"))

    with nothing_changes(machine):
        assert machine.one(PauseSchedule("nightly"), at=NOW + SECOND) == first


def test_an_unknown_schedule_is_refused() -> None:
    machine = Machine()

    with nothing_changes(machine):
        assert machine.one(PauseSchedule("nightly")).code == "SCHEDULE_NOT_FOUND"


def test_the_request_goes_to_the_shard_in_the_id() -> None:
    assert ENDPOINT.plan is not None
    plan = ENDPOINT.plan(an_asking(), None, schedule_id(1, shard=2))

    assert plan.calls == [(2, PauseSchedule(schedule_id(1, shard=2)))]

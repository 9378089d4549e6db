"""ResumeSchedule: from now on, and nothing of what was missed while paused."""

from corvo.ops.schedules import resume_schedule as module
from corvo.ops.schedules.pause_schedule import PauseSchedule
from corvo.ops.schedules.resume_schedule import ResumeSchedule
from corvo.state.schedules import CatchUp
from tests.support.builders import NOW, SECOND, an_asking
from tests.support.machine import Machine, nothing_changes
from tests.support.schedules import create, look, schedule_id, slots_of, the_schedule

[ENDPOINT] = module.ENDPOINTS
MINUTE = 60 * SECOND


def test_what_was_missed_while_paused_stays_missed() -> None:
    machine = Machine()
    machine.apply(create(catch_up=CatchUp.ALL))
    look(machine, NOW)
    machine.apply(PauseSchedule("nightly"))

    resumed = machine.one(ResumeSchedule("nightly"), at=NOW + 30 * MINUTE + SECOND)

    assert resumed == the_schedule(machine)
    assert look(machine, NOW + 30 * MINUTE + SECOND) == 0
    assert look(machine, NOW + 32 * MINUTE) == 2, "the policy counts from here on"
    assert slots_of(machine.jobs()) == ["2026-01-01T00:31:00", "2026-01-01T00:32:00"]


def test_a_schedule_that_is_not_paused_is_left_alone() -> None:
    machine = Machine()
    first = machine.one(create())

    with nothing_changes(machine):
        assert machine.one(ResumeSchedule("nightly"), at=NOW + MINUTE) == first
    assert look(machine, NOW + MINUTE) == 1, "what was due is not passed over"


def test_a_repetition_changes_nothing_and_gets_the_same_answer() -> None:
    machine = Machine()
    machine.apply(create(), PauseSchedule("nightly"))
    first = machine.one(ResumeSchedule("nightly"))

    with nothing_changes(machine):
        assert machine.one(ResumeSchedule("nightly"), at=NOW + SECOND) == first


def test_an_unknown_schedule_is_refused() -> None:
    machine = Machine()

    with nothing_changes(machine):
        assert machine.one(ResumeSchedule("nightly")).code == "SCHEDULE_NOT_FOUND"


def test_the_request_goes_to_the_shard_in_the_id() -> None:
    assert ENDPOINT.plan is not None
    plan = ENDPOINT.plan(an_asking(), None, schedule_id(1, shard=2))

    assert plan.calls == [(2, ResumeSchedule(schedule_id(1, shard=2)))]

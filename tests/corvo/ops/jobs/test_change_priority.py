"""ChangePriority: a job that waits is filed anew under another priority."""

import pytest

from corvo.model.events import EventKind
from corvo.model.job import Priority
from corvo.model.lifecycle import STATE_NAMES, State
from corvo.ops.jobs.change_priority import WAITING, ChangePriority
from tests.support.builders import enqueue, fetch, job_id
from tests.support.courier_sockets import a_machine_with
from tests.support.event_kinds import events_of
from tests.support.machine import Machine, nothing_changes

HIGH = ChangePriority(job_id(1), Priority.HIGH, 9)


@pytest.mark.parametrize("state", State, ids=STATE_NAMES)
def test_it_is_for_jobs_that_wait(state: State) -> None:
    machine = a_machine_with(state)

    if state in WAITING:
        assert machine.one(HIGH) is None
        assert (machine.job(1).priority, machine.job(1).state) == (Priority.HIGH, state)
        machine.check()
        with nothing_changes(machine):
            assert machine.one(HIGH) is None
        return
    with nothing_changes(machine):
        refused = machine.one(HIGH)
    assert (refused.code, f"is {STATE_NAMES[state]}" in refused.message) == ("WRONG_STATE", True)


def test_a_pending_job_goes_to_the_back_of_its_new_class() -> None:
    machine = Machine()
    machine.apply(enqueue(1, 2), enqueue(3, priority=Priority.HIGH))
    machine.apply(HIGH)

    assert [claimed.job_id for claimed in machine.one(fetch(count=3))] == [job_id(3), job_id(1), job_id(2)]
    machine.check()


def test_the_change_is_told() -> None:
    machine = a_machine_with(State.PENDING)
    machine.apply(HIGH)

    event = events_of(machine)[-1]
    assert (event.kind, event.data) == (EventKind.PRIORITY_CHANGED, b'{"priority":"high"}')


def test_one_without_an_id_from_an_older_log_acts_each_time() -> None:
    machine = a_machine_with(State.PENDING)
    machine.apply(ChangePriority(job_id(1), Priority.HIGH), ChangePriority(job_id(1), Priority.CRITICAL))
    machine.apply(ChangePriority(job_id(1), Priority.HIGH))

    assert machine.job(1).priority is Priority.HIGH

"""Requeue: a dead job gets one more attempt."""

from corvo.model.lifecycle import State
from corvo.ops.jobs.requeue import Requeue
from tests.support.builders import fail, fetch, job_id
from tests.support.courier_sockets import a_machine_with


def test_the_attempts_stay_counted_and_one_more_failure_is_the_end() -> None:
    machine = a_machine_with(State.DEAD)

    machine.apply(Requeue(9, job_id(1)))
    [claimed] = machine.one(fetch(claim=2))
    assert claimed.attempt == 2
    machine.apply(fail(1, ask=8, token=2))

    assert machine.job(1).state is State.DEAD
    assert [error.attempt for error in machine.tables.errors(job_id(1))] == [1, 2]
    machine.check()

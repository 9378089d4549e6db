"""Approve: a held job goes to the back of its queue."""

from corvo.model.job_extras import JobExtras
from corvo.model.lifecycle import State
from corvo.ops.jobs.approve import Approve
from corvo.ops.jobs.hold import Hold
from tests.support.builders import enqueue, fetch, job_id
from tests.support.courier_sockets import a_machine_with
from tests.support.machine import Machine


def test_an_approved_job_stands_at_the_back() -> None:
    machine = a_machine_with(State.HELD)
    machine.apply(enqueue(2), Approve(9, job_id(1)))

    assert [claimed.job_id for claimed in machine.one(fetch(count=2))] == [job_id(2), job_id(1)]
    assert machine.job(1).extras.hold_reason == ""
    machine.check()


def test_an_approved_job_waits_for_no_other() -> None:
    machine = Machine()
    machine.apply(enqueue(2, queue="other"))
    machine.apply(enqueue(1, extras=JobExtras(waits_for=(job_id(2),))), Hold(8, job_id(1)))

    machine.apply(Approve(9, job_id(1)))

    assert [claimed.job_id for claimed in machine.one(fetch())] == [job_id(1)]
    assert machine.job(1).extras.waits_for == ()

"""Pause: nothing is claimed until the queue is resumed."""

import msgspec

from corvo.model.events import Event, EventKind
from corvo.model.job import Controls
from corvo.model.lifecycle import State
from corvo.ops.queues.drain_queue import DrainQueue
from corvo.ops.queues.pause_queue import ENDPOINTS, PauseQueue
from tests.corvo.ops.queues.events import told
from tests.support.builders import ack, an_asking, enqueue, fetch, job_id, new_job
from tests.support.machine import Machine, nothing_changes


def test_nothing_is_claimed_from_a_paused_queue_and_what_is_active_goes_on() -> None:
    machine = Machine()
    machine.apply(enqueue(1, 2), fetch())
    machine.one(PauseQueue("mail"))

    with nothing_changes(machine):
        assert machine.one(fetch(claim=2)) == []
    machine.one(ack(1))
    assert machine.job(1).state == State.COMPLETED
    machine.one(enqueue(3))
    assert machine.queue().counts[State.PENDING] == 2
    machine.check()


def test_a_paused_queue_does_not_keep_the_next_one_waiting() -> None:
    machine = Machine()
    machine.apply(enqueue(new_job(1, queue="a"), new_job(2, queue="b")), PauseQueue("a"))

    assert [claim.job_id for claim in machine.one(fetch("a", "b", count=2))] == [job_id(2)]


def test_a_queue_that_does_not_exist_is_made() -> None:
    machine = Machine()
    machine.one(PauseQueue("mail"))

    assert machine.queue().controls == Controls(is_paused=True)
    machine.one(enqueue(1))
    assert machine.one(fetch()) == []


def test_a_pause_is_told_once_and_survives_a_restart() -> None:
    machine = Machine()
    machine.apply(PauseQueue("mail"))
    with nothing_changes(machine):
        machine.apply(PauseQueue("mail"))
    assert told(machine) == [Event(EventKind.QUEUE_PAUSED, "", "mail")]

    machine.flush()
    machine.restart()
    machine.apply(enqueue(1))
    assert machine.one(fetch()) == []


def test_a_pause_takes_the_place_of_a_drain() -> None:
    machine = Machine()
    machine.apply(DrainQueue("mail"), PauseQueue("mail"))

    assert machine.queue().controls == Controls(is_paused=True)


def test_the_answer_says_paused() -> None:
    [endpoint] = ENDPOINTS
    assert endpoint.plan is not None
    plan = endpoint.plan(an_asking(), None, "mail")

    assert msgspec.to_builtins(plan.conclude([None]).body) == {"status": "paused"}

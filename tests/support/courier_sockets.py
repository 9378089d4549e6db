"""The shortest road of job 1 to each state."""

from corvo.endpoint import Operation
from corvo.model.lifecycle import State
from corvo.ops.jobs.hold import Hold
from tests.support.builders import NOW, SECOND, ack, cancel, enqueue, fail, fetch, job_id
from tests.support.machine import Machine

ROADS: dict[State, list[Operation]] = {
    State.PENDING: [enqueue(1)],
    State.ACTIVE: [enqueue(1), fetch()],
    State.COMPLETED: [enqueue(1), fetch(), ack(1, ask=101, result=b"5")],
    State.RETRYING: [enqueue(1), fetch(), fail(1, ask=101, error="boom")],
    State.DEAD: [enqueue(1, max_retries=1), fetch(), fail(1, ask=101, error="boom")],
    State.CANCELLED: [enqueue(1), cancel(1, ask=101)],
    State.SCHEDULED: [enqueue(1, scheduled_at=NOW + 60 * SECOND)],
    State.HELD: [enqueue(1), Hold(101, job_id(1), "wait")],
}


def a_machine_with(state: State, **fields: object) -> Machine:
    """Job 1 in this state; the fields are those of its enqueue."""
    machine = Machine()
    road = list(ROADS[state])
    if fields:
        scheduled = {"scheduled_at": NOW + 60 * SECOND} if state is State.SCHEDULED else {}
        attempts = {"max_retries": 1} if state is State.DEAD else {}
        road[0] = enqueue(1, **(scheduled | attempts | fields))
    machine.apply(*road)
    assert machine.job(1).state is state
    return machine

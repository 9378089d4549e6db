"""Run now: the schedule is read, then its job is enqueued where its queue is."""

from typing import Any

import msgspec
import pytest

from corvo.endpoint import Answer, Plan
from corvo.model.lifecycle import State
from corvo.model.sharding import shard_of_queue
from corvo.ops.jobs.enqueue import Enqueue
from corvo.ops.schedules import run as module
from corvo.queries.schedule_view import GetSchedule
from corvo.rules.job_creation import Existing
from tests.support.builders import NOW, an_asking, job_id
from tests.support.machine import Machine
from tests.support.schedules import create, the_schedule

[ENDPOINT] = module.ENDPOINTS


def second_round(machine: Machine) -> Plan:
    assert ENDPOINT.plan is not None
    plan = ENDPOINT.plan(an_asking(), None, the_schedule(machine).id)
    [(shard, ask)] = plan.calls
    assert (shard, ask) == (2, GetSchedule(the_schedule(machine).id))
    assert isinstance(ask, GetSchedule)
    then = plan.conclude([ask.read(machine.tables)])
    assert isinstance(then, Plan)
    return then


def test_one_job_is_made_however_often_the_request_arrives() -> None:
    machine = Machine()
    machine.apply(create(shard=2, tags=b'{"a":1}', unique_key="k"))
    [(shard, ask)] = second_round(machine).calls

    assert isinstance(ask, Enqueue)
    assert shard == shard_of_queue("mail", 4)
    assert machine.apply(ask, ask) == [[State.PENDING], [State.PENDING]]
    [job] = machine.jobs()
    assert job.tags == b'{"schedule":"nightly","a":1}', "it has no slot"
    assert job.extras is not None
    assert (job.extras.schedule_id, job.extras.unique_key) == (the_schedule(machine).id, "k")
    assert (the_schedule(machine).fired, the_schedule(machine).settled_to) == (0, NOW), "its slots are not touched"


@pytest.mark.parametrize(
    ("outcome", "status", "told"),
    [
        (State.PENDING, 201, {"status": "pending", "unique_existing": False}),
        (Existing(job_id(9)), 200, {"job_id": job_id(9), "status": "duplicate", "unique_existing": True}),
    ],
    ids=["made", "another holds the key"],
)
def test_the_answer_says_what_became_of_it(outcome: Any, status: int, told: dict[str, Any]) -> None:
    machine = Machine()
    machine.apply(create(shard=2))
    plan = second_round(machine)

    answer = plan.conclude([[outcome]])

    assert isinstance(answer, Answer)
    [(_, ask)] = plan.calls
    assert isinstance(ask, Enqueue)
    assert answer.status == status
    assert msgspec.to_builtins(answer.body) == {"job_id": ask.jobs[0].id, **told}

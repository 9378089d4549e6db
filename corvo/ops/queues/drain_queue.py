"""Drain a queue: no more jobs are claimed from it; the answer is the number of active jobs.

Unlike a pause, a drain has an end: the queue is `draining` while a job is active, and `drained` from then on, until it
is resumed.
"""

from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from corvo.endpoint import Answer, Endpoint, Operation, Plan, PlanContext
from corvo.model.events import EventKind
from corvo.model.lifecycle import State
from corvo.ops.queues.control import ask_queue, control
from corvo.state.tables import Tables


class QueueDraining(msgspec.Struct):
    status: Annotated[str, Meta(description="`draining`, or `drained` when no job is active")]
    active: Annotated[int, Meta(description="jobs that workers still hold")]


class DrainQueue(Operation, tag=12):
    queue: str

    result: ClassVar[Any] = int

    def apply(self, tables: Tables) -> int:
        """How many jobs are still active."""
        queue = control(tables, self.queue, EventKind.QUEUE_DRAINING, is_paused=False, is_draining=True)
        return queue.counts[State.ACTIVE]


def _plan(context: PlanContext, body: None, name: str) -> Plan:
    def conclude(active: int) -> Answer:
        return Answer(200, QueueDraining("draining" if active else "drained", active))

    return ask_queue(context, name, DrainQueue, conclude)


ENDPOINTS = (
    Endpoint(
        name="drain_queue",
        access="queues:drain",
        method="POST",
        repeats="freely",
        path="/queues/{name}/drain",
        summary="Stop claims from a queue, and report how many jobs are still active",
        answers={200: QueueDraining},
        refusals=("VALIDATION_ERROR",),
        plan=_plan,
    ),
)

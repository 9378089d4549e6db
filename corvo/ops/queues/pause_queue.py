"""Pause a queue: no jobs are claimed from it until it is resumed. Active jobs continue."""

from typing import Any, ClassVar

from corvo.endpoint import Answer, Endpoint, Operation, Plan, PlanContext
from corvo.model.events import EventKind
from corvo.ops.queues.control import QueueChanged, ask_queue, control
from corvo.state.tables import Tables


class PauseQueue(Operation, tag=10):
    queue: str

    result: ClassVar[Any] = type(None)

    def apply(self, tables: Tables) -> None:
        control(tables, self.queue, EventKind.QUEUE_PAUSED, is_paused=True, is_draining=False)


def _plan(context: PlanContext, body: None, name: str) -> Plan:
    return ask_queue(context, name, PauseQueue, lambda _: Answer(200, QueueChanged("paused")))


ENDPOINTS = (
    Endpoint(
        name="pause_queue",
        access="queues:pause",
        method="POST",
        repeats="freely",
        path="/queues/{name}/pause",
        summary="Stop claims from a queue; it is created if it does not exist",
        answers={200: QueueChanged},
        refusals=("VALIDATION_ERROR",),
        plan=_plan,
    ),
)

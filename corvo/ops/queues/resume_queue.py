"""Resume a queue that was paused or drained. Its limits stay as they are."""

from typing import Any, ClassVar

from corvo.endpoint import Answer, Endpoint, Operation, Plan, PlanContext
from corvo.model.events import EventKind
from corvo.ops.queues.control import QueueChanged, ask_queue, control
from corvo.queries.queue_names import require_queue
from corvo.state.tables import Tables


class ResumeQueue(Operation, tag=11):
    queue: str

    result: ClassVar[Any] = type(None)

    def apply(self, tables: Tables) -> None:
        require_queue(tables, self.queue)
        control(tables, self.queue, EventKind.QUEUE_RESUMED, is_paused=False, is_draining=False)


def _plan(context: PlanContext, body: None, name: str) -> Plan:
    return ask_queue(context, name, ResumeQueue, lambda _: Answer(200, QueueChanged("resumed")))


ENDPOINTS = (
    Endpoint(
        name="resume_queue",
        access="queues:resume",
        method="POST",
        repeats="freely",
        path="/queues/{name}/resume",
        summary="Allow claims from a queue again, after a pause or a drain",
        answers={200: QueueChanged},
        refusals=("VALIDATION_ERROR", "QUEUE_NOT_FOUND"),
        plan=_plan,
    ),
)

"""Concurrency limit of a queue: how many of its jobs may be active at a time, over all workers.

A slot is free as soon as a job stops being active, for any reason. A limit below the number of active jobs ends none of
them; it delays the next claims.
"""

from typing import Annotated, Any, ClassVar

from msgspec import Meta

from corvo.endpoint import Answer, Body, Endpoint, Operation, Plan, PlanContext
from corvo.model.events import EventKind
from corvo.model.job import Count
from corvo.model.limits import CONCURRENCY_MAX
from corvo.ops.queues.control import QueueChanged, ask_queue, control
from corvo.queries.queue_names import require_queue
from corvo.state.tables import Tables


class ConcurrencyBody(Body):
    max: Annotated[int, Meta(le=CONCURRENCY_MAX, description="jobs active at a time; 0 or less: no limit")]


class SetConcurrency(Operation, tag=15):
    queue: str
    max: Count  # 0: no limit

    result: ClassVar[Any] = type(None)

    def apply(self, tables: Tables) -> None:
        if not self.max:
            require_queue(tables, self.queue)
        data = b'{"max_concurrency":%d}' % self.max
        control(tables, self.queue, EventKind.QUEUE_CHANGED, data, max_concurrency=self.max)


def _plan(context: PlanContext, body: ConcurrencyBody, name: str) -> Plan:
    limit = max(body.max, 0)
    return ask_queue(
        context, name, lambda queue: SetConcurrency(queue, limit), lambda _: Answer(200, QueueChanged("ok"))
    )


ENDPOINTS = (
    Endpoint(
        name="set_concurrency",
        access="queues:write",
        method="POST",
        repeats="freely",
        path="/queues/{name}/concurrency",
        summary="Limit how many jobs of a queue are active at a time",
        body=ConcurrencyBody,
        example={"max": 5},
        answers={200: QueueChanged},
        refusals=("VALIDATION_ERROR", "QUEUE_NOT_FOUND"),
        plan=_plan,
    ),
)

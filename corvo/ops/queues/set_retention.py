"""Retention of a queue: how long its jobs are kept after their end, for each final state.

It applies to jobs that end from now on. Jobs that ended before are removed at their old time, or later if the new
retention is longer; a job that ended while its retention was `forever` stays.
"""

from typing import Annotated, Any, ClassVar

from msgspec import UNSET, Meta, UnsetType

from corvo.endpoint import Answer, Body, Endpoint, Operation, Plan, PlanContext
from corvo.model.errors import invalid
from corvo.model.events import EventKind
from corvo.model.job import Controls
from corvo.model.limits import DELAY_MS_MAX, RETENTION_MS_MIN
from corvo.model.timestamps import parse_duration
from corvo.ops.queues.control import QueueChanged, ask_queue, control
from corvo.state.tables import Tables

KEPT = -2  # do not change it
OF_THE_SERVER = -1
FOR_EVER = 0

Span = Annotated[int, Meta(ge=KEPT, le=DELAY_MS_MAX)]
Kept = (
    Annotated[str | None, Meta(description="a duration such as `7d`, `forever`, or null for the server's default")]
    | UnsetType
)


class RetentionBody(Body):
    completed: Kept = UNSET
    dead: Kept = UNSET
    cancelled: Kept = UNSET


class SetRetention(Operation, tag=17):
    queue: str
    spans_ms: tuple[Span, Span, Span]  # of completed, dead, cancelled jobs

    result: ClassVar[Any] = type(None)

    def apply(self, tables: Tables) -> None:
        queue = tables.find_queue(self.queue)
        before = Controls() if queue is None or queue.controls is None else queue.controls
        completed, dead, cancelled = (
            old if new == KEPT else new for new, old in zip(self.spans_ms, before.retention_ms, strict=True)
        )
        data = b'{"retention_ms":{"completed":%d,"dead":%d,"cancelled":%d}}' % (completed, dead, cancelled)
        control(tables, self.queue, EventKind.QUEUE_CHANGED, data, retention_ms=(completed, dead, cancelled))


def _plan(context: PlanContext, body: RetentionBody, name: str) -> Plan:
    if body.completed is UNSET and body.dead is UNSET and body.cancelled is UNSET:
        raise invalid("completed", "nothing to set: give at least one of completed, dead and cancelled")
    spans = _span(body.completed, "completed"), _span(body.dead, "dead"), _span(body.cancelled, "cancelled")
    return ask_queue(context, name, lambda queue: SetRetention(queue, spans), lambda _: Answer(200, QueueChanged("ok")))


def _span(kept: str | UnsetType | None, field: str) -> int:
    if kept is UNSET:
        return KEPT
    if kept is None:
        return OF_THE_SERVER
    if kept == "forever":
        return FOR_EVER
    try:
        span = parse_duration(kept)
    except ValueError as error:
        raise invalid(field, f"{error}, or forever, or null") from None
    if not RETENTION_MS_MIN <= span <= DELAY_MS_MAX:
        raise invalid(field, "between 1s and 366d, or forever")
    return span


ENDPOINTS = (
    Endpoint(
        name="set_retention",
        access="queues:write",
        method="POST",
        repeats="freely",
        path="/queues/{name}/retention",
        summary="Set how long jobs of a queue are kept after their end",
        body=RetentionBody,
        example={"completed": "1h", "dead": None},
        answers={200: QueueChanged},
        plan=_plan,
    ),
)

"""Enqueue: bring jobs into the world.

The gateway mints the ids, so a request that is sent again names the same jobs and makes none twice. A job whose
`scheduled_at` lies ahead is born scheduled, every other one pending.
"""

from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from corvo.errors import Refusal, invalid
from corvo.job import PRIORITY_NAMES, Count, Job, JobId, Moment, Priority, QueueName, SpanMs
from corvo.json_edge import check_numbers, document, no_document, object_document
from corvo.lifecycle import STATE_NAMES, State
from corvo.limits import ATTEMPTS_MAX, DELAY_MS_MAX, JOBS_PER_REQUEST_MAX, SCHEDULE_AHEAD_NS_MAX
from corvo.moments import parse_duration, parse_rfc3339
from corvo.ops.operation import Answer, Asking, Body, Endpoint, Operation, Plan, spread
from corvo.retry import BACKOFF_NAMES, Backoff
from corvo.sharding import shard_of_queue
from corvo.state.effects import bear
from corvo.state.tables import Tables

_PRIORITY = {name: Priority(number) for number, name in enumerate(PRIORITY_NAMES)}
_BACKOFF = {name: Backoff(number) for number, name in enumerate(BACKOFF_NAMES)}
DelayMs = Annotated[int, Meta(ge=0, le=DELAY_MS_MAX)]


class EnqueueBody(Body):
    queue: QueueName
    payload: msgspec.Raw = msgspec.field(default_factory=lambda: msgspec.Raw(b"{}"))
    priority: Literal["critical", "high", "normal"] = "normal"
    max_retries: Annotated[int, Meta(ge=0, le=ATTEMPTS_MAX, description="attempts in all")] = 3
    retry_backoff: Literal["none", "fixed", "linear", "exponential"] = "exponential"
    retry_base_delay: str | None = None
    retry_max_delay: str | None = None
    retry_base_delay_ms: DelayMs | None = None
    retry_max_delay_ms: DelayMs | None = None
    scheduled_at: str | None = None
    tags: msgspec.Raw = msgspec.field(default_factory=no_document)
    checkpoint: msgspec.Raw = msgspec.field(default_factory=no_document)
    parent_id: JobId | None = None


class EnqueueBatchBody(Body):
    jobs: Annotated[list[EnqueueBody], Meta(min_length=1, max_length=JOBS_PER_REQUEST_MAX)]


class Enqueued(msgspec.Struct):
    job_id: str
    status: str
    unique_existing: bool = False


class EnqueuedBatch(msgspec.Struct):
    job_ids: list[str]


class NewJob(msgspec.Struct, array_like=True, gc=False):
    id: str
    queue: str
    payload: bytes
    priority: Priority = Priority.NORMAL
    max_retries: Count = 3
    backoff: Backoff = Backoff.EXPONENTIAL
    base_delay_ms: SpanMs = 5_000
    max_delay_ms: SpanMs = 600_000
    scheduled_at: Moment = 0
    tags: bytes = b""
    checkpoint: bytes = b""
    parent_id: str = ""


class Enqueue(Operation, tag=1):
    jobs: list[NewJob]

    result: ClassVar[Any] = list[State]

    def apply(self, tables: Tables) -> list[State]:
        return [_enqueue(tables, new) for new in self.jobs]


def _enqueue(tables: Tables, new: NewJob) -> State:
    known = tables.find_job(new.id)
    if known is not None:  # the same request once more: its job has lived on, the answer has not changed
        return State.SCHEDULED if new.scheduled_at > known.created_at else State.PENDING
    now = tables.now
    state = State.SCHEDULED if new.scheduled_at > now else State.PENDING
    bear(
        tables,
        Job(
            id=new.id,
            queue=new.queue,
            state=state,
            priority=new.priority,
            payload=new.payload,
            max_retries=new.max_retries,
            backoff=new.backoff,
            base_delay_ms=new.base_delay_ms,
            max_delay_ms=new.max_delay_ms,
            created_at=now,
            due_at=new.scheduled_at if state is State.SCHEDULED else 0,
            tags=new.tags,
            checkpoint=new.checkpoint,
            parent_id=new.parent_id,
        ),
    )
    return state


def new_job(asking: Asking, body: EnqueueBody, shard: int, at: str = "") -> NewJob:
    """A checked body with its id. `at` is where the body stands in a larger one, for messages."""
    payload = bytes(body.payload)
    if len(payload) > asking.payload_bytes_max:
        raise Refusal(
            "PAYLOAD_TOO_LARGE",
            f"{at}payload: {len(payload)} bytes, this server takes {asking.payload_bytes_max}",
            field=f"{at}payload",
        )
    check_numbers(payload, f"{at}payload")
    return NewJob(
        id=asking.mint.job_id(shard),
        queue=body.queue,
        payload=payload,
        priority=_PRIORITY[body.priority],
        max_retries=body.max_retries,
        backoff=_BACKOFF[body.retry_backoff],
        base_delay_ms=_delay(body.retry_base_delay, body.retry_base_delay_ms, 5_000, f"{at}retry_base_delay"),
        max_delay_ms=_delay(body.retry_max_delay, body.retry_max_delay_ms, 600_000, f"{at}retry_max_delay"),
        scheduled_at=_scheduled_at(asking, body.scheduled_at, f"{at}scheduled_at"),
        tags=object_document(body.tags, f"{at}tags"),
        checkpoint=document(body.checkpoint, f"{at}checkpoint"),
        parent_id=body.parent_id or "",
    )


def _delay(text: str | None, number: int | None, default: int, field: str) -> int:
    if text is None:
        return default if number is None else number
    try:
        delay = parse_duration(text)
    except ValueError as error:
        raise invalid(field, str(error)) from None
    if delay > DELAY_MS_MAX:
        raise invalid(field, "longer than a year")
    return delay if number is None else number


def _scheduled_at(asking: Asking, text: str | None, field: str) -> int:
    if text is None:
        return 0
    try:
        moment = parse_rfc3339(text)
    except ValueError as error:
        raise invalid(field, str(error)) from None
    if moment > asking.clock_ns() + SCHEDULE_AHEAD_NS_MAX:
        raise invalid(field, "more than five years ahead")
    return moment


def _plan_one(asking: Asking, body: EnqueueBody) -> Plan:
    shard = shard_of_queue(body.queue, asking.shard_count)
    new = new_job(asking, body, shard)

    def conclude(results: list[Any]) -> Answer:
        return Answer(201, Enqueued(new.id, STATE_NAMES[results[0][0]]))

    return Plan([(shard, Enqueue([new]))], conclude)


def _plan_batch(asking: Asking, body: EnqueueBatchBody) -> Plan:
    groups = spread(body.jobs, lambda job: shard_of_queue(job.queue, asking.shard_count))
    new: dict[int, NewJob] = {
        number: new_job(asking, body.jobs[number], shard, f"jobs[{number}].")
        for shard, numbers in groups.items()
        for number in numbers
    }

    def conclude(results: list[Any]) -> Answer:
        return Answer(201, EnqueuedBatch([new[number].id for number in range(len(new))]))

    calls = [(shard, Enqueue([new[number] for number in numbers])) for shard, numbers in groups.items()]
    return Plan([*calls], conclude)


ENDPOINTS = (
    Endpoint(
        name="enqueue",
        method="POST",
        path="/enqueue",
        summary="Enqueue one job",
        body=EnqueueBody,
        answers={201: Enqueued},
        refusals=("PAYLOAD_TOO_LARGE",),
        plan=_plan_one,
    ),
    Endpoint(
        name="enqueue_batch",
        method="POST",
        path="/enqueue/batch",
        summary="Enqueue up to 1000 jobs, on any queues",
        body=EnqueueBatchBody,
        answers={201: EnqueuedBatch},
        refusals=("PAYLOAD_TOO_LARGE",),
        plan=_plan_batch,
    ),
)

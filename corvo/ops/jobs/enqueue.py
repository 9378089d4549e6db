"""Enqueue: create jobs.

The gateway chooses the ids, so a repeated request names the same jobs and creates none twice. A job with a
`scheduled_at` in the future starts as scheduled, every other job as pending. Most jobs need one call to their shard.
Dependencies need a call before it, to check that they exist; a job of a batch goes to the batch's shard.
"""

from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from corvo.endpoint import Answer, Body, Endpoint, Operation, Plan, PlanContext, gather, spread
from corvo.model.errors import Refusal, invalid
from corvo.model.job import PRIORITY_NAMES, JobId, Priority, QueueName
from corvo.model.json_input import check_numbers, document, no_document, object_document
from corvo.model.lifecycle import STATE_NAMES, State
from corvo.model.limits import ATTEMPTS_MAX, DELAY_MS_MAX, JOBS_PER_REQUEST_MAX
from corvo.model.name_fields import NameKind
from corvo.model.quotas import Room
from corvo.model.retry import BACKOFF_NAMES, Backoff
from corvo.model.sharding import shard_of_queue
from corvo.ops.batches.add_to_batch import AddToBatch, BatchBody, adding, spec_of
from corvo.ops.job_terms import JobTerms, due_at_of, duration_ms, extras_of
from corvo.queries.unknown_jobs import FindUnknown
from corvo.rules.batches import BatchSpec
from corvo.rules.job_creation import Existing, NewJob, make
from corvo.rules.quotas import require_room
from corvo.state.tables import Tables

_PRIORITY = {name: Priority(number) for number, name in enumerate(PRIORITY_NAMES)}
_BACKOFF = {name: Backoff(number) for number, name in enumerate(BACKOFF_NAMES)}
BatchId = Annotated[str, Meta(min_length=1, max_length=64), NameKind.ID]
DelayMs = Annotated[int, Meta(ge=0, le=DELAY_MS_MAX)]


class EnqueueBody(JobTerms):
    queue: QueueName
    payload: msgspec.Raw = msgspec.field(default_factory=lambda: msgspec.Raw(b"{}"))
    priority: Literal["critical", "high", "normal"] | int = "normal"
    max_retries: Annotated[int, Meta(ge=0, le=ATTEMPTS_MAX, description="attempts in total")] = 3
    retry_backoff: Literal["none", "fixed", "linear", "exponential"] = "exponential"
    retry_base_delay: str | None = None
    retry_max_delay: str | None = None
    retry_base_delay_ms: DelayMs | None = None
    retry_max_delay_ms: DelayMs | None = None
    scheduled_at: Annotated[str | None, Meta(description="earliest start: RFC 3339, or a date")] = None
    delay: Annotated[str | None, Meta(description="earliest start, as a duration from now: `10m`")] = None
    delay_ms: Annotated[DelayMs | None, Meta(description="the same in milliseconds; takes precedence")] = None
    tags: msgspec.Raw = msgspec.field(default_factory=no_document)
    checkpoint: msgspec.Raw = msgspec.field(default_factory=no_document)
    parent_id: JobId | None = None
    batch_id: Annotated[BatchId | None, Meta(description="an open batch that the job is added to")] = None

    @property
    def is_plain(self) -> bool:
        """Whether one call to its shard creates the job."""
        return not self.depends_on and self.batch_id is None


class EnqueueBatchBody(Body):
    jobs: Annotated[list[EnqueueBody], Meta(min_length=1, max_length=JOBS_PER_REQUEST_MAX)]
    batch: Annotated[BatchBody | None, Meta(description="create a batch of these jobs and seal it")] = None
    batch_id: Annotated[BatchId | None, Meta(description="an open batch that all jobs are added to")] = None


class Enqueued(msgspec.Struct):
    job_id: str
    status: str
    unique_existing: bool = False


class EnqueuedBatch(msgspec.Struct, omit_defaults=True):
    """Ids in the order of the request; where another job holds the key, the id of that job."""

    job_ids: list[str]
    batch_id: str | None = None


class Enqueue(Operation, tag=1):
    jobs: list[NewJob]
    room: Room | None = None  # of their namespace; None: it has no quotas

    result: ClassVar[Any] = list[State | Existing]

    def apply(self, tables: Tables) -> list[State | Existing]:
        if self.room is not None:
            require_room(tables, self.room, self.jobs)
        return [make(tables, new) for new in self.jobs]


def tier_of(priority: str | int) -> Priority:
    """A number counts as in a task table, where higher is more urgent: 2 and more critical, 1 high, else normal."""
    if isinstance(priority, int):
        return Priority(Priority.NORMAL - min(max(priority, 0), Priority.NORMAL))
    return _PRIORITY[priority]


def new_job(context: PlanContext, body: EnqueueBody, shard: int, at: str = "") -> NewJob:
    """The new job of a body, checked, with its id. `at` is the path of the body in the request, for messages."""
    payload = bytes(body.payload)
    if len(payload) > context.payload_bytes_max:
        raise Refusal(
            "PAYLOAD_TOO_LARGE",
            f"{at}payload: {len(payload)} bytes; this server accepts {context.payload_bytes_max}",
            field=f"{at}payload",
        )
    check_numbers(payload, f"{at}payload")
    job_id = context.mint.job_id(shard)
    return NewJob(
        id=job_id,
        queue=body.queue,
        payload=payload,
        priority=tier_of(body.priority),
        max_retries=body.max_retries,
        backoff=_BACKOFF[body.retry_backoff],
        base_delay_ms=duration_ms(body.retry_base_delay, body.retry_base_delay_ms, 5_000, f"{at}retry_base_delay"),
        max_delay_ms=duration_ms(body.retry_max_delay, body.retry_max_delay_ms, 600_000, f"{at}retry_max_delay"),
        scheduled_at=due_at_of(context, body, at),
        tags=object_document(body.tags, f"{at}tags"),
        checkpoint=document(body.checkpoint, f"{at}checkpoint"),
        parent_id=body.parent_id or "",
        extras=extras_of(context, body, body.queue, f"chn_{job_id[8:]}", at),
    )


def enqueued(new: NewJob, outcome: State | Existing) -> Enqueued:
    if isinstance(outcome, Existing):
        return Enqueued(outcome.job_id, "duplicate", True)
    return Enqueued(new.id, STATE_NAMES[outcome])


def _plan_one(context: PlanContext, body: EnqueueBody) -> Plan:
    shard = shard_of_queue(body.queue, context.shard_count)
    new = new_job(context, body, shard)
    if not body.is_plain:
        return plan_jobs(context, [new], [""], body.batch_id, lambda made: _answer_one(made[0]))

    def conclude(results: list[Any]) -> Answer:
        return _answer_one(enqueued(new, results[0][0]))

    return Plan([(shard, Enqueue([new], context.room(shard)))], conclude)


def _answer_one(made: Enqueued) -> Answer:
    return Answer(200 if made.unique_existing else 201, made)


def _plan_batch(context: PlanContext, body: EnqueueBatchBody) -> Plan:
    if body.batch is not None and body.batch_id is not None:
        raise invalid("batch_id", "give batch or batch_id, not both")
    places = [f"jobs[{number}]." for number in range(len(body.jobs))]
    new = []
    for job, at in zip(body.jobs, places, strict=True):
        if job.batch_id is not None:
            raise invalid(f"{at}batch_id", "all jobs of a request go to one batch: give it once, beside `jobs`")
        new.append(new_job(context, job, shard_of_queue(job.queue, context.shard_count), at))
    if body.batch is None:
        return plan_jobs(context, new, places, body.batch_id, lambda made: _answer_batch(made, body.batch_id))
    spec = spec_of(context, body.batch, "batch.")
    batch_id = context.mint.batch_id(shard_of_queue(new[0].queue, context.shard_count))
    return plan_jobs(context, new, places, batch_id, lambda made: _answer_batch(made, batch_id), spec)


def _answer_batch(made: list[Enqueued], batch_id: str | None) -> Answer:
    return Answer(201, EnqueuedBatch([one.job_id for one in made], batch_id))


def plan_jobs(
    context: PlanContext,
    new: list[NewJob],
    places: list[str],
    batch_id: str | None,
    answer: Callable[[list[Enqueued]], Answer],
    create: BatchSpec | None = None,
) -> Plan:
    """The plan for any jobs. `places` are their paths in the request, for messages."""
    making = _making(context, new, batch_id, answer, create)
    waited_for = {job_id: f"{at}depends_on" for one, at in zip(new, places, strict=True) for job_id in _waits(one)}
    if not waited_for:
        return making
    names = list(waited_for)
    groups = spread(names, lambda job_id: context.shard_of_job(job_id))

    def conclude(results: list[Any]) -> Plan:
        for unknown in results:
            if unknown:
                raise invalid(waited_for[unknown[0]], f"no job has the id {unknown[0]!r}")
        return making

    return Plan(
        [(shard, FindUnknown([names[number] for number in numbers])) for shard, numbers in groups.items()], conclude
    )


def _making(
    context: PlanContext,
    new: list[NewJob],
    batch_id: str | None,
    answer: Callable[[list[Enqueued]], Answer],
    create: BatchSpec | None,
) -> Plan:
    if batch_id is not None:
        context.require_room(len(new), sum(len(one.payload) for one in new))
        operation = AddToBatch(context.mint.claim_id(), batch_id, create, create is not None, new)
        states = [_state_at_birth(context, one) for one in new]

        def members(standing: list[str]) -> Answer:
            triples = zip(new, standing, states, strict=True)
            return answer(
                [enqueued(one, state if one.id == job_id else Existing(job_id)) for one, job_id, state in triples]
            )

        return adding(context, operation, members)
    groups = spread(new, lambda one: shard_of_queue(one.queue, context.shard_count))

    def conclude(results: list[Any]) -> Answer:
        made = gather([None] * len(new), groups, results)
        return answer([enqueued(one, outcome) for one, outcome in zip(new, made, strict=True)])

    calls = [
        (shard, Enqueue([new[number] for number in numbers], context.room(shard))) for shard, numbers in groups.items()
    ]
    return Plan([*calls], conclude)


def _waits(new: NewJob) -> tuple[str, ...]:
    return new.extras.waits_for if new.extras is not None else ()


def _state_at_birth(context: PlanContext, new: NewJob) -> State:
    return State.SCHEDULED if _waits(new) or new.scheduled_at > context.clock_ns() else State.PENDING


ENDPOINTS = (
    Endpoint(
        name="enqueue",
        access="jobs:enqueue",
        method="POST",
        repeats="by key",
        path="/enqueue",
        summary="Enqueue one job",
        body=EnqueueBody,
        example={"queue": "emails.send", "payload": {"to": "ada@example.org"}},
        answers={201: Enqueued, 200: Enqueued},
        refusals=("PAYLOAD_TOO_LARGE", "BATCH_NOT_FOUND", "BATCH_SEALED", "QUOTA_EXCEEDED"),
        plan=_plan_one,
    ),
    Endpoint(
        name="enqueue_batch",
        access="jobs:enqueue",
        method="POST",
        repeats="by key",
        path="/enqueue/batch",
        summary="Enqueue up to 1000 jobs, on any queues, with or without a batch",
        body=EnqueueBatchBody,
        example={"jobs": [{"queue": "emails.send", "payload": {"to": "ada@example.org"}}]},
        answers={201: EnqueuedBatch},
        refusals=("PAYLOAD_TOO_LARGE", "BATCH_NOT_FOUND", "BATCH_SEALED", "QUOTA_EXCEEDED"),
        plan=_plan_batch,
    ),
)

"""AddToBatch: create a batch, add jobs to a batch, or both; optionally seal it at the same time.

The batch's shard counts the jobs and sends each to the shard of its queue, in one entry: all of them are created or
none, whatever crashes. Jobs of other shards are created some milliseconds later; the gateway waits for them before it
answers, so that the caller can read them.
"""

from collections.abc import Callable
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from corvo.endpoint import Answer, Body, Endpoint, Operation, Plan, PlanContext, gather, spread
from corvo.model.errors import Refusal, invalid
from corvo.model.job import QueueName, RequestId, ShortText
from corvo.model.job_extras import ChainStep, JobExtras
from corvo.model.json_input import EMPTY_RAW, no_document
from corvo.model.limits import SMALL_JSON_BYTES_MAX
from corvo.model.sharding import fnv32a, shard_of_queue
from corvo.ops.job_terms import StepBody, step_of
from corvo.queries.arrivals import GetArrivals, Keyed
from corvo.rules.batches import (
    BatchSpec,
    find_batch,
    finish_if_over,
    new_batch,
    note_queues,
    put_batch,
    remember_ask,
    require_batch,
    was_asked,
)
from corvo.rules.errands.make_member import MakeMember
from corvo.rules.job_creation import NewJob
from corvo.state.tables import Tables

FIRST_WAIT_S = 0.002  # about one delivery between shards
WAIT_S_MAX = 0.05


class BatchBody(Body):
    """`callback_queue` and `callback_payload` are the older names of `on_complete`."""

    callback_queue: QueueName | None = None
    callback_payload: msgspec.Raw = msgspec.field(default_factory=no_document)
    on_complete: Annotated[StepBody | None, Meta(description="job that is created when all jobs have ended")] = None
    on_success: Annotated[StepBody | None, Meta(description="… and all of them completed")] = None
    on_failure: Annotated[StepBody | None, Meta(description="… and at least one did not complete")] = None
    description: ShortText = ""


class BatchMade(msgspec.Struct):
    batch_id: str


class AddToBatch(Operation, tag=40):
    ask_id: RequestId
    batch_id: str
    create: BatchSpec | None
    seal: bool
    jobs: list[NewJob]

    result: ClassVar[Any] = dict[int, int]

    def apply(self, tables: Tables) -> dict[int, int]:
        """For each other shard, the number of its last errand: when that has run, these jobs exist there."""
        batch = find_batch(tables, self.batch_id)
        if was_asked(tables, self.batch_id, self.ask_id) or (self.create is not None and batch is not None):
            return self._given(tables)  # a repeated request: its id is in use
        if self.create is not None:
            batch = new_batch(tables, self.batch_id, self.create)
        else:
            batch = require_batch(tables, self.batch_id)
            if batch.is_sealed:
                raise Refusal(
                    "BATCH_SEALED", f"batch {batch.id} is sealed and accepts no more jobs; create another batch"
                )
            remember_ask(tables, batch.id, self.ask_id)
        batch.total += len(self.jobs)
        batch.is_sealed |= self.seal
        note_queues(batch, (new.queue for new in self.jobs))
        finish_if_over(tables, batch)
        put_batch(tables, batch)
        for new in self.jobs:
            new.extras = new.extras or JobExtras()
            new.extras.batch_id = batch.id
            tables.errands.send(shard_of_queue(new.queue, tables.errands.shard_count), MakeMember(new))
        return self._given(tables)

    def _given(self, tables: Tables) -> dict[int, int]:
        errands = tables.errands
        shards = dict.fromkeys(shard_of_queue(new.queue, errands.shard_count) for new in self.jobs)
        return {shard: errands.given.get(shard, 0) for shard in shards if shard != errands.shard}


def spec_of(context: PlanContext, body: BatchBody, at: str = "") -> BatchSpec:
    """`at` is the path of the body in the request, for messages."""
    if body.callback_queue is None:
        if body.callback_payload is not EMPTY_RAW:
            raise invalid(f"{at}callback_payload", "needs a callback_queue")
        on_complete = _step(context, body.on_complete, f"{at}on_complete")
    elif body.on_complete is not None:
        raise invalid(f"{at}on_complete", "give this or callback_queue, not both: they are the same")
    else:
        payload = msgspec.Raw(b"{}") if body.callback_payload is EMPTY_RAW else body.callback_payload
        on_complete = _step(context, StepBody(body.callback_queue, payload), f"{at}callback")
    return BatchSpec(
        on_complete=on_complete,
        on_success=_step(context, body.on_success, f"{at}on_success"),
        on_failure=_step(context, body.on_failure, f"{at}on_failure"),
        description=body.description,
    )


def _step(context: PlanContext, body: StepBody | None, field: str) -> ChainStep | None:
    """With a small limit: it is written again with the batch whenever a member ends."""
    return None if body is None else step_of(context, body, field, SMALL_JSON_BYTES_MAX)


def adding(context: PlanContext, operation: AddToBatch, answer: Callable[[list[str]], Answer]) -> Plan:
    """Ask the batch's shard, then wait until the jobs exist on their shards. `answer` gets the ids of the new jobs, or
    of the jobs that hold their keys."""
    home = context.shard_of_batch(operation.batch_id)

    def conclude(results: list[Any]) -> Answer | Plan:
        return _arriving(context, operation, home, results[0], answer)

    return Plan([(home, operation)], conclude)


def _arriving(
    context: PlanContext,
    operation: AddToBatch,
    home: int,
    numbers: dict[int, int],
    answer: Callable[[list[str]], Answer],
) -> Answer | Plan:
    jobs = operation.jobs
    own = [new.id for new in jobs]
    keyed = spread(jobs, lambda new: shard_of_queue(new.queue, context.shard_count) if _has_key(new) else None)
    asked = {shard: keyed.get(shard, []) for shard in (*numbers, *keyed)}
    calls = [
        (shard, GetArrivals(home, numbers.get(shard, 0), [_keyed(jobs[number]) for number in group]))
        for shard, group in asked.items()
    ]

    def look(wait_s: float) -> Plan:
        def conclude(results: list[Any]) -> Answer | Plan:
            if any(result is None for result in results):
                return look(min(max(2 * wait_s, FIRST_WAIT_S), WAIT_S_MAX))
            return answer(gather(own, asked, results))

        return Plan([*calls], conclude, wait_s, answer(own))

    return look(0.0) if calls else answer(own)


def _has_key(new: NewJob) -> bool:
    return new.extras is not None and bool(new.extras.unique_key or new.extras.idempotency_key)


def _keyed(new: NewJob) -> Keyed:
    assert new.extras is not None
    return Keyed(new.id, new.queue, new.extras.unique_key, new.extras.idempotency_key)


def _plan(context: PlanContext, body: BatchBody) -> Plan:
    spec = spec_of(context, body)
    ask_id = context.mint.claim_id()
    batch_id = context.mint.batch_id(fnv32a(str(ask_id)) % context.shard_count)  # no queue yet: any shard
    return adding(context, AddToBatch(ask_id, batch_id, spec, False, []), lambda _: Answer(201, BatchMade(batch_id)))


ENDPOINTS = (
    Endpoint(
        name="create_batch",
        access="batches:write",
        method="POST",
        repeats="by key",
        path="/batch",
        summary="Open a batch, to which jobs can be added until it is sealed",
        body=BatchBody,
        body_optional=True,
        example={"on_complete": {"queue": "emails.sent"}},
        answers={201: BatchMade},
        refusals=("PAYLOAD_TOO_LARGE",),
        plan=_plan,
    ),
)

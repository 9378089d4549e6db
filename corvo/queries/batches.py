"""One batch, read from the shard that counts it (linearizable)."""

from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from corvo.endpoint import Answer, Endpoint, Plan, PlanContext, Read
from corvo.model.job_extras import ChainStep, Outcome
from corvo.model.namespaces import shown_name
from corvo.model.sharding import shard_of_queue
from corvo.model.timestamps import to_rfc3339, to_rfc3339_or_none
from corvo.rules.batches import Batch, callback_id, callbacks, require_batch
from corvo.state.tables import Tables


class CallbackView(msgspec.Struct, omit_defaults=True):
    queue: str
    payload: Any
    job_id: str | None = None  # of the callback job, once it is created


class BatchView(msgspec.Struct, omit_defaults=True):
    """A batch as clients see it. `pending` counts all members that have not ended."""

    id: str
    state: str  # open, sealed, completed
    total: int
    pending: int
    completed: int
    dead: int
    cancelled: int
    deleted: int
    created_at: str
    finished_at: str | None = None
    description: str = ""
    on_complete: CallbackView | None = None
    on_success: CallbackView | None = None
    on_failure: CallbackView | None = None
    succeeded: Annotated[int, Meta(description="the same as `completed`")] | UnsetType = UNSET
    failed: Annotated[int, Meta(description="dead, cancelled and deleted together")] | UnsetType = UNSET


class GetBatch(Read, tag=1050):
    batch_id: str

    result: ClassVar[Any] = Batch

    def read(self, tables: Tables) -> Batch:
        return require_batch(tables, self.batch_id)


def batch_view(batch: Batch, shard_count: int) -> BatchView:
    made = {name for name, _ in callbacks(batch)} if batch.finished_at else set()

    def callback(name: str, step: ChainStep | None) -> CallbackView | None:
        if step is None:
            return None
        shard = shard_of_queue(step.queue, shard_count)
        return CallbackView(
            shown_name(step.queue),
            msgspec.Raw(step.payload),
            callback_id(batch, name, shard, step.queue) if name in made else None,
        )

    return BatchView(
        id=batch.id,
        state="completed" if batch.finished_at else "sealed" if batch.is_sealed else "open",
        total=batch.total,
        pending=batch.open,
        succeeded=batch.ended[Outcome.COMPLETED],
        failed=batch.failed,
        completed=batch.ended[Outcome.COMPLETED],
        dead=batch.ended[Outcome.DEAD],
        cancelled=batch.ended[Outcome.CANCELLED],
        deleted=batch.ended[Outcome.DELETED],
        created_at=to_rfc3339(batch.created_at),
        finished_at=to_rfc3339_or_none(batch.finished_at),
        description=batch.description,
        on_complete=callback("on_complete", batch.on_complete),
        on_success=callback("on_success", batch.on_success),
        on_failure=callback("on_failure", batch.on_failure),
    )


def _plan(context: PlanContext, body: None, batch_id: str) -> Plan:
    def conclude(results: list[Any]) -> Answer:
        return Answer(200, batch_view(results[0], context.shard_count))

    return Plan([(context.shard_of_batch(batch_id), GetBatch(batch_id))], conclude)


ENDPOINTS = (
    Endpoint(
        name="get_batch",
        access="batches:read",
        method="GET",
        path="/batches/{batch_id}",
        summary="One batch with the outcomes of its jobs",
        answers={200: BatchView},
        refusals=("BATCH_NOT_FOUND",),
        plan=_plan,
    ),
)

"""SealBatch: no more jobs can be added. The batch is finished when all its jobs have ended; without jobs, at once."""

from typing import Any, ClassVar

import msgspec

from corvo.endpoint import Answer, Endpoint, Operation, Plan, PlanContext
from corvo.rules.batches import finish_if_over, put_batch, require_batch
from corvo.state.tables import Tables


class Sealed(msgspec.Struct):
    status: str


class SealBatch(Operation, tag=41):
    batch_id: str

    result: ClassVar[Any] = type(None)

    def apply(self, tables: Tables) -> None:
        """Sealing again changes nothing."""
        batch = require_batch(tables, self.batch_id)
        if not batch.is_sealed:
            batch.is_sealed = True
            finish_if_over(tables, batch)
            put_batch(tables, batch)


def _plan(context: PlanContext, body: None, batch_id: str) -> Plan:
    def conclude(results: list[Any]) -> Answer:
        return Answer(200, Sealed("sealed"))

    return Plan([(context.shard_of_batch(batch_id), SealBatch(batch_id))], conclude)


ENDPOINTS = (
    Endpoint(
        name="seal_batch",
        access="batches:write",
        method="POST",
        repeats="freely",
        path="/batches/{batch_id}/seal",
        summary="Seal a batch: when all its jobs have ended, its callback jobs are created",
        answers={200: Sealed},
        refusals=("BATCH_NOT_FOUND",),
        plan=_plan,
    ),
    Endpoint(
        name="seal_batch_by_its_old_path",
        access="batches:write",
        method="POST",
        repeats="freely",
        path="/batch/{batch_id}/seal",
        summary="The same under the path that published clients use",
        answers={200: Sealed},
        refusals=("BATCH_NOT_FOUND",),
        plan=_plan,
    ),
)

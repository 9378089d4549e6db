"""CancelBulk: stop a bulk operation after its current slice. Changes that it made stay."""

from typing import Any, ClassVar

from corvo.endpoint import Answer, Endpoint, Operation, Plan, PlanContext
from corvo.model.errors import Refusal
from corvo.queries.bulk_view import BulkView, bulk_view
from corvo.rules.bulk import BULK_SHARD, OPEN, STATUS_NAMES, Bulk, Status, end_bulk, put_bulk, require_bulk
from corvo.state.tables import Tables


class CancelBulk(Operation, tag=63):
    bulk_id: str

    result: ClassVar[Any] = Bulk

    def apply(self, tables: Tables) -> Bulk:
        """Cancelling again changes nothing."""
        bulk = require_bulk(tables, self.bulk_id)
        if bulk.status in OPEN and not bulk.is_cancelling:
            bulk.is_cancelling = True
            if bulk.status is Status.QUEUED:
                end_bulk(tables, bulk, Status.CANCELLED)
            else:  # its gateway learns it when it reports the current slice
                put_bulk(tables, bulk)
        elif bulk.status in (Status.COMPLETED, Status.FAILED):
            raise Refusal("WRONG_STATE", f"{self.bulk_id} is already {STATUS_NAMES[bulk.status]}")
        return bulk


def _plan(context: PlanContext, body: None, bulk_id: str) -> Plan:
    context.check_bulk_id(bulk_id)

    def conclude(results: list[Bulk]) -> Answer:
        return Answer(200, bulk_view(results[0]))

    return Plan([(BULK_SHARD, CancelBulk(bulk_id))], conclude)


ENDPOINTS = (
    Endpoint(
        name="cancel_bulk",
        access="bulk:cancel",
        method="POST",
        repeats="freely",
        path="/bulk/{bulk_id}/cancel",
        summary="Stop a bulk operation after its current slice; changes that it made stay",
        answers={200: BulkView},
        refusals=("BULK_NOT_FOUND", "WRONG_STATE"),
        plan=_plan,
    ),
)

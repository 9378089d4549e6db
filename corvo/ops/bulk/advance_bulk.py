"""AdvanceBulk: the gateway that works on an operation reports one slice and records the next, before it acts on it.

After the last slice the operation is completed. A cancelled operation ends here as well: the current slice is counted,
and none follows.
"""

from typing import Annotated, Any, ClassVar

from msgspec import Meta

from corvo.endpoint import Operation
from corvo.model.errors import Refusal
from corvo.model.job import Count, RequestId, ShortText, SpanMs
from corvo.model.limits import JOBS_PER_REQUEST_MAX
from corvo.rules.bulk import OPEN, Bulk, BulkCounts, Status, end_bulk, put_bulk, require_bulk
from corvo.state.tables import Tables


class AdvanceBulk(Operation, tag=62):
    bulk_id: str
    claim: RequestId
    step: Count  # number of the next slice
    tally: BulkCounts  # of the slice before
    slice: Annotated[list[str], Meta(max_length=JOBS_PER_REQUEST_MAX)]
    cursor: str  # of the search, after the slice
    is_last: bool  # no slice follows
    lease_ms: SpanMs
    failure: ShortText = ""  # why it cannot continue

    result: ClassVar[Any] = Status

    def apply(self, tables: Tables) -> Status:
        bulk = require_bulk(tables, self.bulk_id)
        if bulk.claim == self.claim and bulk.step == self.step:
            return bulk.status  # a repeated report
        if bulk.claim != self.claim or bulk.step != self.step - 1 or bulk.status not in OPEN:
            raise Refusal("LEASE_LOST", f"{self.bulk_id} is at slice {bulk.step}, and another gateway works on it")
        bulk.step = self.step
        bulk.tally.add(self.tally)
        self._go_on(tables, bulk)
        return bulk.status

    def _go_on(self, tables: Tables, bulk: Bulk) -> None:
        if self.failure:
            bulk.failure = self.failure
            end_bulk(tables, bulk, Status.FAILED)
        elif not self.slice and self.is_last:
            end_bulk(tables, bulk, Status.COMPLETED)
        elif bulk.is_cancelling:
            end_bulk(tables, bulk, Status.CANCELLED)
        else:
            bulk.slice, bulk.cursor, bulk.is_last = self.slice, self.cursor, self.is_last
            bulk.lease_ends_at = tables.now + self.lease_ms * 1_000_000
            put_bulk(tables, bulk)

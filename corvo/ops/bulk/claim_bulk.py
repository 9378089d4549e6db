"""ClaimBulk: a gateway claims a bulk operation that no gateway works on, or whose lease has expired.

A restarted gateway claims its own operations at once: node and number identify it, and no other process has them.
"""

from typing import Any, ClassVar

from corvo.endpoint import Operation
from corvo.model.job import RequestId, SpanMs
from corvo.rules.bulk import Bulk, Status, open_bulks, put_bulk
from corvo.state.tables import Tables


class ClaimBulk(Operation, tag=61):
    node_id: str  # the gateway's node and its number there
    gateway: RequestId  # this process; another number after a restart
    claim: RequestId
    lease_ms: SpanMs

    result: ClassVar[Any] = Bulk | None

    def apply(self, tables: Tables) -> Bulk | None:
        found = open_bulks(tables)
        for bulk in found:
            if bulk.claim == self.claim:
                return bulk  # a repeated request
        for bulk in found:
            if is_free(bulk, self.node_id, self.gateway, tables.now):
                self._take(tables, bulk)
                return bulk
        return None

    def _take(self, tables: Tables, bulk: Bulk) -> None:
        bulk.status = Status.RUNNING
        bulk.node_id, bulk.gateway, bulk.claim = self.node_id, self.gateway, self.claim
        bulk.lease_ends_at = tables.now + self.lease_ms * 1_000_000
        bulk.started_at = bulk.started_at or tables.now
        bulk.claimed_at, bulk.claimed_processed = tables.now, bulk.tally.processed
        put_bulk(tables, bulk)


def is_free(bulk: Bulk, node_id: str, gateway: int, now: int) -> bool:
    """Whether this gateway may claim it."""
    if bulk.status is Status.QUEUED or bulk.lease_ends_at <= now:
        return True
    return bulk.node_id == node_id and bulk.gateway != gateway

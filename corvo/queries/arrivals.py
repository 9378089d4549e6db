"""Whether jobs that a batch sent to another shard exist there yet, and which jobs hold their keys.

Adding jobs to a batch ends with this query.
"""

from typing import Any, ClassVar

import msgspec

from corvo.endpoint import Read
from corvo.model.job import Count
from corvo.model.job_extras import JobExtras
from corvo.state import locks
from corvo.state.tables import Tables


class Keyed(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A new job with a key, which another job may hold."""

    job_id: str
    queue: str
    unique_key: str
    idempotency_key: str


class GetArrivals(Read, tag=1051):
    """None until the errands of that shard up to that number have run here; then, for each job with a key, the id of
    the job that holds it."""

    source: Count
    number: Count
    keyed: list[Keyed]

    result: ClassVar[Any] = list[str] | None

    def read(self, tables: Tables) -> list[str] | None:
        if self.source != tables.errands.shard and tables.errands.received.get(self.source, 0) < self.number:
            return None
        return [_standing_for(tables, one) for one in self.keyed]


def _standing_for(tables: Tables, new: Keyed) -> str:
    if tables.find_job(new.job_id) is None:
        extras = JobExtras(unique_key=new.unique_key, idempotency_key=new.idempotency_key)
        return locks.holder(tables, new.queue, extras) or new.job_id
    return new.job_id

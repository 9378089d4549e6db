"""Whether jobs that a batch sent to another shard have arrived there, and which jobs stand for those with a key.

A question, no operation: it stands here because adding to a batch ends with it.
"""

from typing import Any, ClassVar

import msgspec

from corvo.endpoint import Read
from corvo.model.job import Count
from corvo.model.job_extras import JobExtras
from corvo.state import locks
from corvo.state.tables import Tables


class Keyed(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A new job that another one may stand for."""

    job_id: str
    queue: str
    unique_key: str
    idempotency_key: str


class GetArrivals(Read, tag=1051):
    """None while errands of that shard up to that number have yet to be done here; then, for each keyed job, the
    one that stands for it."""

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

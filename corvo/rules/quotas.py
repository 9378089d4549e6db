"""Quotas inside a shard: what a namespace has here, and whether new jobs fit."""

from collections.abc import Sequence

from corvo.model.namespaces import namespace_of
from corvo.model.quotas import Room, StoredAmounts
from corvo.rules.job_creation import NewJob
from corvo.state import locks
from corvo.state.tables import Tables


def stored(tables: Tables, namespace: str) -> StoredAmounts:
    queues = tables.queues_of(namespace)
    return StoredAmounts(
        sum(sum(queue.counts) for queue in queues), sum(queue.payload_bytes for queue in queues), len(queues)
    )


def require_room(tables: Tables, room: Room, jobs: Sequence[NewJob]) -> None:
    """All of them fit, or none is made. Jobs that exist already need no room: a repeated request gets its answer."""
    new = [job for job in jobs if _is_new(tables, job)]
    if new:
        names = {job.queue for job in new}
        more = StoredAmounts(
            len(new),
            sum(len(job.payload) for job in new),
            sum(tables.find_queue(name) is None for name in names),
        )
        room.require(stored(tables, namespace_of(new[0].queue)), more)


def _is_new(tables: Tables, job: NewJob) -> bool:
    if tables.find_job(job.id) is not None or tables.forwarded_to(job.id) is not None:
        return False
    return job.extras is None or locks.holder(tables, job.queue, job.extras) is None

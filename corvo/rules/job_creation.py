"""Creates jobs: for a producer, or for a chain, a batch or a schedule.

A job is created at most once: its id is chosen before it reaches the log, and a repeated request finds the job. If
another job holds its unique or idempotency key, that job is returned instead. A job that waits for others is scheduled
without a date: it falls due when the last of them has ended.
"""

from hashlib import blake2b

import msgspec

from corvo.model.job import Count, Job, Moment, Priority, SpanMs
from corvo.model.job_extras import JobExtras
from corvo.model.lifecycle import State
from corvo.model.namespaces import id_ending, namespace_of
from corvo.model.retry import Backoff
from corvo.model.sharding import shard_of_job
from corvo.model.timestamps import LATEST_NS
from corvo.rules.errands.watch import Watch
from corvo.state import locks
from corvo.state.tables import Tables
from corvo.state.transitions import insert

# A member lookup on an enum is a call, and this is a hot path.
_PENDING, _SCHEDULED = State.PENDING, State.SCHEDULED


class NewJob(msgspec.Struct, array_like=True, gc=False):
    id: str
    queue: str
    payload: bytes
    priority: Priority = Priority.NORMAL
    max_retries: Count = 3
    backoff: Backoff = Backoff.EXPONENTIAL
    base_delay_ms: SpanMs = 5_000
    max_delay_ms: SpanMs = 600_000
    scheduled_at: Moment = 0
    tags: bytes = b""
    checkpoint: bytes = b""
    parent_id: str = ""
    extras: JobExtras | None = None


class Existing(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """No job was created: this one holds the key."""

    job_id: str


def derived_id(shard: int, *names: object, queue: str = "") -> str:
    """The id of a job that the server creates: the same on every replica and for every repetition. The queue gives its
    namespace."""
    text = "\0".join(map(str, names))
    ending = id_ending(namespace_of(queue))
    return f"s{shard:02d}_job_{blake2b(text.encode(), digest_size=13).hexdigest()}{ending}"


def make(tables: Tables, new: NewJob) -> State | Existing:
    known = tables.find_job(new.id)
    has_moved = known is None and tables.has_forwarded and tables.forwarded_to(new.id) is not None
    if known is not None or has_moved:  # a repeated request: the job has changed since, the answer has not
        created_at = tables.now if known is None else known.created_at
        waits = new.extras is not None and bool(new.extras.waits_for)
        return State.SCHEDULED if waits or new.scheduled_at > created_at else State.PENDING
    extras = new.extras
    if extras is not None:
        holder = locks.holder(tables, new.queue, extras)
        if holder is not None:
            return Existing(holder)
    now = tables.now
    due_at = new.scheduled_at
    if extras is not None and extras.waits_for:
        extras.scheduled_at = new.scheduled_at
        due_at = LATEST_NS
    state = _SCHEDULED if due_at > now else _PENDING
    if extras is not None and extras.expire_after_ms:
        extras.expire_at = now + extras.expire_after_ms * 1_000_000
    job = Job(
        id=new.id,
        queue=new.queue,
        state=state,
        priority=new.priority,
        payload=new.payload,
        max_retries=new.max_retries,
        backoff=new.backoff,
        base_delay_ms=new.base_delay_ms,
        max_delay_ms=new.max_delay_ms,
        created_at=now,
        due_at=due_at if state is _SCHEDULED else 0,
        tags=new.tags,
        checkpoint=new.checkpoint,
        parent_id=new.parent_id,
        extras=extras,
    )
    insert(tables, job)
    if extras is not None:
        if extras.unique_key or extras.idempotency_key:
            locks.lock(tables, job)
        for other in extras.waits_for:
            tables.errands.send(shard_of_job(other, tables.errands.shard_count), Watch(other, job.id))
    return state

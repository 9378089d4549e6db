"""One record of a shard → one row of its table, as a tuple in the order of the columns listed above the function.

Empty values become NULL. Timestamps become text that sorts by time. `statements.py` builds its statements from the same
column names. Pure: no socket, no file, no clock.
"""

import msgspec

from corvo.model.fingerprint import fingerprint
from corvo.model.job import Controls, Job, JobError, Queue, Worker
from corvo.model.job_extras import ChainStep, JobExtras, Outcome
from corvo.model.lifecycle import STATE_NAMES, WAITING_FOR_A_MOMENT, State
from corvo.model.namespaces import namespace_of, namespace_of_id
from corvo.model.retry import BACKOFF_NAMES
from corvo.model.timestamps import LATEST_NS, to_rfc3339, to_rfc3339_or_none
from corvo.rules.batches import Batch
from corvo.state.locks import Lock
from corvo.state.schedules import CATCH_UP_NAMES, Schedule

Value = str | int | None
Row = tuple[Value, ...]

PLAIN_JOB_COLUMNS = (
    "id",
    "shard",
    "namespace",
    "queue",
    "state",
    "payload",
    "priority",
    "attempt",
    "max_retries",
    "retry_backoff",
    "retry_base_delay_ms",
    "retry_max_delay_ms",
    "worker_id",
    "hostname",
    "tags",
    "progress",
    "checkpoint",
    "result",
    "parent_id",
    "lease_expires_at",
    "scheduled_at",
    "created_at",
    "started_at",
    "completed_at",
    "failed_at",
)
BOND_COLUMNS = (
    "unique_key",
    "idempotency_key",
    "batch_id",
    "chain_id",
    "chain_step",
    "chain_config",
    "expire_at",
    "hold_reason",
    "claimed_at",
)
JOB_COLUMNS = PLAIN_JOB_COLUMNS + BOND_COLUMNS
JOB_ERROR_COLUMNS = (
    "job_id",
    "claim",
    "shard",
    "namespace",
    "attempt",
    "error",
    "backtrace",
    "created_at",
    "worker_id",
    "started_at",
    "queue",
    "fingerprint",
)
# The counts have the order of the table; `_COUNTED` lists the same states for `queue_row`.
QUEUE_COLUMNS = (
    "name",
    "shard",
    "namespace",
    "created_at",
    "pending",
    "active",
    "held",
    "completed",
    "dead",
    "scheduled",
    "retrying",
    "cancelled",
    "enqueued",
    "completed_total",
    "failed",
    "dead_total",
    # The minute of the newest change, and the totals at its start.
    "minute",
    "minute_enqueued",
    "minute_completed",
    "minute_failed",
    "minute_dead",
    # Controls that a user has set.
    "paused",
    "draining",
    "max_concurrency",
    "rate_limit",
    "rate_window_ms",
    "retention_completed_ms",
    "retention_dead_ms",
    "retention_cancelled_ms",
)
WORKER_COLUMNS = (
    *("id", "shard", "namespace", "hostname", "queues"),
    *("last_heartbeat", "started_at", "pool_size", "version"),
)
BATCH_COLUMNS = (
    "id",
    "shard",
    "namespace",
    "state",
    "description",
    "total",
    "pending",
    "succeeded",
    "failed",
    "dead",
    "cancelled",
    "deleted",
    "on_complete",
    "on_success",
    "on_failure",
    "created_at",
    "finished_at",
    "callback_queue",
    "callback_payload",
    "queues",
)
UNIQUE_LOCK_COLUMNS = ("queue", "unique_key", "job_id", "expires_at", "shard")
QUEUE_CLAIM_COLUMNS = ("queue", "fetched_at", "shard", "claims")
SCHEDULE_COLUMNS = (
    "id",
    "shard",
    "name",
    "queue",
    "cron",
    "timezone",
    "payload",
    "unique_key",
    "max_retries",
    "last_run",
    "next_run",
    "created_at",
    "updated_at",
    "paused",
    "priority",
    "tags",
    "catch_up",
    "catch_up_max",
    "fired",
)

_NO_CONTROLS: Row = (0, 0) + (None,) * 6

_COUNTED = tuple(STATE_NAMES.index(name) for name in QUEUE_COLUMNS[4:12])
_to_json = msgspec.json.Encoder().encode


def job_row(shard: int, job: Job) -> Row:
    """PLAIN_JOB_COLUMNS."""
    return (
        job.id,
        shard,
        namespace_of(job.queue),
        job.queue,
        STATE_NAMES[job.state],
        job.payload.decode(),
        job.priority,
        job.attempt,
        job.max_retries,
        BACKOFF_NAMES[job.backoff],
        job.base_delay_ms,
        job.max_delay_ms,
        job.worker_id or None,
        job.hostname or None,
        job.tags.decode() if job.tags else None,
        job.progress.decode() if job.progress else None,
        job.checkpoint.decode() if job.checkpoint else None,
        job.result.decode() if job.result else None,
        job.parent_id or None,
        # The record keeps an expired lease, but it has no holder; the view of a single job omits it too.
        to_rfc3339(job.lease_expires_at) if job.state == State.ACTIVE else None,
        # A job that depends on others has LATEST_NS as its due time, which is no date. A job that has become pending
        # keeps its due time in the record, but no longer waits for it.
        to_rfc3339(job.due_at) if 0 < job.due_at < LATEST_NS and job.state in WAITING_FOR_A_MOMENT else None,
        to_rfc3339(job.created_at),
        to_rfc3339(job.started_at) if job.started_at else None,
        to_rfc3339(job.completed_at) if job.completed_at else None,
        to_rfc3339(job.failed_at) if job.failed_at else None,
    )


def bond_values(extras: JobExtras) -> Row:
    """BOND_COLUMNS."""
    chain = extras.chain
    return (
        extras.unique_key or None,
        extras.idempotency_key or None,
        extras.batch_id or None,
        None if chain is None else chain.id,
        None if chain is None else chain.step,
        None
        if chain is None
        else _to_json(
            {
                "steps": [_step(step) for step in chain.steps],
                "on_failure": _step(chain.on_failure),
                "on_exit": _step(chain.on_exit),
            }
        ).decode(),
        to_rfc3339_or_none(extras.expire_at),
        extras.hold_reason or None,
        to_rfc3339_or_none(extras.claimed_at),
    )


def _step(step: ChainStep | None) -> dict[str, object] | None:
    return None if step is None else {"queue": step.queue, "payload": msgspec.Raw(step.payload or b"{}")}


def job_error_row(shard: int, error: JobError) -> Row:
    return (
        error.job_id,
        error.claim,
        shard,
        namespace_of_id(error.job_id),
        error.attempt,
        error.error,
        error.backtrace or None,
        to_rfc3339(error.created_at),
        error.worker_id or None,
        to_rfc3339_or_none(error.started_at),
        error.queue,
        None if error.is_interrupted else fingerprint(error.error),
    )


def queue_row(shard: int, queue: Queue) -> Row:
    counts = queue.counts
    return (
        queue.name,
        shard,
        namespace_of(queue.name),
        to_rfc3339(queue.created_at),
        *[counts[state] for state in _COUNTED],
        queue.enqueued,
        queue.completed,
        queue.failed,
        queue.died,
        *queue.began,
        *(_NO_CONTROLS if queue.controls is None else _control_values(queue.controls)),
    )


def _control_values(controls: Controls) -> Row:
    """A limit of 0 means none and becomes NULL. A retention of 0 means for ever; NULL is the server's default."""
    return (
        int(controls.is_paused),
        int(controls.is_draining),
        controls.max_concurrency or None,
        controls.rate or None,
        controls.window_ms or None,
        *[None if span_ms < 0 else span_ms for span_ms in controls.retention_ms],
    )


def worker_row(shard: int, worker: Worker) -> Row:
    return (
        worker.id,
        shard,
        namespace_of(worker.id),
        worker.hostname or None,
        _to_json(worker.queues).decode(),
        to_rfc3339(worker.last_seen_at),
        to_rfc3339_or_none(worker.started_at) or to_rfc3339(worker.last_seen_at),
        worker.pool_size or None,
        worker.version or None,
    )


def batch_row(shard: int, batch: Batch) -> Row:
    """`failed` counts every outcome but success, as in the seed; the three columns after it split it up."""
    completed, dead, cancelled, deleted = (batch.ended[outcome] for outcome in Outcome)
    return (
        batch.id,
        shard,
        namespace_of_id(batch.id),
        "completed" if batch.finished_at else "sealed" if batch.is_sealed else "open",
        batch.description or None,
        batch.total,
        batch.open,
        completed,
        dead + cancelled + deleted,
        dead,
        cancelled,
        deleted,
        *[
            None if step is None else _to_json(_step(step)).decode()
            for step in (batch.on_complete, batch.on_success, batch.on_failure)
        ],
        to_rfc3339(batch.created_at),
        to_rfc3339_or_none(batch.finished_at),
        *((None, None) if batch.on_complete is None else _callback(batch.on_complete)),
        _to_json(batch.queues).decode() if batch.queues else None,
    )


def _callback(step: ChainStep) -> Row:
    return step.queue, (step.payload or b"{}").decode()


def unique_lock_row(shard: int, queue: str, unique_key: str, lock: Lock) -> Row:
    return (queue, unique_key, lock.job_id, to_rfc3339(lock.until), shard)


def queue_claims_row(shard: int, queue: str, moment: int, claims: int) -> Row:
    return (queue, to_rfc3339(moment), shard, claims)


def schedule_row(shard: int, schedule: Schedule) -> Row:
    terms = schedule.terms
    return (
        schedule.id,
        shard,
        schedule.name,
        terms.queue,
        terms.cron,
        terms.timezone,
        terms.payload.decode(),
        terms.unique_key or None,
        terms.max_retries,
        to_rfc3339_or_none(schedule.last_slot),
        None if schedule.is_paused else to_rfc3339_or_none(schedule.next_at),
        to_rfc3339(schedule.created_at),
        to_rfc3339(schedule.updated_at),
        int(schedule.is_paused),
        terms.priority,
        terms.tags.decode() or None,
        CATCH_UP_NAMES[terms.catch_up],
        terms.catch_up_max,
        schedule.fired,
    )

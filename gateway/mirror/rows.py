"""Records of a shard → rows of `read.db`. Pure: no socket, no file, no clock.

A record is a key of `corvo.state.keys` with its newest value, or None when it was deleted. A row is a plain tuple in
the order of the columns named here, ready for `executemany`; `statements.py` makes the statements from the same names.
Families that have no table are passed over: a newer shard may keep more than this mirror shows.

A stretch is what one piece of a scan covered: rows of the shard inside it that the piece did not hold are gone.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec

from corvo.batches import Batch, decode_batch
from corvo.bonds import Bonds, Outcome, Step
from corvo.job import (
    Controls,
    Job,
    JobError,
    Queue,
    Worker,
    decode_job,
    decode_job_error,
    decode_queue,
    decode_worker,
)
from corvo.lifecycle import STATE_NAMES, State
from corvo.moments import LATEST_NS, to_rfc3339, to_rfc3339_or_none
from corvo.retry import BACKOFF_NAMES
from corvo.state import keys
from corvo.state.schedules import CATCH_UP_NAMES, Schedule, decode_schedule

Value = str | int | None
Row = tuple[Value, ...]
Record = tuple[bytes, bytes | None]

PLAIN_JOB_COLUMNS = (
    "id",
    "shard",
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
    "batch_id",
    "chain_id",
    "chain_step",
    "chain_config",
    "expire_at",
    "hold_reason",
)
JOB_COLUMNS = PLAIN_JOB_COLUMNS + BOND_COLUMNS
JOB_ERROR_COLUMNS = (
    "job_id",
    "claim",
    "shard",
    "attempt",
    "error",
    "backtrace",
    "created_at",
    "worker_id",
    "started_at",
)
# The counts stand in the order of the table; `_COUNTED` gives the same states to `queue_row`.
QUEUE_COLUMNS = (
    "name",
    "shard",
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
    # What somebody has decided.
    "paused",
    "draining",
    "max_concurrency",
    "rate_limit",
    "rate_window_ms",
    "retention_completed_ms",
    "retention_dead_ms",
    "retention_cancelled_ms",
)
WORKER_COLUMNS = ("id", "shard", "hostname", "queues", "last_heartbeat", "started_at", "pool_size", "version")
BATCH_COLUMNS = (
    "id",
    "shard",
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
)
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
_COUNTED = tuple(STATE_NAMES.index(name) for name in QUEUE_COLUMNS[3:11])
_END_OF_TEXT = "\U0010ffff"  # sorts after every id and name, which are ASCII
_to_json = msgspec.json.Encoder().encode


class TableRows(msgspec.Struct):
    put: list[Row] = []
    gone: list[Row] = []  # the key's columns, then the shard


class Rows(msgspec.Struct):
    """Jobs without bonds have rows without those columns: nearly all are such, and seven times NULL costs a fifth of
    what it takes to write one."""

    jobs: TableRows = msgspec.field(default_factory=TableRows)
    bonded_jobs: TableRows = msgspec.field(default_factory=TableRows)  # only put; deleted like the others
    job_errors: TableRows = msgspec.field(default_factory=TableRows)
    queues: TableRows = msgspec.field(default_factory=TableRows)
    workers: TableRows = msgspec.field(default_factory=TableRows)
    batches: TableRows = msgspec.field(default_factory=TableRows)
    schedules: TableRows = msgspec.field(default_factory=TableRows)

    @property
    def tables(self) -> tuple[TableRows, ...]:
        of_jobs = (self.jobs, self.bonded_jobs, self.job_errors)
        return *of_jobs, self.queues, self.workers, self.batches, self.schedules

    @property
    def count(self) -> int:
        return sum(len(table.put) + len(table.gone) for table in self.tables)


class Stretch(msgspec.Struct, frozen=True):
    """Per table the bounds of what a piece covered, lower included, upper not; None: nothing of that table."""

    jobs: Row | None = None
    job_errors: Row | None = None
    queues: Row | None = None
    workers: Row | None = None
    batches: Row | None = None
    schedules: Row | None = None


NO_STRETCH = Stretch()


def to_rows(shard: int, records: Iterable[Record]) -> Rows:
    """Of several records with one key the last counts."""
    rows = Rows()
    put_job, put_bonded, gone_job = rows.jobs.put.append, rows.bonded_jobs.put.append, rows.jobs.gone.append
    for key, value in dict(records).items():
        if key.startswith(keys.JOBS):  # first, because nearly every record is a job
            if value is None:
                gone_job((key[len(keys.JOBS) :].decode(), shard))
            else:
                job = decode_job(value)
                if job.bonds is None:
                    put_job(job_row(shard, job))
                else:
                    put_bonded(job_row(shard, job) + bond_values(job.bonds))
            continue
        family = _FAMILIES.get(key[: key.find(b"|") + 1])
        if family is not None:
            table = family.table(rows)
            if value is None:
                table.gone.append((*family.name(key[len(family.prefix) :]), shard))
            else:
                table.put.append(family.row(shard, value))
    return rows


def job_row(shard: int, job: Job) -> Row:
    """PLAIN_JOB_COLUMNS. Emptiness becomes NULL; moments become text whose order is the order of time."""
    return (
        job.id,
        shard,
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
        # A lease that is over stays in the record, but is nobody's: the answer for one job leaves it out likewise.
        to_rfc3339(job.lease_expires_at) if job.state == State.ACTIVE else None,
        # A job that waits for others has no date: it is filed at the end of time.
        to_rfc3339(job.due_at) if 0 < job.due_at < LATEST_NS else None,
        to_rfc3339(job.created_at),
        to_rfc3339(job.started_at) if job.started_at else None,
        to_rfc3339(job.completed_at) if job.completed_at else None,
        to_rfc3339(job.failed_at) if job.failed_at else None,
    )


def bond_values(bonds: Bonds) -> Row:
    """BOND_COLUMNS."""
    chain = bonds.chain
    return (
        bonds.unique_key or None,
        bonds.batch_id or None,
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
        to_rfc3339_or_none(bonds.expire_at),
        bonds.hold_reason or None,
    )


def _step(step: Step | None) -> dict[str, object] | None:
    return None if step is None else {"queue": step.queue, "payload": msgspec.Raw(step.payload or b"{}")}


def job_error_row(shard: int, error: JobError) -> Row:
    return (
        error.job_id,
        error.claim,
        shard,
        error.attempt,
        error.error,
        error.backtrace or None,
        to_rfc3339(error.created_at),
        error.worker_id or None,
        to_rfc3339_or_none(error.started_at),
    )


def queue_row(shard: int, queue: Queue) -> Row:
    counts = queue.counts
    return (
        queue.name,
        shard,
        to_rfc3339(queue.created_at),
        *[counts[state] for state in _COUNTED],
        queue.enqueued,
        queue.completed,
        queue.failed,
        *(_NO_CONTROLS if queue.controls is None else _control_values(queue.controls)),
    )


def _control_values(controls: Controls) -> Row:
    """0 is no limit, and becomes NULL; a retention of 0 is "for ever", so only that of the server does."""
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
        worker.hostname or None,
        _to_json(worker.queues).decode(),
        to_rfc3339(worker.last_seen_at),
        to_rfc3339_or_none(worker.started_at) or to_rfc3339(worker.last_seen_at),
        worker.pool_size or None,
        worker.version or None,
    )


def batch_row(shard: int, batch: Batch) -> Row:
    """`failed` is every end but success, as in the seed; the three columns behind it say which."""
    completed, dead, cancelled, deleted = (batch.ended[outcome] for outcome in Outcome)
    return (
        batch.id,
        shard,
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
    )


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


def presence_rows(shard: int, workers: Sequence[Worker]) -> list[Row]:
    return [worker_row(shard, worker) for worker in {worker.id: worker for worker in workers}.values()]


def to_stretch(start: bytes, next_key: bytes) -> Stretch:
    """What the scan from `start` to `next_key` covered. An empty `next_key` means: up to the end."""

    def texts(prefix: bytes) -> Row | None:
        return _text_bounds(_inside(prefix, start, next_key))

    return Stretch(
        jobs=texts(keys.JOBS),
        job_errors=_error_bounds(_inside(keys.JOB_ERRORS, start, next_key)),
        queues=texts(keys.QUEUES),
        workers=texts(keys.WORKERS),
        batches=texts(keys.BATCHES),
        schedules=texts(keys.SCHEDULES),
    )


Bounds = tuple[bytes, bytes | None]  # of a key behind its prefix; None: no upper bound


def _inside(prefix: bytes, start: bytes, next_key: bytes) -> Bounds | None:
    end = keys.prefix_end(prefix)
    if start >= end or (next_key and next_key <= prefix):
        return None
    lower = start[len(prefix) :] if start > prefix else b""
    upper = next_key[len(prefix) :] if next_key and next_key < end else None
    return lower, upper


def _text_bounds(bounds: Bounds | None) -> Row | None:
    if bounds is None:
        return None
    lower, upper = bounds
    return lower.decode(), _END_OF_TEXT if upper is None else upper.decode()


def _error_bounds(bounds: Bounds | None) -> Row | None:
    """(job, claim) from which, (job, claim) up to which: the order of the keys is the order of these pairs."""
    if bounds is None:
        return None
    lower, upper = bounds
    return (*_error_name(lower), *((_END_OF_TEXT, 0) if upper is None else _error_name(upper)))


def _error_name(rest: bytes) -> tuple[str, int]:
    """Job and claim of a key behind its prefix; of a bound between two keys, those of the first key that follows."""
    job_id, _, number = rest.partition(b"\0")
    size = len(keys.pack_u32(0))
    claim = int.from_bytes(number[:size].ljust(size, b"\0"), "big")
    return job_id.decode(), claim + 1 if len(number) > size else claim


def _text_name(rest: bytes) -> tuple[str]:
    return (rest.decode(),)


class Family(NamedTuple):
    """Records of one kind: how they are told by their keys, and what becomes of them."""

    prefix: bytes
    table: Callable[[Rows], TableRows]
    name: Callable[[bytes], Row]  # the columns that name the record, from its key behind the prefix
    row: Callable[[int, bytes], Row]


# All but jobs, which `to_rows` knows by itself.
_FAMILIES = {
    family.prefix: family
    for family in (
        Family(
            keys.JOB_ERRORS,
            lambda rows: rows.job_errors,
            _error_name,
            lambda shard, value: job_error_row(shard, decode_job_error(value)),
        ),
        Family(
            keys.QUEUES,
            lambda rows: rows.queues,
            _text_name,
            lambda shard, value: queue_row(shard, decode_queue(value)),
        ),
        Family(
            keys.WORKERS,
            lambda rows: rows.workers,
            _text_name,
            lambda shard, value: worker_row(shard, decode_worker(value)),
        ),
        Family(
            keys.BATCHES,
            lambda rows: rows.batches,
            _text_name,
            lambda shard, value: batch_row(shard, decode_batch(value)),
        ),
        Family(
            keys.SCHEDULES,
            lambda rows: rows.schedules,
            _text_name,
            lambda shard, value: schedule_row(shard, decode_schedule(value)),
        ),
    )
}

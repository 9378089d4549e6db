"""Records of a shard → rows of `read.db`. Pure: no socket, no file, no clock.

A record is a key of `corvo.state.keys` with its newest value, or None when it was deleted. A row is a plain tuple in
the order of the columns named here, ready for `executemany`; `statements.py` makes the statements from the same names.
Families that have no table are passed over: a newer shard may keep more than this mirror shows.

A stretch is what one piece of a scan covered: rows of the shard inside it that the piece did not hold are gone.
"""

from collections.abc import Iterable, Sequence

import msgspec

from corvo.job import Job, JobError, Queue, Worker, decode_job, decode_job_error, decode_queue, decode_worker
from corvo.lifecycle import STATE_NAMES, State
from corvo.moments import to_rfc3339, to_rfc3339_or_none
from corvo.retry import BACKOFF_NAMES
from corvo.state import keys

Value = str | int | None
Row = tuple[Value, ...]
Record = tuple[bytes, bytes | None]

JOB_COLUMNS = (
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
JOB_ERROR_COLUMNS = ("job_id", "claim", "shard", "attempt", "error", "backtrace", "created_at")
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
)
WORKER_COLUMNS = ("id", "shard", "hostname", "queues", "last_heartbeat", "started_at")

_COUNTED = tuple(STATE_NAMES.index(name) for name in QUEUE_COLUMNS[3:11])
_END_OF_TEXT = "\U0010ffff"  # sorts after every id and name, which are ASCII
_to_json = msgspec.json.Encoder().encode


class TableRows(msgspec.Struct):
    put: list[Row] = []
    gone: list[Row] = []  # the key's columns, then the shard


class Rows(msgspec.Struct):
    jobs: TableRows
    job_errors: TableRows
    queues: TableRows
    workers: TableRows

    @property
    def tables(self) -> tuple[TableRows, ...]:
        return self.jobs, self.job_errors, self.queues, self.workers

    @property
    def count(self) -> int:
        return sum(len(table.put) + len(table.gone) for table in self.tables)


class Stretch(msgspec.Struct, frozen=True):
    """Per table the bounds of what a piece covered, lower included, upper not; None: nothing of that table."""

    jobs: Row | None
    job_errors: Row | None
    queues: Row | None
    workers: Row | None


NO_STRETCH = Stretch(None, None, None, None)


def to_rows(shard: int, records: Iterable[Record]) -> Rows:
    """Of several records with one key the last counts."""
    rows = Rows(TableRows(), TableRows(), TableRows(), TableRows())
    put_job, gone_job = rows.jobs.put.append, rows.jobs.gone.append
    for key, value in dict(records).items():
        if key.startswith(keys.JOBS):  # first, because nearly every record is a job
            if value is None:
                gone_job((key[len(keys.JOBS) :].decode(), shard))
            else:
                put_job(job_row(shard, decode_job(value)))
        elif key.startswith(keys.JOB_ERRORS):
            if value is None:
                rows.job_errors.gone.append((*_error_name(key[len(keys.JOB_ERRORS) :]), shard))
            else:
                rows.job_errors.put.append(job_error_row(shard, decode_job_error(value)))
        elif key.startswith(keys.QUEUES):
            if value is None:
                rows.queues.gone.append((key[len(keys.QUEUES) :].decode(), shard))
            else:
                rows.queues.put.append(queue_row(shard, decode_queue(value)))
        elif key.startswith(keys.WORKERS):
            if value is None:
                rows.workers.gone.append((key[len(keys.WORKERS) :].decode(), shard))
            else:
                rows.workers.put.append(worker_row(shard, decode_worker(value)))
    return rows


def job_row(shard: int, job: Job) -> Row:
    """JOB_COLUMNS. Emptiness becomes NULL; moments become text whose order is the order of time."""
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
        to_rfc3339(job.due_at) if job.due_at else None,
        to_rfc3339(job.created_at),
        to_rfc3339(job.started_at) if job.started_at else None,
        to_rfc3339(job.completed_at) if job.completed_at else None,
        to_rfc3339(job.failed_at) if job.failed_at else None,
    )


def job_error_row(shard: int, error: JobError) -> Row:
    return (
        error.job_id,
        error.claim,
        shard,
        error.attempt,
        error.error,
        error.backtrace or None,
        to_rfc3339(error.created_at),
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
    )


def worker_row(shard: int, worker: Worker) -> Row:
    return (
        worker.id,
        shard,
        worker.hostname or None,
        _to_json(worker.queues).decode(),
        to_rfc3339(worker.last_seen_at),
        to_rfc3339_or_none(worker.started_at) or to_rfc3339(worker.last_seen_at),
    )


def presence_rows(shard: int, workers: Sequence[Worker]) -> list[Row]:
    return [worker_row(shard, worker) for worker in {worker.id: worker for worker in workers}.values()]


def to_stretch(start: bytes, next_key: bytes) -> Stretch:
    """What the scan from `start` to `next_key` covered. An empty `next_key` means: up to the end."""
    return Stretch(
        jobs=_text_bounds(_inside(keys.JOBS, start, next_key)),
        job_errors=_error_bounds(_inside(keys.JOB_ERRORS, start, next_key)),
        queues=_text_bounds(_inside(keys.QUEUES, start, next_key)),
        workers=_text_bounds(_inside(keys.WORKERS, start, next_key)),
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

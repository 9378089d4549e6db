"""Records of a shard → rows of the read database. Pure: no socket, no file, no clock.

A record is a key of `corvo.state.keys` with its newest value, or None if it was deleted. `columns.py` makes a row of a
record. Record families without a table are skipped: a newer shard may store more than this mirror shows.

A stretch is the key range that one piece of a scan covered. Rows of the shard inside it that are missing from the piece
are deleted.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec

from corvo.model.job import Worker, decode_job, decode_job_error, decode_minute, decode_queue, decode_worker
from corvo.model.timestamps import to_rfc3339
from corvo.rules.batches import decode_batch
from corvo.state import keys
from corvo.state.audit_log import decode_entry as decode_audit
from corvo.state.claim_limits import decode_claims
from corvo.state.locks import decode_lock
from corvo.state.schedules import decode_schedule
from gateway.mirror.columns import (
    Row,
    batch_row,
    bond_values,
    job_error_row,
    job_row,
    queue_claims_row,
    queue_row,
    schedule_row,
    unique_lock_row,
    worker_row,
)
from gateway.readdb.audit import audit_row
from gateway.readdb.minutes import minute_row

Record = tuple[bytes, bytes | None]

_END_OF_NUMBERS = 2**63 - 1
_END_OF_TEXT = "\U0010ffff"  # sorts after every id and name, which are ASCII


class TableRows(msgspec.Struct):
    put: list[Row] = []
    gone: list[Row] = []  # the key's columns, then the shard


class Rows(msgspec.Struct):
    """Rows of jobs without extras omit those columns: nearly all jobs have none, and seven NULLs cost a fifth of the
    time to write a row."""

    jobs: TableRows = msgspec.field(default_factory=TableRows)
    bonded_jobs: TableRows = msgspec.field(default_factory=TableRows)  # only upserts; deletions are in `jobs`
    job_errors: TableRows = msgspec.field(default_factory=TableRows)
    queues: TableRows = msgspec.field(default_factory=TableRows)
    queue_minutes: TableRows = msgspec.field(default_factory=TableRows)
    workers: TableRows = msgspec.field(default_factory=TableRows)
    batches: TableRows = msgspec.field(default_factory=TableRows)
    schedules: TableRows = msgspec.field(default_factory=TableRows)
    unique_locks: TableRows = msgspec.field(default_factory=TableRows)
    queue_claims: TableRows = msgspec.field(default_factory=TableRows)
    audit_records: TableRows = msgspec.field(default_factory=TableRows)

    @property
    def tables(self) -> tuple[TableRows, ...]:
        of_jobs = (self.jobs, self.bonded_jobs, self.job_errors, self.unique_locks)
        of_queues = (self.queues, self.queue_minutes, self.queue_claims)
        return *of_jobs, *of_queues, self.workers, self.batches, self.schedules, self.audit_records

    @property
    def count(self) -> int:
        return sum(len(table.put) + len(table.gone) for table in self.tables)


class KeyRange(msgspec.Struct, frozen=True):
    """The range of a piece, per table: lower bound inclusive, upper exclusive. None: nothing of that table."""

    jobs: Row | None = None
    job_errors: Row | None = None
    queues: Row | None = None
    queue_minutes: Row | None = None
    workers: Row | None = None
    batches: Row | None = None
    schedules: Row | None = None
    unique_locks: Row | None = None
    queue_claims: Row | None = None
    audit_records: Row | None = None


NO_STRETCH = KeyRange()


def to_rows(shard: int, records: Iterable[Record]) -> Rows:
    """If several records have the same key, the last one counts."""
    rows = Rows()
    put_job, put_bonded, gone_job = rows.jobs.put.append, rows.bonded_jobs.put.append, rows.jobs.gone.append
    for key, value in dict(records).items():
        if key.startswith(keys.JOBS):  # first, because nearly every record is a job
            if value is None:
                gone_job((key[len(keys.JOBS) :].decode(), shard))
            else:
                job = decode_job(value)
                if job.extras is None:
                    put_job(job_row(shard, job))
                else:
                    put_bonded(job_row(shard, job) + bond_values(job.extras))
            continue
        family = _FAMILIES.get(key[: key.find(b"|") + 1])
        if family is not None:
            table = family.table(rows)
            if value is None:
                table.gone.append((*family.name(key[len(family.prefix) :]), shard))
            else:
                table.put.append(family.row(shard, key, value))
    return rows


def presence_rows(shard: int, workers: Sequence[Worker]) -> list[Row]:
    return [worker_row(shard, worker) for worker in {worker.id: worker for worker in workers}.values()]


def to_stretch(start: bytes, next_key: bytes) -> KeyRange:
    """The range that a scan from `start` to `next_key` covered. An empty `next_key` means the end."""

    def texts(prefix: bytes) -> Row | None:
        return _text_bounds(_inside(prefix, start, next_key))

    return KeyRange(
        jobs=texts(keys.JOBS),
        job_errors=_numbered_bounds(_inside(keys.JOB_ERRORS, start, next_key)),
        queues=texts(keys.QUEUES),
        queue_minutes=_numbered_bounds(_inside(keys.MINUTES, start, next_key)),
        workers=texts(keys.WORKERS),
        batches=texts(keys.BATCHES),
        schedules=texts(keys.SCHEDULES),
        unique_locks=_pair_bounds(_inside(keys.UNIQUE, start, next_key), _lock_name),
        queue_claims=_pair_bounds(_inside(keys.CLAIMS, start, next_key), _claims_name),
        audit_records=_audit_bounds(_inside(keys.AUDIT, start, next_key)),
    )


Bounds = tuple[bytes, bytes | None]  # of keys without their prefix; None: no upper bound


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


def _numbered_bounds(bounds: Bounds | None) -> Row | None:
    """The bounds as two pairs (name, number), which sort like the keys."""
    if bounds is None:
        return None
    lower, upper = bounds
    return (*_numbered_name(lower), *((_END_OF_TEXT, 0) if upper is None else _numbered_name(upper)))


def _numbered_name(rest: bytes) -> tuple[str, int]:
    """Job and claim, or queue and minute, from a key without its prefix. If a bound lies between two keys, those of the
    next key."""
    return _name_and_number(rest, len(keys.pack_u32(0)))


def _name_and_number(rest: bytes, size: int) -> tuple[str, int]:
    name, _, rest = rest.partition(b"\0")
    number = int.from_bytes(rest[:size].ljust(size, b"\0"), "big")
    return name.decode(), number + 1 if len(rest) > size else number


def _pair_bounds(bounds: Bounds | None, name: Callable[[bytes], tuple[str, str]]) -> Row | None:
    if bounds is None:
        return None
    lower, upper = bounds
    return (*name(lower), *((_END_OF_TEXT, "") if upper is None else name(upper)))


def _lock_name(rest: bytes) -> tuple[str, str]:
    """Queue and unique key."""
    queue, _, key = rest.partition(b"\0")
    return queue.decode(), key.decode()


def _claims_name(rest: bytes) -> tuple[str, str]:
    """Queue and timestamp."""
    queue, moment = _name_and_number(rest, len(keys.pack_u64(0)))
    return queue, to_rfc3339(moment)


def _audit_bounds(bounds: Bounds | None) -> Row | None:
    if bounds is None:
        return None
    lower, upper = bounds
    return (*_audit_name(lower), *((_END_OF_NUMBERS,) if upper is None else _audit_name(upper)))


def _audit_name(rest: bytes) -> tuple[int]:
    """The record's number; of a bound between two keys, that of the next."""
    size = len(keys.pack_u64(0))
    number = int.from_bytes(rest[:size].ljust(size, b"\0"), "big")
    return (number + 1 if len(rest) > size else number,)


def _text_name(rest: bytes) -> tuple[str]:
    return (rest.decode(),)


class Family(NamedTuple):
    """Records of one kind: how to recognize their keys and make rows of them."""

    prefix: bytes
    table: Callable[[Rows], TableRows]
    name: Callable[[bytes], Row]  # the key columns, from the key without its prefix
    row: Callable[[int, bytes, bytes], Row]  # from the shard, the key and the value


# All but jobs, which `to_rows` handles itself.
_FAMILIES = {
    family.prefix: family
    for family in (
        Family(
            keys.JOB_ERRORS,
            lambda rows: rows.job_errors,
            _numbered_name,
            lambda shard, _, value: job_error_row(shard, decode_job_error(value)),
        ),
        Family(
            keys.QUEUES,
            lambda rows: rows.queues,
            _text_name,
            lambda shard, _, value: queue_row(shard, decode_queue(value)),
        ),
        Family(
            keys.MINUTES,
            lambda rows: rows.queue_minutes,
            _numbered_name,
            lambda shard, _, value: minute_row(shard, decode_minute(value)),
        ),
        Family(
            keys.WORKERS,
            lambda rows: rows.workers,
            _text_name,
            lambda shard, _, value: worker_row(shard, decode_worker(value)),
        ),
        Family(
            keys.BATCHES,
            lambda rows: rows.batches,
            _text_name,
            lambda shard, _, value: batch_row(shard, decode_batch(value)),
        ),
        Family(
            keys.SCHEDULES,
            lambda rows: rows.schedules,
            _text_name,
            lambda shard, _, value: schedule_row(shard, decode_schedule(value)),
        ),
        Family(
            keys.UNIQUE,
            lambda rows: rows.unique_locks,
            _lock_name,
            lambda shard, key, value: unique_lock_row(
                shard, *_lock_name(key.removeprefix(keys.UNIQUE)), decode_lock(value)
            ),
        ),
        Family(
            keys.CLAIMS,
            lambda rows: rows.queue_claims,
            _claims_name,
            lambda shard, key, value: queue_claims_row(shard, *keys.claims_parts(key), decode_claims(value)),
        ),
        Family(
            keys.AUDIT,
            lambda rows: rows.audit_records,
            _audit_name,
            lambda shard, _, value: audit_row(shard, decode_audit(value)),
        ),
    )
}

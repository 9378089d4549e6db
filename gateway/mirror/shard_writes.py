"""The content of one transaction of the mirror: rows, cursors, and the statements that write each table's rows."""

from collections.abc import Iterator

import msgspec

from corvo.model.timestamps import to_rfc3339, to_rfc3339_or_none
from gateway.mirror import statements
from gateway.mirror.columns import Row
from gateway.mirror.rows import NO_STRETCH, KeyRange, Rows, TableRows
from gateway.mirror.statements import TableStatements


class Meta(msgspec.Struct, frozen=True):
    """The metadata of a read database; the row of `mirror_meta`."""

    schema_version: str
    generation: str
    origin: str  # SQLite: the boot id of the machine; PostgreSQL: the cluster id
    is_clean: bool
    shards: int
    created_at: str
    published_at: str | None = None


class Cursor(msgspec.Struct):
    """How far one shard has been followed; a row of `mirror_cursors`. Times are in nanoseconds, 0 for never."""

    shard: int
    applied_index: int
    updated_at: int
    caught_up_at: int
    is_following: bool
    rows_total: int


class ShardWrite(msgspec.Struct):
    """One shard's part of a transaction."""

    shard: int
    rows: Rows
    cursor: Cursor | None = None  # None during a scan: the cursor moves when the scan is complete
    stretch: KeyRange | None = None  # cleared before the rows are written
    presence: list[Row] | None = None  # None: unchanged
    is_copy: bool = False  # only for the database being built; the published one has it already


def parts(turn: ShardWrite) -> Iterator[tuple[TableStatements, TableRows, Row | None]]:
    """For each table: its statements, its rows, and the bounds of the range to clear first."""
    stretch = turn.stretch or NO_STRETCH
    yield statements.JOBS, turn.rows.jobs, stretch.jobs
    yield statements.BONDED_JOBS, turn.rows.bonded_jobs, None  # the statements for jobs have cleared the stretch
    yield statements.JOB_ERRORS, turn.rows.job_errors, stretch.job_errors
    yield statements.QUEUES, turn.rows.queues, stretch.queues
    yield statements.MINUTES, turn.rows.queue_minutes, stretch.queue_minutes
    yield statements.WORKERS, turn.rows.workers, stretch.workers
    yield statements.BATCHES, turn.rows.batches, stretch.batches
    yield statements.SCHEDULES, turn.rows.schedules, stretch.schedules
    yield statements.UNIQUE_LOCKS, turn.rows.unique_locks, stretch.unique_locks
    yield statements.QUEUE_CLAIMS, turn.rows.queue_claims, stretch.queue_claims
    yield statements.AUDIT, turn.rows.audit_records, stretch.audit_records


def cursor_row(cursor: Cursor) -> Row:
    """CURSOR_COLUMNS."""
    return (
        cursor.shard,
        cursor.applied_index,
        to_rfc3339(cursor.updated_at),
        to_rfc3339_or_none(cursor.caught_up_at),
        int(cursor.is_following),
        cursor.rows_total,
    )


def meta_row(meta: Meta) -> Row:
    """META_COLUMNS."""
    return (
        1,
        meta.schema_version,
        meta.generation,
        meta.origin,
        int(meta.is_clean),
        meta.shards,
        meta.created_at,
        meta.published_at,
    )


def to_meta(row: tuple[int, str, str, str, int, int, str, str | None]) -> Meta:
    _, schema_version, generation, origin, is_clean, shards, created_at, published_at = row
    return Meta(schema_version, generation, origin, bool(is_clean), shards, created_at, published_at)

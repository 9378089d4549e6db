"""The statements that write an SQLite read database, built once from the tables of `schema.py`.

They are plain SQL for the driver's `executemany`: building a Core statement for each of 50,000 rows a second would cost
more than SQLite itself. A write replaces the whole row, so a row always equals its record, even if a job was deleted
and created again under the same id between two batches. Replacing was also measured to be faster than `ON CONFLICT DO
UPDATE` over all columns.
"""

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite

from gateway.mirror import columns
from gateway.readdb import audit, minutes, schema

_DIALECT = sqlite.dialect(paramstyle="qmark")


class TableStatements:
    """The statements that write one mirrored table. `name` holds the columns of the record's key on its shard."""

    def __init__(self, table: sa.Table, columns: tuple[str, ...], *name: str) -> None:
        self.table, self.columns, self.name = table, columns, name
        named = [table.c[column] for column in name]
        shard = table.c.shard == sa.bindparam("of_shard")
        self.put = _replace(table, columns)
        self.gone = _text(
            sa.delete(table).where(*[column == sa.bindparam(f"the_{column.name}") for column in named], shard)
        )
        lower = sa.tuple_(*[sa.bindparam(f"from_{column.name}", type_=column.type) for column in named])
        upper = sa.tuple_(*[sa.bindparam(f"upto_{column.name}", type_=column.type) for column in named])
        self.clear_stretch = _text(sa.delete(table).where(sa.tuple_(*named) >= lower, sa.tuple_(*named) < upper, shard))


def _replace(table: sa.Table, columns: tuple[str, ...]) -> str:
    unknown = set(columns) - set(table.c.keys())
    assert not unknown, f"{table.name} has no {sorted(unknown)}"
    return f"INSERT OR REPLACE INTO {table.name} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"


def _text(statement: sa.UpdateBase) -> str:
    return str(statement.compile(dialect=_DIALECT))


JOBS = TableStatements(schema.jobs, columns.PLAIN_JOB_COLUMNS, "id")
BONDED_JOBS = TableStatements(schema.jobs, columns.JOB_COLUMNS, "id")
JOB_ERRORS = TableStatements(schema.job_errors, columns.JOB_ERROR_COLUMNS, "job_id", "claim")
QUEUES = TableStatements(schema.queues, columns.QUEUE_COLUMNS, "name")
MINUTES = TableStatements(minutes.queue_minutes, minutes.MINUTE_COLUMNS, "queue", "minute")
WORKERS = TableStatements(schema.workers, columns.WORKER_COLUMNS, "id")
SCHEDULES = TableStatements(schema.schedules, columns.SCHEDULE_COLUMNS, "id")
UNIQUE_LOCKS = TableStatements(schema.unique_locks, columns.UNIQUE_LOCK_COLUMNS, "queue", "unique_key")
QUEUE_CLAIMS = TableStatements(schema.queue_claims, columns.QUEUE_CLAIM_COLUMNS, "queue", "fetched_at")
AUDIT = TableStatements(audit.audit_records, audit.AUDIT_COLUMNS, "id")
BATCHES = TableStatements(schema.batches, columns.BATCH_COLUMNS, "id")

# For `indexing.py`: jobs to remove from the text index.
NOTE_DELETED = "INSERT INTO deleted_jobs (job_id, shard) VALUES (?, ?)"
NOTE_CLEARED = """
    INSERT INTO deleted_jobs (job_id, shard) SELECT d.job_id, d.shard FROM documents d
    WHERE d.job_id >= ? AND d.job_id < ? AND d.shard = ?
    AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.id = d.job_id AND j.shard = d.shard)
"""
# SQLite may reuse the `seq` of a deleted newest job; the index must not take it for indexed.
REWIND_INDEX = "UPDATE index_progress SET jobs_seq = min(jobs_seq, (SELECT coalesce(max(seq), 0) FROM jobs))"

PUT_PRESENCE = _replace(schema.presence, columns.WORKER_COLUMNS)
CLEAR_PRESENCE = _text(sa.delete(schema.presence))
CLEAR_PRESENCE_OF = _text(sa.delete(schema.presence).where(schema.presence.c.shard == sa.bindparam("of_shard")))

CURSOR_COLUMNS = ("shard", "applied_index", "updated_at", "caught_up_at", "is_following", "rows_total")
PUT_CURSOR = _replace(schema.mirror_cursors, CURSOR_COLUMNS)
_cursors = schema.mirror_cursors
VOUCH = _text(
    sa.update(_cursors)
    .values(updated_at=sa.bindparam("at"), caught_up_at=sa.bindparam("caught_up"))
    .where(_cursors.c.shard == sa.bindparam("of_shard"))
)
FALL_BEHIND = "UPDATE mirror_cursors SET is_following = 0 WHERE shard = ?"
FALL_BEHIND_ALL = "UPDATE mirror_cursors SET is_following = 0"
READ_CURSORS = "SELECT shard, applied_index, caught_up_at, rows_total FROM mirror_cursors ORDER BY shard"

META_COLUMNS = (
    "id",
    "schema_version",
    "generation",
    "origin",
    "is_clean",
    "shards",
    "created_at",
    "published_at",
)
PUT_META = _replace(schema.mirror_meta, META_COLUMNS)
READ_META = f"SELECT {', '.join(META_COLUMNS)} FROM mirror_meta WHERE id = 1"

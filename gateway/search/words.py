"""Full-text search on PostgreSQL, which has no word index here: scans the newest jobs first, in slices, until a
deadline.

Each slice goes into an in-memory FTS5 index with the tokenizer of the SQLite index, so a word means the same on both. A
scan that runs out of time says so.
"""

import sqlite3
from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa

from gateway.readdb.schema import job_errors, jobs
from gateway.readdb.text_index import IN_MEMORY, PART_CHARS_MAX, document
from gateway.search.session import OutOfTime
from gateway.search.tenancy import TenantSession, in_scope, of_tenant

SLICE = 500
SHARE = 0.8  # of the remaining time; the rest is for reading the rows of the page

_ERRORS = (
    sa.select(sa.func.string_agg(job_errors.c.error, "\n"))
    .where(job_errors.c.job_id == jobs.c.id, job_errors.c.shard == jobs.c.shard)
    .scalar_subquery()
)
_PARTS = [sa.func.left(part, PART_CHARS_MAX) for part in (jobs.c.payload, jobs.c.tags, jobs.c.result, _ERRORS)]
_ORDER = (jobs.c.created_at, jobs.c.id, jobs.c.seq)
_NEWEST = sa.select(*_ORDER, *_PARTS).where(of_tenant(jobs)).order_by(*[column.desc() for column in _ORDER])

Place = tuple[str, str, int]


def found(session: TenantSession, expression: str, wanted: int) -> tuple[list[int], bool]:
    """The newest matching jobs, and whether the scan found enough or reached the end."""
    end_ms = session.left_ms * (1 - SHARE)
    seqs: list[int] = []
    place: Place | None = None
    newest = _NEWEST.where(*in_scope(jobs.c.queue, session.reach))
    while len(seqs) < wanted:
        try:
            with session.budget(session.left_ms - end_ms):
                rows = session.rows((newest if place is None else newest.where(_before(place))).limit(SLICE))
        except OutOfTime:
            return seqs, False
        seqs += fitting(((seq, *texts) for _, _, seq, *texts in rows), expression)
        if len(rows) < SLICE:
            break
        place = rows[-1][:3]
    return seqs, True


def fitting(jobs: Iterable[Any], expression: str) -> list[int]:
    """The `seq` of each job (seq, payload, tags, result, errors) that matches, by a temporary index."""
    memory = sqlite3.connect(":memory:")
    try:
        for statement in IN_MEMORY.make:
            memory.execute(statement)
        memory.executemany(IN_MEMORY.enter, [(seq, document(*texts)[0]) for seq, *texts in jobs])
        return [seq for (seq,) in memory.execute(IN_MEMORY.find, (expression,))]
    finally:
        memory.close()


def _before(place: Place) -> sa.ColumnElement[bool]:
    return sa.tuple_(*_ORDER) < sa.tuple_(*[sa.literal(part) for part in place])

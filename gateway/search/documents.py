"""Candidates from the text indexes, plus every job that the indexes do not cover yet.

The candidates are a superset of the matches. The caller applies the filters to the rows themselves, so a stale index
entry, or trigrams in another order, does no harm.

User input never becomes FTS5 syntax: it is split into trigrams or words, and each is quoted.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import sqlalchemy as sa

from corvo.queries.search import SearchBody
from gateway.readdb.schema import job_errors, jobs
from gateway.readdb.text_index import PARTIAL, PARTIAL_DOCUMENTS, documents, index_progress, job_tags, marker
from gateway.search import jq
from gateway.search.database import Prepared, TenantSession, along, listed, numbers
from gateway.search.tags import TagValue, has_tag, stored
from gateway.search.tenancy import in_scope, of_tenant

SPAN_FACTOR = 10  # a job that is written ten times takes ten numbers
GRAMS_MAX = 16  # per needle; enough to be selective, and the row itself is checked anyway

_grams = sa.table("jobs_grams", sa.column("rowid", sa.Integer))
_PARTIAL = along(str(PARTIAL_DOCUMENTS.name), sa.select(documents.c.doc), documents).where(
    of_tenant(documents), sa.text(PARTIAL)
)
# Of all namespaces: numbers, which say nothing about anybody's jobs.
_NEWEST_JOB: sa.ColumnElement[int] = sa.literal_column("(SELECT coalesce(max(seq), 0) FROM jobs)", sa.Integer)
_NEWEST_ERROR: sa.ColumnElement[int] = sa.literal_column("(SELECT coalesce(max(id), 0) FROM job_errors)", sa.Integer)
_PROGRESS = Prepared(sa.select(index_progress.c.jobs_seq, index_progress.c.error_id, _NEWEST_JOB, _NEWEST_ERROR))
IS_DOCUMENT = sa.and_(jobs.c.id == documents.c.job_id, jobs.c.shard == documents.c.shard)
_JOBS_OF = (
    sa.select(jobs.c.seq)
    .join_from(documents, jobs, IS_DOCUMENT)
    .where(documents.c.doc.in_(listed("docs")), of_tenant(jobs))
)


def match(body: SearchBody) -> str:
    """The FTS5 query for the trigram index; empty if the index cannot help."""
    needles = [needle for needle in (body.payload_contains, body.error_contains) if needle is not None]
    if body.payload_jq is not None:
        needles += jq.literals(body.payload_jq)
    return " AND ".join(dict.fromkeys(quoted(gram) for needle in needles for gram in _threes(needle)))


def quoted(word: str) -> str:
    return '"' + word.replace('"', '""') + '"'


def with_marker(session: TenantSession, expression: str) -> str:
    """The query, for the documents of the session's namespace."""
    return f"{quoted(marker(session.reach.namespace))} AND {expression}"


def matching(session: TenantSession, expression: str, at_most: int) -> list[int] | None:
    if session.is_postgresql:  # it has no trigram index; the scan checks the rows
        return None
    found = sa.select(_grams.c.rowid).where(
        sa.literal_column("jobs_grams").op("MATCH")(sa.literal(with_marker(session, expression)))
    )
    return _jobs(session, [found, _PARTIAL], at_most)


def tagged(session: TenantSession, key: str, value: TagValue, at_most: int) -> list[int] | None:
    if session.is_postgresql:
        has = has_tag(key, value, is_postgresql=True)
        tagged_jobs = sa.select(jobs.c.seq).where(of_tenant(jobs), has, *in_scope(jobs.c.queue, session.reach))
        return _first(session, tagged_jobs, at_most)
    is_tag = (job_tags.c.key == sa.literal(key), job_tags.c.value == sa.literal(stored(key, value)))
    return _jobs(session, [sa.select(job_tags.c.doc).where(of_tenant(job_tags), *is_tag), _PARTIAL], at_most)


class IndexProgress(NamedTuple):
    """How far the text indexes are, and the newest numbers of all namespaces together."""

    jobs_seq: int
    error_id: int
    newest_seq: int
    newest_error: int


def progress(session: TenantSession) -> IndexProgress:
    return IndexProgress(*session.rows(_PROGRESS)[0])


def unindexed(session: TenantSession, at_most: int) -> list[int] | None:
    """Jobs that were written, or failed, after the indexes were last updated. None if they are too many, or among too
    many of other namespaces: those have to be passed over."""
    at = progress(session)
    span_max = SPAN_FACTOR * at_most
    if at.newest_seq - at.jobs_seq > span_max or at.newest_error - at.error_id > span_max:
        return None
    late_jobs = sa.select(jobs.c.seq).where(jobs.c.seq > at.jobs_seq, of_tenant(jobs))
    late = _first(session, _in_reach(session, late_jobs).order_by(jobs.c.seq), at_most)
    if late is None or at.newest_error <= at.error_id:
        return late
    of_error = sa.and_(jobs.c.id == job_errors.c.job_id, jobs.c.shard == job_errors.c.shard)
    failed = sa.select(jobs.c.seq).join_from(job_errors, jobs, of_error)
    failed = failed.where(job_errors.c.id > at.error_id, of_tenant(jobs))
    late_errors = _first(session, _in_reach(session, failed), at_most)
    return None if late_errors is None else late + late_errors


def _in_reach(session: TenantSession, found: sa.Select[Any]) -> sa.Select[Any]:
    return found.where(*in_scope(jobs.c.queue, session.reach))


def _jobs(session: TenantSession, sources: list[sa.Select[Any]], at_most: int) -> list[int] | None:
    seqs = unindexed(session, at_most)
    for source in sources:
        if seqs is None or (docs := _first(session, source, at_most)) is None:
            return None
        if docs:
            seqs += [seq for (seq,) in session.rows(_in_reach(session, _JOBS_OF), docs=numbers(docs))]
    return seqs


def _first(session: TenantSession, statement: sa.Select[Any], at_most: int) -> list[int] | None:
    found = [number for (number,) in session.rows(statement.limit(at_most + 1))]
    return None if len(found) > at_most else found


def _threes(needle: str) -> Iterator[str]:
    """Trigrams of the pieces between NULs, where tokenizers stop. If there are too many, evenly spaced ones."""
    grams = [piece[at : at + 3] for piece in needle.split("\0") for at in range(len(piece) - 2)]
    yield from grams[:: -(-len(grams) // GRAMS_MAX) or 1]

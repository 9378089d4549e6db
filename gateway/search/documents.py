"""Candidates from the text indexes, plus every job that the indexes do not cover yet.

The candidates are a superset of the matches. The caller applies the filters to the rows themselves, so a stale index
entry, or trigrams in another order, does no harm.

User input never becomes FTS5 syntax: it is split into trigrams or words, and each is quoted.
"""

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa

from corvo.queries.search import SearchBody
from gateway.readdb.schema import job_errors, jobs
from gateway.readdb.text_index import PARTIAL, PARTIAL_DOCUMENTS, documents, index_progress, job_tags
from gateway.search import jq
from gateway.search.database import Prepared, ReadSession, along, listed, numbers
from gateway.search.tags import TagValue, has_tag, stored

GRAMS_MAX = 16  # per needle; enough to be selective, and the row itself is checked anyway

_grams = sa.table("jobs_grams", sa.column("rowid", sa.Integer))
_PARTIAL = along(str(PARTIAL_DOCUMENTS.name), sa.select(documents.c.doc), documents).where(sa.text(PARTIAL))
_PROGRESS = Prepared(sa.select(index_progress.c.jobs_seq, index_progress.c.error_id))
IS_DOCUMENT = sa.and_(jobs.c.id == documents.c.job_id, jobs.c.shard == documents.c.shard)
_JOBS_OF = Prepared(
    sa.select(jobs.c.seq).join_from(documents, jobs, IS_DOCUMENT).where(documents.c.doc.in_(listed("docs")))
)


def match(body: SearchBody) -> str:
    """The FTS5 query for the trigram index; empty if the index cannot help."""
    needles = [needle for needle in (body.payload_contains, body.error_contains) if needle is not None]
    if body.payload_jq is not None:
        needles += jq.literals(body.payload_jq)
    return " AND ".join(dict.fromkeys(quoted(gram) for needle in needles for gram in _threes(needle)))


def quoted(word: str) -> str:
    return '"' + word.replace('"', '""') + '"'


def matching(session: ReadSession, expression: str, at_most: int) -> list[int] | None:
    if session.is_postgresql:  # it has no trigram index; the scan checks the rows
        return None
    found = sa.select(_grams.c.rowid).where(sa.literal_column("jobs_grams").op("MATCH")(sa.literal(expression)))
    return _jobs(session, [found, _PARTIAL], at_most)


def tagged(session: ReadSession, key: str, value: TagValue, at_most: int) -> list[int] | None:
    if session.is_postgresql:
        return _first(session, sa.select(jobs.c.seq).where(has_tag(key, value, is_postgresql=True)), at_most)
    is_tag = (job_tags.c.key == sa.literal(key), job_tags.c.value == sa.literal(stored(key, value)))
    return _jobs(session, [sa.select(job_tags.c.doc).where(*is_tag), _PARTIAL], at_most)


def progress(session: ReadSession) -> tuple[int, int]:
    """The last job and the last error in the indexes."""
    jobs_seq, error_id = session.rows(_PROGRESS)[0]
    return jobs_seq, error_id


def unindexed(session: ReadSession, at_most: int) -> list[int] | None:
    """Jobs that were written, or failed, after the indexes were last updated."""
    jobs_seq, error_id = progress(session)
    late = _first(session, sa.select(jobs.c.seq).where(jobs.c.seq > jobs_seq).order_by(jobs.c.seq), at_most)
    if late is None:
        return None
    errors = sa.select(job_errors.c.id).where(job_errors.c.id > error_id).order_by(job_errors.c.id)
    if (late_errors := _first(session, errors, at_most)) is None:
        return None
    if late_errors:
        of_error = sa.and_(jobs.c.id == job_errors.c.job_id, jobs.c.shard == job_errors.c.shard)
        failed = sa.select(jobs.c.seq).join_from(job_errors, jobs, of_error)
        late += [seq for (seq,) in session.rows(failed.where(job_errors.c.id > error_id))]
    return late


def _jobs(session: ReadSession, sources: list[sa.Select[Any]], at_most: int) -> list[int] | None:
    seqs = unindexed(session, at_most)
    for source in sources:
        if seqs is None or (docs := _first(session, source, at_most)) is None:
            return None
        if docs:
            seqs += [seq for (seq,) in session.rows(_JOBS_OF, docs=numbers(docs))]
    return seqs


def _first(session: ReadSession, statement: sa.Select[Any], at_most: int) -> list[int] | None:
    found = [number for (number,) in session.rows(statement.limit(at_most + 1))]
    return None if len(found) > at_most else found


def _threes(needle: str) -> Iterator[str]:
    """Trigrams of the pieces between NULs, where tokenizers stop. If there are too many, evenly spaced ones."""
    grams = [piece[at : at + 3] for piece in needle.split("\0") for at in range(len(piece) - 2)]
    yield from grams[:: -(-len(grams) // GRAMS_MAX) or 1]

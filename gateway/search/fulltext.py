"""Full-text search by words, over indexed jobs and over jobs that are not indexed yet.

Jobs that are not indexed yet go into an in-memory index with the same tokenizer, which runs the same query. If the
index has a stale text of a changed job, only the current text counts. The in-memory index is bounded; an answer that
left jobs out says so.
"""

import time

import msgspec
import sqlalchemy as sa

from corvo.model.namespaces import shown_name
from corvo.queries.search import FulltextAnswer, FulltextHit, FulltextQuery
from gateway.readdb.schema import BY_CREATED, job_errors, jobs
from gateway.readdb.text_index import documents
from gateway.search import words
from gateway.search.candidates import AMONG
from gateway.search.database import TenantDb, TenantSession, along, listed, numbers
from gateway.search.documents import IS_DOCUMENT, progress, quoted, unindexed, with_marker
from gateway.search.lag import lag_ms
from gateway.search.tenancy import in_scope, of_tenant

UNINDEXED_MAX = 5_000  # about a quarter of a second
PAGE = 1_000  # documents at a time; some may belong to deleted jobs

_words = sa.table("jobs_fts", sa.column("rowid", sa.Integer))
_ERRORS = (
    sa.select(sa.func.group_concat(job_errors.c.error, "\n"))
    .where(job_errors.c.job_id == jobs.c.id, job_errors.c.shard == jobs.c.shard)
    .scalar_subquery()
)
_PARTS = sa.select(jobs.c.seq, jobs.c.payload, jobs.c.tags, jobs.c.result, _ERRORS).where(AMONG)
_UNCHANGED = (
    sa.select(jobs.c.seq)
    .join_from(documents, jobs, IS_DOCUMENT)
    .where(
        documents.c.doc.in_(listed("docs")),
        jobs.c.seq <= sa.bindparam("jobs_seq", type_=sa.Integer),
        of_tenant(jobs),
    )
    .order_by(documents.c.doc.desc())
)
_HITS = (
    sa.select(jobs.c.id, jobs.c.queue, jobs.c.state, jobs.c.payload, jobs.c.tags, jobs.c.created_at)
    .where(AMONG)
    .order_by(jobs.c.created_at.desc(), jobs.c.id.desc())
)


async def answer(read_db: TenantDb, query: FulltextQuery) -> FulltextAnswer:
    started_at = time.perf_counter()
    expression = " AND ".join(quoted(word) for word in query.q.replace("\0", " ").split())

    def ask(session: TenantSession) -> FulltextAnswer:
        seqs, is_complete = _found(session, query, expression)
        hits_in_reach = _HITS.where(*in_scope(jobs.c.queue, session.reach))
        rows = session.rows(hits_in_reach.limit(query.limit + 1), seqs=numbers(seqs))
        hits = {row[0]: _hit(*row) for row in rows}  # a job that moves between shards may have two rows
        return FulltextAnswer(
            q=query.q,
            results=list(hits.values())[: query.limit],
            has_more=len(rows) > query.limit,
            is_complete=is_complete,
            duration_ms=round((time.perf_counter() - started_at) * 1000, 3),
            lag_ms=round(lag_ms(session), 3),
        )

    return await read_db.ask(ask)


def _found(session: TenantSession, query: FulltextQuery, expression: str) -> tuple[list[int], bool]:
    if session.is_postgresql:
        return words.found(session, expression, query.limit + 1) if expression else ([], True)
    seqs, is_complete = _late(session, expression)
    return seqs + _indexed(session, expression, query.limit + 1), is_complete


def _indexed(session: TenantSession, expression: str, wanted: int) -> list[int]:
    """Matching jobs that have not changed since they were indexed, newest first."""
    if not expression:
        return []
    jobs_seq = progress(session).jobs_seq
    matching = with_marker(session, expression)
    unchanged = _UNCHANGED.where(*in_scope(jobs.c.queue, session.reach))
    found: list[int] = []
    before = 2**63 - 1
    while len(found) < wanted:
        page = (
            sa.select(_words.c.rowid)
            .where(sa.literal_column("jobs_fts").op("MATCH")(sa.literal(matching)), _words.c.rowid < sa.literal(before))
            .order_by(_words.c.rowid.desc())
            .limit(PAGE)
        )
        docs = [doc for (doc,) in session.rows(page)]
        if docs:
            found += [seq for (seq,) in session.rows(unchanged, docs=numbers(docs), jobs_seq=jobs_seq)]
        if len(docs) < PAGE:
            break
        before = docs[-1]
    return found[:wanted]


def _late(session: TenantSession, expression: str) -> tuple[list[int], bool]:
    """Matching jobs that are not indexed yet, and whether all unindexed jobs were checked."""
    late = unindexed(session, UNINDEXED_MAX)
    newest = along(str(BY_CREATED.name), sa.select(jobs.c.seq), jobs).where(
        of_tenant(jobs), jobs.c.seq > progress(session).jobs_seq, *in_scope(jobs.c.queue, session.reach)
    )
    newest = newest.order_by(jobs.c.created_at.desc()).limit(UNINDEXED_MAX)
    seqs = [seq for (seq,) in session.rows(newest)] if late is None else late
    if not seqs or not expression:
        return [], late is not None
    return words.fitting(
        session.rows(_PARTS.where(*in_scope(jobs.c.queue, session.reach)), seqs=numbers(seqs)), expression
    ), late is not None


def _hit(job_id: str, queue: str, state: str, payload: str, tags: str | None, created_at: str) -> FulltextHit:
    raw_tags = msgspec.Raw(tags.encode()) if tags else None
    return FulltextHit(job_id, shown_name(queue), state, msgspec.Raw(payload.encode()), raw_tags, created_at)

"""Search: a page of jobs that match every filter, in the requested order, with a total.

If an index yields few candidates (`candidates.py`), they are read and sorted. Otherwise the search scans the index of
its sort order (`index_scan.py`); a scan that runs out of time returns its matches and a cursor. Both use the same order
and the same cursors, so consecutive pages may use different ways.

A job that moves between shards may have a row from each (`gateway/readdb/schema.py`). The rows are neighbours in every
order, and the page shows one of them. So the search finds rows, not ids.
"""

import time
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa

from corvo.model.errors import Refusal
from corvo.model.namespaces import shown_name
from corvo.model.reach import Reach
from corvo.queries.search import JobSummary, SearchAnswer, SearchBody
from gateway.readdb.schema import job_errors, jobs
from gateway.search.candidates import AMONG, few
from gateway.search.cursor import SearchCursor, to_cursor, to_search_place
from gateway.search.database import OutOfTime, TenantDb, TenantSession, along, numbers
from gateway.search.filters import Condition, residual
from gateway.search.index_scan import Key, walk
from gateway.search.lag import lag_ms
from gateway.search.sorts import Sort, by_creation, named
from gateway.search.tenancy import in_scope

TOTAL_MAX = 10_000
COUNTED_MAX = 100_000_000
COUNT_ALL_BUDGET_MS = 1_200
# The exact total is optional: past this time the answer omits it. Counts that must read rows get less time.
COUNT_BUDGET_MS = 500
LOOKING_COUNT_BUDGET_MS = 100
_LAST_ERROR = (
    sa.select(job_errors.c.error)
    .where(job_errors.c.job_id == jobs.c.id, job_errors.c.shard == jobs.c.shard)
    .order_by(job_errors.c.claim.desc())
    .limit(1)
    .scalar_subquery()
)
_COLUMNS = (
    jobs.c.id,
    jobs.c.queue,
    jobs.c.state,
    jobs.c.payload,
    jobs.c.priority,
    jobs.c.attempt,
    jobs.c.max_retries,
    jobs.c.created_at,
    jobs.c.worker_id,
    jobs.c.tags,
    jobs.c.parent_id,
    jobs.c.scheduled_at,
    jobs.c.started_at,
    jobs.c.completed_at,
    jobs.c.failed_at,
    _LAST_ERROR,
    jobs.c.unique_key,
    jobs.c.batch_id,
    jobs.c.chain_id,
    jobs.c.chain_step,
    jobs.c.hold_reason,
    jobs.c.expire_at,
)
_PAGE = sa.select(jobs.c.seq, *_COLUMNS).where(AMONG)
_NOT_OF_THE_QUESTION = ("cursor", "limit", "consistent")
_UNASKED = msgspec.structs.asdict(SearchBody())
_encode = msgspec.json.Encoder(order="deterministic").encode


class _Found(NamedTuple):
    seqs: list[int]  # in order; one more than the page holds, if there are more
    keys: list[Key]
    reached: Key | None = None  # where an unfinished scan stopped
    is_complete: bool = True
    total: int | None = None  # if known


async def answer(read_db: TenantDb, body: SearchBody) -> SearchAnswer:
    """Validates the request before it queries the database."""
    started_at = time.perf_counter()
    question = _digest(body, read_db.reach)
    sort = Sort(body, read_db.reach)
    place = sort.check(to_search_place(body.cursor, question))
    filters = residual(body, read_db.reach, read_db.is_postgresql)

    def ask(session: TenantSession) -> SearchAnswer:
        found = _find(session, body, sort, place, filters, question)
        has_more = len(found.seqs) > body.limit or not found.is_complete
        cursor = None
        if len(found.seqs) > body.limit:
            cursor = to_cursor(SearchCursor(question, *found.keys[body.limit - 1]))
        elif not found.is_complete and found.reached is not None:
            cursor = to_cursor(SearchCursor(question, *found.reached))
        count, is_exact = _count(session, body, filters, found)
        return SearchAnswer(
            jobs=_page(session, found.seqs[: body.limit]),
            total=count,
            total_is_exact=is_exact,
            has_more=has_more,
            cursor=cursor,
            duration_ms=round((time.perf_counter() - started_at) * 1000, 3),
            lag_ms=round(lag_ms(session), 3),
            total_relation="exact" if is_exact else "at_least",
            is_complete=found.is_complete,
        )

    return await read_db.ask(ask, body.queue)


async def count(read_db: TenantDb, body: SearchBody) -> tuple[int, bool]:
    """How many jobs match, and whether the count is exact. A count that exceeds its budget is a lower bound."""
    filters = residual(body, read_db.reach, read_db.is_postgresql)

    def ask(session: TenantSession) -> tuple[int, bool]:
        seqs = few(session, body)
        if seqs is not None:
            return _count_among(session, seqs, [AMONG, *filters, *named(body)]), True
        try:
            with session.budget(COUNT_ALL_BUDGET_MS):
                found: int = session.rows(_total(body, session.reach, filters, COUNTED_MAX))[0][0]
        except OutOfTime:
            return _count(session, body, filters, _Found([], []))
        return min(found, COUNTED_MAX), found <= COUNTED_MAX

    return await read_db.ask(ask, body.queue)


def _digest(body: SearchBody, reach: Reach) -> str:
    """Binds a cursor to its search and to the reach of its client. Unset filters are left out, so a new filter does not
    invalidate old cursors."""
    asked = {
        name: value
        for name, value in msgspec.structs.asdict(body).items()
        if name not in _NOT_OF_THE_QUESTION and value != _UNASKED[name]
    }
    if reach != Reach():
        asked["reach"] = (reach.namespace, *sorted(reach.scope))
    return blake2b(_encode(asked), digest_size=8).hexdigest()


def _find(
    session: TenantSession,
    body: SearchBody,
    sort: Sort,
    place: SearchCursor | None,
    filters: list[Condition],
    question: str,
) -> _Found:
    wanted = body.limit + 1
    seqs = few(session, body)
    if seqs is not None:
        fits = [AMONG, *filters, *named(body)]
        rows = session.rows(
            sa.select(jobs.c.seq, *sort.key).where(*fits, *sort.beyond(place)).order_by(*sort.order()).limit(wanted),
            seqs=numbers(seqs),
        )
        total = len(rows)
        if place is not None or total == wanted:
            total = _count_among(session, seqs, fits)
        return _Found([seq for seq, *_ in rows], [tuple(key) for _, *key in rows], total=total)
    try:
        walked = walk(session, sort, place, filters, wanted, question)
    except OutOfTime:
        raise Refusal(
            "DEADLINE_EXCEEDED", "the search ran out of time at its first jobs; narrow it by queue, state or time"
        ) from None
    is_complete = walked.is_at_end or len(walked.seqs) == wanted
    every = len(walked.seqs) if walked.is_at_end and place is None else None
    return _Found(walked.seqs, walked.keys, walked.reached, is_complete, every)


def _count_among(session: TenantSession, seqs: list[int], fits: list[Condition]) -> int:
    counted: int = session.rows(sa.select(sa.func.count()).select_from(jobs).where(*fits), seqs=numbers(seqs))[0][0]
    return counted


def _page(session: TenantSession, seqs: list[int]) -> list[JobSummary]:
    if not seqs:
        return []
    page = _PAGE.where(*in_scope(jobs.c.queue, session.reach))
    by_seq = {seq: _summary(*row) for seq, *row in session.rows(page, seqs=numbers(seqs))}
    return list({by_seq[seq].id: by_seq[seq] for seq in seqs}.values())


def _total(body: SearchBody, reach: Reach, filters: list[Condition], at_most: int) -> sa.Select[Any]:
    parts = [
        along(index, sa.select(sa.literal_column("1").label("one")), jobs)
        .where(*conditions, *filters)
        .limit(at_most + 1)
        .subquery()
        for index, conditions in by_creation(body, reach)
    ]
    every = sa.union_all(*[sa.select(part.c.one) for part in parts]).subquery()
    return sa.select(sa.func.count()).select_from(every)


def _count(session: TenantSession, body: SearchBody, filters: list[Condition], found: _Found) -> tuple[int, bool]:
    count = found.total
    if count is None:
        if not found.is_complete:
            return len(found.seqs), False
        try:
            with session.budget(min(COUNT_BUDGET_MS, LOOKING_COUNT_BUDGET_MS) if filters else COUNT_BUDGET_MS):
                count = session.rows(_total(body, session.reach, filters, TOTAL_MAX))[0][0]
        except OutOfTime:
            return len(found.seqs), False
    return min(count, TOTAL_MAX), count <= TOTAL_MAX


def _summary(*row: Any) -> JobSummary:
    summary = JobSummary(*row)  # the columns have the order of its fields
    summary.queue = shown_name(summary.queue)
    summary.worker_id = summary.worker_id and shown_name(summary.worker_id)
    summary.payload = msgspec.Raw(summary.payload.encode())
    summary.tags = msgspec.Raw(summary.tags.encode()) if summary.tags else None
    return summary

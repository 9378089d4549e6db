"""Search: a page of jobs by their creation, with a total.

A page is read from the end of an index and never sorted: where queue or state are given, each (queue, state) is one
ordered branch of its own, at most eight, and the branches are merged. Without statistics SQLite cannot be trusted to
find that plan, so each branch names its index. What names few jobs (a batch, a chain, a parent, most of an id) is read
along an index of its own and sorted.

A job on its way from one shard to another may have a row of each (`gateway/mirror/schema.py`). They stand side by side
in the order of creation, and the page shows one of them; branches are therefore lists of rows, not of ids.

Every value is a bound parameter. Moments are brought to the nine decimals of the stored text before they are compared.
"""

import time
from typing import Any

import msgspec
import sqlalchemy as sa

from corvo.errors import invalid
from corvo.job import PRIORITY_NAMES
from corvo.lifecycle import STATE_NAMES
from corvo.moments import parse_rfc3339, to_rfc3339
from corvo.queries.search import JobSummary, SearchAnswer, SearchBody
from gateway.answers.database import OutOfTime, ReadDb, Reading
from gateway.answers.lag import lag_ms
from gateway.answers.place import Place, to_cursor, to_place
from gateway.mirror.schema import BY_BATCH, BY_CHAIN, BY_CREATED, BY_PARENT, BY_QUEUE, BY_STATE, job_errors, jobs

TOTAL_MAX = 10_000
COUNTED_MAX = 100_000_000
COUNT_ALL_BUDGET_MS = 1_200
COUNT_BUDGET_MS = 500  # the total is a courtesy: when it takes longer, the answer goes without
# Shorter than this a prefix names a shard, not a job, and the order of creation is the better road.
SELECTIVE_PREFIX_MIN = 16
_END_OF_TEXT = "\U0010ffff"
_MOMENTS = ("created", "scheduled", "started", "completed")
_NAMES = ("worker_id", "unique_key", "batch_id", "chain_id", "parent_id")
_BY_NAME = {"batch_id": BY_BATCH, "chain_id": BY_CHAIN, "parent_id": BY_PARENT}
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
    jobs.c.unique_key,
    jobs.c.batch_id,
    jobs.c.chain_id,
    jobs.c.chain_step,
    jobs.c.hold_reason,
)
_ROW: sa.ColumnElement[int] = sa.literal_column("jobs.rowid", sa.Integer)
Condition = sa.ColumnElement[bool]


async def answer(read_db: ReadDb, body: SearchBody) -> SearchAnswer:
    """Refuses what cannot be understood before it asks anything."""
    started_at = time.perf_counter()
    filters = _filters(body)
    place = to_place(body.cursor, body.order)
    branches = _branches(body, filters)
    page = _page(body, branches, place)
    total = _total(branches, TOTAL_MAX)

    def question(reading: Reading) -> SearchAnswer:
        rows = reading.rows(page)
        has_more = len(rows) > body.limit
        found = list({job.id: job for job in (_summary(*row) for row in rows[: body.limit])}.values())
        count, is_exact = _count(reading, total, len(rows))
        return SearchAnswer(
            jobs=found,
            total=count,
            total_is_exact=is_exact,
            has_more=has_more,
            cursor=to_cursor(Place(body.order, found[-1].created_at, found[-1].id)) if has_more else None,
            duration_ms=round((time.perf_counter() - started_at) * 1000, 3),
            lag_ms=round(lag_ms(reading), 3),
        )

    return await read_db.ask(question)


async def count(read_db: ReadDb, body: SearchBody) -> tuple[int, bool]:
    """How many jobs match, and whether that is all of them: what takes longer than its budget is only begun."""
    statement = _total(_branches(body, _filters(body)), COUNTED_MAX)
    beyond = _total(_branches(body, _filters(body)), TOTAL_MAX)

    def question(reading: Reading) -> tuple[int, bool]:
        try:
            with reading.budget(COUNT_ALL_BUDGET_MS):
                found: int = reading.rows(statement)[0][0]
        except OutOfTime:
            return _count(reading, beyond, 0)
        return min(found, COUNTED_MAX), found <= COUNTED_MAX

    return await read_db.ask(question)


def _filters(body: SearchBody) -> list[Condition]:
    """Everything but queue, state and place. `after` and `before` are exclusive."""
    conditions: list[Condition] = []
    if body.priority is not None:
        conditions.append(jobs.c.priority == PRIORITY_NAMES.index(body.priority))
    conditions += [jobs.c[name] == getattr(body, name) for name in _NAMES if getattr(body, name) is not None]
    if body.job_id_prefix is not None:
        conditions += [jobs.c.id >= body.job_id_prefix, jobs.c.id < body.job_id_prefix + _END_OF_TEXT]
    for name in _MOMENTS:
        column = jobs.c[f"{name}_at"]
        after, before = f"{name}_after", f"{name}_before"
        if getattr(body, after) is not None:
            conditions.append(column > _moment(after, getattr(body, after)))
        if getattr(body, before) is not None:
            conditions.append(column < _moment(before, getattr(body, before)))
    return conditions


def _branches(body: SearchBody, filters: list[Condition]) -> list[tuple[str, list[Condition]]]:
    """(index, conditions): disjoint sets of jobs, each of which its index yields in the order of creation."""
    states = list(dict.fromkeys(body.state))
    selective = _selective(body)
    if selective is not None:
        conditions = [*filters]
        if body.queue is not None:
            conditions.append(jobs.c.queue == body.queue)
        if states:
            conditions.append(jobs.c.state.in_(states))
        return [(selective, conditions)]
    if body.queue is not None:
        queue = jobs.c.queue == body.queue
        return [(str(BY_QUEUE.name), [queue, jobs.c.state == state, *filters]) for state in states or STATE_NAMES]
    if states:
        return [(str(BY_STATE.name), [jobs.c.state == state, *filters]) for state in states]
    return [(str(BY_CREATED.name), filters)]


def _selective(body: SearchBody) -> str | None:
    """The index of a filter that few jobs pass; they need no order of their own."""
    if body.job_id_prefix is not None and len(body.job_id_prefix) >= SELECTIVE_PREFIX_MIN:
        return "sqlite_autoindex_jobs_1"  # the primary key's
    return next((str(index.name) for name, index in _BY_NAME.items() if getattr(body, name) is not None), None)


def _page(body: SearchBody, branches: list[tuple[str, list[Condition]]], place: Place | None) -> sa.Select[Any]:
    """One row more than the page, to know whether another follows."""
    key = sa.tuple_(jobs.c.created_at, jobs.c.id)
    beyond: list[Condition] = []
    if place is not None:
        reached = sa.tuple_(sa.literal(place.created_at), sa.literal(place.id))
        beyond = [key > reached if body.order == "asc" else key < reached]
    parts = [
        _on(index, sa.select(_ROW.label("row")))
        .where(*conditions, *beyond)
        .order_by(*_order(body, jobs.c.created_at, jobs.c.id))
        .limit(body.limit + 1)
        .subquery()
        for index, conditions in branches
    ]
    found = sa.union_all(*[sa.select(part.c.row) for part in parts])
    last_error = (
        sa.select(job_errors.c.error)
        .where(job_errors.c.job_id == jobs.c.id, job_errors.c.shard == jobs.c.shard)
        .order_by(job_errors.c.claim.desc())
        .limit(1)
        .scalar_subquery()
    )
    return (
        sa.select(*_COLUMNS, last_error)
        .where(_ROW.in_(found))
        .order_by(*_order(body, jobs.c.created_at, jobs.c.id))
        .limit(body.limit + 1)
    )


def _order(body: SearchBody, *columns: sa.ColumnElement[Any]) -> list[sa.ColumnElement[Any]]:
    return [column.asc() if body.order == "asc" else column.desc() for column in columns]


def _total(branches: list[tuple[str, list[Condition]]], at_most: int) -> sa.Select[Any]:
    parts = [
        _on(index, sa.select(sa.literal_column("1").label("one"))).where(*conditions).limit(at_most + 1).subquery()
        for index, conditions in branches
    ]
    every = sa.union_all(*[sa.select(part.c.one) for part in parts]).subquery()
    return sa.select(sa.func.count()).select_from(every)


def _count(reading: Reading, total: sa.Select[Any], at_least: int) -> tuple[int, bool]:
    try:
        with reading.budget(COUNT_BUDGET_MS):
            count: int = reading.rows(total)[0][0]
    except OutOfTime:
        return at_least, False
    return min(count, TOTAL_MAX), count <= TOTAL_MAX


def _on(index: str, statement: sa.Select[Any]) -> sa.Select[Any]:
    return statement.select_from(jobs).with_hint(jobs, f"INDEXED BY {index}", "sqlite")


def _moment(field: str, text: str) -> str:
    try:
        return to_rfc3339(parse_rfc3339(text))
    except ValueError as error:
        raise invalid(field, str(error)) from None


def _summary(*row: Any) -> JobSummary:
    (job_id, queue, state, payload, priority, attempt, max_retries, created_at, worker_id, tags, *rest) = row
    parent_id, scheduled_at, started_at, completed_at, failed_at, *bonds, last_error = rest
    unique_key, batch_id, chain_id, chain_step, hold_reason = bonds
    return JobSummary(
        id=job_id,
        queue=queue,
        state=state,
        payload=msgspec.Raw(payload.encode()),
        priority=priority,
        attempt=attempt,
        max_retries=max_retries,
        created_at=created_at,
        worker_id=worker_id,
        tags=msgspec.Raw(tags.encode()) if tags else None,
        parent_id=parent_id,
        scheduled_at=scheduled_at,
        started_at=started_at,
        completed_at=completed_at,
        failed_at=failed_at,
        last_error=last_error,
        unique_key=unique_key,
        batch_id=batch_id,
        chain_id=chain_id,
        chain_step=chain_step,
        hold_reason=hold_reason,
    )

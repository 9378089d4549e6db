"""All queues, with the counts that the shards keep. Nothing is counted here.

A rate covers the last full minute and the current one. The newest minute with a change is in the queue's own row; the
other is in `queue_minutes`, one seek on its key.
"""

import time
from typing import Any

import sqlalchemy as sa

from corvo.model.job import Priority
from corvo.model.namespaces import shown_name
from corvo.model.timestamps import parse_rfc3339
from corvo.queries.queue import status_of
from corvo.queries.queues import QueueView
from corvo.state.minutes import MINUTE_NS
from gateway.readdb.minutes import queue_minutes as minutes
from gateway.readdb.schema import BY_QUEUE, jobs
from gateway.readdb.schema import queues as table
from gateway.search.database import Prepared, ReadDb, ReadSession, TenantDb, TenantSession
from gateway.search.tenancy import in_scope, of_tenant
from gateway.search.throughput import NEWEST

# One index seek per queue and priority, and only for queues with pending jobs.
_OLDEST_PENDING = [
    sa.select(sa.func.min(jobs.c.created_at))
    .where(jobs.c.queue == table.c.name, jobs.c.state == "pending", jobs.c.priority == priority.value)
    .with_hint(jobs, f"INDEXED BY {BY_QUEUE.name}", "sqlite")
    .scalar_subquery()
    for priority in Priority
]
_COLUMNS: tuple[sa.ColumnElement[Any], ...] = (
    table.c.name,
    table.c.paused,
    table.c.draining,
    table.c.max_concurrency,
    table.c.rate_limit,
    table.c.rate_window_ms,
    table.c.created_at,
    table.c.pending,
    table.c.active,
    table.c.held,
    table.c.completed,
    table.c.dead,
    table.c.scheduled,
    table.c.retrying,
    table.c.cancelled,
    table.c.enqueued,
    table.c.completed_total,
    table.c.failed,
    table.c.dead_total,
)


# A shard's clock may be ahead of this one, so there is no upper bound for its newest minute.
_BEFORE = sa.bindparam("minute_before", type_=sa.Integer)
_AMOUNTS = [
    sa.case((table.c.minute >= _BEFORE, newest), else_=0) + sa.func.coalesce(over, 0)
    for newest, over in zip(NEWEST[:3], (minutes.c.enqueued, minutes.c.completed, minutes.c.failed), strict=True)
]
_QUEUES = (
    sa.select(*_COLUMNS, *_AMOUNTS, *(sa.case((table.c.pending > 0, oldest)) for oldest in _OLDEST_PENDING))
    .select_from(table.outerjoin(minutes, sa.and_(minutes.c.queue == table.c.name, minutes.c.minute == _BEFORE)))
    .order_by(table.c.name)
)
_EVERY = Prepared(_QUEUES)
_OF_TENANT = _QUEUES.where(of_tenant(table))


async def answer(read_db: TenantDb) -> list[QueueView]:
    now = time.time_ns()
    wanted = Prepared(_OF_TENANT.where(*in_scope(table.c.name, read_db.reach)))

    def question(session: TenantSession) -> list[QueueView]:
        rows = session.rows(wanted, minute_before=now // MINUTE_NS - 1)
        return [_view(now, shown_name(name), *rest) for name, *rest in rows]

    return await read_db.ask(question)


async def of_all_namespaces(read_db: ReadDb) -> list[QueueView]:
    """For the metrics of the whole installation. Names have their namespace in front."""
    now = time.time_ns()

    def question(session: ReadSession) -> list[QueueView]:
        return [_view(now, *row) for row in session.rows(_EVERY, minute_before=now // MINUTE_NS - 1)]

    return await read_db.ask(question)


def _view(now: int, name: str, paused: int, draining: int, *rest: Any) -> QueueView:
    max_concurrency, rate_limit, rate_window_ms, created_at, pending, active, held, *others = rest
    completed, dead, scheduled, retrying, cancelled, enqueued, completed_total, failed, dead_total, *last = others
    amounts, oldest = last[: len(_AMOUNTS)], last[len(_AMOUNTS) :]
    oldest_pending_at = min((moment for moment in oldest if moment is not None), default=None)
    span_s = (MINUTE_NS + now % MINUTE_NS) / 1e9
    enqueued_per_s, completed_per_s, failed_per_s = (round(amount / span_s, 3) for amount in amounts)
    return QueueView(
        name=name,
        status=status_of(bool(paused), bool(draining), active),
        paused=bool(paused),
        max_concurrency=max_concurrency,
        rate_limit=rate_limit,
        rate_window_ms=rate_window_ms,
        created_at=created_at,
        pending=pending,
        active=active,
        held=held,
        completed=completed,
        dead=dead,
        scheduled=scheduled,
        retrying=retrying,
        cancelled=cancelled,
        enqueued=enqueued,
        completed_total=completed_total,
        failed=failed,
        dead_total=dead_total,
        enqueued_per_s=enqueued_per_s,
        completed_per_s=completed_per_s,
        failed_per_s=failed_per_s,
        oldest_pending_at=oldest_pending_at,
        oldest_pending_age_ms=_age_ms(now, oldest_pending_at),
    )


def _age_ms(now: int, since: str | None) -> int | None:
    return None if since is None else max(now - parse_rfc3339(since), 0) // 1_000_000

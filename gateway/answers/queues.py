"""All queues with the shards' own counts: nothing is counted here."""

from typing import Any

import sqlalchemy as sa

from corvo.queries.queue import status_of
from corvo.queries.queues import QueueView
from gateway.answers.database import Prepared, ReadDb, Reading
from gateway.mirror.schema import BY_QUEUE, jobs
from gateway.mirror.schema import queues as table

# One step into the index per queue, and only where something is pending.
_OLDEST_PENDING = (
    sa.select(sa.func.min(jobs.c.created_at))
    .where(jobs.c.queue == table.c.name, jobs.c.state == "pending")
    .with_hint(jobs, f"INDEXED BY {BY_QUEUE.name}", "sqlite")
    .scalar_subquery()
)
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
    table.c.failed,
)
_QUEUES = Prepared(sa.select(*_COLUMNS, sa.case((table.c.pending > 0, _OLDEST_PENDING))).order_by(table.c.name))


async def answer(read_db: ReadDb) -> list[QueueView]:
    return await read_db.ask(_answer)


def _answer(reading: Reading) -> list[QueueView]:
    return [_view(*row) for row in reading.rows(_QUEUES)]


def _view(name: str, paused: int, draining: int, *rest: Any) -> QueueView:
    max_concurrency, rate_limit, rate_window_ms, created_at, pending, active, held, *others = rest
    completed, dead, scheduled, retrying, cancelled, enqueued, failed, oldest_pending_at = others
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
        failed=failed,
        oldest_pending_at=oldest_pending_at,
    )

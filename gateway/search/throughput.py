"""Throughput per minute, from `queue_minutes` and from the newest minute in each queue's own row.

A queue's newest minute is written to `queue_minutes` when a later minute brings a change. Until then, even long after
it ended, it is the difference between the queue's totals and the totals at its start.
"""

import time

import msgspec
import sqlalchemy as sa

from corvo.model.errors import Refusal
from corvo.model.namespaces import shown_name
from corvo.model.reach import Reach
from corvo.model.timestamps import to_rfc3339
from corvo.queries.throughput import ThroughputPoint, ThroughputQuery
from corvo.state.minutes import MINUTE_NS
from gateway.readdb.minutes import BY_MINUTE, queue_minutes
from gateway.readdb.schema import queues
from gateway.search.database import TenantDb, TenantSession
from gateway.search.tenancy import in_scope, of_queue, of_tenant

NEWEST = (
    queues.c.enqueued - queues.c.minute_enqueued,
    queues.c.completed_total - queues.c.minute_completed,
    queues.c.failed - queues.c.minute_failed,
    queues.c.dead_total - queues.c.minute_dead,
)
_OVER = (queue_minutes.c.enqueued, queue_minutes.c.completed, queue_minutes.c.failed, queue_minutes.c.dead)


class Span(msgspec.Struct, frozen=True):
    """Minutes since 1970, both included."""

    first: int
    last: int


def span(now_ns: int, minutes: int) -> Span:
    last = now_ns // MINUTE_NS
    return Span(last - minutes + 1, last)


async def answer(read_db: TenantDb, query: ThroughputQuery, queue: str | None = None) -> list[ThroughputPoint]:
    within = span(time.time_ns(), query.minutes)
    reach = read_db.reach
    over, newest = _over(within, queue, reach), _newest(within, queue, reach)

    def question(session: TenantSession) -> list[ThroughputPoint]:
        if queue is not None and not session.rows(sa.select(queues.c.name).where(of_queue(queues.c.name))):
            raise Refusal(
                "QUEUE_NOT_FOUND", f"no queue has the name {shown_name(queue)!r}; a queue is created by its first job"
            )
        return _series(within, [*session.rows(over), *session.rows(newest)])

    return await read_db.ask(question, queue)


def _sum(amount: sa.ColumnElement[int]) -> sa.ColumnElement[int]:
    """PostgreSQL's sum of integers is a decimal without the cast."""
    return sa.cast(sa.func.sum(amount), sa.BigInteger)


def _over(within: Span, queue: str | None, reach: Reach) -> sa.Select[tuple[int, int, int, int, int]]:
    statement = (
        sa.select(queue_minutes.c.minute, *(_sum(amount) for amount in _OVER))
        .where(queue_minutes.c.minute.between(within.first, within.last))
        .group_by(queue_minutes.c.minute)
    )
    if queue is None:
        whole = statement.where(of_tenant(queue_minutes), *in_scope(queue_minutes.c.queue, reach))
        return whole.with_hint(queue_minutes, f"INDEXED BY {BY_MINUTE.name}", "sqlite")
    return statement.where(of_queue(queue_minutes.c.queue))


def _newest(within: Span, queue: str | None, reach: Reach) -> sa.Select[tuple[int, int, int, int, int]]:
    """A shard's clock may be ahead of this one; such a minute is counted in the last one shown."""
    last = sa.bindparam(None, within.last, sa.Integer, literal_execute=True)  # GROUP BY needs the identical text
    minute = sa.case((queues.c.minute > last, last), else_=queues.c.minute)
    statement = (
        sa.select(minute, *(_sum(amount) for amount in NEWEST)).where(queues.c.minute >= within.first).group_by(minute)
    )
    if queue is None:
        return statement.where(of_tenant(queues), *in_scope(queues.c.name, reach))
    return statement.where(of_queue(queues.c.name))


def _series(within: Span, rows: list[tuple[int, int, int, int, int]]) -> list[ThroughputPoint]:
    points = {
        minute: ThroughputPoint(to_rfc3339(minute * MINUTE_NS), 0, 0, 0, 0)
        for minute in range(within.first, within.last + 1)
    }
    for minute, enqueued, completed, failed, dead in rows:
        point = points[minute]
        point.enqueued += enqueued
        point.completed += completed
        point.failed += failed
        point.dead += dead
    return list(points.values())

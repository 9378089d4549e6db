"""Failures by their fingerprint, counted along an index that holds them in that order and nothing else.

Nothing is kept beside the failures themselves: what is deleted with its job is no longer counted, without anybody's
doing.
"""

from typing import Any

import sqlalchemy as sa

from corvo.errors import invalid
from corvo.fingerprint import simplify
from corvo.moments import parse_rfc3339, to_rfc3339
from corvo.queries.error_groups import ErrorGroup, ErrorGroupsAnswer, ErrorGroupsQuery
from gateway.answers.database import ReadDb, Reading
from gateway.answers.lag import lag_ms
from gateway.mirror.schema import BY_FINGERPRINT
from gateway.mirror.schema import job_errors as table

_HINT = f"INDEXED BY {BY_FINGERPRINT.name}"


async def answer(read_db: ReadDb, query: ErrorGroupsQuery) -> ErrorGroupsAnswer:
    groups = _groups(query)

    def question(reading: Reading) -> ErrorGroupsAnswer:
        rows = reading.rows(groups)
        return ErrorGroupsAnswer(
            groups=[_view(reading, *row) for row in rows[: query.limit]],
            has_more=len(rows) > query.limit,
            lag_ms=round(lag_ms(reading), 3),
        )

    return await read_db.ask(question)


def _groups(query: ErrorGroupsQuery) -> sa.Select[Any]:
    count, first_at, last_at = sa.func.count(), sa.func.min(table.c.created_at), sa.func.max(table.c.created_at)
    statement = (
        sa.select(table.c.queue, table.c.fingerprint, count, first_at, last_at)
        .with_hint(table, _HINT, "sqlite")
        .where(table.c.fingerprint.is_not(None))
        .group_by(table.c.queue, table.c.fingerprint)
        .order_by(count.desc(), last_at.desc(), table.c.queue, table.c.fingerprint)
        .limit(query.limit + 1)  # one more, to know whether another follows
    )
    if query.queue is not None:
        statement = statement.where(table.c.queue == query.queue)
    if query.since is not None:
        statement = statement.where(table.c.created_at >= _moment(query.since))
    return statement


def _view(reading: Reading, queue: str, fingerprint: str, count: int, first_at: str, last_at: str) -> ErrorGroup:
    newest = (
        sa.select(table.c.error, table.c.job_id)
        .with_hint(table, _HINT, "sqlite")
        .where(table.c.queue == queue, table.c.fingerprint == fingerprint, table.c.created_at == last_at)
        .limit(1)
    )
    error, job_id = reading.rows(newest)[0]
    return ErrorGroup(fingerprint, queue, simplify(error), count, first_at, last_at, error, job_id)


def _moment(text: str) -> str:
    try:
        return to_rfc3339(parse_rfc3339(text))
    except ValueError as error:
        raise invalid("since", str(error)) from None

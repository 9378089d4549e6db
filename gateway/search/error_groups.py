"""Failures grouped by fingerprint, counted on a covering index.

No separate counters exist: an error deleted with its job is no longer counted. All groups are counted, but the first
and last failure are looked up only for the groups on the page, one index seek each.
"""

from typing import Any

import sqlalchemy as sa

from corvo.model.errors import invalid
from corvo.model.fingerprint import simplify
from corvo.model.timestamps import parse_rfc3339, to_rfc3339
from corvo.queries.error_groups import ErrorGroup, ErrorGroupsAnswer, ErrorGroupsQuery
from gateway.readdb.schema import BY_FINGERPRINT
from gateway.readdb.schema import job_errors as table
from gateway.search.database import Prepared, ReadDb, ReadSession
from gateway.search.lag import lag_ms

_OF_GROUP = (
    sa.select(table.c.created_at, table.c.error, table.c.job_id)
    .with_hint(table, f"INDEXED BY {BY_FINGERPRINT.name}", "sqlite")
    .where(
        table.c.queue == sa.bindparam("of_queue"),
        table.c.fingerprint == sa.bindparam("of_fingerprint"),
        table.c.created_at >= sa.bindparam("since"),
    )
    .limit(1)
)
_FIRST = Prepared(_OF_GROUP.order_by(table.c.created_at))
_LAST = Prepared(_OF_GROUP.order_by(table.c.created_at.desc()))


async def answer(read_db: ReadDb, query: ErrorGroupsQuery) -> ErrorGroupsAnswer:
    since = "" if query.since is None else _moment(query.since)
    groups = _groups(query, since)

    def question(session: ReadSession) -> ErrorGroupsAnswer:
        rows = session.rows(groups)
        return ErrorGroupsAnswer(
            groups=[_view(session, since, *row) for row in rows[: query.limit]],
            has_more=len(rows) > query.limit,
            lag_ms=round(lag_ms(session), 3),
        )

    return await read_db.ask(question)


def _groups(query: ErrorGroupsQuery, since: str) -> sa.Select[Any]:
    count = sa.func.count()
    statement = (
        sa.select(table.c.queue, table.c.fingerprint, count)
        .with_hint(table, f"INDEXED BY {BY_FINGERPRINT.name}", "sqlite")
        .where(table.c.fingerprint.is_not(None))
        .group_by(table.c.queue, table.c.fingerprint)
        .order_by(count.desc(), table.c.queue, table.c.fingerprint)
        .limit(query.limit + 1)  # one more, to learn whether another page follows
    )
    if query.queue is not None:
        statement = statement.where(table.c.queue == query.queue)
    return statement.where(table.c.created_at >= since) if since else statement


def _view(session: ReadSession, since: str, queue: str, fingerprint: str, count: int) -> ErrorGroup:
    group = {"of_queue": queue, "of_fingerprint": fingerprint, "since": since}
    ((first_at, _, _),) = session.rows(_FIRST, **group)
    ((last_at, error, job_id),) = session.rows(_LAST, **group)
    return ErrorGroup(fingerprint, queue, simplify(error), count, first_at, last_at, error, job_id)


def _moment(text: str) -> str:
    try:
        return to_rfc3339(parse_rfc3339(text))
    except ValueError as error:
        raise invalid("since", str(error)) from None

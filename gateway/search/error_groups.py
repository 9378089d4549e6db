"""Failures grouped by fingerprint, counted on a covering index.

No separate counters exist: an error deleted with its job is no longer counted. All groups are counted, but the first
and last failure are looked up only for the groups on the page, one index seek each.
"""

from typing import Any

import sqlalchemy as sa

from corvo.model.errors import invalid
from corvo.model.fingerprint import simplify
from corvo.model.namespaces import shown_name
from corvo.model.reach import Reach
from corvo.model.timestamps import parse_rfc3339, to_rfc3339
from corvo.queries.error_groups import ErrorGroup, ErrorGroupsAnswer, ErrorGroupsQuery
from gateway.readdb.schema import BY_FINGERPRINT
from gateway.readdb.schema import job_errors as table
from gateway.search.database import TenantDb, TenantSession
from gateway.search.lag import lag_ms
from gateway.search.tenancy import in_scope, of_queue, of_tenant

_OF_GROUP = (
    sa.select(table.c.created_at, table.c.error, table.c.job_id)
    .with_hint(table, f"INDEXED BY {BY_FINGERPRINT.name}", "sqlite")
    .where(
        of_tenant(table),
        table.c.queue == sa.bindparam("of_queue"),
        table.c.fingerprint == sa.bindparam("of_fingerprint"),
        table.c.created_at >= sa.bindparam("since"),
    )
    .limit(1)
)


async def answer(read_db: TenantDb, query: ErrorGroupsQuery) -> ErrorGroupsAnswer:
    since = "" if query.since is None else _moment(query.since)
    groups = _groups(query, since, read_db.reach)

    def question(session: TenantSession) -> ErrorGroupsAnswer:
        rows = session.rows(groups)
        return ErrorGroupsAnswer(
            groups=[_view(session, since, *row) for row in rows[: query.limit]],
            has_more=len(rows) > query.limit,
            lag_ms=round(lag_ms(session), 3),
        )

    return await read_db.ask(question, query.queue)


def _groups(query: ErrorGroupsQuery, since: str, reach: Reach) -> sa.Select[Any]:
    count = sa.func.count()
    statement = (
        sa.select(table.c.queue, table.c.fingerprint, count)
        .with_hint(table, f"INDEXED BY {BY_FINGERPRINT.name}", "sqlite")
        .where(of_tenant(table), table.c.fingerprint.is_not(None), *in_scope(table.c.queue, reach))
        .group_by(table.c.queue, table.c.fingerprint)
        .order_by(count.desc(), table.c.queue, table.c.fingerprint)
        .limit(query.limit + 1)  # one more, to learn whether another page follows
    )
    if query.queue is not None:
        statement = statement.where(of_queue(table.c.queue))
    return statement.where(table.c.created_at >= since) if since else statement


def _view(session: TenantSession, since: str, queue: str, fingerprint: str, count: int) -> ErrorGroup:
    group = {"of_queue": queue, "of_fingerprint": fingerprint, "since": since}
    of_group = _OF_GROUP.where(*in_scope(table.c.queue, session.reach))
    ((first_at, _, _),) = session.rows(of_group.order_by(table.c.created_at), **group)
    ((last_at, error, job_id),) = session.rows(of_group.order_by(table.c.created_at.desc()), **group)
    return ErrorGroup(fingerprint, shown_name(queue), simplify(error), count, first_at, last_at, error, job_id)


def _moment(text: str) -> str:
    try:
        return to_rfc3339(parse_rfc3339(text))
    except ValueError as error:
        raise invalid("since", str(error)) from None
